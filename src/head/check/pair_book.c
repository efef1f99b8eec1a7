/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A judgement removes nodes one by one. The node with the largest part of slow pairs is bad, if at
 * least two pairs and more than half are slow, counting only pairs without a bad node. The
 * remaining slow pairs are slow links. The usual value is the median over the nodes of the median
 * of each node's pairs. Of two in the middle the better counts, so one bad node among three is
 * found.
 *
 * Suspects of each kind are measured again until each was measured often enough, in AGAIN_ROUNDS at
 * most. Each of these rounds begins with a new judgement: a node or link that has proved good is no
 * suspect any longer.
 */
#include "head/check/pair_book.h"

#include <math.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/memory.h"

enum {
        NODE_TRIES = 3, /* of a suspected node, with proven nodes */
        LINK_TRIES = 4, /* of a suspected link, with the first try */
        AGAIN_ROUNDS = 12,
};

static const double slow_part = 0.5, slow_times = 4, slow_s = 500e-6;

struct pair_book {
        const size_t *nodes; /* rising; lent */
        size_t n;
        char *over;          /* NULL = TCP */
        size_t round, again; /* rounds so far, of both kinds */
        /* Measured pairs in the order of their first result. The array moves when a pair is
         * added. */
        struct pair_edge *edges;
        size_t n_edges;
        unsigned *tries;            /* by place: measured again as a suspect */
        struct pair_edge *expected; /* only .least counts */
        size_t n_expected;
};

struct pair_book *pair_book_create(const size_t *nodes, size_t n, const char *over)
{
        struct pair_book *b = xcalloc(1, sizeof(*b));

        b->nodes = nodes;
        b->n = n;
        b->over = over ? xstrdup(over) : NULL;
        b->tries = xcalloc(MAX(n, (size_t)1), sizeof(*b->tries));
        return b;
}

void pair_book_free(struct pair_book *b)
{
        if (!b)
                return;
        for (size_t i = 0; i < b->n_edges; i++)
                free(b->edges[i].why);
        free(b->over);
        free(b->edges);
        free(b->expected);
        free(b->tries);
        free(b);
}

const char *pair_book_over(const struct pair_book *b)
{
        return b->over;
}

const struct pair_edge *pair_book_edges(const struct pair_book *b, size_t *ret_n)
{
        *ret_n = b->n_edges;
        return b->edges;
}

void pair_book_expect(struct pair_book *b, size_t one, size_t other, double least)
{
        if (one == other)
                return;
        b->expected = xrealloc(b->expected, b->n_expected + 1, sizeof(*b->expected));
        b->expected[b->n_expected++] =
                (struct pair_edge){ .a = MIN(one, other), .b = MAX(one, other), .least = least };
}

/* --- measurements ----------------------------------------------------------------------------- */

/* Returns the place of a node of the list, by bisection. */
static size_t find_pair_place(const struct pair_book *b, size_t node)
{
        size_t from = 0, to = b->n;

        while (to - from > 1) {
                size_t half = (from + to) / 2;

                if (b->nodes[half] <= node)
                        from = half;
                else
                        to = half;
        }
        return from;
}

/* Returns the pair of two places in any order; NULL = there is none. */
static struct pair_edge *find_in_edges(struct pair_edge *v, size_t n, size_t one, size_t other)
{
        for (size_t i = 0; i < n; i++)
                if (v[i].a == MIN(one, other) && v[i].b == MAX(one, other))
                        return &v[i];
        return NULL;
}

static struct pair_edge *find_edge(const struct pair_book *b, size_t one, size_t other)
{
        return find_in_edges(b->edges, b->n_edges, one, other);
}

static struct pair_edge *add_edge(struct pair_book *b, size_t one, size_t other)
{
        const struct pair_edge *expected = find_in_edges(b->expected, b->n_expected, one, other);
        struct pair_edge *e;

        b->edges = xrealloc(b->edges, b->n_edges + 1, sizeof(*b->edges));
        e = &b->edges[b->n_edges++];
        *e = (struct pair_edge){ .a = MIN(one, other),
                                 .b = MAX(one, other),
                                 /* Worse than any result: the first result counts. */
                                 .value = { 0, INFINITY },
                                 .least = expected ? expected->least : 0 };
        return e;
}

void pair_book_take(struct pair_book *b, const struct check_pair *pairs, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct measured_target *m = &pairs[i].result;
                size_t from = find_pair_place(b, pairs[i].from),
                       to = find_pair_place(b, pairs[i].to);
                double rate = (double)MIN(m->sent, m->received), s = m->latency_us / 1e6;
                struct pair_edge *e;

                bool failed = m->error == MEASURE_NCCL_FAILED;

                /* Without a connection no edge is added: net.peers reports the failure. */
                if (!pairs[i].told || (m->error && !failed))
                        continue;
                e = b->again ? find_edge(b, from, to) : NULL; /* at first all pairs are new */
                if (!e)
                        e = add_edge(b, from, to);
                e->tries++;
                if (failed)
                        continue;
                e->value[PAIR_BANDWIDTH] = MAX(e->value[PAIR_BANDWIDTH], rate);
                e->value[PAIR_LATENCY] = MIN(e->value[PAIR_LATENCY], s);
        }
}

void pair_book_explain(struct pair_book *b, const struct check_pair *pair, const char *why)
{
        struct pair_edge *e =
                find_edge(b, find_pair_place(b, pair->from), find_pair_place(b, pair->to));

        if (!e)
                return;
        free(e->why);
        e->why = xstrdup(why);
}

const char *pair_edge_failure(const struct pair_edge *e)
{
        return e->value[PAIR_LATENCY] < INFINITY ? NULL : e->why;
}

/* --- judgements ------------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Sorts the values and returns the median, the better of two in the middle; 0 = no values. */
static double find_better_median(double *v, size_t n, enum pair_metric m)
{
        if (!n)
                return 0;
        qsort(v, n, sizeof(*v), compare_values);
        return v[m == PAIR_BANDWIDTH ? n / 2 : (n - 1) / 2];
}

/* A pair with a failure of NCCL has the bandwidth 0, and no latency. */
static bool has_value(const struct pair_edge *e, enum pair_metric m)
{
        return m == PAIR_BANDWIDTH || e->value[m] < INFINITY;
}

static bool is_slow(const struct pair_edge *e, enum pair_metric m, double usual)
{
        double value = e->value[m];

        return m == PAIR_BANDWIDTH
                       ? value < slow_part * usual
                       : value > slow_times * usual && value > usual + slow_s && value < INFINITY;
}

static void find_medians(const struct pair_book *b, enum pair_metric m, struct pair_judgement *to)
{
        /* Each pair counts for both places. The values of a place stand side by side: end[] is at
         * first where the values of a place begin, and then where the next value goes. */
        double *v = xcalloc(2 * b->n_edges + b->n + 1, sizeof(*v)), *medians = v + 2 * b->n_edges;
        size_t *end = xcalloc(b->n + 1, sizeof(*end)), n_medians = 0; /* of each place's values */

        for (size_t k = 0; k < b->n_edges; k++) {
                to->places[b->edges[k].a].pairs += has_value(&b->edges[k], m);
                to->places[b->edges[k].b].pairs += has_value(&b->edges[k], m);
        }
        for (size_t i = 1; i < b->n; i++)
                end[i] = end[i - 1] + to->places[i - 1].pairs;
        for (size_t k = 0; k < b->n_edges; k++) {
                if (!has_value(&b->edges[k], m))
                        continue;
                v[end[b->edges[k].a]++] = b->edges[k].value[m];
                v[end[b->edges[k].b]++] = b->edges[k].value[m];
        }
        for (size_t i = 0; i < b->n; i++) {
                size_t n = to->places[i].pairs;

                to->places[i].value = find_better_median(v + end[i] - n, n, m);
                if (n)
                        medians[n_medians++] = to->places[i].value;
        }
        to->usual = find_better_median(medians, n_medians, m);
        free(end);
        free(v);
}

/* Returns the place of the node that is slow with the largest part of its peers, leaving out bad
 * nodes; b->n = no node is slow with more than half. */
static size_t find_slowest(const struct pair_book *b, enum pair_metric m,
                           const struct pair_judgement *j)
{
        size_t *slow = xcalloc(b->n, sizeof(*slow)), *all = xcalloc(b->n, sizeof(*all));
        size_t best = b->n;

        for (size_t i = 0; i < b->n_edges; i++) {
                const struct pair_edge *e = &b->edges[i];
                bool is = is_slow(e, m, j->usual);

                if (j->places[e->a].bad || j->places[e->b].bad || !has_value(e, m))
                        continue;
                all[e->a]++;
                all[e->b]++;
                slow[e->a] += is;
                slow[e->b] += is;
        }
        for (size_t i = 0; i < b->n; i++)
                if (slow[i] >= 2 && slow[i] * 2 > all[i] &&
                    /* Parts are compared as slow / all, without a division; on a tie more pairs
                     * count. */
                    (best == b->n || slow[i] * all[best] > slow[best] * all[i] ||
                     (slow[i] * all[best] == slow[best] * all[i] && slow[i] > slow[best])))
                        best = i;
        free(slow);
        free(all);
        return best;
}

void pair_book_judge(const struct pair_book *b, enum pair_metric m, struct pair_judgement *to)
{
        size_t i;

        *to = (struct pair_judgement){ .places = xcalloc(b->n + 1, sizeof(*to->places)),
                                       .n = b->n,
                                       .links = xcalloc(b->n_edges + 1, sizeof(*to->links)) };
        find_medians(b, m, to);
        while ((i = find_slowest(b, m, to)) < b->n)
                to->places[i].bad = true;
        for (i = 0; i < b->n_edges; i++) {
                const struct pair_edge *e = &b->edges[i];

                if (!is_slow(e, m, to->usual))
                        continue;
                /* Pairs with a bad node count for the peer, too. */
                to->places[e->a].slow++;
                to->places[e->b].slow++;
                if (!to->places[e->a].bad && !to->places[e->b].bad)
                        to->links[to->n_links++] = e;
        }
}

void pair_judgement_finish(struct pair_judgement *j)
{
        free(j->places);
        free(j->links);
        *j = (struct pair_judgement){ 0 };
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* A round in which suspects are measured again. */
struct pair_again {
        const struct pair_book *book;
        bool *busy, *suspect; /* by place; a suspect proves nothing */
        struct check_pair *to;
        size_t n;
};

static void add_again(struct pair_again *r, size_t a, size_t b)
{
        r->busy[a] = r->busy[b] = true;
        r->to[r->n++] = (struct check_pair){ .from = r->book->nodes[a], .to = r->book->nodes[b] };
}

/* Pairs a suspect with a proven node, if possible with a node not met before. */
static void pair_suspect(struct pair_again *r, size_t place)
{
        const struct pair_book *b = r->book;
        size_t met = b->n;

        for (size_t k = 1; k < b->n; k++) {
                /* Begins behind the suspect's place, so suspects do not all meet the first proven
                 * node. */
                size_t i = (place + k) % b->n;
                const struct pair_edge *e;

                if (r->busy[i] || r->suspect[i])
                        continue;
                e = find_edge(b, place, i);
                if (!e) {
                        add_again(r, place, i);
                        return;
                }
                if (met == b->n && e->tries < LINK_TRIES)
                        met = i;
        }
        if (met < b->n)
                add_again(r, place, met);
}

/* Marks bad nodes and both ends of slow links. Called for both metrics before any pair is chosen: a
 * node with a bad latency proves no bandwidth. */
static void mark_suspects(struct pair_again *r, const struct pair_judgement *j)
{
        for (size_t i = 0; i < j->n; i++)
                r->suspect[i] |= j->places[i].bad;
        for (size_t i = 0; i < j->n_links; i++)
                r->suspect[j->links[i]->a] = r->suspect[j->links[i]->b] = true;
}

/* Adds links first, which need two certain nodes; a bad node can take any proven node. */
static void pair_suspects(struct pair_again *r, const struct pair_judgement *j)
{
        for (size_t i = 0; i < j->n_links; i++) {
                const struct pair_edge *e = j->links[i];

                if (e->tries < LINK_TRIES && !r->busy[e->a] && !r->busy[e->b])
                        add_again(r, e->a, e->b);
        }
        for (size_t i = 0; i < j->n; i++)
                if (j->places[i].bad && r->book->tries[i] < NODE_TRIES && !r->busy[i]) {
                        size_t n = r->n;

                        pair_suspect(r, i);
                        /* Without a free partner the try does not count. */
                        r->book->tries[i] += r->n > n;
                }
}

/* Adds pairs with less bandwidth than expected. */
static void pair_expected(struct pair_again *r)
{
        const struct pair_book *b = r->book;

        for (size_t i = 0; i < b->n_edges; i++) {
                const struct pair_edge *e = &b->edges[i];

                if (e->value[PAIR_BANDWIDTH] < e->least && e->tries < LINK_TRIES &&
                    !r->busy[e->a] && !r->busy[e->b])
                        add_again(r, e->a, e->b);
        }
}

/* Fills in the pairs of a round of suspects. Returns how many; 0 = no suspect is left to be
 * measured. */
static size_t plan_again(struct pair_book *b, struct check_pair *to)
{
        struct pair_judgement j[PAIR_METRICS];
        struct pair_again r = { .book = b,
                                .busy = xcalloc(b->n, sizeof(bool)),
                                .suspect = xcalloc(b->n, sizeof(bool)),
                                .to = to };

        for (int m = 0; m < PAIR_METRICS; m++) {
                pair_book_judge(b, (enum pair_metric)m, &j[m]);
                mark_suspects(&r, &j[m]);
        }
        for (int m = 0; m < PAIR_METRICS; m++) {
                pair_suspects(&r, &j[m]);
                pair_judgement_finish(&j[m]);
        }
        pair_expected(&r);
        free(r.busy);
        free(r.suspect);
        return r.n;
}

size_t pair_book_next(struct pair_book *b, struct check_pair *to)
{
        if (b->round < pair_rounds(b->n))
                return pair_round(b->nodes, b->n, b->round++, to);
        return b->again++ < AGAIN_ROUNDS && b->n > 1 ? plan_again(b, to) : 0;
}
