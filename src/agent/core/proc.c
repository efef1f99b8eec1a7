/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three questions are answered here. The children of a process: from the kernel's own list, or
 * where the kernel has none, by the parent of every process. The state of a process: from the stat
 * line. The processes of an attempt that are no descendants: by a variable in the environment. The
 * last answer is expensive, because a machine has thousands of processes, and delicate, because an
 * environment looks empty for a moment while a program is being executed; such a process is looked
 * at again.
 */
#include "agent/core/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

enum {
        CHUNK = 64 << 10,
        STAT_MAX = 1024,
        FEW = 4096,         /* numbers tried in turn */
        FILE_MAX = 8 << 20, /* an environment has no limit */
        EMPTY_TRIES = 3,    /* looks at an empty environment, a millisecond apart, */
        EXEC_TRIES = 1000,  /* ... and at a missing environment */
};

/* Flags of the kernel's include/linux/sched.h: PF_EXITING, PF_POSTCOREDUMP (a thread waits for the
 * dump of another one), PF_SIGNALED. */
enum { ENDING_FLAGS = 0x4 | 0x8 | 0x400 };

void pids_finish(struct pids *p)
{
        free(p->v);
        *p = (struct pids)PIDS_INIT;
}

void pids_push(struct pids *p, pid_t pid)
{
        p->v = xgrow(p->v, p->n, &p->cap, sizeof(*p->v));
        p->v[p->n++] = pid;
}

bool pids_have(const struct pids *p, pid_t pid)
{
        for (size_t i = 0; i < p->n; i++)
                if (p->v[i] == pid)
                        return true;
        return false;
}

/* Parses the name of a folder in /proc; 0 = not a process. */
static pid_t parse_pid(const char *name)
{
        char *end;
        long pid = strtol(name, &end, 10);

        return *name >= '1' && *name <= '9' && !*end ? (pid_t)pid : 0;
}

/* --- fields of a line ------------------------------------------------------------------------- */

const char *proc_word(const char *line, size_t n)
{
        for (line += strspn(line, " \t"); n && *line; n--) {
                line += strcspn(line, " \t\n");
                line += strspn(line, " \t\n");
        }
        return *line && *line != '\n' ? line : NULL;
}

bool proc_number(const char *line, size_t n, uint64_t *ret)
{
        const char *word = proc_word(line, n);
        char *end;

        if (!word)
                return false;
        *ret = strtoull(word, &end, 10);
        return end != word;
}

char *proc_line(const char *file, const char *text)
{
        char *all, *at, *line = NULL;

        if (fd_read_file(file, FILE_MAX, &all, NULL) < 0)
                return NULL;
        at = strstr(all, text);
        if (at)
                line = xstrndup(at + strlen(text), strcspn(at + strlen(text), "\n"));
        free(all);
        return line;
}

/* --- one process ------------------------------------------------------------------------------ */

/* One read() is enough: the kernel writes such a file at the moment of the read. */
bool proc_read(pid_t pid, const char *file, char *to, size_t size)
{
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        n = read(fd, to, size - 1);
        fd_close(fd);
        to[n > 0 ? n : 0] = '\0';
        return n > 0;
}

/* The name in parentheses may contain anything, also parentheses. The words behind the name have
 * the numbers of proc(5) minus 3. */
bool proc_parse_stat(struct proc_stat *p, const char *line)
{
        const char *behind = strrchr(line, ')'), *state;
        uint64_t pid, parent, session, flags, user, system;

        if (!behind || !proc_number(line, 0, &pid) || !(state = proc_word(++behind, 0)) ||
            !proc_number(behind, 1, &parent) || !proc_number(behind, 3, &session) ||
            !proc_number(behind, 6, &flags) || !proc_number(behind, 11, &user) ||
            !proc_number(behind, 12, &system) || !proc_number(behind, 19, &p->start_ticks) ||
            !proc_number(behind, 21, &p->resident_pages))
                return false;
        p->state = *state;
        p->pid = (pid_t)pid;
        p->parent = (pid_t)parent;
        p->session = (pid_t)session;
        p->is_ending = flags & ENDING_FLAGS;
        p->cpu_ticks = user + system;
        if (!proc_number(behind, 47, &p->env_start) || !proc_number(behind, 48, &p->env_end))
                p->env_start = p->env_end = 0;
        return true;
}

bool proc_read_stat(struct proc_stat *p, pid_t pid)
{
        char line[STAT_MAX];

        return proc_read(pid, "stat", line, sizeof(line)) && proc_parse_stat(p, line);
}

/* Reads one set of signals in a status file. */
static uint64_t read_signal_set(const char *text, const char *name)
{
        const char *at = strstr(text, name);

        /* Sets are hexadecimal, and bit 0 is signal 1. 0 = no such line. */
        return at ? strtoull(at + strlen(name), NULL, 16) : 0;
}

/* A blocked signal counts: sigwait(3) and signalfd(2) take signals that way. */
bool proc_catches(pid_t pid, int signo)
{
        char path[64], *text;
        uint64_t sets;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        if (signo < 1 || fd_read_file(path, FILE_MAX, &text, NULL) < 0)
                return false;
        sets = read_signal_set(text, "\nSigCgt:") | read_signal_set(text, "\nSigBlk:");
        free(text);
        return sets >> (signo - 1) & 1;
}

void proc_program(pid_t pid, char *to, size_t size)
{
        char path[64], file[PATH_MAX];
        const char *name;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
        n = readlink(path, file, sizeof(file) - 1);
        file[n > 0 ? n : 0] = '\0';
        /* The link of a removed file ends with " (deleted)", which stays in the name. */
        name = strrchr(file, '/');
        snprintf(to, size, "%s", name ? name + 1 : "");
}

/* Zombies only: a process that its tracer has stopped is alive still. */
bool proc_is_held(pid_t pid)
{
        static const char name[] = "\nTracerPid:";
        char text[CHUNK / 16], *tracer;
        struct proc_stat p;

        if (!proc_read_stat(&p, pid) || p.state != 'Z' ||
            !proc_read(pid, "status", text, sizeof(text)))
                return false;
        tracer = strstr(text, name);
        return tracer && strtol(tracer + sizeof(name) - 1, NULL, 10) > 0;
}

bool proc_is_traced(pid_t pid)
{
        struct proc_stat p;

        return proc_read_stat(&p, pid) && p.state == 't';
}

/* --- numbers of processes --------------------------------------------------------------------- */

/* Counts the namespaces from that of /proc down to that of this process: NSpid has a number for
 * each, the outermost first. Source: proc_pid_status(5). */
static size_t count_levels(void)
{
        CLEANUP(free_textp) char *line = proc_line("/proc/self/status", "\nNSpid:");
        size_t n = 0;

        while (line && proc_word(line, n))
                n++;
        /* Kernels before 4.1 have no such line. */
        return n ? n - 1 : proc_self() == getpid() ? 0 : SIZE_MAX;
}

bool proc_is_outer(void)
{
        return count_levels() > 0;
}

pid_t proc_self(void)
{
        char link[32];
        ssize_t n = readlink("/proc/self", link, sizeof(link) - 1);

        link[n > 0 ? n : 0] = '\0';
        return n > 0 ? parse_pid(link) : getpid();
}

pid_t proc_local(pid_t pid)
{
        size_t levels = count_levels();
        CLEANUP(free_textp) char *line = NULL;
        char path[64];
        uint64_t number;

        if (!levels)
                return pid;
        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        line = proc_line(path, "\nNSpid:");
        return line && proc_number(line, levels, &number) ? (pid_t)number : 0;
}

bool proc_is_gone(pid_t pid)
{
        /* Not by /proc, which may hide the processes of other users. */
        return !proc_is_outer() && kill(pid, 0) < 0 && errno == ESRCH;
}

/* --- children --------------------------------------------------------------------------------- */

void proc_each(void (*fn)(void *ctx, pid_t pid), void *ctx)
{
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        pid_t pid;

        while (proc && (entry = readdir(proc)))
                if ((pid = parse_pid(entry->d_name)))
                        fn(ctx, pid);
        if (proc)
                closedir(proc);
}

/* False: the kernel was built without this list, or the thread is gone. */
static bool read_children_file(pid_t of, pid_t thread, struct pids *to)
{
        char path[64], *text, *p, *end;
        long pid;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)of, (int)thread);
        if (fd_read_file(path, FILE_MAX, &text, NULL) < 0)
                return false;
        for (p = text; (pid = strtol(p, &end, 10)) > 0; p = end)
                pids_push(to, (pid_t)pid);
        free(text);
        return true;
}

struct children {
        pid_t of;
        struct pids *to;
};

static void add_child(void *ctx, pid_t pid)
{
        const struct children *c = ctx;
        struct proc_stat p;

        if (proc_read_stat(&p, pid) && p.parent == c->of)
                pids_push(c->to, pid);
}

void proc_children(pid_t of, struct pids *to)
{
        if (!read_children_file(of, of, to))
                proc_each(add_child, &(struct children){ of, to });
}

void proc_children_of_threads(pid_t of, struct pids *to)
{
        char path[64];
        struct dirent *entry;
        DIR *threads;
        pid_t thread;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)of);
        threads = opendir(path);
        while (threads && (entry = readdir(threads)))
                if ((thread = parse_pid(entry->d_name)))
                        read_children_file(of, thread, to);
        if (threads)
                closedir(threads);
}

bool proc_any_child(void)
{
        struct pids pids = PIDS_INIT;
        siginfo_t info = { .si_pid = 0 };
        size_t held = 0;
        bool any = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;

        if (!any || info.si_pid)
                return any; /* no child, or a child ready to be reaped */
        proc_children(proc_self(), &pids);
        /* A zombie held by a tracer cannot be reaped and counts as gone. */
        while (held < pids.n && proc_is_held(pids.v[held]))
                held++;
        /* An empty list although waitid() knows children: the list has missed a child that came
         * meanwhile. */
        any = !pids.n || held < pids.n;
        pids_finish(&pids);
        return any;
}

/* --- marked processes ------------------------------------------------------------------------- */

/* Reads into a buffer that is shared by all processes of a search. */
static bool read_environ(int proc, pid_t pid, struct buf *buffer)
{
        char path[64];
        ssize_t got = 1;
        int fd;

        buf_clear(buffer);
        snprintf(path, sizeof(path), "%d/environ", (int)pid);
        fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while (got > 0 && buf_len(buffer) < FILE_MAX && buf_reserve(buffer, CHUNK)) {
                got = read(fd, buf_reserve(buffer, CHUNK), CHUNK);
                if (got > 0)
                        buf_advance(buffer, (size_t)got);
        }
        fd_close(fd);
        return true;
}

/* @tries is the number of tries left for all processes together. Inside exec() a process has new
 * memory already, while the environment is missing or being written. Zombies and kernel threads, of
 * which there are many, have no memory and no program. */
static bool has_mark(int proc, pid_t pid, const char *pair, struct buf *buffer, int *tries)
{
        size_t n = strlen(pair);
        char path[64], some;
        struct proc_stat stat;

        for (int i = 0; read_environ(proc, pid, buffer) && !buf_len(buffer); i++) {
                snprintf(path, sizeof(path), "%d/exe", (int)pid);
                if (readlinkat(proc, path, &some, 1) < 0)
                        return false;
                if (i >= EMPTY_TRIES && proc_read_stat(&stat, pid) && stat.env_end &&
                    stat.env_end == stat.env_start)
                        return false;
                if (--*tries < 0)
                        return false;
                usleep(1000);
        }
        for (const char *p = (const char *)buf_data(buffer), *end = p + buf_len(buffer);
             p && (p = memmem(p, (size_t)(end - p), pair, n)); p++)
                if ((p == (const char *)buf_data(buffer) || p[-1] == '\0') &&
                    /* The socket of a further world has "-N" behind the path of world 0. */
                    (p + n == end || p[n] == '\0' || p[n] == '-'))
                        return true;
        return false;
}

/* "0.2 0.1 0.1 1/345 6789" */
pid_t proc_newest(void)
{
        char *line = proc_line("/proc/loadavg", "/");
        uint64_t pid = 0;

        if (line)
                proc_number(line, 1, &pid);
        free(line);
        return (pid_t)pid;
}

/* A search for a mark, and a buffer for environments. */
struct mark_search {
        struct pids *to;
        struct buf buffer;
        char *pair;
        int proc;
        pid_t self;
        uid_t uid;
        int tries;
};

/* The owner of the folder in /proc tells the user without a read of a file. Children are left out:
 * the caller finds these by other means. */
static void search_process(void *ctx, pid_t pid)
{
        struct mark_search *s = ctx;
        struct proc_stat p;
        char name[16];
        struct stat st;

        snprintf(name, sizeof(name), "%d", (int)pid);
        if (pid == s->self || fstatat(s->proc, name, &st, 0) < 0 || st.st_uid != s->uid)
                return;
        if (has_mark(s->proc, pid, s->pair, &s->buffer, &s->tries) &&
            !(proc_read_stat(&p, pid) && p.parent == s->self))
                pids_push(s->to, pid);
}

void proc_marked(struct pids *to, const char *name, const char *value, pid_t since)
{
        struct mark_search s = { .to = to,
                                 .buffer = BUF_INIT,
                                 .self = getpid(),
                                 .uid = geteuid(),
                                 .tries = EXEC_TRIES };
        pid_t last = since ? proc_newest() : 0;

        s.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        s.pair = xasprintf("%s=%s", name, value);
        /* Numbers began anew, or there are too many to try: walk through all of /proc. */
        if (last < since || last - since > FEW || !since)
                proc_each(search_process, &s);
        else
                for (pid_t pid = since + 1; pid <= last; pid++)
                        search_process(&s, pid);
        fd_close(s.proc);
        buf_finish(&s.buffer);
        free(s.pair);
}
