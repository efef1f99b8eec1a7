/* SPDX-License-Identifier: Apache-2.0 */
#include "head/status/rank_table.h"

#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/status/rank_table_text.h"

enum {
        FOLD_ABOVE = 40, /* rows that say the same */
        ROWS_MAX = 200,  /* of one table */
};

/* --- rows that say the same ------------------------------------------------------------------- */

/* What makes rows equal: everything but numbers. */
static int by_kind(const struct rank_row *a, const struct rank_row *b)
{
        bool wait = rank_row_waits(a);
        int d = strcmp(rank_alive_text(a), rank_alive_text(b));

        if (!d)
                d = a->joined - b->joined;
        if (!d)
                d = wait - rank_row_waits(b);
        if (!d && wait)
                d = strcmp(a->k.wait.op, b->k.wait.op);
        if (!d && wait)
                d = strcmp(a->k.wait.key, b->k.wait.key);
        return d;
}

static int by_kind_and_rank(const void *a, const void *b)
{
        const struct rank_row *x = *(const struct rank_row *const *)a,
                              *y = *(const struct rank_row *const *)b;
        int d = by_kind(x, y);

        return d ? d : x->rank - y->rank;
}

static const char *verb_of(const struct rank_row *r, bool stores)
{
        switch (r->known) {
        case RANK_ROW_SILENT:
                return "give no answer";
        case RANK_ROW_ENDED:
                return "have ended";
        case RANK_ROW_UNKNOWN:
                return "are not started yet";
        default:
                return r->k.state == 'T'   ? "are stopped (T)"
                       : r->k.state == 'D' ? "wait for a device (D)"
                       : r->joined         ? "have joined and run"
                       : stores            ? "run and have not joined"
                                           : "run";
        }
}

/* ", step 1838-1840" of rows that have said how far they are. */
static void add_steps(struct buf *to, const struct rank_row *const *v, size_t n)
{
        int64_t least = INT64_MAX, most = -1;

        for (size_t i = 0; i < n; i++) {
                if (!rank_row_steps(v[i]))
                        continue;
                least = MIN(least, v[i]->progress.step);
                most = MAX(most, v[i]->progress.step);
        }
        if (most >= 0 && least < most)
                buf_printf(to, ", step %" PRId64 "-%" PRId64, least, most);
        else if (most >= 0)
                buf_printf(to, ", step %" PRId64, most);
}

/* "ranks 8-511 wait for `x` since 12.0s". */
static void fold_line(struct buf *to, const struct rank_row *const *v, size_t n, bool stores)
{
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        CLEANUP(free_textp) char *list = NULL;
        uint32_t longest = 0;
        char what[160];

        for (size_t i = 0; i < n; i++) {
                intlist_add(&ranks, v[i]->rank);
                longest = MAX(longest, v[i]->k.wait.ms);
        }
        list = intlist_fold(&ranks);
        if (rank_row_waits(v[0])) {
                rank_table_what_for(&v[0]->k.wait, what, sizeof(what));
                buf_printf(to, "ranks %s wait %s since %s%s", list, what, rank_span(longest).text,
                           v[0]->k.state == 'T' ? ", stopped (T)" : "");
        } else {
                buf_printf(to, "ranks %s %s", list, verb_of(v[0], stores));
        }
        add_steps(to, v, n);
        buf_appends(to, "\n");
}

/* --- the table -------------------------------------------------------------------------------- */

enum column {
        COL_RANK,
        COL_HOST,
        COL_LOCAL,
        COL_PID,
        COL_ALIVE,
        COL_SEEN,
        COL_STORE,
        COL_STEP,
        COL_NOW
};

static struct libscols_table *new_table(bool stores, bool steps)
{
        static const struct {
                const char *name;
                int flags;
        } columns[] = { { "RANK", SCOLS_FL_RIGHT },
                        { "HOST", 0 },
                        { "LOCAL", SCOLS_FL_RIGHT },
                        { "PID", SCOLS_FL_RIGHT },
                        { "ALIVE", 0 },
                        { "LAST SEEN", 0 },
                        { "STORE", 0 },
                        { "STEP", 0 },
                        { "NOW", 0 } };
        struct libscols_table *t = scols_new_table();

        if (!t)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
                bool hidden = (i == COL_STORE && !stores) || (i == COL_STEP && !steps);

                scols_table_new_column(t, columns[i].name, 0.1,
                                       columns[i].flags | (hidden ? SCOLS_FL_HIDDEN : 0));
        }
        scols_table_enable_nowrap(t, 1);
        scols_table_set_column_separator(t, "  ");
        return t;
}

static void set_number(struct libscols_line *line, enum column column, uint32_t n)
{
        char text[16];

        snprintf(text, sizeof(text), "%u", n);
        scols_line_set_data(line, column, text);
}

static void add_row(struct libscols_table *table, const struct rank_table *t,
                    const struct rank_row *r)
{
        struct libscols_line *line = scols_table_new_line(table, NULL);
        char text[240];

        if (!line)
                return;
        set_number(line, COL_RANK, (uint32_t)r->rank);
        scols_line_set_data(line, COL_HOST, t->hosts->v[t->plan->nodes[r->node].host].name);
        set_number(line, COL_LOCAL, (uint32_t)r->local_rank);
        if (r->k.pid)
                set_number(line, COL_PID, r->k.pid);
        scols_line_set_data(line, COL_ALIVE, rank_alive_text(r));
        rank_seen_text(r, text, sizeof(text));
        scols_line_set_data(line, COL_SEEN, text);
        rank_store_text(r, text, sizeof(text));
        scols_line_set_data(line, COL_STORE, text);
        rank_step_text(r, text, sizeof(text));
        scols_line_set_data(line, COL_STEP, text);
        rank_now_text(r, text, sizeof(text));
        scols_line_set_data(line, COL_NOW, text);
}

static int by_rank(const void *a, const void *b)
{
        return (*(const struct rank_row *const *)a)->rank -
               (*(const struct rank_row *const *)b)->rank;
}

/* Takes the rows of large kinds out of @v and writes a line for each; returns how many stay. */
static size_t fold(const struct rank_row **v, size_t n, bool stores, struct buf *lines)
{
        size_t kept = 0;

        if (n)
                qsort(v, n, sizeof(const struct rank_row *), by_kind_and_rank);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && by_kind(v[i], v[end]) == 0; end++)
                        ;
                if (end - i > FOLD_ABOVE) {
                        fold_line(lines, v + i, end - i, stores);
                        continue;
                }
                memmove(v + kept, v + i, (end - i) * sizeof(const struct rank_row *));
                kept += end - i;
        }
        if (kept)
                qsort(v, kept, sizeof(const struct rank_row *), by_rank);
        return kept;
}

char *rank_table_print(const struct rank_table *t, rank_filter filter)
{
        const struct rank_row **v = xcalloc(t->n, sizeof(const struct rank_row *));
        bool stores = rank_table_count(t, rank_row_joined);
        struct libscols_table *table = new_table(stores, rank_table_count(t, rank_row_steps));
        struct buf lines = BUF_INIT, out = BUF_INIT;
        char *text = NULL;
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                if (!filter || filter(&t->rows[i]))
                        v[n++] = &t->rows[i];
        n = fold(v, n, stores, &lines);
        for (size_t i = 0; table && i < MIN(n, (size_t)ROWS_MAX); i++)
                add_row(table, t, v[i]);
        if (n && table && scols_print_table_to_string(table, &text) == 0)
                buf_printf(&out, "%s%s", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
        if (n > ROWS_MAX)
                buf_printf(&out, "... and %zu more\n", n - ROWS_MAX);
        buf_append(&out, buf_data(&lines), buf_len(&lines));
        buf_finish(&lines);
        if (table)
                scols_unref_table(table);
        free(text);
        free(v);
        return buf_len(&out) ? buf_steal(&out) : xstrdup("");
}
