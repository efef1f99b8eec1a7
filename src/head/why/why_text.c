/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that do the same share a row of the table: the text of the row is its key, and the ranks
 * beyond ROWS_MAX rows become a number. The JSON has the rows, each rank, the sources that
 * contribute to the finding, and the reasons for missing stacks, folded by reason. The report for
 * the log has the stacks in full, up to REPORT_MAX.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/hosts/hosts.h"
#include "head/why/why.h"

enum { ROW_FRAMES = 5, ROWS_MAX = 24, REPORT_MAX = 24 << 20, STATE_WIDTH = 5 };

/* --- rows ------------------------------------------------------------------------------------- */

/* Returns the word for the STATE column; @state is room for a letter. */
static const char *describe_life(const struct why_rank *r, char state[4])
{
        static const char *const texts[] = { "", "ended", "no answer", "not started", "lost" };

        if (r->life != WHY_ALIVE)
                return texts[r->life];
        snprintf(state, 4, "%c", r->seen.state ? r->seen.state : '?');
        return state;
}

/* Returns the text that ranks of one row have in common. */
static char *describe_row(const struct why_rank *r)
{
        CLEANUP(free_textp) char *line = stack_line(&r->stack, 0, ROW_FRAMES);
        char state[4];
        struct buf b = BUF_INIT;

        buf_printf(&b, "%-*s ", STATE_WIDTH, describe_life(r, state));
        if (*r->wait)
                buf_printf(&b, "store: waits %s  ", r->wait);
        if (*line)
                buf_appends(&b, line);
        else if (r->life == WHY_ALIVE && *r->seen.channel)
                buf_printf(&b, "in the kernel's %s", r->seen.channel);
        return buf_steal(&b);
}

/* A row: its ranks, their processor time, and state and place, which .what has, too. */
struct why_row {
        char *who, *what;
        char cpu[24], state[16];
        const char *where; /* in .what */
        bool odd;
};

/* The rows in the making, by place in the list of ranks. */
struct why_rows {
        const struct why_rank *ranks;
        size_t n;
        bool *odd;
        char **texts; /* NULL = told */
        struct why_row made[ROWS_MAX];
        size_t n_made;
};

/* Whether two ranks may share a row: numbers in a row are those of one world and role. */
static bool is_same_role(const struct why_rank *a, const struct why_rank *b)
{
        return a->world == b->world && (!a->role || !strcmp(a->role, b->role));
}

/* Returns "ranks 0-2", or with a role "role a, ranks 0-2" or "role a:1, ranks 0-2": numbers of the
 * world of @r. */
static char *name_row_ranks(const struct why_rank *r, const struct intlist *ranks)
{
        CLEANUP(intlist_finish) struct intlist own = { 0 };
        CLEANUP(free_textp) char *list = NULL;
        char replica[16] = "";

        for (size_t i = 0; i < ranks->n; i++)
                intlist_add(&own, ranks->v[i] - (r->role ? r->first : 0));
        list = intlist_fold(&own);
        if (r->role && r->replica >= 0)
                snprintf(replica, sizeof(replica), ":%d", r->replica);
        return xasprintf("%s%s%s%s%s %s", r->role ? "role " : "", r->role ? r->role : "", replica,
                         r->role ? ", " : "", ranks->n > 1 ? "ranks" : "rank", list);
}

/* Makes the row of rank @i and all ranks with the same text, and marks these ranks as told. */
static void add_row(struct why_rows *w, size_t i)
{
        struct why_row *r = &w->made[w->n_made++];
        CLEANUP(intlist_finish) struct intlist same = { 0 };
        CLEANUP(free_textp) char *list = NULL;
        uint32_t low = UINT32_MAX, high = 0;
        char state[4];

        r->what = w->texts[i];
        r->odd = w->odd[i];
        snprintf(r->state, sizeof(r->state), "%s", describe_life(&w->ranks[i], state));
        /* The state in front is padded to STATE_WIDTH. */
        r->where = r->what + MAX(strlen(r->state), (size_t)STATE_WIDTH) + 1;
        w->texts[i] = NULL;
        for (size_t k = i; k < w->n; k++) {
                const struct inspected *s = &w->ranks[k].seen;

                if (k != i && (!w->texts[k] || w->odd[k] != r->odd ||
                               !is_same_role(&w->ranks[i], &w->ranks[k]) ||
                               strcmp(w->texts[k], r->what) != 0))
                        continue;
                if (k != i)
                        free_textp(&w->texts[k]);
                w->texts[k] = NULL;
                intlist_add(&same, w->ranks[k].rank);
                if (s->pid && s->cpu_permille != STATUS_NEVER) {
                        low = MIN(low, s->cpu_permille / 10);
                        high = MAX(high, s->cpu_permille / 10);
                }
        }
        list = name_row_ranks(&w->ranks[i], &same);
        r->who = same.n > 1 ? STEAL(&list) : xasprintf("%s on %s", list, w->ranks[i].host);
        /* Without a measurement low is above high, and the cell stays empty. */
        if (low == high)
                snprintf(r->cpu, sizeof(r->cpu), "%u %%", low);
        else if (high)
                snprintf(r->cpu, sizeof(r->cpu), "%u-%u %%", low, high);
}

/* Writes the rows as lines of a table, and as cells for a table of any width. */
static void put_rows(struct why_rows *w, json_t *rows, json_t *cells)
{
        size_t who = 0, cpu = 0;

        for (size_t i = 0; i < w->n_made; i++) {
                who = MAX(who, strlen(w->made[i].who));
                cpu = MAX(cpu, strlen(w->made[i].cpu));
        }
        for (size_t i = 0; i < w->n_made; i++) {
                struct why_row *r = &w->made[i];
                CLEANUP(free_textp)
                char *row = xasprintf("%-*s  %*s%s%s%s", (int)who, r->who, (int)cpu, r->cpu,
                                      cpu ? "  " : "", r->what, r->odd ? "  (differs)" : "");

                json_array_append_new(rows, json_text(row));
                json_array_append_new(cells,
                                      json_pack("{s:o, s:s, s:s, s:o, s:b}", "ranks",
                                                json_text(r->who), "cpu", r->cpu, "state", r->state,
                                                "where", json_text(r->where), "differs", r->odd));
                free(r->who);
                free(r->what);
        }
}

/* Adds the rows to the answer @j. */
static void describe_rows(json_t *j, const struct why_finding *f, const struct why_rank *ranks,
                          size_t n)
{
        struct why_rows w = { .ranks = ranks, .n = n };
        json_t *rows = json_array(), *cells = json_array();
        size_t more = 0;

        w.odd = xcalloc(n, sizeof(*w.odd));
        w.texts = xcalloc(n, sizeof(*w.texts));
        for (size_t i = 0, k = 0; i < n; i++) {
                w.texts[i] = describe_row(&ranks[i]);
                if (k < f->outliers.n && f->outliers.v[k] == ranks[i].rank) {
                        w.odd[i] = true;
                        k++;
                }
        }
        /* Outliers first: the number of rows is limited. */
        for (int odd = 1; odd >= 0; odd--)
                for (size_t i = 0; i < n; i++)
                        if (w.texts[i] && w.odd[i] == odd && w.n_made < ROWS_MAX)
                                add_row(&w, i);
        put_rows(&w, rows, cells);
        for (size_t i = 0; i < n; i++) {
                more += w.texts[i] != NULL;
                free(w.texts[i]);
        }
        if (more) {
                json_t *text = json_sprintf("and %zu more rank%s", more, more == 1 ? "" : "s");

                json_array_append(rows, text);
                json_array_append_new(cells, json_pack("{s:o}", "ranks", text));
        }
        json_object_set_new(j, "rows", rows);
        json_object_set_new(j, "table", cells);
        free(w.texts);
        free(w.odd);
}

/* --- what was not seen ------------------------------------------------------------------------ */

/* Returns the hosts of the ranks of @same, "gpu[001-004]", malloc'ed. A long list is their number.
 */
static char *fold_why_hosts(const struct why_rank *ranks, const struct intlist *same)
{
        enum { LONG = 60 };
        CLEANUP(hosts_finish) struct hosts hosts = HOSTS_INIT;
        size_t *index = xcalloc(same->n, sizeof(*index));
        char *folded;

        for (size_t i = 0; i < same->n; i++)
                if (!hosts_find(&hosts, ranks[same->v[i]].host))
                        hosts_add(&hosts)->name = xstrdup(ranks[same->v[i]].host);
        for (size_t i = 0; i < hosts.n; i++)
                index[i] = i;
        folded = hosts_fold(&hosts, index, hosts.n);
        free(index);
        if (strlen(folded) <= LONG)
                return folded;
        free(folded);
        return xasprintf("%zu nodes", hosts.n);
}

/* Returns "no stack of ranks 0-1 on gpu[001-002]: not installed: eu-stack, gdb" for each reason. */
static json_t *make_problems(const struct why_rank *ranks, size_t n)
{
        bool *told = xcalloc(n, sizeof(*told));
        json_t *problems = json_array();

        for (size_t i = 0; i < n; i++) {
                CLEANUP(intlist_finish) struct intlist same = { 0 }, numbers = { 0 };
                CLEANUP(free_textp) char *list = NULL, *text = NULL, *hosts = NULL;
                /* The agent's words, equal on all nodes with the same reason. */
                const char *why = ranks[i].seen.problem;

                /* The end of a rank is no missing stack. */
                if (told[i] || !*why || ranks[i].life != WHY_ALIVE)
                        continue;
                for (size_t k = i; k < n; k++) {
                        if (told[k] || !is_same_role(&ranks[i], &ranks[k]) ||
                            strcmp(ranks[k].seen.problem, why) != 0)
                                continue;
                        told[k] = true;
                        intlist_add(&same, (int)k);
                        intlist_add(&numbers, ranks[k].rank);
                }
                list = name_row_ranks(&ranks[i], &numbers);
                hosts = fold_why_hosts(ranks, &same);
                text = strcmp(why, INSPECT_NO_PYTHON)
                               ? xasprintf("no stack of %s on %s: %s", list, hosts, why)
                               : xasprintf("%s on %s: " WHY_C_ONLY, list, hosts);
                json_array_append_new(problems, json_text(text));
        }
        free(told);
        return problems;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Returns a rank; names are a promise (docs/protocol.md), so "lost" stays "silent". */
static json_t *describe_why_rank(const struct why_rank *r)
{
        static const char *const lives[] = { "alive", "ended", "silent", "not started", "silent" };
        json_t *stack = json_array();
        json_t *j =
                json_pack("{s:i, s:o, s:s, s:b, s:b}", "rank", r->rank, "host", json_text(r->host),
                          "life", lives[r->life], "waits", r->waits, "moved", r->moved);

        if (r->role) {
                json_object_set_new(j, "role", json_text(r->role));
                json_object_set_new(j, "role_rank", json_integer(r->rank - r->first));
                if (r->replica >= 0)
                        json_object_set_new(j, "replica", json_integer(r->replica));
        }
        for (size_t i = 0; i < r->stack.n; i++) {
                const struct stack_frame *f = &r->stack.v[i];
                CLEANUP(free_textp)
                char *text = xasprintf(*f->place ? "%s (%s)" : "%s", f->function, f->place);

                json_array_append_new(stack, json_text(text));
        }
        json_object_set_new(j, "stack", stack);
        if (*r->operation)
                json_object_set_new(j, "operation", json_text(r->operation));
        if (*r->wait) {
                json_object_set_new(j, "store", json_text(r->wait));
                json_object_set_new(j, "store_ms", json_integer(r->wait_ms));
        }
        /* No process was seen: the node has not answered, or the rank has ended. */
        if (!r->seen.pid)
                return j;
        json_object_set_new(j, "pid", json_integer(r->seen.pid));
        json_object_set_new(j, "name", json_text(r->seen.name));
        json_object_set_new(j, "state", json_text((const char[]){ (char)r->seen.state, '\0' }));
        json_object_set_new(j, "channel", json_text(r->seen.channel));
        json_object_set_new(j, "blocked", json_text(r->seen.blocked));
        json_object_set_new(j, "source", json_text(r->seen.source));
        if (r->seen.cpu_permille != STATUS_NEVER)
                json_object_set_new(j, "cpu_percent", json_integer(r->seen.cpu_permille / 10));
        return j;
}

/* Lists the sources with evidence of a rank or of the finding. */
static json_t *describe_sources(const struct why_finding *f, const struct why_rank *ranks, size_t n)
{
        json_t *sources = json_array();
        bool store = false, kernel = false, stacks = false;

        for (size_t i = 0; i < n; i++) {
                store |= *ranks[i].wait;
                kernel |= ranks[i].seen.pid;
                stacks |= ranks[i].stack.n > 0;
        }
        if (store)
                json_array_append_new(sources, json_string("store"));
        if (kernel)
                json_array_append_new(sources, json_string("kernel"));
        if (stacks)
                json_array_append_new(sources, json_string("stacks"));
        if (f->uses_ras)
                json_array_append_new(sources, json_string("ras"));
        return sources;
}

json_t *why_describe(const struct why_finding *f, const struct why_rank *ranks, size_t n)
{
        /* By enum why_kind. */
        static const char *const kinds[] = { "no hang", "hang", "mismatch", "all wait" };
        json_t *all = json_array(), *j;

        for (size_t i = 0; i < n; i++)
                json_array_append_new(all, describe_why_rank(&ranks[i]));
        j = json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "v", 1, "kind", kinds[f->kind],
                      "text", json_text(f->text), "outliers",
                      json_numbers(f->outliers.v, f->outliers.n), "problems",
                      make_problems(ranks, n), "ranks", all, "notes", json_texts(&f->notes),
                      "sources", describe_sources(f, ranks, n));
        describe_rows(j, f, ranks, n);
        return j;
}

char *why_report(const struct why_finding *f, const struct why_rank *ranks, size_t n)
{
        struct buf b = BUF_INIT;
        char name[PLAN_RANK_NAME_MAX];

        buf_printf(&b, "%s\n", f->text);
        for (size_t i = 0; i < f->notes.n; i++)
                buf_printf(&b, "note: %s\n", f->notes.v[i]);
        for (size_t i = 0; i < n; i++) {
                const struct inspected *s = &ranks[i].seen;

                buf_printf(&b, "\n=== %s on %s", why_rank_name(&ranks[i], name), ranks[i].host);
                if (s->pid)
                        buf_printf(&b, ", pid %u (%s), state %c, channel %s", s->pid, s->name,
                                   s->state ? s->state : '?', *s->channel ? s->channel : "-");
                if (s->pid && s->cpu_permille != STATUS_NEVER)
                        buf_printf(&b, ", %u %% of a core", s->cpu_permille / 10);
                if (*s->blocked)
                        buf_printf(&b, ", in a call to %s", s->blocked);
                if (*ranks[i].wait)
                        buf_printf(&b, ", store: waits %s for %" PRIu32 " ms", ranks[i].wait,
                                   ranks[i].wait_ms);
                buf_printf(&b, "\n%s%s", *s->problem ? s->problem : "", *s->problem ? "\n" : "");
                if (s->stack && *s->stack && buf_len(&b) < REPORT_MAX)
                        buf_printf(&b, "--- %s\n%s", s->source, s->stack);
        }
        buf_appends(&b, "\n");
        return buf_steal(&b);
}
