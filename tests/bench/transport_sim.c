/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/transport_sim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/strv.h"

enum { AT_ONCE = 64 }; /* links that open in one turn */

struct sim_link {
        struct link base;
        const struct link_callbacks *cb; /* NULL = closed */
        void *ctx;
};

struct sim {
        struct transport base;
        uv_idle_t idle; /* runs while links wait to be opened */
        struct sim_link *links;
        int *fds;
        uint32_t n, n_asked, n_opened;
};

static void open_next(struct sim *t)
{
        struct sim_link *l = &t->links[t->n_opened];
        int fd = t->fds[t->n_opened++];

        for (int p = LINK_RESOLVING; l->cb && l->cb->phase && p < LINK_OPEN; p++)
                l->cb->phase(l->ctx, (enum link_phase)p);
        if (l->cb)
                l->cb->opened(l->ctx, fd);
        else
                fd_close(fd);
}

static void some_open(uv_idle_t *h)
{
        struct sim *t = h->data;

        for (int i = 0; i < AT_ONCE && t->n_opened < t->n_asked; i++)
                open_next(t);
        if (t->n_opened == t->n_asked)
                uv_idle_stop(h);
}

static struct link *sim_open(struct transport *base, const struct link_target *to UNUSED,
                             const struct link_callbacks *cb, void *ctx, struct error *err)
{
        struct sim *t = (struct sim *)base;
        struct sim_link *l = &t->links[t->n_asked];

        if (t->n_asked == t->n) {
                err_set(err, EMFILE, "there are only %u simulated nodes", t->n);
                return NULL;
        }
        t->n_asked++;
        *l = (struct sim_link){ { base }, cb, ctx };
        uv_idle_start(&t->idle, some_open);
        return &l->base;
}

static void sim_close(struct link *l)
{
        ((struct sim_link *)l)->cb = NULL;
}

static void closed(uv_handle_t *h)
{
        struct sim *t = h->data;

        for (; t->n_opened < t->n; t->n_opened++)
                fd_close(t->fds[t->n_opened]);
        free(t->fds);
        free(t->links);
        free(t);
}

static void sim_destroy(struct transport *base)
{
        uv_close((uv_handle_t *)&((struct sim *)base)->idle, closed);
}

struct transport *transport_sim_create(uv_loop_t *loop, int *fds, uint32_t n)
{
        static const struct transport_ops ops = { .open = sim_open,
                                                  .close = sim_close,
                                                  .destroy = sim_destroy };
        struct sim *t = xcalloc(1, sizeof(*t));

        *t = (struct sim){ .base = { &ops }, .fds = fds, .n = n };
        t->links = xcalloc(n, sizeof(*t->links));
        uv_idle_init(loop, &t->idle);
        t->idle.data = t;
        return &t->base;
}
