/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank_signal: the processes of a rank that a signal is meant for
 *
 * A rank is often more than one process: a shell or timeout(1) that waits for the program, the
 * program, and helpers of the program. A signal is meant for the program, which catches it: a
 * helper that dies of the signal takes away what the program needs to save its work.
 *
 *   catches   has a handler of the signal, or blocks it (sigwait, signalfd)
 *   shell     sh, bash and others: has handlers for its own ends (trap)
 *   relay     timeout and others: passes signals on, also to helpers of the program
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "agent/core/proc.h"
#include "agent/rank/rank_status.h"

struct rank_signal {
        /* The processes that catch the signal, have no other one above them, and are no relay; of
         * shells all that catch the signal. Empty: the signal is for the process group. */
        struct pids targets;
        /* The other processes of the rank's session, and of a session that a shell or a relay has
         * started for the program (setsid, script): those below a target, and all others. */
        struct pids helpers, others;
};

#define RANK_SIGNAL_INIT                                                                           \
        {                                                                                          \
                .targets = PIDS_INIT                                                               \
        }

/* Finds the processes of the rank of @worker. A signal that ends a program is for the process group
 * also when nothing but shells and relays catches it: a shell acts on it only when its child has
 * ended. Another signal would kill that child, so the shells and relays alone get it, and programs
 * in sessions of their own (workers of torchrun) if nothing else catches it. */
void rank_signal_find(const struct rank_status_scan *s, pid_t worker, int signo,
                      struct rank_signal *to);
void rank_signal_finish(struct rank_signal *r);
/* True for signals that go to the whole group in any case: KILL, and those that stop a process or
 * let it go on. */
bool rank_signal_is_for_all(int signo);
