/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contain: keeps every process of an attempt within reach, and proves that none is left
 *
 *   tree    The agent is a subreaper: a process that loses its parent, even by a double fork and
 *           setsid, becomes the agent's child. Killing children until none is left empties the
 *           whole tree. Processes started by other programs on the job's behalf are found by
 *           their inherited variable HN_STORE, whose value is unique to this agent.
 *   cgroup  In addition a control group for the attempt: one write ends all its processes.
 *   pidns   A process namespace instead: it ends with the agent, even if the agent is killed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/contain/cgroup.h"
#include "agent/contain/pidns.h"
#include "agent/core/proc.h"
#include "base/error.h"
#include "wire/msg.h"

/* Children of the agent that are outside of the attempt. */
struct contain_others {
        bool (*any)(void *ctx); /* NULL = never */
        bool (*has)(void *ctx, pid_t pid);
        void *ctx;
};

struct contain {
        enum contain_level level; /* in force */
        struct cgroup cgroup;
        struct pidns pidns;
        const char *mark; /* value of HN_STORE, borrowed until contain_close() */
        int64_t opened_s; /* seconds of the monotonic clock */
        pid_t since;      /* the youngest process then; 0 = not known */
        struct contain_others others;
};

#define CONTAIN_INIT                                                                               \
        {                                                                                          \
                .cgroup = CGROUP_INIT                                                              \
        }

/* Makes this process a subreaper. */
int contain_begin(struct error *err);

/* Begins an attempt, whose processes carry HN_STORE=@mark (borrowed). @wanted AUTO takes cgroup,
 * else tree. CGROUP and PIDNS fail when the node does not provide them. */
int contain_open(struct contain *c, enum contain_level wanted, const char *mark, struct error *err);

/* Whether anything but zombies of workers, which the caller reaps first, is left of the attempt. */
bool contain_any(const struct contain *c);
/* Whether the agent's child @child belongs to the attempt. */
bool contain_has_child(const struct contain *c, pid_t child);
/* Kills the attempt's children of the agent; with a control group or a namespace all processes.
 * Children of killed processes become children of the agent: repeat until none is left. */
void contain_kill(const struct contain *c);
/* Kills marked processes other than descendants, and returns their number. In an attempt of less
 * than some seconds only younger processes are searched, because a search through thousands of
 * processes would take most of the attempt's time. */
size_t contain_sweep(const struct contain *c);
/* The attempt is over. */
void contain_close(struct contain *c);

const char *contain_level_name(enum contain_level level); /* "cgroup" */
