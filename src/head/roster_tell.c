/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/strv.h"
#include "head/progress.h"
#include "head/roster.h"

enum {
        FOLD_ABOVE = 40, /* rows that say the same */
        ROWS_MAX = 200,  /* of one table */
        NAMES_MAX = 80,  /* characters of a list of ranks */
        GROUPS_MAX = 4,  /* of those who wait, in one message */
};

static void free_textp(char **text)
{
        free(*text);
}

static void intlist_finishp(struct intlist *l)
{
        intlist_finish(l);
}

/* --- words ------------------------------------------------------------------------------------ */

struct span {
        char text[32];
};

/* "120s", "10m" of round times, as people set them; else "2m03s", "12.3s". */
static struct span span(uint64_t ms)
{
        struct span s;

        if (ms % 1000 == 0 && ms < 600000)
                snprintf(s.text, sizeof(s.text), "%" PRIu64 "s", ms / 1000);
        else if (ms % 60000 == 0 && ms < 3600000)
                snprintf(s.text, sizeof(s.text), "%" PRIu64 "m", ms / 60000);
        else
                format_duration(s.text, sizeof(s.text), (int64_t)ms * 1000);
        return s;
}

static const char *meeting_name(const char *op)
{
        return !strcmp(op, "GATHER")      ? "all_gather"
               : !strcmp(op, "BROADCAST") ? "broadcast"
                                          : "barrier";
}

static bool is_meeting(const char *op)
{
        return strcmp(op, "WAIT") != 0 && strcmp(op, "GET") != 0;
}

/* "in barrier `x`", "for `x` and 3 more". */
static void what_for(const struct roster_wait *w, char *to, size_t size)
{
        if (is_meeting(w->op))
                snprintf(to, size, "in %s `%s`", meeting_name(w->op), w->key);
        else if (w->n_keys > 1)
                snprintf(to, size, "for `%s` and %u more", w->key, w->n_keys - 1);
        else
                snprintf(to, size, "for `%s`", w->key);
}

static const char *alive_text(const struct roster_row *r)
{
        static const char *const by_known[] = {
                [ROSTER_SILENT] = "no answer",
                [ROSTER_ENDED] = "ended",
                [ROSTER_UNKNOWN] = "not started",
        };

        if (r->known != ROSTER_ALIVE)
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

static void store_text(const struct roster_row *r, char *to, size_t size)
{
        char what[160];

        if (r->known != ROSTER_ALIVE) {
                snprintf(to, size, "%s", r->joined ? "joined" : "");
        } else if (roster_row_waits(r)) {
                what_for(&r->k.wait, what, sizeof(what));
                snprintf(to, size, "waits %s %s", what, span(r->k.wait.ms).text);
        } else if (*r->k.wait.op && r->k.wait.ms >= 1000) {
                snprintf(to, size, "%s `%s` unanswered %s", r->k.wait.op, r->k.wait.key,
                         span(r->k.wait.ms).text);
        } else if (r->joined_ms >= 0) {
                snprintf(to, size, "joined after %s", span((uint64_t)r->joined_ms).text);
        } else {
                snprintf(to, size, "%s", r->joined ? "joined" : "not joined");
        }
}

static void seen_text(const struct roster_row *r, char *to, size_t size)
{
        if (r->known != ROSTER_ALIVE)
                *to = '\0';
        else if (r->k.seen_ms == ROSTER_NEVER)
                snprintf(to, size, "started %s ago, no word", span(r->k.started_ms).text);
        else
                snprintf(to, size, "%s ago", span(r->k.seen_ms).text);
}

static void now_text(const struct roster_row *r, char *to, size_t size)
{
        if (r->known != ROSTER_ALIVE)
                *to = '\0';
        else
                snprintf(to, size, "%u%% CPU%s%s", r->k.cpu_percent, *r->k.channel ? ", " : "",
                         r->k.channel);
}

/* --- lists of ranks --------------------------------------------------------------------------- */

/* "gpu[001-002]", or "63 nodes" when that would be long. malloc'ed. */
static char *fold_hosts(const struct roster_table *t, const struct intlist *ranks)
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
        if (strlen(names) > NAMES_MAX) {
                free(names);
                names = xasprintf("%zu nodes", n);
        }
        free(nodes);
        free(seen);
        return names;
}

/* "rank 3", "ranks 0-2", "504 ranks". malloc'ed. */
static char *ranks_text(const struct intlist *ranks)
{
        CLEANUP(free_textp) char *list = intlist_fold(ranks);

        if (strlen(list) > NAMES_MAX)
                return xasprintf("%zu ranks", ranks->n);
        return xasprintf("rank%s %s", ranks->n == 1 ? "" : "s", list);
}

static char *ranks_on_hosts(const struct roster_table *t, const struct intlist *ranks)
{
        CLEANUP(free_textp) char *who = ranks_text(ranks);
        CLEANUP(free_textp) char *where = fold_hosts(t, ranks);

        return xasprintf("%s on %s", who, where);
}

static void gather(const struct roster_table *t, roster_filter filter, struct intlist *to)
{
        for (size_t i = 0; i < t->n; i++)
                if (!filter || filter(&t->rows[i]))
                        intlist_add(to, (int)i);
}

char *roster_table_names(const struct roster_table *t, roster_filter filter)
{
        CLEANUP(intlist_finishp) struct intlist ranks = { 0 };

        gather(t, filter, &ranks);
        return ranks_on_hosts(t, &ranks);
}

char *roster_missing_sentence(const struct roster_table *t, uint64_t after_ms)
{
        CLEANUP(free_textp) char *who = roster_table_names(t, roster_row_missing);

        return xasprintf("%s did not join within %s", who, span(after_ms).text);
}

/* --- rows that say the same ------------------------------------------------------------------- */

/* What makes rows equal: everything but numbers. */
static int by_kind(const struct roster_row *a, const struct roster_row *b)
{
        bool wait = roster_row_waits(a);
        int d = strcmp(alive_text(a), alive_text(b));

        if (!d)
                d = a->joined - b->joined;
        if (!d)
                d = wait - roster_row_waits(b);
        if (!d && wait)
                d = strcmp(a->k.wait.op, b->k.wait.op);
        if (!d && wait)
                d = strcmp(a->k.wait.key, b->k.wait.key);
        return d;
}

static int by_kind_and_rank(const void *a, const void *b)
{
        const struct roster_row *x = *(const struct roster_row *const *)a,
                                *y = *(const struct roster_row *const *)b;
        int d = by_kind(x, y);

        return d ? d : x->rank - y->rank;
}

static const char *verb_of(const struct roster_row *r, bool stores)
{
        switch (r->known) {
        case ROSTER_SILENT:
                return "give no answer";
        case ROSTER_ENDED:
                return "have ended";
        case ROSTER_UNKNOWN:
                return "are not started yet";
        default:
                return r->k.state == 'T'   ? "are stopped (T)"
                       : r->k.state == 'D' ? "wait for a device (D)"
                       : r->joined         ? "have joined and run"
                       : stores            ? "run and have not joined"
                                           : "run";
        }
}

/* "ranks 8-511 wait for `x` since 12.0s". */
static void fold_line(struct buf *to, const struct roster_row *const *v, size_t n, bool stores)
{
        CLEANUP(intlist_finishp) struct intlist ranks = { 0 };
        CLEANUP(free_textp) char *list = NULL;
        uint32_t longest = 0;
        char what[160];

        for (size_t i = 0; i < n; i++) {
                intlist_add(&ranks, v[i]->rank);
                longest = MAX(longest, v[i]->k.wait.ms);
        }
        list = intlist_fold(&ranks);
        if (roster_row_waits(v[0])) {
                what_for(&v[0]->k.wait, what, sizeof(what));
                buf_printf(to, "ranks %s wait %s since %s%s\n", list, what, span(longest).text,
                           v[0]->k.state == 'T' ? ", stopped (T)" : "");
        } else {
                buf_printf(to, "ranks %s %s\n", list, verb_of(v[0], stores));
        }
}

/* --- the table -------------------------------------------------------------------------------- */

enum column { COL_RANK, COL_HOST, COL_LOCAL, COL_PID, COL_ALIVE, COL_SEEN, COL_STORE, COL_NOW };

static struct libscols_table *new_table(bool stores)
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
                        { "NOW", 0 } };
        struct libscols_table *t = scols_new_table();

        if (!t)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                scols_table_new_column(t, columns[i].name, 0.1,
                                       columns[i].flags |
                                               (i == COL_STORE && !stores ? SCOLS_FL_HIDDEN : 0));
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

static void add_row(struct libscols_table *table, const struct roster_table *t,
                    const struct roster_row *r)
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
        scols_line_set_data(line, COL_ALIVE, alive_text(r));
        seen_text(r, text, sizeof(text));
        scols_line_set_data(line, COL_SEEN, text);
        store_text(r, text, sizeof(text));
        scols_line_set_data(line, COL_STORE, text);
        now_text(r, text, sizeof(text));
        scols_line_set_data(line, COL_NOW, text);
}

static int by_rank(const void *a, const void *b)
{
        return (*(const struct roster_row *const *)a)->rank -
               (*(const struct roster_row *const *)b)->rank;
}

/* Takes the rows of large kinds out of @v and writes a line for each; returns how many stay. */
static size_t fold(const struct roster_row **v, size_t n, bool stores, struct buf *lines)
{
        size_t kept = 0;

        if (n)
                qsort(v, n, sizeof(const struct roster_row *), by_kind_and_rank);
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && by_kind(v[i], v[end]) == 0; end++)
                        ;
                if (end - i > FOLD_ABOVE) {
                        fold_line(lines, v + i, end - i, stores);
                        continue;
                }
                memmove(v + kept, v + i, (end - i) * sizeof(const struct roster_row *));
                kept += end - i;
        }
        if (kept)
                qsort(v, kept, sizeof(const struct roster_row *), by_rank);
        return kept;
}

char *roster_table_print(const struct roster_table *t, roster_filter filter)
{
        const struct roster_row **v = xcalloc(t->n, sizeof(const struct roster_row *));
        bool stores = roster_table_count(t, roster_row_joined);
        struct libscols_table *table = new_table(stores);
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

static void put_table(struct diag *d, const struct roster_table *t, roster_filter filter)
{
        CLEANUP(free_textp) char *text = roster_table_print(t, filter);

        diag_row(d, "%s", text);
}

/* --- who waits for what ----------------------------------------------------------------------- */

/* Those who wait for the same thing. */
struct group {
        const struct roster_wait *wait; /* the longest */
        struct intlist ranks;
};

struct groups {
        struct group *v;
        size_t n;
};

static void groups_finish(struct groups *g)
{
        for (size_t i = 0; i < g->n; i++)
                intlist_finish(&g->v[i].ranks);
        free(g->v);
}

static int by_longest(const void *a, const void *b)
{
        const struct group *x = a, *y = b;

        return x->wait->ms == y->wait->ms  ? x->ranks.v[0] - y->ranks.v[0]
               : x->wait->ms > y->wait->ms ? -1
                                           : 1;
}

static bool same_wait(const struct roster_row *a, const struct roster_row *b)
{
        return !strcmp(a->k.wait.op, b->k.wait.op) && !strcmp(a->k.wait.key, b->k.wait.key);
}

static int by_wait(const void *a, const void *b)
{
        const struct roster_row *x = *(const struct roster_row *const *)a,
                                *y = *(const struct roster_row *const *)b;
        int d = strcmp(x->k.wait.op, y->k.wait.op);

        if (!d)
                d = strcmp(x->k.wait.key, y->k.wait.key);
        return d ? d : x->rank - y->rank;
}

/* The longest waits first. */
static void find_groups(const struct roster_table *t, struct groups *g)
{
        const struct roster_row **v = xcalloc(t->n, sizeof(const struct roster_row *));
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                if (roster_row_waits(&t->rows[i]))
                        v[n++] = &t->rows[i];
        if (n)
                qsort(v, n, sizeof(const struct roster_row *), by_wait);
        g->v = xcalloc(n, sizeof(*g->v));
        for (size_t i = 0; i < n; i++) {
                if (!i || !same_wait(v[i - 1], v[i]))
                        g->v[g->n++].wait = &v[i]->k.wait;
                intlist_add(&g->v[g->n - 1].ranks, v[i]->rank);
                if (v[i]->k.wait.ms > g->v[g->n - 1].wait->ms)
                        g->v[g->n - 1].wait = &v[i]->k.wait;
        }
        if (g->n)
                qsort(g->v, g->n, sizeof(*g->v), by_longest);
        free(v);
}

/* "ranks 0-2 wait in barrier `x` since 12.0s". malloc'ed. */
static char *group_text(const struct group *g)
{
        CLEANUP(free_textp) char *who = ranks_text(&g->ranks);
        char what[160];

        what_for(g->wait, what, sizeof(what));
        return xasprintf("%s wait%s %s since %s", who, g->ranks.n == 1 ? "s" : "", what,
                         span(g->wait->ms).text);
}

static void group_notes(struct diag *d, const struct groups *g, size_t from)
{
        for (size_t i = from; i < MIN(g->n, (size_t)GROUPS_MAX); i++) {
                CLEANUP(free_textp) char *text = group_text(&g->v[i]);

                diag_note(d, "%s", text);
        }
        if (g->n > MAX(from, (size_t)GROUPS_MAX))
                diag_note(d, "and so do others, for %zu more keys",
                          g->n - MAX(from, (size_t)GROUPS_MAX));
}

/* --- notes and help --------------------------------------------------------------------------- */

/* "510 ranks joined in 0.9s-2.3s, 6 of them on gpu026". */
static void joined_note(const struct roster_table *t, struct diag *d)
{
        CLEANUP(intlist_finishp) struct intlist missing = { 0 };
        size_t joined = roster_table_count(t, roster_row_joined), beside = 0;
        int64_t first = INT64_MAX, last = -1;
        char when[80] = "", where[320] = "";
        bool one_node = true;

        gather(t, roster_row_missing, &missing);
        for (size_t i = 0; i < missing.n; i++)
                one_node &= t->rows[missing.v[i]].node == t->rows[missing.v[0]].node;
        for (size_t i = 0; i < t->n; i++) {
                const struct roster_row *r = &t->rows[i];

                beside += missing.n && r->joined && r->node == t->rows[missing.v[0]].node;
                if (r->joined && r->joined_ms >= 0) {
                        first = MIN(first, r->joined_ms);
                        last = MAX(last, r->joined_ms);
                }
        }
        if (last >= 0)
                snprintf(when, sizeof(when), " in %s%s%s", span((uint64_t)first).text,
                         last > first ? "-" : "", last > first ? span((uint64_t)last).text : "");
        if (one_node && missing.n && t->plan->num_nodes > 1)
                snprintf(where, sizeof(where), ", %zu of them on %.256s", beside,
                         t->hosts->v[t->rows[missing.v[0]].node].name);
        diag_note(d, "%zu rank%s joined%s%s", joined, joined == 1 ? "" : "s", when, where);
}

static const struct roster_row *first_alive(const struct roster_table *t, roster_filter filter)
{
        for (size_t i = 0; i < t->n; i++)
                if (filter(&t->rows[i]) && t->rows[i].known == ROSTER_ALIVE)
                        return &t->rows[i];
        return NULL;
}

/* What a person would type next. */
static void look_help(const struct roster_table *t, struct diag *d, roster_filter filter)
{
        const struct roster_row *r = first_alive(t, filter);
        const struct host *h;

        if (!r)
                return;
        h = &t->hosts->v[t->plan->nodes[r->node].host];
        if (r->k.state == 'T')
                diag_help(d, "rank %d is stopped; it goes on after: %s%s%skill -CONT %u", r->rank,
                          h->local ? "" : "ssh ", h->local ? "" : h->name, h->local ? "" : " ",
                          r->k.pid);
        else
                diag_help(d,
                          "see what rank %d does: %s%s%sgdb -p %u -batch -ex bt  (python: "
                          "py-spy dump -p %u)",
                          r->rank, h->local ? "" : "ssh ", h->local ? "" : h->name,
                          h->local ? "" : " ", r->k.pid, r->k.pid);
}

static void silent_nodes(const struct roster_table *t, struct diag *d)
{
        size_t *nodes = xcalloc(t->plan->n_nodes, sizeof(*nodes)), n = 0;
        bool *listed = xcalloc(t->plan->n_nodes, sizeof(*listed));
        char *names;

        for (size_t i = 0; i < t->n; i++) {
                const struct roster_row *r = &t->rows[i];

                if (r->known == ROSTER_SILENT && !listed[r->node])
                        nodes[n++] = t->plan->nodes[r->node].host;
                listed[r->node] |= r->known == ROSTER_SILENT;
        }
        if (n) {
                names = hosts_fold(t->hosts, nodes, n);
                diag_note(d, "no answer from %s", names);
                free(names);
        }
        free(nodes);
        free(listed);
}

static void stranger_note(const struct roster_table *t, struct diag *d)
{
        if (t->strangers)
                diag_note(d, "%u connection%s to the store %s turned away: not from this job",
                          t->strangers, t->strangers == 1 ? "" : "s",
                          t->strangers == 1 ? "was" : "were");
}

/* --- messages --------------------------------------------------------------------------------- */

void roster_tell_missing(const struct roster_table *t, struct diags *d, uint64_t after_ms,
                         bool fatal)
{
        size_t n = roster_table_count(t, roster_row_missing);
        struct groups g = { 0 };
        struct diag *di;

        di = fatal ? diag_add(d, 402, 75, "%zu of %zu ranks did not join within %s", n, t->n,
                              span(after_ms).text)
                   : diag_warn(d, 402, "%zu of %zu ranks did not join within %s", n, t->n,
                               span(after_ms).text);
        put_table(di, t, roster_row_missing);
        joined_note(t, di);
        find_groups(t, &g);
        group_notes(di, &g, 0);
        groups_finish(&g);
        silent_nodes(t, di);
        stranger_note(t, di);
        look_help(t, di, roster_row_missing);
        if (fatal)
                diag_help(di, "or wait longer: --start-timeout %s", span(after_ms * 5).text);
        else
                diag_help(di, "the job goes on; --start-timeout %s would end it here",
                          span(after_ms).text);
}

static bool is_unmarked(const struct roster_row *r)
{
        return !r->marked;
}

/* Marks those in the groups whose wait is long enough; returns how many groups that are. */
static size_t mark_waiting(struct roster_table *t, const struct groups *g, uint32_t threshold_ms)
{
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                t->rows[i].marked = false;
        for (; n < g->n && g->v[n].wait->ms >= threshold_ms; n++)
                for (size_t i = 0; i < g->v[n].ranks.n; i++)
                        t->rows[g->v[n].ranks.v[i]].marked = true;
        return n;
}

bool roster_tell_waiting(struct roster_table *t, struct diags *d, uint32_t threshold_ms)
{
        CLEANUP(free_textp) char *first = NULL;
        CLEANUP(free_textp) char *missing = NULL;
        CLEANUP(groups_finish) struct groups g = { 0 };
        size_t n_missing;
        struct diag *di;

        find_groups(t, &g);
        if (!mark_waiting(t, &g, threshold_ms))
                return false;
        first = group_text(&g.v[0]);
        n_missing = roster_table_count(t, is_unmarked);
        if (n_missing) {
                missing = roster_table_names(t, is_unmarked);
                di = diag_warn(d, 404, "%s; %s %s not come", first, missing,
                               n_missing == 1 ? "has" : "have");
                put_table(di, t, is_unmarked);
        } else {
                di = diag_warn(d, 404, "%s; all %zu ranks wait, nobody is left to come", first,
                               t->n);
        }
        group_notes(di, &g, 1);
        silent_nodes(t, di);
        stranger_note(t, di);
        look_help(t, di, n_missing ? is_unmarked : roster_row_waits);
        diag_help(di, "Ctrl-\\ shows all ranks; --wait-warn TIME sets when this is told, 0 never");
        return true;
}

void roster_tell_all(const struct roster_table *t, struct diags *d, uint64_t after_ms)
{
        struct groups g = { 0 };
        struct diag *di = diag_tell(d, "%zu rank%s on %d node%s, %s after the start", t->n,
                                    t->n == 1 ? "" : "s", t->plan->num_nodes,
                                    t->plan->num_nodes == 1 ? "" : "s", span(after_ms).text);

        put_table(di, t, NULL);
        find_groups(t, &g);
        group_notes(di, &g, 0);
        groups_finish(&g);
        silent_nodes(t, di);
        stranger_note(t, di);
}
