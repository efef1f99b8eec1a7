/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm: interpreters of Python with modules imported before the ranks start (--warm)
 *
 * One interpreter imports the modules, forks a process for each slot, and ends. The slots share the
 * interpreter's memory and become children of the agent, a subreaper. A slot with a rank is the
 * process of the rank: session, descriptors, environment and all else are as in a cold start. A
 * slot in which the rank cannot run executes the interpreter anew, and so starts the rank cold.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "base/error.h"
#include "base/strv.h"
#include "wire/msg.h"
#include "wire/warm_msg.h"

struct warm;
struct worker_setup;

struct warm *warm_create(uv_loop_t *loop, struct uplink *up);
void warm_close(struct warm *w); /* ends the preparation; let the loop turn once more */
void warm_destroy(struct warm *w);

/* Starts the preparation of @m with the environment @env of the ranks, in place of an earlier
 * preparation. @enter: see struct spawn. WARMED follows. */
void warm_prepare(struct warm *w, const struct warm_order *m, const struct strv *env,
                  int (*enter)(void *ctx));
/* Ends the slots without a rank. */
void warm_drop(struct warm *w);
/* Reports @why instead of prepared interpreters, and ends the slots. */
void warm_refuse(struct warm *w, const char *why);

bool warm_is_ready(const struct warm *w);
/* Notes that ranks are about to start. */
void warm_begin_attempt(struct warm *w);
/* Whether ranks of this run are to be handed over, as long as slots are left. */
bool warm_has_slots(const struct warm *w);
/* Processes of the preparation: whether any exists, whether @pid is among the processes, the notice
 * that @pid was reaped. The process of a rank does not count. */
bool warm_any(const struct warm *w);
bool warm_have(const struct warm *w, pid_t pid);
void warm_reaped(struct warm *w, pid_t pid, int status);

/* All borrowed for the call. */
struct warm_rank {
        const struct launch_order *order;
        uint32_t rank; /* in the job */
        const struct strv *argv, *env;
        unsigned older_names; /* of nccl_env_build_all() */
        const char *cwd;      /* "" = the agent's */
        int fds[3];           /* standard input, output, error */
        int report;           /* as of struct spawn: a failing step is written there */
        int pass;             /* a further descriptor for the process; 0 = none */
        bool apart;           /* in a process namespace of the rank's own */
        int node;             /* of preferred memory; NUMA_UNKNOWN = no preference */
        /* Does what the agent can do for the process of a slot; 0, or -errno. */
        int (*place)(const struct worker_setup *s, pid_t pid);
        const struct worker_setup *setup; /* of @place */
};

/* Hands a rank over to a slot. Returns the pid of the rank; 0 = start the rank in the usual way;
 * the reason is logged for -v. */
pid_t warm_take(struct warm *w, const struct warm_rank *r);
