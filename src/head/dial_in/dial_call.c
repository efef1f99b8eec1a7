/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A try resolves the name, connects to one address after the other, exchanges greetings and sends
 * JOIN. A failure before JOIN leads to another try, RETRY_MS later: node 0 may start minutes after
 * this node, and the name of node 0 may not resolve before. After JOIN the node waits for WELCOME
 * without a deadline, for node 0 has a deadline. The end of a connection during the wait leads to
 * another try, too, because node 0 may have been started again.
 */
#include "head/dial_in/dial_call.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/dial_in/dial_munge.h"
#include "head/output/say.h"
#include "wire/msg.h"

enum {
        ANSWER_MS = 10000, /* for node 0's greeting */
        RETRY_MS = 1000,
        SAY_AFTER_MS = 10000, /* the obstacle is told after this time, then each minute */
        SAY_AGAIN_MS = 60000,
};

/* Results of a try beside 0, 1 and -ECONNREFUSED. */
enum { CALL_AGAIN = 2 };

/* Resolves and connects. 0, or -errno with @err. */
static int connect_place(struct caller *c, const struct dial_place *p, struct error *err)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *all;
        char port[16];
        int r;

        snprintf(port, sizeof(port), "%d", p->port);
        r = getaddrinfo(p->host, port, &hints, &all);
        if (r != 0)
                return err_set(err, ENXIO, "the name does not resolve (%s)", gai_strerror(r));
        r = -1;
        for (struct addrinfo *a = all; a && r < 0; a = a->ai_next)
                r = caller_connect(c, a->ai_addr, a->ai_addrlen);
        freeaddrinfo(all);
        return r < 0 ? err_set(err, -r, "%s", strerror(-r)) : 0;
}

/* Exchanges the greetings. 0, or -errno with @err. */
static int greet_node_0(struct caller *c, const uint8_t *psk, struct error *err)
{
        int r = caller_greet(c, psk, ANSWER_MS);

        switch (r) {
        case 0:
                return 0;
        case -ETIMEDOUT:
                return err_set(err, ETIMEDOUT, "connected, but there is no answer");
        /* Node 0 answers a greeting with another secret by closing. */
        case -ECONNRESET:
                return err_set(err, EACCES, "node 0 closed the connection: is its secret another?");
        case -EPROTO:
                return err_set(err, EPROTO, "something else than hnlaunch answers there");
        case -EBADMSG:
                return err_set(err, EACCES, "what answers there does not know the secret");
        default:
                return err_set(err, -r, "%s", strerror(-r));
        }
}

static int send_join(struct caller *c, const struct dial_place *p)
{
        struct dial_join m = { .version = MSG_VERSION,
                               .rank = (uint32_t)p->rank,
                               .nodes = (uint32_t)p->nodes };

        /* The last byte stays 0: gethostname() may end a long name without one. */
        if (gethostname(m.name, sizeof(m.name) - 1) < 0 || !*m.name)
                snprintf(m.name, sizeof(m.name), "node%d", p->rank);
        return caller_join(c, &m);
}

/* Proves by munge the user of this process, if the nodes know each other by munge. 0, or
 * -errno with @err. */
static int send_proof(struct caller *c, const struct dial_secret *s, struct error *err)
{
        char *credential;
        int r;

        if (s->kind != DIAL_SECRET_MUNGE)
                return 0;
        /* s->file names the job and the port: see find_job_secret(). */
        r = dial_munge_make(DIAL_SIDE_NODE, s->file, c->stream.hash, &credential, err);
        if (r < 0)
                return r;
        r = caller_put(c, DIAL_PROOF, credential, strlen(credential));
        free(credential);
        return r < 0 ? err_set(err, -r, "%s", strerror(-r)) : 0;
}

/* Judges the first record of node 0: without a proof no other record is believed. -EAGAIN, or
 * CALL_AGAIN with @err. */
static int judge_proof(struct dial_call *c, const struct dial_secret *s,
                       const struct dial_record *r, struct error *err)
{
        CLEANUP(free_textp) char *credential = xstrndup((const char *)r->body, r->len);
        struct error why;

        c->proved = r->type == DIAL_PROOF && dial_munge_check(credential, DIAL_SIDE_HEAD, s->file,
                                                              c->c.stream.hash, &why) == 0;
        if (c->proved)
                return -EAGAIN;
        err_set(err, EACCES, "what answers there is not node 0 of this user (%s)",
                r->type == DIAL_PROOF ? why.text : "no credential of munge");
        return CALL_AGAIN;
}

/* Acts on a record up to WELCOME. -EAGAIN: there is nothing to do. */
static int judge_record(struct dial_in *d, const struct dial_record *r, struct error *err)
{
        if (r->type == DIAL_WELCOME)
                return 0;
        /* Records of other types have no meaning before WELCOME. */
        if (dial_end_decode(&d->end, r) < 0)
                return -EAGAIN;
        if (r->type == DIAL_NOTICE) {
                if (!d->quiet)
                        say("hnlaunch: node %d waits: %s\n", d->place.rank, d->end.text);
                return -EAGAIN;
        }
        if (r->type == DIAL_END)
                return 1;
        if (d->end.code != DIAL_RETRY)
                return err_set(err, ECONNREFUSED, "%s", d->end.text);
        /* Another node has the rank, perhaps an earlier process of this node. */
        err_set(err, EBUSY, "%s", d->end.text);
        return CALL_AGAIN;
}

/* Waits for WELCOME. */
static int await_welcome(struct dial_call *c, struct dial_in *d, struct error *err)
{
        struct dial_record rec;
        int r;

        while (caller_take(&c->c, &rec) == 0) {
                r = c->proved ? judge_record(d, &rec, err) : judge_proof(c, &d->secret, &rec, err);
                buf_consume(&c->c.in, rec.whole);
                if (r != -EAGAIN)
                        return r;
        }
        /* A damaged record counts as the end of the connection. */
        err_set(err, ECONNRESET, "node 0 closed the connection");
        return CALL_AGAIN;
}

/* One try. 0: WELCOME has come; 1: the job ended; CALL_AGAIN with @err; -EPERM and -ECONNREFUSED as
 * dial_call(). */
static int try_call(struct dial_call *c, struct dial_in *d, struct error *err)
{
        int r = dial_secret_read(&d->secret, err);

        if (r < 0)
                return r == -ENOKEY ? CALL_AGAIN : -EPERM;
        c->proved = d->secret.kind != DIAL_SECRET_MUNGE;
        if (connect_place(&c->c, &d->place, err) < 0 ||
            greet_node_0(&c->c, d->secret.psk, err) < 0 || send_proof(&c->c, &d->secret, err) < 0 ||
            send_join(&c->c, &d->place) < 0)
                return CALL_AGAIN;
        return await_welcome(c, d, err);
}

int dial_call(struct dial_call *c, struct dial_in *d, struct error *err)
{
        const struct dial_place *p = &d->place;
        /* As if an obstacle had been told before, so that the first is told after SAY_AFTER_MS. */
        int64_t begin = clock_ms(), said = begin - SAY_AGAIN_MS + SAY_AFTER_MS, now;
        int r;

        for (;;) {
                int64_t tried = clock_ms();

                *c = (struct dial_call){ .c = CALLER_INIT };
                r = try_call(c, d, err);
                if (r == 0)
                        return 0;
                caller_finish(&c->c);
                if (r != CALL_AGAIN)
                        return r;
                now = clock_ms();
                if (err->code == ECONNRESET && now - tried > RETRY_MS)
                        begin = now; /* the node was in; the time begins anew */
                /* DURATION_NEVER is below 0. */
                if (d->timeout_ms >= 0 && now - begin >= d->timeout_ms)
                        return -ETIMEDOUT;
                if (now - said >= SAY_AGAIN_MS && !d->quiet) {
                        said = now;
                        say("hnlaunch: node %d waits for node 0 at %s port %d: %s\n", p->rank,
                            p->host, p->port, err->text);
                }
                usleep(RETRY_MS * 1000);
        }
}
