/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocked: the file or process that a sleeping process waits for
 *
 * By /proc/PID/syscall and /proc/PID/fd, readable only with the right to trace the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Parses the text of a syscall file. Returns the name of a call with a wait for a file, and the
 * descriptor in *@ret_fd (-1 = none, as for open); NULL for other calls. */
const char *blocked_call(const char *text, int *ret_fd);
/* Parses the same text for an open(): the address of the path, and the flags. False: another call.
 */
bool blocked_open(const char *text, uint64_t *ret_path, int *ret_flags);
/* Parses the text of /proc/locks: returns the line of the lock that @waiter waits for, behind its
 * number, lent, and the process that took it (0 = not told); NULL = none is seen there. Source:
 * proc_locks(5). */
const char *blocked_lock(const char *locks, pid_t waiter, pid_t *ret_taker);
/* Parses the text of a syscall file for the wait for a lock of glibc: returns the address of the
 * lock word, 0 = another call. Source: futex(2), nptl/lowlevellock.h of glibc: a lock with waiters
 * is 2. */
uint64_t blocked_futex(const char *text);
/* Writes "read /tmp/fifo", "receive from 10.0.0.2:4711", "receive from a socket of process 4711,
 * redis", "read a pipe that only it may write to", "write a pipe that process 4711, tee, may read",
 * "lock /data/lock (process 4711, python3, has it)", "lock /data/lock (process 4711, which has
 * ended, took it)", "open a file", "wait for a writer of /tmp/fifo (none has it open)" or "wait for
 * a mutex that its thread 4712 has"; "" when the call is unknown. */
void blocked_find(pid_t pid, char *to, size_t size);
