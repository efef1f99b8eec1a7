/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/host_groups.h"

#include <stdlib.h>

#include "base/strv.h"

void host_group_add(struct host_group *g, size_t host)
{
        /* Full when the number of hosts is a power of two, or none. */
        if (!(g->n & (g->n - 1)))
                g->hosts = xrealloc(g->hosts, g->n ? g->n * 2 : 1, sizeof(*g->hosts));
        g->hosts[g->n++] = host;
}

void host_group_finish(struct host_group *g)
{
        free(g->hosts);
        *g = (struct host_group){ 0 };
}

void host_groups_add(struct host_groups *g, size_t host, host_equal equal, const void *ctx)
{
        size_t i = 0;

        while (i < g->n && !equal(ctx, g->v[i].hosts[0], host))
                i++;
        if (i == g->n) {
                g->v = xrealloc(g->v, g->n + 1, sizeof(*g->v));
                g->v[g->n++] = (struct host_group){ 0 };
        }
        host_group_add(&g->v[i], host);
}

void host_groups_finish(struct host_groups *g)
{
        for (size_t i = 0; i < g->n; i++)
                host_group_finish(&g->v[i]);
        free(g->v);
        *g = (struct host_groups){ 0 };
}
