/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node: one host of the job, from the first packet to the last
 *
 *   NEW -> CONNECTING -> GREETING -> READY -> RUNNING -> GONE (-> READY for another attempt)
 *                \           \          \         \
 *                 `-----------`----------`---------`--> FAILED
 *
 * A node opens a link, gets the agent running (bootstrap), takes its HELLO, and then carries frames
 * both ways. It knows nothing of ranks: the job reads the frames. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "head/hosts/hosts.h"
#include "head/nodes/bootstrap.h"
#include "head/nodes/transport.h"
#include "wire/clock_offset.h"
#include "wire/msg.h"

enum node_state {
        NODE_NEW,
        NODE_CONNECTING, /* the link is being opened */
        NODE_GREETING,   /* shell, upload, HELLO */
        NODE_READY,      /* HELLO is there, nothing runs */
        NODE_RUNNING,    /* LAUNCH was sent */
        NODE_GONE,       /* nothing of the job is left there */
        NODE_FAILED,     /* @why says it; while running: the node is lost */
        NODE_STATES,
};

enum node_event {
        NODE_EV_CONNECT,
        NODE_EV_OPENED,
        NODE_EV_HELLO,
        NODE_EV_LAUNCH,
        NODE_EV_DONE,   /* the agent said GONE */
        NODE_EV_AGAIN,  /* there will be another attempt */
        NODE_EV_BROKEN, /* link failed or ended, EOF, nonsense, deadline, silence */
        NODE_EVENTS,
};

struct node;

struct node_ops {
        /* The state has changed to READY, GONE or FAILED (@was = before), or to GREETING. */
        void (*changed)(void *ctx, struct node *n, enum node_state was);
        void (*uploading)(void *ctx, struct node *n);
        void (*phase)(void *ctx, struct node *n, enum link_phase phase); /* while CONNECTING */
        /* A frame that is not the node's own business; only while RUNNING or READY. */
        void (*message)(void *ctx, struct node *n, const struct frame *f);
        void (*noise)(void *ctx, struct node *n, const char *text, size_t len);
        /* A host key was accepted on the way to it. May be NULL. */
        void (*stored)(void *ctx, const char *text);
        /* The agent of a GONE node has left: what it carried has lost its way. May be NULL. */
        void (*left)(void *ctx, struct node *n);
};

struct node {
        int index; /* of the host */
        const struct host *host;
        struct node *parent; /* whose agent carries the link; NULL = none */
        bool has_children;   /* it is a parent itself */
        enum node_state state;
        struct hello hello;           /* valid from READY on */
        struct link_failure *failure; /* never NULL when FAILED */
        bool uploaded, version_differs, cannot_run, no_agent;
        bool malformed; /* for the owner: what the agent said was no message, or out of turn */
        bool ended;     /* its stream is at the end: the agent has left */
        struct clock_offset clock; /* the agent's */
        int64_t heard_ns; /* our clock when the last byte came, be it to the one that carries it */
        bool needed;      /* it is watched, or carries one that is; see heartbeat.c */

        /* private */
        uv_loop_t *loop;
        int64_t greet_ms;
        struct link *link;
        const struct agent_binaries *agent_binaries;
        struct bootstrap boot;
        uv_pipe_t pipe;
        uv_timer_t deadline;
        bool piped, writing, closing;
        bool tunnelled; /* instead of @piped: the link has no descriptor */
        int handles;    /* to be closed before the memory may go */
        uv_write_t write;
        struct buf in, out, flying;
        struct node *next_out; /* for the outbox */
        bool in_outbox;
        const struct node_ops *ops;
        void *ctx;
};

/* Memory owned by the caller, zeroed. @host, @agent_binaries and @ops are borrowed for the node's
 * life. */
void node_init(struct node *n, uv_loop_t *loop, int index, const struct host *host,
               const struct agent_binaries *agent_binaries, const struct node_ops *ops, void *ctx);

/* Opens the link, through n->parent if it has one. A failure is told by changed(), also one that is
 * known at once. @greet_ms is the deadline from the open link to HELLO. */
void node_connect(struct node *n, struct transport *t, const char *user, int64_t greet_ms);

/* A FAILED node whose link led through a parent that was lost is NEW again, without a parent. */
void node_renew(struct node *n);

/* A GONE node becomes READY for another attempt, or FAILED when its link has ended meanwhile. */
void node_again(struct node *n);
/* The next frames make the node RUNNING. */
void node_launched(struct node *n);

/* Appends frames for the agent and sends them: node_out() to encode, then node_flush(), or
 * send_queue_add() where many come in one turn of the loop. Nothing is sent to a node that is not
 * READY, RUNNING or GONE. A write that fails is told from the loop, never from inside node_flush().
 */
struct buf *node_out(struct node *n);
void node_flush(struct node *n);
/* Whether something is still on its way to whoever carries it on (a thread, a child): once it is
 * not, it goes on without us. */
bool node_unsent(const struct node *n);
/* Appends @frame, a whole COMMON; a carried node gets it from its carrier, which must have had it
 * before. node_flush() as above. */
void node_common(struct node *n, const struct buf *frame);
/* @p is to follow what is in node_out(). Both are sent at once, and only what the way does not take
 * is copied: the same bytes may go to thousands of nodes. */
void node_out_long(struct node *n, const void *p, size_t len);

/* Gives the node up: it becomes FAILED with this sentence. A GONE one stays so, but its agent
 * counts as one that has left. */
void node_break(struct node *n, enum link_cause cause, const char *fmt, ...) PRINTF(3, 4);

/* Begins to close whatever is open; node_closed() tells when the memory may go, after the loop has
 * turned. No ops are called from now on. */
void node_close(struct node *n);
bool node_closed(const struct node *n);
void node_finish(struct node *n);

/* For the test that every cell is filled: what the node does with an event in a state. */
const char *node_cell(enum node_state s, enum node_event e);
