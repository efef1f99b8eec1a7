/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/transport.h"

#include <stdlib.h>

#include "base/memory.h"
#include "head/nodes/process_link.h"

struct local_transport {
        struct transport transport;
        uv_loop_t *loop;
        char *program;
};

static struct link *open_local_link(struct transport *t, const struct link_target *to UNUSED,
                                    const struct link_callbacks *cb, void *ctx,
                                    struct error *err UNUSED)
{
        struct local_transport *local = container_of(t, struct local_transport, transport);
        char *argv[] = { local->program, NULL };

        return process_link_open(t, local->loop, argv, "the local agent", NULL, cb, ctx);
}

static void destroy_local_transport(struct transport *t)
{
        struct local_transport *local = container_of(t, struct local_transport, transport);

        free(local->program);
        free(local);
}

static const struct transport_ops local_ops = {
        .open = open_local_link,
        .close = process_link_close,
        .destroy = destroy_local_transport,
};

struct transport *transport_local_create(uv_loop_t *loop, const char *program,
                                         struct error *err UNUSED)
{
        struct local_transport *local = xcalloc(1, sizeof(*local));

        local->transport.ops = &local_ops;
        local->loop = loop;
        local->program = xstrdup(program);
        return &local->transport;
}
