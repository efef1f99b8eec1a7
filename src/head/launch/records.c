/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each run has records below the user's state folder, or in --log-dir with a link there. Records
 * must not harm the run: a failure is one warning.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/token.h"
#include "head/launch/launch_private.h"
#include "head/output/progress.h"
#include "head/output/say.h"
#include "head/run/recorder.h"
#include "head/run/run_folders.h"

enum {
        RUN_ID_LEN = 5,    /* 25 bits */
        RECORDS_MS = 2000, /* for the records at the end of a run */
};

/* Returns the folder of --log-dir as an absolute path, malloc'ed: the link to it is elsewhere. */
static char *find_log_folder(const char *path)
{
        CLEANUP(free_textp) char *here = *path == '/' ? NULL : getcwd(NULL, 0);

        return here ? xasprintf("%s/%s", here, path) : xstrdup(path);
}

/* Returns the recorder of the run; NULL = there is no home. Older runs are kept up to 2 GiB. */
static struct recorder *make_recorder(const struct launch *l, const char *log_dir)
{
        CLEANUP(free_textp) char *folder = run_folders_records();
        CLEANUP(free_textp) char *dir = log_dir ? find_log_folder(log_dir) : NULL;
        CLEANUP(free_textp)
        char *elsewhere = dir ? xasprintf("%s/%s", dir, l->config->run_id) : NULL;
        struct recorder_keep keep = { l->o->log_keep, INT64_C(2) << 30 };

        return folder ? recorder_create(folder, l->config->run_id, elsewhere, keep) : NULL;
}

/* Warns if other users may write in @dir: without the sticky bit they can replace the user's own
 * folders of runs below. */
static void warn_of_others(struct launch *l, const char *dir)
{
        struct stat st;

        if (stat(dir, &st) < 0 || !(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX))
                return;
        diag_help(diag_warn(&l->diags, HN_RECORDS_WRITABLE,
                            "others may replace the records of this run: they may write in %s "
                            "(mode %04o)",
                            dir, (unsigned)st.st_mode & 07777),
                  "chmod go-w %s, or chmod +t %s", dir, dir);
}

int records_begin(struct launch *l)
{
        bool none = l->o->log_dir && !strcmp(l->o->log_dir, "none");
        const char *dir = none ? NULL : l->o->log_dir;
        struct recorder *recorder = NULL;
        struct error err;

        token_make(l->config->run_id, RUN_ID_LEN);
        if (l->o->command != COMMAND_RUN)
                return 0;
        if (!none)
                recorder = make_recorder(l, dir);
        if (l->streams.detach && !recorder) {
                diag_help(diag_add(&l->diags, HN_NO_PLACE, EX_CANTCREAT,
                                   "there is no home for the output of a run without a terminal"),
                          "set HOME, or leave --detach and --on-hup out");
                return verdict_nothing_started(l, EX_CANTCREAT);
        }
        l->run->dir = run_dir_create(&l->events, dir, l->config->run_id, l->o->json,
                                     l->o->json_file, recorder, &err);
        if (!l->run->dir)
                return verdict_nothing_because(l, HN_NO_LOG_FOLDER, EX_CANTCREAT, &err);
        if (dir)
                warn_of_others(l, dir);
        return 0;
}

int records_prove(struct launch *l)
{
        struct recorder *r = run_dir_recorder(l->run->dir);
        struct error err;

        /* Without a terminal the records have the only copy of the output: ranks start only after
         * the first record is on disk. */
        if (!l->streams.detach || !l->o->detach || !r)
                return 0;
        recorder_open(r);
        if (recorder_await(r, &err) == 0)
                return 0;
        diag_help(diag_add(&l->diags, HN_NO_PLACE, EX_CANTCREAT,
                           "the output of a run without a terminal cannot be kept: %s", err.text),
                  "free space there, set XDG_STATE_HOME to another folder, or leave --detach out");
        return verdict_nothing_started(l, EX_CANTCREAT);
}

/* Keeps a message of hnlaunch, for `hnlaunch attach`. */
static void record_message(void *ctx, const char *text, size_t len)
{
        struct launch *l = ctx;

        recorder_put_output(run_dir_recorder(l->run->dir), events_now_us(&l->events), -1,
                            MSG_STDERR, text, len);
}

bool records_put_output(void *ctx, int rank, uint8_t stream, const void *data, size_t len)
{
        struct launch *l = ctx;

        rank_board_output(l->run->ranks, rank, stream, len);
        watchers_output(l->run->watchers, rank, stream, data, len);
        progress_output(l->run->progress, rank, stream, data, len);
        /* Watchers have the output at once, also when the recorder has no room. */
        return recorder_put_output(run_dir_recorder(l->run->dir), events_now_us(&l->events), rank,
                                   stream, data, len) ||
               !detach_waits_for_room(l);
}

void records_open(struct launch *l)
{
        run_dir_open_records(l->run->dir);
        say_copy_to(record_message, l);
        detach_records(l);
}

void records_end(struct launch *l, int code)
{
        struct recorder *r = run_dir_recorder(l->run->dir);
        const struct diag *first = diags_first_error(&l->diags);
        bool told = (first && first->id == HN_NO_PLACE) ||
                    (l->run->job && job_logs_failed(l->run->job)) || l->end.record_told;
        struct error err = { 0 };

        say_copy_to(NULL, NULL);
        /* Errors of these records or of --log-dir may have been told. */
        if (r && recorder_finish(r, RECORDS_MS, &err) < 0 && !told)
                diag_help(diag_warn(&l->diags, HN_RECORDS_INCOMPLETE,
                                    "the records of this run are incomplete: %s", err.text),
                          "--log-dir none keeps none, --log-dir DIR keeps them elsewhere");
        run_socket_tell_end(l->run->socket, code, l->end.verdict, err.code ? err.text : NULL);
}
