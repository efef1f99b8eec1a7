/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a rank is reported behind its last output (node_attempt_report_exit()). The end of the
 * attempt: node_attempt_turn(), called in every turn of the loop, looks for processes of the
 * attempt once no worker is alive, every RECHECK_MS until none is left, then reads the outputs to
 * their end, sends dumps of the flight recorder and GONE.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/attempt/node_attempt_private.h"
#include "agent/ready/ready_probes.h"
#include "agent/record/node_trace.h"
#include "base/error_number.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"

enum {
        /* torch writes a traceback and some numbers. */
        ERROR_FILE_MAX = 1 << 20,
        RECHECK_MS = 20,
};

/* --- the end of a rank ------------------------------------------------------------------------ */

/* The kernel counts an OOM kill before the victim can be waited for. */
static void note_oom_kill(const struct node_attempt *t, struct exited *m)
{
        struct oom now;

        oom_read(&now, t->contain.cgroup.path);
        /* Counts of different files cannot be compared: the group may have been removed
         * meanwhile. */
        if (now.kills <= t->oom.kills || strcmp(now.where, t->oom.where) != 0)
                return;
        memcpy(m->oom, now.where, sizeof(m->oom));
        m->oom_before = t->oom.kills;
        m->oom_after = now.kills;
}

/* Sends the error file of torch.distributed.elastic, if the rank left one. */
static void send_error_file(const struct node_attempt *t, uint32_t rank)
{
        char *path = xasprintf("%s/error-%u.json", t->deps.dir->path, rank), *text;
        size_t len;
        /* The path belongs to the rank, which could have left a FIFO or a device there. */
        int r = fd_read_regular(AT_FDCWD, path, ERROR_FILE_MAX, &text, &len);

        if (r == 0) {
                if (len)
                        rank_bytes_encode(&t->deps.up->out, MSG_REPORT, rank, text, len);
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
static enum rank_mpi mpi_left_unused(enum mpi_family loaded)
{
        return loaded == MPI_FAMILY_OPEN_MPI ? RANK_MPI_UNUSED_OPEN_MPI
               : loaded == MPI_FAMILY_MPICH  ? RANK_MPI_UNUSED_MPICH
                                             : RANK_MPI_UNUSED;
}

void node_attempt_report_exit(struct node_attempt *t, struct worker *w, int status)
{
        struct exited m = {
                .rank = w->rank,
                .pid = (uint32_t)w->pid,
                .status = (uint32_t)status,
                .mono_ns = uv_hrtime(),
                .stopped = (t->phase >= TERMINATING && !w->left) || w->told_to_end,
                .killed = t->phase == KILLING && !w->left,
        };

        ready_probes_end(node_attempt_find_world(t, w->rank)->ready, w->rank);
        /* The first source that knows of MPI counts; world_watch_end() is called in any case, to
         * forget the process. */
        m.mpi = rank_world_end_mpi(node_attempt_find_world(t, w->rank), w->rank);
        if (m.mpi == RANK_MPI_UNUSED)
                m.mpi = world_watch_end(t->worlds, w->pid);
        else
                world_watch_end(t->worlds, w->pid);
        if (m.mpi == RANK_MPI_UNUSED)
                m.mpi = mpi_left_unused(library_watch_mpi(t->libraries, w->pid));
        /* A SIGKILL not sent by the agent may come from the OOM killer. */
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !m.killed)
                note_oom_kill(t, &m);
        /* The head looks for the reason in the last lines, so these go before EXITED. */
        if (status && w->started)
                worker_each_output(w, stream_catch_up);
        send_error_file(t, w->rank);
        exited_encode(&t->deps.up->out, &m);
        node_trace_exit(t->deps.trace, w->rank, m.status);
        library_watch_end(t->libraries, w->pid);
}

/* --- the end of an attempt -------------------------------------------------------------------- */

/* Turns the loop, and so leads to node_attempt_turn(). */
static void on_recheck(uv_timer_t *timer)
{
        const struct node_attempt *t = timer->data;

        if (t->phase == KILLING)
                contain_kill(&t->contain);
}

void node_attempt_drop_workers(struct node_attempt *t)
{
        for (size_t i = 0; i < t->n_workers; i++)
                worker_destroy(t->workers[i]);
        free(t->workers);
        t->workers = NULL;
        t->n_workers = t->n_alive = t->n_starting = 0;
        uv_timer_stop(&t->timers.starting);
}

/* Notes the processes that must free their memory of GPUs before ranks start again: ranks, their
 * programs, and the processes that have got TERM. */
static void note_ended(struct node_attempt *t)
{
        size_t cap = 0;

        for (size_t i = 0; i < t->n_workers; i++) {
                const struct worker *w = t->workers[i];

                /* Place 0 is the rank itself, then the programs, then the processes told to end. */
                for (size_t k = 0; k < 1 + w->programs.n + w->told.n; k++) {
                        t->stop.ended =
                                xgrow(t->stop.ended, t->stop.n_ended, &cap, sizeof(*t->stop.ended));
                        t->stop.ended[t->stop.n_ended++] = (struct inspector_rank){
                                w->rank, !k                   ? w->pid
                                         : k <= w->programs.n ? w->programs.v[k - 1]
                                                              : w->told.v[k - 1 - w->programs.n]
                        };
                }
        }
}

void node_attempt_forget_ended(struct node_attempt *t)
{
        free(t->stop.ended);
        t->stop.ended = NULL;
        t->stop.n_ended = 0;
}

/* Removes files that ranks left beside the socket, and reports them. */
static void clear_job_dir_of_ranks(struct job_dir *d)
{
        size_t removed;
        int error;
        size_t left = job_dir_clear(d, &removed, &error);

        if (left)
                log_warning(HN_FILES_LEFT, "cannot remove all files of the job in %s: %s", d->path,
                            strerror(error));
        else if (removed)
                log_line(LOG_INFO, "removed %zu file%s of ranks in %s", removed,
                         removed == 1 ? "" : "s", d->path);
}

/* The order matters: workers use worlds, worlds and dumps use files of the folder, and the folder
 * is cleared last. GONE follows when nothing is left. */
static void finish_attempt(struct node_attempt *t)
{
        rank_stop_end(t);
        note_ended(t);
        node_attempt_drop_workers(t);
        library_watch_stop(t->libraries);
        world_watch_stop(t->worlds);
        dump_sender_close(t->dumps);
        node_attempt_drop_worlds(t);
        contain_close(&t->contain);
        clear_job_dir_of_ranks(t->deps.dir);
        t->phase = IDLE;
        warm_drop(t->warm);
        t->ops.ended(t->ops.ctx);
        /* Behind all other messages of the attempt, as the head may then begin the next one. */
        empty_encode(&t->deps.up->out, MSG_GONE);
}

/* Whether an announced order may still come. An announced order may be under way after a refusal:
 * GONE sent before its arrival would make the order the first of another attempt. */
static bool awaits_order(const struct node_attempt *t)
{
        return t->groups.more && (t->phase == RUNNING || (t->refused && !t->deps.up->lost));
}

void node_attempt_turn(struct node_attempt *t)
{
        node_attempt_start_again(t);
        if (t->phase == IDLE || t->n_alive || node_attempt_has_order(t) || awaits_order(t) ||
            uv_is_active((uv_handle_t *)&t->timers.recheck))
                return;
        inspection_stop(t->inspection);
        if (t->phase != DRAINING) {
                /* The sweep reads the environment of all processes of the user, and comes after the
                 * cheap test. */
                bool any = contain_any(&t->contain), marked = !any && contain_sweep(&t->contain);

                if (any && t->phase == RUNNING)
                        node_attempt_linger(t);
                else if (marked)
                        /* The sweep has sent KILL already: marked processes get no grace time. */
                        t->phase = KILLING;
                if (any || marked) {
                        uv_timer_start(&t->timers.recheck, on_recheck, RECHECK_MS, 0);
                        return;
                }
                t->phase = DRAINING;
                uv_timer_stop(&t->timers.grace);
                for (size_t i = 0; i < t->n_workers; i++)
                        worker_each_output(t->workers[i], stream_drain);
                dump_sender_find(t->dumps, t->deps.dir->path);
        }
        for (size_t i = 0; i < t->n_workers && !t->deps.up->lost; i++)
                /* The end of this output turns the loop again. */
                if (t->workers[i]->out[0] || t->workers[i]->out[1])
                        return;
        /* Without a head there is no receiver for dumps. */
        if (t->deps.up->lost || dump_sender_run(t->dumps, t->deps.up))
                finish_attempt(t);
        else
                uv_timer_start(&t->timers.recheck, on_recheck, RECHECK_MS, 0);
}
