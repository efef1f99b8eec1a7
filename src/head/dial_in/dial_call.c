/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A try resolves the name, connects to one address after the other, exchanges greetings and sends
 * JOIN. What fails before is tried again, RETRY_MS later: node 0 may start minutes after this node,
 * and its name may not resolve before. After JOIN the node waits for WELCOME without a deadline of
 * its own: node 0 has one. A connection that ends while the node waits begins another try, because
 * node 0 may have been started again.
 */
#include "head/dial_in/dial_call.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/dial_in/dial_munge.h"
#include "head/output/say.h"
#include "wire/msg.h"

enum {
        CONNECT_MS = 5000, /* for an address */
        ANSWER_MS = 10000, /* for node 0's greeting */
        RETRY_MS = 1000,
        SAY_AFTER_MS = 10000, /* what keeps the node is told after this time, then each minute */
        SAY_AGAIN_MS = 60000,
        CALL_READ = 64 << 10,
};

/* Results of a try beside 0, 1 and -ECONNREFUSED. */
enum { CALL_AGAIN = 2 };

/* Waits until @fd is ready. 0, or -ETIMEDOUT. */
static int await_fd(int fd, short events, int ms)
{
        struct pollfd p = { .fd = fd, .events = events };
        int r;

        do
                r = poll(&p, 1, ms);
        while (r < 0 && errno == EINTR);
        return r > 0 ? 0 : -ETIMEDOUT;
}

/* Connects to an address; a blocking descriptor, or -errno. */
static int connect_dial_address(const struct addrinfo *a)
{
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
        int on = 1, idle = 5, probes = 3;
        socklen_t len = sizeof(error);

        if (fd < 0)
                return -errno;
        if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
                if (errno != EINPROGRESS)
                        error = errno;
                else if (await_fd(fd, POLLOUT, CONNECT_MS) < 0)
                        error = ETIMEDOUT;
                else
                        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
        }
        if (error) {
                fd_close(fd);
                return -error;
        }
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
        return fd;
}

/* Resolves and connects; a descriptor, or -errno with @err. */
static int connect_place(const struct dial_place *p, struct error *err)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *all;
        int fd = -1, r;
        char port[16];

        snprintf(port, sizeof(port), "%d", p->port);
        r = getaddrinfo(p->host, port, &hints, &all);
        if (r != 0)
                return err_set(err, ENXIO, "the name does not resolve (%s)", gai_strerror(r));
        for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
                fd = connect_dial_address(a);
        freeaddrinfo(all);
        return fd < 0 ? err_set(err, -fd, "%s", strerror(-fd)) : fd;
}

/* Exchanges the greetings. 0, or -errno with @err. */
static int exchange_greetings(struct dial_call *c, const uint8_t *psk, struct error *err)
{
        uint8_t greeting[DIAL_GREETING];
        size_t got = 0;
        int r;

        dial_greet(&c->stream, psk, greeting);
        r = fd_write_all(c->fd, greeting, sizeof(greeting));
        while (r == 0 && got < sizeof(greeting)) {
                ssize_t n;

                if (await_fd(c->fd, POLLIN, ANSWER_MS) < 0)
                        return err_set(err, ETIMEDOUT, "connected, but there is no answer");
                n = read(c->fd, greeting + got, sizeof(greeting) - got);
                if (n == 0 || (n < 0 && errno == ECONNRESET))
                        return err_set(err, EACCES,
                                       "node 0 closed the connection: is its secret another?");
                r = n < 0 && errno != EINTR ? -errno : 0;
                got += n > 0 ? (size_t)n : 0;
        }
        if (r < 0)
                return err_set(err, -r, "%s", strerror(-r));
        r = dial_take_answer(&c->stream, greeting);
        return r == 0         ? 0
               : r == -EPROTO ? err_set(err, EPROTO, "something else than hnlaunch answers there")
                              : err_set(err, EACCES, "what answers there does not know the secret");
}

static int send_join(struct dial_call *c, const struct dial_place *p)
{
        struct dial_join m = { .version = MSG_VERSION,
                               .rank = (uint32_t)p->rank,
                               .nodes = (uint32_t)p->nodes };
        struct buf out = BUF_INIT;
        int r;

        if (gethostname(m.name, sizeof(m.name) - 1) < 0 || !*m.name)
                snprintf(m.name, sizeof(m.name), "node%d", p->rank);
        dial_join_put(&c->stream, &m, &out);
        r = fd_write_all(c->fd, buf_data(&out), buf_len(&out));
        buf_finish(&out);
        return r;
}

/* Proves by munge that this is a process of the user, if the nodes know each other by munge. 0, or
 * -errno with @err. */
static int send_proof(struct dial_call *c, const struct dial_secret *s, struct error *err)
{
        struct buf out = BUF_INIT;
        char *credential;
        int r;

        if (s->kind != DIAL_SECRET_MUNGE)
                return 0;
        r = dial_munge_make(DIAL_SIDE_NODE, s->file, c->stream.hash, &credential, err);
        if (r < 0)
                return r;
        dial_put(&c->stream, DIAL_PROOF, credential, strlen(credential), &out);
        free(credential);
        r = fd_write_all(c->fd, buf_data(&out), buf_len(&out));
        buf_finish(&out);
        return r < 0 ? err_set(err, -r, "%s", strerror(-r)) : 0;
}

/* Judges the first record of node 0, before which nothing that it says is believed. -EAGAIN, or
 * CALL_AGAIN with @err. */
static int judge_proof(struct dial_call *c, const struct dial_secret *s,
                       const struct dial_record *r, struct error *err)
{
        CLEANUP(free_textp) char *credential = xstrndup((const char *)r->body, r->len);
        struct error why;

        c->proved = r->type == DIAL_PROOF && dial_munge_check(credential, DIAL_SIDE_HEAD, s->file,
                                                              c->stream.hash, &why) == 0;
        if (c->proved)
                return -EAGAIN;
        err_set(err, EACCES, "what answers there is not node 0 of this user (%s)",
                r->type == DIAL_PROOF ? why.text : "no credential of munge");
        return CALL_AGAIN;
}

/* Acts on a record that comes before WELCOME, and WELCOME. -EAGAIN: there is nothing to do. */
static int judge_record(struct dial_in *d, const struct dial_record *r, struct error *err)
{
        if (r->type == DIAL_WELCOME)
                return 0;
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
        err_set(err, EBUSY, "%s", d->end.text);
        return CALL_AGAIN;
}

/* Waits for WELCOME. */
static int await_welcome(struct dial_call *c, struct dial_in *d, struct error *err)
{
        for (;;) {
                struct dial_record rec;
                int r = dial_take(&c->stream, &c->in, &rec);
                ssize_t n;
                char *to;

                if (r > 0) {
                        r = c->proved ? judge_record(d, &rec, err)
                                      : judge_proof(c, &d->secret, &rec, err);
                        buf_consume(&c->in, rec.whole);
                        if (r != -EAGAIN)
                                return r;
                        continue;
                }
                to = r == 0 ? buf_reserve(&c->in, CALL_READ) : NULL;
                n = to ? read(c->fd, to, CALL_READ) : 0;
                if (n > 0) {
                        buf_advance(&c->in, (size_t)n);
                } else if (!to || n == 0 || errno != EINTR) {
                        err_set(err, ECONNRESET, "node 0 closed the connection");
                        return CALL_AGAIN;
                }
        }
}

static int try_call(struct dial_call *c, struct dial_in *d, struct error *err)
{
        int r = dial_secret_read(&d->secret, err);

        if (r < 0)
                return r == -ENOKEY ? CALL_AGAIN : -EPERM;
        c->fd = connect_place(&d->place, err);
        if (c->fd < 0)
                return CALL_AGAIN;
        c->proved = d->secret.kind != DIAL_SECRET_MUNGE;
        if (exchange_greetings(c, d->secret.psk, err) < 0 || send_proof(c, &d->secret, err) < 0 ||
            send_join(c, &d->place) < 0)
                return CALL_AGAIN;
        r = await_welcome(c, d, err);
        return r;
}

void dial_call_finish(struct dial_call *c)
{
        c->fd = fd_close(c->fd);
        buf_finish(&c->in);
}

int dial_call(struct dial_call *c, struct dial_in *d, struct error *err)
{
        const struct dial_place *p = &d->place;
        int64_t begin = clock_ms(), said = begin - SAY_AGAIN_MS + SAY_AFTER_MS, now;
        int r;

        for (;;) {
                int64_t tried = clock_ms();

                *c = (struct dial_call){ .fd = -1 };
                r = try_call(c, d, err);
                if (r == 0)
                        return 0;
                dial_call_finish(c);
                if (r != CALL_AGAIN)
                        return r;
                now = clock_ms();
                if (err->code == ECONNRESET && now - tried > RETRY_MS)
                        begin = now; /* it was in; the time begins anew */
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
