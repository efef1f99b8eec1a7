/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node, inside: the state and the link (node.c), bytes from the far end (node_in.c) and bytes to
 * the far end (node_out.c)
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/nodes/node.h"

enum node_stream {
        STREAM_NONE,
        STREAM_PIPE,   /* the link's descriptor */
        STREAM_TUNNEL, /* transport_ops.send() and on_link_received() */
};

struct node_io {
        uv_loop_t *loop;
        const struct agent_binaries *agent_binaries;
        const struct node_ops *ops;
        void *ctx;
        struct link *link;
        struct bootstrap boot;
        int64_t greet_ms;
        bool told; /* ops.login() was called, or is not called any more */
        uv_timer_t deadline;
        enum node_stream stream;
        uv_pipe_t pipe;
        uv_write_t write;
        bool writing; /* @in_flight is with libuv */
        bool closing;
        int handles; /* to be closed before the memory may go */
        struct buf in, in_flight;
};

/* --- node.c --- */

/* Follows the table of states, and reports a change. Returns whether there was one. */
bool node_step(struct node *n, enum node_event e);
/* Fails a node that is neither FAILED nor GONE. */
void node_fail(struct node *n, const struct link_failure *why);
/* Fails a node at the end of the link before HELLO: no agent started there, or ssh itself
 * failed. */
void node_fail_greeting(struct node *n);
/* Reports to the owner that the agent of a GONE node has exited: children in the tree may need the
 * agent. */
void node_report_exit(struct node *n);

/* --- node_in.c --- */

/* Whether no more bytes of the node are to be read. */
bool node_is_given_up(const struct node *n);
/* The stream has ended: the transport may know why, and sets n->failure then. */
void node_ask_reason(struct node *n);
/* Reads from the pipe, until the end. 0 or a negative error of libuv. */
int node_read_pipe(struct node *n);
/* Handles the complete messages in io->in. */
void node_take_input(struct node *n);
