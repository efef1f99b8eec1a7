/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two numbers of each node are compared between all nodes: the median of the ranks' own parts of
 * the steps, and, when the ranks wait for each other, the median of the delays behind the median
 * rank. Without waits a delay in one step stays for all later steps, and means nothing. A node is
 * slow when the distance from the median node is larger than chance allows (by the median of all
 * distances), and larger than LEAST of a step.
 */
#include "head/record/slow_node.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "head/record/step_times.h"

enum {
        NODES_LEAST = 4,  /* a median of fewer says nothing of one */
        STEPS_LEAST = 20, /* of a node */
        SIGMAS = 7,       /* beyond these a distance is no chance */
};

#define LEAST    0.04
#define MAD_UNIT 1.4826 /* standard deviations in a median of distances, of normal noise */

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

/* Sorts @v; @n is at least 1. */
static double median_of(double *v, size_t n)
{
        qsort(v, n, sizeof(*v), compare_doubles);
        return v[n / 2];
}

/* --- steps ------------------------------------------------------------------------------------ */

/* By step, then by time: the ranks of a step lie together, the middle one is the median. */
static int compare_steps(const void *a, const void *b)
{
        const struct timed_step *x = a, *y = b;

        if (x->step != y->step)
                return x->step < y->step ? -1 : 1;
        return (x->us > y->us) - (x->us < y->us);
}

/* By node, rank and step. */
static int compare_by_rank(const void *a, const void *b)
{
        const struct timed_step *x = a, *y = b;

        if (x->node != y->node)
                return x->node < y->node ? -1 : 1;
        if (x->rank != y->rank)
                return x->rank < y->rank ? -1 : 1;
        return (x->step > y->step) - (x->step < y->step);
}

/* Sorts the steps, and finds the delay of each. Returns the median time from a step to the next. */
static double find_delays(struct step_list *l, double *room)
{
        int64_t before = -1;
        size_t n_room = 0;

        qsort(l->v, l->n, sizeof(*l->v), compare_steps);
        for (size_t i = 0, end; i < l->n; i = end) {
                int64_t median;

                for (end = i; end < l->n && l->v[end].step == l->v[i].step; end++)
                        ;
                median = l->v[i + (end - i) / 2].us;
                for (size_t k = i; k < end; k++)
                        l->v[k].delay_us = (double)(l->v[k].us - median);
                /* Steps that no rank told leave a gap. */
                if (i && l->v[i - 1].step + 1 == l->v[i].step)
                        room[n_room++] = (double)(median - before);
                before = median;
        }
        return n_room ? median_of(room, n_room) : 0;
}

/* Whether the ranks wait for each other: then a long step is followed by a seemingly short step,
 * and the changes of the delay are correlated by -1/2, else by 0. @l is sorted by rank. */
static bool waits_for_others(const struct step_list *l)
{
        double before = 0, product = 0, square = 0;

        for (size_t i = 1; i < l->n; i++) {
                const struct timed_step *a = &l->v[i - 1], *b = &l->v[i];
                bool follows = a->rank == b->rank && a->step + 1 == b->step;
                double change = follows ? b->delay_us - a->delay_us : 0;

                product += before * change;
                square += change * change;
                before = change;
        }
        /* Half of the way between both correlations. */
        return product < -square / 4;
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* What is compared of a node. */
struct node_pace {
        size_t steps;
        double own_us, delay_us; /* medians; own_us NAN = not known */
};

/* Fills in the median delay and the median own time of each node. The list is sorted by node. */
static void find_paces(struct step_list *l, struct node_pace *nodes, double *room)
{
        for (size_t i = 0, end; i < l->n; i = end) {
                struct node_pace *p;
                size_t n = 0;

                for (end = i; end < l->n && l->v[end].node == l->v[i].node; end++)
                        room[end - i] = l->v[end].delay_us;
                if (l->v[i].node < 0)
                        continue; /* a damaged record places these ranks on no node */
                p = &nodes[l->v[i].node];
                p->steps = end - i;
                p->delay_us = median_of(room, end - i);
                for (size_t k = i; k < end; k++)
                        if (l->v[k].own_us >= 0)
                                room[n++] = l->v[k].own_us;
                p->own_us = n ? median_of(room, n) : NAN;
        }
}

/* Offers the node furthest above the others, if the distance is no chance. Shares are of @step_us;
 * @get reads the number of a node. */
static void offer_slowest(const struct node_pace *nodes, size_t n_nodes, double step_us,
                          double (*get)(const struct node_pace *p), double *room,
                          struct slow_node *best)
{
        double median, spread, most = 0;
        size_t n = 0, slowest = 0;

        for (size_t i = 0; i < n_nodes; i++)
                if (nodes[i].steps >= STEPS_LEAST && !isnan(get(&nodes[i])))
                        room[n++] = get(&nodes[i]);
        if (n < NODES_LEAST || step_us <= 0)
                return;
        median = median_of(room, n);
        for (size_t i = 0; i < n; i++)
                room[i] = fabs(room[i] - median);
        spread = median_of(room, n) * MAD_UNIT;
        for (size_t i = 0; i < n_nodes; i++)
                if (nodes[i].steps >= STEPS_LEAST && get(&nodes[i]) - median > most) {
                        most = get(&nodes[i]) - median;
                        slowest = i;
                }
        /* The larger of both shares, own part or delay, is kept. */
        if (most > SIGMAS * spread && most > LEAST * step_us &&
            most * 100 / step_us > best->percent)
                *best = (struct slow_node){ (int)slowest, most * 100 / step_us,
                                            nodes[slowest].steps };
}

static double get_own(const struct node_pace *p)
{
        return p->own_us;
}

static double get_delay(const struct node_pace *p)
{
        return p->delay_us;
}

bool slow_node_find(const struct trace_log *log, const struct trace_places *places,
                    struct slow_node *ret)
{
        struct node_pace *nodes = xcalloc(places->n_nodes, sizeof(*nodes));
        double *room = xcalloc(log->n + places->n_nodes, sizeof(*room)), step_us;
        struct step_list l = { 0 };

        *ret = (struct slow_node){ .node = -1 };
        step_list_collect(log, places, &l);
        if (l.n) {
                step_us = find_delays(&l, room);
                qsort(l.v, l.n, sizeof(*l.v), compare_by_rank);
                find_paces(&l, nodes, room);
                offer_slowest(nodes, places->n_nodes, step_us, get_own, room, ret);
                if (waits_for_others(&l))
                        offer_slowest(nodes, places->n_nodes, step_us, get_delay, room, ret);
        }
        step_list_finish(&l);
        free(room);
        free(nodes);
        return ret->node >= 0;
}
