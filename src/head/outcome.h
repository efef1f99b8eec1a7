/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcome: the first failure, and what follows from it: exit code and sentence
 *
 * Pure. It is told everything that ends badly, in the order in which the head learns it, and picks
 * the cause (design D14): a lost node, then a fatal signal, then what a program says of itself,
 * then a non-zero exit. What agents did on our orders (stopped) is never the cause.
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
        unsigned why; /* enum refusal of wire/msg.h */
        uint32_t pid;
        uint64_t after_ms; /* since the launch */
        char text[512];    /* hn_report_error(), hn_abort(), the refusal, why the node is lost */
};

struct outcome {
        struct cause cause;
        size_t exited, failed,
                consequences;   /* ranks: ended; not 0 by themselves; after the cause */
        size_t stopped, killed; /* ranks ended by TERM or KILL on our order */
};

#define OUTCOME_INIT                                                                               \
        {                                                                                          \
                .cause = {.rank = -1, .node = -1 }                                                 \
        }

/* Every one returns true if this is now the cause: a reason to stop the job. */
bool outcome_exited(struct outcome *o, int rank, int node, uint32_t pid, int status, bool stopped,
                    bool killed, uint64_t after_ms);
bool outcome_happened(struct outcome *o, const struct cause *c);
/* Text of hn_report_error(), to be told if this rank is or becomes the cause. */
void outcome_report(struct outcome *o, int rank, const char *kind, const char *text);

bool outcome_failed(const struct outcome *o);
int outcome_exit_code(const struct outcome *o);
bool outcome_is_workers(const struct outcome *o); /* decided by a rank, not by the launcher */

/* "rank 13 on gpu002 killed by SIGSEGV": the part of the verdict after "failed: ". */
void outcome_sentence(const struct outcome *o, const char *host, char *to, size_t size);
/* "SIGSEGV" and "segmentation fault". */
const char *outcome_signal_name(int signo);
