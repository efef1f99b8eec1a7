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
        CAUSE_NETWORK, /* all nodes at once: rather the network of this machine */
        CAUSE_SIGNAL,  /* a rank was killed by @signal */
        CAUSE_ABORT,   /* hn_abort(): @code, @text */
        CAUSE_EXIT,    /* a rank exited with @code */
        CAUSE_KINDS,
};

/* What the text of a rank that ended is, the better reason last. */
enum quote {
        QUOTE_NONE,
        QUOTE_LINE,      /* the last line of its stderr */
        QUOTE_EXCEPTION, /* "Name: text" after a Python traceback there */
        QUOTE_REPORT,    /* hn_report_error(), or the error file */
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
        /* hn_abort(), the refusal, why the node is lost, @quote of a rank that ended; as it came */
        char text[512];
        enum quote quote;
        /* The kernel's out-of-memory killer was counted there; "" = it was not. */
        char oom[160];
        uint64_t oom_before, oom_after;
};

/* What a rank said of itself. */
struct rank_report {
        int rank;
        char *said;  /* "data: shard 12 is broken"; of a very long one the beginning */
        char *trace; /* the call stack of an uncaught Python exception, or NULL; its end */
};

/* A rank that ended with 0 while others ran, or that we stopped. */
struct ended {
        int rank;
        int64_t at_ns;
        bool itself; /* not by a signal, and not with 0 */
};

struct outcome {
        struct cause cause;
        struct cause *seen;    /* every failure that nobody ordered, in the order of their coming */
        size_t n_seen, unseen; /* failures beyond some thousands are only counted */
        struct rank_report *said;
        size_t n_said;
        struct ended *left, *halted; /* with 0; on our order. Of very many the first */
        size_t n_left, n_halted;
        int *same; /* ranks that gave the cause's reason, too; see outcome_finalize() */
        size_t n_same;
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
 * and what is known of memory; the status is as waitpid() gives it; @words is its newest stderr. */
bool outcome_exited(struct outcome *o, const struct cause *c, int status, bool stopped, bool killed,
                    const char *words);
bool outcome_happened(struct outcome *o, const struct cause *c);

/* How often either was called for a failure: also for those that are no cause. */
size_t outcome_count(const struct outcome *o);

/* hn_report_error(), or the error file of torch.distributed.elastic (@trace may be NULL). The first
 * word of a rank stays. */
void outcome_add_report(struct outcome *o, int rank, const char *kind, const char *text,
                        const char *trace);
const struct rank_report *outcome_find_report(const struct outcome *o,
                                              int rank); /* NULL = nothing */

/* Why a rank ended, as it says itself: what it reported, else the exception at the end of @words,
 * its newest stderr, else the last line of them. Sets text and quote of @c. */
void outcome_quote(const struct outcome *o, struct cause *c, const char *words);

/* At the end, when all output is there (@last_words lends it): finds failures that only echo
 * another one step back, chooses anew, and finds the ranks that said the same as the cause. */
void outcome_finalize(struct outcome *o, char *(*last_words)(void *ctx, int rank), void *ctx);
/* Whether this is the text of someone who lost a peer: connection reset, ncclRemoteError. */
bool outcome_is_echo(const char *words);

/* The failure next to the cause in time, echoes left out; NULL = there is none. */
const struct cause *outcome_next(const struct outcome *o);
/* Nobody can say which of the two was first. */
bool outcome_ambiguous(const struct cause *a, const struct cause *b);

bool outcome_failed(const struct outcome *o);
int outcome_exit_code(const struct outcome *o);
bool outcome_is_workers(const struct outcome *o); /* decided by a rank, not by the launcher */

/* "rank 3 on gpu002: ValueError: shard 12 is empty": the part of the verdict after "failed: ".
 * What others said in it is escaped and cut. */
void outcome_sentence(const struct cause *c, const char *host, char *to, size_t size);
/* Sets kind, and code or signal, of a rank that did not exit with 0. */
void outcome_read_status(struct cause *c, int status);
/* "exited with code 7", "was killed by SIGSEGV (Segmentation fault)"; "" of other causes. */
void outcome_describe(const struct cause *c, char *to, size_t size);
/* "SIGSEGV" */
const char *outcome_signal_name(int signo);
