/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_run_attempts() repeats push, endpoint and run_attempt() for as long as
 * launch_restart_again() agrees. An error before the first attempt ends the launch
 * (verdict_nothing_started()); an error before a later attempt is a failure of the attempt
 * (job_unreachable()), and launch_restart_again() decides.
 */
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/job/job_endpoint.h"
#include "head/job/job_push.h"
#include "head/launch/launch_order.h"
#include "head/launch/launch_preflight.h"
#include "head/launch/launch_private.h"
#include "head/launch/launch_restart.h"
#include "head/launch/launch_spares.h"
#include "head/output/progress.h"
#include "head/output/say.h"
#include "head/report/report.h"

/* Brings files to the nodes, then opens the store's endpoint, reached by all nodes
 * (head/job/job_endpoint.h). *ret_pushed = the files are pushed, and the endpoint was begun. */
static enum job_step prepare_attempt(struct launch *l, struct error *err, bool *ret_pushed)
{
        enum job_step r = launch_bring_files(l, &l->plan, err);

        *ret_pushed = r == JOB_DONE;
        if (r == JOB_DONE)
                r = job_open_endpoint(l->run->job, &l->plan, err);
        if (r == JOB_DONE)
                launch_roles_fill(l);
        return r;
}

/* Reports which nodes are the reason for JOB_NODES_UNFIT of prepare_attempt(). */
static void report_unprepared(struct launch *l, bool pushed)
{
        if (!pushed)
                report_push(&l->diags, l->run->job, &l->hosts, false);
        else
                report_endpoint(&l->diags, l->run->job, &l->hosts, l->o);
}

/* Prepares the first attempt. Returns 0, or the exit code. */
static int prepare_first(struct launch *l)
{
        struct error err = { 0 };
        bool pushed;
        int rc = launch_preflight(l);
        enum job_step r;

        if (rc)
                return rc;
        r = prepare_attempt(l, &err, &pushed);
        /* A host that takes a place has to be fit, too, before files are pushed to it. */
        while (r != JOB_DONE && launch_spares_prepare(l, &r, pushed)) {
                rc = launch_plan_again(l);
                if (!rc)
                        rc = launch_preflight(l);
                if (rc)
                        return rc;
                r = prepare_attempt(l, &err, &pushed);
        }
        if (r == JOB_DONE)
                return 0;
        if (r == JOB_NODES_UNFIT) {
                report_unprepared(l, pushed);
                launch_spares_note(l);
                return verdict_nothing_started(l, EX_UNAVAILABLE);
        }
        if (!pushed || r != JOB_IMPOSSIBLE)
                return launch_refuse_files(l, r, &err);
        return verdict_nothing_because(l, HN_NO_MASTER_ADDRESS, EX_UNAVAILABLE, &err);
}

/* Prepares another attempt; false: a failure, which is the cause of the attempt now. */
static bool prepare_again(struct launch *l)
{
        struct error err = { 0 };
        bool pushed;
        enum job_step r;

        launch_preflight_joined(l);
        r = prepare_attempt(l, &err, &pushed);
        if (r == JOB_NODES_UNFIT)
                report_unprepared(l, pushed);
        if (r != JOB_DONE && r != JOB_INTERRUPTED)
                job_unreachable(l->run->job, *err.text ? err.text
                                             : pushed  ? "cannot open the store's endpoint"
                                                       : "cannot push files to it");
        return r == JOB_DONE;
}

/* Starts the ranks and waits until all have ended and their output is written. */
static void run_attempt(struct launch *l)
{
        struct job_launch order = {
                .plan = &l->plan,
                .env = &l->env,
                .unset = &l->unset,
                .cwd = l->cwd,
                .cwd_given = l->o->chdir != NULL,
                .mpi = l->o->mpi == MPI_NONE ? "" : l->mpi,
                .programs = l->programs,
                .n_programs = l->n_programs,
                .output = { .dir = run_dir_path(l->run->dir),
                            .dir_fd = run_dir_fd(l->run->dir),
                            .label = launch_setup_choose_label(l),
                            .shown = l->streams.shown,
                            .raw = l->o->raw,
                            .timestamps = l->o->timestamps,
                            .fold = launch_setup_folds(l),
                            .erase = launch_setup_understands_escapes(),
                            .live = progress_draws_live(l->run->progress),
                            .bare = launch_pty_rank(l),
                            .color = l->run->color,
                            .color_anywhere = l->o->color == YES,
                            .record = records_put_output,
                            .record_ctx = l },
                .on_stderr = l->o->json && !l->o->json_file,
                .stdin_fd = l->streams.stdin_fd,
                .stdin_rank = l->streams.pty ? launch_pty_rank(l) : launch_setup_stdin_rank(l->o),
                .terminal = launch_pty_describe(l),
        };

        progress_run(l->run->progress, job_loop(l->run->job), l->run->ranks, &l->hosts);
        job_launch(l->run->job, &order);
        records_open(l);
        job_wait(l->run->job);
}

int launch_run_attempts(struct launch *l)
{
        int rc = prepare_first(l);

        if (rc)
                return rc;
        /* From here on an error is a failure of an attempt, and the launch ends with
         * verdict_tell(). */
        l->end.started = true;
        events_emit(&l->events, (struct event){ .kind = EVENT_RUN_START,
                                                .node = -1,
                                                .rank = -1,
                                                .value = l->plan.world_size,
                                                .count = l->plan.num_nodes });
        launch_setup_describe_terminal(l);
        launch_restart_begin(l);
        run_attempt(l);
        while (launch_spares_refused(l) || launch_restart_again(l)) {
                /* A warning: the job goes on although a segment is divided. */
                launch_order_check(l, true);
                if (prepare_again(l))
                        run_attempt(l);
        }
        /* No rank is left to read keys: with the terminal restored, Ctrl-C is a signal again. */
        launch_pty_close(l);
        /* Core files, traces and pulled files come from the agents: all before job_leave(). */
        job_read_core(l->run->job);
        watchers_ending(l->run->watchers);
        if (l->config->pull) {
                if (!l->o->quiet)
                        say("hnlaunch: bringing files home (--pull); Ctrl-C leaves them on the "
                            "nodes\n");
                job_pull(l->run->job);
        }
        job_leave(l->run->job);
        return verdict_tell(l);
}
