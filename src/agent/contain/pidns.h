/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pidns: a process namespace for the workers, from which nothing can flee
 *
 * After pidns_enter() every process that this one starts is born in a namespace whose first process
 * is a small keeper of ours: orphans become the keeper's children, and when it dies, or we die, the
 * kernel ends everybody in there. Without privileges it lies in a user namespace in which our uid
 * and gid mean themselves. Source: pid_namespaces(7), user_namespaces(7).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct pidns {
        pid_t keeper; /* 0 = none */
};

/* Once in a process, which has one thread. -errno: the kernel or the site does not let us. */
int pidns_enter(struct pidns *p, struct error *err);
/* In a child, before exec: gives it a /proc that shows its namespace. Async-signal-safe. 0, or
 * -errno where /proc may not be mounted: then it sees the outer one, which also works. */
int pidns_child(const struct pidns *p);
/* TERM or KILL to everybody but the keeper. */
void pidns_signal(const struct pidns *p, int signo);
/* Whether orphans of workers are left; call it when all workers were reaped. */
bool pidns_populated(const struct pidns *p);
