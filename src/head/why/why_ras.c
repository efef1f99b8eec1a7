/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that RAS shows behind the others are marked first. If another source has an outlier among
 * the marked ranks, the finding names RAS as a second witness. If no other source has an outlier
 * but marked ranks are stuck, these ranks become the outliers. Otherwise the differences become a
 * note, or a note says that RAS sees none.
 */
#include "head/why/why_ras.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

enum { DIFFERENCES_MAX = 3 /* in a sentence */ };

/* --- sentences -------------------------------------------------------------------------------- */

/* All ranks of the job, for names. */
struct why_job {
        const struct why_rank *ranks;
        size_t n;
};

/* Puts "rank 2", "ranks 2,5", "role a, rank 2", "rank 1 of it (pid 7 on 10.0.0.7)" or "12 ranks".
 */
static void put_processes(const struct why_job *j, const struct ras_process *v, size_t n,
                          size_t n_ranks, struct buf *to)
{
        CLEANUP(intlist_finish) struct intlist world = { 0 };
        CLEANUP(free_textp) char *names = NULL;

        for (size_t i = 0; i < n; i++)
                if (v[i].world >= 0)
                        intlist_add(&world, v[i].world);
        names = why_ranks_name(j->ranks, j->n, &world);
        if (n && world.n == n_ranks)
                buf_appends(to, names);
        else if (n == 1 && n_ranks == 1)
                buf_printf(to, "rank %d of it (pid %d on %s)", v->rank, v->pid, v->host);
        else
                buf_printf(to, "%zu ranks", n_ranks);
}

/* Puts "rank 2 has launched 40 AllReduce, the other 3 ranks 41" for the counts of an operation. */
static void put_counts(const struct why_job *j, const struct ras_count *k, size_t n, struct buf *to)
{
        const struct ras_count *most = &k[n - 1];

        for (size_t i = 0; i + 1 < n && i < DIFFERENCES_MAX; i++) {
                buf_appends(to, i ? ", " : "");
                put_processes(j, k[i].v, k[i].n, k[i].n_ranks, to);
                buf_printf(to, k[i].n_ranks > 1 ? " have launched " : " has launched ");
                if (k[i].launched)
                        buf_printf(to, "%" PRIu64 " %s", k[i].launched, k[i].operation);
                else
                        buf_printf(to, "no %s", k[i].operation);
        }
        if (n - 1 > DIFFERENCES_MAX)
                buf_appends(to, ", others have launched fewer, too");
        buf_printf(to, ", the other %zu rank%s %" PRIu64, most->n_ranks,
                   most->n_ranks == 1 ? "" : "s", most->launched);
}

/* Returns how many counts from @at on are of the same operation. */
static size_t same_operation(const struct ras_comm *c, size_t at)
{
        size_t n = 1;

        while (at + n < c->n_counts &&
               !strcmp(c->counts[at].operation, c->counts[at + n].operation))
                n++;
        return n;
}

/* Puts one communicator with what differs in it. */
static void put_comm(const struct why_job *j, const struct ras_comm *c, struct buf *to)
{
        size_t told = 0;

        buf_printf(to, "communicator %s (%zu ranks): ", c->name, c->size);
        if (c->n_missing) {
                put_processes(j, c->missing, c->n_missing, c->n_missing, to);
                buf_appends(to, c->n_missing > 1 ? " do not answer" : " does not answer");
                told++;
        }
        for (size_t i = 0, n; i < c->n_counts; i += n) {
                n = same_operation(c, i);
                if (told++ < DIFFERENCES_MAX) {
                        buf_appends(to, told > 1 ? "; " : "");
                        put_counts(j, &c->counts[i], n, to);
                }
        }
}

/* Returns a clause on all differences; "" without any. malloc'ed. */
static char *describe_differences(const struct why_job *j, const struct ras_answer *a)
{
        struct buf b = BUF_INIT;

        for (size_t i = 0; i < a->n_comms && i < DIFFERENCES_MAX; i++) {
                buf_appends(&b, i ? "; " : "");
                put_comm(j, &a->comms[i], &b);
        }
        if (a->n_comms > DIFFERENCES_MAX)
                buf_printf(&b, "; and %zu more", a->n_comms - DIFFERENCES_MAX);
        return buf_steal(&b);
}

/* --- the finding ------------------------------------------------------------------------------ */

/* Marks the ranks of the job behind processes; .world is -1 for a process that is none of them. */
static void mark_processes(const struct ras_process *v, size_t n_processes, bool *behind, size_t n)
{
        for (size_t i = 0; i < n_processes; i++)
                if (v[i].world >= 0 && (size_t)v[i].world < n)
                        behind[v[i].world] = true;
}

/* Marks ranks with fewer launched operations than others, and ranks without an answer. */
static void mark_behind(const struct ras_answer *a, bool *behind, size_t n)
{
        for (size_t i = 0; i < a->n_comms; i++) {
                const struct ras_comm *c = &a->comms[i];

                mark_processes(c->missing, c->n_missing, behind, n);
                for (size_t at = 0, k; at < c->n_counts; at += k) {
                        k = same_operation(c, at);
                        /* The counts of an operation are sorted: the last has the most. */
                        for (size_t j = 0; j + 1 < k; j++)
                                mark_processes(c->counts[at + j].v, c->counts[at + j].n, behind, n);
                }
        }
}

/* Makes @stuck the outliers: stuck ranks that RAS names, and no other source. */
static void name_stuck_ranks(const struct why_rank *ranks, size_t n, const struct intlist *stuck,
                             const char *differences, struct why_finding *f)
{
        CLEANUP(free_textp) char *doing = why_tell_ranks(ranks, n, stuck);
        bool silent = false;

        for (size_t i = 0; i < n; i++)
                silent |= why_is_unseen(&ranks[i]);
        free(f->text);
        f->text = xasprintf("NCCL's RAS, %s; %s", differences, doing);
        f->kind = WHY_HANG;
        f->is_sure = !silent;
        for (size_t i = 0; i < stuck->n; i++) {
                intlist_add(&f->outliers, stuck->v[i]);
                if (!intlist_has(&f->worlds, ranks[stuck->v[i]].world))
                        intlist_add(&f->worlds, ranks[stuck->v[i]].world);
        }
        f->uses_ras = true;
}

/* Appends RAS as a second witness to the sentence of the finding. */
static void agree_with_ras(const char *differences, struct why_finding *f)
{
        char *text = xasprintf("%s; NCCL's RAS agrees, %s", f->text, differences);

        free(f->text);
        f->text = text;
        f->uses_ras = true;
}

/* Notes that RAS was asked and has seen nothing, so that the silence is not taken for a missing
 * answer. */
static void note_without_difference(const struct ras_answer *a, struct why_finding *f)
{
        if (a->n_all == 0)
                strv_push(&f->notes, "NCCL's RAS knows no communicator");
        else
                strv_pushf(&f->notes, "NCCL's RAS (%s) sees no difference between ranks",
                           a->version);
}

void why_use_ras(const struct why_rank *ranks, size_t n, const struct ras_answer *a,
                 struct why_finding *f)
{
        const struct why_job j = { ranks, n };
        CLEANUP(free_textp) char *differences = describe_differences(&j, a);
        CLEANUP(intlist_finish) struct intlist stuck = { 0 };
        bool *behind = xcalloc(n, sizeof(*behind));
        /* One common rank is enough: RAS names ranks behind, others may have been dragged along. */
        bool agrees = false;

        mark_behind(a, behind, n);
        for (size_t i = 0; i < f->outliers.n; i++)
                agrees |= behind[f->outliers.v[i]];
        for (size_t i = 0; i < n; i++)
                /* A rank behind that computes is only slow. */
                if (behind[i] && ranks[i].share == WHY_JUDGED && why_is_stuck(&ranks[i]))
                        intlist_add(&stuck, ranks[i].rank);
        free(behind);
        if (!a->n_comms)
                note_without_difference(a, f);
        else if (agrees)
                agree_with_ras(differences, f);
        else if (!f->outliers.n && stuck.n)
                name_stuck_ranks(ranks, n, &stuck, differences, f);
        else
                strv_pushf(&f->notes, "NCCL's RAS alone says, %s", differences);
}
