/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_judge() goes through the rows of check_rules.c, and for each row through the nodes. A row
 * with .each has a line for every program of the job: "program", "program.1" ...
 *
 * A result takes four steps: the difference to most nodes or the rule, the worse of both
 * (judge_value()); the value wanted by the profile (judge_expected()); the level given by the
 * profile (move_level()); --strict. Lines without a row (net.peers, baseline) come from
 * check_report_set(), with the last two steps alone.
 */
#include "head/check/check_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "head/check/check_rules.h"

static const double same_part = 0.05;

/* --- judging a line --------------------------------------------------------------------------- */

/* Returns a value for people, malloc'ed. */
static char *format_value(const struct check_row *row, const char *value)
{
        char text[32];

        if (row->kind == CHECK_SIZE && *value >= '0' && *value <= '9') {
                format_size(text, sizeof(text), strtoull(value, NULL, 10));
                return xstrdup(text);
        }
        return row->kind == CHECK_SECONDS ? xasprintf("%s s", value) : xstrdup(value);
}

/* Whether two values count as equal. Sizes, and limits that the kernel derives from the memory,
 * differ a little between equal machines. */
static bool is_same_value(const struct check_row *row, const char *a, const char *b)
{
        double x, y;

        if (!strcmp(a, b))
                return true;
        if (row->kind != CHECK_SIZE && row->kind != CHECK_ABOUT)
                return false;
        x = check_read_amount(a);
        y = check_read_amount(b);
        if (isinf(x) || isinf(y))
                return false;
        return (x > y ? x - y : y - x) <= same_part * MAX(x, y);
}

/* Returns the fact of each node, lent, in a malloc'ed array. Agents of one version send their facts
 * in the same order, so the place in the list of the last node is tried first: a search of all
 * facts of all nodes would read 90 MB of 5,000 nodes for each line. */
static const struct check_fact **find_facts(const struct check_report *r, const char *name)
{
        const struct check_fact **v = xcalloc(r->n_nodes, sizeof(*v));
        size_t place = 0;

        for (size_t i = 0; i < r->n_nodes; i++) {
                const struct checked *m = r->nodes[i].facts;

                if (m && place < m->n_facts && !strcmp(m->facts[place].name, name))
                        v[i] = &m->facts[place];
                else
                        v[i] = check_fact_find(&r->nodes[i], name);
                if (v[i])
                        place = (size_t)(v[i] - m->facts);
        }
        return v;
}

/* Returns the value of most nodes, lent, on a tie the first value, and how many nodes have an equal
 * value; NULL = no node has a value that counts. Lost nodes do not count, nor, for files, nodes
 * without ranks. The search is linear: values are few. */
static const char *find_most(const struct check_report *r, const struct check_row *row,
                             const struct check_fact *const *facts, size_t *ret_n)
{
        struct {
                const char *value;
                size_t n;
        } *found = xcalloc(r->n_nodes, sizeof(*found));
        const char *most = NULL;
        size_t kinds = 0;

        *ret_n = 0;
        for (size_t i = 0; i < r->n_nodes; i++) {
                const char *value = facts[i] && !*facts[i]->problem ? facts[i]->value : NULL;
                size_t k = 0;

                if (r->nodes[i].lost || (row->each && r->nodes[i].aside) ||
                    !check_row_compares(row, value))
                        continue;
                while (k < kinds && !is_same_value(row, found[k].value, value))
                        k++;
                if (k == kinds)
                        found[kinds++].value = value;
                found[k].n++;
        }
        for (size_t k = 0; k < kinds; k++)
                if (found[k].n > *ret_n) {
                        *ret_n = found[k].n;
                        most = found[k].value;
                }
        free(found);
        return most;
}

/* Returns the row of a fact that should not change; NULL = the fact may change. Facts about
 * programs never count: the earlier check may have had another program. */
static const struct check_row *find_kept_row(const char *name)
{
        const struct check_row *row;

        for (size_t i = 0; (row = check_row_at(i)); i++)
                if (!strcmp(row->name, name))
                        return row->drift != CHECK_PASS && !row->each ? row : NULL;
        return NULL;
}

bool check_is_kept(const char *name)
{
        return find_kept_row(name);
}

char *check_describe_change(const char *name, const char *then, const char *now)
{
        const struct check_row *row = find_kept_row(name);
        CLEANUP(free_textp) char *earlier = NULL;
        CLEANUP(free_textp) char *own = NULL;

        if (!row || is_same_value(row, then, now))
                return NULL;
        own = format_value(row, now);
        earlier = format_value(row, then);
        /* Two different sizes may have the same rounded text. */
        return strcmp(own, earlier) != 0 ? xasprintf("%s %s, was %s", name, own, earlier)
                                         : xasprintf("%s %s, was %s", name, now, then);
}

/* Replaces the result by the difference from the @n nodes with the value @most. */
static void set_drift(struct check_result *to, const struct check_row *row, const char *host,
                      const char *most, size_t n)
{
        CLEANUP(free_textp) char *other = format_value(row, most);

        to->level = row->drift;
        to->others = n;
        /* Empty, so count_result() puts the row's help here. */
        to->help = "";
        check_text_free(to->expected);
        to->expected = xstrdup(other);
        check_text_free(to->cause);
        to->cause = xasprintf("%s has %s %s, %zu other%s ha%s %s", host, row->words, to->value, n,
                              n == 1 ? "" : "s", n == 1 ? "s" : "ve", other);
}

/* Judges a value: by the comparison of the nodes, and by the rule. */
static void judge_value(struct check_case *c, const struct check_row *row, size_t n_most)
{
        bool differs = row->drift != CHECK_PASS && c->most && check_row_compares(row, c->value) &&
                       !is_same_value(row, c->value, c->most);

        check_text_free(c->to->value);
        c->to->value = format_value(row, c->value);
        /* Without c->most only nodes without ranks have the fact. */
        if (row->absent && !strcmp(c->value, row->absent) &&
            (!c->most || !strcmp(c->most, row->absent))) {
                check_result_skip(c->to, row->why);
        } else {
                if (row->rule)
                        row->rule(c);
                /* On a tie the cause of the rule stays: a rule says more than a difference. */
                if (differs && row->drift > c->to->level)
                        set_drift(c->to, row, c->node->host, c->most, n_most);
        }
}

/* Judges the fact of a node, or sets the reason for "not run", with c->value still NULL. @k: NULL =
 * the node has not sent the fact. */
static void judge_node(struct check_case *c, const struct check_row *row,
                       const struct check_fact *k, size_t n_most)
{
        if (c->node->lost)
                check_result_skip(c->to, "the node was not reached");
        else if (!k)
                check_result_skip(c->to, "the node has not answered in time");
        else if (*k->problem)
                check_result_skip(c->to, k->problem);
        else {
                c->value = k->value;
                judge_value(c, row, n_most);
        }
}

/* Whether a value fits the value wanted by a profile; * at the end stands for any text. */
static bool fits_expected(const char *value, const char *want)
{
        size_t len = strlen(want);

        return len && want[len - 1] == '*' ? !strncmp(value, want, len - 1) : !strcmp(value, want);
}

/* Compares with the value wanted by the profile: the fact itself ("34359738368") or the fact's text
 * for people ("34.4 GB"). A failure stays: the cause of a failure is worse. */
static void judge_expected(struct check_case *c, const struct check_row *row, const char *want)
{
        if (!c->value || !want || fits_expected(c->value, want) ||
            fits_expected(c->to->value, want) || c->to->level == CHECK_FAIL)
                return;
        check_case_set(c, MAX(row->drift, CHECK_WARN), want, "has %s %s, the profile wants %s",
                       row->words, c->to->value, want);
        c->to->help = "";
}

/* Gives a failure or a warning the level of the profile. */
static void move_level(struct check_result *r, const char *move)
{
        if (!move)
                return;
        if (!strcmp(move, "ignore"))
                check_result_skip(r, "the profile ignores it");
        else
                /* check_profile.c has refused all other words. */
                r->level = strcmp(move, "fail") != 0 ? CHECK_WARN : CHECK_FAIL;
}

/* Settings for all checks, besides the rules. */
struct check_rules {
        const struct check_profile *profile;
        bool strict;
};

/* Ends the judgement of a node: levels and counts. --strict comes last, and fails warnings of the
 * profile, too. @row: the name in the table, without the number of a program. */
static void count_result(struct check_line *l, struct check_result *r, const char *row,
                         const char *help, const struct check_rules *rules)
{
        if (rules->profile && r->level >= CHECK_WARN)
                move_level(r, strv_env_get(&rules->profile->moves, row));
        if (rules->strict && r->level == CHECK_WARN)
                r->level = CHECK_FAIL;
        r->help = r->level < CHECK_WARN ? "" : *r->help ? r->help : help;
        l->count[r->level]++;
}

struct check_line *check_report_add(struct check_report *r, const char *name)
{
        struct check_line *l;

        r->v = xrealloc(r->v, r->n + 1, sizeof(*r->v));
        l = &r->v[r->n++];
        *l = (struct check_line){ .name = xstrdup(name),
                                  .of = xcalloc(r->n_nodes, sizeof(*l->of)) };
        for (size_t i = 0; i < r->n_nodes; i++)
                l->of[i] = (struct check_result){ .value = check_text_copy(""),
                                                  .expected = check_text_copy(""),
                                                  .cause = check_text_copy(""),
                                                  .help = "" };
        return l;
}

static void judge_reach(struct check_report *r, const struct check_rules *rules)
{
        /* The table has no such row: agents send no facts about nodes that are not reached. */
        struct check_line *l = check_report_add(r, "reach");

        for (size_t i = 0; i < r->n_nodes; i++) {
                struct check_result *to = &l->of[i];

                check_text_free(to->value);
                to->value = xstrdup(r->nodes[i].lost ? r->nodes[i].lost : "connected");
                if (r->nodes[i].lost) {
                        to->level = CHECK_FAIL;
                        check_text_free(to->cause);
                        to->cause = xasprintf("%s cannot be reached: %s", r->nodes[i].host,
                                              r->nodes[i].lost);
                } else if (!check_fact_find(&r->nodes[i], "kernel")) {
                        check_text_free(to->value);
                        to->value = xstrdup("no answer in time");
                        to->level = CHECK_WARN;
                        check_text_free(to->cause);
                        to->cause = xasprintf("%s has not answered in time: nothing was checked",
                                              r->nodes[i].host);
                }
                count_result(l, to, "reach", "the messages above have the reasons", rules);
        }
}

static int compare_amounts(const void *a, const void *b)
{
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Returns the median over all nodes with a number, without lost nodes, and the number of these
 * nodes. Of two in the middle the upper counts. Without any node the result means nothing. */
static double find_median(const struct check_report *r, const char *name, size_t *ret_n)
{
        double *all = xcalloc(r->n_nodes, sizeof(*all)), median;

        *ret_n = 0;
        for (size_t i = 0; i < r->n_nodes; i++) {
                if (r->nodes[i].lost)
                        continue;
                all[*ret_n] = check_fact_amount(&r->nodes[i], name);
                *ret_n += !isinf(all[*ret_n]);
        }
        qsort(all, *ret_n, sizeof(*all), compare_amounts);
        median = all[*ret_n / 2];
        free(all);
        return median;
}

static void judge_check_line(struct check_report *r, const struct check_row *row, const char *name,
                             const struct check_rules *rules)
{
        struct check_line *l = check_report_add(r, name);
        const struct check_fact **facts = find_facts(r, name);
        size_t n_most = 0, n_known = 0;
        const char *most = NULL;
        const char *want = strv_env_get(&rules->profile->expected, row->name);
        double median = 0;

        if (row->drift != CHECK_PASS || row->absent)
                most = find_most(r, row, facts, &n_most);
        if (row->median)
                median = find_median(r, name, &n_known);
        for (size_t i = 0; i < r->n_nodes; i++) {
                struct check_case c = { .node = &r->nodes[i],
                                        /* @name is on the stack of the caller. */
                                        .name = l->name,
                                        .most = most,
                                        .median = median,
                                        .n_known = n_known,
                                        .n_nodes = r->n_nodes,
                                        .limits = rules->profile->limits,
                                        .to = &l->of[i] };

                judge_node(&c, row, facts[i], n_most);
                judge_expected(&c, row, want);
                count_result(l, c.to, row->name, row->help, rules);
        }
        free(facts);
}

/* Whether any node has a fact of this name. */
static bool has_any_fact(const struct check_report *r, const char *name)
{
        for (size_t i = 0; i < r->n_nodes; i++)
                if (check_fact_find(&r->nodes[i], name))
                        return true;
        return false;
}

/* Returns the largest number of a program behind the name of a fact: of "script.2" 2. The facts of
 * 5,000 nodes are many: read once for all rows. */
static unsigned find_last_program(const struct check_report *r)
{
        unsigned last = 0;

        for (size_t i = 0; i < r->n_nodes; i++) {
                const struct checked *m = r->nodes[i].facts;

                for (uint32_t k = 0; m && k < m->n_facts; k++) {
                        const char *dot = strrchr(m->facts[k].name, '.');
                        unsigned long number = dot ? strtoul(dot + 1, NULL, 10) : 0;

                        /* Each program has facts: a larger number is made up. */
                        if (number < m->n_facts)
                                last = MAX(last, (unsigned)number);
                }
        }
        return last;
}

void check_judge(struct check_report *r, const struct check_node *nodes, size_t n, bool strict)
{
        struct check_profile p;

        check_profile_init(&p);
        check_judge_by(r, nodes, n, &p, strict);
        /* The profile is freed here, and check_report_set() may follow. */
        r->profile = NULL;
        check_profile_finish(&p);
}

void check_judge_by(struct check_report *r, const struct check_node *nodes, size_t n,
                    const struct check_profile *profile, bool strict)
{
        const struct check_rules rules = { profile, strict };
        const struct check_row *row;
        unsigned last;

        *r = (struct check_report){
                .nodes = nodes, .n_nodes = n, .profile = profile, .strict = strict
        };
        last = find_last_program(r);
        judge_reach(r, &rules);
        for (size_t i = 0; (row = check_row_at(i)); i++) {
                char name[CHECK_NAME];

                if (!row->optional || has_any_fact(r, row->name))
                        judge_check_line(r, row, row->name, &rules);
                /* A program without a script lacks the fact, although later programs may have the
                 * fact. */
                for (unsigned k = 1; row->each && k <= last; k++) {
                        snprintf(name, sizeof(name), "%s.%u", row->name, k);
                        if (has_any_fact(r, name))
                                judge_check_line(r, row, name, &rules);
                }
        }
}

bool check_exists(const char *name, bool *ret_fact)
{
        static const char *const others[] = { "reach", "net.peers", "net.bandwidth", "net.latency",
                                              "baseline" };
        const struct check_row *row;

        for (size_t i = 0; (row = check_row_at(i)); i++)
                if (!strcmp(row->name, name)) {
                        *ret_fact = true;
                        return true;
                }
        *ret_fact = false;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (!strcmp(others[i], name))
                        return true;
        return false;
}

void check_report_set(const struct check_report *r, struct check_line *l, size_t node,
                      const struct check_judgement *k)
{
        const struct check_rules rules = { r->profile, r->strict };
        struct check_result *to = &l->of[node];

        /* A second result replaces the first in the counts. */
        if (to->set)
                l->count[to->level]--;
        to->set = true;
        check_text_free(to->value);
        check_text_free(to->expected);
        check_text_free(to->cause);
        to->level = k->level;
        to->value = check_text_copy(k->value);
        to->expected = check_text_copy(k->expected);
        to->others = k->others;
        to->cause = check_text_copy(k->cause);
        to->help = "";
        count_result(l, to, l->name, k->help, &rules);
}

void check_report_finish(struct check_report *r)
{
        for (size_t i = 0; i < r->n; i++) {
                for (size_t k = 0; k < r->n_nodes; k++) {
                        check_text_free(r->v[i].of[k].value);
                        check_text_free(r->v[i].of[k].expected);
                        check_text_free(r->v[i].of[k].cause);
                }
                free(r->v[i].of);
                free(r->v[i].summary);
                free(r->v[i].name);
        }
        free(r->v);
        *r = (struct check_report){ 0 };
}

/* --- results ---------------------------------------------------------------------------------- */

/* Returns the worse of two levels; "not run" gives way to any other. */
static enum check_level join_levels(enum check_level a, enum check_level b)
{
        if (a == CHECK_NOT_RUN || b == CHECK_NOT_RUN)
                return a == CHECK_NOT_RUN ? b : a;
        return MAX(a, b);
}

enum check_level check_node_level(const struct check_report *r, size_t node)
{
        enum check_level level = CHECK_NOT_RUN;

        for (size_t i = 0; i < r->n; i++)
                level = join_levels(level, r->v[i].of[node].level);
        return level;
}

enum check_level check_whole_level(const struct check_report *r)
{
        enum check_level level = CHECK_NOT_RUN;

        for (size_t i = 0; i < r->n_nodes; i++)
                level = join_levels(level, check_node_level(r, i));
        return level;
}

const char *check_level_name(enum check_level level)
{
        static const char *const names[] = { "pass", "not run", "warn", "fail" };

        return names[level];
}
