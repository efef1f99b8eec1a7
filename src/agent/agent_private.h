/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent, inside: what the files of the agent share
 *
 *   agent.c          life cycle, what the head orders and what happens to its link
 *   agent_store.c    the ways to the store: endpoints, and the proof that another node's is reached
 *   agent_children.c   other agents that this one carries (--tree), and what their relays ask
 *   agent_status.c   what the head wants to know when a job hangs
 *   agent_push.c     files that come before the ranks
 *   agent_attempt.c  one run of the ranks: starting, stopping, and the proof that nothing is left
 *
 * An attempt goes IDLE -> RUNNING -> (TERMINATING -> KILLING) -> IDLE, only ever to the right.
 * It is over when no child is left (the subreaper has all of them), no process carries our mark,
 * and every stream has ended; then GONE is sent. Processes that outlive the last worker get LINGER
 * to end by themselves (a tee that still writes, Python's resource tracker), then they are
 * terminated like the rest. settle() is called in every turn of the loop and looks what is next.
 */
#pragma once

#include "agent/contain/contain.h"
#include "agent/contain/guard.h"
#include "agent/contain/oom.h"
#include "agent/core/job_dir.h"
#include "agent/core/uplink.h"
#include "agent/endpoint/endpoint_tcp.h"
#include "agent/endpoint/endpoint_unix.h"
#include "agent/endpoint/port.h"
#include "agent/endpoint/probe.h"
#include "agent/files/file_cache.h"
#include "agent/rank/worker.h"
#include "agent/tree/child_agent.h"
#include "store/relay/relay.h"
#include "wire/msg.h"

enum {
        SHORT_GRACE_MS = 2000, /* for leftovers, and when the head is lost */
        PING_REQUEST_MS =
                30000, /* of silence while nothing is to be done; and then for the answer */
};

enum phase {
        IDLE,
        RUNNING,
        TERMINATING,
        KILLING,
};

struct agent {
        uv_loop_t *loop;
        struct uplink up;
        uv_signal_t child_signal;
        uv_timer_t timer;
        uv_timer_t reaping;  /* children wait for their turn */
        uv_timer_t recheck;  /* of strangers' deaths nobody tells us */
        uv_timer_t starting; /* ... nor of programs that are executed at last */
        uv_timer_t held;     /* the relay has something that is to leave then */
        uv_timer_t silence;  /* of the head, see agent_rearm_silence() */
        uv_timer_t beating;  /* signs of life for the guard */
        struct relay *relay;
        struct endpoint_unix *endpoint;
        struct endpoint_tcp *tcp; /* NULL = not open; ranks of other nodes may outlive ours */
        bool tcp_used;            /* by an attempt that is over here */
        uint8_t tcp_mode;         /* enum endpoint_mode */
        struct sockaddr_storage
                master;            /* the TCP endpoint of the ranks, here or not; family 0 = none */
        struct probe *probe;       /* NULL = nothing is tried */
        struct guard_notes *notes; /* NULL = nobody guards us */
        pid_t guard;               /* our parent, as long as it lives */
        struct contain contain;
        struct oom oom; /* when the ranks started */
        struct job_dir dir;
        struct port port;
        struct file_cache file_cache;
        bool offered; /* files: @file_cache is in use */
        bool pushing; /* ... and they are not there yet */
        struct worker **workers;
        size_t n_workers, n_alive, n_starting; /* @n_alive: those that start among them */
        struct child_node **carried;           /* agent_children.c */
        size_t n_carried;
        int64_t beat_ns; /* when we were pinged; 0 = not, or the head sleeps */
        uint32_t cores;
        uint32_t silence_ms; /* of LAUNCH or OFFER */
        struct buf common;   /* the last COMMON, a whole frame: for our LAUNCH, and for branches */
        enum phase phase;
        bool lingering;      /* the last worker has ended, others are given time */
        bool swept;          /* no process of the attempt is left */
        bool ping_requested; /* nothing came since */
        bool refused;        /* a rank could not be started, and the head knows of one */
        bool bye;            /* leave when idle */
};

/* The head has spoken, or the time has come when it pings or pings no more. It is lost if it does
 * not speak again in time; who has nothing to do asks for it, who has not is pinged. */
void agent_rearm_silence(struct agent *a);

/* Starts the ranks of an order; what cannot be started is told, and stops the rest. */
void agent_start_ranks(struct agent *a, const struct launch_order *l);
void agent_refuse(struct agent *a, uint32_t rank, enum refusal why, int error, const char *text);
/* The job's folder, made when it is first needed. 0, or a negative errno. */
int agent_need_dir(struct agent *a, struct error *err);
struct worker *agent_worker(struct agent *a, uint32_t rank); /* NULL = no such */

/* TERM, after @grace_ms KILL; 0 = KILL now. A later call may only shorten the grace. */
void agent_stop(struct agent *a, uint32_t grace_ms);
void agent_drop_workers(struct agent *a);

/* Opens or closes the TCP endpoint: answers with a ENDPOINT_OPENED, but not when it closes. */
void agent_on_endpoint(struct agent *a, const struct frame *f);
/* Tries to reach another node's: answers with a PROBED, later. */
void agent_on_probe(struct agent *a, const struct frame *f);
/* Sends requests and answers that have gathered; called in every turn of the loop. */
void agent_store_turn(struct agent *a);
void agent_store_pause(struct agent *a, bool paused); /* back pressure */
/* An attempt is over on this node: what killed ranks have left unread in their sockets is not for
 * the next one's store. The TCP endpoint stays, for ranks of other nodes. */
void agent_store_hang_up(struct agent *a);
void agent_store_close(struct agent *a); /* let the loop turn once more */

/* Ways to other nodes; their processes are children but not the attempt's. */
void agent_on_child_agent(struct agent *a, const struct frame *f);
void agent_on_prune(struct agent *a, const struct frame *f);
void agent_on_tunnel(struct agent *a, const struct frame *f);
void agent_child_reaped(struct agent *a, pid_t pid, int status); /* whoever it is */
void agent_children_resume(struct agent *a);                     /* back pressure is over */
/* We were pinged at @now_ns; @asleep: the head's silence means nothing from now on. */
void agent_children_ping(struct agent *a, int64_t now_ns, bool asleep);
void agent_children_end(struct agent *a);
void agent_children_close(struct agent *a); /* let the loop turn once more */

/* How the ranks are: answers with a STATUS. Where the ranks' endpoint is, LAUNCH says. */
void agent_note_master(struct agent *a, const struct launch_order *l);
void agent_on_status_request(struct agent *a, const struct frame *f);

/* Files for the ranks: a manifest, a piece of a missing file, another look. */
void agent_on_offer(struct agent *a, const struct frame *f);
void agent_on_chunk(struct agent *a, const struct frame *f);
void agent_on_look(struct agent *a, const struct frame *f);
/* Appends the CHUNK that another node is to get of what is here. 0, or -1: the head was told why it
 * cannot be had. */
int agent_push_chunk(struct agent *a, struct buf *to, uint32_t entry, uint64_t offset,
                     uint32_t len);
/* The folder of the pushed files, NULL = nothing was pushed. */
const char *agent_push_dir(const struct agent *a);
/* Removes them, unless they are kept; tells of what ranks have left there. */
void agent_push_close(struct agent *a);

/* Looks what is next; called in every turn of the loop. */
void agent_advance(struct agent *a);
/* Stops the loop when all is done and said. @ctx is the agent. */
void agent_leave(void *ctx);

void agent_on_sigchld(uv_signal_t *handle, int signo);
