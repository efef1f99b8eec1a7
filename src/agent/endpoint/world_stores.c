/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores are made on demand, because the agent learns of a world by a message about the world. A
 * WORLD wraps one message of the head; the inner type chooses the function, as the table of
 * agent.c does for world 0. Stores live until the agent ends.
 */
#include "agent/endpoint/world_stores.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/strv.h"

struct world_stores {
        uv_loop_t *loop;
        struct uplink *up;
        struct node_trace *trace;
        struct store_access **v; /* by world; NULL = no message has come */
        uint32_t n;
};

struct world_stores *world_stores_create(uv_loop_t *loop, struct uplink *up,
                                         struct node_trace *trace)
{
        struct world_stores *w = xcalloc(1, sizeof(*w));

        *w = (struct world_stores){ .loop = loop, .up = up, .trace = trace };
        return w;
}

void world_stores_destroy(struct world_stores *w)
{
        if (!w)
                return;
        for (uint32_t i = 0; i < w->n; i++)
                store_access_destroy(w->v[i]);
        free(w->v);
        free(w);
}

struct store_access *world_stores_get(struct world_stores *w, uint32_t world)
{
        if (world >= w->n) {
                /* Worlds are numbers below MSG_MAX_WORLDS, so the array stays small. */
                w->v = xrealloc(w->v, world + 1, sizeof(struct store_access *));
                while (w->n <= world)
                        w->v[w->n++] = NULL;
        }
        if (!w->v[world])
                w->v[world] = store_access_create(w->loop, w->up, w->trace, world);
        return w->v[world];
}

int world_stores_listen(struct world_stores *w, uint32_t world, const char *path,
                        struct store_access **ret, struct error *err)
{
        CLEANUP(free_textp)
        char *own = world ? xasprintf("%s-%u", path, world) : xstrdup(path);

        *ret = world_stores_get(w, world);
        return store_access_listen(*ret, own, err);
}

void world_stores_end(struct world_stores *w)
{
        world_stores_each(w, store_access_end);
}

void world_stores_each(struct world_stores *w, void (*fn)(struct store_access *s))
{
        for (uint32_t i = 0; i < w->n; i++)
                if (w->v[i])
                        fn(w->v[i]);
}

void world_stores_each_local(struct world_stores *w,
                             void (*fn)(void *ctx, const struct relay_client *c, uint32_t rank),
                             void *ctx)
{
        for (uint32_t i = 0; i < w->n; i++)
                if (w->v[i])
                        store_access_each_local(w->v[i], fn, ctx);
}

void world_stores_on_world(void *stores, const struct frame *f)
{
        /* A type without a function is dropped: a WORLD may wrap messages about stores only. */
        static void (*const takers[256])(void *access, const struct frame *f) = {
                [MSG_STORE] = store_access_on_store,
                [MSG_ENDPOINT] = store_access_on_endpoint,
                [MSG_PROBE] = store_access_on_probe,
                [MSG_PORTS] = store_access_on_ports,
                [MSG_OWNERS_REQUEST] = store_access_on_owners_request,
                [MSG_OWNERS] = store_access_on_owners,
        };
        struct frame inner;
        uint32_t world;
        struct error err;

        if (world_decode(&world, &inner, f, &err) < 0)
                log_line(LOG_WARN, "%s", err.text);
        else if (takers[inner.type])
                takers[inner.type](world_stores_get(stores, world), &inner);
}
