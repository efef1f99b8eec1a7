/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_start.c has the start. Running: SIGCHLD leads to reap_children(), the only caller of
 * waitpid(); EXITED is sent behind the rank's last output. Stopping: agent_stop() and the timer
 * @grace walk through TERMINATING and KILLING. The end: agent_advance(), called in every turn of
 * the loop, looks for processes of the attempt once no worker is alive, every RECHECK_MS until none
 * is left, then reads the outputs to their end, sends dumps of the flight recorder and GONE.
 */
#include "agent/agent_attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/agent_private.h"
#include "base/fd.h"
#include "base/log.h"

enum {
        LEFTOVER_GRACE_MS = 4500, /* at most, for leftovers, after LINGER_MS */
        ERROR_FILE_MAX = 1 << 20,
        REAP_MAX = 256, /* in one turn of the loop */
        RECHECK_MS = 20,
        HELD_MS = 200, /* a killed process is reaped long before */
};

static struct worker *find_worker(const struct agent_attempt *t, pid_t pid)
{
        for (size_t i = 0; i < t->n_workers; i++)
                if (!t->workers[i]->reaped && t->workers[i]->pid == pid)
                        return t->workers[i];
        return NULL;
}

/* --- stopping --------------------------------------------------------------------------------- */

static void on_grace_over(uv_timer_t *timer);

void agent_kill_ranks(struct agent_attempt *t)
{
        t->phase = KILLING;
        uv_timer_start(&t->grace, on_grace_over, HELD_MS, HELD_MS);
        for (size_t i = 0; i < t->n_workers; i++)
                worker_signal(t->workers[i], SIGKILL);
        contain_kill(&t->contain);
}

static void reap_children(struct agent *a);

/* Finds the ranks that leave by themselves: one closes its connections, and so fails its peers,
 * long before it can be reaped on a busy node. */
static void mark_leaving(struct agent_attempt *t)
{
        struct proc_stat p;

        for (size_t i = 0; i < t->n_workers; i++)
                if (!t->workers[i]->reaped && proc_read_stat(&p, t->workers[i]->pid))
                        t->workers[i]->left = p.is_ending;
}

void agent_stop(struct agent *a, uint32_t grace_ms)
{
        struct agent_attempt *t = &a->attempt;

        if (t->phase == IDLE || t->phase >= KILLING)
                return;
        inspection_stop(&t->inspection);
        agent_pmix_cancel(a);
        if (t->phase < TERMINATING)
                mark_leaving(t);
        if (!grace_ms) {
                agent_kill_ranks(t);
                return;
        }
        if (t->phase < TERMINATING)
                reap_children(a); /* a rank that has ended by now was not stopped by this call */
        if (t->phase < TERMINATING) {
                t->phase = TERMINATING;
                agent_stop_begin(t, grace_ms);
                uv_timer_start(&t->grace, on_grace_over, grace_ms, 0);
        } else if (uv_timer_get_due_in(&t->grace) > grace_ms) {
                agent_stop_within(t, grace_ms);
                uv_timer_start(&t->grace, on_grace_over, grace_ms, 0);
        }
}

static void report_exit(struct agent *a, struct worker *w, int status);

/* Reports killed ranks that cannot be reaped because of a tracer. */
static void drop_held_workers(struct agent *a)
{
        struct agent_attempt *t = &a->attempt;

        for (size_t i = 0; i < t->n_workers; i++) {
                if (t->workers[i]->reaped || !t->workers[i]->started ||
                    !proc_is_held(t->workers[i]->pid))
                        continue;
                log_line(LOG_WARN,
                         "rank %u (pid %d) was killed but not reaped: a tracer is attached",
                         t->workers[i]->rank, (int)t->workers[i]->pid);
                t->workers[i]->reaped = true;
                t->n_alive--;
                report_exit(a, t->workers[i], SIGKILL);
        }
}

static void on_grace_over(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        if (a->attempt.phase < TERMINATING)
                agent_stop(a, MIN(a->attempt.stop.grace_ms, (uint32_t)LEFTOVER_GRACE_MS));
        else if (a->attempt.phase == TERMINATING)
                agent_kill_ranks(&a->attempt);
        else
                drop_held_workers(a);
}

void agent_stop_unless_ordered(struct agent *a)
{
        if (a->attempt.phase == RUNNING)
                uv_timer_start(&a->attempt.grace, on_grace_over, SHORT_GRACE_MS, 0);
}

/* --- the end of an attempt -------------------------------------------------------------------- */

/* Turns the loop, and so leads to agent_advance(). */
static void on_recheck(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        if (a->attempt.phase == KILLING)
                contain_kill(&a->attempt.contain);
}

static void drop_workers(struct agent_attempt *t)
{
        for (size_t i = 0; i < t->n_workers; i++)
                worker_destroy(t->workers[i]);
        free(t->workers);
        t->workers = NULL;
        t->n_workers = t->n_alive = t->n_starting = 0;
        uv_timer_stop(&t->starting);
}

/* Removes what ranks left beside the socket, and tells of it. */
static void clear_job_dir_of_ranks(struct job_dir *d)
{
        size_t removed;
        int error;
        size_t left = job_dir_clear(d, &removed, &error);

        if (left)
                log_line(LOG_WARN,
                         "remains of the job are left in %s: cannot remove all: %s [HN%d]", d->path,
                         strerror(error), HN_FILES_LEFT);
        else if (removed)
                log_line(LOG_INFO, "removed %zu file%s of ranks in %s", removed,
                         removed == 1 ? "" : "s", d->path);
}

static void finish_attempt(struct agent *a)
{
        agent_samples_end(&a->samples);
        agent_stop_end(&a->attempt);
        drop_workers(&a->attempt);
        library_watch_stop(&a->attempt.loaded.libraries);
        world_watch_stop(&a->attempt.loaded.worlds);
        dump_sender_close(&a->attempt.dumps);
        store_access_end(a->store);
        pmi_link_destroy(a->attempt.pmi);
        a->attempt.pmi = NULL;
        agent_pmix_end(a);
        contain_close(&a->attempt.contain);
        clear_job_dir_of_ranks(&a->dir);
        a->attempt.phase = IDLE;
        agent_rearm_silence(a); /* the head pings only while ranks run */
        empty_encode(&a->up.out, MSG_GONE);
}

void agent_advance(struct agent *a)
{
        struct agent_attempt *t = &a->attempt;

        if (t->phase == IDLE || t->n_alive || t->pmix.waiting ||
            uv_is_active((uv_handle_t *)&t->recheck))
                return;
        inspection_stop(&t->inspection);
        if (t->phase != DRAINING) {
                bool any = contain_any(&t->contain), marked = !any && contain_sweep(&t->contain);

                if (any && t->phase == RUNNING) {
                        t->phase = LINGERING;
                        uv_timer_start(&t->grace, on_grace_over, LINGER_MS, 0);
                } else if (marked) {
                        t->phase = KILLING;
                }
                if (any || marked) {
                        uv_timer_start(&t->recheck, on_recheck, RECHECK_MS, 0);
                        return;
                }
                t->phase = DRAINING;
                uv_timer_stop(&t->grace);
                for (size_t i = 0; i < t->n_workers; i++)
                        worker_each_output(t->workers[i], stream_drain);
                dump_sender_find(&t->dumps, a->dir.path);
        }
        for (size_t i = 0; i < t->n_workers && !a->up.lost; i++)
                if (t->workers[i]->out[0] || t->workers[i]->out[1])
                        return;
        if (a->up.lost || dump_sender_run(&t->dumps, &a->up))
                finish_attempt(a);
        else
                uv_timer_start(&t->recheck, on_recheck, RECHECK_MS, 0);
}

/* --- the end of a rank ------------------------------------------------------------------------ */

/* The kernel counts an OOM kill before the victim can be waited for. */
static void note_oom_kill(const struct agent_attempt *t, struct exited *m)
{
        struct oom now;

        oom_read(&now, t->contain.cgroup.path);
        if (now.kills <= t->oom.kills || strcmp(now.where, t->oom.where) != 0)
                return;
        memcpy(m->oom, now.where, sizeof(m->oom));
        m->oom_before = t->oom.kills;
        m->oom_after = now.kills;
}

/* Sends the error file of torch.distributed.elastic, if the rank left one. */
static void send_error_file(struct agent *a, uint32_t rank)
{
        char *path = xasprintf("%s/error-%u.json", a->dir.path, rank), *text;
        size_t len;
        int r = fd_read_regular(AT_FDCWD, path, ERROR_FILE_MAX, &text, &len);

        if (r == 0) {
                if (len)
                        rank_bytes_encode(&a->up.out, MSG_REPORT, rank, text, len);
                free(text);
        } else if (r != -ENOENT) {
                log_line(LOG_WARN, "ignoring the error file of rank %u: %s", rank,
                         r == -EFBIG    ? "larger than 1 MiB"
                         : r == -EINVAL ? "not a regular file"
                                        : strerror(-r));
        }
        free(path);
}

/* Returns the MPI that the rank has loaded, but did not use. */
static enum rank_mpi mpi_left_unused(const struct library_watch *w)
{
        return w->mpi == MPI_FAMILY_OPEN_MPI ? RANK_MPI_UNUSED_OPEN_MPI
               : w->mpi == MPI_FAMILY_MPICH  ? RANK_MPI_UNUSED_MPICH
                                             : RANK_MPI_UNUSED;
}

/* Sends EXITED behind the rank's output, where the head looks for the reason. */
static void report_exit(struct agent *a, struct worker *w, int status)
{
        struct exited m = {
                .rank = w->rank,
                .pid = (uint32_t)w->pid,
                .status = (uint32_t)status,
                .mono_ns = uv_hrtime(),
                .stopped = a->attempt.phase >= TERMINATING && !w->left,
                .killed = a->attempt.phase == KILLING && !w->left,
        };

        if (a->attempt.pmi)
                m.mpi = pmi_link_end(a->attempt.pmi, w->rank);
        else
                m.mpi = agent_pmix_state(a, w->rank);
        if (m.mpi == RANK_MPI_UNUSED)
                m.mpi = world_watch_end(&a->attempt.loaded.worlds, w->pid);
        else
                world_watch_end(&a->attempt.loaded.worlds, w->pid);
        if (m.mpi == RANK_MPI_UNUSED && w->pid == a->attempt.loaded.libraries.pid)
                m.mpi = mpi_left_unused(&a->attempt.loaded.libraries);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !m.killed)
                note_oom_kill(&a->attempt, &m);
        if (status && w->started)
                worker_each_output(w, stream_catch_up);
        send_error_file(a, w->rank);
        exited_encode(&a->up.out, &m);
        node_trace_exit(a->trace, w->rank, m.status);
        if (w->pid == a->attempt.loaded.libraries.pid)
                library_watch_stop(&a->attempt.loaded.libraries);
}

/* --- children --------------------------------------------------------------------------------- */

static void on_reaping(uv_timer_t *timer);

/* Reaps at most REAP_MAX children: processes that fork in a loop can die as fast as the agent
 * reaps, and timers must be served. Orphans of a dead child have become children of the agent
 * before the death is reported. */
static void reap_children(struct agent *a)
{
        struct agent_attempt *t = &a->attempt;
        int status, left = REAP_MAX;
        struct worker *w;
        pid_t pid;

        while (left > 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
                left--;
                w = find_worker(t, pid);
                if (w && !w->started) {
                        agent_confirm_starts(a, 0);
                        w = find_worker(t, pid);
                }
                if (!w) {
                        inspection_reaped(&t->inspection, pid);
                        gpu_sampler_reaped(&a->samples.gpus, pid, status);
                        child_nodes_reaped(a->children, pid, status);
                        continue;
                }
                w->reaped = true;
                w->ended_ns = uv_hrtime();
                t->n_alive--;
                report_exit(a, w, status);
        }
        if (!left) /* with 0 some versions of libuv fire before the loop turns */
                uv_timer_start(&t->reaping, on_reaping, 1, 0);
        if (t->phase == KILLING)
                contain_kill(&t->contain);
}

static void on_reaping(uv_timer_t *timer)
{
        reap_children(timer->data);
}

void agent_on_sigchld(uv_signal_t *handle, int signo UNUSED)
{
        reap_children(handle->data);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static bool is_mpi_unused(void *ctx, uint32_t rank)
{
        const struct agent *a = ctx;

        return a->attempt.pmi ? pmi_link_is_unused(a->attempt.pmi, rank)
                              : agent_pmix_state(a, rank) == RANK_MPI_UNUSED;
}

void agent_attempt_init(struct agent *a)
{
        struct agent_attempt *t = &a->attempt;
        uv_timer_t *const timers[] = { &t->grace, &t->reaping, &t->recheck, &t->starting,
                                       &t->stop.step };

        *t = (struct agent_attempt){ .contain = CONTAIN_INIT, .dumps.fd = -1 };
        for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
                uv_timer_init(a->loop, timers[i]);
                timers[i]->data = a;
        }
        library_watch_init(&t->loaded.libraries, a->loop, &a->up);
        world_watch_init(&t->loaded.worlds, a->loop, is_mpi_unused, a);
        inspection_init(&t->inspection, a->loop, &a->up);
}

void agent_attempt_close(struct agent *a)
{
        struct agent_attempt *t = &a->attempt;

        drop_workers(t);
        agent_stop_end(t);
        library_watch_close(&t->loaded.libraries);
        world_watch_close(&t->loaded.worlds);
        inspection_close(&t->inspection);
        dump_sender_close(&t->dumps);
        pmi_link_destroy(t->pmi);
        t->pmi = NULL;
        agent_pmix_end(a);
        uv_close((uv_handle_t *)&t->grace, NULL);
        uv_close((uv_handle_t *)&t->stop.step, NULL);
        uv_close((uv_handle_t *)&t->reaping, NULL);
        uv_close((uv_handle_t *)&t->recheck, NULL);
        uv_close((uv_handle_t *)&t->starting, NULL);
}
