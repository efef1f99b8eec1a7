/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pidns: a process namespace for the workers
 *
 * After pidns_enter() every new process of this one is created in a namespace whose first process
 * is a small keeper. Orphans become the keeper's children, and when the keeper or the agent dies,
 * the kernel ends all processes of the namespace. Without privileges the namespace lies in a user
 * namespace that maps only our uid and gid, to themselves. Source: pid_namespaces(7),
 * user_namespaces(7).
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

struct pidns {
        pid_t keeper; /* 0 = none */
};

/* Call once, while the process has one thread. -errno: not permitted by kernel or site. */
int pidns_enter(struct pidns *p, struct error *err);
/* In a child, before exec: mounts a /proc of the namespace. Async-signal-safe. 0, or -errno where
 * /proc may not be mounted: the child then sees the outer one, which also works. */
int pidns_child(void);
/* Kills all processes but the keeper. */
void pidns_kill(const struct pidns *p);
