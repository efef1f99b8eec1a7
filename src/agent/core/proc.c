/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/proc_field.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

enum {
        CHUNK = 64 << 10,
        FEW = 4096,         /* numbers that are tried one by one */
        FILE_MAX = 8 << 20, /* a process's environment has no limit of its own */
        EMPTY_TRIES = 3,    /* looks at an environment that is empty, a millisecond apart, */
        EXEC_TRIES = 1000,  /* ... and at one that is not there yet */
};

void pids_finish(struct pids *p)
{
        free(p->v);
        *p = (struct pids)PIDS_INIT;
}

static void pids_push(struct pids *p, pid_t pid)
{
        if (p->n == p->cap) {
                p->cap = MAX(p->cap * 2, (size_t)16);
                p->v = xrealloc(p->v, p->cap, sizeof(*p->v));
        }
        p->v[p->n++] = pid;
}

/* The name of a folder in /proc as a pid; 0 = another entry. */
static pid_t parse_pid(const char *name)
{
        char *end;
        long pid = strtol(name, &end, 10);

        return *name >= '1' && *name <= '9' && !*end ? (pid_t)pid : 0;
}

static char *read_proc(pid_t pid, const char *file, size_t *ret_len)
{
        char path[128], *text = NULL;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        return fd_read_file(path, FILE_MAX, &text, ret_len) < 0 ? NULL : text;
}

/* The parent is the second field behind the name, which may contain anything. 0 = gone. */
static pid_t read_parent(pid_t pid)
{
        char *text = read_proc(pid, "stat", NULL), *behind = text ? strrchr(text, ')') : NULL;
        /* ") S 1234 ..." */
        long parent = behind && strlen(behind) > 4 ? strtol(behind + 4, NULL, 10) : 0;

        free(text);
        return (pid_t)parent;
}

/* Through one buffer for all processes: this looks at every one of the machine. */
static bool read_environ(int proc, pid_t pid, struct buf *room)
{
        char path[64];
        ssize_t got = 1;
        int fd;

        buf_clear(room);
        snprintf(path, sizeof(path), "%d/environ", (int)pid);
        fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while (got > 0 && buf_len(room) < FILE_MAX && buf_reserve(room, CHUNK)) {
                got = read(fd, buf_reserve(room, CHUNK), CHUNK);
                if (got > 0)
                        buf_advance(room, (size_t)got);
        }
        fd_close(fd);
        return true;
}

/* How often to ask for an environment that was empty. Inside exec() a process has its new memory
 * already, and no environment in it yet, or one that is being written. Zombies and threads of the
 * kernel, of which there are many, have no memory and no program. */
static int get_exec_tries(int proc, pid_t pid)
{
        enum { ENVIRON_START = 47, ENVIRON_END = 48 }; /* words behind the name */
        char path[64], some, *text, *behind;
        uint64_t start = 0, end = 0;

        snprintf(path, sizeof(path), "%d/exe", (int)pid);
        if (readlinkat(proc, path, &some, 1) < 0)
                return 0;
        text = read_proc(pid, "stat", NULL);
        behind = text ? strrchr(text, ')') : NULL;
        if (behind) {
                word_number(behind + 1, ENVIRON_START, &start);
                word_number(behind + 1, ENVIRON_END, &end);
        }
        free(text);
        return end && end == start ? EMPTY_TRIES : EXEC_TRIES;
}

/* @tries: what is left of them for all processes together. */
static bool has_mark(int proc, pid_t pid, const char *pair, struct buf *room, int *tries)
{
        size_t n = strlen(pair) + 1;

        for (int i = 0; read_environ(proc, pid, room) && !buf_len(room); i++) {
                if (i >= get_exec_tries(proc, pid) || --*tries < 0)
                        return false;
                usleep(1000);
        }
        for (const char *p = (const char *)buf_data(room), *end = p + buf_len(room);
             p && (p = memmem(p, (size_t)(end - p), pair, n)); p++)
                if (p == (const char *)buf_data(room) || p[-1] == '\0')
                        return true;
        return false;
}

/* The kernel's own list; only some kernels are built without it. */
static bool read_children_file(pid_t of, struct pids *to)
{
        char file[64], *text, *p, *end;
        long pid;

        snprintf(file, sizeof(file), "task/%d/children", (int)of);
        text = read_proc(of, file, NULL);
        if (!text)
                return false;
        for (p = text; (pid = strtol(p, &end, 10)) > 0; p = end)
                pids_push(to, (pid_t)pid);
        free(text);
        return true;
}

void proc_children(pid_t of, struct pids *to)
{
        pid_t pid;
        struct dirent *entry;
        DIR *proc;

        if (read_children_file(of, to))
                return;
        proc = opendir("/proc");
        while (proc && (entry = readdir(proc))) {
                pid = parse_pid(entry->d_name);
                if (pid && read_parent(pid) == of)
                        pids_push(to, pid);
        }
        if (proc)
                closedir(proc);
}

bool proc_is_held(pid_t pid)
{
        static const char name[] = "\nTracerPid:";
        char *stat = read_proc(pid, "stat", NULL), *status = read_proc(pid, "status", NULL);
        const char *state = stat ? strrchr(stat, ')') : NULL;
        const char *tracer = status ? strstr(status, name) : NULL;
        bool held = state && strncmp(state, ") Z", 3) == 0 && tracer &&
                    strtol(tracer + sizeof(name) - 1, NULL, 10) > 0;

        free(stat);
        free(status);
        return held;
}

bool proc_is_traced(pid_t pid)
{
        char *stat = read_proc(pid, "stat", NULL);
        const char *state = stat ? strrchr(stat, ')') : NULL;
        bool traced = state && strncmp(state, ") t", 3) == 0;

        free(stat);
        return traced;
}

bool proc_any_child(void)
{
        struct pids pids = PIDS_INIT;
        siginfo_t info = { .si_pid = 0 };
        size_t held = 0;
        bool any = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;

        if (!any || info.si_pid)
                return any; /* nobody, or somebody who can be reaped */
        proc_children(getpid(), &pids);
        while (held < pids.n && proc_is_held(pids.v[held]))
                held++;
        any = !pids.n || held < pids.n;
        pids_finish(&pids);
        return any;
}

/* "0.2 0.1 0.1 1/345 6789" */
pid_t proc_newest(void)
{
        char *text, *last;
        pid_t pid = 0;

        if (fd_read_file("/proc/loadavg", CHUNK, &text, NULL) < 0)
                return 0;
        last = strrchr(text, ' ');
        if (last)
                pid = (pid_t)strtol(last, NULL, 10);
        free(text);
        return pid;
}

/* What is looked for, and the room to look. */
struct search {
        struct pids *to;
        struct buf room;
        char *pair;
        int proc;
        pid_t self;
        uid_t uid;
        int tries;
};

static void search_process(struct search *s, pid_t pid)
{
        char name[16];
        struct stat st;

        snprintf(name, sizeof(name), "%d", (int)pid);
        if (pid == s->self || fstatat(s->proc, name, &st, 0) < 0 || st.st_uid != s->uid)
                return;
        if (has_mark(s->proc, pid, s->pair, &s->room, &s->tries) && read_parent(pid) != s->self)
                pids_push(s->to, pid);
}

static void search_all(struct search *s)
{
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        pid_t pid;

        while (proc && (entry = readdir(proc)))
                if ((pid = parse_pid(entry->d_name)))
                        search_process(s, pid);
        if (proc)
                closedir(proc);
}

void proc_marked(struct pids *to, const char *name, const char *value, pid_t since)
{
        struct search s = {
                .to = to, .room = BUF_INIT, .self = getpid(), .uid = geteuid(), .tries = EXEC_TRIES
        };
        pid_t last = since ? proc_newest() : 0;

        s.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        s.pair = xasprintf("%s=%s", name, value);
        if (last < since || last - since > FEW || !since)
                search_all(&s);
        else
                for (pid_t pid = since + 1; pid <= last; pid++)
                        search_process(&s, pid);
        fd_close(s.proc);
        buf_finish(&s.room);
        free(s.pair);
}
