/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libmunge.so.2 are declared here: a build needs no headers of munge. Only the own
 * user can open a credential, and the credential names the side of the maker: a false node 0 can
 * neither open the credential of a node nor show the same credential back to the node. The signed
 * text names the job: a node is not led to node 0 of another job of the same user.
 *
 * munged answers in less than a millisecond, or hangs. The loop of node 0 serves the job and must
 * not wait, so node 0 asks munged in a thread.
 */
#include "head/dial_in/dial_munge.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/memory.h"
#include "head/core/thread_pool.h"
#include "head/dial_in/dial_peer.h"

/* As MUNGE_OPT_UID_RESTRICTION of munge.h. */
enum { MUNGE_UID_RESTRICTION = 9, CREDENTIAL_MAX = 4096, CLAIM_TEXT = 256, MUNGE_THREADS = 2 };

struct munge_ctx;

/* NULL before load_munge(). */
static struct {
        int (*encode)(char **credential, struct munge_ctx *ctx, const void *data, int len);
        int (*decode)(const char *credential, struct munge_ctx *ctx, void **data, int *len,
                      uid_t *uid, gid_t *gid);
        const char *(*strerror)(int error);
        struct munge_ctx *(*ctx_create)(void);
        void (*ctx_destroy)(struct munge_ctx *ctx);
        int (*ctx_set)(struct munge_ctx *ctx, int option, ...);
} lib;

/* The signed text of a credential. Compared as bytes, so unused bytes are 0. */
struct munge_claim {
        char text[CLAIM_TEXT];
        uint8_t hash[NOISE_HASH];
};

/* Loads libmunge, which only clusters with munge have. Whether all functions are there. */
static bool load_munge(void)
{
        const struct {
                const char *name;
                void *to;
        } symbols[] = {
                { "munge_encode", &lib.encode },           { "munge_decode", &lib.decode },
                { "munge_strerror", &lib.strerror },       { "munge_ctx_create", &lib.ctx_create },
                { "munge_ctx_destroy", &lib.ctx_destroy }, { "munge_ctx_set", &lib.ctx_set },
        };
        void *module = lib.encode ? NULL : dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL), *found;

        /* Loaded before, or not installed. */
        if (!module)
                return lib.encode;
        for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
                found = dlsym(module, symbols[i].name);
                if (!found) {
                        lib.encode = NULL;
                        dlclose(module);
                        return false;
                }
                /* C has no conversion from pointers to objects to pointers to functions. */
                memcpy(symbols[i].to, &found, sizeof(found));
        }
        return true;
}

static struct munge_claim write_claim(enum dial_side side, const char *job,
                                      const uint8_t hash[NOISE_HASH])
{
        struct munge_claim c = { 0 };

        snprintf(c.text, sizeof(c.text), "hnlaunch dial-in 1 %s %s",
                 side == DIAL_SIDE_HEAD ? "head" : "node", job);
        memcpy(c.hash, hash, sizeof(c.hash));
        return c;
}

bool dial_munge_works(void)
{
        static const uint8_t none[NOISE_HASH];
        char *credential = NULL;
        struct error err;
        /* A credential of no use shows that munged answers. */
        bool works =
                load_munge() && dial_munge_make(DIAL_SIDE_NODE, "", none, &credential, &err) == 0;

        free(credential);
        return works;
}

int dial_munge_make(enum dial_side side, const char *job, const uint8_t hash[NOISE_HASH],
                    char **ret, struct error *err)
{
        const struct munge_claim claim = write_claim(side, job, hash);
        struct munge_ctx *ctx = lib.ctx_create();
        int r = ctx ? lib.ctx_set(ctx, MUNGE_UID_RESTRICTION, geteuid()) : ENOMEM;

        *ret = NULL;
        if (r == 0)
                r = lib.encode(ret, ctx, &claim, (int)sizeof(claim));
        if (r != 0)
                err_set(err, EIO, "munge makes no credential: %s", lib.strerror(r));
        if (ctx)
                lib.ctx_destroy(ctx);
        return r == 0 ? 0 : -EIO;
}

int dial_munge_check(const char *credential, enum dial_side side, const char *job,
                     const uint8_t hash[NOISE_HASH], struct error *err)
{
        const struct munge_claim claim = write_claim(side, job, hash);
        void *data = NULL;
        gid_t gid = 0;
        uid_t uid = 0;
        int len = 0, r = lib.decode(credential, NULL, &data, &len, &uid, &gid);
        bool same = len == (int)sizeof(claim) && !memcmp(data, &claim, sizeof(claim));

        free(data);
        if (r != 0)
                return err_set(err, EACCES, "munge: %s", lib.strerror(r));
        if (uid != geteuid())
                return err_set(err, EACCES, "munge: it is of user %u", (unsigned)uid);
        return same ? 0
                    : err_set(err, EACCES, "munge: its credential is of another connection or job");
}

/* --- node 0, without waiting ------------------------------------------------------------------ */

struct dial_munge {
        struct thread_pool *pool;
        const char *job;
};

struct munge_check {
        struct thread_pool_work work;
        struct dial_peer *peer; /* NULL: closed */
        char job[CLAIM_TEXT];   /* a copy: the check may outlast the transport */
        uint8_t hash[NOISE_HASH];
        char *credential, *answer;
        struct error err;
        int result;
};

/* In a thread: checks the credential of the node, and makes node 0's for the answer. */
static void run_munge_check(struct thread_pool_work *w)
{
        struct munge_check *c = container_of(w, struct munge_check, work);

        c->result = dial_munge_check(c->credential, DIAL_SIDE_NODE, c->job, c->hash, &c->err);
        if (c->result == 0)
                c->result = dial_munge_make(DIAL_SIDE_HEAD, c->job, c->hash, &c->answer, &c->err);
}

/* In the loop. The result for a closed peer is dropped. */
static void on_munge_checked(struct thread_pool_work *w, int status)
{
        struct munge_check *c = container_of(w, struct munge_check, work);

        if (c->peer) {
                c->peer->check = NULL;
                if (status == 0 && c->result == 0)
                        dial_peer_prove(c->peer, c->answer);
                else
                        dial_peer_refute(c->peer, c->err.text);
        }
        free(c->credential);
        free(c->answer);
        free(c);
}

void dial_munge_begin(struct dial_munge *m, struct dial_peer *p, const struct dial_record *r)
{
        struct munge_check *c = xcalloc(1, sizeof(*c));

        c->work.run = run_munge_check;
        c->work.done = on_munge_checked;
        c->peer = p;
        /* A longer text is cut, and fails the check. */
        c->credential = xstrndup((const char *)r->body, MIN(r->len, (size_t)CREDENTIAL_MAX));
        snprintf(c->job, sizeof(c->job), "%s", m->job);
        memcpy(c->hash, p->stream.hash, sizeof(c->hash));
        p->check = c;
        thread_pool_run(m->pool, &c->work);
}

void dial_munge_forget(struct dial_peer *p)
{
        struct munge_check *c = p->check;

        if (c)
                c->peer = NULL;
        p->check = NULL;
}

struct dial_munge *dial_munge_create(uv_loop_t *loop, const char *job, struct error *err)
{
        struct thread_pool *pool = thread_pool_create(loop, MUNGE_THREADS, err);
        struct dial_munge *m = pool ? xcalloc(1, sizeof(*m)) : NULL;

        if (m)
                *m = (struct dial_munge){ pool, job };
        return m;
}

void dial_munge_destroy(struct dial_munge *m)
{
        if (m)
                thread_pool_close(m->pool);
        free(m);
}
