/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch: starts one program on every slot of many nodes
 *
 * A table of contents: options -> hosts -> connect -> plan -> door -> job -> verdict. Each step
 * either succeeds or ends the launch with messages (diags) and an exit code (design D16).
 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strv.h"
#include "head/environment.h"
#include "head/filter.h"
#include "head/hostfile.h"
#include "head/job.h"
#include "head/job_door.h"
#include "head/job_push.h"
#include "head/options.h"
#include "head/plan_print.h"
#include "head/progress.h"
#include "head/report.h"
#include "head/rundir.h"
#include "wire/names.h"

/* Everything that a launch gathers on its way; freed at one place. */
struct run {
        struct options o;
        struct hosts hosts;
        struct diags diags;
        struct plan plan;
        struct plan_inventory *inventory;
        struct strv env, unset;
        struct events events;
        struct images images;
        struct parcel parcel;
        char *here; /* the folder that --push starts from */
        struct progress *progress;
        struct rundir *dir;
        struct job *job;
        char *cwd, *agent, *source, *label;
        const char *where; /* the file whose errors are being told, NULL = not one file */
        bool *shown;
        struct job_config config;
        bool color;
        int stdin_fd; /* what ranks read, -1 = nothing */
        char verdict[900];
};

/* --- saying it -------------------------------------------------------------------------------- */

static void say(struct run *r)
{
        progress_erase(r->progress);
        fflush(stdout);
        diags_print(&r->diags, stderr, r->color);
        diags_finish(&r->diags);
}

/* Messages of a job that runs. */
static void say_now(void *ctx, const struct diags *d)
{
        struct run *r = ctx;

        progress_erase(r->progress);
        fflush(stdout);
        diags_print(d, stderr, r->color);
}

/* The launch ends before anything was started. */
static int nothing(struct run *r, int code)
{
        const struct diag *d = diags_first_error(&r->diags);
        size_t n = diags_errors(&r->diags);
        char what[700];

        if (d && d->exit)
                code = d->exit;
        if (n > 1 && r->where)
                snprintf(what, sizeof(what), "%zu errors in %s, nothing was started", n, r->where);
        else if (n > 1)
                snprintf(what, sizeof(what), "nothing was started: %s, and %zu more error%s",
                         d->fact, n - 1, n == 2 ? "" : "s");
        else
                snprintf(what, sizeof(what), "nothing was started: %s",
                         d ? d->fact : "interrupted");
        say(r);
        fprintf(stderr, "hnlaunch: %s  (exit %d)\n", what, code);
        return code;
}

static int nothing_because(struct run *r, int id, int code, const struct error *err)
{
        diag_add(&r->diags, id, code, "%s", err->text);
        return nothing(r, code);
}

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
        for (size_t i = 0; i < o->hostlists.n; i++)
                hostlist_parse(&r->hosts, o->hostlists.v[i], &r->diags);
        if (!diags_errors(&r->diags))
                filter_apply(&r->hosts, &o->include, &o->exclude, o->nodes, &r->diags);
        r->source = xstrdup(o->local         ? "this machine"
                            : o->hostfiles.n ? o->hostfiles.v[0]
                                             : "host list");
        return diags_errors(&r->diags) ? 65 : 0;
}

/* --- the program and where it runs ------------------------------------------------------------ */

static bool in_path(const char *name)
{
        const char *path = getenv("PATH");
        bool found = false;

        while (path && *path && !found) {
                size_t n = strcspn(path, ":");
                char *full = xasprintf("%.*s/%s", (int)n, path, name);

                found = access(full, X_OK) == 0;
                free(full);
                path += n + (path[n] == ':');
        }
        return found;
}

/* `train.bin` means ./train.bin when that is what there is, as with mpirun. */
static void find_program(struct run *r)
{
        char **name = r->o.argv.v, *here, *full;

        /* A plan needs no program. */
        if (!name || strchr(*name, '/') || in_path(*name))
                return;
        full = xasprintf("%s/%s", r->cwd, *name);
        if (access(full, F_OK) == 0) {
                here = xasprintf("./%s", *name);
                free(*name);
                *name = here;
        }
        free(full);
}

static void find_cwd(struct run *r)
{
        char *here = getcwd(NULL, 0);

        if (!r->o.chdir)
                r->cwd = here ? here : xstrdup("/");
        else if (*r->o.chdir == '/')
                r->cwd = xstrdup(r->o.chdir);
        else
                r->cwd = xasprintf("%s/%s", here ? here : "", r->o.chdir);
        if (r->cwd != here)
                free(here);
}

/* While much is being hashed. */
static void hashing(void *ctx, uint64_t bytes)
{
        struct run *r = ctx;

        events_emit(&r->events, (struct event){ .kind = EVENT_PUSH_HASHING,
                                                .node = -1,
                                                .rank = -1,
                                                .value = (int64_t)bytes });
}

/* 0, or the exit code. Before any node is touched. */
static int pack(struct run *r)
{
        const struct parcel_watch watch = { hashing, r };

        r->here = getcwd(NULL, 0);
        if (!r->here)
                r->here = xstrdup("/");
        if (!r->o.push.n)
                return 0;
        strv_env_set(&r->env, HN_PUSH_DIR, r->here); /* other nodes put their own folder there */
        return parcel_pack(&r->parcel, &r->o.push, r->here, &watch, &r->diags) < 0 ? nothing(r, 66)
                                                                                   : 0;
}

/* --- connecting and planning ------------------------------------------------------------------ */

static void tick(void *ctx)
{
        progress_tick(ctx);
}

static bool any_remote(const struct run *r)
{
        for (size_t i = 0; i < r->hosts.n; i++)
                if (!r->hosts.v[i].local)
                        return true;
        return false;
}

static int no_way(struct run *r, const struct error *err)
{
        struct diag *d = diag_add(&r->diags, 103, 69, "%s", err->text);

        if (err->code == ELIBACC && !r->o.ssh_command)
                diag_help(d, "--ssh-command ssh goes without it");
        return nothing(r, 69);
}

static int connect_all(struct run *r)
{
        struct error err;
        int rc;

        r->agent = r->o.agent ? xstrdup(r->o.agent) : image_path(&err);
        if (!r->agent ||
            (any_remote(r) && images_load(&r->images, r->agent, !r->o.agent, &err) < 0))
                return nothing_because(r, 102, 69, &err);
        r->config.options = &r->o;
        r->config.hosts = &r->hosts;
        r->config.images = &r->images;
        r->config.agent_path = r->agent;
        r->config.events = &r->events;
        r->config.tick = tick;
        r->config.tick_ctx = r->progress;
        r->config.say = say_now;
        r->config.say_ctx = r;
        r->job = job_create(&r->config, &err);
        if (!r->job)
                return no_way(r, &err);
        rc = job_connect(r->job);
        if (rc == JOB_INTERRUPTED)
                return nothing(r, outcome_exit_code(job_outcome(r->job)));
        if (rc < 0) {
                report_nodes(&r->diags, r->job, &r->hosts);
                return nothing(r, 68);
        }
        return 0;
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
                *inv = (struct plan_inventory){ true, (int)h->n_gpus, (int)h->cores, index };
        }
        if (r->o.local && !r->o.local_n)
                r->hosts.v[0].slots =
                        r->inventory[0].gpus ? r->inventory[0].gpus : MAX(r->inventory[0].cores, 1);
}

static int make_plan(struct run *r)
{
        return plan_build(&r->plan, &r->hosts, r->inventory, &r->o.plan, &r->diags) < 0
                       ? nothing(r, 69)
                       : 0;
}

static int print_plan(struct run *r)
{
        int rc = pack(r);

        if (!rc && r->o.probe)
                rc = connect_all(r);
        if (rc)
                return rc;
        if (r->o.probe)
                take_inventory(r);
        rc = make_plan(r);
        if (rc)
                return rc;
        if (r->o.json)
                plan_print_json(stdout, &r->plan, &r->hosts, &r->o, &r->parcel, r->o.probe);
        else if (r->o.ranks.n)
                plan_print_ranks(stdout, &r->plan, &r->hosts, &r->o);
        else
                plan_print_table(stdout, &r->plan, &r->hosts, &r->o, &r->parcel, r->o.probe);
        say(r);
        return 0;
}

/* --- running ---------------------------------------------------------------------------------- */

static int choose_shown(struct run *r)
{
        const char *p = r->o.show;
        int n = r->plan.world_size, from, to, used;

        if (!p || !strcmp(p, "all"))
                return 0;
        r->shown = xcalloc((size_t)n, sizeof(*r->shown));
        while (*p) {
                if (sscanf(p, "%d-%d%n", &from, &to, &used) == 2)
                        p += used;
                else if (sscanf(p, "%d%n", &from, &used) == 1)
                        p += used, to = from;
                else
                        from = -1;
                if (from < 0 || to < from || to >= n || (*p && *p != ',')) {
                        diag_help(diag_add(&r->diags, 104, 64, "--show %s: not ranks of 0 to %d",
                                           r->o.show, n - 1),
                                  "for example --show 0,8-15 or --show all");
                        return nothing(r, 64);
                }
                memset(r->shown + from, true, (size_t)(to - from + 1));
                p += *p == ',';
        }
        return 0;
}

static const char *choose_label(const struct run *r)
{
        if (r->o.label == LABEL_NONE || (r->o.label == LABEL_AUTO && r->plan.world_size == 1))
                return NULL;
        if (r->o.label == LABEL_TEMPLATE)
                return r->o.label_template;
        return r->plan.num_nodes > 1 ? "{host}:{rank} | " : "{rank} | ";
}

/* A background job of a terminal would be stopped by its first read. */
static int choose_stdin(struct run *r, struct error *err)
{
        switch (r->o.stdin_mode) {
        case STDIN_NONE:
                break;
        case STDIN_FILE:
                r->stdin_fd = open(r->o.stdin_file, O_RDONLY | O_CLOEXEC);
                if (r->stdin_fd < 0)
                        return err_set(err, errno, "cannot read %s: %s", r->o.stdin_file,
                                       strerror(errno));
                break;
        case STDIN_AUTO:
                if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp())
                        r->stdin_fd = STDIN_FILENO;
                break;
        default:
                r->stdin_fd = STDIN_FILENO;
        }
        return 0;
}

static void verdict(struct run *r, int code)
{
        const struct outcome *o = job_outcome(r->job);
        const char *host = o->cause.node >= 0 ? r->hosts.v[o->cause.node].name : "";
        char took[32], what[700];

        format_duration(took, sizeof(took), events_now_us(&r->events));
        if (!outcome_failed(o)) {
                snprintf(r->verdict, sizeof(r->verdict), "finished: %d rank%s exited 0 in %s",
                         r->plan.world_size, r->plan.world_size == 1 ? "" : "s", took);
                return;
        }
        outcome_sentence(o, host, what, sizeof(what));
        snprintf(r->verdict, sizeof(r->verdict), "%s after %s: %s  (exit %d)",
                 o->cause.kind == CAUSE_ORDER ? "stopped" : "failed", took, what, code);
}

/* All ranks did well, but what they said is not where it was to be. */
static int logs_failed(struct run *r)
{
        snprintf(r->verdict, sizeof(r->verdict),
                 "all ranks exited 0, but the log folder could not be written  (exit 73)");
        return 73;
}

/* What is missing in the run directory is always told, but decides only when nothing worse did. */
static int count_lost(struct run *r, int code)
{
        size_t lost = job_lost_bytes(r->job);
        const char *dir = rundir_path(r->dir);

        if (lost && code)
                diag_warn(&r->diags, 901, "%zu bytes of output are missing in %s", lost, dir);
        else if (lost)
                diag_add(&r->diags, 901, 73, "%zu bytes of output are missing in %s", lost, dir);
        return lost && !code ? logs_failed(r) : code;
}

/* The exit code, once the verdict is in the run directory, too. */
static int record(struct run *r, int code)
{
        const struct outcome *o = job_outcome(r->job);
        struct error err;

        if (rundir_write_summary(r->dir, o, &r->hosts, code, r->verdict, events_now_us(&r->events),
                                 &err) < 0) {
                diag_warn(&r->diags, 902, "%s", err.text);
                code = code ? code : logs_failed(r);
        }
        events_emit(&r->events, (struct event){ .kind = EVENT_RUN_END,
                                                .node = -1,
                                                .rank = o->cause.kind ? o->cause.rank : -1,
                                                .value = code,
                                                .text = r->verdict });
        return code;
}

static int finish(struct run *r)
{
        int code = outcome_exit_code(job_outcome(r->job));

        verdict(r, code);
        code = count_lost(r, code);
        job_last_diags(r->job, &r->diags);
        report_failure(&r->diags, r->job, &r->hosts, &r->plan, &r->o);
        code = record(r, code);
        say(r);
        if (!r->o.quiet || code)
                fprintf(stderr, "hnlaunch: %s\n", r->verdict);
        if (job_hurried(r->job)) {
                /* A write to a reader that never reads cannot be waited for. */
                fflush(stderr);
                _exit(code);
        }
        return code;
}

/* The nodes get their files. */
static int push(struct run *r)
{
        struct error err = { 0 };
        int rc = r->o.push.n ? job_push(r->job, &r->plan, &r->parcel, &err) : 0;

        switch (rc) {
        case 0:
                return 0;
        case JOB_INTERRUPTED:
                return nothing(r, outcome_exit_code(job_outcome(r->job)));
        case -EHOSTUNREACH:
                report_nodes(&r->diags, r->job, &r->hosts);
                return nothing(r, 68);
        case -EIO:
                report_push(&r->diags, r->job, &r->hosts);
                return nothing(r, 69);
        default:
                diag_help(diag_add(&r->diags, 237, 66, "--push: %s", err.text),
                          "start again when nobody writes to what is pushed");
                return nothing(r, 66);
        }
}

/* PyTorch's store, reached by all nodes; see head/job_door.h. */
static int open_door(struct run *r)
{
        struct error err = { 0 };
        int rc = job_open_door(r->job, &r->plan, &err);

        switch (rc) {
        case 0:
                return 0;
        case JOB_INTERRUPTED:
                return nothing(r, outcome_exit_code(job_outcome(r->job)));
        case -EHOSTUNREACH:
                report_nodes(&r->diags, r->job, &r->hosts);
                return nothing(r, 68);
        case -ENETUNREACH:
                report_door(&r->diags, r->job, &r->hosts, &r->o);
                return nothing(r, 69);
        default:
                return nothing_because(r, 320, 69, &err);
        }
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
                                   ? parcel_place(&r->parcel, r->here, *r->o.argv.v)
                                   : NULL,
                .dir = rundir_path(r->dir),
                .label = r->label,
                .shown = r->shown,
                .raw = r->o.raw,
                .partial = isatty(STDOUT_FILENO),
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
        int rc = r->o.push.n ? job_push(r->job, &r->plan, &r->parcel, &err) : 0;

        if (rc == -EIO)
                report_push(&r->diags, r->job, &r->hosts);
        if (rc < 0)
                job_unreachable(r->job, *err.text ? err.text : "files cannot be brought there");
        if (rc)
                return rc;
        rc = job_open_door(r->job, &r->plan, &err);
        if (rc == -ENETUNREACH)
                report_door(&r->diags, r->job, &r->hosts, &r->o);
        if (rc < 0)
                job_unreachable(r->job, *err.text ? err.text : "the store's door does not open");
        return rc;
}

/* Attempt after attempt. Before the first an error means that nothing was started. */
static int run_attempts(struct run *r)
{
        int rc = push(r);

        if (!rc)
                rc = open_door(r);
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
        return finish(r);
}

static int run_job(struct run *r)
{
        struct error err;
        int rc;

        if (environment_collect(&r->o, environ, &r->env, &r->unset, &r->diags) < 0)
                return nothing(r, 66);
        if (choose_stdin(r, &err) < 0)
                return nothing_because(r, 124, 66, &err);
        rc = pack(r);
        if (rc)
                return rc;
        r->dir = rundir_create(&r->events, r->o.log_dir, r->config.run_id, r->o.json, &err);
        if (!r->dir)
                return nothing_because(r, 903, 73, &err);
        rc = connect_all(r);
        if (rc)
                return rc;
        take_inventory(r);
        rc = make_plan(r);
        if (!rc)
                rc = choose_shown(r);
        if (rc)
                return rc;
        if (rundir_write_run(r->dir, &r->o, &r->hosts, &r->plan, r->cwd, &err) < 0)
                return nothing_because(r, 903, 73, &err);
        r->label = choose_label(r) ? xstrdup(choose_label(r)) : NULL;
        say(r);
        return run_attempts(r);
}

/* --- from the first line to the last ---------------------------------------------------------- */

static bool choose_color(const struct options *o)
{
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

        if (o->color != AUTO)
                return o->color == YES;
        return isatty(STDERR_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

static void prepare(struct run *r)
{
        struct progress_options po = { .quiet = r->o.quiet || r->o.progress == PROGRESS_NONE ||
                                                r->o.command != COMMAND_RUN };

        static const enum log_level levels[] = { LOG_WARN, LOG_INFO, LOG_DEBUG };

        log_set_level(r->o.quiet ? LOG_ERROR : levels[MIN(MAX(r->o.verbose, 0), 2)]);
        r->color = choose_color(&r->o);
        for (size_t i = 0; i < 5; i++)
                r->config.run_id[i] = "abcdefghijkmnpqrstuvwxyz23456789"[randombytes_uniform(32)];
        find_cwd(r);
        find_program(r);
        po.tty = r->o.progress == PROGRESS_TTY ||
                 (r->o.progress == PROGRESS_AUTO && isatty(STDERR_FILENO) &&
                  strcmp(getenv("TERM") ? getenv("TERM") : "dumb", "dumb") != 0);
        po.color = r->color;
        po.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
        po.n_hosts = r->hosts.n;
        po.remote = any_remote(r);
        po.run_id = r->config.run_id;
        po.source = r->source;
        r->progress = progress_create(&r->events, &po);
}

static void forget(struct run *r)
{
        job_destroy(r->job);
        progress_destroy(r->progress);
        rundir_destroy(r->dir);
        for (size_t i = 0; r->inventory && i < r->hosts.n; i++)
                free((void *)(uintptr_t)r->inventory[i].gpu_index);
        free(r->inventory);
        plan_finish(&r->plan);
        hosts_finish(&r->hosts);
        strv_finish(&r->env);
        strv_finish(&r->unset);
        images_finish(&r->images);
        parcel_finish(&r->parcel);
        options_finish(&r->o);
        diags_finish(&r->diags);
        free(r->cwd);
        free(r->here);
        free(r->agent);
        free(r->source);
        free(r->label);
        free(r->shown);
}

static int launch(struct run *r)
{
        int rc = load_hosts(r);

        if (rc) {
                r->where = r->o.hostfiles.n == 1 && !r->o.hostlists.n ? r->o.hostfiles.v[0] : NULL;
                return nothing(r, rc);
        }
        prepare(r);
        return r->o.command == COMMAND_PLAN ? print_plan(r) : run_job(r);
}

static int command(struct run *r, int argc, char **argv)
{
        if (options_load(&r->o, argc, argv, &r->diags) < 0) {
                r->color = choose_color(&r->o);
                return nothing(r, 64);
        }
        switch (r->o.command) {
        case COMMAND_HELP:
                options_print_help(r->o.help_topic);
                return 0;
        case COMMAND_VERSION:
                options_print_version();
                return 0;
        case COMMAND_CONFIG:
                options_print_config(&r->o);
                say(r);
                return 0;
        default:
                return launch(r);
        }
}

int main(int argc, char **argv)
{
        struct run r = { .stdin_fd = -1, .parcel = PARCEL_INIT };
        int rc, signo;

        setlocale(LC_CTYPE, "");
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a log that may not grow is an error of write() */
        events_init(&r.events);
        if (sodium_init() < 0) {
                fputs("hnlaunch: cannot get random bytes from this system\n", stderr);
                return 125;
        }
        rc = command(&r, argc, argv);
        signo = r.job && job_outcome(r.job)->cause.kind == CAUSE_ORDER
                        ? job_outcome(r.job)->cause.signal
                        : 0;
        forget(&r);
        if (signo) {
                /* Die of what we were told to die of, so that shells and make stop, too. */
                fflush(NULL);
                signal(signo, SIG_DFL);
                raise(signo);
        }
        return rc;
}
