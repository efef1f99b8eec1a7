/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contain: finds every process of the job on this machine
 *
 * The agent is a subreaper: a process that loses its parent, however it tried to hide (double fork,
 * setsid), becomes the agent's child. So killing the children until there are none left empties
 * the whole tree. Processes that somebody else started on the job's behalf are found by the
 * variable HN_STORE, which they inherited and whose value is this agent's alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct pids {
        pid_t *v;
        size_t n, cap;
};

#define PIDS_INIT                                                                                  \
        {                                                                                          \
                0                                                                                  \
        }

void pids_finish(struct pids *p);

/* Makes this process the one that inherits its orphans. */
int contain_begin(struct error *err);

/* Whether this process has children, zombies included. Exact. */
bool contain_any(void);
/* Appends the children; one that comes or goes meanwhile may be missed, so ask contain_any(). */
void contain_children(struct pids *to);
/* Appends processes of our uid, children and ourselves left out, with @name=@value in the
 * environment they were started with. */
void contain_marked(struct pids *to, const char *name, const char *value);
