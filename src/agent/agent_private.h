/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent, inside: the agent's own state, for files with access to more than one part
 *
 *   agent.c           life cycle, orders of the head, loss of the head
 *   agent_start.c     the ranks of an attempt are started
 *   agent_attempt.c   one run of the ranks: stopping, proof of the end of all processes
 *   agent_signals.c   which processes get a signal, in which order
 *   agent_pmix.c      ranks that wait for PMIx
 *   agent_children.c  child agents (--tree)
 *
 * agent_push, store_access and agent_status know only their own headers.
 */
#pragma once

#include "agent/agent_attempt.h"
#include "agent/agent_children.h"
#include "agent/agent_push.h"
#include "agent/agent_samples.h"
#include "agent/agent_store.h"
#include "agent/contain/guard.h"
#include "agent/core/job_dir.h"
#include "agent/core/uplink.h"
#include "agent/files/pull_sender.h"

enum { SHORT_GRACE_MS = MSG_LOST_GRACE_MS /* when the head is lost */ };

/* Detects the loss of the head behind an open connection (a cut cable). While ranks run or files
 * arrive the head pings; otherwise the agent asks for a ping after a time of silence. */
struct head_watch {
        uv_timer_t timer;
        uint32_t limit_ms; /* of LAUNCH or OFFER; 0 = no limit */
        unsigned n_pings;  /* since the head last slept on purpose */
        int64_t way_ns[2]; /* from the head's clock to ours, by the fastest ping of the latest ones
                            * and of those before
                            */
        bool ping_requested; /* MSG_PING_REQUEST was sent and nothing has come since */
};

struct agent {
        uv_loop_t *loop;
        struct uplink up;
        struct head_watch head;
        uv_signal_t child_signal;
        uv_timer_t heartbeat;      /* for the guard */
        struct guard_notes *notes; /* NULL = no guard */
        pid_t guard;               /* the parent process */
        struct job_dir dir;
        struct agent_attempt attempt;
        struct store_access *store;
        struct child_nodes *children;
        struct push_receiver *push;
        struct pull_sender pull;
        struct node_trace *trace;
        struct agent_samples samples;
        bool bye;       /* leave when idle */
        bool signalled; /* the head has been told of a signal that ends this node */
};

/* Starts the time anew within which the head must speak. */
void agent_rearm_silence(struct agent *a);
/* Makes the job's folder unless it exists. 0, or a negative errno. */
int agent_need_dir(struct agent *a, struct error *err);
