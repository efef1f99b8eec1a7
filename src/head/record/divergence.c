/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank at work until shortly before the failure has failed by itself. Otherwise the failed rank
 * was waiting for another rank, and each sign names a rank and a time; the earliest counts:
 *
 * - steps: the others have reached a step and this rank has not, and this rank has been still for
 *   longer than a few steps take
 * - waits: most ranks wait for others in the store, for longer than usual, and this rank waits for
 *   nothing, or for the request with the fewest waiters
 * - output: the rank wrote as often as the others, and stopped
 * - stderr: the failed rank began to write errors, after none
 * - exit: with a failure, or before the steps of the others were done
 * - processor: only when no rank has failed, and there is no other sign: for some seconds the rank
 *   computes, sleeps or is stopped, unlike the others and unlike before
 */
#include "head/model/outcome.h"
#include "head/record/divergence_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/memory.h"

enum {
        WAITS = 5, /* times of a usual wait */
        WAIT_LEAST_US = 5000,
        FRESH = 4,           /* a rank at work is silent for so many usual pauses at most */
        LINES = 8,           /* fewer outputs have no rhythm */
        TOGETHER_US = 20000, /* many ranks with errors at once tell of no rank */
        ERRORS_US = 2000000, /* older errors do not belong to the failure */
};

/* Compares int64_t, for qsort(). */
static int compare_times(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

int64_t divergence_median(int64_t *v, size_t n)
{
        if (!n)
                return 0;
        qsort(v, n, sizeof(*v), compare_times);
        return v[n / 2];
}

bool divergence_is_half(const struct divergence_search *s, size_t n)
{
        return 2 * n >= (size_t)s->in->n_ranks;
}

void divergence_offer(struct divergence_search *s, int rank, int64_t us, const char *fmt, ...)
{
        va_list args;

        /* A sign is computed, and may lie behind the end: no divergence is later than the
         * failure. */
        us = MIN(us, s->in->until_us);
        if (s->best.rank >= 0 && s->best.us <= us)
                return;
        s->best.rank = rank;
        s->best.us = us;
        s->best.words = false;
        va_start(args, fmt);
        vsnprintf(s->best.text, sizeof(s->best.text), fmt, args);
        va_end(args);
}

/* --- waits ------------------------------------------------------------------------------------ */

/* Counts the waiting ranks by key. Returns the number of waiting ranks, and since when half of the
 * waits last. */
static size_t count_waits(const struct divergence_search *s, size_t *by_key, int64_t *ret_us)
{
        size_t n = (size_t)s->in->n_ranks, waiting = 0;
        int64_t *since = xcalloc(n, sizeof(*since));

        for (size_t i = 0; i < n; i++) {
                const struct rank_wait *w = &s->ranks[i].wait;

                if (!w->lasts)
                        continue;
                by_key[w->key]++;
                since[waiting++] = w->since_us;
        }
        *ret_us = divergence_median(since, waiting);
        free(since);
        return waiting;
}

/* Orders ranks, the most likely missing rank first: no wait, then a wait with fewer ranks, then the
 * earlier end or last answer. */
static bool is_more_missing(const struct rank_view *a, const struct rank_view *b,
                            const size_t *by_key)
{
        if (a->wait.lasts != b->wait.lasts)
                return !a->wait.lasts;
        if (a->wait.lasts && by_key[a->wait.key] != by_key[b->wait.key])
                return by_key[a->wait.key] < by_key[b->wait.key];
        if ((a->exit_us >= 0) != (b->exit_us >= 0))
                return a->exit_us >= 0;
        return a->exit_us >= 0 ? a->exit_us < b->exit_us : a->wait.since_us < b->wait.since_us;
}

/* Most ranks wait in collectives for longer than waits of this run usually take: offers the rank
 * that does not wait, or waits for something else. When as many wait there, no side is the odd
 * one. */
static void look_at_waits(struct divergence_search *s)
{
        int64_t since = 0, usual = divergence_median(s->usual, s->n_usual);
        size_t *by_key = xcalloc(s->in->log->n_keys + 1, sizeof(*by_key));
        size_t waiting = count_waits(s, by_key, &since), n = (size_t)s->in->n_ranks;
        const struct rank_view *worst = s->ranks;

        for (size_t i = 1; i < n; i++)
                if (is_more_missing(&s->ranks[i], worst, by_key))
                        worst = &s->ranks[i];
        /* From here on the number of the others. */
        waiting -= worst->wait.lasts;
        if (waiting && divergence_is_half(s, waiting + 1) &&
            s->in->until_us - since > WAITS * usual + WAIT_LEAST_US &&
            !(worst->wait.lasts && by_key[worst->wait.key] > waiting))
                divergence_offer(s, (int)(worst - s->ranks), since,
                                 "rank %zd %s, where %zu other%s wait%s", worst - s->ranks,
                                 worst->wait.lasts ? "waits for something else" : "does not come",
                                 waiting, waiting == 1 ? "" : "s", waiting == 1 ? "s" : "");
        free(by_key);
}

/* --- output and exits ------------------------------------------------------------------------- */

/* Whether the others went on to write, and had written about as much as this rank. Ranks that write
 * at different rates, such as a rank 0 with the reports, cannot be compared. */
static bool has_fallen_silent(const struct divergence_search *s, uint32_t rank)
{
        const struct trace_log *log = s->in->log;
        const struct rank_view *r = &s->ranks[rank];
        size_t n = (size_t)s->in->n_ranks, like = 0;
        size_t *before = xcalloc(n, sizeof(*before)), *after = xcalloc(n, sizeof(*after));

        for (size_t i = 0; i < log->n && log->v[i].us <= s->in->until_us; i++) {
                const struct trace_event *e = &log->v[i];

                if (e->kind == TRACE_OUT && !(e->more & 1) && e->rank < n)
                        (e->us > r->out_us ? after : before)[e->rank]++;
        }
        for (size_t i = 0; i < n; i++)
                like += i != rank && before[i] <= 2 * r->outs && 2 * before[i] >= r->outs &&
                        after[i] >= DIVERGENCE_STILL;
        free(before);
        free(after);
        return like && divergence_is_half(s, like + 1);
}

/* Offers the rank that has been silent longest, measured by the rank's usual gap between lines,
 * while the others write. */
static void look_at_output(struct divergence_search *s)
{
        int worst = -1;

        for (size_t i = 0; i < (size_t)s->in->n_ranks; i++) {
                const struct rank_view *r = &s->ranks[i];

                if (r->outs >= LINES &&
                    s->in->until_us - r->out_us > DIVERGENCE_STILL * r->gap_us &&
                    (worst < 0 || r->out_us < s->ranks[worst].out_us))
                        worst = (int)i;
        }
        if (worst >= 0 && has_fallen_silent(s, (uint32_t)worst))
                divergence_offer(s, worst, s->ranks[worst].out_us + s->ranks[worst].gap_us,
                                 "rank %d writes nothing any longer, the others do", worst);
}

/* Returns when a rank began to write its newest errors; -1 = it wrote none. */
static int64_t find_errors_us(const struct rank_view *r)
{
        return r->errors.newest_ns ? burst_words_ns(&r->errors) / 1000 : -1;
}

/* Offers the cause when the cause alone has begun to write to stderr shortly before the end:
 * warnings of all ranks at once are no sign. */
static void look_at_errors(struct divergence_search *s)
{
        const struct rank_view *c = &s->ranks[MAX(s->in->cause_rank, 0)];
        size_t together = 0, n = (size_t)s->in->n_ranks;
        int64_t since_us = find_errors_us(c);

        if (s->in->cause_rank < 0 || since_us < 0 ||
            s->in->until_us - c->errors.newest_ns / 1000 > ERRORS_US)
                return;
        for (size_t i = 0; i < n; i++)
                together += find_errors_us(&s->ranks[i]) >= 0 &&
                            llabs(find_errors_us(&s->ranks[i]) - since_us) <= TOGETHER_US;
        if (together > MAX(n / 4, (size_t)1))
                return;
        divergence_offer(s, s->in->cause_rank, since_us, "rank %d begins to write to stderr",
                         s->in->cause_rank);
        s->best.words = s->best.us == since_us;
}

/* Offers ranks that end without following another: by a signal, with a code, or before the last
 * step. */
static void look_at_exits(struct divergence_search *s)
{
        for (int i = 0; i < s->in->n_ranks; i++) {
                const struct rank_view *r = &s->ranks[i];

                if (r->exit_us < 0 || (s->in->follows && s->in->follows[i]))
                        continue;
                if (WIFSIGNALED(r->status))
                        divergence_offer(s, i, r->exit_us, "rank %d is ended by %s", i,
                                         outcome_signal_name(WTERMSIG(r->status)));
                else if (r->status || i == s->in->cause_rank || (r->step >= 0 && r->step < s->top))
                        divergence_offer(s, i, r->exit_us, "rank %d exits with code %d", i,
                                         WEXITSTATUS(r->status));
        }
}

/* --- processor -------------------------------------------------------------------------------- */

/* Whether the newest samples are all of one class. '-' is between the classes, 0 means too few
 * samples. */
static bool is_steady(const struct rank_view *r)
{
        for (int i = 1; i < DIVERGENCE_SECONDS; i++)
                if (r->cpu[i] != r->cpu[0])
                        return false;
        return r->cpu[0] && r->cpu[0] != '-';
}

/* Offers ranks whose processes have changed to a state of a few: stopped, in the kernel, idle while
 * the others compute, or the reverse. */
static void look_at_processors(struct divergence_search *s)
{
        static const char *const does[128] = { ['T'] = "is stopped",
                                               ['t'] = "is traced",
                                               ['D'] = "waits in the kernel",
                                               ['B'] = "computes",
                                               ['I'] = "does not compute" };
        size_t counts[128] = { 0 }, n = (size_t)s->in->n_ranks;

        for (size_t i = 0; i < n; i++)
                /* Ranks in no steady state are counted at 0, where nothing is looked up. */
                counts[is_steady(&s->ranks[i]) ? (unsigned char)s->ranks[i].cpu[0] & 127 : 0]++;
        for (size_t i = 0; i < n; i++) {
                const struct rank_view *r = &s->ranks[i];
                size_t alike = counts[(unsigned char)r->cpu[0] & 127];

                if (is_steady(r) && r->before && alike <= MAX(n / 4, (size_t)1) && alike < n)
                        divergence_offer(s, (int)i, r->changed_us,
                                         "rank %zu %s, the others do not do so", i,
                                         does[(unsigned char)r->cpu[0] & 127]);
        }
}

/* ---------------------------------------------------------------------------------------------- */

/* Whether the failed rank was at work shortly before the failure: not waiting for another rank. The
 * pauses between its acts tell how long "shortly" is; the longest quarter may be waits. */
static bool has_failed_by_itself(const struct divergence_search *s)
{
        size_t n = s->n_acts;
        int64_t silent_us;

        if (n < 2 || s->ranks[s->in->cause_rank].wait.failed)
                return false;
        silent_us = s->in->until_us - s->acts[n - 1];
        for (size_t i = 0; i + 1 < n; i++)
                /* From times to distances. */
                s->acts[i] = s->acts[i + 1] - s->acts[i];
        qsort(s->acts, n - 1, sizeof(*s->acts), compare_times);
        return silent_us <= FRESH * s->acts[(n - 1) * 3 / 4] + DIVERGENCE_LEAST_US;
}

/* The signs by which another rank may be to blame. */
static void look_at_all(struct divergence_search *s)
{
        divergence_look_at_steps(s);
        look_at_waits(s);
        look_at_output(s);
}

void divergence_find(const struct divergence_input *in, struct divergence *ret)
{
        size_t n = (size_t)in->n_ranks;
        struct divergence_search s = { .in = in, .top = -1, .best = { .rank = -1 } };

        s.ranks = xcalloc(n, sizeof(*s.ranks));
        s.times = xcalloc(n * DIVERGENCE_WINDOW, sizeof(*s.times));
        s.usual = xcalloc(in->log->n + 1, sizeof(*s.usual));
        s.acts = xcalloc(in->log->n + 1, sizeof(*s.acts));
        for (size_t i = 0; i < n; i++)
                s.ranks[i] = (struct rank_view){ .step = -1, .exit_us = -1 };
        for (size_t i = 0; i < n * DIVERGENCE_WINDOW; i++)
                s.times[i] = -1;
        divergence_view(&s);
        if (!has_failed_by_itself(&s))
                look_at_all(&s);
        look_at_errors(&s);
        look_at_exits(&s);
        /* The weakest sign, for a job that was stopped by hand or by a time limit. */
        if (s.best.rank < 0 && in->cause_rank < 0)
                look_at_processors(&s);
        /* Nothing came before the failure: the failure itself is the divergence. */
        if (s.best.rank < 0 && in->cause_rank >= 0)
                divergence_offer(&s, in->cause_rank, in->until_us, "rank %d fails", in->cause_rank);
        *ret = s.best;
        free(s.ranks);
        free(s.times);
        free(s.usual);
        free(s.acts);
}
