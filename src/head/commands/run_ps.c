/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first half describes a run cell by cell, from the answer or the records. The table has the
 * running runs first and a few ended ones below. The column LEFT is shown only if a run has an
 * estimate, on a terminal STEP only if a run has told a step; a narrow terminal has fewer columns
 * (text_table.h). --json prints the same runs with the fields of their descriptions. --watch
 * repeats until the reader of standard output is gone. Holds follow in a table of their own.
 */
#include "head/commands/run_ps.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/strv.h"
#include "head/commands/run_holds.h"
#include "head/core/json_text.h"
#include "head/core/shell_words.h"
#include "head/output/say.h"
#include "head/output/text_table.h"
#include "head/term/columns.h"

enum {
        ENDED_SHOWN = 5, /* without --all */
        WATCH_S = 2,     /* between two looks of --watch */
};

enum ps_column {
        PS_RUN,
        PS_STARTED,
        PS_TIME,
        PS_HOST,
        PS_NODES,
        PS_RANKS,
        PS_STEP,
        PS_LEFT,
        PS_STATE,
        PS_PROGRAM,
        PS_COLUMNS,
};

static const struct text_column ps_columns[PS_COLUMNS] = {
        [PS_RUN] = { "RUN", 0, 0, 0 },
        [PS_STARTED] = { "STARTED", 0, 6, 0 },
        [PS_TIME] = { "TIME", TEXT_RIGHT, 2, 0 },
        [PS_HOST] = { "HOST", 0, 7, 0 },
        [PS_NODES] = { "NODES", TEXT_RIGHT, 5, 0 },
        [PS_RANKS] = { "RANKS", TEXT_RIGHT, 4, 0 },
        [PS_STEP] = { "STEP", TEXT_RIGHT, 1, 0 },
        [PS_LEFT] = { "LEFT", TEXT_RIGHT, 3, 0 },
        [PS_STATE] = { "STATE", 0, 0, 8 },
        [PS_PROGRAM] = { "PROGRAM", TEXT_TRUNCATE, 0, 16 },
};

/* Returns the word for the column STATE, malloc'ed; a running run has sent the word. */
char *run_state_text(const struct run *r)
{
        json_int_t code = json_integer_value(json_object_get(r->summary, "code"));

        switch (r->state) {
        case RUN_GOES_ON:
                return xstrdup(json_member(r->info, "state"));
        case RUN_SILENT:
                return xstrdup("silent");
        case RUN_ELSEWHERE:
                return xasprintf("on %s", json_member(r->info, "host"));
        case RUN_LOST:
                return xstrdup("killed");
        case RUN_ENDED:
                break;
        }
        if (!code)
                return xstrdup("finished");
        /* A signal to hnlaunch itself, as by `hnlaunch stop`, is no failure of the job. */
        return xasprintf(json_object_get(r->summary, "signal") &&
                                         !strcmp(json_member(r->summary, "origin"), "launcher")
                                 ? "stopped (%lld)"
                                 : "failed (%lld)",
                         (long long)code);
}

/* Appends ", role b waits for a", of several roles that of the first with the number of others. */
static void put_waiting_roles(const struct run *r, struct buf *to)
{
        const json_t *waits = json_object_get(r->info, "waits");
        size_t n = json_array_size(waits);

        if (!n || r->state != RUN_GOES_ON)
                return;
        buf_printf(to, ", %s", json_member(json_array_get(waits, 0), "text"));
        if (n > 1)
                buf_printf(to, ", %zu more role%s", n - 1, n == 2 ? " waits" : "s wait");
}

/* The state, the attempt with the spare hosts left, how many nodes are silent, for which roles
 * others wait, and for how long the run stands still. */
static char *describe_state_cell(const struct run *r)
{
        json_int_t silent = json_integer_value(json_object_get(r->info, "silent_nodes"));
        json_int_t stalled_ms = json_integer_value(json_object_get(r->info, "stalled_ms"));
        json_int_t attempt = json_integer_value(json_object_get(r->info, "attempt"));
        json_int_t spares = json_integer_value(json_object_get(r->info, "spares"));
        CLEANUP(free_textp) char *state = run_state_text(r);
        struct buf b = BUF_INIT;
        char text[32];

        buf_appends(&b, state);
        if (r->state == RUN_GOES_ON && attempt > 1)
                buf_printf(&b, ", attempt %lld", (long long)attempt);
        if (r->state == RUN_GOES_ON && attempt > 1 && spares)
                buf_printf(&b, ", %lld spare%s left", (long long)spares, spares == 1 ? "" : "s");
        if (r->state == RUN_GOES_ON && silent)
                buf_printf(&b, ", %lld node%s silent", (long long)silent, silent == 1 ? "" : "s");
        put_waiting_roles(r, &b);
        if (r->state == RUN_GOES_ON && stalled_ms) {
                format_duration(text, sizeof(text), stalled_ms / 1000 * 1000000);
                buf_printf(&b, ", %s for %s",
                           json_object_get(r->info, "step") &&
                                           !json_is_true(json_object_get(r->info, "hangs"))
                                   ? "no step"
                                   : "hangs",
                           text);
        }
        return buf_steal(&b);
}

/* Returns the start in local time, without seconds; "" = unknown. */
static char *describe_start(const struct run *r)
{
        struct tm tm = { 0 };
        char text[32];
        time_t t;

        if (!strptime(json_member(r->info, "started"), "%Y-%m-%dT%H:%M:%S", &tm))
                return xstrdup("");
        t = timegm(&tm);
        localtime_r(&t, &tm);
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
        return xstrdup(text);
}

/* Returns how long the run has taken; "" of a run whose answer or summary is missing. */
static char *describe_time(const struct run *r)
{
        const json_t *us = json_object_get(r->summary ? r->summary : r->info, "us");
        char text[32] = "";

        if (us)
                format_duration(text, sizeof(text), json_integer_value(us));
        return xstrdup(text);
}

char *run_program_text(const struct run *r)
{
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        const json_t *word;
        size_t i;

        json_array_foreach(json_object_get(r->info, "argv"), i, word)
                strv_push(&words, json_is_string(word) ? json_string_value(word) : "");
        return shell_words_join(&words);
}

/* Of the last attempt, which may be smaller than the first. */
static char *describe_size(const struct run *r, const char *name)
{
        const json_t *last = json_object_get(r->summary, name);

        return xasprintf("%lld", (long long)json_integer_value(
                                         last ? last : json_object_get(r->info, name)));
}

/* "12/40", also of a run that has ended */
static char *describe_steps(const struct run *r)
{
        const json_t *from = r->summary ? r->summary : r->info;
        const json_t *step = json_object_get(from, "step");
        json_int_t total = json_integer_value(json_object_get(from, "total"));

        if (!step)
                return xstrdup("");
        return total ? xasprintf("%lld/%lld", (long long)json_integer_value(step), (long long)total)
                     : xasprintf("%lld", (long long)json_integer_value(step));
}

/* Whether a run stands still before the last step. */
static bool shows_no_left(const struct run *r)
{
        return r->state == RUN_GOES_ON && json_object_get(r->info, "stalled_ms") &&
               json_integer_value(json_object_get(r->info, "total")) >
                       json_integer_value(json_object_get(r->info, "step"));
}

/* "5m25s" of a running run; "-" of a run at a standstill with steps left */
static char *describe_left(const struct run *r)
{
        const json_t *ms = json_object_get(r->info, "left_ms");
        char text[32] = "";

        if (shows_no_left(r))
                return xstrdup("-");
        if (ms && r->state == RUN_GOES_ON)
                format_duration(text, sizeof(text), json_integer_value(ms) * 1000);
        return xstrdup(text);
}

static void describe_run_row(char **cells, const struct run *r)
{
        cells[PS_RUN] = xstrdup(r->id);
        cells[PS_STARTED] = describe_start(r);
        cells[PS_TIME] = describe_time(r);
        cells[PS_HOST] = xstrdup(json_member(r->info, "host"));
        cells[PS_NODES] = describe_size(r, "num_nodes");
        cells[PS_RANKS] = describe_size(r, "world_size");
        cells[PS_STEP] = describe_steps(r);
        cells[PS_LEFT] = describe_left(r);
        cells[PS_STATE] = describe_state_cell(r);
        cells[PS_PROGRAM] = run_program_text(r);
}

/* Whether the run has ended or is lost. */
static bool is_over(const struct run *r)
{
        return r->state == RUN_ENDED || r->state == RUN_LOST;
}

/* --- the table -------------------------------------------------------------------------------- */

/* Whether no row has a text in the column. */
static bool column_is_empty(const struct text_table *t, enum ps_column column)
{
        for (size_t i = 0; i < t->n_rows; i++)
                if (*t->rows[i][column])
                        return false;
        return true;
}

/* Returns a table of the runs that go on, and behind them of the last @ended others, malloc'ed;
 * adds to *@hidden how many are in no row. */
static char *make_runs_table(const struct run_list *l, size_t ended, size_t *hidden)
{
        CLEANUP(text_table_finish)
        struct text_table t = { .columns = ps_columns,
                                .n_columns = PS_COLUMNS,
                                .width = isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO)
                                                               : 0 };

        for (size_t i = 0; i < l->n; i++)
                if (!is_over(&l->v[i]))
                        describe_run_row(text_table_add(&t), &l->v[i]);
        for (size_t i = 0; i < l->n; i++) {
                if (!is_over(&l->v[i]))
                        continue;
                if (ended)
                        describe_run_row(text_table_add(&t), &l->v[i]);
                else
                        ++*hidden;
                ended -= ended > 0;
        }
        t.hidden[PS_LEFT] = column_is_empty(&t, PS_LEFT);
        t.hidden[PS_STEP] = t.width && column_is_empty(&t, PS_STEP);
        return text_table_format(&t);
}

static void print_runs_json(const struct run_list *l, const json_t *holds)
{
        json_t *runs = json_array();

        for (size_t i = 0; i < l->n; i++) {
                const struct run *r = &l->v[i];
                CLEANUP(free_textp) char *state = run_state_text(r);
                static const char *const of_summary[] = { "us",        "code", "hn",
                                                          "verdict",   "rank", "world_size",
                                                          "num_nodes", "step", "total",
                                                          "step_role" };
                static const char *const of_info[] = {
                        "host",       "pid",          "started",   "us",         "argv",
                        "cwd",        "directory",    "num_nodes", "world_size", "attempt",
                        "spares",     "silent_nodes", "step",      "total",      "left_ms",
                        "stalled_ms", "hangs",        "step_role", "waits"
                };
                json_t *j = json_pack("{s:s, s:s, s:b}", "run", r->id, "state", state, "running",
                                      r->state == RUN_GOES_ON);

                for (size_t k = 0; k < ARRAY_SIZE(of_info); k++)
                        json_object_set(j, of_info[k], json_object_get(r->info, of_info[k]));
                /* The summary is newer than the description, and replaces
                 * members of the same name. */
                for (size_t k = 0; k < ARRAY_SIZE(of_summary); k++)
                        if (json_object_get(r->summary, of_summary[k]))
                                json_object_set(j, of_summary[k],
                                                json_object_get(r->summary, of_summary[k]));
                json_array_append_new(runs, j);
        }
        runs = json_pack("{s:i, s:o, s:O}", "v", 1, "runs", runs, "holds", holds);
        json_write_plain(runs, stdout);
        json_decref(runs);
}

/* Prints all; a terminal is painted over from the top, other output goes on. */
static void print_runs(const struct options *o, const struct run_list *l, const json_t *holds,
                       struct diags *d)
{
        CLEANUP(free_textp) char *held = NULL;
        bool paints = o->ps.watch && isatty(STDOUT_FILENO);
        CLEANUP(free_textp) char *text = NULL;
        size_t hidden = 0;

        if (o->json) {
                print_runs_json(l, holds);
                return;
        }
        text = make_runs_table(l, o->ps.all ? SIZE_MAX : ENDED_SHOWN, &hidden);
        /* The cursor goes to the top left, and the rest of the screen is erased. */
        fputs(paints ? "\033[H\033[J" : "", stdout);
        if (l->n)
                fputs(text, stdout);
        if (json_array_size(holds)) {
                held = run_holds_table(holds);
                printf("%s%s", l->n ? "\n" : "", held);
        }
        if (!l->n && !held)
                diag_tell(d, "you have no runs here");
        else if (hidden)
                diag_tell(d, "%zu more ended: hnlaunch ps --all", hidden);
}

int run_ps_print(const struct options *o, struct diags *d)
{
        struct run_list l;

        for (;;) {
                json_t *holds = run_holds_list(d);

                run_list_load(&l);
                print_runs(o, &l, holds, d);
                run_list_finish(&l);
                json_decref(holds);
                if (!o->ps.watch)
                        return 0;
                say_diags(d, false);
                diags_finish(d);
                /* The error may be of a write before: stderr is written behind stdout. */
                if (fflush(stdout) != 0 || ferror(stdout))
                        return 0; /* told at the end */
                sleep(WATCH_S);
        }
}
