/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first half describes a run cell by cell, from the answer or the records. The table has the
 * running runs first and a few ended ones below; the column LEFT is shown only if a run has an
 * estimate. --json prints the same runs with the fields of their descriptions. --watch repeats
 * until the reader of standard output is gone.
 */
#include "head/commands/run_ps.h"

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
#include "base/printable.h"
#include "base/strv.h"
#include "head/core/json_text.h"
#include "head/core/shell_words.h"
#include "head/output/say.h"
#include "head/term/columns.h"

enum {
        ENDED_SHOWN = 5, /* without --all */
        WATCH_S = 2,     /* between two looks of --watch */
        GAP = 2,         /* between columns */
        PROGRAM_LEAST = 16,
        STATE_LEAST = 8,
        WIDE = 120, /* columns without values have a place */
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
        PS_PROGRAM, /* the last: it has what is left of a line */
        PS_COLUMNS,
};

static const struct {
        const char *name;
        bool right;
} ps_columns[PS_COLUMNS] = {
        [PS_RUN] = { "RUN", false },     [PS_STARTED] = { "STARTED", false },
        [PS_TIME] = { "TIME", true },    [PS_HOST] = { "HOST", false },
        [PS_NODES] = { "NODES", true },  [PS_RANKS] = { "RANKS", true },
        [PS_STEP] = { "STEP", true },    [PS_LEFT] = { "LEFT", true },
        [PS_STATE] = { "STATE", false }, [PS_PROGRAM] = { "PROGRAM", false },
};

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
        return xasprintf(json_object_get(r->summary, "signal") &&
                                         !strcmp(json_member(r->summary, "origin"), "launcher")
                                 ? "stopped (%lld)"
                                 : "failed (%lld)",
                         (long long)code);
}

/* The state, the attempt with the spare hosts left, how many nodes are silent, and for how long the
 * run stands still. */
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
        if (r->state == RUN_GOES_ON && stalled_ms) {
                format_duration(text, sizeof(text), stalled_ms / 1000 * 1000000);
                buf_printf(&b, ", %s for %s",
                           json_object_get(r->info, "step") ? "no step" : "hangs", text);
        }
        return buf_steal(&b);
}

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

static char *describe_number(const struct run *r, const char *name)
{
        return xasprintf("%lld", (long long)json_integer_value(json_object_get(r->info, name)));
}

/* "12/40" */
static char *describe_steps(const struct run *r)
{
        const json_t *step = json_object_get(r->info, "step");
        json_int_t total = json_integer_value(json_object_get(r->info, "total"));

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
                format_duration(text, sizeof(text), json_integer_value(ms) / 1000 * 1000000);
        return xstrdup(text);
}

static void describe_run_row(char **cells, const struct run *r)
{
        cells[PS_RUN] = xstrdup(r->id);
        cells[PS_STARTED] = describe_start(r);
        cells[PS_TIME] = describe_time(r);
        cells[PS_HOST] = printable_text(json_member(r->info, "host"), SIZE_MAX);
        cells[PS_NODES] = describe_number(r, "num_nodes");
        cells[PS_RANKS] = describe_number(r, "world_size");
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

/* The columns that fit on the terminal, with their widths; 0 = left out. */
struct ps_layout {
        size_t widths[PS_COLUMNS];
        size_t program; /* at most */
};

static struct ps_layout choose_columns(char *(*rows)[PS_COLUMNS], size_t n, bool any_left,
                                       bool any_step)
{
        /* The first is left out first. */
        static const enum ps_column order[] = { PS_HOST, PS_STARTED, PS_NODES, PS_RANKS,
                                                PS_LEFT, PS_TIME,    PS_STEP };
        size_t columns = isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO) : SIZE_MAX / 2;
        struct ps_layout l = { 0 };
        size_t used = 0;

        for (int c = 0; c < PS_PROGRAM; c++) {
                if ((c == PS_LEFT && !any_left) || (c == PS_STEP && !any_step && columns < WIDE))
                        continue;
                l.widths[c] = strlen(ps_columns[c].name);
                for (size_t i = 0; i < n; i++)
                        l.widths[c] =
                                MAX(l.widths[c], columns_count(rows[i][c], strlen(rows[i][c])));
                used += l.widths[c] + GAP;
        }
        for (size_t i = 0; i < ARRAY_SIZE(order) && used + PROGRAM_LEAST > columns; i++) {
                used -= l.widths[order[i]] ? l.widths[order[i]] + GAP : 0;
                l.widths[order[i]] = 0;
        }
        if (used + PROGRAM_LEAST > columns) {
                size_t rest = used - l.widths[PS_STATE] + PROGRAM_LEAST;

                l.widths[PS_STATE] = columns > rest + STATE_LEAST ? columns - rest : STATE_LEAST;
                used = rest - PROGRAM_LEAST + l.widths[PS_STATE];
        }
        l.program = columns > used ? columns - used : 1;
        return l;
}

static void add_ps_row(struct buf *to, const struct ps_layout *l, char *const *cells)
{
        for (int c = 0; c < PS_PROGRAM; c++) {
                size_t width = l->widths[c], own = columns_count(cells[c], strlen(cells[c]));
                int fill = (int)(width - MIN(own, width));

                if (!width)
                        continue;
                buf_printf(to, "%*s", ps_columns[c].right ? fill : 0, "");
                printable_cut(to, cells[c], strlen(cells[c]), width);
                buf_printf(to, "%*s", (ps_columns[c].right ? 0 : fill) + GAP, "");
        }
        printable_cut(to, cells[PS_PROGRAM], strlen(cells[PS_PROGRAM]), l->program);
        buf_appends(to, "\n");
}

/* Returns a table of the runs that go on, and behind them of the last @ended others, malloc'ed;
 * adds to *@hidden how many are in no row. */
static char *make_runs_table(const struct run_list *l, size_t ended, size_t *hidden)
{
        char *(*rows)[PS_COLUMNS] = xcalloc(l->n + 1, sizeof(*rows)), *titles[PS_COLUMNS];
        struct buf b = BUF_INIT;
        struct ps_layout layout;
        bool any_left = false, any_step = false;
        size_t n = 0;

        for (size_t i = 0; i < l->n; i++)
                any_left |= shows_no_left(&l->v[i]) || (l->v[i].state == RUN_GOES_ON &&
                                                        json_object_get(l->v[i].info, "left_ms"));
        for (size_t i = 0; i < l->n; i++)
                if (!is_over(&l->v[i]))
                        describe_run_row(rows[n++], &l->v[i]);
        for (size_t i = 0; i < l->n; i++) {
                if (!is_over(&l->v[i]))
                        continue;
                if (ended)
                        describe_run_row(rows[n++], &l->v[i]);
                else
                        ++*hidden;
                ended -= ended > 0;
        }
        for (size_t i = 0; i < n; i++)
                any_step |= *rows[i][PS_STEP];
        for (int c = 0; c < PS_COLUMNS; c++)
                titles[c] = (char *)(uintptr_t)ps_columns[c].name;
        layout = choose_columns(rows, n, any_left, any_step);
        add_ps_row(&b, &layout, titles);
        for (size_t i = 0; i < n; i++) {
                add_ps_row(&b, &layout, rows[i]);
                for (int c = 0; c < PS_COLUMNS; c++)
                        free(rows[i][c]);
        }
        free(rows);
        return buf_steal(&b);
}

static void print_runs_json(const struct run_list *l)
{
        json_t *runs = json_array();

        for (size_t i = 0; i < l->n; i++) {
                const struct run *r = &l->v[i];
                CLEANUP(free_textp) char *state = run_state_text(r);
                static const char *const of_summary[] = { "us", "code", "hn", "verdict", "rank" };
                static const char *const of_info[] = { "host",      "pid",       "started",
                                                       "us",        "argv",      "cwd",
                                                       "directory", "num_nodes", "world_size",
                                                       "attempt",   "spares",    "silent_nodes",
                                                       "step",      "total",     "left_ms",
                                                       "stalled_ms" };
                json_t *j = json_pack("{s:s, s:s, s:b}", "run", r->id, "state", state, "running",
                                      r->state == RUN_GOES_ON);

                for (size_t k = 0; k < ARRAY_SIZE(of_info); k++)
                        json_object_set(j, of_info[k], json_object_get(r->info, of_info[k]));
                for (size_t k = 0; r->summary && k < ARRAY_SIZE(of_summary); k++)
                        json_object_set(j, of_summary[k],
                                        json_object_get(r->summary, of_summary[k]));
                json_array_append_new(runs, j);
        }
        runs = json_pack("{s:i, s:o}", "v", 1, "runs", runs);
        json_write_plain(runs, stdout);
        json_decref(runs);
}

/* Prints all; a terminal is painted over from the top, other output goes on. */
static void print_runs(const struct options *o, const struct run_list *l, struct diags *d)
{
        bool paints = o->ps.watch && isatty(STDOUT_FILENO);
        CLEANUP(free_textp) char *text = NULL;
        size_t hidden = 0;

        if (o->json) {
                print_runs_json(l);
                return;
        }
        text = make_runs_table(l, o->ps.all ? SIZE_MAX : ENDED_SHOWN, &hidden);
        fputs(paints ? "\033[H\033[J" : "", stdout);
        if (l->n)
                fputs(text, stdout);
        if (!l->n)
                diag_tell(d, "you have no runs here");
        else if (hidden)
                diag_tell(d, "%zu more ended: hnlaunch ps --all", hidden);
}

int run_ps_print(const struct options *o, struct diags *d)
{
        struct run_list l;

        for (;;) {
                run_list_load(&l);
                print_runs(o, &l, d);
                run_list_finish(&l);
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
