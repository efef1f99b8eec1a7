/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both lines are made alike from a pair_judgement. A bad node warns alone, and fails where NCCL
 * does. Both ends of a slow link warn with the same text, so the table has a single row. The rest
 * passes with the median of the pairs.
 *
 * Each line begins as not run on all nodes; judge_place() then replaces the result of each node
 * measured (check_report_set()). Places count within the measured nodes; l->nodes has the node of
 * each place.
 */
#include "head/check/pair_judge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/memory.h"

static const char *const names[] = {
        [PAIR_BANDWIDTH] = "net.bandwidth", [PAIR_LATENCY] = "net.latency"
};
static const char *const helps[] = {
        [PAIR_BANDWIDTH] =
                "ethtool shows speed and errors of the interface: a cable, a port of the "
                "switch, or other traffic; leave the node out with --exclude",
        [PAIR_LATENCY] = "a busy processor, a power-saving state or a long way through the network "
                         "delays packets; leave the node out with --exclude",
};

static const char nccl_help[] =
        "run two ranks on the two nodes with NCCL_DEBUG=INFO: NCCL tells what it tries; "
        "leave the node out with --exclude";

void pair_format(char *to, size_t size, enum pair_metric m, double value)
{
        double mbit = value * 8 / 1e6, us = value * 1e6;

        if (m == PAIR_BANDWIDTH)
                snprintf(to, size,
                         mbit < 10     ? "%.1f Mbit/s"
                         : mbit < 1000 ? "%.0f Mbit/s"
                                       : "%.1f Gbit/s",
                         mbit < 1000 ? mbit : mbit / 1000);
        else
                snprintf(to, size, us < 1000 ? "%.0f us" : "%.1f ms", us < 1000 ? us : us / 1000);
}

/* A line, being judged. */
struct pair_line {
        struct check_report *r;
        struct check_line *line;
        enum pair_metric metric;
        const struct pair_book *book;
        const struct pair_judgement *j;
        const size_t *nodes;
        size_t n_good; /* places that have pairs and are not bad */
        char usual[32];
};

/* Returns the first slow link of a place, lent from the book, and how many there are; NULL =
 * none. */
static const struct pair_edge *find_link(const struct pair_line *l, size_t place, size_t *ret_n)
{
        const struct pair_edge *first = NULL;

        *ret_n = 0;
        for (size_t i = 0; i < l->j->n_links; i++) {
                const struct pair_edge *e = l->j->links[i];

                if (e->a != place && e->b != place)
                        continue;
                first = first ? first : e;
                ++*ret_n;
        }
        return first;
}

/* --- where NCCL fails ------------------------------------------------------------------------- */

/* Returns the first pair of a place with which NCCL fails, lent, and how many there are; NULL =
 * none. Always NULL for the latency. */
static const struct pair_edge *find_nccl_failure(const struct pair_line *l, size_t place,
                                                 size_t *ret_n)
{
        size_t n;
        const struct pair_edge *e = pair_book_edges(l->book, &n), *first = NULL;

        *ret_n = 0;
        for (size_t i = 0; i < n && l->metric == PAIR_BANDWIDTH; i++) {
                if ((e[i].a != place && e[i].b != place) || !pair_edge_failure(&e[i]))
                        continue;
                first = first ? first : &e[i];
                ++*ret_n;
        }
        return first;
}

/* Fails a node: NCCL fails with @n of all tried peers. */
static void judge_failed_node(const struct pair_line *l, size_t place, const struct pair_edge *e,
                              size_t n)
{
        const struct pair_place *p = &l->j->places[place];
        const char *host = l->r->nodes[l->nodes[place]].host, *why = pair_edge_failure(e);
        CLEANUP(free_textp)
        char *peers = p->pairs == 1   ? xstrdup("its only peer")
                      : n == p->pairs ? xasprintf("each of %zu peers", n)
                                      : xasprintf("%zu of %zu peers", n, p->pairs);
        CLEANUP(free_textp) char *value = xasprintf("NCCL fails with %s: %s", peers, why);
        CLEANUP(free_textp)
        char *cause = xasprintf("NCCL fails between %s and %s: %s", host, peers, why);

        check_report_set(l->r, l->line, l->nodes[place],
                         &(struct check_judgement){ CHECK_FAIL, value, "", 0, cause, nccl_help });
}

static void judge_failed_link(const struct pair_line *l, size_t place, const struct pair_edge *e)
{
        const char *a = l->r->nodes[l->nodes[e->a]].host, *b = l->r->nodes[l->nodes[e->b]].host;
        CLEANUP(free_textp)
        char *value = xasprintf("NCCL fails between %s and %s: %s", a, b, pair_edge_failure(e));
        CLEANUP(free_textp)
        char *cause = xasprintf("NCCL fails between %s and %s, not with their other peers: %s", a,
                                b, pair_edge_failure(e));

        check_report_set(l->r, l->line, l->nodes[place],
                         &(struct check_judgement){ CHECK_FAIL, value, "", 0, cause, nccl_help });
}

/* Fails the node if NCCL fails there. False: NCCL works, or another node is at fault. If NCCL fails
 * between all nodes, no node is bad, and all nodes fail. */
static bool judge_failure(const struct pair_line *l, size_t place)
{
        const struct pair_place *p = &l->j->places[place];
        size_t n, n_links;
        const struct pair_edge *e = find_nccl_failure(l, place, &n), *link;

        if (!e)
                return false;
        link = find_link(l, place, &n_links);
        if (p->bad || !l->j->usual)
                judge_failed_node(l, place, e, n);
        else if (link && pair_edge_failure(link))
                judge_failed_link(l, place, link);
        else
                return false;
        return true;
}

/* --- slow nodes and links --------------------------------------------------------------------- */

/* Shows the median over all pairs of the node, fast pairs included. */
static void judge_slow_node(const struct pair_line *l, size_t place)
{
        const struct pair_place *p = &l->j->places[place];
        const char *host = l->r->nodes[l->nodes[place]].host;
        char own[32];
        CLEANUP(free_textp) char *value = NULL;
        CLEANUP(free_textp) char *cause = NULL;

        pair_format(own, sizeof(own), l->metric, p->value);
        value = p->slow == p->pairs ? xasprintf("%s with each of %zu peers", own, p->pairs)
                                    : xasprintf("%s with %zu of %zu peers", own, p->slow, p->pairs);
        cause = xasprintf("%s is slow with %s (%zu of %zu): %s, %zu other%s ha%s %s", host,
                          p->slow == p->pairs ? "each peer" : "most peers", p->slow, p->pairs, own,
                          l->n_good, l->n_good == 1 ? "" : "s", l->n_good == 1 ? "s" : "ve",
                          l->usual);
        check_report_set(l->r, l->line, l->nodes[place],
                         &(struct check_judgement){ CHECK_WARN, value, l->usual, l->n_good, cause,
                                                    helps[l->metric] });
}

/* Names the first of @n slow links of a place. Unlike judge_slow_node() gives no number of others:
 * pairs, not nodes, have the usual value. */
static void judge_slow_link(const struct pair_line *l, size_t place, const struct pair_edge *e,
                            size_t n)
{
        const char *a = l->r->nodes[l->nodes[e->a]].host, *b = l->r->nodes[l->nodes[e->b]].host;
        char own[32];
        CLEANUP(free_textp) char *more = n > 1 ? xasprintf(", and %zu more", n - 1) : xstrdup("");
        CLEANUP(free_textp) char *value = NULL;
        CLEANUP(free_textp) char *cause = NULL;

        pair_format(own, sizeof(own), l->metric, e->value[l->metric]);
        value = xasprintf("link %s - %s has %s%s", a, b, own, more);
        cause = xasprintf("the link %s - %s is slow, not its nodes: %s, others have %s%s", a, b,
                          own, l->usual, more);
        check_report_set(l->r, l->line, l->nodes[place],
                         &(struct check_judgement){ CHECK_WARN, value, l->usual, 0, cause,
                                                    helps[l->metric] });
}

/* Sets the result of a place: bad, end of a slow link, not measured, or good. */
static void judge_place(const struct pair_line *l, size_t place)
{
        const struct pair_place *p = &l->j->places[place];
        struct check_judgement k = { .level = CHECK_NOT_RUN, .expected = "" };
        const struct pair_edge *e;
        char own[32];
        CLEANUP(free_textp) char *cause = NULL;
        CLEANUP(free_textp) char *value = NULL;
        const char *over = pair_book_over(l->book);
        size_t n;

        pair_format(own, sizeof(own), l->metric, p->value);
        k.value = p->pairs ? own : "";
        if (judge_failure(l, place))
                return;
        if (p->bad) {
                judge_slow_node(l, place);
                return;
        }
        e = find_link(l, place, &n);
        if (e) {
                judge_slow_link(l, place, e, n);
                return;
        }
        if (!p->pairs) {
                k.cause = "no peer could be measured";
                /* Neither node nor link can be slow: their only pair is the usual value itself. */
        } else if (l->j->n == 2) {
                cause = xasprintf("a single pair has nothing to compare with; it has %s", own);
                k.cause = cause;
        } else {
                value = over ? xasprintf("%s over %s", own, over) : xstrdup(own);
                k = (struct check_judgement){ CHECK_PASS, value, "", 0, "", "" };
        }
        check_report_set(l->r, l->line, l->nodes[place], &k);
}

static void set_all_not_run(const struct check_report *r, struct check_line *l, const char *why)
{
        for (size_t i = 0; i < r->n_nodes; i++)
                check_report_set(
                        r, l, i,
                        &(struct check_judgement){
                                .level = CHECK_NOT_RUN,
                                .value = "",
                                .expected = "",
                                .cause = r->nodes[i].lost ? "the node was not reached" : why });
}

/* Writes "901 Mbit/s to 948 Mbit/s" over the nodes with a pass: no two nodes have equal values, so
 * the table would only say that the values differ. */
static void summarize_line(const struct pair_line *l)
{
        const char *over = pair_book_over(l->book);
        double least = 0, most = 0;
        char from[32], to[32];
        bool any = false;

        for (size_t i = 0; i < l->j->n; i++) {
                double v = l->j->places[i].value;

                if (l->line->of[l->nodes[i]].level != CHECK_PASS)
                        continue;
                least = any ? MIN(least, v) : v;
                most = any ? MAX(most, v) : v;
                any = true;
        }
        pair_format(from, sizeof(from), l->metric, least);
        pair_format(to, sizeof(to), l->metric, most);
        if (any)
                l->line->summary =
                        xasprintf("%s to %s%s%s", from, to, over ? " over " : "", over ? over : "");
}

void pair_judge(struct check_report *r, const struct pair_book *book, const size_t *nodes, size_t n)
{
        for (int m = 0; m < PAIR_METRICS; m++) {
                struct pair_judgement j = { 0 };
                struct pair_line l = {
                        .r = r, .metric = (enum pair_metric)m, .book = book, .j = &j, .nodes = nodes
                };

                l.line = check_report_add(r, names[m]);
                set_all_not_run(r, l.line,
                                /* A single node would not be measured with --pairs either. The same
                                 * reason as for net.peers, so all have one line. */
                                book || r->n_nodes == 1 ? "there is no other node to reach"
                                                        : "measured with --pairs only");
                if (!book || n < 2)
                        continue;
                pair_book_judge(book, l.metric, &j);
                pair_format(l.usual, sizeof(l.usual), l.metric, j.usual);
                for (size_t i = 0; i < n; i++)
                        l.n_good += j.places[i].pairs && !j.places[i].bad;
                for (size_t i = 0; i < n; i++)
                        judge_place(&l, i);
                summarize_line(&l);
                pair_judgement_finish(&j);
        }
}
