/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank may tell the reason without a failure: an exit handler or a thread keeps the process
 * alive, or the exit code is 0. If the failures seen may follow from such a rank,
 * outcome_find_untold() makes the rank the cause, the more certainly the better the words (enum
 * evidence): any echo yields to an exception at the end of stderr; a failure that is no echo only
 * to an exception of a few seconds before. If no rank has told anything, and a rank had ended with
 * 0 before the first echo, the others missed that rank.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/memory.h"
#include "head/model/outcome_private.h"
#include "head/model/plan.h"

enum {
        FRESH_MS = 10000,     /* older words do not explain a failure that is no echo */
        FRESH_LINE_MS = 2000, /* nor do lines that only look like errors explain a silent end */
        LEAVE_MS = 2000,      /* a rank may need so long to end when its links are closed */
};

bool cause_left_silently(const struct cause *c)
{
        /* SIGABRT and SIGPIPE end a rank that has lost a link or gives up; other signals have a
         * cause of their own. */
        bool chosen = c->kind == CAUSE_EXIT ||
                      (c->kind == CAUSE_SIGNAL && (c->signal == SIGABRT || c->signal == SIGPIPE));

        return c->kind == CAUSE_UNFINALIZED || (chosen && c->quote == QUOTE_NONE);
}

bool cause_is_end_of_rank(const struct cause *c)
{
        return c->kind == CAUSE_EXIT || c->kind == CAUSE_SIGNAL || c->kind == CAUSE_ABORT ||
               c->kind == CAUSE_UNFINALIZED || c->kind == CAUSE_LATE || cause_is_missed(c);
}

bool cause_is_missed(const struct cause *c)
{
        return c->kind == CAUSE_LEFT || c->kind == CAUSE_STUCK;
}

/* Whether a rank has failed by itself, not by the signal of an order, or a shell's code for it. */
static bool failed_by_itself(const struct cause *c)
{
        int signo = c->kind == CAUSE_SIGNAL ? c->signal : c->code - EX_SIGNAL;

        return (c->kind == CAUSE_SIGNAL || (c->kind == CAUSE_EXIT && c->code)) &&
               signo != SIGTERM && signo != SIGKILL;
}

/* MPI's abort has no text: adds the exception behind the abort, from *@ret. False: there is
 * none. */
static bool quote_mpi_abort(const struct outcome *o, struct cause *c, const char *words,
                            struct cause *ret)
{
        int code, n = 0;

        *ret = (struct cause){ .kind = CAUSE_EXIT, .rank = c->rank, .code = 1 };
        if (sscanf(c->text, "MPI_Abort() with code %d%n", &code, &n) != 1)
                return false;
        outcome_quote(o, ret, words);
        if (ret->quote <= QUOTE_LINE || (c->text[n] && !strstr(c->text, ret->text)))
                return false;
        snprintf(c->text + n, sizeof(c->text) - (size_t)n, ": %.400s", ret->text);
        return true;
}

enum echo outcome_judge_words(const struct outcome *o, struct cause *c, const char *words)
{
        const struct rank_report *t = outcome_find_report(o, c->rank);
        CLEANUP(free_textp) char *root = NULL;
        const char *reason;
        struct cause abort;
        enum echo told;

        if (c->kind == CAUSE_EXIT || c->kind == CAUSE_SIGNAL)
                outcome_quote(o, c, words);
        reason = c->quote > QUOTE_LINE ? c->text : NULL;
        if (c->kind == CAUSE_ABORT && quote_mpi_abort(o, c, words, &abort))
                reason = abort.text;
        /* The report is the rank's own text; the end of stderr may be of another part of the
         * program. */
        if (t)
                told = echo_of_words(t->trace ? t->trace : "", t->said, c->rank, &root);
        else
                told = echo_of_words(words, reason, c->rank, &root);
        if (root && c->quote)
                snprintf(c->text, sizeof(c->text), "%s", root);
        c->echo = (told == ECHO_PEER || told == ECHO_WAIT) &&
                  (c->kind != CAUSE_SIGNAL || c->signal != SIGKILL);
        return told;
}

/* How well the words of a rank explain a failure. */
enum evidence {
        EVIDENCE_NONE,
        EVIDENCE_LINE,  /* its last line looks like an error */
        EVIDENCE_ABOVE, /* an exception, and other lines below it */
        EVIDENCE_LAST,  /* an exception at the end, or the rank ended of it */
};

/* Judges a rank that was stopped, has ended with 0, or has not ended; sets the reason. */
static enum evidence judge_rank(const struct outcome *o, struct cause *c,
                                outcome_words_fn *last_words, void *ctx)
{
        CLEANUP(free_textp) char *words = last_words(ctx, c->rank, &c->told);
        struct cause above = *c, end = *c;
        bool own = failed_by_itself(c);

        above.kind = end.kind = CAUSE_EXIT;
        above.code = 1; /* any exception counts */
        end.code = 2;   /* only one at the end */
        outcome_judge_words(o, &end, words);
        if (outcome_judge_words(o, &above, words) != ECHO_NONE)
                return EVIDENCE_NONE;
        /* Words after the order to end are no reason, unless the rank ends of a failure told
         * there. */
        if (o->stopped_ns && c->told.newest_ns > o->stopped_ns && above.quote != QUOTE_REPORT &&
            (!own || echo_is_of_order(words)))
                return EVIDENCE_NONE;
        memcpy(c->text, above.text, sizeof(c->text));
        c->quote = above.quote;
        c->waited = false;
        if (c->quote > QUOTE_LINE)
                return own || end.quote > QUOTE_LINE ? EVIDENCE_LAST : EVIDENCE_ABOVE;
        return c->quote && echo_is_error_line(c->text) ? EVIDENCE_LINE : EVIDENCE_NONE;
}

/* Whether @c, which was stopped or ended with 0, rather than the cause explains the end. */
static bool explains_cause(const struct outcome *o, const struct cause *c, enum evidence e,
                           int64_t first_ns)
{
        const struct cause *cause = &o->cause;
        int64_t before = cause->at_ns - c->told.newest_ns;

        /* An echo needs a rank that has told the reason, at the end of its words, or not long
         * before the first failure. */
        if (cause->echo)
                return e == EVIDENCE_LAST ||
                       (e && first_ns - c->told.newest_ns <= FRESH_MS * NS_PER_MS);
        if (cause_left_silently(cause) && c->quote == QUOTE_REPORT)
                return true;
        if (cause->kind != CAUSE_UNFINALIZED && cause_left_silently(cause) && e == EVIDENCE_LINE &&
            c->told.newest_ns)
                return before <= FRESH_LINE_MS * NS_PER_MS && before >= -SKEW_MS * NS_PER_MS;
        if (e != EVIDENCE_LAST || !c->told.newest_ns || before > FRESH_MS * NS_PER_MS)
                return false;
        if (cause_left_silently(cause))
                return before >= -SKEW_MS * NS_PER_MS;
        return failed_by_itself(c) && before > SKEW_MS * NS_PER_MS && cause->kind == CAUSE_EXIT;
}

const struct cause *outcome_first_failed(const struct outcome *o)
{
        const struct cause *first = NULL;

        for (size_t i = 0; i < o->n_seen; i++)
                if (cause_is_end_of_rank(&o->seen[i]) && !cause_is_missed(&o->seen[i]) &&
                    (!first || o->seen[i].at_ns < first->at_ns))
                        first = &o->seen[i];
        return first;
}

/* Returns the exit code by which a shell would report the end. */
static int code_of_end(const struct cause *c)
{
        return c->kind == CAUSE_SIGNAL ? EX_SIGNAL + c->signal : c->code;
}

/* Finds the rank of @l that has told the reason of the job's end best, and then first. */
static void find_untold_cause(const struct outcome *o, const struct cause_list *l,
                              enum evidence *best, struct cause *ret, outcome_words_fn *last_words,
                              void *ctx)
{
        const struct cause *first = outcome_first_failed(o);

        for (size_t i = 0; i < l->n; i++) {
                struct cause c = l->v[i];
                enum evidence e = judge_rank(o, &c, last_words, ctx);

                if (!e || e < *best || !explains_cause(o, &c, e, first->at_ns) ||
                    (e == *best && c.told.newest_ns >= ret->told.newest_ns))
                        continue;
                *best = e;
                *ret = c;
                /* Such a rank keeps the kind of its end: the order came too late for it. */
                if (failed_by_itself(&c))
                        continue;
                ret->kind = CAUSE_LATE;
                ret->signal = c.kind == CAUSE_SIGNAL ? c.signal : MAX(c.code - EX_SIGNAL, 0);
                ret->code = code_of_end(first);
        }
}

/* Whether the rank tells of a lost peer. */
static bool tells_of_peer(const struct outcome *o, const struct cause *c,
                          outcome_words_fn *last_words, void *ctx)
{
        struct cause end = { .kind = CAUSE_EXIT, .rank = c->rank, .code = 1 };
        CLEANUP(free_textp) char *words = last_words(ctx, c->rank, &end.told);

        outcome_judge_words(o, &end, words);
        return end.echo;
}

/* The first rank that left with 0 when the first of the others failed; NULL = none. */
static const struct cause *find_missed_rank(const struct outcome *o, const struct cause *failed,
                                            outcome_words_fn *last_words, void *ctx)
{
        const struct cause *first = NULL;

        for (size_t i = 0; i < o->left.n; i++) {
                const struct cause *c = &o->left.v[i];

                if (c->at_ns - failed->at_ns < LEAVE_MS * NS_PER_MS &&
                    (!first || c->at_ns < first->at_ns) && !tells_of_peer(o, c, last_words, ctx))
                        first = c;
        }
        return first;
}

/* All failures are echoes, and the only hint is a rank that had left, or was elsewhere. */
static void blame_missed_rank(struct outcome *o, const struct plan *plan,
                              outcome_words_fn *last_words, void *ctx)
{
        const struct cause *failed = outcome_first_failed(o), *left;
        struct cause c = { .kind = CAUSE_STUCK, .rank = o->stuck.rank, .node = o->stuck.node };
        char who[PLAN_RANK_NAME_MAX];

        if (!o->cause.echo)
                return;
        left = find_missed_rank(o, failed, last_words, ctx);
        if (!left && !*o->stuck.text)
                return;
        if (left) {
                c = *left;
                c.kind = CAUSE_LEFT;
                memcpy(c.text, failed->text, sizeof(c.text));
        } else {
                c.at_ns = failed->at_ns;
                c.after_ms = failed->after_ms;
                snprintf(c.text, sizeof(c.text), "%s; %s failed%s%.180s", o->stuck.text,
                         plan_rank_name(plan, failed->rank, who), *failed->text ? ": " : "",
                         failed->text);
        }
        c.quote = failed->quote;
        c.code = code_of_end(failed);
        o->cause = c;
}

void outcome_find_untold(struct outcome *o, const struct plan *plan, outcome_words_fn *last_words,
                         void *ctx)
{
        enum evidence best = EVIDENCE_NONE;
        struct cause untold = { .rank = -1 };

        find_untold_cause(o, &o->halted, &best, &untold, last_words, ctx);
        find_untold_cause(o, &o->left, &best, &untold, last_words, ctx);
        if (best)
                o->cause = untold;
        else
                blame_missed_rank(o, plan, last_words, ctx);
}

bool outcome_has_told(const struct outcome *o, int rank, outcome_words_fn *last_words, void *ctx,
                      char *to, size_t size)
{
        struct cause c = { .kind = CAUSE_LATE, .rank = rank };
        bool told = judge_rank(o, &c, last_words, ctx) == EVIDENCE_LAST;

        snprintf(to, size, "%s", told ? c.text : "");
        return told;
}

/* Whether a failure ended the job at once, whatever others have told: no later word changes it. */
static bool is_final(const struct cause *c)
{
        return !cause_is_end_of_rank(c) || c->kind == CAUSE_ABORT ||
               (c->kind == CAUSE_SIGNAL && !cause_left_silently(c));
}

/* Marks the ranks of some causes; causes without a rank, or beyond @n_ranks, are passed over. */
static void mark_ranks(bool *marks, int n_ranks, const struct cause *v, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (v[i].rank >= 0 && v[i].rank < n_ranks)
                        marks[v[i].rank] = true;
}

/* Returns by rank whether it has ended, malloc'ed. */
static bool *mark_ended(const struct outcome *o, int n_ranks)
{
        bool *ended = xcalloc((size_t)n_ranks, sizeof(*ended));

        mark_ranks(ended, n_ranks, o->seen, o->n_seen);
        mark_ranks(ended, n_ranks, o->left.v, o->left.n);
        mark_ranks(ended, n_ranks, o->halted.v, o->halted.n);
        return ended;
}

bool outcome_find_told(const struct outcome *o, int n_ranks, outcome_words_fn *last_words,
                       void *ctx, struct cause *ret)
{
        bool found = false, *ended = mark_ended(o, n_ranks);

        for (int rank = 0; rank < n_ranks; rank++) {
                struct cause c = { .kind = CAUSE_LATE, .rank = rank };

                if (ended[rank] || judge_rank(o, &c, last_words, ctx) != EVIDENCE_LAST ||
                    (found && c.told.began_ns >= ret->told.began_ns))
                        continue;
                *ret = c;
                found = true;
        }
        free(ended);
        return found;
}

bool outcome_may_follow(const struct outcome *o, int n_ranks, int64_t now_ns,
                        outcome_words_fn *last_words, void *ctx)
{
        bool found = o->cause.echo, *ended;

        if (found || is_final(&o->cause))
                return found;
        ended = mark_ended(o, n_ranks);
        for (int rank = 0; rank < n_ranks && !found; rank++) {
                struct cause c = { .kind = CAUSE_LATE, .rank = rank };
                enum evidence e = ended[rank] ? EVIDENCE_NONE : judge_rank(o, &c, last_words, ctx);
                /* For how long the words may explain the failure; 0 = the words do not count. A
                 * rank with the same reason as the cause explains nothing. */
                int64_t fresh_ms = e == EVIDENCE_LAST ? FRESH_MS : 0;

                if (e == EVIDENCE_LINE && cause_left_silently(&o->cause))
                        fresh_ms = FRESH_LINE_MS;
                found = fresh_ms && now_ns - c.told.newest_ns <= fresh_ms * NS_PER_MS &&
                        (c.quote != o->cause.quote || strcmp(c.text, o->cause.text) != 0);
        }
        free(ended);
        return found;
}
