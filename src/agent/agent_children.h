/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_children: the child agents of this one (--tree)
 *
 * Each child node is reached through an ssh process of this node. The frames of its agent pass
 * through a tunnel filter to the head, which speaks to every agent as if directly connected. The
 * ssh processes are children of the agent but not of the attempt.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "wire/frame.h"

struct agent;
struct child_node;

struct agent_children {
        struct child_node **v;
        size_t n;
        int64_t pinged_ns; /* when the head's last ping came; 0 = never, or the head sleeps */
        struct buf common; /* the last COMMON, a whole frame: for our LAUNCH and for child nodes */
};

/* Orders of the head. */
void agent_on_common(struct agent *a, const struct frame *f);
void agent_on_child_agent(struct agent *a, const struct frame *f);
void agent_on_prune(struct agent *a, const struct frame *f);
void agent_on_tunnel(struct agent *a, const struct frame *f);

/* A child process of the agent was reaped, maybe one of a child node. */
void agent_child_reaped(struct agent *a, pid_t pid, int status);
/* Back pressure is over. */
void agent_children_resume(struct agent *a);
/* Passes a ping of the head on, which came at @now_ns and was sent @age_ns before. @age_ns < 0: the
 * head's silence means nothing from now on. */
void agent_children_ping(struct agent *a, int64_t now_ns, int64_t age_ns);
void agent_children_end(struct agent *a);
void agent_children_close(struct agent *a); /* let the loop turn once more */
