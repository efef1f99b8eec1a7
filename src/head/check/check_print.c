/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table has a row for each group of nodes with equal results: the failures of a check first,
 * then the warnings, then a single row for all nodes with a pass. Of many groups with different
 * values only some are shown, so 512 nodes fit on a screen. Checks not run follow by reason, and
 * then the next step of each check with a failure or a warning.
 */
#include "head/check/check_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/output/text_table.h"

/* Rows for each check and level. A last row "other values" stands for two groups at least. */
enum { GROUPS_SHOWN = 4 };

enum check_column { COLUMN_CHECK, COLUMN_RESULT, COLUMN_NODES, COLUMN_VALUE, CHECK_COLUMNS };

/* No column is left out on a narrow terminal; values are cut, to 20 cells at least. */
static const struct text_column check_columns[CHECK_COLUMNS] = {
        [COLUMN_CHECK] = { "CHECK", 0, 0, 0 },
        [COLUMN_RESULT] = { "RESULT", 0, 0, 0 },
        [COLUMN_NODES] = { "NODES", TEXT_RIGHT, 0, 0 },
        [COLUMN_VALUE] = { "VALUE", TEXT_TRUNCATE, 0, 20 },
};

/* --- groups ----------------------------------------------------------------------------------- */

static bool is_equal_value(const void *ctx, size_t a, size_t b)
{
        const struct check_line *l = ctx;

        return !strcmp(l->of[a].value, l->of[b].value) &&
               !strcmp(l->of[a].expected, l->of[b].expected);
}

static bool is_equal_cause(const void *ctx, size_t a, size_t b)
{
        const struct check_line *l = ctx;

        return !strcmp(l->of[a].cause, l->of[b].cause);
}

/* Groups the nodes with a level of a check. */
static struct host_groups group_nodes(const struct check_report *r, const struct check_line *l,
                                      enum check_level level, host_equal equal)
{
        struct host_groups g = { 0 };

        for (size_t i = 0; i < r->n_nodes; i++)
                if (l->of[i].level == level)
                        host_groups_add(&g, i, equal, l);
        return g;
}

/* --- the table -------------------------------------------------------------------------------- */

/* Writes "gpu017: 570.86, 63 others have 575.57". */
static char *describe_group(const struct check_line *l, const struct hosts *hosts,
                            const struct host_group *g)
{
        const struct check_result *r = &l->of[g->hosts[0]];
        CLEANUP(free_textp) char *names = hosts_fold(hosts, g->hosts, g->n);

        if (r->others)
                return xasprintf("%s: %s, %zu other%s ha%s %s", names, r->value, r->others,
                                 r->others == 1 ? "" : "s", r->others == 1 ? "s" : "ve",
                                 r->expected);
        return *r->expected ? xasprintf("%s: %s, expected %s", names, r->value, r->expected)
                            : xasprintf("%s: %s", names, r->value);
}

/* Returns the cells of a new row, with all but the value. */
static char **add_check_row(struct text_table *t, const struct check_line *l,
                            enum check_level level, size_t n, bool first)
{
        char **cells = text_table_add(t);

        cells[COLUMN_CHECK] = xstrdup(first ? l->name : "");
        cells[COLUMN_RESULT] = xstrdup(check_level_name(level));
        cells[COLUMN_NODES] = xasprintf("%zu", n);
        return cells;
}

/* Adds rows for the nodes with a failure or a warning. Returns whether there are any. */
static bool add_bad_rows(struct text_table *t, const struct check_report *r,
                         const struct check_line *l, const struct hosts *hosts,
                         enum check_level level, bool first)
{
        struct host_groups g = group_nodes(r, l, level, is_equal_value);
        struct host_group rest = { 0 };

        for (size_t i = 0; i < g.n; i++) {
                if (i < GROUPS_SHOWN || g.n == GROUPS_SHOWN + 1)
                        add_check_row(t, l, level, g.v[i].n, first && !i)[COLUMN_VALUE] =
                                describe_group(l, hosts, &g.v[i]);
                else
                        for (size_t k = 0; k < g.v[i].n; k++)
                                host_group_add(&rest, g.v[i].hosts[k]);
        }
        if (rest.n) {
                CLEANUP(free_textp) char *names = hosts_fold(hosts, rest.hosts, rest.n);

                add_check_row(t, l, level, rest.n, false)[COLUMN_VALUE] =
                        xasprintf("%s: other values", names);
        }
        host_group_finish(&rest);
        host_groups_finish(&g);
        return l->count[level];
}

/* Adds the row of the nodes with a pass, with the value if all agree. */
static void add_pass_row(struct text_table *t, const struct check_report *r,
                         const struct check_line *l, bool first)
{
        struct host_groups g = group_nodes(r, l, CHECK_PASS, is_equal_value);

        if (g.n)
                add_check_row(t, l, CHECK_PASS, l->count[CHECK_PASS], first)[COLUMN_VALUE] =
                        g.n == 1     ? xstrdup(l->of[g.v[0].hosts[0]].value)
                        : l->summary ? xstrdup(l->summary)
                                     : xasprintf("%zu different values", g.n);
        host_groups_finish(&g);
}

/* --- checks that were not run ----------------------------------------------------------------- */

/* A reason for "not run", with the names of all checks with this reason. The report lends the
 * cause. */
struct check_reason {
        const char *cause;
        struct buf names;
};

/* Counts @n reached nodes without a result of a check for a reason. */
static void note_not_run(struct check_reason **reasons, size_t *n_reasons, const char *cause,
                         const char *name, size_t n, size_t reached)
{
        struct check_reason *k;
        size_t i = 0;

        while (i < *n_reasons && strcmp((*reasons)[i].cause, cause) != 0)
                i++;
        if (i == *n_reasons) {
                *reasons = xrealloc(*reasons, i + 1, sizeof(**reasons));
                (*reasons)[(*n_reasons)++] = (struct check_reason){ cause, BUF_INIT };
        }
        k = &(*reasons)[i];
        buf_printf(&k->names, "%s%s", buf_len(&k->names) ? ", " : "", name);
        if (n < reached)
                buf_printf(&k->names, " (%zu of %zu nodes)", n, reached);
}

static void put_not_run(struct buf *to, const struct check_report *r)
{
        struct check_reason *reasons = NULL;
        size_t n_reasons = 0, reached = 0;

        for (size_t i = 0; i < r->n_nodes; i++)
                reached += !r->nodes[i].lost;
        for (size_t i = 0; i < r->n; i++) {
                struct host_groups g = group_nodes(r, &r->v[i], CHECK_NOT_RUN, is_equal_cause);

                for (size_t k = 0; k < g.n; k++)
                        /* Unreached nodes have rows of "reach": their other checks are not
                         * listed. */
                        if (!r->nodes[g.v[k].hosts[0]].lost)
                                note_not_run(&reasons, &n_reasons,
                                             r->v[i].of[g.v[k].hosts[0]].cause, r->v[i].name,
                                             g.v[k].n, reached);
                host_groups_finish(&g);
        }
        for (size_t i = 0; i < n_reasons; i++) {
                CLEANUP(free_textp) char *names = buf_steal(&reasons[i].names);
                CLEANUP(free_textp) char *cause = printable_text(reasons[i].cause, PRINTABLE_ROW);

                buf_printf(to, "not run: %s: %s\n", names, cause);
        }
        free(reasons);
}

/* Adds the next step of each check: of the first node with a failure or a warning. */
static void put_helps(struct buf *to, const struct check_report *r)
{
        for (size_t i = 0; i < r->n; i++) {
                const struct check_line *l = &r->v[i];

                for (size_t k = 0; k < r->n_nodes; k++)
                        if (*l->of[k].help) {
                                buf_printf(to, "help: %s: %s\n", l->name, l->of[k].help);
                                break;
                        }
        }
}

char *check_print_table(const struct check_report *r, const struct hosts *hosts, size_t width)
{
        CLEANUP(text_table_finish)
        struct text_table t = { .columns = check_columns,
                                .n_columns = CHECK_COLUMNS,
                                .width = width };
        CLEANUP(free_textp) char *rows = NULL;
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < r->n; i++) {
                const struct check_line *l = &r->v[i];
                bool any = add_bad_rows(&t, r, l, hosts, CHECK_FAIL, true);

                any |= add_bad_rows(&t, r, l, hosts, CHECK_WARN, !any);
                add_pass_row(&t, r, l, !any);
        }
        rows = text_table_format(&t);
        buf_appends(&out, rows);
        put_not_run(&out, r);
        put_helps(&out, r);
        return buf_steal(&out);
}

/* --- rows of a message ------------------------------------------------------------------------ */

/* Adds one row for all nodes with a level: "shm.size: gpu017: 33.6 MB, expected at least 134 MB".
 * Returns the next step, lent; NULL = no node has the level. */
static const char *put_check_row(struct diag *d, const struct check_report *r,
                                 const struct check_line *l, const struct hosts *hosts,
                                 enum check_level level)
{
        struct host_groups g = group_nodes(r, l, level, is_equal_value);
        CLEANUP(free_textp) char *text = NULL;
        struct host_group all = { 0 };
        const char *help = NULL;

        for (size_t i = 0; i < g.n; i++)
                for (size_t k = 0; k < g.v[i].n; k++)
                        if (!r->nodes[g.v[i].hosts[k]].lost)
                                host_group_add(&all, g.v[i].hosts[k]);
        /* Of several values the first is shown as an example. */
        if (all.n && g.n == 1)
                text = describe_group(l, hosts, &all);
        else if (all.n) {
                CLEANUP(free_textp) char *names = hosts_fold(hosts, all.hosts, all.n);
                CLEANUP(free_textp) char *one = describe_group(l, hosts, &g.v[0]);

                text = xasprintf("%s: %zu different values; %s", names, g.n, one);
        }
        if (text) {
                diag_row(d, "%s: %s", l->name, text);
                help = l->of[all.hosts[0]].help;
        }
        host_group_finish(&all);
        host_groups_finish(&g);
        return help;
}

void check_print_rows(struct diag *d, const struct check_report *r, const struct hosts *hosts,
                      enum check_level level)
{
        const char **helps = xcalloc(r->n + 1, sizeof(*helps));

        for (size_t i = 0; i < r->n; i++)
                /* Rows of all checks come before the first next step. */
                helps[i] = put_check_row(d, r, &r->v[i], hosts, level);
        for (size_t i = 0; i < r->n && level == CHECK_FAIL; i++)
                if (helps[i])
                        diag_help(d, "%s: %s", r->v[i].name, helps[i]);
        free(helps);
}

char *check_print_cause(const struct check_report *r, size_t node)
{
        const char *host = r->nodes[node].host, *cause = NULL, *subject = "";
        size_t n = 0, len = strlen(host);

        for (size_t i = 0; i < r->n; i++) {
                if (r->v[i].of[node].level != CHECK_FAIL)
                        continue;
                n++;
                if (!cause)
                        cause = r->v[i].of[node].cause;
        }
        if (!cause)
                return xstrdup("");
        /* The caller names the host. Of "HOST has ..." the rest needs a subject, of "HOST: reaches
         * none of 3 peers" the rest stands alone. */
        if (!strncmp(cause, host, len) && cause[len] == ' ') {
                cause += len + 1;
                subject = "it ";
        } else if (!strncmp(cause, host, len) && !strncmp(cause + len, ": ", 2)) {
                cause += len + 2;
        }
        if (n == 1)
                return xasprintf("%s%s", subject, cause);
        return xasprintf("%s%s; %zu other check%s fail%s", subject, cause, n - 1, n == 2 ? "" : "s",
                         n == 2 ? "s" : "");
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *describe_node_checks(const struct check_report *r, size_t node)
{
        json_t *checks = json_array();

        for (size_t i = 0; i < r->n; i++) {
                const struct check_result *one = &r->v[i].of[node];

                /* Texts of agents may be no UTF-8 (json_text()); levels and helps are texts of
                 * hnlaunch. */
                json_array_append_new(checks, json_pack("{s:o, s:s, s:o, s:o, s:o, s:s}", "name",
                                                        json_text(r->v[i].name), "result",
                                                        check_level_name(one->level), "value",
                                                        json_text(one->value), "expected",
                                                        json_text(one->expected), "cause",
                                                        json_text(one->cause), "help", one->help));
        }
        return json_pack("{s:o, s:s, s:o}", "host", json_text(r->nodes[node].host), "result",
                         check_level_name(check_node_level(r, node)), "checks", checks);
}

json_t *check_print_json(const struct check_report *r)
{
        json_t *nodes = json_array();

        for (size_t i = 0; i < r->n_nodes; i++)
                json_array_append_new(nodes, describe_node_checks(r, i));
        return json_pack("{s:i, s:s, s:o}", "v", 1, "result",
                         check_level_name(check_whole_level(r)), "nodes", nodes);
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* Counts the checks with a level on any node, and the nodes with a level in any check: a node with
 * a failure and a warning counts in both sentences. */
static size_t count_level(const struct check_report *r, enum check_level level, size_t *ret_nodes)
{
        size_t checks = 0;

        *ret_nodes = 0;
        for (size_t i = 0; i < r->n; i++)
                checks += r->v[i].count[level] > 0;
        for (size_t k = 0; k < r->n_nodes; k++) {
                bool has = false;

                for (size_t i = 0; i < r->n && !has; i++)
                        has = r->v[i].of[k].level == level;
                *ret_nodes += has;
        }
        return checks;
}

char *check_print_verdict(const struct check_report *r)
{
        size_t bad, odd, failed = count_level(r, CHECK_FAIL, &bad),
                         warned = count_level(r, CHECK_WARN, &odd);
        struct buf b = BUF_INIT;

        if (failed)
                buf_printf(&b, "%zu check%s failed on %zu of %zu nodes", failed,
                           failed == 1 ? "" : "s", bad, r->n_nodes);
        if (warned)
                buf_printf(&b, "%s%zu check%s of %zu of %zu nodes", failed ? ", " : "", warned,
                           warned == 1 ? " warns" : "s warn", odd, r->n_nodes);
        if (!failed && !warned)
                buf_printf(&b, r->n_nodes == 1 ? "%zu node is fit" : "%zu nodes are fit",
                           r->n_nodes);
        return buf_steal(&b);
}
