/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node: one host of the job, from the first packet to the last
 *
 *   NEW -> CONNECTING -> GREETING -> READY -> RUNNING -> GONE (-> READY for another attempt)
 *                \           \          \         \
 *                 `-----------`----------`---------`--> FAILED
 *
 * A node opens a link, starts the agent at the far end (bootstrap), reads the HELLO, and then
 * passes frames both ways. Nodes know nothing of ranks: the job interprets the frames. A node is
 * used by the main loop's thread only.
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
        NODE_GONE,       /* the agent has sent GONE: nothing of the job is left there */
        NODE_FAILED,     /* see @failure; a node FAILED while RUNNING is lost */
        NODE_STATES,
};

enum node_event {
        NODE_EV_CONNECT,
        NODE_EV_OPENED,
        NODE_EV_HELLO,
        NODE_EV_LAUNCH,
        NODE_EV_DONE,   /* the agent sent GONE */
        NODE_EV_AGAIN,  /* another attempt begins */
        NODE_EV_BROKEN, /* link failed or ended, EOF, malformed message, deadline, no heartbeat */
        NODE_EVENTS,
};

/* Why a node FAILED, where the report needs more than the cause of the link's failure. */
enum node_refusal {
        NODE_NOT_REFUSED,
        NODE_WRONG_VERSION, /* the agent has another MSG_VERSION */
        NODE_MALFORMED,     /* ops.message() found a message malformed or out of turn */
        NODE_NO_AGENT,      /* there is no agent for the machine */
        NODE_CANNOT_RUN,    /* the login works, but the agent does not start */
        NODE_NO_CONTAINER,  /* ... or does not start in the container */
        NODE_RETIRED,       /* the job uses the host no longer (job_restart_as()) */
};

enum {
        /* A node with more unread bytes at the agent is lost. An honest agent leaves answers of the
         * store, see answers_max, a launch order of 32 MiB at most, and bytes under credit: of
         * standard input, of files and of nodes below. */
        NODE_UNREAD_MAX = 1 << 30,
};

struct node;
struct node_io;

struct node_ops {
        /* The state has changed from @was to GREETING, READY, GONE or FAILED. */
        void (*changed)(void *ctx, struct node *n, enum node_state was);
        void (*uploading)(void *ctx, struct node *n);
        void (*phase)(void *ctx, struct node *n, enum link_phase phase); /* while CONNECTING */
        /* A frame other than HELLO and PONG, while READY, RUNNING or GONE. Negative with @err: the
         * message is malformed or out of turn, and the node is lost. GONE, unless refused, then
         * changes the state. */
        int (*message)(void *ctx, struct node *n, const struct frame *f, struct error *err);
        /* The far end's stderr. */
        void (*noise)(void *ctx, struct node *n, const char *text, size_t len);
        /* The login has not run the command for some seconds. @words is the last printed line, "" =
         * nothing. Comes once. May be NULL. */
        void (*login)(void *ctx, struct node *n, const char *words);
        /* Of a login on the way to the node. May be NULL. */
        void (*notice)(void *ctx, enum link_notice kind, const char *text);
        /* The agent of a GONE node has exited: the children in the tree are cut off. May be
         * NULL. */
        void (*left)(void *ctx, struct node *n);
};

struct node {
        int index; /* of the host */
        const struct host *host;
        struct node *parent; /* the node whose agent starts the link's ssh; NULL = the head */
        bool has_children;   /* the node is itself a parent */
        bool uploaded;       /* the agent's binary was sent */
        bool ended;          /* the agent has exited: nothing more will be received */
        bool again;          /* FAILED, and tried again soon (cluster_try_again()) */
        bool needed;         /* watched, or a parent of a watched node; see heartbeat.c */
        enum node_state state;
        enum node_refusal refusal;
        struct link_failure *failure; /* never NULL when FAILED */
        struct hello hello;           /* valid from READY on */
        struct clock_offset clock;    /* the agent's */
        int64_t heard_ns;  /* our clock at the newest byte from the node, or as reported by the
                            * parent
                            */
        int64_t silent_ns; /* heard_ns of a silent node (heartbeat.c); 0 = not silent */
        /* Frames for the agent. Encode into the buffer, then call node_flush(), or send_queue_add()
         * if many frames come in one turn of the loop. Only while READY, RUNNING or GONE. */
        struct buf out;
        size_t answers_max; /* bytes for the agent that may wait beside NODE_UNREAD_MAX */
        struct node_io *io;
        struct {
                bool yes;
                struct node *next;
        } queued; /* node_out.c */
        struct {
                unsigned usr[2]; /* number of SIGUSR1 and 2 */
                bool leaves;     /* a signal that ends the agent, after the stop of the ranks */
        } signals;               /* signals for the agent, job_stop.c */
};

/* Initializes @n, zeroed memory of the caller. @host, @agent_binaries and @ops are borrowed for the
 * node's life. */
void node_init(struct node *n, uv_loop_t *loop, int index, const struct host *host,
               const struct agent_binaries *agent_binaries, const struct node_ops *ops, void *ctx);

/* Opens the link, through n->parent unless NULL. changed() reports every failure, also an immediate
 * failure. @greet_ms is the time allowed from the open link to HELLO. */
void node_connect(struct node *n, struct transport *t, const char *user, int64_t greet_ms);

/* Closes the descriptor of a FAILED node, which is hung up after a turn of the loop. */
void node_hang_up(struct node *n);
bool node_hung_up(const struct node *n);
/* Makes a FAILED node NEW again, without a parent. Only for a node that is hung up, was lost with
 * the parent, or whose link has never been open. */
void node_renew(struct node *n);

/* Makes a GONE node READY for another attempt, or FAILED if the link has ended meanwhile. */
void node_again(struct node *n);
/* Makes a READY node RUNNING; to be called before the frames of the launch are sent. */
void node_launched(struct node *n);

/* Lets the agent leave when no rank is left: no more orders will come. */
void node_dismiss(struct node *n);

/* Sends @n->out. An error is reported later, from the loop, never from inside this call. */
void node_flush(struct node *n);
/* Returns whether @len more bytes may wait for the agent, to be asked before long answers are
 * appended. If not, the node is lost, from the loop. node_flush() asks, too. */
bool node_has_room(struct node *n, size_t len);
/* Whether bytes still wait in this process or in the socket. Without such bytes the process or
 * thread at the other end of the socket sends the rest without the head. */
bool node_unsent(const struct node *n);
/* Appends @frame, a whole COMMON. A node with a parent gets the parent's copy, so the parent must
 * have been sent the same frame before. Needs node_flush(). */
void node_common(struct node *n, const struct buf *frame);
/* Sends @n->out and then @p. Copies only the part of @p not taken by the socket at once: the
 * same bytes may go to thousands of nodes. */
void node_out_long(struct node *n, const void *p, size_t len);

/* Fails the node with this sentence. A GONE node stays GONE, but the agent counts as exited. */
void node_break(struct node *n, enum link_cause cause, const char *fmt, ...) PRINTF(3, 4);

/* Closes link and handles; no ops are called from now on. The memory may go when node_closed() is
 * true, after a turn of the loop; node_finish() then frees the contents. */
void node_close(struct node *n);
bool node_closed(const struct node *n);
void node_finish(struct node *n);

/* Returns the state after @e in @s; for the test of the whole table. */
enum node_state node_next_state(enum node_state s, enum node_event e);
