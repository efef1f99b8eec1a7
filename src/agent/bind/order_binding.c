/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_binding_create() collects the arguments of binding_make(): the allowed processors of the
 * agent, the NUMA nodes of GPUs by PCI address, and OMP_NUM_THREADS of the user. Cores and sockets
 * are read from sysfs for the policies with need of them. The process of a rank calls
 * order_binding_enter() before exec; errors come back through a shared mapping.
 */
#include "agent/bind/order_binding.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/log.h"
#include "base/memory.h"

#define SYSFS "/sys"

enum { MEMORY_NODES = 1024 /* of the kernel */ };

/* All arrays are by place in the order, with @n elements. */
struct order_binding {
        struct binding *v;
        struct bind_note *notes; /* shared */
        uint32_t n, *ranks;      /* @ranks: numbers in the job */
        bool by_user, warned;
};

static bool has_gpu_ranks(const struct bind_query *q)
{
        for (uint32_t i = 0; i < q->n_ranks; i++)
                if (q->ranks[i].n_gpus)
                        return true;
        return false;
}

/* Reads OMP_NUM_THREADS of the user; 0 = not set. The first number counts, of the outer threads. */
static uint32_t read_threads(const struct launch_order *l, uint32_t program, const struct strv *env)
{
        const char *own = strv_env_get(&l->programs[program].env, "OMP_NUM_THREADS");
        const char *text = own ? own : strv_env_get(env, "OMP_NUM_THREADS");
        long n = text ? strtol(text, NULL, 10) : 0;

        return n > 0 && n <= CPU_MASK_BITS ? (uint32_t)n : 0;
}

/* Returns the NUMA node of a GPU that the driver tells. */
static int32_t ask_gpu_node(const struct cpu_topology *t, struct binding_node *node, uint32_t gpu)
{
        if (t->n_nodes < 2 || gpu >= GPU_RECORD_GPUS)
                return NUMA_UNKNOWN;
        /* 0xff in all bytes is GPU_RECORD_UNKNOWN for each GPU, so the driver is not asked again.
         */
        if (!node->driver) {
                node->driver = xcalloc(1, sizeof(*node->driver));
                if (!node->ask_driver || !node->ask_driver(node->driver))
                        memset(node->driver, 0xff, sizeof(*node->driver));
        }
        return node->driver->node[gpu] <= INT32_MAX
                       ? cpu_topology_find_near(t, (int32_t)node->driver->node[gpu])
                       : NUMA_UNKNOWN;
}

/* Returns the NUMA nodes of the rank's GPUs; malloc'ed. */
static int32_t *find_gpu_nodes(const struct cpu_topology *t, const struct bind_query_rank *r,
                               struct binding_node *node)
{
        int32_t *nodes = xcalloc(r->n_gpus, sizeof(*nodes));

        for (uint32_t i = 0; i < r->n_gpus; i++) {
                bool known = r->gpus[i] < node->gpus.n;

                nodes[i] = known ? cpu_topology_find_device(t, node->gpus.v[r->gpus[i]])
                                 : NUMA_UNKNOWN;
                if (known && nodes[i] == NUMA_UNKNOWN)
                        nodes[i] = ask_gpu_node(t, node, r->gpus[i]);
        }
        return nodes;
}

/* Whether the user has chosen devices of a program by a variable that renumbers them. */
static bool has_own_devices(const struct launch_order *l, uint32_t program, const struct strv *env)
{
        /* ROCm counts devices behind such a variable, so the indexes of the order would name other
         * GPUs. Its ranks count as ones without GPUs then. */
        static const char *const names[] = { "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                             "GPU_DEVICE_ORDINAL" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strv_env_get(env, names[i]) ||
                    strv_env_get(&l->programs[program].env, names[i]))
                        return true;
        return false;
}

/* Lists the ranks of @q, with those of other worlds, by number in the job. Each world makes the
 * same list, so that all divide the cores alike. */
static const struct bind_query_rank **list_ranks(const struct bind_query *q)
{
        const struct bind_query_rank **v = xcalloc(q->n_ranks + q->n_others, sizeof(*v));
        uint32_t own = 0, other = 0;

        for (uint32_t i = 0; i < q->n_ranks + q->n_others; i++)
                if (other == q->n_others ||
                    (own < q->n_ranks && q->ranks[own].rank < q->others[other].rank))
                        v[i] = &q->ranks[own++];
                else
                        v[i] = &q->others[other++];
        return v;
}

/* Binds the ranks of other worlds, too, and drops their bindings: only the division of the cores
 * between all ranks needs these. */
static void make_bindings(struct order_binding *b, const struct bind_query *q,
                          const struct bind_policy *p, struct binding_node *node,
                          const struct cpu_mask *allowed)
{
        const struct bind_query_rank **asked = list_ranks(q);
        uint32_t n = q->n_ranks + q->n_others, own = 0;
        struct binding_rank *ranks = xcalloc(n, sizeof(*ranks));
        struct binding *all = xcalloc(n, sizeof(*all));
        bool cores = p->kind == BIND_CORES || p->kind == BIND_EXCLUSIVE;
        struct cpu_topology t;

        if (!node->taken)
                node->taken = xcalloc(1, sizeof(*node->taken));
        cpu_topology_read(&t, SYSFS, allowed);
        for (uint32_t i = 0; i < n; i++) {
                ranks[i] = (struct binding_rank){ find_gpu_nodes(&t, asked[i], node),
                                                  asked[i]->n_gpus, asked[i]->threads };
                /* binding_make() compares cores with threads only if more than one thread is
                 * wanted. */
                cores |= ranks[i].threads > 1;
        }
        if (cores)
                cpu_topology_read_cores(&t);
        if (p->kind == BIND_SOCKET)
                cpu_topology_read_sockets(&t);
        binding_make(all, ranks, n, &t, p, node->taken);
        cpu_topology_finish(&t);
        for (uint32_t i = 0; i < n; i++) {
                if (own < q->n_ranks && asked[i] == &q->ranks[own])
                        b->v[own++] = all[i];
                free((void *)ranks[i].gpu_nodes);
        }
        free(ranks);
        free(all);
        free(asked);
}

/* Reasons are constants, so equal reasons are equal pointers. */
static bool are_equal_bindings(const struct binding *a, const struct binding *b)
{
        return a->node == b->node && a->why == b->why && cpu_mask_is_equal(&a->cpus, &b->cpus);
}

/* Returns "rank 3" or "ranks 0,1,3": the ranks with the binding of @i; malloc'ed. NULL = @i is not
 * the first. */
static char *name_fellows(const struct order_binding *b, uint32_t i)
{
        CLEANUP(buf_finish) struct buf list = BUF_INIT;
        uint32_t n = 0;

        for (uint32_t k = 0; k < b->n; k++) {
                if (!are_equal_bindings(&b->v[k], &b->v[i]))
                        continue;
                if (k < i)
                        return NULL;
                buf_printf(&list, "%s%u", n++ ? "," : "", b->ranks[k]);
        }
        return xasprintf("%s %.*s", n > 1 ? "ranks" : "rank", (int)MIN(buf_len(&list), 200),
                         (const char *)buf_data(&list));
}

/* Logs each binding with its ranks, and the reasons why ranks are not bound. */
static void log_bindings(const struct order_binding *b)
{
        for (uint32_t i = 0; i < b->n; i++) {
                const struct binding *own = &b->v[i];
                CLEANUP(free_textp) char *cpus = cpu_mask_format(&own->cpus);
                CLEANUP(free_textp) char *ranks = NULL;
                const char *verb;

                if (!*cpus && !own->why)
                        continue;
                ranks = name_fellows(b, i);
                if (!ranks)
                        continue;
                verb = ranks[4] == 's' ? "are" : "is";
                if (*cpus && own->node != NUMA_UNKNOWN)
                        log_line(LOG_INFO, "%s: processors %.200s, memory of node %d", ranks, cpus,
                                 (int)own->node);
                else if (*cpus)
                        log_line(LOG_INFO, "%s: processors %.200s", ranks, cpus);
                else if (b->by_user)
                        log_warning(HN_NOT_BOUND, "%s %s not bound: %s", ranks, verb, own->why);
                else
                        log_line(LOG_INFO, "%s %s not bound: %s", ranks, verb, own->why);
        }
}

static bool has_bound_rank(const struct order_binding *b)
{
        for (uint32_t i = 0; i < b->n; i++)
                if (!cpu_mask_is_empty(&b->v[i].cpus))
                        return true;
        return false;
}

/* Returns a rank with its threads and GPUs. The same rank of another world has the same, or the
 * worlds would not divide the cores alike. */
static struct bind_query_rank ask_rank(const struct launch_order *l, const struct strv *env,
                                       uint32_t rank, uint32_t program, uint32_t *gpus,
                                       uint32_t n_gpus)
{
        return (struct bind_query_rank){ rank, read_threads(l, program, env), gpus,
                                         has_own_devices(l, program, env) ? 0 : n_gpus };
}

/* Orders with a rank for each node (per_node) are not bound: such ranks serve the whole node. */
struct bind_query order_binding_ask(const struct launch_order *l, const struct strv *env)
{
        struct bind_query q = { .bind = l->per_node ? NULL : l->bind, .near_nic = l->near_nic };

        if (!q.bind || !l->n_ranks)
                return q;
        q.n_ranks = l->n_ranks;
        q.ranks = xcalloc(q.n_ranks, sizeof(*q.ranks));
        for (uint32_t i = 0; i < q.n_ranks; i++) {
                const struct launch_rank *r = &l->ranks[i];

                q.ranks[i] =
                        ask_rank(l, env, l->world.first + r->rank, r->program, r->gpus, r->n_gpus);
        }
        q.n_others = l->others.n;
        q.others = xcalloc(q.n_others, sizeof(*q.others));
        for (uint32_t i = 0; i < q.n_others; i++) {
                const struct launch_other *r = &l->others.v[i];

                q.others[i] = ask_rank(l, env, r->rank, r->program, r->gpus, r->n_gpus);
        }
        return q;
}

/* Reads the policy; false = no rank is to be bound. */
static bool read_policy(struct bind_policy *p, const struct bind_query *q, bool tells)
{
        struct error err;

        if (!q->n_ranks)
                return false;
        /* The head has parsed the text before, so a failure here comes from a head of another
         * build. */
        if (bind_policy_parse(p, q->bind, &err) < 0) {
                if (tells)
                        log_warning(HN_NOT_BOUND, "ranks are not bound: --bind %s", err.text);
                return false;
        }
        if (p->kind != BIND_NO && (p->kind != BIND_AUTO || has_gpu_ranks(q)))
                return true;
        bind_policy_finish(p);
        return false;
}

/* The bindings stay, without masks, to carry the reason. */
static void refuse_all(struct order_binding *b, const char *why)
{
        for (uint32_t i = 0; i < b->n; i++)
                b->v[i] = (struct binding){ .node = NUMA_UNKNOWN, .why = why };
}

struct order_binding *order_binding_create(const struct bind_query *q, struct binding_node *node,
                                           bool tells)
{
        struct cpu_mask allowed = { { 0 } };
        struct order_binding *b;
        struct bind_policy p;

        if (!read_policy(&p, q, tells))
                return NULL;
        b = xcalloc(1, sizeof(*b));
        b->by_user = p.kind != BIND_AUTO;
        b->n = q->n_ranks;
        b->v = xcalloc(b->n, sizeof(*b->v));
        b->ranks = xcalloc(b->n, sizeof(*b->ranks));
        for (uint32_t i = 0; i < b->n; i++)
                b->ranks[i] = q->ranks[i].rank;
        /* Private memory of the agent would be copied at fork(), and the errors of a rank would be
         * lost. */
        b->notes = mmap(NULL, b->n * sizeof(*b->notes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (b->notes == MAP_FAILED ||
            sched_getaffinity(0, sizeof(allowed), (cpu_set_t *)(void *)&allowed) < 0)
                refuse_all(b, "the node does not tell the allowed processors");
        else
                make_bindings(b, q, &p, node, &allowed);
        bind_policy_finish(&p);
        if (!tells)
                return b;
        log_bindings(b);
        if (has_bound_rank(b))
                return b;
        order_binding_destroy(b);
        return NULL;
}

void order_binding_describe(const struct order_binding *b, const struct near_nics *nics,
                            const struct bind_query *q, struct bound *to)
{
        static const struct binding unbound = { .node = NUMA_UNKNOWN };

        *to = (struct bound){ .n_ranks = q->n_ranks };
        to->ranks = xcalloc(to->n_ranks, sizeof(*to->ranks));
        for (uint32_t i = 0; i < to->n_ranks; i++) {
                const struct binding *of = b ? &b->v[i] : &unbound;
                struct bound_rank *r = &to->ranks[i];

                r->rank = q->ranks[i].rank;
                r->cpus = cpu_mask_format(&of->cpus);
                r->nics = xstrdup(i < nics->ports.n ? nics->ports.v[i] : "");
                r->node = of->node == NUMA_UNKNOWN ? UINT32_MAX : (uint32_t)of->node;
                if (of->why)
                        memcpy(r->why, of->why, strnlen(of->why, sizeof(r->why) - 1));
        }
}

void order_binding_release(const struct order_binding *b, struct binding_node *node)
{
        for (uint32_t i = 0; b && node->taken && i < b->n; i++)
                cpu_mask_without(node->taken, &b->v[i].cpus);
}

void order_binding_destroy(struct order_binding *b)
{
        if (!b)
                return;
        if (b->notes != MAP_FAILED)
                munmap(b->notes, b->n * sizeof(*b->notes));
        free(b->v);
        free(b->ranks);
        free(b);
}

const struct binding *order_binding_get(const struct order_binding *b, uint32_t i,
                                        struct bind_note **ret_note)
{
        if (!b || i >= b->n || cpu_mask_is_empty(&b->v[i].cpus))
                return NULL;
        *ret_note = &b->notes[i];
        return &b->v[i];
}

/* Both calls change only the calling thread, which is the only one before exec, and last across
 * exec. A failure does not stop the rank. */
void order_binding_enter(const struct binding *b, struct bind_note *note)
{
        unsigned long nodes[MEMORY_NODES / (8 * sizeof(unsigned long))] = { 0 };
        size_t bits = 8 * sizeof(unsigned long), node = (size_t)b->node;

        if (sched_setaffinity(0, sizeof(b->cpus), (const cpu_set_t *)(const void *)&b->cpus) < 0)
                note->cpus = errno;
        if (b->node == NUMA_UNKNOWN || node >= MEMORY_NODES)
                return;
        nodes[node / bits] = 1UL << node % bits;
        /* The kernel takes one bit less than said. */
        if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, MEMORY_NODES + 1UL) < 0)
                note->memory = errno;
}

/* One warning is enough: the kernel refuses all ranks of a node alike. */
void order_binding_check(struct order_binding *b)
{
        if (!b || b->warned)
                return;
        for (uint32_t i = 0; i < b->n && !b->warned; i++) {
                uint32_t rank = b->ranks[i];

                b->warned = b->notes[i].cpus || b->notes[i].memory;
                if (b->notes[i].cpus)
                        log_warning(HN_NOT_BOUND,
                                    "rank %u is not bound: the kernel refuses the processors: %s",
                                    rank, strerror(b->notes[i].cpus));
                else if (b->notes[i].memory && b->by_user)
                        log_warning(HN_NOT_BOUND,
                                    "rank %u prefers no memory: the kernel refuses the node: %s",
                                    rank, strerror(b->notes[i].memory));
                else if (b->notes[i].memory) /* containers often forbid the call */
                        log_line(LOG_INFO,
                                 "rank %u prefers no memory: the kernel refuses the node: %s", rank,
                                 strerror(b->notes[i].memory));
        }
}
