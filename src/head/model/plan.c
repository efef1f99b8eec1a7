/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three passes, each linear in nodes plus ranks. survey_node() finds the slots of every node, the
 * device of each slot, and so the capacity in ranks; contradictions become faults. count_ranks()
 * decides how many ranks each node gets, if there are no faults. The assign_*() functions hand out
 * ranks and devices in the order of --map, and finish_node() sums up what a node's ranks use.
 */
#include "head/model/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "head/model/plan_faults.h"
#include "head/term/diag.h"

enum { HN_WORLD_TOO_LARGE = 306 };

/* The capacity of a node, between the passes. */
struct node_capacity {
        struct intlist devices; /* by slot, of the slots left by the filters; may repeat */
        bool assign;            /* ranks get devices */
        bool guessed;           /* the number of slots is unknown */
        int ranks;              /* without --oversubscribe */
        int most;               /* with it */
        int take;               /* assigned */
};

struct planner {
        struct plan *plan;
        const struct hosts *hosts;
        const struct plan_inventory *inv; /* NULL = nothing is known */
        const struct plan_options *o;
        struct node_capacity *capacity; /* by host */
        struct plan_faults faults;
        bool oversubscribe; /* more ranks than slots are allowed */
};

/* ---- survey ---- */

static const struct plan_inventory *node_inventory(const struct planner *p, size_t i)
{
        static const struct plan_inventory unknown = { .known = false };

        return p->inv ? &p->inv[i] : &unknown;
}

static int device_at(const struct plan_inventory *inv, int i)
{
        return inv->gpu_index ? inv->gpu_index[i] : i;
}

static bool has_device(const struct plan_inventory *inv, int device)
{
        for (int i = 0; i < inv->gpus; i++)
                if (device_at(inv, i) == device)
                        return true;
        return false;
}

/* Counts the devices that the node may use; 0 also when unknown. */
static int count_devices(const struct host *host, const struct plan_inventory *inv)
{
        return host->has_gpus ? (int)host->gpus.n : inv->known ? inv->gpus : 0;
}

/* Guesses the slots of a node without slots= and known devices. */
static int guess_slots(const struct planner *p, const struct plan_inventory *inv, int per_rank)
{
        if (p->o->ppn > 0)
                return p->o->ppn * per_rank;
        if (p->o->local && inv->known)
                return MAX(inv->cores, 1) * per_rank;
        return per_rank;
}

/* Counts the slots before the filters. A slot is a device, or a rank where no devices are assigned.
 */
static int count_slots(struct planner *p, size_t i, int devices, int per_rank)
{
        const struct plan_inventory *inv = node_inventory(p, i);
        const struct host *host = &p->hosts->v[i];

        if (p->o->ppn == PLAN_PPN_CPU && inv->known)
                return MAX(inv->cores, 1);
        if (p->o->ppn == PLAN_PPN_GPU && (inv->known || host->has_gpus)) {
                if (!devices)
                        plan_faults_add(&p->faults, FAULT_PPN_NO_GPU, 0, 0, i);
                return devices;
        }
        if (host->slots) /* --local N counts ranks */
                return p->o->local ? host->slots * per_rank : host->slots;
        if (devices)
                return devices;
        p->capacity[i].guessed = true;
        return guess_slots(p, inv, per_rank);
}

static void check_devices(struct planner *p, size_t i, int devices)
{
        const struct plan_inventory *inv = node_inventory(p, i);
        const struct host *host = &p->hosts->v[i];

        if (!inv->known)
                return;
        for (size_t k = 0; host->has_gpus && k < host->gpus.n; k++) {
                if (!has_device(inv, host->gpus.v[k])) {
                        plan_faults_add(&p->faults, FAULT_NO_SUCH_GPU, host->gpus.v[k], inv->gpus,
                                        i);
                        return;
                }
        }
        if (p->capacity[i].assign && !p->oversubscribe && p->o->ppn != PLAN_PPN_GPU &&
            host->slots > devices)
                plan_faults_add(&p->faults, FAULT_SLOTS_ABOVE_GPUS, host->slots, devices, i);
}

static bool all_below(struct planner *p, size_t i, const struct intlist *slots, int limit)
{
        for (size_t k = 0; k < slots->n; k++) {
                if (slots->v[k] >= limit) {
                        plan_faults_add(&p->faults, FAULT_NO_SUCH_SLOT, slots->v[k], limit, i);
                        return false;
                }
        }
        return true;
}

/* Lists the device of every slot left by the filters; unknown devices have the number of the slot.
 */
static void list_devices(struct planner *p, size_t i, int slots, int devices)
{
        const struct plan_inventory *inv = node_inventory(p, i);
        const struct host *host = &p->hosts->v[i];

        if (host->filtered &&
            (!all_below(p, i, &host->keep, slots) || !all_below(p, i, &host->drop, slots)))
                return;
        for (int k = 0; k < slots; k++) {
                int at = devices ? k % devices : k;

                if ((host->keep.n && !intlist_has(&host->keep, k)) || intlist_has(&host->drop, k))
                        continue;
                intlist_add(&p->capacity[i].devices, host->has_gpus          ? host->gpus.v[at]
                                                     : inv->known && devices ? device_at(inv, at)
                                                                             : at);
        }
}

static void count_capacity(struct planner *p, size_t i, int per_rank)
{
        const struct host *host = &p->hosts->v[i];
        struct node_capacity *capacity = &p->capacity[i];
        int slots = (int)capacity->devices.n;

        capacity->ranks = slots / per_rank;
        if (!capacity->ranks && slots && p->oversubscribe)
                capacity->ranks = 1;
        else if (slots % per_rank && p->o->ppn <= 0 && !capacity->guessed)
                plan_faults_add(&p->faults, FAULT_GPUS_LEFT, per_rank, slots % per_rank, i);
        if (p->o->ppn > 0) {
                if (p->o->ppn > capacity->ranks && !p->oversubscribe)
                        plan_faults_add(&p->faults, FAULT_PPN, p->o->ppn, capacity->ranks, i);
                capacity->ranks = slots ? p->o->ppn : 0;
        }
        capacity->most = host->max_slots ? MAX(host->max_slots / per_rank, 1) : INT_MAX;
        capacity->ranks = MIN(capacity->ranks, capacity->most);
}

static void survey_node(struct planner *p, size_t i)
{
        const struct plan_inventory *inv = node_inventory(p, i);
        const struct host *host = &p->hosts->v[i];
        int devices = count_devices(host, inv), per_rank, slots;
        struct node_capacity *capacity = &p->capacity[i];

        capacity->assign = p->o->gpus_per_rank > 0 && p->o->ppn != PLAN_PPN_CPU &&
                           (devices > 0 || !inv->known);
        per_rank = capacity->assign ? p->o->gpus_per_rank : 1;
        check_devices(p, i, devices);
        slots = count_slots(p, i, devices, per_rank);
        list_devices(p, i, slots, devices);
        count_capacity(p, i, per_rank);
        p->plan->nodes[i] =
                (struct plan_node){ .host = i, .node_rank = -1, .slots = capacity->ranks };
        if (host->spare)
                capacity->ranks = capacity->most = 0;
}

/* ---- count ---- */

/* Gives ranks to nodes in turns, host by host or rank by rank, until @left is 0 or all nodes are
 * full. Returns the ranks left over. */
static long fill_nodes(struct planner *p, long left, bool beyond)
{
        size_t n = p->hosts->n, active = 0;
        size_t *node = xcalloc(n, sizeof(*node));

        for (size_t i = 0; i < n; i++)
                if (p->capacity[i].ranks > 0)
                        node[active++] = i;
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

static int count_ranks(struct planner *p, struct diags *d)
{
        size_t guessed = 0, slots = 0;
        long capacity = 0, left;

        for (size_t i = 0; i < p->hosts->n; i++) {
                capacity += p->capacity[i].ranks;
                guessed += p->capacity[i].guessed && !node_inventory(p, i)->known;
                if (!p->hosts->v[i].spare)
                        slots = MAX(slots, p->capacity[i].devices.n);
        }
        if (!capacity) {
                plan_fault_no_capacity(p->plan, p->hosts, p->o, (int)slots, d);
                return -EINVAL;
        }
        left = p->o->np ? p->o->np : capacity;
        if (left > PLAN_MAX_RANKS) {
                diag_add(d, HN_WORLD_TOO_LARGE, EX_UNAVAILABLE,
                         "%ld ranks, at most %d can be started", left, PLAN_MAX_RANKS);
                return -EINVAL;
        }
        p->plan->world_size = (int)left;
        left = fill_nodes(p, left, false);
        if (left && p->oversubscribe)
                left = fill_nodes(p, left, true);
        if (!left)
                return 0;
        plan_fault_too_many_ranks(p->plan, p->hosts, p->o, capacity, guessed, d);
        return -EINVAL;
}

/* ---- assign ---- */

/* Assigns the devices of a node's next rank: @gpus_per_rank neighbours, from the start again behind
 * the last. */
static void assign_devices(const struct planner *p, const struct node_capacity *capacity,
                           struct plan_rank *rank)
{
        size_t per_rank = MIN((size_t)p->o->gpus_per_rank, capacity->devices.n);

        for (size_t k = 0; k < per_rank; k++) {
                size_t slot = (size_t)rank->local_rank * (size_t)p->o->gpus_per_rank + k;

                intlist_add(&rank->gpus, capacity->devices.v[slot % capacity->devices.n]);
        }
}

static void assign_rank(struct planner *p, size_t i, int rank)
{
        struct plan_node *node = &p->plan->nodes[i];
        struct plan_rank *r = &p->plan->ranks[rank];

        r->rank = rank;
        r->local_rank = node->n_ranks++;
        r->node = (int)i;
        intlist_add(&node->ranks, rank);
        if (p->capacity[i].assign)
                assign_devices(p, &p->capacity[i], r);
}

static void assign_by_slot(struct planner *p)
{
        int rank = 0;

        for (size_t i = 0; i < p->hosts->n; i++)
                for (int k = 0; k < p->capacity[i].take; k++)
                        assign_rank(p, i, rank++);
}

static void assign_by_node(struct planner *p)
{
        size_t active = 0, *node = xcalloc(p->hosts->n, sizeof(*node));
        int rank = 0;

        for (size_t i = 0; i < p->hosts->n; i++)
                if (p->capacity[i].take)
                        node[active++] = i;
        while (active) {
                size_t still = 0;

                for (size_t k = 0; k < active; k++) {
                        assign_rank(p, node[k], rank++);
                        if (p->plan->nodes[node[k]].n_ranks < p->capacity[node[k]].take)
                                node[still++] = node[k];
                }
                active = still;
        }
        free(node);
}

/* Whether @gpus are exactly the node's devices in order; if unknown, whether nothing was selected.
 */
static bool is_everything(const struct host *host, const struct plan_inventory *inv,
                          const struct intlist *gpus)
{
        if (!inv->known)
                return !host->has_gpus && !host->filtered;
        if (gpus->n != (size_t)inv->gpus)
                return false;
        for (int i = 0; i < inv->gpus; i++)
                if (gpus->v[i] != device_at(inv, i))
                        return false;
        return true;
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
        node->gpus_are_subset =
                node->gpus.n && !is_everything(host, node_inventory(p, i), &node->gpus);
}

/* ---- */

static int build_plan(struct planner *p, struct diags *d)
{
        for (size_t i = 0; i < p->hosts->n; i++)
                survey_node(p, i);
        if (!p->faults.errors && count_ranks(p, d) < 0)
                return -EINVAL;
        plan_faults_report(&p->faults, p->hosts, p->inv, p->o, d);
        if (p->faults.errors)
                return -EINVAL;

        p->plan->ranks = xcalloc((size_t)p->plan->world_size, sizeof(*p->plan->ranks));
        if (p->o->map == PLAN_MAP_SLOT)
                assign_by_slot(p);
        else
                assign_by_node(p);
        for (size_t i = 0; i < p->hosts->n; i++)
                if (p->plan->nodes[i].n_ranks)
                        finish_node(p, i);
        return 0;
}

int plan_build(struct plan *plan, const struct hosts *hosts, const struct plan_inventory *inv,
               const struct plan_options *o, struct diags *diags)
{
        struct planner p = { .plan = plan, .hosts = hosts, .inv = inv, .o = o };
        int r;

        p.oversubscribe = o->oversubscribe || o->local;
        p.capacity = xcalloc(hosts->n, sizeof(*p.capacity));
        plan->nodes = xcalloc(hosts->n, sizeof(*plan->nodes));
        plan->n_nodes = hosts->n;
        r = build_plan(&p, diags);
        for (size_t i = 0; i < hosts->n; i++)
                intlist_finish(&p.capacity[i].devices);
        free(p.capacity);
        plan_faults_finish(&p.faults);
        if (r < 0)
                plan_finish(plan);
        return r;
}

bool plan_move(struct plan *p, size_t from, size_t to)
{
        struct plan_node *a = &p->nodes[from], *b = &p->nodes[to], was = *b;

        if (b->n_ranks || b->slots < a->n_ranks)
                return false;
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
        *p = (struct plan)PLAN_INIT;
}
