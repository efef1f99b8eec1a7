/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child_nodes: the child agents of this one (--tree, hold)
 *
 * Each child node is reached through an ssh process of this node. The frames of its agent pass
 * through a tunnel filter to the head, which speaks to every agent as if directly connected. The
 * ssh processes are children of the agent but not of the attempt. The agents that a hold prepares
 * run on this node, and their bytes pass without a filter: each serves a run of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "wire/frame.h"

struct child_nodes;
struct relay;
struct uplink;

/* What child nodes use of the agent; borrowed. */
struct child_nodes_deps {
        uv_loop_t *loop;
        struct uplink *up;
        struct relay *relay;
        /* Returns the job's folder, which is made if needed; NULL with @err. */
        const char *(*need_dir)(void *ctx, struct error *err);
        void *ctx;
};

struct child_nodes *child_nodes_create(const struct child_nodes_deps *deps);
void child_nodes_close(struct child_nodes *t); /* let the loop turn once more */
void child_nodes_destroy(struct child_nodes *t);

/* Orders of the head, for @nodes, a struct child_nodes. */
void child_nodes_on_common(void *nodes, const struct frame *f);
void child_nodes_on_child_agent(void *nodes, const struct frame *f);
void child_nodes_on_prune(void *nodes, const struct frame *f);
void child_nodes_on_tunnel(void *nodes, const struct frame *f);

/* Returns the last COMMON in @ret, for this node's LAUNCH, as frame_peek(); it is kept as long as
 * there are child nodes, which may ask for it. */
int child_nodes_peek_common(const struct child_nodes *t, struct frame *ret, struct error *err);
void child_nodes_drop_common(struct child_nodes *t);

bool child_nodes_any(const struct child_nodes *t);
bool child_nodes_have(const struct child_nodes *t, pid_t pid); /* whether it is one's process */
/* A child process of the agent was reaped, maybe one of a child node. */
void child_nodes_reaped(struct child_nodes *t, pid_t pid, int status);
/* Back pressure is over. */
void child_nodes_resume(struct child_nodes *t);
/* Passes a ping of the head on, which came at @now_ns and was sent @age_ns before. @age_ns < 0: the
 * head's silence means nothing from now on. */
void child_nodes_ping(struct child_nodes *t, int64_t now_ns, int64_t age_ns);
void child_nodes_end(struct child_nodes *t);
/* Passes a signal of the node on to the agents of a hold, which end or drain their ranks. With
 * @leaves no other is started. False: there is none. */
bool child_nodes_signal(struct child_nodes *t, int signo, bool leaves);
