/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every failure is appended to outcome.seen, and compared at once with the cause so far, since the
 * first cause stops the job. outcome_finalize() then repeats the choice with all output at hand:
 * the last lines of a rank may reveal an echo of a peer's failure, or hold the exception that
 * explains the end, and both change the order.
 *
 * is_stronger() orders two failures: decisions of the launcher stand but never replace an earlier
 * cause; the exit of a rank counts as earlier than the loss of its node; an echo yields to a rank
 * with an own failure, also later; failures within NEAR_MS are ordered by cause_weight(), all
 * others by the time when the reason was told, else of the end. Of echoes, the rank whose last
 * words began first is the cause. outcome_untold.c finds a rank with the reason in the last words
 * and without a failure. outcome_describe() and outcome_sentence() word how a rank ended for the
 * last line, the errors and the peers of the rank (head/reason/echo.h knows these words again);
 * head/top/top_frame.c has shorter words.
 */
#include "head/model/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/exit_code.h"
#include "base/intlist.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/model/outcome_private.h"
#include "head/reason/reason.h"
#include "head/reason/reason_lines.h"
#include "head/term/columns.h"
#include "wire/msg.h"

enum {
        NEAR_MS = 2000,  /* failures this close belong together */
        LATE_MS = 60000, /* a rank may need so long to end after the last words */
        /* Failures, reports and ended ranks that are kept, each. The search for the cause reads the
         * last output of all of them. */
        SEEN_MAX = 4096,
        SAID_MAX = 2000,   /* bytes of a rank's report */
        TRACE_MAX = 16384, /* bytes of the call stack */
        OURS = 0,          /* weight of decisions of the launcher */
};

void outcome_finish(struct outcome *o)
{
        for (size_t i = 0; i < o->n_said; i++) {
                free(o->said[i].said);
                free(o->said[i].trace);
        }
        free(o->said);
        free(o->seen);
        free(o->left.v);
        free(o->halted.v);
        free(o->same);
        *o = (struct outcome)OUTCOME_INIT;
}

/* --- the choice ------------------------------------------------------------------------------- */

/* Orders kinds of failures close to one another: the less, the more likely the cause. A node that
 * is gone explains signals, a signal explains exceptions of peers, and a reported error says more
 * than a code. */
static int cause_weight(const struct outcome *o, const struct cause *c)
{
        static const int weights[CAUSE_KINDS] = {
                [CAUSE_NONE] = 100,      [CAUSE_ORDER] = OURS, [CAUSE_TIMEOUT] = OURS,
                [CAUSE_STDOUT] = OURS,   [CAUSE_JOIN] = OURS,  [CAUSE_HANG] = OURS,
                [CAUSE_REFUSED] = 1,     [CAUSE_NETWORK] = 2,  [CAUSE_NODE] = 2,
                [CAUSE_SIGNAL] = 3,      [CAUSE_ABORT] = 4,    [CAUSE_EXIT] = 6,
                [CAUSE_UNFINALIZED] = 6, [CAUSE_LATE] = 6,     [CAUSE_LEFT] = 6,
                [CAUSE_WORLDS] = OURS,   [CAUSE_STUCK] = 6,    [CAUSE_DRAIN] = 1,
                [CAUSE_ROLE] = 6,        [CAUSE_PAUSE] = 2,
        };

        if (c->echo)
                return 7;
        if (cause_left_silently(c))
                return 6;
        if (c->kind == CAUSE_EXIT && outcome_find_report(o, c->rank))
                return 5;
        return weights[c->kind];
}

/* Whether the failure is that nothing was heard any more. Its time is that of the last byte. */
static bool is_silence(const struct cause *c)
{
        return c->kind == CAUSE_NODE || c->kind == CAUSE_NETWORK || c->kind == CAUSE_PAUSE;
}

/* Whether two failures may belong together, so that the kind decides rather than the time. */
static bool is_near(const struct outcome *o, const struct cause *a, const struct cause *b)
{
        const struct cause *node = is_silence(a) ? a : is_silence(b) ? b : NULL;
        const struct cause *other = node == a ? b : a;

        /* Peers of the node's ranks may fail long before the node's silence is noticed. */
        if (node && !is_silence(other))
                return other->at_ns >= node->at_ns - 2 * o->pulse_ns;
        return llabs(a->at_ns - b->at_ns) <= NEAR_MS * NS_PER_MS;
}

/* The time of a failure: when the rank told the reason, else the end. */
static int64_t began_ns(const struct cause *c)
{
        int64_t took = c->at_ns - c->told.newest_ns;
        bool late = c->quote > QUOTE_LINE && c->told.newest_ns && took > SKEW_MS * NS_PER_MS;

        return late && took <= LATE_MS * NS_PER_MS ? c->told.newest_ns : c->at_ns;
}

/* Whether @rank ended on the lost @node: the end was reported first, whatever the clocks say. */
static bool was_reported_first(const struct cause *rank, const struct cause *node)
{
        return node->kind == CAUSE_NODE && rank->node == node->node &&
               (rank->kind == CAUSE_EXIT || rank->kind == CAUSE_UNFINALIZED ||
                rank->kind == CAUSE_ABORT);
}

/* Whether @told had told its reason when @silent left without a word, but ended much later. */
static bool ended_long_after(const struct cause *told, const struct cause *silent)
{
        int64_t took = told->at_ns - told->told.newest_ns;
        bool reason = told->quote > QUOTE_LINE || (told->quote && echo_is_error_line(told->text));

        return reason && told->told.newest_ns && took > SKEW_MS * NS_PER_MS &&
               took <= LATE_MS * NS_PER_MS && cause_is_end_of_rank(silent) &&
               cause_left_silently(silent) &&
               told->told.newest_ns - silent->at_ns <= SKEW_MS * NS_PER_MS;
}

/* Whether @left, a rank that has left MPI, explains an abort of a peer's MPI without a word. */
static bool explains_abort(const struct outcome *o, const struct cause *left,
                           const struct cause *abort)
{
        return left->kind == CAUSE_UNFINALIZED && abort->kind == CAUSE_ABORT && !*abort->text &&
               is_near(o, left, abort);
}

/* Whether @a rather than @b, which arrived earlier, is the cause. */
static bool is_stronger(const struct outcome *o, const struct cause *a, const struct cause *b)
{
        int wa = cause_weight(o, a), wb = cause_weight(o, b);

        /* Decisions of the launcher stand, but do not explain earlier failures. */
        if (wa == OURS || wb == OURS || b->kind == CAUSE_NONE)
                return b->kind == CAUSE_NONE;
        if (was_reported_first(a, b) || was_reported_first(b, a))
                return was_reported_first(a, b);
        /* An echo yields to a rank with an own failure, even if that rank ends up to LATE_MS
         * later. */
        if (cause_is_end_of_rank(a) && cause_is_end_of_rank(b) && a->echo != b->echo &&
            (a->echo ? began_ns(b) - a->at_ns : began_ns(a) - b->at_ns) <= LATE_MS * NS_PER_MS)
                return b->echo;
        /* Ranks end soon after one another, but begin to tell their reasons before their links
         * close. */
        if (a->echo && b->echo && a->told.newest_ns && b->told.newest_ns)
                return burst_words_ns(&a->told) < burst_words_ns(&b->told);
        if (ended_long_after(a, b) || ended_long_after(b, a))
                return ended_long_after(a, b);
        if (explains_abort(o, a, b) || explains_abort(o, b, a))
                return explains_abort(o, a, b);
        if (wa != wb && is_near(o, a, b))
                return wa < wb;
        return began_ns(a) < began_ns(b);
}

static void add_seen_cause(struct outcome *o, const struct cause *c)
{
        if (!(o->n_seen & (o->n_seen - 1)))
                o->seen = xrealloc(o->seen, o->n_seen ? o->n_seen * 2 : 1, sizeof(*o->seen));
        o->seen[o->n_seen++] = *c;
}

bool outcome_happened(struct outcome *o, const struct cause *c)
{
        bool is_cause;

        if (o->decided)
                return false;
        is_cause = is_stronger(o, c, &o->cause);
        if (o->n_seen < SEEN_MAX) {
                add_seen_cause(o, c);
        } else {
                o->unseen++;
                if (is_cause) /* for outcome_finalize() */
                        o->seen[SEEN_MAX - 1] = *c;
        }
        if (is_cause)
                o->cause = *c;
        return is_cause;
}

void outcome_excuse(struct outcome *o)
{
        o->n_seen = o->unseen = o->failed = 0;
        o->cause = (struct cause){ .rank = -1, .node = -1 };
}

void cause_blame(struct cause *c, int rank, int node, const char *text)
{
        CLEANUP(free_textp) char *own = xstrdup(c->text);

        snprintf(c->text, sizeof(c->text), "%.390s%s%s", text, *own ? "; " : "", own);
        c->rank = rank;
        c->node = node;
}

void outcome_blame(struct outcome *o, int rank, int node, const char *text)
{
        struct cause *c = o->n_seen ? &o->seen[o->n_seen - 1] : NULL;
        bool is_cause;

        if (c && o->cause.waited && rank >= 0) {
                o->stuck.rank = rank;
                o->stuck.node = node;
                snprintf(o->stuck.text, sizeof(o->stuck.text), "%s", text);
        }
        if (!c || c->rank >= 0 || cause_weight(o, c) != OURS)
                return;
        /* @seen holds copies: the cause is a copy of the newest failure if kind and time are
         * equal. */
        is_cause = o->cause.kind == c->kind && o->cause.at_ns == c->at_ns;
        cause_blame(c, rank, node, text);
        if (is_cause)
                o->cause = *c;
}

void outcome_decide(struct outcome *o)
{
        o->decided = true;
}

size_t outcome_count(const struct outcome *o)
{
        return o->n_seen + o->unseen;
}

/* Of very many ranks the last place is for the newest that has told a reason. */
static void add_ended_rank(struct cause_list *l, const struct cause *c)
{
        if (l->n == SEEN_MAX) {
                if (c->quote > QUOTE_LINE && !c->echo)
                        l->v[SEEN_MAX - 1] = *c;
                return;
        }
        if (!(l->n & (l->n - 1)))
                l->v = xrealloc(l->v, l->n ? l->n * 2 : 1, sizeof(*l->v));
        l->v[l->n++] = *c;
}

void outcome_read_status(struct cause *c, int status)
{
        if (c->kind == CAUSE_UNFINALIZED) {
                c->code = 1;
        } else if (WIFSIGNALED(status)) {
                c->kind = CAUSE_SIGNAL;
                c->signal = WTERMSIG(status);
                c->core = WCOREDUMP(status);
        } else {
                c->kind = CAUSE_EXIT;
                c->code = WEXITSTATUS(status);
        }
}

bool outcome_exited(struct outcome *o, const struct cause *rank, int status, bool stopped,
                    bool killed, const char *words)
{
        bool well =
                WIFEXITED(status) && WEXITSTATUS(status) == 0 && rank->kind != CAUSE_UNFINALIZED;
        struct cause c = *rank;

        o->exited++;
        outcome_read_status(&c, status);
        if (!well)
                outcome_judge_words(o, &c, words ? words : "");
        if (stopped || (o->decided && !well)) {
                o->stopped++;
                o->killed += killed;
                add_ended_rank(&o->halted, &c);
                return false;
        }
        if (well) {
                /* Ranks that do not run the program (--ranks) are missed by no other rank. */
                if (!o->ran || intlist_has(o->ran, c.rank))
                        add_ended_rank(&o->left, &c);
                return false;
        }
        o->failed++;
        return outcome_happened(o, &c);
}

void outcome_allowed(struct outcome *o)
{
        o->exited++;
}

/* Takes the rank out of a list, in place. */
static void forget_end(struct cause_list *l, int rank)
{
        size_t n = 0;

        for (size_t i = 0; i < l->n; i++)
                if (l->v[i].rank != rank)
                        l->v[n++] = l->v[i];
        l->n = n;
}

void outcome_forget(struct outcome *o, int rank, bool ended)
{
        size_t n = 0;

        for (size_t i = 0; i < o->n_said; i++) {
                if (o->said[i].rank != rank) {
                        o->said[n++] = o->said[i];
                        continue;
                }
                free(o->said[i].said);
                free(o->said[i].trace);
        }
        o->n_said = n;
        if (!ended)
                return;
        o->exited--;
        forget_end(&o->left, rank);
}

bool outcome_aborted(struct outcome *o, const struct cause *rank, const char *words)
{
        struct cause c = *rank;

        outcome_judge_words(o, &c, words);
        return outcome_happened(o, &c);
}

/* --- reports of ranks ------------------------------------------------------------------------- */

const struct rank_report *outcome_find_report(const struct outcome *o, int rank)
{
        for (size_t i = 0; i < o->n_said; i++)
                if (o->said[i].rank == rank)
                        return &o->said[i];
        return NULL;
}

void outcome_add_report(struct outcome *o, int rank, const char *kind, const char *text,
                        const char *trace)
{
        size_t n = strlen(text), from = trace ? strlen(trace) : 0;
        bool cut = n > SAID_MAX;

        if (o->n_said == SEEN_MAX || outcome_find_report(o, rank))
                return;
        /* Cut at a character, not within one. Of a call stack the end is kept, where the exception
         * stands. */
        n = cut ? columns_char_start(text, SAID_MAX) : n;
        from = from > TRACE_MAX ? columns_char_start(trace, from - TRACE_MAX) : 0;
        o->said = xrealloc(o->said, o->n_said + 1, sizeof(*o->said));
        o->said[o->n_said++] = (struct rank_report){
                .rank = rank,
                .said = xasprintf("%.100s: %.*s%s", kind, (int)n, text, cut ? " ..." : ""),
                .trace = trace ? xstrdup(trace + from) : NULL,
        };
}

/* --- reasons in the output of ranks ----------------------------------------------------------- */

/* Whether a text tells of a collective's timeout: the watchdog of PyTorch's NCCL, Gloo, and
 * PyTorch's store. The other ranks may still keep each other waiting. */
static bool tells_of_wait(const char *words)
{
        static const char *const patterns[] = {
                "Watchdog caught collective operation timeout",
                "milliseconds before timing out",
                "Timed out waiting ",
                "wait timeout after ",
        };

        return reason_has_phrase(words, patterns, ARRAY_SIZE(patterns));
}

/* Sets text and source together; the text is cut to the room of the cause. */
static void set_quote(struct cause *c, enum quote quote, const struct reason *r)
{
        snprintf(c->text, sizeof(c->text), "%s", r->text);
        c->quote = quote;
}

void outcome_quote(const struct outcome *o, struct cause *c, const char *words)
{
        const struct rank_report *t = outcome_find_report(o, c->rank);
        bool by_signal = c->kind == CAUSE_SIGNAL;
        struct reason r;

        *c->text = '\0';
        c->quote = QUOTE_NONE;
        c->waited = tells_of_wait(words) || (t && tells_of_wait(t->said));
        if (t) {
                /* The name of an exception needs no prefix. */
                reason_first_line(&r, t->said + (strncmp(t->said, "python: ", 8) ? 0 : 8));
                if (*r.text) {
                        set_quote(c, QUOTE_REPORT, &r);
                        return;
                }
        }
        /* A signal counts as the code that a shell would report. */
        reason_find(&r, words, by_signal ? EX_SIGNAL + c->signal : c->code);
        if (r.source == REASON_KNOWN)
                set_quote(c, QUOTE_EXCEPTION, &r);
        /* A program cannot foresee SIGKILL, so the last line does not explain the end. */
        else if (r.source == REASON_LINE && !(by_signal && c->signal == SIGKILL))
                set_quote(c, QUOTE_LINE, &r);
}

/* --- the final choice ------------------------------------------------------------------------- */

void outcome_review(struct outcome *o, const struct plan *plan, outcome_words_fn *last_words,
                    void *ctx)
{
        for (size_t i = 0; i < o->n_seen; i++) {
                struct cause *c = &o->seen[i];
                CLEANUP(free_textp) char *words = NULL;

                if (!cause_is_end_of_rank(c))
                        continue;
                words = last_words(ctx, c->rank, &c->told);
                outcome_judge_words(o, c, words);
        }
        o->cause = (struct cause){ .rank = -1, .node = -1 };
        for (size_t i = 0; i < o->n_seen; i++)
                if (is_stronger(o, &o->seen[i], &o->cause))
                        o->cause = o->seen[i];
        if (cause_is_end_of_rank(&o->cause))
                outcome_find_untold(o, plan, last_words, ctx);
}

/* A rank with a told reason before the stop counts as failed. */
static void count_as_failed(struct outcome *o, int rank)
{
        size_t i = 0;

        while (i < o->halted.n && o->halted.v[i].rank != rank)
                i++;
        if (i == o->halted.n)
                return;
        o->stopped--;
        /* Not below 0: a rank may die of SIGKILL without our order. */
        o->killed -= o->killed && o->halted.v[i].signal == SIGKILL;
        o->failed++;
}

static void add_same_rank(struct outcome *o, int rank)
{
        o->same = xrealloc(o->same, o->n_same + 1, sizeof(*o->same));
        o->same[o->n_same++] = rank;
}

/* Finds the other ranks with the reason of the cause, also among the ranks stopped meanwhile.
 * Echoes of the cause are told elsewhere. */
static void find_same_reason(struct outcome *o, outcome_words_fn *last_words, void *ctx)
{
        const struct cause *cause = &o->cause;

        if (cause->quote == QUOTE_NONE || cause_is_missed(cause))
                return;
        for (size_t i = 0; i < o->n_seen; i++)
                if (o->seen[i].quote && !o->seen[i].echo && o->seen[i].rank != cause->rank &&
                    !strcmp(o->seen[i].text, cause->text))
                        add_same_rank(o, o->seen[i].rank);
        /* A stopped rank might have lived on: its last line alone is no reason. */
        for (size_t i = 0; i < o->halted.n && cause->quote > QUOTE_LINE; i++) {
                /* The reason is read as if the rank had failed: the signal of our order explains
                 * nothing. */
                struct cause c = { .kind = CAUSE_EXIT, .rank = o->halted.v[i].rank, .code = 1 };
                char *words = last_words(ctx, c.rank, &c.told);

                outcome_quote(o, &c, words);
                free(words);
                if (c.rank == cause->rank || c.quote <= QUOTE_LINE ||
                    strcmp(c.text, cause->text) != 0)
                        continue;
                add_same_rank(o, c.rank);
                count_as_failed(o, c.rank);
        }
}

/* Adds the cause to the failures unless already there; the first failure is no echo. */
static void add_cause(struct outcome *o)
{
        const struct cause *cause = &o->cause;
        size_t i = 0;

        o->cause.echo = false;
        while (i < o->n_seen && (o->seen[i].rank != cause->rank || o->seen[i].kind != cause->kind))
                i++;
        if (i < o->n_seen) {
                o->seen[i].echo = false;
                return;
        }
        if (cause->kind != CAUSE_STUCK)
                count_as_failed(o, cause->rank);
        if (o->n_seen < SEEN_MAX)
                add_seen_cause(o, cause);
}

void outcome_finalize(struct outcome *o, const struct plan *plan, outcome_words_fn *last_words,
                      void *ctx)
{
        outcome_review(o, plan, last_words, ctx);
        if (cause_is_end_of_rank(&o->cause))
                add_cause(o);
        find_same_reason(o, last_words, ctx);
}

void outcome_merge_refusals(struct outcome *o, size_t n_nodes)
{
        /* The beginning of the agent's sentence for a program that does not exist. */
        static const char find[] = "cannot find ";
        struct cause *c = o->seen;
        CLEANUP(free_textp) char *text = NULL;

        if (n_nodes < 2 || outcome_count(o) != n_nodes)
                return;
        for (size_t i = 0; i < o->n_seen; i++)
                if (o->seen[i].kind != CAUSE_REFUSED || strcmp(o->seen[i].text, c->text) != 0)
                        return;
        text = xstrdup(c->text);
        if (strncmp(text, find, sizeof(find) - 1))
                snprintf(c->text, sizeof(c->text), "no node can start its ranks: %.400s", text);
        else
                snprintf(c->text, sizeof(c->text), "no node has %s", text + sizeof(find) - 1);
        c->rank = c->node = -1;
        o->n_seen = 1;
        o->unseen = 0;
        o->cause = *c;
}

const struct cause *outcome_find_left(const struct outcome *o, int rank)
{
        for (size_t i = 0; i < o->left.n; i++)
                if (o->left.v[i].rank == rank)
                        return &o->left.v[i];
        return NULL;
}

const struct cause *outcome_next(const struct outcome *o)
{
        const struct cause *next = NULL;

        for (size_t i = 0; i < o->n_seen; i++) {
                const struct cause *c = &o->seen[i];

                if (c->echo || cause_weight(o, c) == OURS ||
                    (c->rank == o->cause.rank && c->node == o->cause.node))
                        continue;
                if (!next || llabs(c->at_ns - o->cause.at_ns) < llabs(next->at_ns - o->cause.at_ns))
                        next = c;
        }
        return next;
}

bool outcome_ambiguous(const struct cause *a, const struct cause *b)
{
        return a->node != b->node && llabs(a->at_ns - b->at_ns) <= a->error_ns + b->error_ns;
}

bool outcome_failed(const struct outcome *o)
{
        return o->cause.kind != CAUSE_NONE;
}

bool outcome_is_workers(const struct outcome *o)
{
        return o->cause.kind == CAUSE_NONE || cause_is_end_of_rank(&o->cause);
}

int outcome_exit_code(const struct outcome *o)
{
        const struct cause *c = &o->cause;

        switch (c->kind) {
        case CAUSE_NONE:
                return 0;
        case CAUSE_TIMEOUT:
        case CAUSE_HANG:
                return EX_TIME_LIMIT;
        case CAUSE_JOIN:
                return EX_TEMPFAIL;
        case CAUSE_WORLDS:
                return EX_CONFIG;
        case CAUSE_NODE:
        case CAUSE_DRAIN:
        case CAUSE_NETWORK:
        case CAUSE_PAUSE:
                return EX_FAILED;
        case CAUSE_STDOUT:
                return c->error == EPIPE ? EX_SIGNAL + SIGPIPE : EX_CANTCREAT;
        /* The codes of a shell: 127 for a program that is not found, 126 for one that cannot be
         * executed. ELIBACC: the program's interpreter or a library is missing. */
        case CAUSE_REFUSED:
                if (c->why == REFUSED_CWD)
                        return EX_UNAVAILABLE;
                if (c->why != REFUSED_EXEC)
                        return EX_FAILED;
                return c->error == ENOENT || c->error == ENOTDIR || c->error == ELIBACC
                               ? EX_NOT_FOUND
                               : EX_NOT_EXECUTABLE;
        case CAUSE_ORDER:
        case CAUSE_SIGNAL:
                return EX_SIGNAL + c->signal;
        default:
                return c->code > 0 && c->code <= 255 ? c->code : 1;
        }
}

const char *outcome_signal_name(int signo)
{
        static _Thread_local char text[16];
        /* NULL for real-time signals. */
        const char *abbrev = sigabbrev_np(signo);

        if (abbrev)
                snprintf(text, sizeof(text), "SIG%s", abbrev);
        else
                snprintf(text, sizeof(text), "signal %d", signo);
        return text;
}

/* Writes " at step 5", or "". Returns @to. */
static char *step_of_rank(const struct cause *c, char *to, size_t size)
{
        *to = '\0';
        if (c->step > 0)
                snprintf(to, size, " at step %lld", (long long)c->step);
        return to;
}

/* Returns the signal of which a process below a shell has ended, by the exit code of the shell;
 * NULL = the code may be one of the program. */
static const char *name_shell_signal(int code)
{
        static const int signals[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP,
                                       SIGABRT, SIGBUS,  SIGFPE,  SIGKILL, SIGSEGV,
                                       SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ, SIGSYS };

        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                if (code == EX_SIGNAL + signals[i])
                        return outcome_signal_name(signals[i]);
        return NULL;
}

void outcome_describe(const struct cause *c, char *to, size_t size)
{
        const char *of_shell = name_shell_signal(c->code);
        char step[40];

        *to = '\0';
        if (c->kind == CAUSE_SIGNAL)
                snprintf(to, size, "was killed by %s (%s)", outcome_signal_name(c->signal),
                         *c->oom.file ? "the kernel's out-of-memory killer" : strsignal(c->signal));
        else if (c->kind == CAUSE_EXIT && of_shell)
                snprintf(to, size, "exited with code %d (128 + %s)", c->code, of_shell);
        else if (c->kind == CAUSE_EXIT)
                snprintf(to, size, "exited with code %d", c->code);
        else if (c->kind == CAUSE_UNFINALIZED)
                snprintf(to, size, "exited with code 0 without MPI_Finalize()");
        else if (c->kind == CAUSE_LATE)
                snprintf(to, size,
                         c->signal ? "failed and had to be stopped"
                                   : "failed and exited with code 0");
        else if (c->kind == CAUSE_LEFT)
                snprintf(to, size, "left%s with exit 0", step_of_rank(c, step, sizeof(step)));
        else if (c->kind == CAUSE_ABORT)
                snprintf(to, size, "aborted the job");
}

/* Passes over what faulthandler of Python says of the signal, which stands in front of the text. */
static const char *skip_signal(const struct cause *c)
{
        char said[96];
        size_t n;

        snprintf(said, sizeof(said), "Fatal Python error: %s", strsignal(c->signal));
        n = strlen(said);
        if (c->kind != CAUSE_SIGNAL || strncmp(c->text, said, n) != 0)
                return c->text;
        return c->text + n + (strncmp(c->text + n, ": ", 2) == 0 ? 2 : 0);
}

void outcome_sentence(const struct cause *c, const char *who, const char *host, char *to,
                      size_t size)
{
        bool of_rank = cause_is_end_of_rank(c) && c->kind != CAUSE_STUCK;
        CLEANUP(free_textp)
        char *text = printable_text(of_rank && *c->oom.file ? "" : skip_signal(c),
                                    of_rank ? PRINTABLE_QUOTE : PRINTABLE_ROW);

        if (of_rank) {
                /* "rank 3 on gpu002: reason", or "... exited with code 7: its last line". */
                bool explains =
                        (c->kind == CAUSE_EXIT || c->kind == CAUSE_LATE) && c->quote > QUOTE_LINE;
                char end[128];

                outcome_describe(c, end, sizeof(end));
                snprintf(to, size, "%s on %s%s%s%s%s%s%s", who, host, explains ? "" : " ",
                         explains ? "" : end,
                         c->kind == CAUSE_LEFT ? ", and others failed without it" : "",
                         c->kind == CAUSE_LEFT && *text ? ", the first with" : "",
                         *text ? ": " : "", text);
        } else if (c->kind == CAUSE_NODE || c->kind == CAUSE_REFUSED || c->kind == CAUSE_DRAIN) {
                snprintf(to, size, "%s%s%s%s%s", c->kind == CAUSE_NODE && *host ? "lost " : "",
                         host, c->kind == CAUSE_DRAIN ? " was drained" : "", *host ? ": " : "",
                         text);
        } else if (c->kind == CAUSE_NONE) {
                snprintf(to, size, "all ranks exited 0");
        } else {
                snprintf(to, size, "%s%s%s", text, c->kind == CAUSE_ORDER && *text ? "; " : "",
                         c->kind == CAUSE_ORDER ? outcome_signal_name(c->signal) : "");
        }
        printable_end(to, size);
}

/* Writes the option that ended the job, where the sentence tells nothing else, or a warning has
 * told the hang: the sentence stands in the last line. */
static bool write_limit(const struct cause *c, const char *sentence, char *to, size_t size)
{
        const char *option = strrchr(sentence, '(');

        if (c->kind == CAUSE_JOIN)
                snprintf(to, size, "--start-timeout");
        else if (option &&
                 (c->kind == CAUSE_HANG || (c->kind == CAUSE_TIMEOUT && !strchr(sentence, ';'))))
                snprintf(to, size, "%.*s", (int)strcspn(option + 1, ")"), option + 1);
        else
                return false;
        return true;
}

void outcome_brief(const struct cause *c, const char *who, const char *host, const char *sentence,
                   char *to, size_t size)
{
        size_t n = strcspn(sentence, ":;");
        char end[128];

        if (write_limit(c, sentence, to, size))
                return;
        while (sentence[n] && sentence[n + 1] != ' ') /* part of a name */
                n += 1 + strcspn(sentence + n + 1, ":;");
        outcome_describe(c, end, sizeof(end));
        if (*end)
                snprintf(to, size, "%s on %s %s", who, host, end);
        else if (c->kind == CAUSE_REFUSED)
                snprintf(to, size, "%s cannot start its ranks", host);
        else
                snprintf(to, size, "%.*s", (int)n, sentence);
        printable_end(to, size);
}
