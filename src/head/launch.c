/* SPDX-License-Identifier: Apache-2.0 */
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
#include "wire/env_names.h"

enum { RUN_ID_LEN = 5 }; /* 25 bits */

/* --- hosts ------------------------------------------------------------------------------------ */

static void add_this_machine(struct run *r)
{
        struct host *h = hosts_add(&r->hosts);

        h->name = xstrdup("localhost");
        h->file = xstrdup("--local");
        h->line = 1;
        h->local = true;
        h->slots = r->o.local_n;
        r->o.plan.local = true;
}

/* 0, or the exit code with messages in diags. */
static int load_hosts(struct run *r)
{
        const struct options *o = &r->o;

        if (o->local)
                add_this_machine(r);
        for (size_t i = 0; i < o->hostfiles.n; i++)
                hostfile_load(&r->hosts, o->hostfiles.v[i], &r->diags);
        config_check_hosts(o->settings, &r->hosts, &r->diags);
        for (size_t i = 0; !o->hostfiles.n && i < o->hostlists.n; i++)
                hostlist_load(&r->hosts, o->hostlists.v[i], &r->diags);
        if (o->hostfiles.n && o->hostlists.n && !diags_errors(&r->diags))
                filter_choose(&r->hosts, &o->hostlists, &r->diags);
        if (!diags_errors(&r->diags))
                filter_apply(&r->hosts, &o->include, &o->exclude, o->nodes, &r->diags);
        r->source = xstrdup(o->local         ? "this machine"
                            : o->hostfiles.n ? o->hostfiles.v[0]
                                             : "host list");
        return diags_errors(&r->diags) ? 65 : 0;
}

static bool any_remote(const struct run *r)
{
        for (size_t i = 0; i < r->hosts.n; i++)
                if (!r->hosts.v[i].local)
                        return true;
        return false;
}

/* --- files for the nodes ---------------------------------------------------------------------- */

/* While much is being hashed. */
static void hashing(void *ctx, uint64_t bytes)
{
        struct run *r = ctx;

        events_emit(&r->events, (struct event){ .kind = EVENT_PUSH_HASHING,
                                                .node = -1,
                                                .rank = -1,
                                                .value = (int64_t)bytes });
}

/* Ranks will start among what was pushed: what the program is to read must be there. */
static void warn_not_pushed(struct run *r)
{
        const struct strv *argv = &r->o.argv;

        for (size_t i = 0; i < argv->n && !r->o.chdir && any_remote(r); i++) {
                const char *arg = argv->v[i];
                bool is_path = *arg && *arg != '-' && *arg != '/' && (i || strchr(arg, '/'));

                if (!is_path || access(arg, F_OK) < 0 || manifest_place(&r->manifest, r->here, arg))
                        continue;
                diag_help(diag_warn(&r->diags, 239, "`%s` is here, but is not pushed", arg),
                          "ranks start among the pushed files: add --push %s", arg);
        }
}

/* 0, or the exit code. Before any node is touched. */
static int pack(struct run *r)
{
        const struct manifest_watch watch = { hashing, r };

        if (!r->o.push.n)
                return 0;
        strv_env_set(&r->env, HN_PUSH_DIR, r->here); /* other nodes put their own folder there */
        if (manifest_pack(&r->manifest, &r->o.push, r->here, &watch, &r->diags) < 0)
                return run_nothing(r, 66);
        warn_not_pushed(r);
        return 0;
}

/* --- connecting and planning ------------------------------------------------------------------ */

/* Messages of a job that runs. */
/* With -q no warnings, but what was asked for (Ctrl-\) and errors. */
static bool is_told(const struct run *r, const struct diags *d)
{
        for (size_t i = 0; i < d->n; i++)
                if (!r->o.quiet || !d->v[i].warning || !d->v[i].id)
                        return true;
        return false;
}

static void say_now(void *ctx, const struct diags *d)
{
        struct run *r = ctx;

        if (!is_told(r, d))
                return;
        say_diags(d, r->color);
}

static void tick(void *ctx)
{
        progress_tick(ctx);
}

static const char *limit_help(int error)
{
        switch (error) {
        case EMFILE:
                return "raise the limit of open files of this shell: ulimit -n 1024";
        case EAGAIN:
                return "the limit of processes and threads of this user is reached, see ulimit -u";
        case ENOMEM:
                return "there is too little memory, or the limit of this shell is low, see ulimit "
                       "-v";
        default:
                return NULL;
        }
}

/* A second line of @err is the next step. */
static int no_way(struct run *r, struct error *err)
{
        const char *limit = limit_help(err->code);
        char *rest = err->text;
        const char *fact = strsep(&rest, "\n");
        struct diag *d = limit                        ? diag_add(&r->diags, 904, 125, "%s", fact)
                         : err->code == EPERM && rest ? diag_add(&r->diags, 209, 78, "%s", fact)
                                                      : diag_add(&r->diags, 103, 69, "%s", fact);

        if (rest)
                diag_help(d, "%s", rest);
        if (limit)
                diag_help(d, "%s", limit);
        else if (err->code == ELIBACC && !r->o.ssh_command)
                diag_help(d, "--ssh-command ssh goes without it");
        return run_nothing(r, 69);
}

/* There was an order to end (JOB_INTERRUPTED), or nodes are lost. */
static int stopped(struct run *r, int rc)
{
        if (rc == JOB_INTERRUPTED)
                return run_nothing(r, outcome_exit_code(job_outcome(r->job)));
        report_nodes(&r->diags, r->job, &r->hosts);
        return run_nothing(r, 68);
}

static int connect_all(struct run *r)
{
        struct error err;
        int rc;

        if (any_remote(r) && run_check_ssh(r) < 0)
                return run_nothing(r, 66);
        r->agent = r->o.agent ? xstrdup(r->o.agent) : agent_binary_path(&err);
        if (!r->agent || (any_remote(r) &&
                          agent_binaries_load(&r->agent_binaries, r->agent, !r->o.agent, &err) < 0))
                return run_nothing_because(r, 102, 69, &err);
        r->config.options = &r->o;
        r->config.hosts = &r->hosts;
        r->config.agent_binaries = &r->agent_binaries;
        r->config.agent_path = r->agent;
        r->config.events = &r->events;
        r->config.tick = tick;
        r->config.tick_ctx = r->progress;
        r->config.say = say_now;
        r->config.say_ctx = r;
        r->config.tell_joins = r->o.json || r->o.log_dir;
        r->job = job_create(&r->config, &err);
        if (!r->job)
                return no_way(r, &err);
        rc = job_connect(r->job);
        return rc ? stopped(r, rc) : 0;
}

/* What the agents told, for the planner. */
static void take_inventory(struct run *r)
{
        r->inventory = xcalloc(r->hosts.n, sizeof(*r->inventory));
        for (size_t i = 0; i < r->hosts.n; i++) {
                const struct hello *h = &job_node(r->job, i)->hello;
                struct plan_inventory *inv = &r->inventory[i];
                int *index = xcalloc(h->n_gpus, sizeof(*index));

                for (uint32_t g = 0; g < h->n_gpus; g++)
                        index[g] = (int)h->gpus[g].index;
                *inv = (struct plan_inventory){ true,  (int)h->n_gpus, (int)h->cores,
                                                index, h->memory,      h->arch };
        }
        if (r->o.local && !r->o.local_n)
                r->hosts.v[0].slots =
                        r->inventory[0].gpus ? r->inventory[0].gpus : MAX(r->inventory[0].cores, 1);
}

static int check_machines(struct run *r)
{
        const char **machines;
        size_t found;

        if (r->o.plan.oversubscribe)
                return 0;
        machines = xcalloc(r->hosts.n, sizeof(*machines));
        for (size_t i = 0; i < r->hosts.n; i++)
                machines[i] = job_node(r->job, i)->hello.machine;
        found = same_machine_find(&r->hosts, machines, &r->diags);
        free(machines);
        return found ? run_nothing(r, 65) : 0;
}

static int make_plan(struct run *r)
{
        return plan_build(&r->plan, &r->hosts, r->inventory, &r->o.plan, &r->diags) < 0
                       ? run_nothing(r, 69)
                       : 0;
}

static int print_plan_json(struct run *r)
{
        const char *path = r->o.json_file;
        FILE *to = path ? fopen(path, "we") : stdout;
        struct error err;

        if (to)
                plan_print_json(to, &r->plan, &r->hosts, &r->o, &r->manifest, r->inventory);
        if (!to || (path && fclose(to) != 0)) {
                err_set(&err, errno, "cannot write the plan to %s: %s", path, strerror(errno));
                return run_nothing_because(r, 903, 73, &err);
        }
        run_say(r);
        return 0;
}

static int print_plan(struct run *r)
{
        int rc = pack(r);

        if (!rc && r->o.probe)
                rc = connect_all(r);
        if (rc)
                return rc;
        if (r->o.probe) {
                take_inventory(r);
                rc = check_machines(r);
        }
        if (!rc)
                rc = make_plan(r);
        if (!rc)
                rc = run_check_ranks(r);
        if (rc)
                return rc;
        if (r->o.json)
                return print_plan_json(r);
        if (r->o.ranks.n)
                plan_print_ranks(stdout, &r->plan, &r->hosts, &r->o);
        else
                plan_print_table(stdout, &r->plan, &r->hosts, &r->o, &r->manifest, r->inventory);
        run_say(r);
        return 0;
}

/* --- running ---------------------------------------------------------------------------------- */

/* The nodes get their files. */
static int push(struct run *r)
{
        struct error err = { 0 };
        int rc = r->o.push.n ? job_push(r->job, &r->plan, &r->manifest, &err) : 0;

        switch (rc) {
        case 0:
                return 0;
        case JOB_INTERRUPTED:
        case -EHOSTUNREACH:
                return stopped(r, rc);
        case -EIO:
                report_push(&r->diags, r->job, &r->hosts);
                return run_nothing(r, 69);
        default:
                diag_help(diag_add(&r->diags, 237, 66, "--push: %s", err.text),
                          "start again when nobody writes to what is pushed");
                return run_nothing(r, 66);
        }
}

/* PyTorch's store, reached by all nodes; see head/job/job_endpoint.h. */
static int open_endpoint(struct run *r)
{
        struct error err = { 0 };
        int rc = job_open_endpoint(r->job, &r->plan, &err);

        switch (rc) {
        case 0:
                return 0;
        case JOB_INTERRUPTED:
        case -EHOSTUNREACH:
                return stopped(r, rc);
        case -ENETUNREACH:
                report_endpoint(&r->diags, r->job, &r->hosts, &r->o);
                return run_nothing(r, 69);
        default:
                return run_nothing_because(r, 320, 69, &err);
        }
}

static bool is_clever_terminal(void)
{
        const char *term = getenv("TERM");

        return term && *term && strcmp(term, "dumb") != 0;
}

static void start(struct run *r)
{
        struct job_launch l = {
                .plan = &r->plan,
                .env = &r->env,
                .unset = &r->unset,
                .cwd = r->cwd,
                .cwd_given = r->o.chdir != NULL,
                .program = strchr(*r->o.argv.v, '/')
                                   ? manifest_place(&r->manifest, r->here, *r->o.argv.v)
                                   : NULL,
                .dir = run_dir_path(r->dir),
                .on_stderr = r->o.json && !r->o.json_file,
                .label = r->label,
                .shown = r->shown,
                .raw = r->o.raw,
                .erase = is_clever_terminal(),
                .stdin_fd = r->stdin_fd,
                .stdin_all = r->o.stdin_mode == STDIN_ALL,
        };

        job_launch(r->job, &l);
        job_wait(r->job);
}

/* For another attempt; a failure is the attempt's. */
static int prepare_again(struct run *r)
{
        struct error err = { 0 };
        int rc = r->o.push.n ? job_push(r->job, &r->plan, &r->manifest, &err) : 0;

        if (rc == -EIO)
                report_push(&r->diags, r->job, &r->hosts);
        if (rc < 0)
                job_unreachable(r->job, *err.text ? err.text : "files cannot be brought there");
        if (rc)
                return rc;
        rc = job_open_endpoint(r->job, &r->plan, &err);
        if (rc == -ENETUNREACH)
                report_endpoint(&r->diags, r->job, &r->hosts, &r->o);
        if (rc < 0)
                job_unreachable(r->job,
                                *err.text ? err.text : "the store's endpoint does not open");
        return rc;
}

/* Attempt after attempt. Before the first an error means that nothing was started. */
static int run_attempts(struct run *r)
{
        int rc = push(r);

        if (!rc)
                rc = open_endpoint(r);
        if (rc)
                return rc;
        events_emit(&r->events, (struct event){ .kind = EVENT_RUN_START,
                                                .node = -1,
                                                .rank = -1,
                                                .value = r->plan.world_size,
                                                .count = r->plan.num_nodes });
        start(r);
        while (job_restart(r->job, &r->plan))
                if (!prepare_again(r))
                        start(r);
        job_leave(r->job);
        return run_end(r);
}

static int run_job(struct run *r)
{
        struct error err;
        int rc;

        if (export_env_collect(&r->o, environ, &r->env, &r->unset, &r->diags) < 0)
                return run_nothing(r, 66);
        if (run_choose_stdin(r, &err) < 0)
                return run_nothing_because(r, 124, 66, &err);
        rc = pack(r);
        if (rc)
                return rc;
        rc = connect_all(r);
        if (rc)
                return rc;
        take_inventory(r);
        rc = check_machines(r);
        if (!rc)
                rc = make_plan(r);
        if (!rc)
                rc = run_choose_shown(r);
        if (rc)
                return rc;
        if (run_dir_write_run(r->dir, &r->o, &r->hosts, &r->plan, r->cwd, &err) < 0)
                return run_nothing_because(r, 903, 73, &err);
        run_check_mpi(r);
        r->label = run_choose_label(r) ? xstrdup(run_choose_label(r)) : NULL;
        run_say(r);
        return run_attempts(r);
}

/* --- from the first line to the last ---------------------------------------------------------- */

/* Names the run and opens its records, before anything can go wrong. */
static int begin_record(struct run *r)
{
        struct error err;

        token_make(r->config.run_id, RUN_ID_LEN);
        if (r->o.command != COMMAND_RUN)
                return 0;
        r->dir = run_dir_create(&r->events, r->o.log_dir, r->config.run_id, r->o.json,
                                r->o.json_file, &err);
        return r->dir ? 0 : run_nothing_because(r, 903, 73, &err);
}

static void prepare(struct run *r)
{
        struct progress_options po = { .quiet = r->o.quiet || r->o.progress == PROGRESS_NONE ||
                                                r->o.command != COMMAND_RUN };

        static const enum log_level levels[] = { LOG_WARN, LOG_INFO, LOG_DEBUG };

        log_set_sink(say_log, NULL);
        log_set_level(r->o.quiet ? LOG_ERROR : levels[MIN(MAX(r->o.verbose, 0), 2)]);
        r->color = run_choose_color(&r->o);
        po.tty = r->o.progress == PROGRESS_TTY ||
                 (r->o.progress == PROGRESS_AUTO && isatty(STDERR_FILENO) && is_clever_terminal());
        po.color = r->color;
        po.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
        po.n_hosts = r->hosts.n;
        po.remote = any_remote(r);
        po.run_id = r->config.run_id;
        po.source = r->source;
        r->progress = progress_create(&r->events, &po);
}

void run_finish(struct run *r)
{
        job_destroy(r->job);
        progress_destroy(r->progress);
        run_dir_destroy(r->dir);
        for (size_t i = 0; r->inventory && i < r->hosts.n; i++)
                free((void *)(uintptr_t)r->inventory[i].gpu_index);
        free(r->inventory);
        plan_finish(&r->plan);
        hosts_finish(&r->hosts);
        strv_finish(&r->env);
        strv_finish(&r->unset);
        agent_binaries_finish(&r->agent_binaries);
        manifest_finish(&r->manifest);
        options_finish(&r->o);
        diags_finish(&r->diags);
        free(r->cwd);
        free(r->here);
        free(r->agent);
        free(r->source);
        free(r->label);
        free(r->shown);
}

int run_launch(struct run *r)
{
        int rc = begin_record(r);

        if (rc)
                return rc;
        rc = load_hosts(r);
        if (rc) {
                r->where = r->o.hostfiles.n == 1 && !r->o.hostlists.n ? r->o.hostfiles.v[0] : NULL;
                return run_nothing(r, rc);
        }
        prepare(r);
        rc = run_find_cwd(r);
        if (rc)
                return rc;
        run_find_program(r);
        return r->o.command == COMMAND_PLAN ? print_plan(r) : run_job(r);
}
