/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contain: keeps every process of an attempt within reach, and proves that none is left
 *
 *   tree    The agent is a subreaper: a process that loses its parent, however it tried to hide
 * (double fork, setsid), becomes the agent's child. Killing the children until there are none left
 *           empties the whole tree. Processes that somebody else started on the job's behalf are
 * found by the variable HN_STORE, which they inherited and whose value is this agent's alone.
 *   cgroup  The same, and a control group of the attempt's own: one write ends all who are in it.
 *   pidns   A process namespace instead: it ends with the agent, even if that is killed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/contain/cgroup.h"
#include "agent/contain/pidns.h"
#include "agent/core/proc.h"
#include "base/error.h"
#include "wire/msg.h"

struct contain {
        enum contain_level level; /* in force */
        struct cgroup cgroup;
        struct pidns pidns;
        char *mark;       /* value of HN_STORE */
        int64_t opened_s; /* seconds of the monotonic clock */
        pid_t since;      /* the youngest process then; 0 = not known */
        /* Children that are none of the attempt's; NULL = there are none. */
        bool (*is_other)(void *ctx, pid_t pid);
        void *other_ctx;
};

#define CONTAIN_INIT                                                                               \
        {                                                                                          \
                .cgroup = CGROUP_INIT                                                              \
        }

/* Makes this process the one that inherits its orphans. */
int contain_begin(struct error *err);

/* An attempt begins, whose processes carry HN_STORE=@mark. @wanted AUTO takes cgroup, else tree.
 * CGROUP and PIDNS fail when the node does not give them. */
int contain_open(struct contain *c, enum contain_level wanted, const char *mark, struct error *err);
/* A struct spawn's enter: the new process puts itself into the container. @ctx is the contain. */
int contain_enter(void *ctx);

/* Whether anything but zombies of workers, which the caller reaps first, is left of the attempt. */
bool contain_any(const struct contain *c);
/* A signal to those that have lost their worker: @is_worker(ctx, process group) tells who has not.
 * KILL reaches everybody. */
void contain_signal(const struct contain *c, int signo, bool (*is_worker)(void *ctx, pid_t group),
                    void *ctx);
/* KILL to processes that are no descendants but carry the mark; how many there were. In an attempt
 * of seconds only those that are younger than it: a machine has thousands, and looking at all of
 * them would be the better part of its time. */
size_t contain_sweep(const struct contain *c);
/* The attempt is over. */
void contain_close(struct contain *c);

const char *contain_level_name(enum contain_level level); /* "cgroup" */
