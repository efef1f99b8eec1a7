/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each run has a socket while it lasts, and records below the user's state folder, or in --log-dir
 * with a link there. Neither may harm the run: what fails is one warning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/token.h"
#include "head/core/json_text.h"
#include "head/launch_private.h"
#include "head/look.h"
#include "head/output/say.h"
#include "head/run/recorder.h"
#include "head/run/run_folders.h"
#include "head/top_feed.h"

enum {
        HN_NO_RECORDS = 805,
        HN_NO_SOCKET = 806,
        HN_NO_PLACE = 822,
        HN_OTHERS_MAY_WRITE = 824,
        RUN_ID_LEN = 5, /* 25 bits */
        RECORDS_MS = 2000,
};

/* --- records ---------------------------------------------------------------------------------- */

static char *find_log_folder(const char *path)
{
        CLEANUP(free_textp) char *here = *path == '/' ? NULL : getcwd(NULL, 0);

        return here ? xasprintf("%s/%s", here, path) : xstrdup(path);
}

static struct recorder *make_recorder(const struct launch *l, const char *log_dir)
{
        CLEANUP(free_textp) char *folder = run_folders_records();
        CLEANUP(free_textp) char *dir = log_dir ? find_log_folder(log_dir) : NULL;
        CLEANUP(free_textp)
        char *elsewhere = dir ? xasprintf("%s/%s", dir, l->config.run_id) : NULL;
        struct recorder_keep keep = { l->o.log_keep, INT64_C(2) << 30 };

        return folder ? recorder_create(folder, l->config.run_id, elsewhere, keep) : NULL;
}

/* Folders of runs below @dir are the user's own, but another user who may write @dir can replace
 * them, unless it has the sticky bit. */
static void warn_of_others(struct launch *l, const char *dir)
{
        struct stat st;

        if (stat(dir, &st) < 0 || !(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX))
                return;
        diag_help(diag_warn(&l->diags, HN_OTHERS_MAY_WRITE,
                            "others may replace the records of this run: they may write in %s "
                            "(mode %04o)",
                            dir, (unsigned)st.st_mode & 07777),
                  "chmod go-w %s, or chmod +t %s", dir, dir);
}

int launch_record_begin(struct launch *l)
{
        bool none = l->o.log_dir && !strcmp(l->o.log_dir, "none");
        const char *dir = none ? NULL : l->o.log_dir;
        struct recorder *recorder = NULL;
        struct error err;

        token_make(l->config.run_id, RUN_ID_LEN);
        if (l->o.command != COMMAND_RUN)
                return 0;
        if (!none)
                recorder = make_recorder(l, dir);
        if (l->streams.detach && !recorder) {
                diag_help(diag_add(&l->diags, HN_NO_PLACE, 73,
                                   "there is no home for the output of a run without a terminal"),
                          "set HOME, or leave --detach and --on-hup out");
                return verdict_nothing_started(l, 73);
        }
        l->run.dir = run_dir_create(&l->events, dir, l->config.run_id, l->o.json, l->o.json_file,
                                    recorder, &err);
        if (!l->run.dir)
                return verdict_nothing_because(l, 903, 73, &err);
        if (dir)
                warn_of_others(l, dir);
        return 0;
}

int launch_record_prove(struct launch *l)
{
        struct recorder *r = run_dir_recorder(l->run.dir);
        struct error err;

        if (!l->streams.detach || !l->o.detach || !r)
                return 0;
        recorder_open(r);
        if (recorder_await(r, &err) == 0)
                return 0;
        diag_help(diag_add(&l->diags, HN_NO_PLACE, 73,
                           "the output of a run without a terminal cannot be kept: %s", err.text),
                  "free space there, set XDG_STATE_HOME to another folder, or leave --detach out");
        return verdict_nothing_started(l, 73);
}

/* Keeps a message of hnlaunch, for `hnlaunch attach`. */
static void record_message(void *ctx, const char *text, size_t len)
{
        struct launch *l = ctx;

        recorder_put_output(run_dir_recorder(l->run.dir), events_now_us(&l->events), -1, MSG_STDERR,
                            text, len);
}

void launch_record_open(struct launch *l)
{
        run_dir_open_records(l->run.dir);
        say_copy_to(record_message, l);
        launch_detach_records(l);
}

void launch_record_end(struct launch *l, int code)
{
        struct recorder *r = run_dir_recorder(l->run.dir);
        const struct diag *first = diags_first_error(&l->diags);
        bool told = (first && first->id == HN_NO_PLACE) ||
                    (l->run.job && job_logs_failed(l->run.job)) || l->end.record_told;
        struct error err = { 0 };

        say_copy_to(NULL, NULL);
        if (r && recorder_finish(r, RECORDS_MS, &err) < 0 && !told)
                diag_help(diag_warn(&l->diags, HN_NO_RECORDS,
                                    "the records of this run are incomplete: %s", err.text),
                          "--log-dir none keeps none, --log-dir DIR keeps them elsewhere");
        run_socket_tell_end(l->run.socket, code, l->end.verdict, err.code ? err.text : NULL);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Returns for how long a run that stands still has had no step, or without steps no sign of life,
 * in milliseconds; 0 = it does not. */
static int64_t find_stalled_ms(const struct launch *l)
{
        const struct step_pace *p = &l->ranks.pace;
        int64_t hang_ms = job_hang_ms(l->run.job),
                silent_us = events_now_us(&l->events) - p->had_us;

        if (!p->had_us)
                return hang_ms;
        return hang_ms || step_pace_is_still(silent_us, step_pace_step_us(p)) ? silent_us / 1000
                                                                              : 0;
}

/* Adds the step of the slowest rank, if ranks tell steps, and unless they stand still the time for
 * those that are left at the mean pace. */
static void add_step(const struct launch *l, json_t *j, bool still)
{
        const struct step_pace *p = &l->ranks.pace;
        const struct rank_board_steps s = rank_board_steps(&l->ranks);
        int64_t done = s.least - p->first;

        if (!s.told)
                return;
        json_object_set_new(j, "step", json_integer((json_int_t)s.least));
        json_object_set_new(j, "total", s.total ? json_integer((json_int_t)s.total) : json_null());
        if (s.total > s.least && done > 0 && !still)
                json_object_set_new(
                        j, "left_ms",
                        json_integer(
                                (json_int_t)((double)(s.total - s.least) / (double)done *
                                             (double)(events_now_us(&l->events) - p->first_us) /
                                             1000)));
}

static json_t *describe_launch(void *ctx)
{
        const struct launch *l = ctx;
        json_t *j = run_dir_describe(&l->o, l->config.run_id, l->cwd, l->events.start_ns);
        int64_t stalled_ms = find_stalled_ms(l);

        json_object_set_new(j, "state", json_string(job_doing(l->run.job)));
        json_object_set_new(j, "us", json_integer((json_int_t)events_now_us(&l->events)));
        json_object_set_new(
                j, "num_nodes",
                json_integer(l->plan.n_nodes ? l->plan.num_nodes : (json_int_t)l->hosts.n));
        json_object_set_new(j, "world_size", json_integer(l->plan.world_size));
        json_object_set_new(j, "silent_nodes",
                            json_integer((json_int_t)job_silent_nodes(l->run.job)));
        json_object_set_new(j, "detached", json_boolean(l->run.detached));
        if (stalled_ms)
                json_object_set_new(j, "stalled_ms", json_integer((json_int_t)stalled_ms));
        add_step(l, j, stalled_ms);
        return j;
}

static void stop_launch(void *ctx, int64_t grace_ms, int pid)
{
        struct launch *l = ctx;

        job_order_stop(l->run.job, grace_ms, pid);
}

static void signal_launch(void *ctx, int signo)
{
        struct launch *l = ctx;

        job_signal_ranks(l->run.job, signo);
}

static void show_status(void *ctx)
{
        struct launch *l = ctx;

        job_show_status(l->run.job);
}

static int lend_stdin(void *ctx, int fd, struct error *err)
{
        struct launch *l = ctx;

        return job_lend_stdin(l->run.job, fd, err);
}

static void end_stdin(void *ctx)
{
        struct launch *l = ctx;

        job_end_stdin(l->run.job);
}

static void explain_launch(void *ctx)
{
        const struct launch *l = ctx;

        look_begin(&l->run);
}

static char *look_at_launch(void *ctx)
{
        const struct launch *l = ctx;

        return top_feed_watch(&l->run);
}

static void rest_from_look(void *ctx)
{
        const struct launch *l = ctx;

        top_feed_rest(&l->run);
}

void launch_record_listen(struct launch *l)
{
        static const struct run_socket_ops ops = {
                describe_launch, stop_launch,    signal_launch,  show_status,   lend_stdin,
                end_stdin,       explain_launch, look_at_launch, rest_from_look
        };
        struct error err = { 0 };

        if (l->o.command != COMMAND_RUN)
                return;
        /* Another run that ends may remove the folder in between, which libuv calls EACCES. */
        for (int i = 0; i < 2 && !l->run.socket && (!i || err.code == EACCES); i++) {
                CLEANUP(free_textp) char *folder = run_folders_sockets(true, &err);
                CLEANUP(free_textp)
                char *path = folder ? run_folders_socket(folder, l->config.run_id) : NULL;

                if (path)
                        l->run.socket = run_socket_open(job_loop(l->run.job), path, ops, l, &err);
        }
        if (!l->run.socket)
                diag_warn(&l->diags, HN_NO_SOCKET, "hnlaunch ps and stop cannot see this run: %s",
                          err.text);
}
