/* SPDX-License-Identifier: Apache-2.0 */
#include "head/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "wire/msg.h"

/* Lower wins while the job has not been told to stop; equal keeps the earlier. */
static const int precedence[CAUSE_KINDS] = {
        [CAUSE_NONE] = 100, [CAUSE_ORDER] = 0,   [CAUSE_TIMEOUT] = 0, [CAUSE_STDOUT] = 0,
        [CAUSE_JOIN] = 0,   [CAUSE_REFUSED] = 1, [CAUSE_NODE] = 2,    [CAUSE_SIGNAL] = 3,
        [CAUSE_ABORT] = 4,  [CAUSE_EXIT] = 5,
};

bool outcome_happened(struct outcome *o, const struct cause *c)
{
        bool first = o->cause.kind == CAUSE_NONE;

        /* Our own decisions stand: what follows a Ctrl-C is its consequence. */
        if (!first &&
            (precedence[o->cause.kind] == 0 || precedence[c->kind] >= precedence[o->cause.kind])) {
                o->consequences++;
                return false;
        }
        if (!first && precedence[c->kind] == 0) {
                o->consequences++;
                return false;
        }
        if (!first)
                o->consequences++;
        o->cause = *c;
        return true;
}

bool outcome_exited(struct outcome *o, int rank, int node, uint32_t pid, int status, bool stopped,
                    bool killed, uint64_t after_ms)
{
        struct cause c = { .rank = rank, .node = node, .pid = pid, .after_ms = after_ms };

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
        /* What the rank said of itself before it died belongs to its death. */
        if (o->cause.kind == CAUSE_NONE && o->cause.rank == rank)
                memcpy(c.text, o->cause.text, sizeof(c.text));
        return outcome_happened(o, &c);
}

void outcome_report(struct outcome *o, int rank, const char *kind, const char *text)
{
        if (o->cause.kind != CAUSE_NONE && o->cause.rank != rank)
                return;
        o->cause.rank = rank;
        snprintf(o->cause.text, sizeof(o->cause.text), "%s: %s", kind, text);
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
