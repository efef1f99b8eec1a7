/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal goes to the program of each rank first (rank_signal.h), and to the whole process group
 * if no process catches the signal. When ranks are stopped, a step every STEP_MS, less often on a
 * machine where a step takes long, sends TERM to the others:
 *
 *   processes below the program           when the program has ended, or at half of the grace time
 *   others of the rank, such as a shell   when the program has ended
 *   orphans in the session of a rank      LINGER_MS after the end of the rank
 *   orphans in sessions of their own      when all of these are gone, and SERVICE_MS have passed
 *
 * The last are services that clean up when their clients are gone. torch_shm_manager, for example,
 * waits for new clients for 2 s. A service at work gets no signal. Each process gets TERM once. The
 * end of the grace time is not awaited here: node_attempt.c kills all remaining processes.
 */
#include <signal.h>
#include <unistd.h>

#include "agent/attempt/node_attempt_private.h"
#include "agent/rank/rank_signal.h"

enum {
        STEP_MS = 100,
        SERVICE_MS = 3000,
        STEP_SHARE = 20, /* a step takes at most this part of the time */
};

static uint64_t ms_since(uint64_t ns, uint64_t now)
{
        return (now - ns) / 1000000;
}

/* Each process gets TERM once: many programs end at once on a second TERM. */
static void tell_process(struct pids *told, pid_t pid)
{
        if (pids_have(told, pid))
                return;
        pids_push(told, pid);
        kill(pid, SIGTERM);
        kill(pid, SIGCONT); /* a stopped process acts on TERM only then */
}

/* Sends @signo to the program of a rank. With @ret_programs the program is to end, so a stopped
 * program is continued. False: no process catches the signal. */
static bool signal_program(const struct worker *w, const struct rank_status_scan *scan, int signo,
                           struct pids *ret_programs)
{
        struct rank_signal r;
        bool any;

        rank_signal_find(scan, w->pid, signo, &r);
        any = r.targets.n;
        for (size_t i = 0; i < r.targets.n; i++) {
                kill(r.targets.v[i], signo);
                if (!ret_programs)
                        continue;
                pids_push(ret_programs, r.targets.v[i]);
                kill(r.targets.v[i], SIGCONT);
        }
        rank_signal_finish(&r);
        return any;
}

/* A worker without a program yet has no handler, and no process below. */
static bool is_running(const struct worker *w)
{
        return w->started && !w->reaped;
}

void node_attempt_signal_ranks(struct node_attempt *t, const struct ranks_signal *m)
{
        struct rank_status_scan scan = { 0 };
        int signo = (int)m->signo;
        const bool for_all = rank_signal_is_for_all(signo);

        if (!for_all)
                rank_status_scan(&scan);
        for (size_t i = 0; i < t->n_workers; i++) {
                struct worker *w = t->workers[i];

                /* The difference is compared, because first + n may exceed 32 bits: UINT32_MAX
                 * means all. */
                if (w->rank < m->first || w->rank - m->first >= m->n)
                        continue;
                if (m->ends && !w->reaped)
                        w->told_to_end = true;
                if (for_all || !is_running(w) ||
                    !signal_program(w, &scan, signo, m->ends ? &w->programs : NULL))
                        worker_signal(w, signo);
                if (m->ends)
                        worker_signal(w, SIGCONT); /* a stopped process acts on TERM only then */
        }
        rank_status_scan_finish(&scan);
}

void node_attempt_signal(struct node_attempt *t, int signo)
{
        node_attempt_signal_ranks(
                t, &(struct ranks_signal){ .signo = (uint32_t)signo, .n = UINT32_MAX });
}

/* --- stopping --------------------------------------------------------------------------------- */

static bool is_alive(const struct rank_status_scan *s, pid_t pid)
{
        for (size_t i = 0; i < s->n; i++)
                if (s->v[i].pid == pid)
                        return s->v[i].state != 'Z' && s->v[i].state != 'X';
        return false;
}

/* Zombies do not count: a stopped or busy parent may leave zombies for long. */
static bool any_alive(const struct rank_status_scan *s, const struct pids *pids)
{
        for (size_t i = 0; i < pids->n; i++)
                if (is_alive(s, pids->v[i]))
                        return true;
        return false;
}

/* Sends TERM to processes of a rank, unless a process has got the signal as the rank's program. */
static void tell_each(struct worker *w, const struct pids *pids)
{
        for (size_t i = 0; i < pids->n; i++)
                if (!pids_have(&w->programs, pids->v[i]))
                        tell_process(&w->told, pids->v[i]);
}

/* Sends TERM to the processes below the program of a rank, and with @all to all others of the
 * rank. */
static void tell_others(struct worker *w, const struct rank_status_scan *scan, bool all)
{
        struct rank_signal r;

        rank_signal_find(scan, w->pid, SIGTERM, &r);
        tell_each(w, &r.helpers);
        if (all) {
                tell_each(w, &r.targets);
                tell_each(w, &r.others);
        }
        rank_signal_finish(&r);
}

/* Each worker leads a session; after setsid() a process belongs to no worker. */
static struct worker *worker_of_session(const struct node_attempt *t, pid_t session)
{
        for (size_t i = 0; i < t->n_workers; i++)
                if (t->workers[i]->pid == session)
                        return t->workers[i];
        return NULL;
}

/* Whether @p has lost its parent: the agent, or the keeper of the namespace, has taken it over. */
static bool is_orphan(const struct node_attempt *t, const struct proc_stat *p,
                      const struct worker *w)
{
        const pid_t keeper = t->contain.pidns.keeper;

        if (p->state == 'Z' || p->state == 'X' || (w && w->pid == p->pid))
                return false;
        return (keeper && p->parent == keeper) ||
               (p->parent == getpid() && contain_has_child(&t->contain, p->pid));
}

/* Sends TERM to orphans, and returns whether any exists. @services: orphans in sessions of their
 * own, unless they are at work. */
static bool tell_orphans(struct node_attempt *t, const struct rank_status_scan *scan, uint64_t now,
                         bool services)
{
        bool any = false;

        for (size_t i = 0; i < scan->n; i++) {
                const struct proc_stat *p = &scan->v[i];
                struct worker *w = worker_of_session(t, p->session);

                if (!is_orphan(t, p, w) || services != !w || (w && !w->reaped))
                        continue;
                any = true;
                if (w && ms_since(w->ended_ns, now) >= LINGER_MS)
                        tell_each(w, &(struct pids){ .v = &scan->v[i].pid, .n = 1 });
                else if (!w && p->state != 'R' && p->state != 'D')
                        tell_process(&t->stop.told, p->pid);
        }
        return any;
}

/* Sends TERM to the other processes of a living rank. */
static void advance_rank(struct worker *w, const struct rank_status_scan *scan, bool half_over)
{
        if (w->all_told)
                return;
        if (!any_alive(scan, &w->programs)) {
                tell_others(w, scan, true);
                w->all_told = true;
        } else if (half_over && !w->helpers_told) {
                tell_others(w, scan, false);
                w->helpers_told = true;
        }
}

static void advance_ranks(struct node_attempt *t, const struct rank_status_scan *scan, uint64_t now)
{
        for (size_t i = 0; i < t->n_workers; i++) {
                struct worker *w = t->workers[i];

                if (is_running(w))
                        advance_rank(w, scan, now >= t->stop.half_ns);
                t->stop.quiet_ns = w->reaped ? MAX(t->stop.quiet_ns, w->ended_ns) : now;
        }
}

static void on_step(uv_timer_t *timer);

/* Takes the steps that are due, and starts the timer for the next. */
static void advance_stop(struct node_attempt *t, const struct rank_status_scan *scan,
                         uint64_t began)
{
        uint64_t now = uv_hrtime(), step_ms;

        advance_ranks(t, scan, now);
        if (tell_orphans(t, scan, now, false))
                t->stop.quiet_ns = now;
        if (ms_since(t->stop.quiet_ns, now) >= SERVICE_MS)
                tell_orphans(t, scan, now, true);
        step_ms = MAX((uint64_t)STEP_MS, ms_since(began, uv_hrtime()) * STEP_SHARE);
        uv_timer_start(&t->stop.step, on_step, step_ms, 0);
}

static void on_step(uv_timer_t *timer)
{
        struct node_attempt *t = timer->data;
        uint64_t began = uv_hrtime();
        struct rank_status_scan scan;

        if (t->phase != TERMINATING)
                return;
        rank_status_scan(&scan);
        advance_stop(t, &scan, began);
        rank_status_scan_finish(&scan);
}

void rank_stop_begin(struct node_attempt *t, uint32_t grace_ms)
{
        uint64_t began = uv_hrtime();
        struct rank_status_scan scan;

        t->stop.half_ns = UINT64_MAX;
        t->stop.quiet_ns = 0;
        t->stop.step.data = t;
        rank_stop_within(t, grace_ms);
        rank_status_scan(&scan);
        for (size_t i = 0; i < t->n_workers; i++) {
                struct worker *w = t->workers[i];

                if (!is_running(w) || !signal_program(w, &scan, SIGTERM, &w->programs)) {
                        worker_signal(w, SIGTERM);
                        /* The signal went to the whole process group, so no process is left to be
                         * told. */
                        w->all_told = true;
                }
                worker_signal(w, SIGCONT); /* a stopped process acts on TERM only then */
        }
        advance_stop(t, &scan, began);
        rank_status_scan_finish(&scan);
}

void rank_stop_within(struct node_attempt *t, uint32_t grace_ms)
{
        t->stop.half_ns = MIN(t->stop.half_ns, uv_hrtime() + (uint64_t)grace_ms * 1000000 / 2);
}

void rank_stop_end(struct node_attempt *t)
{
        uv_timer_stop(&t->stop.step);
        pids_finish(&t->stop.told);
}
