/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A setup is made for the first attempt that has the world, and kept for all later ones: answers to
 * orders of an earlier attempt have to find the counts of orders there.
 *
 * Worlds are opened one after the other, since each waits for its nodes by itself
 * (head/job/job_endpoint.c). A message finds the setup by the number of its world; what happens to
 * a node is told to all setups.
 */
#include "head/job/world_endpoints.h"

#include <stdlib.h>

#include "base/memory.h"
#include "head/job/job_endpoint.h"
#include "head/job/job_owners.h"
#include "head/model/plan.h"

struct world_endpoints {
        struct cluster *cluster;
        struct attempt *attempt;
        struct heartbeat *heartbeat;
        struct port_names ports;
        struct endpoint_setup **v; /* by world */
        uint32_t n, last;
};

/* Setups are pointers: timers in them must not move when the list grows. */
static void add_setup(struct world_endpoints *w)
{
        w->v = xrealloc(w->v, w->n + 1, sizeof(struct endpoint_setup *));
        w->v[w->n] = job_endpoint_create(w->cluster, w->attempt, w->heartbeat, w->ports, w->n);
        w->n++;
}

struct world_endpoints *world_endpoints_create(struct cluster *c, struct attempt *a,
                                               struct heartbeat *h, struct port_names ports)
{
        struct world_endpoints *w = xcalloc(1, sizeof(*w));

        *w = (struct world_endpoints){ .cluster = c, .attempt = a, .heartbeat = h, .ports = ports };
        add_setup(w);
        return w;
}

void world_endpoints_close(struct world_endpoints *w)
{
        for (uint32_t i = 0; i < w->n; i++)
                job_endpoint_close(w->v[i]);
}

void world_endpoints_free(struct world_endpoints *w)
{
        for (uint32_t i = 0; i < w->n; i++)
                job_endpoint_free(w->v[i]);
        free(w->v);
        free(w);
}

struct endpoint_setup *world_endpoints_get(const struct world_endpoints *w, uint32_t world)
{
        return world < w->n ? w->v[world] : NULL;
}

struct endpoint_setup *world_endpoints_last(const struct world_endpoints *w)
{
        return w->v[w->last];
}

enum job_step world_endpoints_open(struct world_endpoints *w, const struct plan *plan,
                                   struct error *err)
{
        enum job_step r = JOB_DONE;

        for (uint32_t i = 0; r == JOB_DONE && i < plan->n_worlds; i++) {
                if (i == w->n)
                        add_setup(w);
                /* Before the opening: world_endpoints_last() is to find the setup that has
                 * failed. */
                w->last = i;
                r = job_endpoint_open(w->v[i], plan, err);
        }
        return r;
}

bool world_endpoints_owe(const struct world_endpoints *w, size_t node)
{
        for (uint32_t i = 0; i < w->n; i++)
                if (job_endpoint_owes(w->v[i], node))
                        return true;
        return false;
}

bool world_endpoints_serve(const struct world_endpoints *w, size_t node)
{
        for (uint32_t i = 0; i < w->n; i++)
                if (job_endpoint_serves(w->v[i], node))
                        return true;
        return false;
}

void world_endpoints_forget(const struct world_endpoints *w, size_t node)
{
        for (uint32_t i = 0; i < w->n; i++)
                job_endpoint_forget(w->v[i], node);
}

void world_endpoints_lost(const struct world_endpoints *w, size_t node)
{
        for (uint32_t i = 0; i < w->n; i++)
                job_owners_lost(job_endpoint_owners(w->v[i]), node);
}
