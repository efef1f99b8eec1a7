/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/blocked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/macros.h"
#include "base/printable.h"

/* Calls whose first argument is the descriptor, and calls of which only the name is known. */
static const struct {
        long number;
        const char *name;
        bool has_fd;
} calls[] = {
        { SYS_read, "read", true },
        { SYS_write, "write", true },
        { SYS_readv, "read", true },
        { SYS_writev, "write", true },
        { SYS_pread64, "read", true },
        { SYS_pwrite64, "write", true },
        { SYS_recvfrom, "receive from", true },
        { SYS_recvmsg, "receive from", true },
        { SYS_sendto, "send to", true },
        { SYS_sendmsg, "send to", true },
        { SYS_connect, "connect", true },
        { SYS_accept, "accept at", true },
        { SYS_accept4, "accept at", true },
        { SYS_flock, "lock", true },
        { SYS_fcntl, "lock", true },
        { SYS_fsync, "sync", true },
        { SYS_fdatasync, "sync", true },
        { SYS_openat, "open a file", false },
#ifdef SYS_open
        { SYS_open, "open a file", false },
#endif
        { SYS_wait4, "wait for a child process", false },
        { SYS_waitid, "wait for a child process", false },
};

const char *blocked_call(const char *text, int *ret_fd)
{
        char *end;
        long number = strtol(text, &end, 10);

        if (end == text || number < 0) /* "running", or -1: not in a call */
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                if (calls[i].number == number) {
                        *ret_fd = calls[i].has_fd ? (int)strtol(end, NULL, 16) : -1;
                        return calls[i].name;
                }
        return NULL;
}

void blocked_find(pid_t pid, char *to, size_t size)
{
        char text[256], path[64], target[128];
        const char *name;
        ssize_t n = -1;
        int fd = -1;

        *to = '\0';
        if (!proc_read(pid, "syscall", text, sizeof(text)) || !(name = blocked_call(text, &fd)))
                return;
        if (fd >= 0) {
                snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
                n = readlink(path, target, sizeof(target) - 1);
        }
        target[MAX(n, (ssize_t)0)] = '\0';
        printable_mask(target);
        snprintf(to, size, n > 0 ? "%s %s" : "%s", name, target);
}
