/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank_signal: which processes of a rank get a signal
 *
 * A rank is often several processes: a shell or timeout(1) around the program, the program, and
 * helpers of the program. A signal is meant for the program, which has a handler: a helper killed
 * by the signal would be missing when the program saves its work.
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
        /* The topmost processes with a handler, without relays; of shells all with a handler.
         * Empty: the signal is for the process group. */
        struct pids targets;
        /* The other processes of the rank's session, and of a session begun by a shell or a relay
         * for the program (setsid, script): processes below a target, and all others. */
        struct pids helpers, others;
};

#define RANK_SIGNAL_INIT                                                                           \
        {                                                                                          \
                .targets = PIDS_INIT                                                               \
        }

/* Finds the processes of the rank of @worker. A terminating signal is for the process group also
 * when only shells and relays have handlers: a shell acts only after the child has ended. Any other
 * signal would kill the child, so the shells and relays alone get the signal, and programs in other
 * sessions (workers of torchrun) if no other process has a handler. */
void rank_signal_find(const struct rank_status_scan *s, pid_t worker, int signo,
                      struct rank_signal *to);
void rank_signal_finish(struct rank_signal *r);
/* True for signals to the whole group in any case: KILL, and the signals to stop and continue. */
bool rank_signal_is_for_all(int signo);
