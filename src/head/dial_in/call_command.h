/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call_command: the process of a manager's command, for example srun, with agents on many nodes
 *
 * The process leads a group, without the signals of the terminal, has an empty standard input, and
 * hands the variables for the call to the agents (agent/core/call_home.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "head/nodes/program_link.h"
#include "wire/noise/noise.h"

/* The exit code of a node that does not have the agent; srun tells it. */
#define CALL_NO_AGENT "86"

/* The agent in the caches of the nodes. */
struct call_agent {
        char name[48]; /* of the file, as the bootstrap names it; "" = unknown */
        size_t size;
};

struct call_command {
        uv_process_t process;
        uv_pipe_t err;
        const char *name; /* for messages */
        bool exited, stderr_ended, killed;
        int status, signal;
        char words[1024]; /* the end of stderr */
        char text[4096];
        void *owner;
        /* More of stderr is in @words. */
        void (*said)(struct call_command *c);
        /* The process has exited, and stderr was read. */
        void (*ended)(struct call_command *c, const char *fact);
};

struct call_start {
        const struct program_link *program;
        const char *agent; /* path */
        /* Where it is looked for, or, with @copies, where the copies of the command stay. */
        const struct call_agent *cached;
        bool copies;
        const char *container; /* container_order_encode(); NULL = none */
        const char *hosts;     /* names, with commas between */
        size_t count;          /* ... their number */
        const char *first;     /* a node: the way there decides which address comes first */
        int port;              /* open for the agents */
};

/* Starts the process. The secret for the agents becomes @ret_psk. Returns the number of handles
 * for call_command_close(). A process without a start has exited, with the reason in c->words. */
int call_command_start(struct call_command *c, uv_loop_t *loop, const struct call_start *start,
                       uint8_t ret_psk[NOISE_KEY]);
/* Ends the process by SIGTERM, the second time by SIGKILL. */
void call_command_kill(struct call_command *c);
/* Writes how an ended process ended: "srun was killed by signal 9 (Killed)". */
void call_command_describe(const struct call_command *c, char *to, size_t size);
/* Closes the handles, when ended; @closed is called for each, with the owner as data. */
void call_command_close(struct call_command *c, uv_close_cb closed);
