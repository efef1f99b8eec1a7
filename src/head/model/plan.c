/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three passes, each linear in nodes plus ranks. survey_node() finds the slots of every node, the
 * device of each slot, and so the capacity in ranks; contradictions become faults. count_ranks()
 * decides how many ranks each node gets, if there are no faults. assign_ranks() hands out ranks and
 * devices in the order of --map, and finish_node() sums up what a node's ranks use.
 */
#include "head/model/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/model/plan_faults.h"
#include "head/model/role_list.h"
#include "head/term/diag.h"

/* The capacity of a node, between the passes. */
struct node_capacity {
        const struct host *host;
        const struct plan_inventory *inv;
        int usable;             /* devices that the node may use; 0 also when unknown */
        int per_rank;           /* slots of a rank */
        struct intlist devices; /* by slot, of the slots left by the filters; may repeat */
        bool assign;            /* ranks get devices */
        bool guessed;           /* the number of slots is unknown */
        int ranks;              /* without --oversubscribe */
        int most;               /* with it */
        int take;               /* assigned */
};

/* The state of one call; nothing but the plan outlives it. */
struct planner {
        struct plan *plan;
        const struct hosts *hosts;
        const struct plan_options *o;
        struct node_capacity *capacity; /* by host */
        struct intlist *taken;          /* by host, plan_build_beside(); NULL = nothing is */
        size_t *order;                  /* hosts in the order of their places */
        struct plan_faults faults;
        bool oversubscribe; /* more ranks than GPUs are allowed */
};

/* ---- survey ---- */

static void add_fault(struct planner *p, const struct node_capacity *c, enum plan_fault_kind kind,
                      int want, int have)
{
        plan_faults_add(&p->faults, kind, want, have, (size_t)(c - p->capacity));
}

/* Whether the number of devices is known: from HELLO, or from a list of the user. */
static bool knows_devices(const struct plan_inventory *inv)
{
        return inv->known || inv->chosen;
}

/* Returns the index of the device at place @i among those of the node. */
static int device_at(const struct plan_inventory *inv, int i)
{
        return inv->gpu_index ? inv->gpu_index[i] : i;
}

/* Whether -n and --ppn may ask for more ranks than slots. --local alone gives no number of slots.
 */
static bool allows_more_ranks(const struct planner *p)
{
        return p->o->oversubscribe || (p->o->local && !p->hosts->v[0].slots);
}

/* Checks gpus= and slots= against the devices that the node has. */
static void check_devices(struct planner *p, struct node_capacity *c)
{
        const struct host *host = c->host;

        if (!knows_devices(c->inv))
                return;
        for (size_t k = 0; host->has_gpus && k < host->gpus.n; k++) {
                int at = 0;

                while (at < c->inv->gpus && device_at(c->inv, at) != host->gpus.v[k])
                        at++;
                if (at == c->inv->gpus) {
                        add_fault(p, c, FAULT_NO_SUCH_GPU, host->gpus.v[k], c->inv->gpus);
                        return;
                }
        }
        if (c->assign && !p->oversubscribe && !p->o->per_node && p->o->ppn != PLAN_PPN_GPU &&
            host->slots > c->usable)
                add_fault(p, c, FAULT_SLOTS_ABOVE_GPUS, host->slots, c->usable);
}

/* Counts the slots before the filters. A slot is a device, or a rank where no devices are assigned.
 */
static int count_slots(struct planner *p, struct node_capacity *c)
{
        int given = c->host->slots;

        if (p->o->per_node)
                return c->usable ? c->usable : MAX(given, 1);
        if (p->o->ppn == PLAN_PPN_CPU && c->inv->known)
                return MAX(c->inv->cores, 1);
        if (p->o->ppn == PLAN_PPN_GPU && (knows_devices(c->inv) || c->host->has_gpus)) {
                if (!c->usable)
                        add_fault(p, c, FAULT_PPN_NO_GPU, 0, 0);
                return c->usable;
        }
        if (given) /* --local N counts ranks */
                return p->o->local ? given * c->per_rank : given;
        if (c->usable)
                return c->usable;
        /* Neither a number nor a device is known: as many slots as --ppn asks for, with --local one
         * for each core, else a single rank. */
        c->guessed = true;
        if (p->o->ppn > 0)
                return p->o->ppn * c->per_rank;
        return p->o->local && c->inv->known ? MAX(c->inv->cores, 1) * c->per_rank : c->per_rank;
}

/* Whether all slots of a filter exist; the first that does not becomes a fault. */
static bool all_below(struct planner *p, struct node_capacity *c, const struct intlist *slots,
                      int limit)
{
        for (size_t k = 0; k < slots->n; k++) {
                if (slots->v[k] >= limit) {
                        add_fault(p, c, FAULT_NO_SUCH_SLOT, slots->v[k], limit);
                        return false;
                }
        }
        return true;
}

/* Whether ranks need neither GPUs nor free slots: a role that gives other roles a hand. */
static bool is_helper(const struct planner *p)
{
        return p->taken && !p->o->gpus_per_rank;
}

/* Lists the device of every slot left by the filters and by earlier plans; unknown devices have the
 * number of the slot. */
static void list_devices(struct planner *p, struct node_capacity *c, int slots)
{
        const struct host *host = c->host;

        if (host->filtered &&
            (!all_below(p, c, &host->keep, slots) || !all_below(p, c, &host->drop, slots)))
                return;
        for (int k = 0; k < slots; k++) {
                /* More slots than devices: ranks share devices, from the first on. */
                int at = c->usable ? k % c->usable : k;

                if ((host->keep.n && !intlist_has(&host->keep, k)) || intlist_has(&host->drop, k))
                        continue;
                if (host->has_gpus)
                        at = host->gpus.v[at];
                else if (knows_devices(c->inv) && c->usable)
                        at = device_at(c->inv, at);
                if (p->taken && !is_helper(p) && intlist_has(&p->taken[c - p->capacity], at))
                        slots += c->guessed; /* the node may have more */
                else
                        intlist_add(&c->devices, at);
        }
}

/* Counts the ranks that fit the slots, without and with --oversubscribe. Slots left over are a
 * fault of the warning kind, unless --ppn has chosen the number. */
static void count_capacity(struct planner *p, struct node_capacity *c)
{
        int slots = (int)c->devices.n, max = c->host->max_slots;

        if (p->o->per_node) {
                c->per_rank = MAX(slots, 1);
                c->ranks = c->most = slots ? 1 : 0;
                return;
        }
        c->ranks = slots / c->per_rank;
        /* A rank that asks for more devices than are there takes all of them. */
        if (!c->ranks && slots && p->oversubscribe)
                c->ranks = 1;
        else if (slots % c->per_rank && p->o->ppn <= 0 && !c->guessed)
                add_fault(p, c, FAULT_GPUS_LEFT, c->per_rank, slots % c->per_rank);
        if (p->o->ppn > 0) {
                if (p->o->ppn > c->ranks && !allows_more_ranks(p))
                        add_fault(p, c, FAULT_PPN, p->o->ppn, c->ranks);
                c->ranks = slots ? p->o->ppn : 0;
        }
        c->most = max ? MAX(max / c->per_rank, 1) : INT_MAX;
        c->ranks = MIN(c->ranks, c->most);
}

/* Fills in the capacity of node @i; contradictions become faults. A spare node keeps its slots in
 * the plan, for a later move, but gets no ranks. @inv: NULL = nothing is known. */
static void survey_node(struct planner *p, size_t i, const struct plan_inventory *inv)
{
        static const struct plan_inventory unknown = { .known = false };
        const struct host *host = &p->hosts->v[i];
        struct node_capacity *c = &p->capacity[i];

        c->host = host;
        c->inv = inv ? &inv[i] : &unknown;
        c->usable = host->has_gpus ? (int)host->gpus.n : knows_devices(c->inv) ? c->inv->gpus : 0;
        c->assign = p->o->gpus_per_rank > 0 && p->o->ppn != PLAN_PPN_CPU &&
                    (c->usable || !knows_devices(c->inv));
        if (p->o->per_node)
                c->assign = c->usable > 0 && !is_helper(p);
        c->per_rank = c->assign ? p->o->gpus_per_rank : 1;
        check_devices(p, c);
        list_devices(p, c, count_slots(p, c));
        count_capacity(p, c);
        p->plan->nodes[i] = (struct plan_node){ .host = i, .node_rank = -1, .slots = c->ranks };
        if (host->spare)
                c->ranks = c->most = 0;
}

/* ---- count ---- */

/* Orders hosts by the turn that a topology of the site gives. */
static int by_turn(const void *a, const void *b, void *hosts)
{
        const struct host *v = hosts;
        size_t x = v[*(const size_t *)a].site->turn, y = v[*(const size_t *)b].site->turn;

        return (x > y) - (x < y);
}

/* Returns the hosts in their turns, or as they are listed if not all have one. The hosts may be a
 * part of the job's. malloc'ed. */
static size_t *list_turns(const struct hosts *h)
{
        size_t *turns = xcalloc(h->n, sizeof(*turns)), n = 0;

        for (size_t i = 0; i < h->n; i++) {
                n += h->v[i].site && h->v[i].site->turn;
                turns[i] = i;
        }
        if (n && n == h->n)
                qsort_r(turns, n, sizeof(*turns), by_turn, h->v);
        return turns;
}

size_t *plan_order_hosts(const struct hosts *h)
{
        size_t *order = xcalloc(h->n, sizeof(*order)), *turns = list_turns(h), n = 0;

        for (size_t at = 0; at < h->n; at++) {
                size_t i = turns[at];

                if (h->v[i].place)
                        continue;
                order[n++] = i;
                for (size_t k = 0; k < h->n && h->v[i].spare; k++)
                        if (h->v[k].place == i + 1)
                                order[n++] = k;
        }
        free(turns);
        return order;
}

/* Gives ranks to nodes in turns, host by host or rank by rank, until @left is 0 or all nodes are
 * full; @beyond: up to max_slots=. Each turn drops full nodes, so the work is linear. Returns the
 * ranks left over. */
static long fill_nodes(struct planner *p, long left, bool beyond)
{
        size_t n = p->hosts->n, active = 0;
        size_t *node = xcalloc(n, sizeof(*node));

        for (size_t i = 0; i < n; i++)
                if (p->capacity[p->order[i]].ranks > 0)
                        node[active++] = p->order[i];
        while (left > 0 && active) {
                size_t still = 0;

                for (size_t k = 0; k < active && left > 0; k++) {
                        struct node_capacity *capacity = &p->capacity[node[k]];
                        int most = beyond ? capacity->most : capacity->ranks;
                        int turn = p->o->map == PLAN_MAP_SLOT ? capacity->ranks : 1;
                        int take = (int)MIN((long)MIN(turn, most - capacity->take), left);

                        capacity->take += take;
                        left -= take;
                        if (capacity->take < most)
                                node[still++] = node[k];
                }
                active = left > 0 ? still : 0;
        }
        free(node);
        return left;
}

/* Decides world_size and the ranks of each node. 0, or -EINVAL with the error in @d. */
static int count_ranks(struct planner *p, struct diags *d)
{
        size_t guessed = 0, slots = 0, chosen = 0;
        struct diag *fault;
        long capacity = 0, left;

        for (size_t i = 0; i < p->hosts->n; i++) {
                capacity += p->capacity[i].ranks;
                chosen += p->capacity[i].inv->chosen;
                guessed += p->capacity[i].guessed && !p->capacity[i].inv->known;
                if (!p->hosts->v[i].spare)
                        slots = MAX(slots, p->capacity[i].devices.n);
        }
        if (!capacity) {
                plan_fault_no_capacity(p->plan, p->hosts, p->o, (int)slots, d);
                return -EINVAL;
        }
        left = p->o->np ? p->o->np : capacity;
        if (p->o->per_node && left > capacity) {
                diag_help(diag_add(d, HN_MORE_THAN_NODES, EX_UNAVAILABLE,
                                   "-n %ld with --per-node: %s %ld node%s", left,
                                   capacity == 1 ? "there is" : "there are", capacity,
                                   capacity == 1 ? "" : "s"),
                          "-n N uses the first N nodes; the program itself says how many ranks it "
                          "starts on each");
                return -EINVAL;
        }
        if (left > PLAN_MAX_RANKS) {
                diag_add(d, HN_WORLD_TOO_LARGE, EX_UNAVAILABLE,
                         "%ld ranks, at most %d can be started", left, PLAN_MAX_RANKS);
                return -EINVAL;
        }
        p->plan->world_size = (int)left;
        /* Slots are used up everywhere before any node gets more. */
        left = fill_nodes(p, left, false);
        if (left && allows_more_ranks(p))
                left = fill_nodes(p, left, true);
        if (!left)
                return 0;
        fault = plan_fault_too_many_ranks(p->plan, p->hosts, p->o, capacity, guessed, d);
        if (chosen)
                diag_note(fault, "CUDA_VISIBLE_DEVICES names the GPUs of %zu node%s", chosen,
                          chosen == 1 ? "" : "s");
        return -EINVAL;
}

/* ---- assign ---- */

/* Assigns the node's next rank, with @gpus_per_rank neighbouring devices, from the start again
 * behind the last. */
static void assign_rank(struct planner *p, size_t i, int rank)
{
        const struct node_capacity *c = &p->capacity[i];
        struct plan_node *node = &p->plan->nodes[i];
        struct plan_rank *r = &p->plan->ranks[rank];
        size_t per_rank = c->assign ? (size_t)c->per_rank : 0, n = c->devices.n;

        r->rank = rank;
        r->local_rank = node->n_ranks++;
        r->node = (int)i;
        intlist_add(&node->ranks, rank);
        /* A rank may hold fewer devices than it asks for, where the node has fewer. */
        for (size_t k = 0; k < MIN(per_rank, n); k++)
                intlist_add(&r->gpus, c->devices.v[((size_t)r->local_rank * per_rank + k) % n]);
        for (size_t k = 0; p->taken && !is_helper(p) && k < MIN((size_t)c->per_rank, n); k++)
                intlist_add(&p->taken[i],
                            c->devices.v[((size_t)r->local_rank * (size_t)c->per_rank + k) % n]);
}

/* Assigns the ranks of each node: all at once, or a rank per turn. */
static void assign_ranks(struct planner *p)
{
        size_t active = 0, *node = xcalloc(p->hosts->n, sizeof(*node));
        int rank = 0;

        for (size_t i = 0; i < p->hosts->n; i++)
                if (p->capacity[p->order[i]].take)
                        node[active++] = p->order[i];
        while (active) {
                size_t still = 0;

                for (size_t k = 0; k < active; k++) {
                        size_t i = node[k];
                        int left = p->capacity[i].take - p->plan->nodes[i].n_ranks;
                        int turn = p->o->map == PLAN_MAP_SLOT ? left : 1;

                        for (int n = 0; n < turn; n++)
                                assign_rank(p, i, rank++);
                        if (turn < left)
                                node[still++] = i;
                }
                active = still;
        }
        free(node);
}

/* Whether @gpus need not be set: the list is exactly the node's devices in order; of unknown
 * devices, or a list of the user, nothing was selected. */
static bool is_everything(const struct node_capacity *c, const struct intlist *gpus)
{
        int same = 0;

        /* A list of the user is handed on as it is. */
        if (c->inv->chosen)
                return !c->host->has_gpus && !c->host->keep.n && !c->host->drop.n;
        if (!c->inv->known)
                return !c->host->has_gpus && !c->host->filtered;
        if (gpus->n != (size_t)c->inv->gpus)
                return false;
        while (same < c->inv->gpus && gpus->v[same] == device_at(c->inv, same))
                same++;
        return same == c->inv->gpus;
}

/* Numbers the node and collects the devices of all its ranks. With no devices assigned, gpus= still
 * limits the visible devices. */
static void finish_node(struct planner *p, size_t i)
{
        const struct host *host = &p->hosts->v[i];
        struct plan_node *node = &p->plan->nodes[i];

        node->node_rank = p->plan->num_nodes++;
        node->first_rank = node->ranks.v[0];
        for (size_t k = 0; k < node->ranks.n; k++) {
                const struct intlist *gpus = &p->plan->ranks[node->ranks.v[k]].gpus;

                for (size_t g = 0; g < gpus->n; g++)
                        if (!intlist_has(&node->gpus, gpus->v[g]))
                                intlist_add(&node->gpus, gpus->v[g]);
        }
        for (size_t k = 0; !node->gpus.n && k < host->gpus.n; k++)
                intlist_add(&node->gpus, host->gpus.v[k]);
        node->gpus_are_subset = node->gpus.n && !is_everything(&p->capacity[i], &node->gpus);
}

/* ---- worlds ---- */

void plan_count_worlds(struct plan *p)
{
        int *node_rank = xcalloc(p->n_nodes, sizeof(*node_rank)); /* 1 + node rank; 0 = none yet */

        for (size_t i = 0; i < p->n_worlds; i++)
                p->worlds[i] = (struct plan_world){ .first = -1 };
        for (int i = 0; i < p->world_size; i++) {
                struct plan_rank *r = &p->ranks[i];
                struct plan_world *w = &p->worlds[r->world];

                if (w->first < 0) {
                        w->first = i;
                        memset(node_rank, 0, p->n_nodes * sizeof(*node_rank));
                }
                w->size++;
                if (!node_rank[r->node])
                        node_rank[r->node] = ++w->num_nodes;
                r->node_rank = node_rank[r->node] - 1;
        }
        free(node_rank);
}

/* ---- */

static int build_plan(struct planner *p, const struct plan_inventory *inv, struct diags *d)
{
        for (size_t i = 0; i < p->hosts->n; i++)
                survey_node(p, i, inv);
        if (!p->faults.errors && count_ranks(p, d) < 0)
                return -EINVAL;
        plan_faults_report(&p->faults, p->hosts, inv, p->o, d);
        /* Warnings are reported with a plan, too. */
        if (p->faults.errors)
                return -EINVAL;

        p->plan->ranks = xcalloc((size_t)p->plan->world_size, sizeof(*p->plan->ranks));
        assign_ranks(p);
        for (size_t i = 0; i < p->hosts->n; i++)
                if (p->plan->nodes[p->order[i]].n_ranks)
                        finish_node(p, p->order[i]);
        p->plan->worlds = xcalloc(1, sizeof(*p->plan->worlds));
        p->plan->n_worlds = 1;
        plan_count_worlds(p->plan);
        return 0;
}

int plan_build(struct plan *plan, const struct hosts *hosts, const struct plan_inventory *inv,
               const struct plan_options *o, struct diags *diags)
{
        return plan_build_beside(plan, hosts, inv, o, NULL, diags);
}

int plan_build_beside(struct plan *plan, const struct hosts *hosts,
                      const struct plan_inventory *inv, const struct plan_options *o,
                      struct intlist *taken, struct diags *diags)
{
        struct planner p = { .plan = plan, .hosts = hosts, .o = o, .taken = taken };
        int r;

        p.oversubscribe = o->oversubscribe || o->local;
        p.capacity = xcalloc(hosts->n, sizeof(*p.capacity));
        p.order = plan_order_hosts(hosts);
        plan->nodes = xcalloc(hosts->n, sizeof(*plan->nodes));
        plan->n_nodes = hosts->n;
        r = build_plan(&p, inv, diags);
        for (size_t i = 0; i < hosts->n; i++)
                intlist_finish(&p.capacity[i].devices);
        free(p.capacity);
        free(p.order);
        plan_faults_finish(&p.faults);
        if (r < 0)
                plan_finish(plan);
        return r;
}

bool plan_share(struct plan *p, const int *counts, size_t n)
{
        int rest = p->world_size, rank = 0;

        for (size_t i = 0; i < n; i++)
                rest -= counts[i];
        for (size_t i = 0; i < n; i++) {
                int count = counts[i] ? counts[i] : rest;

                if (count <= 0)
                        return false;
                for (int end = rank + count; rank < end && rank < p->world_size; rank++)
                        p->ranks[rank].program = (int)i;
        }
        return true;
}

bool plan_move(struct plan *p, size_t from, size_t to)
{
        struct plan_node *a = &p->nodes[from], *b = &p->nodes[to], was = *b;

        /* Ranks above the slots need none: they are those of helpers, or of --oversubscribe. */
        if (b->n_ranks || b->slots < MIN(a->n_ranks, a->slots))
                return false;
        /* The plan's entries change places, but for host and slots, which belong to the machine. */
        *b = *a;
        b->host = was.host;
        b->slots = was.slots;
        was.slots = a->slots;
        was.host = a->host;
        *a = was;
        for (size_t i = 0; i < b->ranks.n; i++)
                p->ranks[b->ranks.v[i]].node = (int)to;
        return true;
}

void plan_leave_out(struct plan *p, size_t node)
{
        struct plan_node *gone = &p->nodes[node];
        int *new_rank = xcalloc((size_t)p->world_size, sizeof(*new_rank)), left = 0;

        for (int r = 0; r < p->world_size; r++) {
                if (p->ranks[r].node == (int)node) {
                        intlist_finish(&p->ranks[r].gpus);
                        continue;
                }
                /* Ranks move down only, so the table is closed up in place. */
                new_rank[r] = left;
                p->ranks[left] = p->ranks[r];
                p->ranks[left].rank = left;
                left++;
        }
        memset(&p->ranks[left], 0, (size_t)(p->world_size - left) * sizeof(*p->ranks));
        for (size_t i = 0; i < p->n_nodes; i++) {
                struct plan_node *n = &p->nodes[i];

                if (i == node || !n->n_ranks)
                        continue;
                n->node_rank -= n->node_rank > gone->node_rank;
                for (size_t k = 0; k < n->ranks.n; k++)
                        n->ranks.v[k] = new_rank[n->ranks.v[k]];
                n->first_rank = n->ranks.v[0];
        }
        intlist_finish(&gone->ranks);
        intlist_finish(&gone->gpus);
        *gone = (struct plan_node){ .host = gone->host, .node_rank = -1, .slots = gone->slots };
        p->num_nodes--;
        p->world_size = left;
        plan_count_worlds(p);
        free(new_rank);
}

const char *plan_rank_name(const struct plan *p, int rank, char to[PLAN_RANK_NAME_MAX])
{
        /* A rank beyond the plan, as from a record, is named by its number. */
        const struct plan_rank *r = p && rank >= 0 && rank < p->world_size ? &p->ranks[rank] : NULL;

        return r && r->role ? role_rank_name(r->role, plan_find_replica(p, (size_t)r->world),
                                             rank - p->worlds[r->world].first, to)
                            : role_rank_name(NULL, -1, rank, to);
}

uint32_t plan_count_replicas(const struct plan *p, size_t world)
{
        int program = p->ranks[p->worlds[world].first].program;
        uint32_t n = 0;

        for (size_t i = 0; i < world; i++)
                n += p->ranks[p->worlds[i].first].program == program;
        return n;
}

int plan_find_replica(const struct plan *p, size_t world)
{
        int program = p->ranks[p->worlds[world].first].program;

        for (size_t i = 0; i < p->n_worlds; i++)
                if (i != world && p->ranks[p->worlds[i].first].program == program)
                        return (int)plan_count_replicas(p, world);
        return -1;
}

char *plan_list_world_roles(const struct plan *p, size_t world)
{
        const struct plan_world *w = &p->worlds[world];
        struct buf list = BUF_INIT;

        for (int i = 0, first = 0; i < w->size; i++) {
                const struct plan_rank *r = &p->ranks[w->first + i];

                if (!r->role)
                        return NULL; /* no rank has one */
                if (i + 1 < w->size && r[1].program == r->program)
                        continue;
                buf_printf(&list, "%s%s:%d", first ? "," : "", r->role, first);
                if (i > first)
                        buf_printf(&list, "-%d", i);
                first = i + 1;
        }
        return buf_steal(&list);
}

bool plan_sets_visible(const struct plan *p, size_t node, uint32_t world)
{
        const struct plan_node *n = &p->nodes[node];
        bool has_gpus = false, limits = n->gpus_are_subset;

        for (size_t i = 0; i < n->ranks.n; i++) {
                const struct plan_rank *r = &p->ranks[n->ranks.v[i]];

                has_gpus |= r->gpus.n > 0;
                /* Devices of another world, or a role without devices, must stay hidden. */
                limits |= r->world != (int)world || (r->role && !r->gpus.n);
        }
        return has_gpus && limits;
}

bool plan_has_world(const struct plan *p, size_t node, uint32_t world)
{
        const struct plan_node *n = &p->nodes[node];

        if (p->n_worlds == 1)
                return n->n_ranks > 0;
        for (size_t i = 0; i < n->ranks.n; i++)
                if (p->ranks[n->ranks.v[i]].world == (int)world)
                        return true;
        return false;
}

void plan_finish(struct plan *p)
{
        for (size_t i = 0; i < p->n_nodes; i++) {
                intlist_finish(&p->nodes[i].ranks);
                intlist_finish(&p->nodes[i].gpus);
        }
        for (int i = 0; p->ranks && i < p->world_size; i++)
                intlist_finish(&p->ranks[i].gpus);
        free(p->nodes);
        free(p->ranks);
        free(p->worlds);
        *p = (struct plan)PLAN_INIT;
}
