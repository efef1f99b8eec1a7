/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of --bind has a function that sets the masks of all ranks, or the reason for an unbound
 * rank. At the end binding_make() empties masks with fewer cores than the rank has threads, finds
 * the node with all processors of a mask, and counts the ranks with equal masks. Parts of a machine
 * are arrays of masks: nodes or sockets with allowed processors. Cores are named by their first
 * processor.
 */
#include "agent/bind/binding.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory.h"

#define WHY_UNKNOWN   "the NUMA node of a GPU is not known"
#define WHY_ELSEWHERE "no processor of that NUMA node is allowed here"
#define WHY_FEW       "there are fewer cores than threads of OMP_NUM_THREADS"

/* Masks, none of them empty. The caller frees @v. */
struct parts {
        struct cpu_mask *v;
        size_t n;
};

static void push_part(struct parts *p, const struct cpu_mask *cpus)
{
        if (cpu_mask_is_empty(cpus))
                return;
        p->v = xrealloc(p->v, p->n + 1, sizeof(*p->v));
        p->v[p->n++] = *cpus;
}

/* Lists the nodes; without any, all processors are one part. */
static struct parts list_node_parts(const struct cpu_topology *t)
{
        struct parts p = { 0 };

        for (size_t i = 0; i < t->n_nodes; i++)
                push_part(&p, &t->nodes[i].cpus);
        if (!p.n)
                push_part(&p, &t->allowed);
        return p;
}

/* A socket is named by its first processor, so each processor that names itself begins a socket.
 * Needs cpu_topology_read_sockets(). */
static struct parts list_socket_parts(const struct cpu_topology *t)
{
        struct parts p = { 0 };

        for (uint32_t first = cpu_mask_next(&t->allowed, 0); first != CPU_NONE;
             first = cpu_mask_next(&t->allowed, first + 1)) {
                struct cpu_mask cpus = { { 0 } };

                if (t->socket[first] != first)
                        continue;
                for (uint32_t cpu = first; cpu != CPU_NONE;
                     cpu = cpu_mask_next(&t->allowed, cpu + 1))
                        if (t->socket[cpu] == first)
                                cpu_mask_add(&cpus, cpu);
                push_part(&p, &cpus);
        }
        return p;
}

/* Returns the only node of the rank's GPUs, else NUMA_UNKNOWN. */
static int32_t find_single_node(const struct binding_rank *r)
{
        for (uint32_t i = 1; i < r->n_gpus; i++)
                if (r->gpu_nodes[i] != r->gpu_nodes[0])
                        return NUMA_UNKNOWN;
        return r->n_gpus ? r->gpu_nodes[0] : NUMA_UNKNOWN;
}

/* Sets the processors at the rank's GPUs. */
static void set_near_gpus(struct binding *to, const struct binding_rank *r,
                          const struct cpu_topology *t)
{
        for (uint32_t i = 0; i < r->n_gpus; i++) {
                const struct topology_node *node = cpu_topology_find_node(t, r->gpu_nodes[i]);

                if (!node) {
                        memset(&to->cpus, 0, sizeof(to->cpus));
                        to->why = WHY_UNKNOWN;
                        return;
                }
                cpu_mask_or(&to->cpus, &node->cpus);
        }
        if (cpu_mask_is_empty(&to->cpus))
                to->why = WHY_ELSEWHERE;
}

static void bind_auto(struct binding *to, const struct binding_rank *ranks, uint32_t n,
                      const struct cpu_topology *t)
{
        for (uint32_t i = 0; i < n; i++) {
                if (!ranks[i].n_gpus || t->n_nodes < 2)
                        continue;
                if (find_single_node(&ranks[i]) == NUMA_UNKNOWN) {
                        to[i].why = "its GPUs are not of one known NUMA node";
                        continue;
                }
                set_near_gpus(&to[i], &ranks[i], t);
                /* A cpuset may leave a single node: the rank has no choice then. */
                if (cpu_mask_is_equal(&to[i].cpus, &t->allowed))
                        memset(&to[i].cpus, 0, sizeof(to[i].cpus));
        }
}

/* Adds to @cpus all allowed processors of the same sockets. */
static void widen_to_sockets(struct cpu_mask *cpus, const struct cpu_topology *t)
{
        /* The sockets are collected first: @cpus must not grow while its processors are visited. */
        struct cpu_mask sockets = { { 0 } };

        for (uint32_t cpu = cpu_mask_next(cpus, 0); cpu != CPU_NONE;
             cpu = cpu_mask_next(cpus, cpu + 1))
                cpu_mask_add(&sockets, t->socket[cpu]);
        for (uint32_t cpu = cpu_mask_next(&t->allowed, 0); cpu != CPU_NONE;
             cpu = cpu_mask_next(&t->allowed, cpu + 1))
                if (cpu_mask_has(&sockets, t->socket[cpu]))
                        cpu_mask_add(cpus, cpu);
}

/* Binds to nodes, or to sockets. */
static void bind_parts(struct binding *to, const struct binding_rank *ranks, uint32_t n,
                       const struct cpu_topology *t, bool sockets)
{
        struct parts parts = sockets ? list_socket_parts(t) : list_node_parts(t);

        for (uint32_t i = 0; i < n; i++) {
                /* Ranks without GPUs are divided as blocks: neighbours in rank order share a
                 * node. */
                if (!ranks[i].n_gpus) {
                        if (parts.n)
                                to[i].cpus = parts.v[(size_t)i * parts.n / n];
                        continue;
                }
                set_near_gpus(&to[i], &ranks[i], t);
                if (sockets)
                        widen_to_sockets(&to[i].cpus, t);
        }
        free(parts.v);
}

/* Returns the first processors of the cores with any of @cpus, node by node, and the number.
 */
static uint16_t *list_cores(const struct cpu_topology *t, const struct cpu_mask *cpus,
                            uint32_t *ret_n)
{
        uint16_t *cores = xcalloc(cpu_mask_count(cpus), sizeof(*cores));
        struct parts parts = list_node_parts(t);
        struct cpu_mask seen = { { 0 } };

        *ret_n = 0;
        push_part(&parts, &t->allowed); /* processors of no node */
        for (size_t i = 0; i < parts.n; i++)
                for (uint32_t cpu = cpu_mask_next(&parts.v[i], 0); cpu != CPU_NONE;
                     cpu = cpu_mask_next(&parts.v[i], cpu + 1)) {
                        if (!cpu_mask_has(cpus, cpu) || cpu_mask_has(&seen, t->core[cpu]))
                                continue;
                        cpu_mask_add(&seen, t->core[cpu]);
                        cores[(*ret_n)++] = t->core[cpu];
                }
        free(parts.v);
        return cores;
}

/* Adds the allowed processors of some cores. */
static void add_cores(struct cpu_mask *to, const struct cpu_topology *t, const uint16_t *cores,
                      uint32_t n)
{
        for (uint32_t cpu = cpu_mask_next(&t->allowed, 0); cpu != CPU_NONE;
             cpu = cpu_mask_next(&t->allowed, cpu + 1))
                for (uint32_t i = 0; i < n; i++)
                        if (t->core[cpu] == cores[i])
                                cpu_mask_add(to, cpu);
}

/* Gives each rank @want cores, or more if the user has set more threads. Cores near the rank
 * come first; without enough of them any free cores of the machine serve. @taken grows with
 * each rank. */
static void bind_cores(struct binding *to, const struct binding_rank *ranks, uint32_t n,
                       const struct cpu_topology *t, uint32_t want, struct cpu_mask *taken)
{
        struct parts parts = list_node_parts(t);

        for (uint32_t i = 0; i < n; i++) {
                uint32_t need = MAX(want, ranks[i].threads), found;
                struct binding near = { .why = NULL };
                struct cpu_mask all = t->allowed;
                uint16_t *cores;

                if (ranks[i].n_gpus)
                        set_near_gpus(&near, &ranks[i], t);
                else if (parts.n)
                        near.cpus = parts.v[(size_t)i * parts.n / n];
                cpu_mask_without(&near.cpus, taken);
                cpu_mask_without(&all, taken);
                cores = list_cores(t, &near.cpus, &found);
                if (found < need) {
                        free(cores);
                        cores = list_cores(t, &all, &found);
                }
                if (found >= need)
                        add_cores(&to[i].cpus, t, cores, need);
                else
                        to[i].why = "there are fewer cores than core:N and OMP_NUM_THREADS want";
                cpu_mask_or(taken, &to[i].cpus);
                free(cores);
        }
        free(parts.v);
}

/* Divides the cores of @part between the ranks with the number @part in @of. */
static void divide_part(struct binding *to, const struct binding_rank *ranks, uint32_t n,
                        const struct cpu_topology *t, const struct cpu_mask *cpus, const size_t *of,
                        size_t part)
{
        uint32_t members = 0, threads = 1, k = 0, n_cores;
        uint16_t *cores = list_cores(t, cpus, &n_cores);

        for (uint32_t i = 0; i < n; i++) {
                if (of[i] != part)
                        continue;
                members++;
                threads = MAX(threads, ranks[i].threads);
        }
        for (uint32_t i = 0; i < n; i++) {
                /* The borders are rounded down from k * cores / members, so shares differ by one
                 * core at most, and all cores are given out. */
                uint32_t first = members ? (uint32_t)((uint64_t)k * n_cores / members) : 0;

                if (of[i] != part)
                        continue;
                k++;
                /* The smallest share decides for all members: equal ranks get no unequal
                 * treatment. */
                if (n_cores / members < threads)
                        to[i].why =
                                n_cores < members ? "there are fewer cores than ranks" : WHY_FEW;
                else
                        add_cores(&to[i].cpus, t, cores + first,
                                  (uint32_t)((uint64_t)k * n_cores / members) - first);
        }
        free(cores);
}

/* Each rank belongs to a part: the node of its GPUs, or without GPUs the node of its block. */
static void bind_exclusive(struct binding *to, const struct binding_rank *ranks, uint32_t n,
                           const struct cpu_topology *t)
{
        struct parts parts = list_node_parts(t);
        size_t *of = xcalloc(n, sizeof(*of));
        bool whole = false;

        for (uint32_t i = 0; i < n && !whole; i++) {
                const struct topology_node *node;

                of[i] = (size_t)i * parts.n / n;
                if (!ranks[i].n_gpus)
                        continue;
                /* Empty nodes are no parts, so the part is found by the mask of the node. A rank
                 * without a part turns the whole machine into one part. */
                node = cpu_topology_find_node(t, find_single_node(&ranks[i]));
                of[i] = 0;
                while (node && of[i] < parts.n && !cpu_mask_is_equal(&parts.v[of[i]], &node->cpus))
                        of[i]++;
                whole = !node || of[i] == parts.n;
        }
        if (whole) {
                memset(of, 0, n * sizeof(*of));
                divide_part(to, ranks, n, t, &t->allowed, of, 0);
        }
        for (size_t part = 0; part < parts.n && !whole; part++)
                divide_part(to, ranks, n, t, &parts.v[part], of, part);
        free(parts.v);
        free(of);
}

static void bind_list(struct binding *to, uint32_t n, const struct cpu_topology *t,
                      const struct bind_policy *p)
{
        for (uint32_t i = 0; i < n; i++) {
                to[i].cpus = p->masks[i % p->n_masks];
                cpu_mask_and(&to[i].cpus, &t->allowed);
                if (cpu_mask_is_empty(&to[i].cpus))
                        to[i].why = "none of the processors of list: is allowed here";
        }
}

/* Returns the node with all processors of the mask. */
static int32_t find_memory(const struct cpu_topology *t, const struct cpu_mask *cpus)
{
        for (size_t i = 0; i < t->n_nodes && t->n_nodes > 1; i++) {
                struct cpu_mask rest = *cpus;

                cpu_mask_without(&rest, &t->nodes[i].cpus);
                if (cpu_mask_is_empty(&rest))
                        return t->nodes[i].id;
        }
        return NUMA_UNKNOWN;
}

/* Ranks with equal masks share the processors, so each gets an equal number of threads, at least
 * one. @all has the masks of all ranks. */
static void finish_binding(struct binding *all, uint32_t i, uint32_t n,
                           const struct cpu_topology *t)
{
        struct binding *b = &all[i];
        uint32_t sharing = 0;

        if (cpu_mask_is_empty(&b->cpus))
                return;
        b->node = find_memory(t, &b->cpus);
        for (uint32_t k = 0; k < n; k++)
                sharing += cpu_mask_is_equal(&all[k].cpus, &b->cpus);
        b->threads = MAX(cpu_mask_count(&b->cpus) / sharing, 1U);
}

void binding_make(struct binding *to, const struct binding_rank *ranks, uint32_t n,
                  const struct cpu_topology *t, const struct bind_policy *p, struct cpu_mask *taken)
{
        for (uint32_t i = 0; i < n; i++)
                to[i] = (struct binding){ .node = NUMA_UNKNOWN };
        switch (p->kind) {
        case BIND_NO:
                return;
        case BIND_AUTO:
                bind_auto(to, ranks, n, t);
                break;
        case BIND_NUMA:
        case BIND_SOCKET:
                bind_parts(to, ranks, n, t, p->kind == BIND_SOCKET);
                break;
        case BIND_CORES:
                bind_cores(to, ranks, n, t, p->cores, taken);
                break;
        case BIND_EXCLUSIVE:
                bind_exclusive(to, ranks, n, t);
                break;
        case BIND_LIST:
                bind_list(to, n, t, p);
                break;
        }
        /* A mask of list: is the user's own, and is kept also with more threads than cores. */
        for (uint32_t i = 0; i < n && p->kind != BIND_LIST; i++)
                if (!cpu_mask_is_empty(&to[i].cpus) &&
                    cpu_topology_count_cores(t, &to[i].cpus) < ranks[i].threads) {
                        memset(&to[i].cpus, 0, sizeof(to[i].cpus));
                        to[i].why = WHY_FEW;
                }
        for (uint32_t i = 0; i < n; i++)
                finish_binding(to, i, n, t);
}
