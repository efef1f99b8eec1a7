/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempt: the state of one start of the ranks, fresh for every start
 *
 * The plan is known from the opening of the endpoint on; printer, store, turns and dumps live from
 * job_launch() to job_restart() or the end of the job. The state is the job's, and returns to READY
 * before another attempt.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "head/model/job_state.h"
#include "head/model/outcome.h"
#include "head/model/plan.h"
#include "head/output/printer.h"

struct dump_files;
struct world_servers;
struct turns;

/* What the core file tells of the rank that is the cause, see job_read_core(). */
struct core_found {
        uint32_t number; /* of the INSPECT; 0 = the node was not asked */
        bool waits;      /* for the answer */
        char file[160];  /* on the node; "" = there is none */
        char where[400]; /* "load (w.c:8), called in main (w.c:20)"; "" = not known */
        char problem[200];
};

struct attempt {
        int number; /* 0 = the first */
        enum job_state state;
        const struct plan *plan;
        struct printer *printer;      /* NULL before the launch */
        struct world_servers *stores; /* NULL before the launch */
        struct turns *turns;          /* NULL before the launch */
        struct dump_files *dumps;     /* NULL before the launch */
        struct outcome outcome;
        struct core_found core;
        int64_t launched_ns;                      /* clock_ns() */
        void (*failed)(void *ctx, bool is_cause); /* follows every recorded failure */
        void *ctx;
};

/* Steps the state, and logs the change. False: nothing changed. */
bool attempt_step(struct attempt *a, enum job_event e);
/* Records a failure other than the end of a rank, and calls failed(). */
void attempt_fail(struct attempt *a, const struct cause *c);
/* The newest lines of a rank's stream (MSG_STDERR), "" = none; malloc'ed. */
char *attempt_last_words(const struct attempt *a, int rank, uint8_t stream);
/* The newest stderr of a rank of the attempt @ctx, for outcome.h. */
char *attempt_newest_stderr(void *ctx, int rank, struct burst *ret);
/* Returns a cause of this moment, without rank and node. */
struct cause attempt_cause(const struct attempt *a, enum cause_kind kind);
/* Milliseconds since the launch; 0 before it. */
uint64_t attempt_age_ms(const struct attempt *a);
/* Frees printer, stores, turns and dumps; the outcome stays. */
void attempt_drop_parts(struct attempt *a);
