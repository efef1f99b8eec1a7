/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command in which one system call of one role fails once, or transfers less than asked for
 *
 *   inject [-o REPORT] count COMMAND...                  counts the calls, by role
 *   inject [-o REPORT] ROLE CALL[:KIND] N HOW[@TEXT] COMMAND...
 *
 * ROLE: head (hnlaunch), guard (hnlaunch-agent), agent (its child that runs the loop), head-child
 * and agent-child (forked, before exec), shell (what runs on a node before the agent). KIND: what
 * the descriptor of the call is: file, pipe, socket, device, anon; of fcntl(2): dup, flags; of
 * epoll_ctl(2): add, change; of flock(2): now, wait. N: counts from 1, over all processes of the
 * role. HOW: a number of errno(3); or cut or half: one byte, or half of the bytes, are transferred.
 * With TEXT only calls count whose path, or the target of whose descriptor, has it in; a Unix
 * socket is "socket:[NUMBER] unix".
 *
 * REPORT gets lines: "begin", "hit WHAT", "exit CODE" when the command has ended, "count ROLE
 * CALL[:KIND] N", and "end" when no process of the command is left; only then this program ends,
 * with the code of the command, as a shell.
 *
 * A filter with SECCOMP_RET_USER_NOTIF hands the chosen calls to this program, which lets them run
 * or answers for them. So the processes are not traced (ptrace(2) would change what the agent
 * does), static programs are no exception, and all other calls run at full speed. A short transfer
 * is done here, with the descriptor of the process (pidfd_getfd(2)). Roles come from /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { PIECE = 65536, TEXT = 512 };
enum arg { NONE, PATH, PATH_AT, FD }; /* what the first arguments are */

static const struct call {
        const char *name;
        int number;
        enum arg arg;
} calls[] = {
#define CALL(name, arg)                                                                            \
        {                                                                                          \
#name, SYS_##name, arg                                                             \
        }
#ifdef SYS_open /* not on newer architectures */
        CALL(open, PATH),
        CALL(mkdir, PATH),
        CALL(rmdir, PATH),
        CALL(rename, PATH),
        CALL(unlink, PATH),
        CALL(link, PATH),
        CALL(symlink, PATH),
        CALL(chmod, PATH),
        CALL(readlink, PATH),
        CALL(access, PATH),
        CALL(fork, NONE),
        CALL(vfork, NONE),
        CALL(dup2, FD),
        CALL(poll, NONE),
        CALL(epoll_wait, FD),
#endif
        CALL(openat, PATH_AT),
        CALL(mkdirat, PATH_AT),
        CALL(unlinkat, PATH_AT),
        CALL(renameat, PATH_AT),
        CALL(renameat2, PATH_AT),
        CALL(linkat, PATH_AT),
        CALL(symlinkat, NONE),
        CALL(readlinkat, PATH_AT),
        CALL(fchmodat, PATH_AT),
        CALL(faccessat, PATH_AT),
        CALL(faccessat2, PATH_AT),
        CALL(newfstatat, PATH_AT),
        CALL(statx, PATH_AT),
        CALL(statfs, PATH),
        CALL(chdir, PATH),
        CALL(execve, PATH),
        CALL(getcwd, NONE),
        CALL(read, FD),
        CALL(readv, FD),
        CALL(pread64, FD),
        CALL(write, FD),
        CALL(writev, FD),
        CALL(pwrite64, FD),
        CALL(sendto, FD),
        CALL(sendmsg, FD),
        CALL(recvfrom, FD),
        CALL(recvmsg, FD),
        CALL(fstatfs, FD),
        CALL(getdents64, FD),
        CALL(lseek, FD),
        CALL(ftruncate, FD),
        CALL(fallocate, FD),
        CALL(fsync, FD),
        CALL(fdatasync, FD),
        CALL(fchmod, FD),
        CALL(fcntl, FD),
        CALL(flock, FD),
        CALL(dup, FD),
        CALL(dup3, FD),
        CALL(ioctl, FD),
        CALL(connect, FD),
        CALL(bind, FD),
        CALL(listen, FD),
        CALL(accept4, FD),
        CALL(setsockopt, FD),
        CALL(getsockopt, FD),
        CALL(getsockname, FD),
        CALL(getpeername, FD),
        CALL(epoll_ctl, FD),
        CALL(timerfd_settime, FD),
        CALL(inotify_add_watch, FD),
        CALL(socket, NONE),
        CALL(socketpair, NONE),
        CALL(pipe2, NONE),
        CALL(eventfd2, NONE),
        CALL(epoll_create1, NONE),
        CALL(timerfd_create, NONE),
        CALL(inotify_init1, NONE),
        CALL(memfd_create, NONE),
        CALL(pidfd_open, NONE),
        CALL(clone, NONE),
        CALL(clone3, NONE),
        CALL(wait4, NONE),
        CALL(waitid, NONE),
        CALL(kill, NONE),
        CALL(setsid, NONE),
        CALL(prctl, NONE),
        CALL(prlimit64, NONE),
        CALL(unshare, NONE),
        CALL(mount, NONE),
        CALL(sched_getaffinity, NONE),
        CALL(sched_setaffinity, NONE),
        CALL(set_mempolicy, NONE),
        CALL(ppoll, NONE),
        CALL(getrandom, NONE),
        CALL(mmap, NONE),
        CALL(brk, NONE),
        CALL(mprotect, NONE),
        CALL(mremap, NONE),
};

enum { N_CALLS = sizeof(calls) / sizeof(*calls), COUNTS = 4096 };

static struct {
        char key[64];
        long n;
} counts[COUNTS];

static struct fault {
        const char *role, *call, *kind; /* role NULL: only count */
        const char *text;
        long n;
        int error;    /* or 0: transfer less */
        size_t share; /* 0 = one byte */
        bool hit;
} fault;

static int report = STDERR_FILENO;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
        char line[TEXT * 2];
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(line, sizeof(line), fmt, ap);
        va_end(ap);
        if (write(report, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
                exit(1);
}

static void die(const char *what)
{
        fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
        exit(125);
}

/* --- who calls ----------------------------------------------------------------------------------
 */

static void read_link(char *ret, size_t size, const char *fmt, int a, int b)
{
        char path[64];
        ssize_t n;

        snprintf(path, sizeof(path), fmt, a, b);
        n = readlink(path, ret, size - 1);
        ret[n > 0 ? n : 0] = '\0';
}

static int read_status(int pid, const char *field, int base)
{
        char path[64], line[256];
        int value = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (!strncmp(line, field, strlen(field)))
                        value = (int)strtoull(line + strlen(field), NULL, base);
        if (f)
                fclose(f);
        return value;
}

/* 'h' for hnlaunch, 'a' for its agent, 'i' for this program, 0 for others. */
static char program_of(int pid)
{
        char exe[TEXT], *name;

        read_link(exe, sizeof(exe), "/proc/%d/exe", pid, 0);
        name = basename(exe);
        return !strcmp(name, "hnlaunch")                                             ? 'h'
               : !strncmp(name, "hnlaunch-agent", 14) || !strncmp(name, "agent-", 6) ? 'a'
               : !strncmp(name, "inject", 6)                                         ? 'i'
                                                                                     : 0;
}

static const char *role_of(int pid)
{
        int parent = read_status(pid, "PPid:", 10), up = parent;

        switch (program_of(pid)) {
        case 'h':
                if (program_of(parent) == 'h')
                        return "head-child";
                /* main() catches SIGABRT first; before it the loader runs, which may crash. */
                return read_status(pid, "SigCgt:", 16) >> (SIGABRT - 1) & 1 ? "head" : "loader";
        case 'a':
                if (program_of(parent) != 'a')
                        return "guard";
                return program_of(read_status(parent, "PPid:", 10)) == 'a' ? "agent-child"
                                                                           : "agent";
        case 'i':
                return "inject";
        default:
                while (up > 1 && program_of(up) == 0)
                        up = read_status(up, "PPid:", 10);
                return program_of(up) == 'i' ? "shell" : "rank";
        }
}

/* --- what is called ------------------------------------------------------------------------------
 */

static ssize_t peek(int pid, uint64_t at, void *to, size_t n)
{
        struct iovec local = { to, n }, remote = { (void *)(uintptr_t)at, n };

        return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}

/* Returns a descriptor of ours for the descriptor @fd of a process, or -1. */
static int take_descriptor(int pid, int fd)
{
        int process = (int)syscall(SYS_pidfd_open, read_status(pid, "Tgid:", 10), 0);
        int ours = (int)syscall(SYS_pidfd_getfd, process, fd, 0);

        close(process);
        return ours;
}

/* Appends " unix" to the name of a socket of that family. */
static void add_family(char *name, int pid, int fd)
{
        int ours = take_descriptor(pid, fd), family = AF_UNSPEC;

        getsockopt(ours, SOL_SOCKET, SO_DOMAIN, &family, &(socklen_t){ sizeof(family) });
        close(ours);
        if (family == AF_UNIX && strlen(name) < TEXT - 6)
                strcat(name, " unix");
}

static void read_path(char *ret, int pid, uint64_t at)
{
        ssize_t n = peek(pid, at, ret, TEXT - 1);

        if (n < 0) /* near the end of its page */
                n = peek(pid, at, ret, 4096 - at % 4096 < TEXT - 1 ? 4096 - at % 4096 : TEXT - 1);
        ret[n > 0 ? n : 0] = '\0';
}

/* Writes the path, or the target of the descriptor, to @text[TEXT]; returns the kind, or "". */
static const char *look_at(const struct call *c, const struct seccomp_notif *n, char *text)
{
        *text = '\0';
        if (c->number == SYS_fcntl)
                return n->data.args[1] == F_DUPFD || n->data.args[1] == F_DUPFD_CLOEXEC ? "dup"
                                                                                        : "flags";
        if (c->number == SYS_flock)
                return n->data.args[1] & (LOCK_NB | LOCK_UN) ? "now" : "wait";
        if (c->number == SYS_epoll_ctl)
                return n->data.args[1] == EPOLL_CTL_ADD ? "add" : "change";
        if (c->number == SYS_mmap)
                return (int)n->data.args[4] < 0 ? "anon" : "file";
        if (c->arg == PATH || c->arg == PATH_AT)
                read_path(text, (int)n->pid, n->data.args[c->arg == PATH_AT]);
        if (c->arg != FD)
                return "";
        read_link(text, TEXT, "/proc/%d/fd/%d", (int)n->pid, (int)n->data.args[0]);
        if (fault.text && !strncmp(text, "socket:", 7))
                add_family(text, (int)n->pid, (int)n->data.args[0]);
        return !strncmp(text, "pipe:", 5)          ? "pipe"
               : !strncmp(text, "socket:", 7)      ? "socket"
               : !strncmp(text, "anon_inode:", 11) ? "anon"
               : !strncmp(text, "/dev/", 5)        ? "device"
                                                   : "file";
}

/* --- short transfers -----------------------------------------------------------------------------
 */

/* Where the bytes of the call are: its first piece of memory that is not empty. */
static struct iovec first_piece(int pid, const struct seccomp_data *d)
{
        struct iovec piece = { 0 };
        struct msghdr m;
        uint64_t at = d->args[1];

        switch (d->nr) {
        case SYS_readv:
        case SYS_writev:
                break;
        case SYS_sendmsg:
                if (peek(pid, at, &m, sizeof(m)) != sizeof(m) || m.msg_controllen || m.msg_name)
                        return piece;
                at = (uint64_t)(uintptr_t)m.msg_iov;
                break;
        default:
                return (struct iovec){ (void *)(uintptr_t)d->args[1], d->args[2] };
        }
        for (int i = 0; i < 8 && !piece.iov_len; i++)
                if (peek(pid, at + (uint64_t)i * sizeof(piece), &piece, sizeof(piece)) < 0)
                        break;
        return piece;
}

static ssize_t transfer(int nr, int fd, char *mem, size_t len, const __u64 *args)
{
        switch (nr) {
        case SYS_read:
        case SYS_readv:
                return read(fd, mem, len);
        case SYS_pread64:
                return pread(fd, mem, len, (off_t)args[3]);
        case SYS_recvfrom:
                return recv(fd, mem, len, (int)args[3] | MSG_DONTWAIT);
        case SYS_write:
        case SYS_writev:
                return write(fd, mem, len);
        case SYS_pwrite64:
                return pwrite(fd, mem, len, (off_t)args[3]);
        case SYS_sendto:
                return send(fd, mem, len, (int)args[3] | MSG_DONTWAIT | MSG_NOSIGNAL);
        default:
                return send(fd, mem, len, (int)args[2] | MSG_DONTWAIT | MSG_NOSIGNAL);
        }
}

static bool is_input(int nr)
{
        return nr == SYS_read || nr == SYS_readv || nr == SYS_pread64 || nr == SYS_recvfrom;
}

/* Does a part of the call's work; bytes, or -1 when the call cannot be cut: it would block, or is
 * one that no kernel cuts, as of an eventfd, of a datagram, or of up to PIPE_BUF bytes of a pipe.
 */
static ssize_t cut_call(const struct seccomp_notif *n, const char *kind)
{
        static char mem[PIECE];
        int pid = (int)n->pid, fd = -1, nr = n->data.nr;
        struct iovec piece = first_piece(pid, &n->data), local, remote;
        size_t len = fault.share ? piece.iov_len / fault.share : 1;
        struct pollfd ready;
        int type = SOCK_STREAM;
        ssize_t r = -1;

        len = len < PIECE ? len : PIECE;
        local = (struct iovec){ mem, len };
        remote = (struct iovec){ piece.iov_base, len };
        fd = take_descriptor(pid, (int)n->data.args[0]);
        ready = (struct pollfd){ fd, is_input(nr) ? POLLIN : POLLOUT, 0 };
        if (!strcmp(kind, "socket"))
                getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof(type) });
        if (type != SOCK_STREAM || !strcmp(kind, "anon") || piece.iov_len < 2 || !len ||
            poll(&ready, 1, 0) != 1 || (!strcmp(kind, "pipe") && piece.iov_len <= PIPE_BUF))
                goto out;
        if (!is_input(nr) && peek(pid, (uint64_t)(uintptr_t)piece.iov_base, mem, len) < 0)
                goto out;
        r = transfer(nr, fd, mem, len, n->data.args);
        local.iov_len = remote.iov_len = r > 0 ? (size_t)r : 0;
        if (r > 0 && is_input(nr) && process_vm_writev(pid, &local, 1, &remote, 1, 0) != r)
                r = -1;
out:
        close(fd);
        return r > 0 ? r : -1;
}

/* --- the answer ----------------------------------------------------------------------------------
 */

static void count_call(const char *role, const char *call, const char *kind)
{
        char key[sizeof(counts->key)];

        snprintf(key, sizeof(key), "%s %s%s%s", role, call, *kind ? ":" : "", kind);
        for (int i = 0; i < COUNTS; i++)
                if (!*counts[i].key || !strcmp(counts[i].key, key)) {
                        strcpy(counts[i].key, key);
                        counts[i].n++;
                        return;
                }
}

static void decide(const struct seccomp_notif *n, struct seccomp_notif_resp *answer)
{
        const struct call *c = calls;
        const char *kind, *role;
        char text[TEXT];
        ssize_t r;

        *answer = (struct seccomp_notif_resp){ .id = n->id,
                                               .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
        if (n->data.nr == SYS_brk && !n->data.args[0])
                return; /* cannot fail */
        while (c->number != n->data.nr)
                c++;
        kind = look_at(c, n, text);
        if (fault.role && (fault.hit || (fault.kind && strcmp(fault.kind, kind) != 0) ||
                           (fault.text && !strstr(text, fault.text))))
                return;
        role = role_of((int)n->pid);
        if (!fault.role) {
                count_call(role, c->name, kind);
                return;
        }
        if (strcmp(role, fault.role) != 0 || --fault.n > 0)
                return;
        r = fault.error ? 0 : cut_call(n, kind);
        if (r < 0)
                return; /* the next one, perhaps */
        fault.hit = true;
        answer->flags = 0;
        /* brk() fails by returning another break than the wanted one; of 0 libc does not make one.
         */
        answer->error = n->data.nr == SYS_brk ? 0 : -fault.error;
        answer->val = r;
        say("hit pid %d %s(%#llx, %#llx, %#llx) %s\n", (int)n->pid, c->name, n->data.args[0],
            n->data.args[1], n->data.args[2], text);
}

/* Answers until no process with the filter is left. */
static void serve(int listener, pid_t child)
{
        struct pollfd p = { listener, POLLIN, 0 };
        struct seccomp_notif_resp answer;
        struct seccomp_notif n;
        int status, code = -1;

        while (!(p.revents & POLLHUP) || code < 0) {
                if (code < 0 && waitpid(child, &status, WNOHANG) == child) {
                        code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
                        say("exit %d\n", code);
                }
                if (poll(&p, 1, code < 0 ? 20 : -1) < 1 || !(p.revents & POLLIN))
                        continue;
                memset(&n, 0, sizeof(n));
                if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
                        continue; /* its process was killed */
                decide(&n, &answer);
                ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        }
        for (int i = 0; i < COUNTS && *counts[i].key; i++)
                say("count %s %ld\n", counts[i].key, counts[i].n);
        say("end\n");
        exit(code);
}

/* --- the filter ----------------------------------------------------------------------------------
 */

/* Returns the descriptor that gets the calls of this process from now on. */
static int install_filter(void)
{
        struct sock_filter code[N_CALLS + 3];
        struct sock_fprog program = { 0, code };
        unsigned short n = 0, left = 0;
        int fd;

        for (size_t i = 0; i < N_CALLS; i++)
                left += !fault.role || !strcmp(fault.call, calls[i].name);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < N_CALLS; i++)
                if (!fault.role || !strcmp(fault.call, calls[i].name))
                        code[n++] = (struct sock_filter)BPF_JUMP(
                                BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, left--, 0);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
        program.len = n;
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                          SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                          &program);
        return fd < 0 ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                     SECCOMP_FILTER_FLAG_NEW_LISTENER, &program)
                      : fd;
}

/* The child tells its descriptor through shared memory, since its calls are held already. */
static void run(char **argv)
{
        volatile int *shared =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int listener, process;
        pid_t child;

        if (shared == MAP_FAILED || (child = fork()) < 0)
                die("fork");
        if (!child) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                listener = install_filter();
                shared[0] = listener < 0 ? -errno : listener;
                while (!shared[1])
                        sched_yield();
                close(listener);
                execvp(*argv, argv);
                die(*argv);
        }
        while (!shared[0])
                sched_yield();
        errno = shared[0] < 0 ? -shared[0] : 0;
        if (errno)
                die("cannot install a filter of system calls");
        process = (int)syscall(SYS_pidfd_open, child, 0);
        listener = (int)syscall(SYS_pidfd_getfd, process, shared[0], 0);
        if (listener < 0)
                die("cannot take the descriptor of the filter");
        shared[1] = 1;
        close(process);
        /* Whoever ends the group of the command shall not end its answers. */
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        say("begin\n");
        serve(listener, child);
}

/* Splits "A<c>B" at the first <c>; returns B or NULL. */
static char *split(char *text, char c)
{
        char *at = strchr(text, c);

        if (at)
                *at++ = '\0';
        return at;
}

static void parse_fault(char **argv)
{
        fault.role = argv[0];
        fault.kind = split(argv[1], ':');
        fault.call = argv[1];
        fault.n = atol(argv[2]);
        fault.text = split(argv[3], '@');
        fault.error = atoi(argv[3]);
        fault.share = !strcmp(argv[3], "half") ? 2 : 0;
        for (size_t i = 0; i < N_CALLS; i++)
                if (!strcmp(calls[i].name, fault.call))
                        return;
        fprintf(stderr, "inject: unknown call %s\n", fault.call);
        exit(64);
}

int main(int argc, char **argv)
{
        argv++;
        if (argc > 2 && !strcmp(*argv, "-o")) {
                report = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
                if (report < 0)
                        die(argv[1]);
                argv += 2;
        }
        if (*argv && !strcmp(*argv, "count")) {
                argv++;
        } else if (argv[0] && argv[1] && argv[2] && argv[3]) {
                parse_fault(argv);
                argv += 4;
        }
        if (!*argv) {
                fprintf(stderr, "usage: inject [-o REPORT] [count | ROLE CALL N HOW] COMMAND...\n");
                return 64;
        }
        run(argv);
}
