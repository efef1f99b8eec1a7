/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_steps() gives the order of steps: open the records, load the hosts, set up the output,
 * then launch_plan_print(), launch_check(), launch_stage() or run_job(). run_job() checks
 * everything on this machine (the environment, standard input, files to push) before
 * launch_connect() opens a link, plans only when every agent has sent an inventory, and hands over
 * to launch_run_attempts().
 */
#include "head/launch/launch.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/strv.h"
#include "head/dial_in/dial_in.h"
#include "head/hold/transport_hold.h"
#include "head/launch/launch_preflight.h"
#include "head/launch/launch_private.h"
#include "head/launch/launch_restart.h"
#include "head/model/role_book.h"
#include "head/options/export_env.h"
#include "head/output/progress.h"
#include "head/output/say.h"
#include "head/pull/pull.h"
#include "head/report/report.h"
#include "head/watch/requests.h"
#include "wire/env/compat_env.h"
#include "wire/env_names.h"

/* --- running ---------------------------------------------------------------------------------- */

/* Writes run.json, anew for each plan: the last one counts. Returns 0, or the exit code. */
static int write_run(struct launch *l)
{
        struct error err;

        if (run_dir_write_run(l->run->dir, l->o, &l->hosts, &l->plan, l->cwd, l->events.start_ns,
                              &err) < 0)
                return verdict_nothing_because(l, HN_NO_LOG_FOLDER, EX_CANTCREAT, &err);
        return 0;
}

int launch_plan_again(struct launch *l)
{
        int rc;

        /* Ranks shown are chosen by the size of the world. The wrapper of --ranks stays, and needs
         * a check of its numbers only. */
        plan_finish(&l->plan);
        free(l->streams.shown);
        l->streams.shown = NULL;
        rc = launch_plan_make(l);
        if (!rc)
                rc = launch_setup_choose_shown(l);
        if (!rc)
                rc = launch_setup_check_ranks(l);
        if (!rc)
                rc = launch_pty_check_rank(l);
        return rc ? rc : write_run(l);
}

static int run_job(struct launch *l)
{
        struct error err;
        int rc;

        if (export_env_collect(l->o, environ, &l->env, &l->unset, &l->diags) < 0)
                return verdict_nothing_started(l, EX_NOINPUT);
        rc = launch_pty_open(l);
        if (rc)
                return rc;
        if (launch_setup_choose_stdin(l, &err) < 0)
                return verdict_nothing_because(l, HN_STDIN_UNREADABLE, EX_NOINPUT, &err);
        rc = launch_pack_files(l);
        if (!rc && l->o->pull.n) {
                l->config->pull =
                        pull_create(&l->o->pull, l->here, l->config->run_id, l->hosts.n, &l->diags);
                rc = l->config->pull ? 0 : verdict_nothing_started(l, EX_USAGE);
        }
        if (!rc)
                /* After the files are listed: a program among them gets its place there. */
                launch_programs_prepare(l);
        if (!rc)
                rc = launch_roles_check_ready(l);
        if (!rc)
                rc = launch_connect(l);
        if (!rc)
                rc = launch_plan_make(l);
        if (!rc)
                rc = launch_setup_choose_shown(l);
        if (!rc)
                rc = launch_setup_choose_ranks(l);
        if (!rc)
                rc = launch_pty_choose_rank(l);
        if (rc)
                return rc;
        rc = write_run(l);
        if (!rc)
                rc = records_prove(l);
        if (rc)
                return rc;
        report_locked_memory(&l->diags, l->run->job, &l->hosts);
        verdict_say(l);
        return launch_run_attempts(l);
}

/* --- from the first line to the last ---------------------------------------------------------- */

static void setup_output(struct launch *l)
{
        static const enum log_level levels[] = { LOG_WARN, LOG_INFO, LOG_DEBUG };
        struct progress_options po = { .quiet = l->o->quiet || l->o->progress == PROGRESS_NONE ||
                                                (l->o->command != COMMAND_RUN &&
                                                 l->o->command != COMMAND_STAGE) };

        /* The terminal belongs to the program of the rank. */
        po.quiet |= l->o->pty_rank != PTY_NONE && l->o->command == COMMAND_RUN;
        po.quiet |= l->o->staged.list || l->o->staged.remove;

        log_set_sink(say_log, &l->run->color);
        log_set_level(l->o->quiet ? LOG_ERROR : levels[MIN(MAX(l->o->verbose, 0), 2)]);
        l->run->color = say_has_color(l->o);
        po.tty = l->o->progress == PROGRESS_TTY ||
                 (l->o->progress == PROGRESS_AUTO && isatty(STDERR_FILENO) &&
                  launch_setup_understands_escapes());
        po.color = l->run->color;
        po.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
        po.n_hosts = l->hosts.n;
        po.remote = launch_any_remote(l);
        po.run_id = l->config->run_id;
        po.plan = &l->plan;
        po.source = l->hosts.source      ? l->hosts.source
                    : l->o->local        ? "this machine"
                    : l->config->dial_in ? l->config->dial_in->place.source
                    : l->o->hostfiles.n  ? l->o->hostfiles.v[0]
                                         : "host list";
        l->run->progress = progress_create(&l->events, &po);
}

/* Takes over options and messages. finish_launch() frees them, and what is allocated here. */
static void init_launch(struct launch *l, struct options *o, struct diags *d)
{
        *l = (struct launch){ .o = o, .diags = *d, .streams.stdin_fd = -1 };
        l->manifests = xcalloc(PUSH_USES, sizeof(*l->manifests));
        for (int i = 0; i < PUSH_USES; i++)
                l->manifests[i] = (struct manifest)MANIFEST_INIT;
        *d = (struct diags)DIAGS_INIT;
        events_init(&l->events);
        l->config = xcalloc(1, sizeof(*l->config));
        l->run = xcalloc(1, sizeof(*l->run));
        *l->run = (struct run_view){ .o = l->o,
                                     .id = l->config->run_id,
                                     .hosts = &l->hosts,
                                     .plan = &l->plan,
                                     .events = &l->events,
                                     .ranks = rank_board_create(&l->events, &l->plan) };
        rank_board_prefer(l->run->ranks, &l->o->main_roles);
}

static void finish_launch(struct launch *l)
{
        /* First everything that uses the job's loop closes its handles, for job_destroy() turns the
         * loop until all handles are closed. Memory for callbacks of the job goes after the job. */
        requests_close(l->run);
        progress_rest(l->run->progress);
        detach_finish(l);
        watchers_close(l->run->watchers);
        launch_pty_close(l);
        job_destroy(l->run->job);
        watchers_destroy(l->run->watchers);
        launch_pty_free(l);
        launch_restart_free(l);
        launch_preflight_free(l);
        if (l->config->remote)
                held_free(l->config->remote->ctx);
        dial_in_destroy(l->config->dial_in);
        pull_destroy(l->config->pull);
        rank_board_destroy(l->run->ranks);
        progress_destroy(l->run->progress);
        run_dir_destroy(l->run->dir);
        launch_gpus_free(l->inventory, l->hosts.n);
        plan_finish(&l->plan);
        hosts_finish(&l->hosts);
        strv_finish(&l->env);
        strv_finish(&l->unset);
        strv_finish(&l->config->ports);
        role_book_destroy(l->config->book);
        agent_binaries_finish(&l->agent_binaries);
        for (int i = 0; i < PUSH_USES; i++)
                manifest_finish(&l->manifests[i]);
        free(l->manifests);
        options_finish(l->o);
        diags_finish(&l->diags);
        free(l->cwd);
        free(l->config->container);
        free(l->here);
        free(l->agent);
        launch_programs_free(l);
        free(l->streams.shown);
        free(l->streams.label);
        /* The sink has a pointer into the view of the run. */
        log_set_sink(NULL, NULL);
        free(l->config);
        free(l->run);
}

static int run_steps(struct launch *l)
{
        int rc;

        /* The fork of --detach comes first, as threads do not survive a fork. */
        if (detach_begin(l, &rc) || (l->o->dial_in && other_node_dial_in(l, &rc)))
                return rc;
        rc = records_begin(l);
        if (rc)
                return rc;
        rc = launch_hosts_load(l);
        if (rc) {
                /* The last line counts errors of a single hostfile, and names the file. */
                l->end.where =
                        l->o->hostfiles.n == 1 && !l->o->hostlists.n ? l->o->hostfiles.v[0] : NULL;
                return verdict_nothing_started(l, rc);
        }
        setup_output(l);
        if (l->o->command == COMMAND_HOSTS)
                return launch_probe_hosts(l);
        rc = launch_setup_find_cwd(l);
        if (rc)
                return rc;
        launch_setup_container(l);
        if (l->o->command == COMMAND_HOLD)
                return launch_hold(l);
        launch_programs_find(l);
        if (compat_env_needs_jax_port((uint8_t)l->o->compat))
                launch_setup_need_port(l, COMPAT_JAX_PORT);
        rc = launch_roles_scan(l);
        if (!rc)
                rc = launch_setup_find_ports(l);
        if (rc)
                return rc;
        return l->o->command == COMMAND_PLAN    ? launch_plan_print(l)
               : l->o->command == COMMAND_CHECK ? launch_check(l)
               : l->o->command == COMMAND_STAGE ? launch_stage(l)
                                                : run_job(l);
}

int launch_run(struct options *o, struct diags *d, int *ret_signal)
{
        struct launch l;
        const struct cause *c;
        int code;

        init_launch(&l, o, d);
        code = run_steps(&l);
        c = l.run->job ? &job_outcome(l.run->job)->cause : NULL;
        /* Only if the order has decided the exit code: a failure found later is the result
         * instead. */
        *ret_signal = c && c->kind == CAUSE_ORDER && code == EX_SIGNAL + c->signal ? c->signal : 0;
        code = verdict_close_stdout(&l, code);
        finish_launch(&l);
        return code;
}

int launch_refuse(struct options *o, struct diags *d, int code)
{
        struct launch l;

        init_launch(&l, o, d);
        l.run->color = say_has_color(o);
        code = verdict_close_stdout(&l, verdict_nothing_started(&l, code));
        finish_launch(&l);
        return code;
}
