/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Procs: processes of this machine, found through /proc
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pids {
        pid_t *v;
        size_t n, cap;
};

#define PIDS_INIT                                                                                  \
        {                                                                                          \
                0                                                                                  \
        }

void pids_finish(struct pids *p);

/* Dead, and kept from being reaped by a tracer that has not looked: a debugger at its prompt. No
 * signal changes that, nobody but the tracer can. */
bool proc_is_held(pid_t pid);
/* Stopped by its tracer: a debugger at its prompt. */
bool proc_is_traced(pid_t pid);
/* Whether this process has children, zombies included, those that are held left out. Exact. */
bool proc_any_child(void);
/* Appends the children of @of, which has one thread; one that comes or goes meanwhile may be
 * missed, so ask proc_any_child(). */
void proc_children(pid_t of, struct pids *to);
/* The process that was born last, dead or alive; 0 = not known. */
pid_t proc_newest(void);
/* Appends processes of our uid, children and ourselves left out, with @name=@value in the
 * environment they were started with. @since: it is enough to find those that were born after
 * this one, while process numbers, which are given out in turn, have not come round; 0 = all. */
void proc_marked(struct pids *to, const char *name, const char *value, pid_t since);
