/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages share their parts: a table of the ranks in question, groups of ranks that wait
 * for the same key (the longest wait first), nodes without an answer, rejected connections, and the
 * command for a look at the first living rank. HN404 names the ranks of the world outside of all
 * groups as missing; when every rank waits, the world is in a deadlock.
 */
#include "head/status/rank_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "base/intlist.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/status/rank_table_text.h"

enum {
        GROUPS_MAX = 4, /* of waiting ranks, in a message */
};

/* Adds the table of ranks chosen by @filter. */
static void add_rank_rows(struct diag *d, const struct rank_table *t, rank_filter filter)
{
        CLEANUP(free_textp) char *text = rank_table_print(t, filter);

        diag_row(d, "%s", text);
}

void rank_table_tell_other_store(const struct rank_table *t, struct diags *d,
                                 const struct node_status_other *other, uint64_t after_ms)
{
        /* A launcher within a rank, such as torchrun, inherits the rank's variables and gives its
         * own processes another port. */
        struct format_span age = format_span(after_ms);
        char name[PLAN_RANK_NAME_MAX];
        struct diag *di = diag_warn(d, HN_OTHER_STORE,
                                    "no rank has come to PyTorch's store in %s, and a process "
                                    "looks for another store",
                                    age.text);

        diag_place(di, "%s (pid %u), started by %s on %s, has MASTER_PORT=%u", other->name,
                   other->pid, plan_rank_name(t->plan, (int)other->rank, name),
                   t->hosts->v[t->plan->ranks[other->rank].node].name, other->port);
        diag_note(di, "TORCHELASTIC_USE_AGENT_STORE=True, which it inherits, says that a store is "
                      "served there already");
        diag_help(di, "is this a program that starts ranks of its own? hnlaunch --per-node starts "
                      "it once on each node");
}

/* --- groups of waiting ranks --- */

/* Ranks waiting for the same key. */
struct rank_wait_group {
        const struct node_status_wait *wait; /* the longest */
        struct intlist ranks;
};

struct rank_wait_groups {
        struct rank_wait_group *v;
        size_t n;
};

/* Fits CLEANUP(). */
static void finish_wait_groups(struct rank_wait_groups *g)
{
        for (size_t i = 0; i < g->n; i++)
                intlist_finish(&g->v[i].ranks);
        free(g->v);
}

/* The longest wait first, of equal ones that of the lowest rank. */
static int compare_longest(const void *a, const void *b)
{
        const struct rank_wait_group *x = a, *y = b;

        return x->wait->ms == y->wait->ms  ? x->ranks.v[0] - y->ranks.v[0]
               : x->wait->ms > y->wait->ms ? -1
                                           : 1;
}

/* Equal waits of one world side by side, by rank. */
static int compare_waits_and_ranks(const void *a, const void *b)
{
        const struct rank_row *x = *(const struct rank_row *const *)a,
                              *y = *(const struct rank_row *const *)b;
        int d = x->world - y->world;

        d = d ? d : rank_compare_waits(x, y);
        return d ? d : x->rank - y->rank;
}

/* Finds the groups, the longest wait first. */
static void find_wait_groups(const struct rank_table *t, struct rank_wait_groups *g)
{
        const struct rank_row **v = xcalloc(t->n, sizeof(const struct rank_row *));
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                if (rank_row_waits(&t->rows[i]))
                        v[n++] = &t->rows[i];
        if (n)
                qsort(v, n, sizeof(const struct rank_row *), compare_waits_and_ranks);
        g->v = xcalloc(n, sizeof(*g->v));
        for (size_t i = 0; i < n; i++) {
                if (!i || v[i - 1]->world != v[i]->world || rank_compare_waits(v[i - 1], v[i]) != 0)
                        g->v[g->n++].wait = &v[i]->k.wait;
                intlist_add(&g->v[g->n - 1].ranks, v[i]->rank);
                /* Ranks of a group came at different times. */
                if (v[i]->k.wait.ms > g->v[g->n - 1].wait->ms)
                        g->v[g->n - 1].wait = &v[i]->k.wait;
        }
        if (g->n)
                qsort(g->v, g->n, sizeof(*g->v), compare_longest);
        free(v);
}

/* Returns "ranks 0-2 wait in barrier `x` for 12.0s", of all ranks in the job "all 3 ranks wait
 * ...". malloc'ed. */
static char *format_wait_group(const struct rank_table *t, const struct rank_wait_group *g)
{
        CLEANUP(free_textp)
        char *ranks_text = g->ranks.n == t->n && t->n > 1 ? xasprintf("all %zu ranks", t->n)
                                                          : rank_ranks_text(t, &g->ranks);
        char what[160];

        rank_table_what_for(g->wait, what, sizeof(what));
        return xasprintf("%s wait%s %s for %s", ranks_text, g->ranks.n == 1 ? "s" : "", what,
                         format_span(g->wait->ms).text);
}

/* --- notes and help --- */

/* Notes "510 ranks joined in 0.9s-2.3s, 6 of them on gpu026". */
static void note_joined(const struct rank_table *t, struct diag *d)
{
        CLEANUP(intlist_finish) struct intlist missing = { 0 };
        size_t joined = rank_table_count(t, rank_row_joined), beside = 0;
        int64_t first = INT64_MAX, last = -1;
        char when[80] = "", where[320] = "";
        bool one_node = true;

        rank_table_gather(t, rank_row_missing, &missing);
        /* Whether all missing ranks are on one node. */
        for (size_t i = 0; i < missing.n; i++)
                one_node &= t->rows[missing.v[i]].node == t->rows[missing.v[0]].node;
        for (size_t i = 0; i < t->n; i++) {
                const struct rank_row *r = &t->rows[i];

                beside += missing.n && r->joined && r->node == t->rows[missing.v[0]].node;
                if (r->joined && r->joined_ms >= 0) {
                        first = MIN(first, r->joined_ms);
                        last = MAX(last, r->joined_ms);
                }
        }
        if (last >= 0)
                snprintf(when, sizeof(when), " in %s%s%s", format_span((uint64_t)first).text,
                         last > first ? "-" : "",
                         last > first ? format_span((uint64_t)last).text : "");
        /* Joined ranks on the same node prove the node's way to the store. */
        if (one_node && missing.n && t->plan->num_nodes > 1 &&
            (size_t)t->plan->nodes[t->rows[missing.v[0]].node].n_ranks > missing.n)
                snprintf(where, sizeof(where), ", %zu of them on %.256s", beside,
                         t->hosts->v[t->rows[missing.v[0]].node].name);
        diag_note(d, "%zu rank%s joined%s%s", joined, joined == 1 ? "" : "s", when, where);
}

/* Helps with the command for a closer look at a rank of a job that @goes_on. Returns whether there
 * is one. */
static bool help_to_look(const struct rank_table *t, struct diag *d, rank_filter filter,
                         bool goes_on)
{
        const struct rank_row *r = t->rows, *end = t->rows + t->n;
        const struct host *h;
        char ssh[320] = "", name[PLAN_RANK_NAME_MAX];

        /* A process must be there to look at. */
        while (r < end && !(filter(r) && r->known == RANK_ROW_ALIVE))
                r++;
        if (r == end)
                return false;
        h = &t->hosts->v[t->plan->nodes[r->node].host];
        plan_rank_name(t->plan, r->rank, name);
        if (!h->local)
                snprintf(ssh, sizeof(ssh), "ssh %.300s ", h->name);
        if (r->k.state == 'T')
                diag_help(d, "%s is stopped; it goes on after: %skill -CONT %u", name, ssh,
                          r->k.pid);
        else if (goes_on)
                diag_help(d, "hnlaunch why %s shows what %s does", t->run_id, name);
        return r->k.state == 'T' || goes_on;
}

/* Fits rank_filter. */
static bool is_silent(const struct rank_row *r)
{
        return r->known == RANK_ROW_SILENT;
}

/* Adds the notes of every message: groups @from to before @to, silent nodes, rejected connections.
 */
static void note_state(const struct rank_table *t, struct diag *d, const struct rank_wait_groups *g,
                       size_t from, size_t to)
{
        CLEANUP(intlist_finish) struct intlist silent = { 0 };
        CLEANUP(free_textp) char *hosts = NULL;

        for (size_t i = from; i < MIN(to, (size_t)GROUPS_MAX); i++) {
                CLEANUP(free_textp) char *text = format_wait_group(t, &g->v[i]);

                diag_note(d, "%s", text);
        }
        if (to > MAX(from, (size_t)GROUPS_MAX))
                diag_note(d, "and so do others, for %zu more keys",
                          to - MAX(from, (size_t)GROUPS_MAX));
        rank_table_gather(t, is_silent, &silent);
        hosts = rank_hosts_text(t, &silent, NULL);
        if (silent.n)
                diag_note(d, "no answer from %s", hosts);
        if (t->rejected)
                diag_note(d, "%u connection%s to the store %s rejected: not from this job",
                          t->rejected, t->rejected == 1 ? "" : "s",
                          t->rejected == 1 ? "was" : "were");
}

/* --- messages --- */

void rank_table_tell_missing(const struct rank_table *t, struct diags *d, uint64_t after_ms,
                             bool fatal)
{
        size_t n = rank_table_count(t, rank_row_missing);
        CLEANUP(finish_wait_groups) struct rank_wait_groups g = { 0 };
        struct diag *di;
        bool helped;

        di = fatal ? diag_add(d, HN_NOT_JOINED, EX_TEMPFAIL,
                              "%zu of %zu ranks did not join within %s", n, t->n,
                              format_span(after_ms).text)
                   : diag_warn(d, HN_NOT_JOINED, "%zu of %zu ranks did not join within %s", n, t->n,
                               format_span(after_ms).text);
        add_rank_rows(di, t, rank_row_missing);
        note_joined(t, di);
        find_wait_groups(t, &g);
        note_state(t, di, &g, 0, g.n);
        /* A job that ends now is not helped with commands that need a running one. */
        helped = help_to_look(t, di, rank_row_missing, !fatal);
        if (fatal)
                diag_help(di, "%swait longer: --start-timeout %s", helped ? "or " : "",
                          format_span(after_ms * 5).text);
        else
                diag_help(di, "the job goes on; --start-timeout %s would end it here",
                          format_span(after_ms).text);
}

/* Fits rank_filter: a way to choose any rows by marking the others. */
static bool is_unmarked(const struct rank_row *r)
{
        return !r->marked;
}

void rank_table_tell_finalize(struct rank_table *t, struct diags *d, struct rank_row *row,
                              const char *reason)
{
        CLEANUP(free_textp)
        char *said = printable_text(reason ? reason : "", PRINTABLE_ROW);
        size_t n = rank_table_world_size(t, row->rank);
        char name[PLAN_RANK_NAME_MAX];
        struct diag *di;

        for (size_t i = 0; i < t->n; i++)
                t->rows[i].marked = &t->rows[i] != row; /* is_unmarked() */
        di = diag_warn(d, HN_RANK_FINALIZES, "%s on %s waits in MPI_Finalize() for %s%s%s",
                       plan_rank_name(t->plan, row->rank, name),
                       t->hosts->v[t->plan->nodes[row->node].host].name,
                       format_span(row->k.wait.ms).text, reason ? " after " : "", said);
        add_rank_rows(di, t, is_unmarked);
        diag_note(di,
                  "it ends, and %zu of %zu ranks go on: MPI_Finalize() returns when all have "
                  "called it, and the others may wait for this one meanwhile",
                  n - rank_table_count_world(t, row->rank, rank_row_meets), n);
        diag_help(di,
                  "end the job when a rank raises an exception or calls sys.exit(): hnlaunch ... "
                  "python3 -m mpi4py PROGRAM");
        diag_help(di,
                  "Ctrl-\\ shows all ranks; --wait-warn TIME sets when waits are told, 0 never");
}

/* Whether few of the ranks have come to MPI_Finalize(): the others are not to blame. */
static bool is_early_end(const struct rank_table *t, const struct rank_wait_group *g)
{
        return !strcmp(g->wait->op, "FINALIZE") &&
               2 * g->ranks.n <= rank_table_world_size(t, g->ranks.v[0]);
}

/* Tells of the groups @g of a world, of which the first has waited for @threshold_ms. */
static void tell_world_waiting(struct rank_table *t, struct diags *d, uint32_t threshold_ms,
                               const struct rank_wait_groups *g)
{
        CLEANUP(free_textp) char *first = format_wait_group(t, &g->v[0]);
        CLEANUP(free_textp) char *missing = NULL;
        int world = t->rows[g->v[0].ranks.v[0]].world;
        size_t n_missing, n_told = 0;
        struct diag *di;

        if (is_early_end(t, &g->v[0])) {
                rank_table_tell_finalize(t, d, &t->rows[g->v[0].ranks.v[0]], NULL);
                return;
        }
        for (size_t i = 0; i < t->n; i++)
                t->rows[i].marked = t->rows[i].world != world;
        /* Groups are sorted: the first are those above the threshold. */
        for (; n_told < g->n && g->v[n_told].wait->ms >= threshold_ms; n_told++)
                for (size_t k = 0; k < g->v[n_told].ranks.n; k++)
                        t->rows[g->v[n_told].ranks.v[k]].marked = true;
        n_missing = rank_table_count(t, is_unmarked);
        if (n_missing) {
                missing = rank_table_names(t, is_unmarked);
                di = diag_warn(d, HN_LONG_WAIT, "%s; %s %s not come", first, missing,
                               n_missing == 1 ? "has" : "have");
                add_rank_rows(di, t, is_unmarked);
        } else {
                di = diag_warn(d, HN_LONG_WAIT,
                               g->n == 1 ? "%s (deadlock)" : "%s; all others wait, too (deadlock)",
                               first);
        }
        note_state(t, di, g, 1, n_told); /* the ranks of other groups are rows of the table */
        /* In a deadlock every rank of the world is worth a look. */
        for (size_t i = 0; i < t->n && !n_missing; i++)
                t->rows[i].marked = t->rows[i].world != world;
        help_to_look(t, di, is_unmarked, true);
        diag_help(di, "Ctrl-\\ shows all ranks; --wait-warn TIME sets when this is told, 0 never");
}

bool rank_table_tell_waiting(struct rank_table *t, struct diags *d, uint32_t threshold_ms)
{
        CLEANUP(finish_wait_groups) struct rank_wait_groups all = { 0 };
        struct rank_wait_groups own = { 0 };
        bool *told = xcalloc(t->plan->n_worlds + 1, sizeof(*told)); /* by world */
        bool any = false;

        find_wait_groups(t, &all);
        own.v = xcalloc(all.n, sizeof(*own.v));
        /* Each world once, with all of its groups, in the order of the longest wait. */
        for (size_t i = 0; i < all.n && all.v[i].wait->ms >= threshold_ms; i++) {
                int world = t->rows[all.v[i].ranks.v[0]].world;

                if (told[world])
                        continue;
                told[world] = any = true;
                own.n = 0;
                for (size_t k = i; k < all.n; k++)
                        if (t->rows[all.v[k].ranks.v[0]].world == world)
                                own.v[own.n++] = all.v[k];
                tell_world_waiting(t, d, threshold_ms, &own);
        }
        free(own.v);
        free(told);
        return any;
}

void rank_table_tell_all(const struct rank_table *t, struct diags *d, uint64_t after_ms)
{
        CLEANUP(finish_wait_groups) struct rank_wait_groups g = { 0 };
        struct diag *di = diag_tell(d, "%zu rank%s on %d node%s, %s after the start", t->n,
                                    t->n == 1 ? "" : "s", t->plan->num_nodes,
                                    t->plan->num_nodes == 1 ? "" : "s", format_span(after_ms).text);

        add_rank_rows(di, t, NULL);
        find_wait_groups(t, &g);
        note_state(t, di, &g, 0, g.n);
}
