/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both lines are made alike from a pair_judgement. A bad node warns alone. Both ends of a slow link
 * warn with one text, so the table has a single row. The rest passes with the median of the pairs.
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

const char *pair_metric_name(enum pair_metric m)
{
        return names[m];
}

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

/* One line, while it is judged. */
struct pair_line {
        struct check_report *r;
        struct check_line *line;
        enum pair_metric metric;
        const struct pair_judgement *j;
        const size_t *nodes;
        size_t n_good; /* places that have pairs, and none of them judged */
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

/* The value shown is the median over all pairs of the node, not over the slow ones. */
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

/* Names the first of @n slow links of a place. No number of others is told: pairs, not nodes, have
 * the usual value. */
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
        size_t n;

        pair_format(own, sizeof(own), l->metric, p->value);
        k.value = p->pairs ? own : "";
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
                k = (struct check_judgement){ CHECK_PASS, own, "", 0, "", "" };
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

/* Writes "901 Mbit/s to 948 Mbit/s" over the nodes that pass: no two nodes have equal values, so
 * the table would tell only that the values differ. */
static void summarize_line(const struct pair_line *l)
{
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
                l->line->summary = xasprintf("%s to %s", from, to);
}

void pair_judge(struct check_report *r, const struct pair_book *book, const size_t *nodes, size_t n)
{
        for (int m = 0; m < PAIR_METRICS; m++) {
                struct pair_judgement j = { 0 };
                struct pair_line l = {
                        .r = r, .metric = (enum pair_metric)m, .j = &j, .nodes = nodes
                };

                l.line = check_report_add(r, names[m]);
                set_all_not_run(r, l.line,
                                /* Alone, a node would not be measured with --pairs either. The
                                 * reason is that of net.peers, so all have one line. */
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
