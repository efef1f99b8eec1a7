/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the table has nine cells; STORE and STEP are hidden when no rank has joined or reported
 * progress. Before the table is laid out (text_table), rows that differ only in numbers are
 * sorted together (compare_kinds()). More than FOLD_ABOVE rows of a kind become one line below the
 * table, "ranks 8-511 wait for `x` for 12.0s", so that ten thousand ranks fit on a screen.
 */
#include "head/status/rank_table_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/intlist.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/model/role_list.h"
#include "head/output/text_table.h"

enum {
        NAMES_MAX = 80,  /* characters of a list of ranks */
        FOLD_ABOVE = 40, /* rows of a kind */
        ROWS_MAX = 200,  /* of a table */
};

/* --- cells --- */

void rank_table_what_for(const struct node_status_wait *w, char *to, size_t size)
{
        /* By names of struct node_status_wait; COUNT and all other operations read as a barrier. */
        const char *collective = !strcmp(w->op, "GATHER")      ? "all_gather"
                                 : !strcmp(w->op, "BROADCAST") ? "broadcast"
                                                               : "barrier";

        if (!strcmp(w->op, "FINALIZE"))
                snprintf(to, size, "in MPI_Finalize()");
        else if (strcmp(w->op, "WAIT") != 0 && strcmp(w->op, "GET") != 0)
                snprintf(to, size, "in %s `%s`", collective, w->key);
        else if (w->n_keys > 1)
                snprintf(to, size, "for `%s` and %u more", w->key, w->n_keys - 1);
        else
                snprintf(to, size, "for `%s`", w->key);
}

/* Returns the cell ALIVE; also the kind of a row, so few words are best. */
static const char *format_alive(const struct rank_row *r)
{
        static const char *const by_known[] = {
                [RANK_ROW_SILENT] = "no answer",
                [RANK_ROW_ENDED] = "ended",
                [RANK_ROW_UNKNOWN] = "not started",
                [RANK_ROW_LOST] = "lost",
        };

        if (r->known != RANK_ROW_ALIVE)
                return by_known[r->known];
        switch (r->k.state) {
        case 'R':
                return "yes (R)";
        case 'D':
                return "yes (D)";
        case 'T':
                return "stopped (T)";
        case 't':
                return "traced (t)";
        case 'Z':
        case 'X':
                return "zombie (Z)";
        default:
                return "yes (S)";
        }
}

/* Writes the cell STORE: an open request goes before the join. */
static void format_store(const struct rank_row *r, char *to, size_t size)
{
        char what[160];

        if (r->known != RANK_ROW_ALIVE) {
                snprintf(to, size, "%s", r->joined ? "joined" : "");
        } else if (rank_row_waits(r)) {
                rank_table_what_for(&r->k.wait, what, sizeof(what));
                snprintf(to, size, "waits %s %s", what, format_span(r->k.wait.ms).text);
                /* A request that needs no other rank is answered at once, unless the store is in
                 * trouble. */
        } else if (*r->k.wait.op && r->k.wait.ms >= 1000) {
                snprintf(to, size, "%s `%s` unanswered %s", r->k.wait.op, r->k.wait.key,
                         format_span(r->k.wait.ms).text);
        } else if (r->joined_ms >= 0) {
                snprintf(to, size, "joined after %s", format_span((uint64_t)r->joined_ms).text);
        } else {
                snprintf(to, size, "%s", r->joined ? "joined" : "not joined");
        }
}

/* Writes the cell STEP: "41/100 note". */
static void format_step(const struct rank_row *r, char *to, size_t size)
{
        const struct rank_progress *p = &r->progress;
        CLEANUP(buf_finish) struct buf text = BUF_INIT;

        *to = '\0';
        if (!rank_row_steps(r))
                return;
        buf_printf(&text, "%" PRId64, p->step);
        if (p->total > 0)
                buf_printf(&text, "/%" PRId64, p->total);
        if (p->note && *p->note) {
                CLEANUP(free_textp) char *note = xstrdup(p->note);

                printable_mask(note); /* for libsmartcols a backslash may be four columns wide */
                buf_appends(&text, " ");
                printable_cut(&text, note, strlen(note), PRINTABLE_NOTE);
        }
        snprintf(to, size, "%.*s", (int)buf_len(&text), (const char *)buf_data(&text));
}

/* --- lists of ranks --- */

char *rank_hosts_text(const struct rank_table *t, const struct intlist *ranks, size_t *ret_n)
{
        size_t *nodes = xcalloc(ranks->n, sizeof(*nodes)), n = 0;
        bool *seen = xcalloc(t->plan->n_nodes, sizeof(*seen));
        char *names;

        for (size_t i = 0; i < ranks->n; i++) {
                int node = t->rows[ranks->v[i]].node;

                if (!seen[node])
                        nodes[n++] = t->plan->nodes[node].host;
                seen[node] = true;
        }
        names = hosts_fold(t->hosts, nodes, n);
        free(nodes);
        free(seen);
        if (ret_n)
                *ret_n = n;
        return names;
}

char *rank_ranks_text(const struct rank_table *t, const struct intlist *ranks)
{
        CLEANUP(free_textp) char *text = plan_ranks_name(t->plan, ranks);

        if (strlen(text) > NAMES_MAX + strlen("ranks "))
                return xasprintf("%zu ranks", ranks->n);
        return STEAL(&text);
}

void rank_table_gather(const struct rank_table *t, rank_filter filter, struct intlist *to)
{
        for (size_t i = 0; i < t->n; i++)
                if (!filter || filter(&t->rows[i]))
                        intlist_add(to, (int)i);
}

char *rank_table_names(const struct rank_table *t, rank_filter filter)
{
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        CLEANUP(free_textp) char *ranks_text = NULL;
        CLEANUP(free_textp) char *where = NULL;
        size_t n;

        rank_table_gather(t, filter, &ranks);
        ranks_text = rank_ranks_text(t, &ranks);
        where = rank_hosts_text(t, &ranks, &n);
        if (strlen(where) > NAMES_MAX)
                return xasprintf("%s on %zu nodes", ranks_text, n);
        return xasprintf("%s on %s", ranks_text, where);
}

char *rank_table_missing_sentence(const struct rank_table *t, uint64_t after_ms)
{
        CLEANUP(free_textp) char *ranks_text = rank_table_names(t, rank_row_missing);

        return xasprintf("%s did not join within %s", ranks_text, format_span(after_ms).text);
}

/* --- rows of a kind --- */

int rank_compare_waits(const struct rank_row *a, const struct rank_row *b)
{
        int d = strcmp(a->k.wait.op, b->k.wait.op);

        return d ? d : strcmp(a->k.wait.key, b->k.wait.key);
}

/* Compares everything but numbers. */
static int compare_kinds(const struct rank_row *a, const struct rank_row *b)
{
        bool wait = rank_row_waits(a);
        /* Words of the cells make the kind; times and steps do not. */
        int d = strcmp(format_alive(a), format_alive(b));

        if (!d)
                d = a->joined - b->joined;
        if (!d)
                d = wait - rank_row_waits(b);
        return d || !wait ? d : rank_compare_waits(a, b);
}

/* Rows of a kind side by side, by rank. */
static int compare_kinds_and_ranks(const void *a, const void *b)
{
        const struct rank_row *x = *(const struct rank_row *const *)a,
                              *y = *(const struct rank_row *const *)b;
        int d = compare_kinds(x, y);

        return d ? d : x->rank - y->rank;
}

/* Returns what ranks of a kind do, as the end of a sentence. @stores: any rank has joined, so that
 * not having joined means something. */
static const char *rank_verb(const struct rank_row *r, bool stores)
{
        switch (r->known) {
        case RANK_ROW_SILENT:
                return "give no answer";
        case RANK_ROW_ENDED:
                return "have ended";
        case RANK_ROW_UNKNOWN:
                return "are not started yet";
        case RANK_ROW_LOST:
                return "are lost with their nodes";
        default:
                return r->k.state == 'T'   ? "are stopped (T)"
                       : r->k.state == 'D' ? "wait for a device (D)"
                       : r->joined         ? "have joined and run"
                       : stores            ? "run and have not joined"
                                           : "run";
        }
}

/* Appends ", step 1838-1840" of rows with progress. */
static void append_steps(struct buf *to, const struct rank_row *const *v, size_t n)
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

/* Appends "ranks 8-511 wait for `x` for 12.0s". */
static void append_fold(struct buf *to, const struct rank_table *t, const struct rank_row *const *v,
                        size_t n, bool stores)
{
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        CLEANUP(free_textp) char *names = NULL;
        uint32_t longest = 0;
        char what[160];

        for (size_t i = 0; i < n; i++) {
                intlist_add(&ranks, v[i]->rank);
                longest = MAX(longest, v[i]->k.wait.ms);
        }
        names = plan_ranks_name(t->plan, &ranks);
        if (rank_row_waits(v[0])) {
                rank_table_what_for(&v[0]->k.wait, what, sizeof(what));
                buf_printf(to, "%s wait %s for %s%s", names, what, format_span(longest).text,
                           v[0]->k.state == 'T' ? ", stopped (T)" : "");
        } else {
                buf_printf(to, "%s %s", names, rank_verb(v[0], stores));
        }
        append_steps(to, v, n);
        buf_appends(to, "\n");
}

/* --- the table --- */

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

static const struct text_column rank_columns[] = {
        [COL_RANK] = { "RANK", TEXT_RIGHT, 0, 0 },   [COL_HOST] = { "HOST", TEXT_NAME, 0, 8 },
        [COL_LOCAL] = { "LOCAL", TEXT_RIGHT, 5, 0 }, [COL_PID] = { "PID", TEXT_RIGHT, 4, 0 },
        [COL_ALIVE] = { "ALIVE", 0, 0, 7 },          [COL_SEEN] = { "LAST SEEN", 0, 3, 0 },
        [COL_STORE] = { "STORE", 0, 0, 9 },          [COL_STEP] = { "STEP", 0, 2, 0 },
        [COL_NOW] = { "NOW", TEXT_TRUNCATE, 1, 8 },
};

/* Adds the cells of a rank. Only the answer of a node has the last two. */
static void add_table_row(struct text_table *table, const struct rank_table *t,
                          const struct rank_row *r)
{
        char **cells = text_table_add(table), text[240], name[PLAN_RANK_NAME_MAX];

        cells[COL_RANK] = xstrdup(plan_rank_label(t->plan, r->rank, name));
        cells[COL_HOST] = xstrdup(t->hosts->v[t->plan->nodes[r->node].host].name);
        cells[COL_LOCAL] = xasprintf("%d", r->local_rank);
        if (r->k.pid)
                cells[COL_PID] = xasprintf("%u", r->k.pid);
        cells[COL_ALIVE] = xstrdup(format_alive(r));
        format_store(r, text, sizeof(text));
        cells[COL_STORE] = xstrdup(text);
        format_step(r, text, sizeof(text));
        cells[COL_STEP] = xstrdup(text);
        if (r->known != RANK_ROW_ALIVE)
                return;
        cells[COL_SEEN] =
                r->k.seen_ms == STATUS_NEVER
                        ? xasprintf("started %s ago, no word", format_span(r->k.started_ms).text)
                        : xasprintf("%s ago", format_span(r->k.seen_ms).text);
        cells[COL_NOW] = xasprintf("%u%% CPU%s%s", r->k.cpu_percent, *r->k.channel ? ", " : "",
                                   r->k.channel);
}

/* By rank. */
static int compare_row_ranks(const void *a, const void *b)
{
        return (*(const struct rank_row *const *)a)->rank -
               (*(const struct rank_row *const *)b)->rank;
}

/* Takes the rows of large kinds out of @v and appends a line for each kind. Returns how many rows
 * stay. */
static size_t fold_rows(const struct rank_table *t, const struct rank_row **v, size_t n,
                        bool stores, struct buf *lines)
{
        size_t kept = 0;

        if (n)
                qsort(v, n, sizeof(const struct rank_row *), compare_kinds_and_ranks);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && compare_kinds(v[i], v[end]) == 0; end++)
                        ;
                if (end - i > FOLD_ABOVE) {
                        append_fold(lines, t, v + i, end - i, stores);
                        continue;
                }
                memmove(v + kept, v + i, (end - i) * sizeof(const struct rank_row *));
                kept += end - i;
        }
        /* Back in the order of ranks, as the table shows them. */
        if (kept)
                qsort(v, kept, sizeof(const struct rank_row *), compare_row_ranks);
        return kept;
}

char *rank_table_print(const struct rank_table *t, rank_filter filter)
{
        const struct rank_row **v = xcalloc(t->n, sizeof(const struct rank_row *));
        bool stores = rank_table_count(t, rank_row_joined);
        CLEANUP(text_table_finish)
        struct text_table table = { .columns = rank_columns,
                                    .n_columns = ARRAY_SIZE(rank_columns),
                                    .width = t->width };
        struct buf lines = BUF_INIT, out = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;
        size_t n = 0;

        /* A job that uses no store of hnlaunch would have a column of "not joined". */
        table.hidden[COL_STORE] = !stores;
        table.hidden[COL_STEP] = !rank_table_count(t, rank_row_steps);
        for (size_t i = 0; i < t->n; i++)
                if (!filter || filter(&t->rows[i]))
                        v[n++] = &t->rows[i];
        n = fold_rows(t, v, n, stores, &lines);
        for (size_t i = 0; i < MIN(n, (size_t)ROWS_MAX); i++)
                add_table_row(&table, t, v[i]);
        text = text_table_format(&table);
        buf_appends(&out, text);
        /* Many small kinds: each has at most FOLD_ABOVE rows, and stays. */
        if (n > ROWS_MAX)
                buf_printf(&out, "... and %zu more\n", n - ROWS_MAX);
        buf_append(&out, buf_data(&lines), buf_len(&lines));
        buf_finish(&lines);
        free(v);
        return buf_len(&out) ? buf_steal(&out) : xstrdup("");
}
