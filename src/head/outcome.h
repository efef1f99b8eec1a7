/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcome: the first failure, and what follows from it: exit code and sentence
 *
 * Pure. It is told everything that ends badly, in the order in which the head learns it, and picks
 * the cause (design D14) among what happened before our own order to stop: of failures close to one
 * another a lost node, then a fatal signal, then a rank that said what is wrong with it, then a
 * non-zero exit, then one that only echoes another; of like ones, and of those far apart, the
 * earlier one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cause_kind {
        CAUSE_NONE,    /* everything exited 0 */
        CAUSE_ORDER,   /* Ctrl-C or a signal to hnlaunch; @signal */
        CAUSE_TIMEOUT, /* --timeout */
        CAUSE_STDOUT,  /* our stdout cannot be written: @error, EPIPE = nobody reads it */
        CAUSE_JOIN,    /* ranks did not join in time: @text is the sentence */
        CAUSE_REFUSED, /* a program could not be started; @error */
        CAUSE_NODE,    /* a node was lost */
        CAUSE_SIGNAL,  /* a rank was killed by @signal */
        CAUSE_ABORT,   /* hn_abort(): @code, @text */
        CAUSE_EXIT,    /* a rank exited with @code */
        CAUSE_KINDS,
};

struct cause {
        enum cause_kind kind;
        int rank, node; /* -1 = none */
        int code, signal, error;
        bool core;    /* dumped core */
        bool echo;    /* its last words speak of somebody else's failure */
        unsigned why; /* enum refusal of wire/msg.h */
        uint32_t pid;
        /* On the head's clock, nanoseconds, and how wrong that may be: the node's clock is known by
         * the round trips of pings. Of a lost node: when it was heard last. */
        int64_t at_ns, error_ns;
        uint64_t after_ms; /* since the launch */
        char text[512];    /* hn_abort(), the refusal, why the node is lost */
        /* The kernel's out-of-memory killer was counted there; "" = it was not. */
        char oom[160];
        uint64_t oom_before, oom_after;
};

/* What a rank said of itself. */
struct testimony {
        int rank;
        char *said;  /* "data: shard 12 is broken" */
        char *trace; /* the call stack of an uncaught Python exception, or NULL */
};

struct outcome {
        struct cause cause;
        struct cause *seen;    /* every failure that nobody ordered, in the order of their coming */
        size_t n_seen, unseen; /* failures beyond some thousands are only counted */
        struct testimony *said;
        size_t n_said;
        size_t exited, failed;  /* ranks: ended; not 0 by themselves */
        size_t behind;          /* nodes lost only because the one that carried them was */
        size_t stopped, killed; /* ranks ended by TERM or KILL on our order */
        int64_t pulse_ns;       /* from ping to ping: how far a lost node reaches back */
};

#define OUTCOME_INIT                                                                               \
        {                                                                                          \
                .cause = {.rank = -1, .node = -1 }                                                 \
        }

void outcome_finish(struct outcome *o);

/* Both return true if this is now the cause: a reason to stop the job. Of a rank @c has who, when,
 * and what is known of memory; the status is as waitpid() gives it. */
bool outcome_exited(struct outcome *o, const struct cause *c, int status, bool stopped,
                    bool killed);
bool outcome_happened(struct outcome *o, const struct cause *c);

/* How often either was called for a failure: also for those that are no cause. */
size_t outcome_count(const struct outcome *o);

/* hn_report_error(), or the error file of torch.distributed.elastic (@trace may be NULL). The first
 * word of a rank stays. */
void outcome_report(struct outcome *o, int rank, const char *kind, const char *text,
                    const char *trace);
const struct testimony *outcome_said(const struct outcome *o, int rank); /* NULL = nothing */

/* At the end: failures whose last words, lent by @last_words, only echo another one step back. */
void outcome_settle(struct outcome *o, char *(*last_words)(void *ctx, int rank), void *ctx);
/* Whether this is the text of someone who lost a peer: connection reset, ncclRemoteError. */
bool outcome_is_echo(const char *words);

/* The failure next to the cause in time, echoes left out; NULL = there is none. */
const struct cause *outcome_next(const struct outcome *o);
/* Nobody can say which of the two was first. */
bool outcome_ambiguous(const struct cause *a, const struct cause *b);

bool outcome_failed(const struct outcome *o);
int outcome_exit_code(const struct outcome *o);
bool outcome_is_workers(const struct outcome *o); /* decided by a rank, not by the launcher */

/* "rank 13 on gpu002 killed by SIGSEGV": the part of the verdict after "failed: ". */
void outcome_sentence(const struct outcome *o, const char *host, char *to, size_t size);
/* "SIGSEGV" and "segmentation fault". */
const char *outcome_signal_name(int signo);
