/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_connect() makes the job, connects its nodes and hands the inventories of the agents to the
 * planner. Messages of the running job go through say_now(). A failure to make a transport ends the
 * launch with a next step (refuse_transport()); report_nodes() names unreachable nodes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/dial_in/dial_in.h"
#include "head/launch/launch_private.h"
#include "head/launch/launch_spares.h"
#include "head/nodes/same_machine.h"
#include "head/options/option_table.h"
#include "head/output/progress.h"
#include "head/output/say.h"
#include "head/report/report.h"
#include "head/watch/requests.h"

/* Prints messages of a running job. With -q only errors and the answer to Ctrl-\, not warnings. */
static void say_now(void *ctx, const struct diags *d)
{
        struct launch *l = ctx;
        bool told = false;

        for (size_t i = 0; i < d->n && !told; i++)
                told = !l->o->quiet || !d->v[i].warning || !d->v[i].id;
        if (told)
                say_diags(d, l->run->color);
}

/* job_connect() calls it ten times a second; @ctx is the progress line. */
static void tick(void *ctx)
{
        progress_tick(ctx);
}

bool launch_any_remote(const struct launch *l)
{
        const struct hosts *aside = l->hosts.aside;

        for (size_t i = 0; i < l->hosts.n && !l->config->dial_in; i++)
                if (!l->hosts.v[i].local)
                        return true;
        for (size_t i = 0; aside && i < aside->n; i++)
                if (!aside->v[i].local)
                        return true;
        return false;
}

/* Returns the next step when a resource limit of this machine was reached; else NULL. */
static const char *help_with_limit(int error)
{
        switch (error) {
        case EMFILE:
                return "raise the limit of open files of this shell: ulimit -n 1024";
        case ENFILE:
                return "the limit of open files of this machine is reached, see sysctl fs.file-max";
        case EAGAIN:
                return "the limit of processes and threads of this user is reached, see ulimit -u";
        case ENOMEM:
                return "there is too little memory, or the limit of this shell is low, see ulimit "
                       "-v";
        default:
                return NULL;
        }
}

/* Ends the launch: a transport cannot be made. The text of @err may have a next step behind a
 * newline (err_cut_help()); that of a limit is better. Returns the exit code. */
static int refuse_transport(struct launch *l, struct error *err)
{
        const char *help = err_cut_help(err), *limit = help_with_limit(err->code);
        bool config = err->number == HN_SSH_CONFIG_WRITABLE || err->number == HN_SSH_CONFIG_LINE;
        struct diag *d;

        if (limit) {
                d = diag_add(&l->diags, HN_LIMIT_TOO_LOW, EX_FAILED, "%s", err->text);
                help = limit;
        } else if (l->config->dial_in) {
                d = diag_add(&l->diags, HN_NO_DIAL_PORT, EX_UNAVAILABLE, "%s", err->text);
                help = "the other nodes call this port: take another one on every node";
        } else {
                d = diag_add(&l->diags, err->number ? err->number : HN_NO_CONNECTIONS,
                             config ? EX_CONFIG : EX_UNAVAILABLE, "%s", err->text);
        }
        if (help)
                diag_help(d, "%s", help);
        return verdict_nothing_started(l, EX_UNAVAILABLE);
}

/* Reports that no node has come with the secret. */
static void report_unread_secret(struct launch *l)
{
        const struct dial_in *d = l->config->dial_in;

        if (d && d->secret.kind == DIAL_SECRET_HOME && !d->met)
                diag_help(diag_add(&l->diags, HN_SECRET_UNREAD, EX_NOPERM,
                                   "no node has come with the secret of %s/%s", d->secret.folder,
                                   d->secret.file),
                          "do all nodes share this home? else give every node the same secret: "
                          "--dial-secret FILE, or HNLAUNCH_DIAL_SECRET");
}

void launch_report_nodes(struct launch *l)
{
        report_nodes(&l->diags, l->run->job, &l->hosts, l->o,
                     option_belongs(option_by_name("exclude"), l->o->command));
}

int launch_end_early(struct launch *l, enum job_step step)
{
        if (step == JOB_INTERRUPTED)
                return verdict_nothing_started(l, outcome_exit_code(job_outcome(l->run->job)));
        report_unread_secret(l);
        launch_report_nodes(l);
        launch_spares_note(l);
        return verdict_nothing_started(l, EX_NOHOST);
}

void launch_take_inventory(struct launch *l)
{
        launch_gpus_free(l->inventory, l->hosts.n);
        l->inventory = xcalloc(l->hosts.n, sizeof(*l->inventory));
        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct hello *h = &job_node(l->run->job, i)->hello;

                if (job_node(l->run->job, i)->state == NODE_FAILED)
                        continue; /* gets no ranks: launch_spares_settle() */
                l->inventory[i] = (struct plan_inventory){
                        .known = true, .cores = (int)h->cores, .memory = h->memory, .arch = h->arch
                };
        }
        launch_gpus_choose(l);
        /* --local without a number: a slot for each GPU, else for each core. */
        if (!l->o->local || l->o->local_n)
                return;
        l->hosts.v[0].slots =
                l->inventory[0].gpus ? l->inventory[0].gpus : MAX(l->inventory[0].cores, 1);
        l->o->plan.oversubscribe = true; /* the user named no number of slots */
}

/* Loads the agents' programs, and checks the files for ssh: of a run that connects to nodes itself.
 * Returns 0, or the exit code. */
static int prepare_connections(struct launch *l)
{
        struct error err;

        /* Local nodes alone need neither ssh nor an agent for another machine. */
        if (launch_any_remote(l) && launch_setup_check_ssh(l) < 0)
                return verdict_nothing_started(l, EX_NOINPUT);
        if (!l->agent)
                l->agent = l->o->agent ? xstrdup(l->o->agent) : agent_binary_path(&err);
        if (!l->agent || (launch_any_remote(l) && agent_binaries_load(&l->agent_binaries, l->agent,
                                                                      !l->o->agent, &err) < 0))
                return verdict_nothing_because(l, HN_AGENT_UNUSABLE, EX_UNAVAILABLE, &err);
        return 0;
}

int launch_connect(struct launch *l)
{
        struct error err;
        enum job_step step;
        int rc = launch_hold_take(l);

        if (!rc && !l->config->remote)
                rc = prepare_connections(l);
        if (rc)
                return rc;
        verdict_say(l); /* warnings come before the wait for the nodes */
        l->config->options = l->o;
        l->config->hosts = &l->hosts;
        l->config->agent_binaries = &l->agent_binaries;
        l->config->agent_path = l->agent;
        l->config->events = &l->events;
        l->config->ranks = l->run->ranks;
        l->config->tick = (struct job_tick){ tick, l->run->progress };
        l->config->say = say_now;
        l->config->say_ctx = l;
        /* Joins of ranks are many: told only where --json or records have a reader. */
        l->config->tell_joins =
                l->o->json ||
                (l->run->dir && (run_dir_path(l->run->dir) || run_dir_recorder(l->run->dir)));
        l->run->watchers = watchers_create(l->run, l->config);
        l->run->job = job_create(l->config, &err);
        if (!l->run->job)
                return refuse_transport(l, &err);
        /* The port listens since job_create(): a node calls as soon as it has the secret. */
        if (l->config->dial_in && dial_secret_publish(&l->config->dial_in->secret, &err) < 0)
                return verdict_nothing_because(l, HN_SECRET_UNREAD, EX_NOPERM, &err);
        /* A plan with --probe connects as well, but is no run for other commands. */
        if (l->o->command == COMMAND_RUN)
                requests_open(l->run, &l->diags);
        rc = watchers_open(l->run->watchers, &l->diags);
        if (rc)
                return verdict_nothing_started(l, rc);
        launch_spares_watch(l);
        step = job_connect(l->run->job);
        /* `hnlaunch hosts` and `stage --list` write those that answer, and `hnlaunch check` tells
         * of the others. */
        if (step == JOB_NODES_LOST &&
            (l->o->command == COMMAND_HOSTS || l->o->staged.list || l->o->staged.remove)) {
                launch_report_nodes(l);
                step = JOB_DONE;
        } else if (step == JOB_NODES_LOST) {
                step = l->o->command == COMMAND_CHECK ? JOB_DONE : launch_spares_settle(l);
        }
        if (step != JOB_DONE)
                return launch_end_early(l, step);
        launch_take_inventory(l);
        return 0;
}

int launch_check_machines(struct launch *l)
{
        const char **machines;
        size_t found;

        /* With --oversubscribe the slots of a machine may count twice. */
        if (l->o->plan.oversubscribe)
                return 0;
        machines = xcalloc(l->hosts.n, sizeof(*machines));
        for (size_t i = 0; i < l->hosts.n; i++)
                /* "" equals no machine. */
                machines[i] = job_node(l->run->job, i)->state == NODE_FAILED
                                      ? ""
                                      : job_node(l->run->job, i)->hello.machine;
        found = same_machine_find(&l->hosts, machines, &l->diags);
        free(machines);
        return found ? verdict_nothing_started(l, EX_DATAERR) : 0;
}
