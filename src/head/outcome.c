/* SPDX-License-Identifier: Apache-2.0 */
#include "head/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/strv.h"
#include "wire/msg.h"

enum {
        NEAR_MS = 2000, /* failures so close to one another belong together */
        SEEN_MAX = 4096,
        OURS = 0, /* weight of our own decisions */
};

void outcome_finish(struct outcome *o)
{
        for (size_t i = 0; i < o->n_said; i++) {
                free(o->said[i].said);
                free(o->said[i].trace);
        }
        free(o->said);
        free(o->seen);
        *o = (struct outcome)OUTCOME_INIT;
}

/* --- the choice ------------------------------------------------------------------------------- */

static int weight(const struct outcome *o, const struct cause *c)
{
        static const int weights[CAUSE_KINDS] = {
                [CAUSE_NONE] = 100,    [CAUSE_ORDER] = OURS, [CAUSE_TIMEOUT] = OURS,
                [CAUSE_STDOUT] = OURS, [CAUSE_JOIN] = OURS,  [CAUSE_REFUSED] = 1,
                [CAUSE_NODE] = 2,      [CAUSE_SIGNAL] = 3,   [CAUSE_ABORT] = 4,
                [CAUSE_EXIT] = 6,
        };

        if (c->kind == CAUSE_EXIT && c->echo)
                return 7;
        if (c->kind == CAUSE_EXIT && outcome_said(o, c->rank))
                return 5;
        return weights[c->kind];
}

static bool is_near(const struct outcome *o, const struct cause *a, const struct cause *b)
{
        const struct cause *node = a->kind == CAUSE_NODE ? a : b->kind == CAUSE_NODE ? b : NULL;
        const struct cause *other = node == a ? b : a;

        /* Its ranks' peers may fail as soon as it is gone, long before its silence is noticed. */
        if (node && other->kind != CAUSE_NODE)
                return other->at_ns >= node->at_ns - 2 * o->pulse_ns;
        return llabs(a->at_ns - b->at_ns) <= NEAR_MS * (int64_t)1000000;
}

/* A rank of that very node, whose end had been told before the node was lost, whatever the clocks
 * say. */
static bool told_before(const struct cause *rank, const struct cause *node)
{
        return node->kind == CAUSE_NODE && rank->node == node->node &&
               (rank->kind == CAUSE_EXIT || rank->kind == CAUSE_ABORT);
}

/* Whether @a rather than @b, which came earlier to us, is the cause. */
static bool beats(const struct outcome *o, const struct cause *a, const struct cause *b)
{
        int wa = weight(o, a), wb = weight(o, b);

        /* Our own decisions stand, but do not explain what was there before them. */
        if (wa == OURS || wb == OURS || b->kind == CAUSE_NONE)
                return b->kind == CAUSE_NONE;
        if (told_before(a, b) || told_before(b, a))
                return told_before(a, b);
        if (wa != wb && is_near(o, a, b))
                return wa < wb;
        return a->at_ns < b->at_ns;
}

static void choose(struct outcome *o)
{
        struct cause best = { .rank = -1, .node = -1 };

        for (size_t i = 0; i < o->n_seen; i++)
                if (beats(o, &o->seen[i], &best))
                        best = o->seen[i];
        o->cause = best;
}

bool outcome_happened(struct outcome *o, const struct cause *c)
{
        bool is_cause = beats(o, c, &o->cause);

        if (o->n_seen < SEEN_MAX) {
                o->seen = xrealloc(o->seen, o->n_seen + 1, sizeof(*o->seen));
                o->seen[o->n_seen++] = *c;
        } else {
                o->unseen++;
                if (is_cause) /* outcome_settle() must find it */
                        o->seen[SEEN_MAX - 1] = *c;
        }
        if (is_cause)
                o->cause = *c;
        return is_cause;
}

size_t outcome_count(const struct outcome *o)
{
        return o->n_seen + o->unseen;
}

bool outcome_exited(struct outcome *o, const struct cause *who, int status, bool stopped,
                    bool killed)
{
        struct cause c = *who;

        o->exited++;
        if (stopped) {
                o->stopped++;
                o->killed += killed;
                return false;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return false;
        o->failed++;
        if (WIFSIGNALED(status)) {
                c.kind = CAUSE_SIGNAL;
                c.signal = WTERMSIG(status);
                c.core = WCOREDUMP(status);
        } else {
                c.kind = CAUSE_EXIT;
                c.code = WEXITSTATUS(status);
        }
        return outcome_happened(o, &c);
}

/* --- what ranks say --------------------------------------------------------------------------- */

const struct testimony *outcome_said(const struct outcome *o, int rank)
{
        for (size_t i = 0; i < o->n_said; i++)
                if (o->said[i].rank == rank)
                        return &o->said[i];
        return NULL;
}

void outcome_report(struct outcome *o, int rank, const char *kind, const char *text,
                    const char *trace)
{
        if (o->n_said == SEEN_MAX || outcome_said(o, rank))
                return;
        o->said = xrealloc(o->said, o->n_said + 1, sizeof(*o->said));
        o->said[o->n_said++] = (struct testimony){ .rank = rank,
                                                   .said = xasprintf("%s: %s", kind, text),
                                                   .trace = trace ? xstrdup(trace) : NULL };
}

bool outcome_is_echo(const char *words)
{
        static const char *const patterns[] = {
                "ncclRemoteError",
                "remote process exited or there was a network error",
                "Connection reset by peer",
                "Connection closed by peer",
                "Broken pipe",
                "Connection refused",
                "recvBytes",
                "HN_ERR_PEER",
                "Socket closed",
                "failed to connect, willRetry",
        };

        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
                if (strstr(words, patterns[i]))
                        return true;
        return false;
}

void outcome_settle(struct outcome *o, char *(*last_words)(void *ctx, int rank), void *ctx)
{
        for (size_t i = 0; i < o->n_seen; i++) {
                struct cause *c = &o->seen[i];
                const struct testimony *t = outcome_said(o, c->rank);
                char *words;

                if (c->kind != CAUSE_EXIT)
                        continue;
                words = last_words(ctx, c->rank);
                c->echo = outcome_is_echo(words) || (t && outcome_is_echo(t->said));
                free(words);
        }
        choose(o);
}

const struct cause *outcome_next(const struct outcome *o)
{
        const struct cause *next = NULL;

        for (size_t i = 0; i < o->n_seen; i++) {
                const struct cause *c = &o->seen[i];

                if (c->echo || weight(o, c) == OURS ||
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
        return o->cause.kind == CAUSE_NONE || o->cause.kind == CAUSE_SIGNAL ||
               o->cause.kind == CAUSE_ABORT || o->cause.kind == CAUSE_EXIT;
}

static int refused_code(const struct cause *c)
{
        if (c->why == REFUSED_CWD)
                return 69;
        if (c->why != REFUSED_EXEC)
                return 125;
        return c->error == ENOENT || c->error == ENOTDIR ? 127 : 126;
}

int outcome_exit_code(const struct outcome *o)
{
        const struct cause *c = &o->cause;

        switch (c->kind) {
        case CAUSE_NONE:
                return 0;
        case CAUSE_TIMEOUT:
                return 124;
        case CAUSE_JOIN:
                return 75;
        case CAUSE_NODE:
                return 125;
        case CAUSE_STDOUT:
                return c->error == EPIPE ? 128 + SIGPIPE : 73;
        case CAUSE_REFUSED:
                return refused_code(c);
        case CAUSE_ORDER:
        case CAUSE_SIGNAL:
                return 128 + c->signal;
        default:
                return c->code ? c->code & 255 : 1;
        }
}

const char *outcome_signal_name(int signo)
{
        static _Thread_local char text[16];
        const char *abbrev = sigabbrev_np(signo);

        if (abbrev)
                snprintf(text, sizeof(text), "SIG%s", abbrev);
        else
                snprintf(text, sizeof(text), "signal %d", signo);
        return text;
}

void outcome_sentence(const struct outcome *o, const char *host, char *to, size_t size)
{
        const struct cause *c = &o->cause;

        switch (c->kind) {
        case CAUSE_ORDER:
                snprintf(to, size, "%s", outcome_signal_name(c->signal));
                break;
        case CAUSE_TIMEOUT:
                snprintf(to, size, "the time limit is over");
                break;
        case CAUSE_STDOUT:
        case CAUSE_JOIN:
                snprintf(to, size, "%s", c->text);
                break;
        case CAUSE_REFUSED:
                snprintf(to, size, "%s: %s", host, c->text);
                break;
        case CAUSE_NODE:
                snprintf(to, size, "lost node %s: %s", host, c->text);
                break;
        case CAUSE_SIGNAL:
                snprintf(to, size, "rank %d on %s killed by %s", c->rank, host,
                         outcome_signal_name(c->signal));
                break;
        case CAUSE_ABORT:
                snprintf(to, size, "rank %d on %s aborted the job: %s", c->rank, host, c->text);
                break;
        case CAUSE_EXIT:
                snprintf(to, size, "rank %d on %s exited with code %d", c->rank, host, c->code);
                break;
        default:
                snprintf(to, size, "all ranks exited 0");
        }
}
