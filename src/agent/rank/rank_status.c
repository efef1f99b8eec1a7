/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank/rank_status.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/core/proc_field.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

enum { STAT_MAX = 1024 };

/* One read into a fixed buffer: there may be many processes. False: it is gone, or not ours. */
static bool read_file(pid_t pid, const char *file, char *to, size_t size)
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

/* The name in parentheses may contain anything, also parentheses. */
bool rank_status_parse(struct rank_status_proc *p, const char *line)
{
        const char *behind = strrchr(line, ')'), *state;
        uint64_t pid, parent, session, user, system;

        if (!behind || !word_number(line, 0, &pid) || !(state = word_at(behind + 1, 0)) ||
            !word_number(behind + 1, 1, &parent) || !word_number(behind + 1, 3, &session) ||
            !word_number(behind + 1, 11, &user) || !word_number(behind + 1, 12, &system) ||
            !word_number(behind + 1, 19, &p->start_ticks))
                return false;
        p->state = *state;
        p->pid = (int)pid;
        p->parent = (int)parent;
        p->session = (int)session;
        p->cpu_ticks = user + system;
        return true;
}

static void add(struct rank_status_scan *s, const struct rank_status_proc *p)
{
        if (s->n == s->cap) {
                s->cap = MAX(s->cap * 2, (size_t)64);
                s->v = xrealloc(s->v, s->cap, sizeof(*s->v));
        }
        s->v[s->n++] = *p;
}

static int by_session(const void *a, const void *b)
{
        const struct rank_status_proc *x = a, *y = b;

        if (x->session != y->session)
                return x->session < y->session ? -1 : 1;
        return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void rank_status_scan(struct rank_status_scan *s)
{
        char line[STAT_MAX];
        struct rank_status_proc p;
        struct timespec now;
        struct dirent *e;
        DIR *dir = opendir("/proc");

        *s = (struct rank_status_scan){ .hz = MAX(sysconf(_SC_CLK_TCK), 1L) };
        while (dir && (e = readdir(dir)))
                if (*e->d_name >= '1' && *e->d_name <= '9' &&
                    read_file((pid_t)atoi(e->d_name), "stat", line, sizeof(line)) &&
                    rank_status_parse(&p, line))
                        add(s, &p);
        if (dir)
                closedir(dir);
        /* Behind the walk, so that nobody is younger than nothing. */
        clock_gettime(CLOCK_BOOTTIME, &now);
        s->now_ticks = (uint64_t)now.tv_sec * (uint64_t)s->hz +
                       (uint64_t)now.tv_nsec * (uint64_t)s->hz / 1000000000;
        if (s->n)
                qsort(s->v, s->n, sizeof(*s->v), by_session);
}

void rank_status_scan_finish(struct rank_status_scan *s)
{
        free(s->v);
        s->v = NULL;
        s->n = s->cap = 0;
}

const struct rank_status_proc *rank_status_session(const struct rank_status_scan *s, pid_t worker,
                                                   size_t *ret_n)
{
        size_t low = 0, high = s->n, end;

        while (low < high) {
                size_t mid = (low + high) / 2;

                if (s->v[mid].session < worker)
                        low = mid + 1;
                else
                        high = mid;
        }
        for (end = low; end < s->n && s->v[end].session == worker; end++)
                ;
        *ret_n = end - low;
        return end > low ? &s->v[low] : NULL;
}

/* Kernels without the file, and processes that may not be looked into, have no channel. */
static void read_channel(pid_t pid, char *to, size_t size)
{
        if (!read_file(pid, "wchan", to, size) || !strcmp(to, "0"))
                *to = '\0';
}

/* The newest child of @parent that still runs, NULL = it has none. */
static const struct rank_status_proc *find_newest_child(const struct rank_status_proc *v, size_t n,
                                                        pid_t parent)
{
        const struct rank_status_proc *found = NULL;

        for (size_t i = 0; i < n; i++)
                if (v[i].parent == parent && v[i].state != 'Z' && v[i].pid != parent &&
                    (!found || v[i].start_ticks >= found->start_ticks))
                        found = &v[i];
        return found;
}

/* A shell that waits for its program sleeps in do_wait. Where that is not told, a child is reason
 * enough. Every step goes to a younger process, so this ends. */
static const struct rank_status_proc *find_busy_process(const struct rank_status_proc *v, size_t n,
                                                        pid_t worker, char *channel, size_t size)
{
        const struct rank_status_proc *p = NULL, *child;

        for (size_t i = 0; i < n && !p; i++)
                if (v[i].pid == worker)
                        p = &v[i];
        if (!p)
                return NULL;
        read_channel(p->pid, channel, size);
        for (size_t depth = 0; depth < n && p->state == 'S'; depth++) {
                child = find_newest_child(v, n, p->pid);
                if (!child || (*channel && strcmp(channel, "do_wait")))
                        break;
                p = child;
                read_channel(p->pid, channel, size);
        }
        return p;
}

static uint32_t clamp_status(uint64_t v)
{
        return (uint32_t)MIN(v, (uint64_t)STATUS_NEVER - 1);
}

void rank_status_look(const struct rank_status_scan *s, pid_t worker, struct node_status_rank *to)
{
        uint64_t start = s->now_ticks, cpu = 0, age;
        size_t n;
        const struct rank_status_proc *v = rank_status_session(s, worker, &n), *p;

        to->pid = (uint32_t)worker;
        p = v ? find_busy_process(v, n, worker, to->channel, sizeof(to->channel)) : NULL;
        to->state = p ? (uint8_t)p->state : 0;
        if (!p)
                return;
        for (size_t i = 0; i < n; i++) {
                cpu += v[i].cpu_ticks;
                if (v[i].pid == worker)
                        start = MIN(v[i].start_ticks, s->now_ticks);
        }
        age = s->now_ticks - start;
        to->started_ms = clamp_status(age * 1000 / (uint64_t)s->hz);
        to->cpu_percent = clamp_status(cpu * 100 / MAX(age, (uint64_t)1));
}
