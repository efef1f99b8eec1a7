/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look does not stop the process: the state, and the system call in which the process sleeps,
 * tell work from waiting. A sleep for a time counts as work, because programs that poll sleep in
 * between.
 */
#include "agent/inspect/wait_looks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/core/proc.h"
#include "base/macros.h"

/* A wait of which at least a tenth is no request to the store is a guess. */
enum { GUESS_PART = 10 };

/* Reads a line of /proc/PID/syscall: the number of the call and its six arguments. A sleep, or a
 * wait for no descriptor, lets a time pass. Source: proc_pid_syscall(5). */
static enum wait_look read_call(const char *call)
{
        char *end;
        long number = strtol(call, &end, 10);
        /* The number of descriptors is the first argument of select(2) and the second of
         * poll(2). */
        unsigned long long first = strtoull(end, &end, 16), second = strtoull(end, &end, 16);

        switch (number) {
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
                return LOOK_BUSY;
        case SYS_pselect6:
#ifdef SYS_select
        case SYS_select:
#endif
                return first ? LOOK_WAITS : LOOK_BUSY;
        case SYS_ppoll:
#ifdef SYS_poll
        case SYS_poll:
#endif
                return second ? LOOK_WAITS : LOOK_BUSY;
        case SYS_wait4:
        case SYS_waitid:
                return LOOK_UNKNOWN;
        default:
                return LOOK_WAITS;
        }
}

enum wait_look wait_looks_parse(char state, const char *call, const char *wchan)
{
        if (state != 'S')
                return LOOK_BUSY;
        if (*call >= '0' && *call <= '9')
                return read_call(call);
        /* do_wait waits for a child, futex_do_wait of newer kernels for a futex. */
        if (strstr(wchan, "do_wait"))
                return strstr(wchan, "futex") ? LOOK_WAITS : LOOK_UNKNOWN;
        return strstr(wchan, "nanosleep") ? LOOK_BUSY : LOOK_WAITS;
}

/* Without the right to read the system call the wait channel has to do. */
static enum wait_look look_at(pid_t pid)
{
        char call[256] = "", wchan[64] = "";
        struct proc_stat now;

        if (!proc_read_stat(&now, pid))
                return LOOK_UNKNOWN;
        if (now.state == 'S' && !proc_read(pid, "syscall", call, sizeof(call)))
                proc_read(pid, "wchan", wchan, sizeof(wchan));
        return wait_looks_parse(now.state, call, wchan);
}

void wait_looks_count(struct wait_count *c, pid_t pid, bool in_store)
{
        enum wait_look look = in_store ? LOOK_WAITS : pid ? look_at(pid) : LOOK_UNKNOWN;

        if (look == LOOK_UNKNOWN)
                return;
        c->looks++;
        c->waits += look == LOOK_WAITS;
        c->in_store += in_store;
}

uint8_t wait_looks_take(struct wait_count *c)
{
        uint8_t busy = SAMPLE_USE_UNKNOWN;

        if (c->looks)
                busy = (uint8_t)((c->looks - c->waits) * 100 / c->looks);
        if (c->looks && (c->waits - c->in_store) * GUESS_PART >= MAX(c->waits, 1U))
                busy |= SAMPLE_GUESSED;
        *c = (struct wait_count){ 0 };
        return busy;
}
