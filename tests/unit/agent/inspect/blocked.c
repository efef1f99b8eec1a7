/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a call waits for, from what Linux 6.18 has written to /proc/PID/syscall. */
#include "agent/inspect/blocked.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "lib/unit.h"

static void assert_call(const char *text, const char *name, int fd)
{
        const char *got;
        int got_fd = -2;

        got = blocked_call(text, &got_fd);
        if (!name) {
                assert_null(got);
                return;
        }
        assert_string_equal(got, name);
        assert_int_equal(got_fd, fd);
}

TEST(calls_name_their_files)
{
        char text[64];

        snprintf(text, sizeof(text), "%d 0x1f 0x7ffe875d585b 0x1 0x7fe2d14d5b60 0x0", SYS_read);
        assert_call(text, "read", 31);
        snprintf(text, sizeof(text), "%d 0x3 0x2 0x0", SYS_flock);
        assert_call(text, "lock", 3);
        snprintf(text, sizeof(text), "%d 0xffffff9c 0x7f9e7ddf19a0 0x80000", SYS_openat);
        assert_call(text, "open a file", -1);
        snprintf(text, sizeof(text), "%d 0x7f9e7ddf19a0", SYS_futex);
        assert_call(text, NULL, 0);
        assert_call("running", NULL, 0);
        assert_call("-1 0x7ffd53ad7da0 0x7f9e7df16011", NULL, 0);
        assert_call("", NULL, 0);
}

/* Waits until the child has come to a call that is told like this; where the kernel does not tell,
 * never. */
static void assert_told(pid_t pid, const char *want)
{
        char got[256] = "";

        for (int i = 0; i < 2000 && strcmp(got, want) != 0; i++) {
                blocked_find(pid, got, sizeof(got));
                usleep(1000);
        }
        if (access("/proc/self/syscall", R_OK) == 0)
                assert_string_equal(got, want);
}

/* Forks a child that reads a byte from @fd, without @closed. */
static pid_t start_reader(int fd, int closed)
{
        char c;
        pid_t pid = fork();

        if (pid)
                return pid;
        close(closed);
        _exit(read(fd, &c, 1) != 1);
}

static void end_reader(pid_t pid, int fd)
{
        int status;

        assert_int_equal(write(fd, "x", 1), 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

TEST(a_process_that_reads_is_told)
{
        char want[128], program[64];
        int fds[2], status;
        pid_t pid;

        proc_program(getpid(), program, sizeof(program));
        assert_int_equal(pipe(fds), 0);
        pid = start_reader(fds[0], fds[1]);
        snprintf(want, sizeof(want), "read a pipe that process %d, %s, may write to", (int)getpid(),
                 program);
        assert_told(pid, want);
        end_reader(pid, fds[1]);
        close(fds[0]);
        close(fds[1]);
        /* Who keeps the other end of its own pipe open never comes to the end of it. */
        assert_int_equal(pipe(fds), 0);
        pid = start_reader(fds[0], -1);
        close(fds[0]);
        close(fds[1]);
        assert_told(pid, "read a pipe that only it may write to");
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        pid = start_reader(fds[0], fds[1]);
        close(fds[0]);
        snprintf(want, sizeof(want), "read a socket of process %d, %s", (int)getpid(), program);
        assert_told(pid, want);
        end_reader(pid, fds[1]);
        close(fds[1]);
}

TEST(an_open_names_its_path)
{
        char text[64];
        uint64_t path;
        int flags;

        snprintf(text, sizeof(text), "%d 0xffffff9c 0x7f9e7ddf19a0 0x80001 0x0", SYS_openat);
        assert_true(blocked_open(text, &path, &flags));
        assert_true(path == 0x7f9e7ddf19a0);
        assert_int_equal(flags & O_ACCMODE, O_WRONLY);
        snprintf(text, sizeof(text), "%d 0x3 0x2 0x0", SYS_flock);
        assert_false(blocked_open(text, &path, &flags));
        assert_false(blocked_open("running", &path, &flags));
}

static void *take_and_keep(void *lock)
{
        pthread_mutex_lock(lock);
        pause();
        return NULL;
}

TEST(a_mutex_has_an_owner)
{
        char text[64], got[160] = "";
        pid_t pid;

        snprintf(text, sizeof(text), "%d 0x7f9e7ddf19a0 0x80 0x2 0x0", SYS_futex);
        assert_true(blocked_futex(text) == 0x7f9e7ddf19a0);
        snprintf(text, sizeof(text), "%d 0x7f9e7ddf19a0 0x80 0x0 0x0", SYS_futex);
        assert_true(blocked_futex(text) == 0);
        snprintf(text, sizeof(text), "%d 0x7f9e7ddf19a0 0x189 0x2 0x0", SYS_futex);
        assert_true(blocked_futex(text) == 0);
        assert_true(blocked_futex("running") == 0);
        pid = fork();
        if (!pid) {
                static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
                pthread_t thread;

                if (pthread_create(&thread, NULL, take_and_keep, &lock))
                        _exit(1);
                while (pthread_mutex_trylock(&lock) == 0) {
                        pthread_mutex_unlock(&lock);
                        usleep(1000);
                }
                pthread_mutex_lock(&lock);
                _exit(2);
        }
        /* Until the child has come to the lock; where the kernel does not tell, never. */
        for (int i = 0; i < 2000 && !*got; i++) {
                blocked_find(pid, got, sizeof(got));
                usleep(1000);
        }
        if (access("/proc/self/syscall", R_OK) == 0) {
                assert_memory_equal(got, "wait for a mutex that its thread ", 33);
                assert_true(atoi(got + 33) > pid);
                assert_string_equal(strrchr(got, ' '), " has");
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(a_lock_has_a_holder)
{
        static const char locks[] = "1: POSIX  ADVISORY  WRITE 100 fe:00:7 0 EOF\n"
                                    "2: FLOCK  ADVISORY  WRITE 200 fe:00:8 0 EOF\n"
                                    "2: -> FLOCK  ADVISORY  WRITE 201 fe:00:8 0 EOF\n"
                                    "2:  -> FLOCK  ADVISORY  READ 202 fe:00:8 0 EOF\n"
                                    "3: OFDLCK ADVISORY  WRITE -1 fe:00:9 0 EOF\n"
                                    "3: -> OFDLCK ADVISORY  WRITE 301 fe:00:9 0 EOF\n"
                                    "cut off";

        pid_t taker = -2;
        const char *lock = blocked_lock(locks, 201, &taker);

        assert_memory_equal(lock, "FLOCK  ADVISORY  WRITE 200 fe:00:8 0 EOF\n", 41);
        assert_int_equal(taker, 200);
        assert_ptr_equal(blocked_lock(locks, 202, &taker), lock);
        assert_memory_equal(blocked_lock(locks, 301, &taker), "OFDLCK ADVISORY  WRITE -1 ", 26);
        assert_int_equal(taker, 0);
        assert_null(blocked_lock(locks, 100, &taker));
        assert_null(blocked_lock("", 201, &taker));
        assert_null(blocked_lock("1: -> FLOCK  ADVISORY  WRITE 5 fe:00:8 0 EOF", 5, &taker));
}

/* Opens a file without a name twice. Returns what /proc calls it in @name. */
static void open_lock_file(int fds[2], char *name, size_t size)
{
        char path[] = "/tmp/blocked.XXXXXX", link[64];
        ssize_t n;

        fds[0] = mkstemp(path);
        fds[1] = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fds[0] >= 0 && fds[1] >= 0);
        unlink(path);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fds[1]);
        n = readlink(link, name, size - 1);
        assert_true(n > 0);
        name[n] = '\0';
}

/* Locks an open file as flock(1) does for a shell: the process that takes the lock ends. */
static pid_t take_lock_and_end(int fd)
{
        pid_t pid = fork();
        int status;

        if (!pid)
                _exit(flock(fd, LOCK_EX | LOCK_NB) != 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        return pid;
}

/* Forks a child that waits for the lock of @fd, without the open file @closed. */
static pid_t start_locker(int fd, int closed)
{
        pid_t pid = fork();

        if (pid)
                return pid;
        close(closed);
        _exit(flock(fd, LOCK_EX) != 0);
}

static void end_locker(pid_t pid)
{
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

TEST(a_lock_is_held_by_those_that_have_the_file)
{
        char want[256], program[64], file[64];
        int fds[2], end[2];
        pid_t waiter, other;

        proc_program(getpid(), program, sizeof(program));
        open_lock_file(fds, file, sizeof(file));
        take_lock_and_end(fds[0]);
        waiter = start_locker(fds[1], fds[0]);
        snprintf(want, sizeof(want), "lock %s (process %d, %s, has it)", file, (int)getpid(),
                 program);
        assert_told(waiter, want);

        assert_int_equal(pipe(end), 0);
        other = start_reader(end[0], end[1]); /* inherits the file */
        snprintf(want, sizeof(want), "lock %s (process %d, %s and 1 more, have it)", file,
                 (int)getpid(), program);
        assert_told(waiter, want);
        end_reader(other, end[1]);
        close(end[0]);
        close(end[1]);
        close(fds[0]);
        end_locker(waiter);
        close(fds[1]);
}

/* Sends @fd to a socket, and closes it: the open file is on its way, and no process has it. */
static void send_away(int to, int fd)
{
        char room[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
        struct iovec data = { &byte, 1 };
        struct msghdr m = { .msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = room,
                            .msg_controllen = sizeof(room) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        assert_int_equal(sendmsg(to, &m, 0), 1);
        close(fd);
}

TEST(a_lock_without_a_readable_holder_has_a_taker)
{
        char want[256], file[64];
        int fds[2], pair[2];
        pid_t waiter, taker;

        open_lock_file(fds, file, sizeof(file));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        taker = take_lock_and_end(fds[0]);
        waiter = start_locker(fds[1], fds[0]);
        send_away(pair[0], fds[0]);
        snprintf(want, sizeof(want), "lock %s (process %d, which has ended, took it)", file,
                 (int)taker);
        assert_told(waiter, want);
        close(pair[0]);
        close(pair[1]);
        kill(waiter, SIGKILL);
        assert_int_equal(waitpid(waiter, NULL, 0), waiter);
        close(fds[1]);
}
