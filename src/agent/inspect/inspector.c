/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processor time, and bytes read and written: two walks over /proc, a second apart; a rank is a
 * whole session.
 *
 * Stacks: RUNS_MAX ranks are looked at at once, in the sequence of the order. Each takes the tools
 * in turn until a tool prints a stack. A stopped or traced process, or a process in an
 * uninterruptible wait, is left to py-spy, which needs no ptrace stop: another tool would change
 * the state of the process or hang. The kernel's stack (/proc/PID/stack), which only root may read,
 * is the last resort.
 *
 * Core files: the same tools read the file of a rank.
 */
#include "agent/inspect/inspector.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "agent/inspect/blocked.h"
#include "agent/inspect/core_file.h"
#include "agent/inspect/flight_recorder.h"
#include "agent/inspect/node_facts.h"
#include "agent/inspect/ras_client.h"
#include "agent/inspect/stack_tool.h"
#include "agent/rank/rank_status.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/printable.h"

enum {
        RUNS_MAX = 4, /* tools at once */
        TOOL_MS = 10000,
        CPU_MS = 1000,
        CPU_LOOKS = 4, /* in that time */
        PART_NS = CPU_MS / CPU_LOOKS * 1000000,
        WANTED_PERMILLE = 500, /* of a core, got or waited for: a rank computes ... */
        BUSY_PERMILLE = 100,   /* ... and is told to use so much at least: BUSY of why */
        STACKS_MAX = 64,       /* of a node in an order */
        POLL_MS = 20,
};

static volatile sig_atomic_t terminated;

/* Only notes the signal: loops look at the flag, so that running tools are killed and reaped. */
static void note_term(int signo)
{
        terminated = signo;
}

/* Frees the answer as well. */
static void send_inspected(int to, struct inspected *m)
{
        struct buf b = BUF_INIT;

        inspected_encode(&b, m);
        fd_write_all(to, buf_data(&b), buf_len(&b));
        buf_finish(&b);
        inspected_finish(m);
}

/* Fills the facts of /proc about the working process of the rank. */
static void look_at_rank(const struct rank_status_scan *s, const struct inspector_rank *r,
                         struct inspected *m)
{
        const struct proc_stat *p =
                r->pid ? rank_status_busy(s, r->pid, m->channel, sizeof(m->channel)) : NULL;

        m->rank = r->rank;
        /* An ended rank has this value in the answer. */
        m->cpu_permille = STATUS_NEVER;
        if (!p || p->state == 'Z' || p->state == 'X')
                return;
        m->pid = (uint32_t)p->pid;
        m->state = (uint8_t)p->state;
        if (proc_read(p->pid, "comm", m->name, sizeof(m->name)))
                m->name[strcspn(m->name, "\n")] = '\0';
        printable_mask(m->name);
        if (p->state != 'R')
                blocked_find(p->pid, m->blocked, sizeof(m->blocked));
}

/* --- processor time --------------------------------------------------------------------------- */

/* Adds the use of the processes since the first scan; new processes count whole. */
static uint64_t session_ticks(const struct rank_status_scan *before,
                              const struct rank_status_scan *after, pid_t worker)
{
        size_t n, k;
        const struct proc_stat *now = rank_status_session(after, worker, &n);
        const struct proc_stat *old = rank_status_session(before, worker, &k);
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t used = now[i].cpu_ticks;

                for (size_t j = 0; j < k; j++)
                        /* A number may have been given to another process meanwhile. */
                        if (old[j].pid == now[i].pid && old[j].start_ticks == now[i].start_ticks)
                                used -= MIN(used, old[j].cpu_ticks);
                sum += used;
        }
        return sum;
}

/* Returns the bytes read and written so far by the living processes: by system calls, counted on
 * return, and from and to disks, counted meanwhile. Source: proc(5). */
static uint64_t session_bytes(const struct rank_status_scan *s, pid_t worker)
{
        static const char *const names[] = { "rchar: ", "wchar: ", "\nread_bytes: ",
                                             "\nwrite_bytes: " };
        size_t n;
        const struct proc_stat *v = rank_status_session(s, worker, &n);
        uint64_t sum = 0;
        char text[512];

        for (size_t i = 0; i < n; i++) {
                if (!proc_read(v[i].pid, "io", text, sizeof(text)))
                        continue;
                for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
                        const char *at = strstr(text, names[k]);

                        sum += at ? strtoull(at + strlen(names[k]), NULL, 10) : 0;
                }
        }
        return sum;
}

/* Of all threads of a rank. */
struct delay {
        uint64_t waited_ns; /* for a processor, as far as the waits have ended */
        uint64_t turns;     /* on a processor */
        unsigned runnable;  /* threads running or waiting for a processor */
};

/* Source: proc_pid_schedstat(5), Documentation/scheduler/sched-stats.rst. */
static void add_delay_of_thread(struct delay *d, pid_t thread)
{
        struct proc_stat p;
        char text[128], *at;

        if (!proc_read(thread, "schedstat", text, sizeof(text)))
                return;
        strtoull(text, &at, 10);
        d->waited_ns += strtoull(at, &at, 10);
        d->turns += strtoull(at, NULL, 10);
        d->runnable += proc_read_stat(&p, thread) && p.state == 'R';
}

/* Returns for how long the threads of the session have waited for a processor, and how many turns
 * they had. */
static struct delay session_delay(const struct rank_status_scan *s, pid_t worker)
{
        size_t n;
        const struct proc_stat *v = rank_status_session(s, worker, &n);
        struct delay sum = { 0 };

        for (size_t i = 0; i < n; i++) {
                char path[64];
                struct dirent *entry;
                DIR *threads;

                snprintf(path, sizeof(path), "/proc/%d/task", (int)v[i].pid);
                threads = opendir(path);
                while (threads && (entry = readdir(threads)))
                        if (atoi(entry->d_name) > 0)
                                add_delay_of_thread(&sum, (pid_t)atoi(entry->d_name));
                if (threads)
                        closedir(threads);
        }
        return sum;
}

/* The time for which a rank waited for a processor. */
struct wait_sum {
        struct delay last;
        uint64_t waited_ns;
        uint64_t open_ns; /* of these, of a wait that has not ended */
};

/* Adds the time since the last look, @part_ns ago. An unfinished wait is in no sum of the kernel: a
 * rank without a turn waited all the time. */
static void add_wait(struct wait_sum *w, const struct delay *now, uint64_t part_ns)
{
        uint64_t ended_ns = now->waited_ns - MIN(now->waited_ns, w->last.waited_ns);

        if (w->last.runnable && now->runnable && w->last.turns == now->turns) {
                w->waited_ns += part_ns;
                w->open_ns += part_ns;
        } else {
                w->waited_ns += ended_ns - MIN(ended_ns, w->open_ns);
                w->open_ns = 0;
        }
        w->last = *now;
}

/* Looks at the ranks several times in CPU_MS, so that a wait counts which begins in this time and
 * does not end. */
static void watch_waits(const struct rank_status_scan *s, const struct inspector_rank *ranks,
                        size_t n, struct wait_sum *waits)
{
        const int64_t begin = clock_ms();

        for (int look = 1; look <= CPU_LOOKS && !terminated; look++) {
                int64_t until = begin + look * CPU_MS / CPU_LOOKS;

                while (!terminated && clock_ms() < until)
                        poll(NULL, 0, (int)MAX(until - clock_ms(), INT64_C(1)));
                for (size_t i = 0; i < n && look < CPU_LOOKS; i++) {
                        struct delay now = session_delay(s, ranks[i].pid);

                        add_wait(&waits[i], &now, PART_NS);
                }
        }
}

/* Looks at all ranks together, at last CPU_MS later, and sends the differences. A rank that
 * computes, or would if a processor were free, does not wait. */
static void measure_ranks(const struct inspect_order *o, const struct inspector_rank *ranks,
                          size_t n, int to)
{
        struct rank_status_scan before, after;
        uint64_t ticks, *bytes = xcalloc(n, sizeof(*bytes));
        struct wait_sum *waits = xcalloc(n, sizeof(*waits));

        rank_status_scan(&before);
        for (size_t i = 0; i < n; i++) {
                bytes[i] = session_bytes(&before, ranks[i].pid);
                waits[i].last = session_delay(&before, ranks[i].pid);
        }
        watch_waits(&before, ranks, n, waits);
        rank_status_scan(&after);
        ticks = MAX(after.now_ticks - before.now_ticks, UINT64_C(1));
        for (size_t i = 0; i < n && !terminated; i++) {
                struct inspected m = { .number = o->number, .left = (uint32_t)(n - i - 1) };

                look_at_rank(&after, &ranks[i], &m);
                if (m.pid) {
                        uint64_t now = session_bytes(&after, ranks[i].pid);
                        struct delay delay = session_delay(&after, ranks[i].pid);

                        m.cpu_permille = (uint32_t)(session_ticks(&before, &after, ranks[i].pid) *
                                                    1000 / ticks);
                        /* On a node without a free processor. */
                        add_wait(&waits[i], &delay, PART_NS);
                        if (m.cpu_permille + waits[i].waited_ns / (CPU_MS * 1000) >=
                            WANTED_PERMILLE)
                                m.cpu_permille = MAX(m.cpu_permille, (uint32_t)BUSY_PERMILLE);
                        m.io_kib = (uint32_t)MIN((now - MIN(now, bytes[i])) >> 10,
                                                 (uint64_t)UINT32_MAX);
                }
                send_inspected(to, &m);
        }
        rank_status_scan_finish(&before);
        rank_status_scan_finish(&after);
        free(bytes);
        free(waits);
}

/* --- stacks ----------------------------------------------------------------------------------- */

/* A rank during the reading of the stack. */
struct stack_job {
        struct inspected m;
        enum stack_tool tool;
        struct stack_target of;
        struct stack_run run; /* .pid 0 = the place is free */
        bool is_python, may_stop;
        char missing[64]; /* names of tools not installed */
};

/* Reasons of several tools stand in a row, cut where the text is full. */
static void add_problem(struct inspected *m, const char *text)
{
        size_t len = strlen(m->problem);

        snprintf(m->problem + len, sizeof(m->problem) - len, "%s%s", len ? "; " : "", text);
}

static void add_missing_tool(struct stack_job *j, enum stack_tool tool)
{
        size_t len = strlen(j->missing);

        snprintf(j->missing + len, sizeof(j->missing) - len, "%s%s", len ? ", " : "",
                 stack_tool_name(tool));
}

/* Starts the next tool of this rank. False: there is none. */
static bool start_next_tool(struct stack_job *j, int64_t until)
{
        for (; j->tool < STACK_TOOLS; j->tool++) {
                CLEANUP(free_textp) char *path = NULL;
                char why[160];

                if (j->tool == STACK_TOOL_PY_SPY ? !j->is_python : !j->may_stop)
                        continue;
                path = stack_tool_find(j->tool, (pid_t)j->m.pid);
                if (!path) {
                        add_missing_tool(j, j->tool);
                        continue;
                }
                if (stack_run_start(&j->run, j->tool, path, &j->of,
                                    MIN(until, clock_ms() + TOOL_MS)))
                        return true;
                stack_run_explain(&j->run, j->tool, why, sizeof(why));
                add_problem(&j->m, why);
                buf_finish(&j->run.errors);
        }
        return false;
}

/* Tools end with 0 although no frame was read, so the text decides. */
static bool has_frames(const struct stack_job *j)
{
        size_t n = buf_len(&j->run.text);
        const char *text = (const char *)buf_data(&j->run.text);

        if (j->tool == STACK_TOOL_PY_SPY)
                return memmem(text, n, "\n    ", 5);
        return memmem(text, n, "#0 ", 3);
}

static void add_missing_problem(struct stack_job *j)
{
        char why[128];

        snprintf(why, sizeof(why), "not installed: %s", j->missing);
        if (*j->missing)
                add_problem(&j->m, why);
}

static void take_kernel_stack(struct inspected *m)
{
        char text[4096];

        if (!proc_read((pid_t)m->pid, "stack", text, sizeof(text)))
                return;
        m->stack = xstrdup(text);
        snprintf(m->source, sizeof(m->source), "kernel");
}

/* Completes the answer: without a stack by a tool, the kernel's view and the reason why. */
static void finish_stack_job(struct stack_job *j)
{
        if (*j->m.source) { /* a missing py-spy is told: frames of C say little about a rank in
                               Python */
                bool is_native = j->is_python && !strcmp(j->missing, "py-spy");

                snprintf(j->m.problem, sizeof(j->m.problem), "%s",
                         is_native ? INSPECT_NO_PYTHON : "");
                return;
        }
        if (!j->may_stop && !j->is_python)
                add_problem(&j->m, j->m.state == 'D' ? "a process in state D is not traced"
                                                     : "a stopped process is not traced");
        add_missing_problem(j);
        take_kernel_stack(&j->m);
}

/* Takes the output of an ended tool. True: the rank is done. */
static bool take_tool_output(struct stack_job *j, int64_t until)
{
        char why[160];

        if (has_frames(j)) {
                /* A NUL would end the text early, and is no part of a stack. */
                j->m.stack = buf_steal(&j->run.text);
                snprintf(j->m.source, sizeof(j->m.source), "%s", stack_tool_name(j->tool));
        } else if (stack_run_is_late(&j->run)) { /* whatever the tool has said of it */
                /* Of the rank, or another one of its session: with a name it is not taken for the
                 * rank. */
                snprintf(j->m.problem, sizeof(j->m.problem), "its process%s%s had ended",
                         *j->m.name ? " " : "", j->m.name);
                *j->missing = '\0';
                j->tool = STACK_TOOLS;
        } else {
                stack_run_explain(&j->run, j->tool, why, sizeof(why));
                add_problem(&j->m, why);
        }
        stack_run_finish(&j->run);
        buf_finish(&j->run.errors);
        j->tool++;
        return *j->m.source || !start_next_tool(j, until);
}

/* Fills in the facts about a rank, and whether tools may stop the process. */
static void begin_stack_job(struct stack_job *j, const struct inspect_order *o,
                            const struct rank_status_scan *s, const struct inspector_rank *r,
                            size_t place)
{
        memset(j, 0, sizeof(*j));
        j->m.number = o->number;
        look_at_rank(s, r, &j->m);
        if (!j->m.pid)
                return;
        j->of.pid = (pid_t)j->m.pid;
        j->is_python = stack_tool_is_python((pid_t)j->m.pid);
        j->may_stop = j->m.state == 'R' || j->m.state == 'S';
        /* The head asks for the most important ranks first, so the others are left out. */
        if (place >= STACKS_MAX) {
                add_problem(&j->m, "only 64 stacks of a node are taken");
                j->tool = STACK_TOOLS;
        }
}

/* Waits until a tool has printed something, or for a moment. */
static void wait_for_tools(const struct stack_job *jobs, int n_jobs)
{
        struct pollfd p[2 * RUNS_MAX];
        nfds_t n = 0;

        for (int i = 0; i < n_jobs; i++)
                if (jobs[i].run.pid) {
                        if (jobs[i].run.out >= 0)
                                p[n++] = (struct pollfd){ .fd = jobs[i].run.out, .events = POLLIN };
                        if (jobs[i].run.err >= 0)
                                p[n++] = (struct pollfd){ .fd = jobs[i].run.err, .events = POLLIN };
                }
        poll(n ? p : NULL, n, POLL_MS);
}

/* Takes the stacks of all ranks, RUNS_MAX at once, and sends each as soon as it is complete: the
 * head may stop waiting at any time. */
static void take_stacks(const struct inspect_order *o, const struct inspector_rank *ranks, size_t n,
                        int to)
{
        struct stack_job jobs[RUNS_MAX] = { 0 };
        int64_t until = clock_ms() + o->limit_ms;
        struct rank_status_scan scan;
        size_t next = 0, left = n;

        rank_status_scan(&scan);
        while (left && !terminated) {
                for (int i = 0; i < RUNS_MAX; i++) {
                        struct stack_job *j = &jobs[i];
                        bool done =
                                j->run.pid && stack_run_step(&j->run) && take_tool_output(j, until);

                        /* The place of a rank that is done is filled in the next turn, when the
                         * answer is sent. */
                        if (!j->run.pid && !done && next < n) {
                                begin_stack_job(j, o, &scan, &ranks[next], next);
                                next++;
                                done = !j->m.pid || !start_next_tool(j, until);
                        }
                        if (done) {
                                finish_stack_job(j);
                                j->m.left = (uint32_t)--left;
                                send_inspected(to, &j->m);
                        }
                }
                if (left)
                        wait_for_tools(jobs, RUNS_MAX);
        }
        for (int i = 0; i < RUNS_MAX; i++) {
                if (jobs[i].run.pid)
                        stack_run_finish(&jobs[i].run);
                buf_finish(&jobs[i].run.errors);
                inspected_finish(&jobs[i].m);
        }
        rank_status_scan_finish(&scan);
}

/* --- core files ------------------------------------------------------------------------------- */

/* Of a long path the end is told. */
static void name_core(struct inspected *m, const char *path)
{
        size_t len = strlen(path), most = sizeof(m->blocked) - 4;

        snprintf(m->blocked, sizeof(m->blocked), "%s%s", len > most ? "..." : "",
                 path + (len > most ? len - most : 0));
}

/* Without a time limit the file is only looked for. */
static void read_core(const struct inspect_order *o, const struct inspector_rank *r,
                      const char *cwd, int to)
{
        struct stack_job j = { .tool = STACK_TOOL_EU_STACK, .may_stop = true };
        int64_t until = clock_ms() + o->limit_ms;
        struct core_file core = { r->pid, cwd ? cwd : "", o->dumped };

        j.m = (struct inspected){ .number = o->number,
                                  .rank = r->rank,
                                  .pid = (uint32_t)r->pid,
                                  .cpu_permille = STATUS_NEVER };
        j.of = (struct stack_target){ .core = core.path, .program = core.program };
        if (core_file_find(&core, j.m.problem, sizeof(j.m.problem))) {
                bool done = !o->limit_ms || !start_next_tool(&j, until);

                name_core(&j.m, core.path);
                for (; !done && !terminated; wait_for_tools(&j, 1))
                        done = stack_run_step(&j.run) && take_tool_output(&j, until);
                if (j.run.pid)
                        stack_run_finish(&j.run);
                buf_finish(&j.run.errors);
                if (*j.m.source)
                        *j.m.problem = '\0';
                else
                        add_missing_problem(&j);
        }
        send_inspected(to, &j.m);
}

/* ---------------------------------------------------------------------------------------------- */

void inspector_run(const struct inspect_order *o, const struct inspector_rank *ranks, size_t n,
                   const struct inspector_paths *paths, int to)
{
        struct inspected none = { .number = o->number, .rank = UINT32_MAX };

        signal(SIGTERM, note_term);
        unsetenv("DEBUGINFOD_URLS"); /* tools would load files from the network first */
        if (o->what == INSPECT_RAS)
                ras_client_run(o, ranks, n, to);
        else if (o->what == INSPECT_FLIGHT)
                flight_recorder_run(o, paths, to);
        else if (o->what == INSPECT_FACTS)
                node_facts_run(o, ranks, n, paths->first_gpus, to);
        else if (!n)
                send_inspected(to, &none);
        else if (o->what == INSPECT_CORE)
                read_core(o, ranks, paths->cwd, to);
        else if (o->what == INSPECT_CPU)
                measure_ranks(o, ranks, n, to);
        else
                take_stacks(o, ranks, n, to);
}
