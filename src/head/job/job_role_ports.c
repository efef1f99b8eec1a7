/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of all worlds are reserved before the first order to start ranks: an order has the
 * addresses and ports of roles that start later. The address of an instance is the MASTER_ADDR of
 * its node: the one that other nodes have reached, where it was probed, else the best candidate.
 */
#include "head/job/job_role_ports.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "head/job/cluster.h"
#include "head/job/job_endpoint.h"
#include "head/job/world_endpoints.h"
#include "head/model/role_book.h"
#include "head/model/role_instances.h"

/* --- addresses --- */

/* Returns the address of a node that other nodes of a world have reached; NULL = none was probed.
 */
static const char *find_probed_address(const struct job_role_ports *p, size_t node)
{
        for (uint32_t w = 0; w < p->plan->n_worlds; w++) {
                const struct job_endpoint *d =
                        job_endpoint_result(world_endpoints_get(p->endpoints, w));

                if (d->mode == STORE_LISTEN_NETWORK && d->first == node && d->candidates.n)
                        return d->candidates.v[d->chosen].addr;
        }
        return NULL;
}

/* Returns the address of a node for ranks of all nodes, malloc'ed; or NULL with @err. */
static char *find_instance_address(const struct job_role_ports *p, size_t node, struct error *err)
{
        const struct cluster *c = p->cluster;
        const char *probed = find_probed_address(p, node);
        struct master_addr_list list;
        const struct hello **hellos;
        size_t n = 0;
        int r;

        if (probed)
                return xstrdup(probed);
        hellos = xcalloc(c->n_nodes, sizeof(*hellos));
        hellos[n++] = &c->nodes[node].hello;
        for (size_t i = 0; i < c->n_nodes; i++)
                if (i != node && p->plan->nodes[i].n_ranks)
                        hellos[n++] = &c->nodes[i].hello;
        r = master_addr_candidates(&list, c->nodes[node].host, hellos, n, c->options->iface, err);
        free(hellos);
        if (r < 0)
                return NULL;
        return xstrdup(n == 1 && !list.given ? "127.0.0.1" : list.v[0].addr);
}

/* --- the book --- */

/* Returns the reserved ports of the instance of a rank. Only for a role with ports. */
static const uint32_t *find_numbers(const struct job_role_ports *p, const struct plan_rank *r)
{
        const struct endpoint_setup *s = world_endpoints_get(p->endpoints, (uint32_t)r->world);

        return job_ports_of_rank(job_endpoint_reserved(s), p->plan, r->rank);
}

static void describe_instance(const struct job_role_ports *p, const struct plan_rank *r,
                              const char *addr)
{
        const struct strv *names = role_book_ports(p->book, r->program);
        const uint32_t *numbers = names->n ? find_numbers(p, r) : NULL;
        int instance = role_book_add_instance(p->book, r->program,
                                              p->cluster->nodes[r->node].host->name, addr);

        for (size_t i = 0; i < names->n; i++)
                role_book_set_port(p->book, r->program, instance, names->v[i], numbers[i]);
}

int job_role_ports_describe(const struct job_role_ports *p, struct error *err)
{
        char **addrs; /* by node; NULL = not needed yet */
        int rc = 0;

        if (!p->book)
                return 0;
        addrs = xcalloc(p->plan->n_nodes, sizeof(*addrs));
        role_book_clear_instances(p->book);
        for (int i = 0; !rc && i < p->plan->world_size; i++) {
                const struct plan_rank *r = &p->plan->ranks[i];

                if (role_instance_of(p->book, p->plan, i) != i)
                        continue;
                if (!addrs[r->node])
                        addrs[r->node] = find_instance_address(p, (size_t)r->node, err);
                if (addrs[r->node])
                        describe_instance(p, r, addrs[r->node]);
                else
                        rc = -err->code;
        }
        for (size_t i = 0; i < p->plan->n_nodes; i++)
                free(addrs[i]);
        free(addrs);
        return rc;
}

/* --- orders --- */

static void fill_rank_ports(const struct job_role_ports *p, const struct plan_rank *r,
                            struct launch_rank_ports *to)
{
        const struct strv *names = role_book_ports(p->book, r->program);
        const uint32_t *numbers;

        if (!names->n)
                return;
        numbers = find_numbers(p, r);
        to->n = (uint32_t)names->n;
        to->v = xcalloc(names->n, sizeof(*to->v));
        for (size_t i = 0; i < names->n; i++) {
                snprintf(to->v[i].name, sizeof(to->v[i].name), "%s", names->v[i]);
                to->v[i].number = numbers[i];
        }
}

void job_role_ports_fill(const struct job_role_ports *p, struct launch_order *m)
{
        bool any = false;

        if (!p->book)
                return;
        m->n_rank_ports = m->n_ranks;
        m->rank_ports = xcalloc(m->n_ranks, sizeof(*m->rank_ports));
        for (uint32_t i = 0; i < m->n_ranks; i++) {
                fill_rank_ports(p, &p->plan->ranks[m->world.first + m->ranks[i].rank],
                                &m->rank_ports[i]);
                any |= m->rank_ports[i].n > 0;
        }
        if (!any)
                launch_order_drop_rank_ports(m);
}
