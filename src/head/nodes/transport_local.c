/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/transport.h"

#include <stdlib.h>

#include "base/memory.h"
#include "head/nodes/process_link.h"

struct local {
        struct transport transport;
        uv_loop_t *loop;
        char *program;
};

static struct link *local_open(struct transport *t, const struct link_target *to UNUSED,
                               const struct link_callbacks *cb, void *ctx, struct error *err UNUSED)
{
        struct local *local = container_of(t, struct local, transport);
        char *argv[] = { local->program, NULL };

        return process_link_open(t, local->loop, argv, "the local agent", NULL, cb, ctx);
}

static void local_destroy(struct transport *t)
{
        struct local *local = container_of(t, struct local, transport);

        free(local->program);
        free(local);
}

static const struct transport_ops local_ops = {
        .open = local_open,
        .close = process_link_close,
        .destroy = local_destroy,
};

struct transport *transport_local_create(uv_loop_t *loop, const char *program,
                                         struct error *err UNUSED)
{
        struct local *local = xcalloc(1, sizeof(*local));

        local->transport.ops = &local_ops;
        local->loop = loop;
        local->program = xstrdup(program);
        return &local->transport;
}
