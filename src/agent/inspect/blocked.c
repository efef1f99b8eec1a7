/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocked_find() goes from the most exact answer to the least: a mutex and the owning thread, a
 * FIFO without the other end, then the file behind the descriptor of the system call, the peer of a
 * socket, the processes at the other end of a pipe, and the holders of a file lock. Words of
 * /proc/PID/syscall are parsed by pure functions, which have the unit tests.
 */
#include "agent/inspect/blocked.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "agent/core/sockdiag.h"
#include "agent/inspect/fd_owners.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "base/printable.h"

enum { LOCKS_MAX = 1 << 20 };

/* Calls with the descriptor as first argument, and calls known by name only. */
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

/* Returns the words for the call, with the descriptor or -1; NULL = no call, or one that is not
 * listed. The numbers are of this machine's architecture. */
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

bool blocked_open(const char *text, uint64_t *ret_path, int *ret_flags)
{
        char *at;
        long number = strtol(text, &at, 10);

        if (number == SYS_openat)
                strtoull(at, &at, 16);
#ifdef SYS_open
        else if (number != SYS_open)
                return false;
#else
        else
                return false;
#endif
        /* The arguments of openat(2) begin with a descriptor, those of open(2) with the path. */
        *ret_path = strtoull(at, &at, 16);
        *ret_flags = (int)strtoull(at, NULL, 16);
        return *ret_path != 0;
}

uint64_t blocked_futex(const char *text)
{
        enum { LOCK_IS_WAITED_FOR = 2 };
        uint64_t address;
        char *at;

        if (strtol(text, &at, 10) != SYS_futex)
                return 0;
        address = strtoull(at, &at, 16);
        if ((strtoull(at, &at, 16) & ~(uint64_t)FUTEX_PRIVATE_FLAG) != FUTEX_WAIT)
                return 0;
        /* glibc gives this value to a lock with waiters. */
        return strtoull(at, NULL, 16) == LOCK_IS_WAITED_FOR ? address : 0;
}

/* Reads memory of the process. Returns the number of bytes. */
static size_t read_memory(pid_t pid, uint64_t address, void *to, size_t size)
{
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        n = pread(fd, to, size, (off_t)address);
        close(fd);
        return (size_t)MAX(n, (ssize_t)0);
}

/* Reads the text at @address of the process, cut to the room: "" = not allowed. */
static void read_memory_text(pid_t pid, uint64_t address, char *to, size_t size)
{
        to[read_memory(pid, address, to, size - 1)] = '\0';
        printable_mask(to);
}

/* In a mutex of glibc the owner follows the lock word: pthread_mutex_t. */
static bool find_owner(pid_t pid, const char *call, char *to, size_t size)
{
        struct {
                int lock;
                unsigned count;
                int owner;
        } mutex;
        uint64_t address = blocked_futex(call);
        char path[64];

        if (!address || read_memory(pid, address, &mutex, sizeof(mutex)) != sizeof(mutex))
                return false;
        /* Another futex may have the same value, but no owner behind the word. */
        snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, mutex.owner);
        if (mutex.owner <= 0 || access(path, F_OK) < 0)
                return false;
        snprintf(to, size, "wait for a mutex that its thread %d has", mutex.owner);
        return true;
}

/* The open() of a FIFO returns when the other end is opened, too. */
static bool find_partner(pid_t pid, const char *call, char *to, size_t size)
{
        char channel[64], file[96];
        uint64_t address;
        int flags;

        if (!blocked_open(call, &address, &flags) ||
            !proc_read(pid, "wchan", channel, sizeof(channel)) ||
            strcmp(channel, "wait_for_partner") != 0)
                return false;
        read_memory_text(pid, address, file, sizeof(file));
        snprintf(to, size, "wait for a %s of %s (none has it open)",
                 (flags & O_ACCMODE) == O_RDONLY ? "writer" : "reader", *file ? file : "a FIFO");
        return true;
}

/* "1: POSIX ADVISORY WRITE 4711 fd:01:9 0 EOF" has a lock, "1: -> ..." waits for lock 1. */
const char *blocked_lock(const char *locks, pid_t waiter, pid_t *ret_taker)
{
        const char *lock = NULL;
        int taker = 0;

        for (const char *line = locks; line && *line; line = strchr(line, '\n')) {
                const char *at;
                bool waits;
                int pid = 0;

                line += *line == '\n';
                at = line + strcspn(line, ":\n");
                if (*at != ':')
                        continue;
                at += 1 + strspn(at + 1, " ");
                waits = !strncmp(at, "->", 2);
                if (sscanf(at + (waits ? 2 : 0), "%*s %*s %*s %d", &pid) != 1)
                        continue;
                if (!waits) {
                        lock = at;
                        taker = pid;
                } else if (pid == waiter && lock) {
                        *ret_taker = MAX(taker, 0); /* -1: of an open file, not of a process */
                        return lock;
                }
        }
        return NULL;
}

/* Finds the processes that have the lock now. The lock of an open file, as of flock(2), stays with
 * the processes that have inherited the file, and the number of the one that took it may be another
 * process's by now. */
static void find_holders(const char *lock, pid_t taker, struct fd_owners *o)
{
        *o = (struct fd_owners){ .other = taker, .n_others = 1 };
        if (!strncmp(lock, "POSIX", 5)) /* ends with its process */
                return;
        if (taker)
                fd_owners_find_lock(o, taker, lock);
        if (!taker || !o->n_others)
                fd_owners_find_lock(o, 0, lock);
}

/* Appends the holder of the lock that the process waits for. */
static void add_holder(pid_t pid, char *to, size_t size)
{
        CLEANUP(free_textp) char *locks = NULL;
        size_t len = strlen(to);
        char program[64], more[32] = "";
        const char *lock;
        struct fd_owners o;
        pid_t taker;

        if (fd_read_file("/proc/locks", LOCKS_MAX, &locks, NULL) < 0 ||
            !(lock = blocked_lock(locks, pid, &taker)))
                return;
        find_holders(lock, taker, &o);
        if (!o.n_others) { /* or its holders may not be read */
                if (taker)
                        snprintf(to + len, size - len, " (process %d%s took it)", (int)taker,
                                 proc_is_gone(taker) ? ", which has ended," : "");
                return;
        }
        proc_program(o.other, program, sizeof(program));
        if (o.n_others > 1)
                snprintf(more, sizeof(more), " and %zu more", o.n_others - 1);
        snprintf(to + len, size - len, " (process %d%s%s%s%s %s it)", (int)o.other,
                 *program ? ", " : "", program, more, *program ? "," : "",
                 o.n_others > 1 ? "have" : "has");
}

/* Names the processes at the other end of a pipe, or of a socket of this machine. */
static void tell_other_end(pid_t pid, const char *call, char *target, size_t size)
{
        bool reads = !strcmp(call, "read") || !strcmp(call, "receive from");
        const char *does = reads ? "may write to" : "may read";
        char link[128], program[64], more[32] = "";
        struct fd_owners o;
        uint64_t inode;
        bool is_pipe = !strncmp(target, "pipe:[", 6);

        if (is_pipe)
                snprintf(link, sizeof(link), "%.100s", target);
        else if (sscanf(target, "socket:[%" SCNu64 "]", &inode) == 1 &&
                 sockdiag_unix_peer(inode, &inode))
                snprintf(link, sizeof(link), "socket:[%" PRIu64 "]", inode);
        else
                return;
        /* The owner's bits of /proc/PID/fd/N tell the writing end of a pipe from the reading
         * end. */
        fd_owners_find(&o, pid, link, !is_pipe ? 0 : reads ? S_IWUSR : S_IRUSR);
        proc_program(o.other, program, sizeof(program));
        if (o.n_others > 1)
                snprintf(more, sizeof(more), " and %zu more", o.n_others - 1);
        if (!o.n_others && o.self && is_pipe)
                snprintf(target, size, "a pipe that only it %s", does);
        else if (o.n_others && is_pipe)
                snprintf(target, size, "a pipe that process %d%s%s%s%s %s", (int)o.other,
                         *program ? ", " : "", program, more, *program ? "," : "", does);
        else if (o.n_others)
                snprintf(target, size, "a socket of process %d%s%s%s", (int)o.other,
                         *program ? ", " : "", program, more);
}

void blocked_find(pid_t pid, char *to, size_t size)
{
        char text[256], path[64], target[256], peer[64];
        const char *name;
        uint64_t inode;
        ssize_t n = -1;
        int fd = -1;

        *to = '\0';
        if (!proc_read(pid, "syscall", text, sizeof(text)) || find_owner(pid, text, to, size))
                return;
        name = blocked_call(text, &fd);
        /* @to is empty for a call that is not listed: such a call says little about a hang. */
        if (!name || find_partner(pid, text, to, size))
                return;
        if (fd >= 0) {
                snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
                n = readlink(path, target, sizeof(target) - 1);
        }
        target[MAX(n, (ssize_t)0)] = '\0';
        printable_mask(target);
        if (sscanf(target, "socket:[%" SCNu64 "]", &inode) == 1 &&
            sockdiag_peer(pid, inode, peer, sizeof(peer)))
                snprintf(target, sizeof(target), "%s", peer);
        else
                tell_other_end(pid, name, target, sizeof(target));
        snprintf(to, size, n > 0 ? "%s %s" : "%s", name, target);
        if (!strcmp(name, "lock"))
                add_holder(pid, to, size);
}
