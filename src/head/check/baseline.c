/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is {"v": 1, "saved": "2026-11-29T05:00:00Z", "nodes": {HOST: {"bandwidth_mbit",
 * "latency_us", "facts": {NAME: TEXT}}}, "pairs": [{"a", "b", "bandwidth_mbit", "latency_us"}],
 * "over": "tcp" or "nccl"}. A file without "over" has measurements over TCP. Facts have the words
 * of the agents; check_judge.c knows which differences count.
 */
#include "head/check/baseline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/check/pair_judge.h"
#include "head/core/json_text.h"

enum { FILE_MAX = 256 << 20, CHANGES_SHOWN = 3 };

/* A pair or node with less than this part of the earlier bandwidth warns. */
static const double kept_part = 0.7, byte_per_mbit = 1e6 / 8;

static const char help[] = "see what was changed since; --save writes a new baseline if this is as "
                           "it should be";

/* --- writing ---------------------------------------------------------------------------------- */

/* Adds bandwidth and latency to an entry; @rate in bytes per second. Without an entry the values
 * are dropped. */
static void put_measures(json_t *to, double rate, double s)
{
        json_object_set_new(to, "bandwidth_mbit", json_real(rate / byte_per_mbit));
        json_object_set_new(to, "latency_us", json_real(s * 1e6));
}

/* Facts with a problem are left out, so a later check finds nothing to compare. */
static json_t *describe_facts(const struct checked *facts)
{
        json_t *to = json_object();

        for (uint32_t i = 0; facts && i < facts->n_facts; i++)
                if (!*facts->facts[i].problem)
                        json_object_set_new(to, facts->facts[i].name,
                                            json_text(facts->facts[i].value));
        return to;
}

static bool is_nccl(const struct pair_book *book)
{
        return book && pair_book_over(book) && !strcmp(pair_book_over(book), PAIR_NCCL);
}

/* Lists the pairs by the names of hosts: places and numbers of nodes differ from check to check. */
static json_t *describe_pairs(const struct check_report *r, const struct pair_book *book,
                              const size_t *nodes)
{
        json_t *to = json_array();
        size_t n = 0;
        const struct pair_edge *e = book ? pair_book_edges(book, &n) : NULL;

        for (size_t i = 0; i < n; i++) {
                json_t *pair;

                if (pair_edge_failure(&e[i]))
                        continue;
                pair = json_pack("{s:o, s:o}", "a", json_text(r->nodes[nodes[e[i].a]].host), "b",
                                 json_text(r->nodes[nodes[e[i].b]].host));

                put_measures(pair, e[i].value[PAIR_BANDWIDTH], e[i].value[PAIR_LATENCY]);
                json_array_append_new(to, pair);
        }
        return to;
}

json_t *baseline_describe(const struct check_report *r, const struct pair_book *book,
                          const size_t *nodes, size_t n)
{
        struct pair_judgement rate = { 0 }, latency = { 0 };
        json_t *all = json_object();
        time_t now = time(NULL);
        struct tm utc;
        char when[32];

        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
        for (size_t i = 0; i < r->n_nodes; i++)
                if (!r->nodes[i].lost)
                        json_object_set_new(
                                all, r->nodes[i].host,
                                json_pack("{s:o}", "facts", describe_facts(r->nodes[i].facts)));
        if (book) {
                pair_book_judge(book, PAIR_BANDWIDTH, &rate);
                pair_book_judge(book, PAIR_LATENCY, &latency);
        }
        for (size_t i = 0; book && i < n; i++)
                if (latency.places[i].pairs)
                        /* A node lost after its measurement has no entry. */
                        put_measures(json_object_get(all, r->nodes[nodes[i]].host),
                                     rate.places[i].value, latency.places[i].value);
        pair_judgement_finish(&rate);
        pair_judgement_finish(&latency);
        return json_pack("{s:i, s:s, s:o, s:o, s:s}", "v", 1, "saved", when, "nodes", all, "pairs",
                         describe_pairs(r, book, nodes), "over", is_nccl(book) ? "nccl" : "tcp");
}

/* --- comparing -------------------------------------------------------------------------------- */

/* Returns an earlier bandwidth in bytes per second; 0 = unknown. */
static double read_rate(const json_t *j)
{
        const json_t *v = json_object_get(j, "bandwidth_mbit");

        return json_is_number(v) ? json_number_value(v) * byte_per_mbit : 0;
}

/* False: the baseline was measured over TCP and this check over NCCL, or the other way. */
static bool is_comparable(const json_t *base, const struct pair_book *book)
{
        return !strcmp(json_member(base, "over"), "nccl") == is_nccl(book);
}

static bool has_lost_rate(double now, double then)
{
        return now < kept_part * then;
}

void baseline_expect(const json_t *base, struct pair_book *book, const char *const *hosts, size_t n)
{
        /* A map of host names to places. Pairs with a host missing now are left out. */
        json_t *places = json_object(), *pair;
        size_t i;

        for (i = 0; i < n && is_comparable(base, book); i++)
                json_object_set_new(places, hosts[i], json_integer((json_int_t)i));
        json_array_foreach(json_object_get(base, "pairs"), i, pair)
        {
                const json_t *a = json_object_get(places, json_member(pair, "a"));
                const json_t *b = json_object_get(places, json_member(pair, "b"));

                if (a && b)
                        pair_book_expect(book, (size_t)json_integer_value(a),
                                         (size_t)json_integer_value(b),
                                         kept_part * read_rate(pair));
        }
        json_decref(places);
}

/* Changes of a node: the texts of the first CHANGES_SHOWN changes and the number of all; the first
 * fact without a value now, lent, and the number of such facts. */
struct node_changes {
        struct buf text;
        size_t n;
        const char *gone;
        size_t n_gone;
};

PRINTF(2, 3)
static void add_change(struct node_changes *c, const char *fmt, ...)
{
        CLEANUP(free_textp) char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        if (c->n++ < CHANGES_SHOWN)
                buf_printf(&c->text, "%s%s", c->n > 1 ? "; " : "", text);
}

static void add_rate_change(struct node_changes *c, const char *what, double now, double then)
{
        char own[32], earlier[32];

        pair_format(own, sizeof(own), PAIR_BANDWIDTH, now);
        pair_format(earlier, sizeof(earlier), PAIR_BANDWIDTH, then);
        add_change(c, "%s %s, was %s", what, own, earlier);
}

/* Compares the facts of the baseline with the values now. A fact without a value now is no
 * change. */
static void compare_facts(struct node_changes *c, const struct check_node *node, const json_t *then)
{
        json_t *facts = json_object_get(then, "facts"), *earlier;
        const char *name;

        json_object_foreach(facts, name, earlier)
        {
                const char *now = check_fact_value(node, name);
                CLEANUP(free_textp) char *change = NULL;

                if (!json_is_string(earlier) || !check_is_kept(name))
                        continue;
                if (!now) {
                        c->gone = c->gone ? c->gone : name;
                        c->n_gone++;
                        continue;
                }
                change = check_describe_change(name, json_string_value(earlier), now);
                if (change)
                        add_change(c, "%s", change);
        }
}

/* Notes lower bandwidths: of nodes, then of pairs of other nodes. .least of a pair is kept_part of
 * the earlier bandwidth (baseline_expect()); 0 = the baseline lacks the pair. */
static void compare_rates(struct node_changes *changes, const struct check_report *r,
                          const json_t *all, const struct pair_book *book, const size_t *nodes)
{
        struct pair_judgement j;
        bool *slower;
        size_t n;
        const struct pair_edge *e = pair_book_edges(book, &n);

        pair_book_judge(book, PAIR_BANDWIDTH, &j);
        slower = xcalloc(j.n + 1, sizeof(*slower));
        for (size_t i = 0; i < j.n; i++) {
                double then = read_rate(json_object_get(all, r->nodes[nodes[i]].host));

                slower[i] = j.places[i].pairs && has_lost_rate(j.places[i].value, then);
                if (slower[i])
                        add_rate_change(&changes[nodes[i]], "bandwidth", j.places[i].value, then);
        }
        for (size_t i = 0; i < n; i++) {
                double now = e[i].value[PAIR_BANDWIDTH];
                CLEANUP(free_textp) char *link = NULL;

                if (slower[e[i].a] || slower[e[i].b] || now >= e[i].least)
                        continue;
                link = xasprintf("link %s - %s", r->nodes[nodes[e[i].a]].host,
                                 r->nodes[nodes[e[i].b]].host);
                add_rate_change(&changes[nodes[e[i].a]], link, now, e[i].least / kept_part);
                add_rate_change(&changes[nodes[e[i].b]], link, now, e[i].least / kept_part);
        }
        free(slower);
        pair_judgement_finish(&j);
}

/* Sets the result of a node, and frees the texts of @c. @known: the baseline has the node. @apart:
 * why no bandwidth was compared, NULL = bandwidth was compared. */
static void judge_changes(struct check_report *r, struct check_line *l, size_t node,
                          struct node_changes *c, bool known, const char *apart)
{
        const char *host = r->nodes[node].host;
        CLEANUP(free_textp) char *value = NULL;
        CLEANUP(free_textp) char *cause = NULL;
        struct check_judgement k = { .level = CHECK_NOT_RUN, .value = "", .expected = "" };

        if (c->n > CHANGES_SHOWN)
                buf_printf(&c->text, "; and %zu more", c->n - CHANGES_SHOWN);
        value = buf_steal(&c->text);
        if (c->n) {
                cause = xasprintf("%s is not as in the baseline: %s", host, value);
                k = (struct check_judgement){ CHECK_WARN, value, "", 0, cause, help };
        } else if (r->nodes[node].lost) {
                k.cause = "the node was not reached";
        } else if (!known) {
                k.cause = "the baseline does not have the node";
        } else if (c->n_gone && !check_fact_value(&r->nodes[node], "kernel")) {
                k.cause = "the node has not answered in time";
        } else if (c->n_gone) {
                cause = c->n_gone == 1 ? xasprintf("%s has no value now", c->gone)
                                       : xasprintf("%s and %zu more have no value now", c->gone,
                                                   c->n_gone - 1);
                k.cause = cause;
        } else if (apart) {
                k.cause = apart;
        } else {
                k = (struct check_judgement){ CHECK_PASS, "as before", "", 0, "", "" };
        }
        check_report_set(r, l, node, &k);
}

void baseline_judge(struct check_report *r, const json_t *base, const struct pair_book *book,
                    const size_t *nodes, size_t n)
{
        const json_t *all = json_object_get(base, "nodes");
        struct node_changes *changes = xcalloc(r->n_nodes + 1, sizeof(*changes));
        struct check_line *l = check_report_add(r, "baseline");
        const char *apart = NULL;

        for (size_t i = 0; i < r->n_nodes; i++)
                if (!r->nodes[i].lost)
                        compare_facts(&changes[i], &r->nodes[i],
                                      json_object_get(all, r->nodes[i].host));
        if (book && n && is_comparable(base, book))
                compare_rates(changes, r, all, book, nodes);
        else if (book && n)
                apart = is_nccl(book) ? "bandwidth was measured over TCP then, over NCCL now"
                                      : "bandwidth was measured over NCCL then, over TCP now";
        for (size_t i = 0; i < r->n_nodes; i++)
                judge_changes(r, l, i, &changes[i], json_object_get(all, r->nodes[i].host), apart);
        free(changes);
}

/* --- files ------------------------------------------------------------------------------------ */

json_t *baseline_read(const char *path, struct error *err)
{
        CLEANUP(free_textp) char *text = NULL;
        json_error_t where;
        size_t len;
        json_t *j;
        int r = fd_read_file(path, FILE_MAX, &text, &len);

        if (r < 0) {
                err_set(err, -r, "cannot read the baseline %s: %s", path, strerror(-r));
                return NULL;
        }
        j = json_loadb(text, len, 0, &where);
        if (!j) {
                err_set(err, EINVAL, "cannot read the baseline %s: line %d is no JSON: %s", path,
                        where.line, where.text);
        } else if (json_integer_value(json_object_get(j, "v")) != 1 ||
                   !json_is_object(json_object_get(j, "nodes")) ||
                   !json_is_array(json_object_get(j, "pairs"))) {
                err_set(err, EINVAL,
                        "cannot read the baseline %s: not written by hnlaunch check --save", path);
                json_decref(j);
                j = NULL;
        }
        return j;
}

int baseline_write(const char *path, const json_t *j, struct error *err)
{
        FILE *to = fopen(path, "we");
        bool written = to && json_write_plain(j, to);

        /* fclose() writes the rest, and may be the first to find the disk full. */
        if ((to && fclose(to) != 0) || !written)
                return err_set(err, errno, "cannot write the baseline to %s: %s", path,
                               strerror(errno));
        return 0;
}
