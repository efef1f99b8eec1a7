/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_run() gives the order of steps: open the records, load the hosts, set up the output,
 * then print_plan() or run_job(). run_job() checks everything on this machine (the environment,
 * standard input, files to push) before connect_nodes() opens a link, and plans only when every
 * agent has sent an inventory.
 *
 * run_attempts() repeats push, endpoint and run_attempt() for as long as job_restart() agrees. An
 * error before the first attempt ends the launch (verdict_nothing_started()); an error before a
 * later attempt is a failure of the attempt (job_unreachable()), and job_restart() decides.
 */
#include "head/launch.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strv.h"
#include "base/token.h"
#include "head/hosts/filter.h"
#include "head/hosts/hostfile.h"
#include "head/job/job_endpoint.h"
#include "head/job/job_push.h"
#include "head/nodes/same_machine.h"
#include "head/options/config.h"
#include "head/options/export_env.h"
#include "head/output/progress.h"
#include "head/output/say.h"
#include "head/report/plan_print.h"
#include "head/report/report.h"
#include "wire/env/compat_env.h"
#include "wire/env_names.h"

enum { RUN_ID_LEN = 5 }; /* 25 bits */

/* --- hosts ------------------------------------------------------------------------------------ */

/* Returns 0, or the exit code with messages in diags. */
static int load_hosts(struct launch *l)
{
        const struct options *o = &l->o;

        if (o->local) {
                struct host *h = hosts_add(&l->hosts);

                h->name = xstrdup("localhost");
                h->file = xstrdup("--local");
                h->line = 1;
                h->local = true;
                h->slots = o->local_n;
                l->o.plan.local = true;
        }
        for (size_t i = 0; i < o->hostfiles.n; i++)
                hostfile_load(&l->hosts, o->hostfiles.v[i], &l->diags);
        config_check_hosts(o->settings, &l->hosts, &l->diags);
        for (size_t i = 0; !o->hostfiles.n && i < o->hostlists.n; i++)
                hostlist_load(&l->hosts, o->hostlists.v[i], &l->diags);
        if (o->hostfiles.n && o->hostlists.n && !diags_errors(&l->diags))
                filter_choose(&l->hosts, &o->hostlists, &l->diags);
        if (!diags_errors(&l->diags))
                filter_apply(&l->hosts, &o->include, &o->exclude, o->nodes, &l->diags);
        return diags_errors(&l->diags) ? 65 : 0;
}

static bool any_remote(const struct launch *l)
{
        for (size_t i = 0; i < l->hosts.n; i++)
                if (!l->hosts.v[i].local)
                        return true;
        return false;
}

/* --- files for the nodes ---------------------------------------------------------------------- */

static void report_hashed(void *ctx, uint64_t bytes)
{
        struct launch *l = ctx;

        events_emit(&l->events, (struct event){ .kind = EVENT_PUSH_HASHING,
                                                .node = -1,
                                                .rank = -1,
                                                .value = (int64_t)bytes });
}

/* Warns of files here among the arguments, but not pushed: ranks start among the pushed files. */
static void warn_not_pushed(struct launch *l)
{
        const struct strv *argv = &l->o.argv;

        for (size_t i = 0; i < argv->n && !l->o.chdir && any_remote(l); i++) {
                const char *arg = argv->v[i];
                bool is_path = *arg && *arg != '-' && *arg != '/' && (i || strchr(arg, '/'));

                if (!is_path || access(arg, F_OK) < 0 || manifest_place(&l->manifest, l->here, arg))
                        continue;
                diag_help(diag_warn(&l->diags, 239, "`%s` is here, but is not pushed", arg),
                          "ranks start among the pushed files: add --push %s", arg);
        }
}

/* Lists and hashes the files of --push. Returns 0, or the exit code. */
static int pack_files(struct launch *l)
{
        const struct manifest_watch watch = { report_hashed, l };

        if (!l->o.push.n)
                return 0;
        strv_env_set(&l->env, HN_PUSH_DIR, l->here); /* other nodes put their own folder there */
        if (manifest_pack(&l->manifest, &l->o.push, l->here, &watch, &l->diags) < 0)
                return verdict_nothing_started(l, 66);
        warn_not_pushed(l);
        return 0;
}

/* --- connecting and planning ------------------------------------------------------------------ */

/* Prints messages of a running job. With -q only errors and the answer to Ctrl-\, not warnings. */
static void say_now(void *ctx, const struct diags *d)
{
        struct launch *l = ctx;
        bool told = false;

        for (size_t i = 0; i < d->n && !told; i++)
                told = !l->o.quiet || !d->v[i].warning || !d->v[i].id;
        if (told)
                say_diags(d, l->streams.color);
}

static void tick(void *ctx)
{
        progress_tick(ctx);
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

/* Ends the launch: a transport cannot be made. A second line of @err is the next step. */
static int refuse_transport(struct launch *l, struct error *err)
{
        const char *limit = help_with_limit(err->code);
        char *rest = err->text;
        const char *fact = strsep(&rest, "\n");
        struct diag *d = limit                        ? diag_add(&l->diags, 904, 125, "%s", fact)
                         : err->code == EPERM && rest ? diag_add(&l->diags, 209, 78, "%s", fact)
                         : err->code == EBADMSG       ? diag_add(&l->diags, 242, 78, "%s", fact)
                         : err->code == ELIBBAD       ? diag_add(&l->diags, 248, 69, "%s", fact)
                                                      : diag_add(&l->diags, 103, 69, "%s", fact);

        if (rest)
                diag_help(d, "%s", rest);
        if (limit)
                diag_help(d, "%s", limit);
        else if (err->code == ELIBACC && !l->o.ssh_command)
                diag_help(d, "--ssh-command ssh goes without it");
        return verdict_nothing_started(l, 69);
}

/* Ends the launch: there was an order to end (@rc is JOB_INTERRUPTED), or nodes were lost. */
static int end_early(struct launch *l, int rc)
{
        if (rc == JOB_INTERRUPTED)
                return verdict_nothing_started(l, outcome_exit_code(job_outcome(l->job)));
        report_nodes(&l->diags, l->job, &l->hosts);
        return verdict_nothing_started(l, 68);
}

/* Hands the inventories of the agents to the planner. */
static void take_inventory(struct launch *l)
{
        l->inventory = xcalloc(l->hosts.n, sizeof(*l->inventory));
        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct hello *h = &job_node(l->job, i)->hello;
                struct plan_inventory *inv = &l->inventory[i];
                int *index = xcalloc(h->n_gpus, sizeof(*index));

                for (uint32_t g = 0; g < h->n_gpus; g++)
                        index[g] = (int)h->gpus[g].index;
                *inv = (struct plan_inventory){ true,  (int)h->n_gpus, (int)h->cores,
                                                index, h->memory,      h->arch };
        }
        if (l->o.local && !l->o.local_n)
                l->hosts.v[0].slots =
                        l->inventory[0].gpus ? l->inventory[0].gpus : MAX(l->inventory[0].cores, 1);
}

/* Connects all nodes, waits for their agents and takes the inventories. Returns 0, or the exit
 * code. */
static int connect_nodes(struct launch *l)
{
        struct error err;
        int rc;

        if (any_remote(l) && launch_setup_check_ssh(l) < 0)
                return verdict_nothing_started(l, 66);
        l->agent = l->o.agent ? xstrdup(l->o.agent) : agent_binary_path(&err);
        if (!l->agent || (any_remote(l) &&
                          agent_binaries_load(&l->agent_binaries, l->agent, !l->o.agent, &err) < 0))
                return verdict_nothing_because(l, 102, 69, &err);
        l->config.options = &l->o;
        l->config.hosts = &l->hosts;
        l->config.agent_binaries = &l->agent_binaries;
        l->config.agent_path = l->agent;
        l->config.events = &l->events;
        l->config.tick = tick;
        l->config.tick_ctx = l->progress;
        l->config.say = say_now;
        l->config.say_ctx = l;
        l->config.tell_joins = l->o.json || l->o.log_dir;
        l->job = job_create(&l->config, &err);
        if (!l->job)
                return refuse_transport(l, &err);
        rc = job_connect(l->job);
        if (rc)
                return end_early(l, rc);
        take_inventory(l);
        return 0;
}

/* Refuses two nodes on the same machine, which would use every GPU twice. Returns 0, or the exit
 * code. */
static int check_machines(struct launch *l)
{
        const char **machines;
        size_t found;

        if (l->o.plan.oversubscribe)
                return 0;
        machines = xcalloc(l->hosts.n, sizeof(*machines));
        for (size_t i = 0; i < l->hosts.n; i++)
                machines[i] = job_node(l->job, i)->hello.machine;
        found = same_machine_find(&l->hosts, machines, &l->diags);
        free(machines);
        return found ? verdict_nothing_started(l, 65) : 0;
}

/* Plans with the inventory, if there is one, else with the hostfile alone. Returns 0, or the exit
 * code.
 */
static int make_plan(struct launch *l)
{
        int rc = l->inventory ? check_machines(l) : 0;

        if (!rc && plan_build(&l->plan, &l->hosts, l->inventory, &l->o.plan, &l->diags) < 0)
                rc = verdict_nothing_started(l, 69);
        if (!rc)
                rc = launch_setup_check_compat(l);
        if (!rc && l->o.argv.n)
                launch_setup_choose_mpi(l);
        return rc;
}

static int print_plan_json(struct launch *l)
{
        const char *path = l->o.json_file;
        FILE *to = path ? fopen(path, "we") : stdout;
        struct error err;

        if (to)
                plan_print_json(to, &l->plan, &l->hosts, &l->o, &l->manifest, l->inventory);
        if (!to || (path && fclose(to) != 0)) {
                err_set(&err, errno, "cannot write the plan to %s: %s", path, strerror(errno));
                return verdict_nothing_because(l, 903, 73, &err);
        }
        verdict_say(l);
        return 0;
}

static int print_plan(struct launch *l)
{
        int rc = pack_files(l);

        if (!rc && l->o.probe)
                rc = connect_nodes(l);
        if (!rc)
                rc = make_plan(l);
        if (!rc)
                rc = launch_setup_check_ranks(l);
        if (rc)
                return rc;
        if (l->o.json)
                return print_plan_json(l);
        if (l->o.ranks.n)
                plan_print_ranks(stdout, &l->plan, &l->hosts, &l->o, &l->config.ports);
        else
                plan_print_table(stdout, &l->plan, &l->hosts, &l->o, &l->manifest, l->inventory);
        verdict_say(l);
        return 0;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Brings the files of --push to the nodes, then opens the store's endpoint, reached by all nodes
 * (head/job/job_endpoint.h). Returns 0, JOB_INTERRUPTED or -errno with @err; *ret_pushed: it came
 * to the endpoint. */
static int prepare_attempt(struct launch *l, struct error *err, bool *ret_pushed)
{
        int rc = l->o.push.n ? job_push(l->job, &l->plan, &l->manifest, err) : 0;

        *ret_pushed = !rc;
        if (rc == -EIO)
                report_push(&l->diags, l->job, &l->hosts);
        if (rc)
                return rc;
        rc = job_open_endpoint(l->job, &l->plan, err);
        if (rc == -ENETUNREACH)
                report_endpoint(&l->diags, l->job, &l->hosts, &l->o);
        return rc;
}

/* Prepares the first attempt. Returns 0, or the exit code. */
static int prepare_first(struct launch *l)
{
        struct error err = { 0 };
        bool pushed;
        int rc = prepare_attempt(l, &err, &pushed);

        if (!rc)
                return 0;
        if (rc == JOB_INTERRUPTED || rc == -EHOSTUNREACH)
                return end_early(l, rc);
        if (rc == (pushed ? -ENETUNREACH : -EIO))
                return verdict_nothing_started(l, 69);
        if (pushed)
                return verdict_nothing_because(l, 320, 69, &err);
        if (err.code != ESTALE && err.code != ENOENT)
                return verdict_nothing_because(l, 231, 66, &err);
        diag_help(diag_add(&l->diags, 237, 66, "--push: %s", err.text),
                  "start again when no process writes to the pushed files");
        return verdict_nothing_started(l, 66);
}

/* Prepares another attempt. A failure becomes the cause of the attempt, and is returned. */
static int prepare_again(struct launch *l)
{
        struct error err = { 0 };
        bool pushed;
        int rc = prepare_attempt(l, &err, &pushed);

        if (rc < 0)
                job_unreachable(l->job, *err.text ? err.text
                                        : pushed  ? "cannot open the store's endpoint"
                                                  : "cannot push files to it");
        return rc;
}

static bool understands_escapes(void)
{
        const char *term = getenv("TERM");

        return term && *term && strcmp(term, "dumb") != 0;
}

/* Starts the ranks and waits until all have ended and their output is written. */
static void run_attempt(struct launch *l)
{
        struct job_launch order = {
                .plan = &l->plan,
                .env = &l->env,
                .unset = &l->unset,
                .cwd = l->cwd,
                .cwd_given = l->o.chdir != NULL,
                .mpi = l->o.mpi == MPI_NONE ? "" : l->config.mpi,
                .program = strchr(*l->o.argv.v, '/')
                                   ? manifest_place(&l->manifest, l->here, *l->o.argv.v)
                                   : NULL,
                .output = { .dir = run_dir_path(l->dir),
                            .label = launch_setup_choose_label(l),
                            .shown = l->streams.shown,
                            .raw = l->o.raw,
                            .erase = understands_escapes() },
                .on_stderr = l->o.json && !l->o.json_file,
                .stdin_fd = l->streams.stdin_fd,
                .stdin_all = l->o.stdin_mode == STDIN_ALL,
        };

        job_launch(l->job, &order);
        job_wait(l->job);
}

/* Runs the first attempt and each restart. Returns the exit code. */
static int run_attempts(struct launch *l)
{
        int rc = prepare_first(l);

        if (rc)
                return rc;
        events_emit(&l->events, (struct event){ .kind = EVENT_RUN_START,
                                                .node = -1,
                                                .rank = -1,
                                                .value = l->plan.world_size,
                                                .count = l->plan.num_nodes });
        run_attempt(l);
        while (job_restart(l->job, &l->plan))
                if (!prepare_again(l))
                        run_attempt(l);
        job_leave(l->job);
        return verdict_tell(l);
}

static int run_job(struct launch *l)
{
        struct error err;
        int rc;

        if (export_env_collect(&l->o, environ, &l->env, &l->unset, &l->diags) < 0)
                return verdict_nothing_started(l, 66);
        if (launch_setup_choose_stdin(l, &err) < 0)
                return verdict_nothing_because(l, 124, 66, &err);
        rc = pack_files(l);
        if (!rc)
                rc = connect_nodes(l);
        if (!rc)
                rc = make_plan(l);
        if (!rc)
                rc = launch_setup_choose_shown(l);
        if (rc)
                return rc;
        if (run_dir_write_run(l->dir, &l->o, &l->hosts, &l->plan, l->cwd, &err) < 0)
                return verdict_nothing_because(l, 903, 73, &err);
        report_locked_memory(&l->diags, l->job, &l->hosts);
        verdict_say(l);
        return run_attempts(l);
}

/* --- from the first line to the last ---------------------------------------------------------- */

/* Names the run and opens the records. First of all: every later failure is recorded. */
static int begin_record(struct launch *l)
{
        struct error err;

        token_make(l->config.run_id, RUN_ID_LEN);
        if (l->o.command != COMMAND_RUN)
                return 0;
        l->dir = run_dir_create(&l->events, l->o.log_dir, l->config.run_id, l->o.json,
                                l->o.json_file, &err);
        return l->dir ? 0 : verdict_nothing_because(l, 903, 73, &err);
}

static void setup_output(struct launch *l)
{
        static const enum log_level levels[] = { LOG_WARN, LOG_INFO, LOG_DEBUG };
        struct progress_options po = { .quiet = l->o.quiet || l->o.progress == PROGRESS_NONE ||
                                                l->o.command != COMMAND_RUN };

        log_set_sink(say_log, NULL);
        log_set_level(l->o.quiet ? LOG_ERROR : levels[MIN(MAX(l->o.verbose, 0), 2)]);
        l->streams.color = launch_setup_choose_color(&l->o);
        po.tty = l->o.progress == PROGRESS_TTY ||
                 (l->o.progress == PROGRESS_AUTO && isatty(STDERR_FILENO) && understands_escapes());
        po.color = l->streams.color;
        po.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
        po.n_hosts = l->hosts.n;
        po.remote = any_remote(l);
        po.run_id = l->config.run_id;
        po.source = l->o.local         ? "this machine"
                    : l->o.hostfiles.n ? l->o.hostfiles.v[0]
                                       : "host list";
        l->progress = progress_create(&l->events, &po);
}

void launch_finish(struct launch *l)
{
        job_destroy(l->job);
        progress_destroy(l->progress);
        run_dir_destroy(l->dir);
        for (size_t i = 0; l->inventory && i < l->hosts.n; i++)
                free((void *)(uintptr_t)l->inventory[i].gpu_index);
        free(l->inventory);
        plan_finish(&l->plan);
        hosts_finish(&l->hosts);
        strv_finish(&l->env);
        strv_finish(&l->unset);
        strv_finish(&l->config.ports);
        agent_binaries_finish(&l->agent_binaries);
        manifest_finish(&l->manifest);
        options_finish(&l->o);
        diags_finish(&l->diags);
        free(l->cwd);
        free(l->here);
        free(l->agent);
        free(l->streams.shown);
}

int launch_run(struct launch *l)
{
        int rc = begin_record(l);

        if (rc)
                return rc;
        rc = load_hosts(l);
        if (rc) {
                l->where = l->o.hostfiles.n == 1 && !l->o.hostlists.n ? l->o.hostfiles.v[0] : NULL;
                return verdict_nothing_started(l, rc);
        }
        setup_output(l);
        rc = launch_setup_find_cwd(l);
        if (rc)
                return rc;
        launch_setup_find_program(l);
        if (compat_env_needs_jax_port((uint8_t)l->o.compat))
                launch_setup_need_port(l, COMPAT_JAX_PORT);
        rc = launch_setup_find_ports(l);
        if (rc)
                return rc;
        return l->o.command == COMMAND_PLAN ? print_plan(l) : run_job(l);
}
