/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scan reads all processes once and sorts them by session; a rank is then a range of the list,
 * because a worker leads a session. Sums over the range give the processor time. The process to
 * describe is found from the worker on, from parent to newest child, as long as the parent only
 * waits for a child. At the end of the file: the search for another store, by MASTER_PORT in
 * environments.
 */
#include "agent/rank/rank_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "wire/env_names.h"

static void add_process(void *ctx, pid_t pid)
{
        struct rank_status_scan *s = ctx;
        struct proc_stat p;

        if (!proc_read_stat(&p, pid))
                return;
        s->v = xgrow(s->v, s->n, &s->cap, sizeof(*s->v));
        s->v[s->n++] = p;
}

static int compare_sessions(const void *a, const void *b)
{
        const struct proc_stat *x = a, *y = b;

        if (x->session != y->session)
                return x->session < y->session ? -1 : 1;
        return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void rank_status_scan(struct rank_status_scan *s)
{
        struct timespec now;

        *s = (struct rank_status_scan){ .hz = MAX(sysconf(_SC_CLK_TCK), 1L) };
        proc_each(add_process, s);
        /* Read behind the walk, so no process starts in the future. */
        clock_gettime(CLOCK_BOOTTIME, &now);
        /* In the unit of /proc/PID/stat, which counts from the boot, suspended time included. */
        s->now_ticks = (uint64_t)now.tv_sec * (uint64_t)s->hz +
                       (uint64_t)now.tv_nsec * (uint64_t)s->hz / 1000000000;
        if (s->n)
                qsort(s->v, s->n, sizeof(*s->v), compare_sessions);
}

void rank_status_scan_finish(struct rank_status_scan *s)
{
        free(s->v);
        s->v = NULL;
        s->n = s->cap = 0;
}

const struct proc_stat *rank_status_session(const struct rank_status_scan *s, pid_t worker,
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

/* Kernels without the file, and processes that may not be inspected, have no channel. */
static void read_channel(pid_t pid, char *to, size_t size)
{
        if (!proc_read(pid, "wchan", to, size) || !strcmp(to, "0"))
                *to = '\0';
}

/* Finds the process below a waiting worker, from each process to the newest running child. A
 * waiting shell sleeps in do_wait; where the channel is unknown, a child is reason enough. Every
 * step leads to a younger process, so the loop ends. */
static const struct proc_stat *find_busy_process(const struct proc_stat *v, size_t n, pid_t worker,
                                                 char *channel, size_t size)
{
        const struct proc_stat *p = NULL, *child;

        for (size_t i = 0; i < n && !p; i++)
                if (v[i].pid == worker)
                        p = &v[i];
        if (!p)
                return NULL;
        read_channel(p->pid, channel, size);
        /* A process that runs, or waits for a disk, is busy itself. */
        for (size_t depth = 0; depth < n && p->state == 'S'; depth++) {
                child = NULL;
                for (size_t i = 0; i < n; i++)
                        if (v[i].parent == p->pid && v[i].state != 'Z' && v[i].pid != p->pid &&
                            (!child || v[i].start_ticks >= child->start_ticks))
                                child = &v[i];
                if (!child || (*channel && strcmp(channel, "do_wait")))
                        break;
                p = child;
                read_channel(p->pid, channel, size);
        }
        return p;
}

const struct proc_stat *rank_status_busy(const struct rank_status_scan *s, pid_t worker,
                                         char *channel, size_t size)
{
        size_t n;
        const struct proc_stat *v = rank_status_session(s, worker, &n);

        return v ? find_busy_process(v, n, worker, channel, size) : NULL;
}

static uint32_t clamp_status(uint64_t v)
{
        return (uint32_t)MIN(v, (uint64_t)STATUS_NEVER - 1);
}

void rank_status_look(const struct rank_status_scan *s, pid_t worker, struct node_status_rank *to)
{
        uint64_t start = s->now_ticks, cpu = 0, age;
        size_t n;
        const struct proc_stat *v = rank_status_session(s, worker, &n);
        const struct proc_stat *p = rank_status_busy(s, worker, to->channel, sizeof(to->channel));

        to->pid = (uint32_t)worker;
        to->state = p ? (uint8_t)p->state : 0;
        if (!p)
                return;
        for (size_t i = 0; i < n; i++) {
                cpu += v[i].cpu_ticks;
                if (v[i].pid == worker)
                        /* The clock was read after the walk, but in other units: no age below 0. */
                        start = MIN(v[i].start_ticks, s->now_ticks);
        }
        age = s->now_ticks - start;
        to->started_ms = clamp_status(age * 1000 / (uint64_t)s->hz);
        to->cpu_percent = clamp_status(cpu * 100 / MAX(age, (uint64_t)1));
}

enum { ENVIRON_MAX = 4 << 20 };

/* Returns the number that the variable has in @env, the text of an environ file; 0 = none. */
static uint32_t find_env_number(const char *env, size_t len, const char *name)
{
        size_t n = strlen(name);

        for (const char *pair = env; pair < env + len; pair += strlen(pair) + 1)
                if (!strncmp(pair, name, n) && pair[n] == '=')
                        return (uint32_t)strtoul(pair + n + 1, NULL, 10);
        return 0;
}

/* Whether the process was started with another MASTER_PORT than the job's; fills in @to. */
static bool reads_other_port(struct node_status_other *to, pid_t pid, uint32_t port)
{
        CLEANUP(free_textp) char *path = xasprintf("/proc/%d/environ", (int)pid);
        CLEANUP(free_textp) char *env = NULL;
        struct node_status_other found = { .pid = (uint32_t)pid };
        size_t len = 0;

        if (fd_read_file(path, ENVIRON_MAX, &env, &len) < 0)
                return false;
        found.port = find_env_number(env, len, "MASTER_PORT");
        found.rank = find_env_number(env, len, HN_RANK);
        if (!found.port || found.port == port || found.port > UINT16_MAX)
                return false;
        if (proc_read(pid, "comm", found.name, sizeof(found.name)))
                found.name[strcspn(found.name, "\n")] = '\0';
        *to = found;
        return true;
}

void other_store_find(struct node_status_other *to, const char *mark, uint32_t port)
{
        struct pids pids = PIDS_INIT;

        proc_marked(&pids, HN_STORE, mark, 0);
        for (size_t i = 0; i < pids.n; i++)
                if (reads_other_port(to, pids.v[i], port))
                        break;
        pids_finish(&pids);
}
