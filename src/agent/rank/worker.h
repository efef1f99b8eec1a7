/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker: one rank's process with its pipes
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "agent/bind/order_binding.h"
#include "agent/contain/contain.h"
#include "agent/rank/stdin_writer.h"
#include "agent/rank/stream.h"
#include "agent/rank/torch_version.h"
#include "agent/warm/warm.h"
#include "base/error.h"
#include "base/spawn.h"
#include "base/strv.h"
#include "wire/msg.h"

struct worker {
        uint32_t rank;
        pid_t pid;            /* also session and process group */
        bool reaped, started; /* @started: the program is executed */
        bool left;            /* was ending when the order to stop came */
        bool told_to_end;     /* by an order for some of the ranks */
        /* Told to end: see node_attempt_signals.c. */
        bool all_told, helpers_told;
        struct pids programs, told; /* got the signal first; later */
        uint64_t ended_ns;          /* when it was reaped */
        struct spawning spawning;
        char *program, *cwd, *path; /* of @spawning */
        struct stream *out[2];      /* stdout, stderr; NULL = ended */
        struct stdin_writer *in;    /* NULL = /dev/null */
        bool has_terminal;          /* @in and the first of @out are its other side */
        uint64_t heard_ns;          /* of outputs that have ended; see worker_heard_ns() */
        uint32_t unwritten[2];      /* of these: bytes that the head has not written yet */
};

/* All borrowed for the call, but @loop and @up which outlive the worker. */
struct worker_setup {
        uv_loop_t *loop;
        struct uplink *up;
        const struct launch_order *order;
        uint32_t rank;         /* in the job */
        uint32_t unwritten[2]; /* of an earlier process of the rank, off the window */
        const struct strv *argv, *env;
        const char *cwd; /* "" = the agent's */
        int pass;        /* one more descriptor for the process; 0 = none */
        int null; /* /dev/null, the standard input of a process that gets none; -1 = not open */
        unsigned older_names;     /* of nccl_env_build_all() */
        struct torch_note *torch; /* of the ranks of the node; may be NULL */
        struct contain *contain;
        struct node_trace *trace;      /* of the outputs; may be NULL */
        const struct binding *binding; /* NULL = not bound */
        struct bind_note *bind_note;
        struct warm *warm; /* interpreters that may take the rank over */
};

/* Starts the process in a new session; the kernel kills the process when the agent dies. NULL: out
 * of processes, descriptors or memory. */
struct worker *worker_start(const struct worker_setup *s, struct error *err);
/* Waits for at most @ms for the program of a worker that is not started to be executed, which takes
 * as long as a file system does. 1: executed, and outputs are read from now on; 0: not known yet.
 * On failure -errno with the step in @ret_step and the sentence in @err; no process exists and
 * worker_destroy() is due. */
int worker_confirm(struct worker *w, int ms, enum spawn_step *ret_step, struct error *err);
/* Drops the pipes; the process is not touched. */
void worker_destroy(struct worker *w);

/* Signals the worker's process group, or the process before the group exists. Does nothing for a
 * reaped worker: the pid may have been reused. */
void worker_signal(const struct worker *w, int signo);

/* Gives the terminal of the worker a size. Does nothing without a terminal. */
void worker_resize(struct worker *w, const struct launch_terminal *to);
void worker_stdin(struct worker *w, const void *data, size_t len); /* 0 = end of file */
void worker_credit(struct worker *w, uint8_t stream, uint32_t bytes);
/* Calls @fn for each output that has not ended. Outputs are read only of a started worker. */
void worker_each_output(struct worker *w, void (*fn)(struct stream *s));
uint64_t worker_heard_ns(const struct worker *w); /* when its last output came; 0 = never */
