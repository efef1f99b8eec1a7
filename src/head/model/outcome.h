/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcome: the cause of a failed job, with its exit code and sentence
 *
 * Pure. Failures are added in the order of arrival at the head; the cause (decisions D14 and D53)
 * is the first failure that is no echo of another. Of failures close to one another a lost node
 * comes first, then a fatal signal, then a rank with a reported error, then a non-zero exit; of
 * equal failures, and of failures far apart, the earlier. If all may be echoes, a rank with a told
 * reason is the cause also when stopped by the launcher's order, or after exit code 0. After
 * outcome_decide() nothing counts as a failure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/model/burst.h"

enum cause_kind {
        CAUSE_NONE,    /* everything exited 0 */
        CAUSE_ORDER,   /* Ctrl-C or a signal to hnlaunch; @signal; @text: after which hang */
        CAUSE_TIMEOUT, /* --timeout */
        CAUSE_STDOUT,  /* stdout cannot be written: @error, EPIPE = the reader is gone */
        CAUSE_JOIN,    /* ranks did not join in time: @text is the sentence */
        CAUSE_HANG,    /* --on-hang: @text is the sentence */
        CAUSE_ROLE,    /* a rule of roles (role_order.h): @code, @text is the sentence */
        CAUSE_WORLDS,  /* ranks were MPI worlds of a single rank: @text is the sentence */
        CAUSE_REFUSED, /* a program could not be started; @error */
        CAUSE_NODE,    /* a node was lost; @node -1: all, with their hold */
        CAUSE_DRAIN,   /* a node was drained: the job goes on without the node; @text: by whom */
        CAUSE_NETWORK, /* all nodes at once: probably the network of this machine */
        CAUSE_PAUSE,   /* hnlaunch did not run, and the nodes ended their ranks: @text */
        CAUSE_SIGNAL,  /* a rank was killed by @signal */
        CAUSE_ABORT,   /* hn_abort(): @code, @text */
        CAUSE_EXIT,    /* a rank exited with @code */
        /* A rank exited with 0 between MPI_Init() and MPI_Finalize(): a failure, @code is 1. */
        CAUSE_UNFINALIZED,
        /* A rank told a reason, and exited with 0 (@signal 0) or was ended by our order. @code: of
         * the first rank with a later failure. */
        CAUSE_LATE,
        /* A rank exited with 0, and others failed for lack of a peer. @code and @text as of
         * CAUSE_LATE, but the words are of the failed rank. */
        CAUSE_LEFT,
        /* A rank kept the others waiting, until a rank failed: @code is of the failed rank, @text
         * the sentence. */
        CAUSE_STUCK,
        CAUSE_KINDS,
};

/* The source of a cause's text, the better reason last. */
enum quote {
        QUOTE_NONE,
        QUOTE_LINE,      /* the last line of stderr */
        QUOTE_EXCEPTION, /* a form there in which programs tell why they end: head/reason */
        QUOTE_REPORT,    /* hn_report_error(), or the error file */
};

/* What the kernel's out-of-memory killer did meanwhile. */
struct oom_kills {
        char file[160]; /* that counts; "" = nothing */
        uint64_t before, after;
};

struct cause {
        enum cause_kind kind;
        int rank, node; /* -1 = none */
        int code, signal, error;
        bool core;    /* dumped core */
        bool echo;    /* its words tell of another's failure */
        bool waited;  /* the last lines tell of a wait for others in vain */
        unsigned why; /* enum refusal of wire/msg.h */
        uint32_t pid;
        /* On the head's clock, nanoseconds, and the error bound, from the round trips of pings. Of
         * a lost node: the time of the last byte. */
        int64_t at_ns, error_ns;
        struct burst told; /* the newest stderr */
        uint64_t after_ms; /* since the launch */
        int64_t step;      /* the newest that the rank has told; 0 = none */
        /* of hn_abort(), a refusal or a lost node; the @quote of a rank that ended; not escaped */
        char text[512];
        enum quote quote;
        struct oom_kills oom;
};

/* A rank's report of an error. */
struct rank_report {
        int rank;
        char *said;  /* "data: shard 12 is broken"; of a very long text the beginning */
        char *trace; /* the end of the call stack of an uncaught Python exception, or NULL */
};

/* Returns the newest stderr of a rank, malloc'ed, and sets *@ret to the burst of the text. */
typedef char *outcome_words_fn(void *ctx, int rank, struct burst *ret);

struct cause_list {
        struct cause *v;
        size_t n;
};

struct plan;

struct outcome {
        struct cause cause;
        struct cause *seen;    /* every failure before or without an order, as they arrived */
        size_t n_seen, unseen; /* failures beyond some thousands are only counted */
        struct rank_report *said;
        size_t n_said;
        struct cause_list left, halted; /* ended with 0; on our order. Of very many the first */
        struct {
                int rank, node;
                char text[301]; /* "" = not known */
        } stuck;                /* a rank that keeps the others waiting */
        int *same;              /* other ranks with the cause's reason; see outcome_finalize() */
        size_t n_same;
        size_t exited, failed;     /* ranks: ended; not 0 by themselves */
        size_t behind;             /* nodes lost only with their parent in the tree */
        size_t stopped, killed;    /* ranks ended by TERM or KILL on our order */
        bool decided;              /* by outcome_decide() */
        int64_t stopped_ns;        /* clock_ns() of the first order to end; 0 = none yet */
        const struct intlist *ran; /* the ranks that run the program (--ranks); NULL = all */
        int64_t pulse_ns; /* time between pings: a lost node may have failed two pings earlier */
};

#define OUTCOME_INIT                                                                               \
        {                                                                                          \
                .cause = {.rank = -1, .node = -1 }                                                 \
        }

void outcome_finish(struct outcome *o);

/* Add a failure; true = the failure is the cause now: a reason to stop the job. outcome_exited()
 * takes rank, node, times and memory from @c, and the kind CAUSE_UNFINALIZED; the status as of
 * waitpid(), and the newest stderr in @words (NULL = none). */
bool outcome_exited(struct outcome *o, const struct cause *c, int status, bool stopped, bool killed,
                    const char *words);
bool outcome_happened(struct outcome *o, const struct cause *c);
/* The same for the abort of a rank. */
bool outcome_aborted(struct outcome *o, const struct cause *c, const char *words);
/* A rank has failed, and no role needs it. */
void outcome_allowed(struct outcome *o);
/* A rank starts again within the attempt: forgets what it has told and, with @ended, its end, which
 * was no failure. */
void outcome_forget(struct outcome *o, int rank, bool ended);

/* Names the rank (-1 = several) behind a hang that led to @c, a decision of the launcher: @text
 * comes in front of the text of @c. */
void cause_blame(struct cause *c, int rank, int node, const char *text);
/* The same for the newest failure, if the failure is such a decision and blames no rank yet. If the
 * newest failure is a wait in vain, @rank becomes the cause, unless another rank tells a reason. */
void outcome_blame(struct outcome *o, int rank, int node, const char *text);

/* Drops the failures so far as results of an order to end. */
void outcome_excuse(struct outcome *o);
/* The job has reached the goal: later failures do not count, and ranks without exit code 0 are
 * counted as stopped. An earlier cause stays. */
void outcome_decide(struct outcome *o);

/* Returns the number of failures added, whether a cause or not. */
size_t outcome_count(const struct outcome *o);

/* Adds a rank's report: hn_report_error(), or the error file of torch.distributed.elastic (@trace
 * may be NULL). Later reports of the rank are ignored. */
void outcome_add_report(struct outcome *o, int rank, const char *kind, const char *text,
                        const char *trace);
/* Returns the rank's report, NULL = none. */
const struct rank_report *outcome_find_report(const struct outcome *o, int rank);

/* Sets text and quote of @c, the reason in the rank's own words: the report, else what
 * reason_find() finds in @words, the newest stderr. */
void outcome_quote(const struct outcome *o, struct cause *c, const char *words);

/* Whether the cause so far, the end of a rank, may follow from a living rank of @n_ranks: the cause
 * is an echo, or a living rank has told a reason just before. */
bool outcome_may_follow(const struct outcome *o, int n_ranks, int64_t now_ns,
                        outcome_words_fn *last_words, void *ctx);

/* Whether a rank without a failure has told a reason at the end of stderr; writes the reason to
 * @to, not escaped. */
bool outcome_has_told(const struct outcome *o, int rank, outcome_words_fn *last_words, void *ctx,
                      char *to, size_t size);

/* Finds the rank that has not ended, but has told a reason of its own at the end of its stderr; of
 * several the first to begin. Sets rank and text of @ret. False: there is none. */
bool outcome_find_told(const struct outcome *o, int n_ranks, outcome_words_fn *last_words,
                       void *ctx, struct cause *ret);

/* Repeats the choice with the words of now: finds failures that only echo another, and ranks that
 * have told the reason, but were stopped or exited with 0. @plan names ranks; NULL = numbers. */
void outcome_review(struct outcome *o, const struct plan *plan, outcome_words_fn *last_words,
                    void *ctx);

/* Repeats the choice at the end, when all output is there: adds the cause to the failures unless
 * already there, and finds the ranks with the same reason. */
void outcome_finalize(struct outcome *o, const struct plan *plan, outcome_words_fn *last_words,
                      void *ctx);

/* Makes the refusals of all @n_nodes nodes, if there are several with equal reasons, a single
 * failure without a node: "no node has 'train' in PATH". */
void outcome_merge_refusals(struct outcome *o, size_t n_nodes);

/* Returns the end of a rank with exit code 0, NULL = none; of very many ranks the first. */
const struct cause *outcome_find_left(const struct outcome *o, int rank);
/* Returns the first rank that failed by itself or followed another; NULL = none. */
const struct cause *outcome_first_failed(const struct outcome *o);
/* Returns the failure nearest to the cause in time, without echoes; NULL = none. */
const struct cause *outcome_next(const struct outcome *o);
/* Whether the clocks are too inexact to order the two. */
bool outcome_ambiguous(const struct cause *a, const struct cause *b);

bool outcome_failed(const struct outcome *o);
int outcome_exit_code(const struct outcome *o);
bool outcome_is_workers(const struct outcome *o); /* decided by a rank, not by the launcher */

/* Writes the part of the verdict after "failed: ", "rank 3 on gpu002: ValueError: shard 12 is
 * empty". @who is the rank, of plan_rank_name(). Texts of ranks and nodes are escaped and cut. */
void outcome_sentence(const struct cause *c, const char *who, const char *host, char *to,
                      size_t size);
/* Writes the reason of a stop in a few words, "rank 3 on gpu002 exited with code 1": @sentence, of
 * @c, without quoted text. Of a limit set by the user: the option. */
void outcome_brief(const struct cause *c, const char *who, const char *host, const char *sentence,
                   char *to, size_t size);
/* Sets kind, and code or signal, from the status of a rank that did not exit with 0; of
 * CAUSE_UNFINALIZED the code. */
void outcome_read_status(struct cause *c, int status);
/* Writes how a rank ended: "exited with code 7", "was killed by SIGSEGV (Segmentation fault)"; ""
 * for other causes. */
void outcome_describe(const struct cause *c, char *to, size_t size);
/* "SIGSEGV" */
const char *outcome_signal_name(int signo);
