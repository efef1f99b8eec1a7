/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences in the upper part serve the terminal, the page and JSON alike. Pictures of the
 * terminal are made of letters: a row for each node, where a column is a stretch of time and the
 * letter the phase of the start; a row for each slow rank, where darker shades are slower steps.
 * Their width comes from the columns of the terminal.
 */
#include "head/record/story_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/format.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/strv.h"
#include "head/core/json_text.h"
#include "head/core/shell_words.h"
#include "head/model/outcome.h"
#include "head/record/step_times.h"
#include "head/term/columns.h"

enum {
        COLUMNS = 80, /* without a terminal */
        LEGEND_COLUMNS = 64,
        TEXT_LEAST = 30,   /* columns of a text that stands below its beginning */
        ROWS = 16,         /* nodes with a drawn start */
        HOST_COLUMNS = 20, /* columns of a host's name */
        FAILURES = 8,      /* shown before "and N more"; the page has more */
        ATTEMPTS = 20,
        NOTES = 12,
};

struct story_span story_span(int64_t us)
{
        struct story_span t;

        /* format_duration() begins with milliseconds. */
        if (us >= 0 && us < 10000)
                snprintf(t.text, sizeof(t.text), "%.1fms", (double)us / 1000);
        else
                format_duration(t.text, sizeof(t.text), us);
        return t;
}

/* --- sentences -------------------------------------------------------------------------------- */

char *story_shell_line(const json_t *words)
{
        struct strv v = STRV_INIT;
        const json_t *w;
        char *line;
        size_t i;

        json_array_foreach(words, i, w)
                strv_push(&v, json_is_string(w) ? json_string_value(w) : "");
        line = shell_words_join(&v);
        strv_finish(&v);
        return line;
}

char *story_headline(const struct story *s)
{
        const char *started = json_member(s->run, "started");
        struct tm tm = { 0 };
        char when[32] = "";
        size_t n = 0;
        time_t t;

        if (strptime(started, "%Y-%m-%dT%H:%M:%S", &tm)) {
                t = timegm(&tm);
                localtime_r(&t, &tm);
                strftime(when, sizeof(when), ", %Y-%m-%d %H:%M", &tm);
        }
        for (size_t i = 0; i < s->n_nodes; i++)
                n += s->nodes[i].n_ranks > 0;
        n = n ? n : s->n_nodes; /* spare hosts have no ranks */
        return xasprintf("%zu node%s, %zu rank%s%s, from %s", n, n == 1 ? "" : "s", s->n_ranks,
                         s->n_ranks == 1 ? "" : "s", when, json_member(s->run, "host"));
}

char *story_roles_text(const struct story *s)
{
        return s->roles.n ? role_list_count(&s->roles, false) : NULL;
}

/* "rank 3 on gpu001", "role infer, rank 3 on gpu001", "gpu001" or "" */
static char *describe_place(const struct story *s, int node, int rank)
{
        const char *host = story_host(s, node, rank);
        char name[PLAN_RANK_NAME_MAX];

        if (rank >= 0)
                return xasprintf("%s on %s", role_list_name(&s->roles, rank, name), host);
        return xstrdup(host);
}

/* head/why/why.c begins so when ranks do not keep each other waiting. */
static const char no_hang[] = "no hang is visible: ";

char *story_hang_text(const struct story *s)
{
        return s->why && strncmp(s->why, no_hang, sizeof(no_hang) - 1) ? xstrdup(s->why) : NULL;
}

char *story_where_text(const struct story *s)
{
        if (!s->why || strncmp(s->why, no_hang, sizeof(no_hang) - 1))
                return NULL;
        return xstrdup(s->why + sizeof(no_hang) - 1);
}

/* "connect 1.1s | agent 0.4s | join 2.3s"; "" without phases */
static char *describe_phases(const struct story_start *a)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        for (size_t i = 0; i < a->n_phases; i++)
                buf_printf(&b, "%s%s %s", i ? " | " : "", a->phases[i].name,
                           story_span(a->phases[i].until_us - a->phases[i].from_us).text);
        return buf_steal(&b);
}

char *story_path_text(const struct story *s, const struct story_start *a, const char *arrow)
{
        char name[PLAN_RANK_NAME_MAX];
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        for (size_t i = 0; i < a->n_phases; i++) {
                const struct story_phase *p = &a->phases[i];

                buf_printf(&b, "%s%s%s%s ", i ? " " : "", i ? arrow : "", i ? " " : "", p->name);
                if (p->rank >= 0)
                        buf_printf(&b, "%s on ", role_list_name(&s->roles, p->rank, name));
                buf_printf(&b, "%s %s", p->host, story_span(p->own_us).text);
        }
        return buf_steal(&b);
}

/* Returns how long it took from the order to start to the start of the last rank; -1 = no rank was
 * started, or the order is not known. */
static int64_t find_ranks_start(const struct story_start *a)
{
        for (size_t i = 0; i < a->n_phases; i++)
                if (a->phases[i].letter == 'S')
                        return a->phases[i].until_us - a->ordered_us;
        return -1;
}

char *story_again_text(const struct story *s, const struct story_start *a, const char *arrow)
{
        CLEANUP(free_textp) char *path = story_path_text(s, a, arrow);
        const struct story_span waited = story_span(MAX(a->ordered_us - a->from_us, INT64_C(0)));
        int64_t took = find_ranks_start(a);
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        if (a->ordered_us >= 0)
                buf_printf(&b, "after %s of waiting, ", waited.text);
        if (took >= 0)
                buf_printf(&b, "ranks ran %s later: ", story_span(took).text);
        buf_appends(&b, *path ? path : "no rank was started");
        return buf_steal(&b);
}

size_t story_starts_hidden(const struct story *s)
{
        return s->starts.n - MIN(s->starts.n, (size_t)ATTEMPTS);
}

char *story_divergence_text(const struct story *s)
{
        const struct divergence *d = &s->divergence;

        if (!story_diverged_before(s)) /* the failure is told already */
                return NULL;
        return xasprintf("%s, %s before the %s, on %s: %s", story_span(d->us).text,
                         story_span(s->times.failed_us - d->us).text,
                         s->cause_rank >= 0 ? "failure" : "end", story_host(s, -1, d->rank),
                         d->text);
}

char *story_slow_text(const struct story *s)
{
        char name[PLAN_RANK_NAME_MAX];

        /* By samples of a live line or of top, which know shares of time and no steps. */
        if (s->slow.rank.node >= 0 && !s->slow.rank.steps)
                return xasprintf("the others wait for %s on %s for %.0f %% of the time",
                                 role_list_name(&s->roles, s->slow.rank.node, name),
                                 story_host(s, -1, s->slow.rank.node), s->slow.rank.percent);
        if (s->slow.rank.node >= 0)
                return xasprintf(
                        "the others wait for %s on %s for %.0f %% of each step (%zu steps)",
                        role_list_name(&s->roles, s->slow.rank.node, name),
                        story_host(s, -1, s->slow.rank.node), s->slow.rank.percent,
                        s->slow.rank.steps);
        if (s->slow.node.node < 0)
                return NULL;
        return xasprintf("the others wait for %s for %.0f %% of each step (%zu steps)",
                         story_host(s, s->slow.node.node, -1), s->slow.node.percent,
                         s->slow.node.steps);
}

char *story_traces_text(const struct story *s)
{
        /* A hint to --trace only where the trace would answer something. */
        bool asks_slow = s->n_ranks > 1 && s->slow.rank.node < 0 && s->slow.node.node < 0;
        int64_t error = 0, code = json_integer_value(json_object_get(s->summary, "code"));
        size_t there = 0, known = 0, started = 0;
        CLEANUP(free_textp) char *nodes = NULL;

        for (size_t i = 0; i < s->log.n_nodes; i++) {
                const struct trace_node *n = &s->log.nodes[i];

                there += n->there;
                if (n->there && n->error_us < TRACE_CLOCK_UNKNOWN) {
                        known++;
                        error = MAX(error, n->error_us);
                }
        }
        for (size_t i = 0; i < s->n_ranks; i++)
                started += s->ranks[i].started_us >= 0;
        if (!there && !json_object_size(s->summary)) /* it goes on, or hnlaunch was killed */
                return xstrdup("none before the end of the run: kept when it fails or hangs, or "
                               "with --trace");
        if (!there && !started)
                return xstrdup("none: no rank was started");
        if (!there && s->times.failed_us >= 0 && code) /* with 0 ranks outside --main were ended */
                return xstrdup("none: they could not be fetched or kept");
        if (!there)
                return xasprintf("none: kept when a run fails or hangs, or with --trace%s",
                                 asks_slow ? ", which tells whether a rank is slow" : "");
        if (there == s->n_nodes)
                nodes = there == 1 ? xstrdup("the node") : xasprintf("all %zu nodes", there);
        else
                nodes = xasprintf("%zu of %zu nodes", there, s->n_nodes);
        return xasprintf("from %s%s%s%s", nodes, error ? ", clocks within " : "",
                         error ? story_span(error).text : "",
                         known < there ? ", some clocks are not known" : "");
}

char *story_end_text(const struct story_rank *r)
{
        const struct cause exit = { .kind = CAUSE_EXIT, .code = r->code };
        char end[80];

        if (r->exited_us < 0)
                return xstrdup("has no end in the records");
        outcome_describe(&exit, end, sizeof(end));
        return r->signal ? xasprintf("killed by %s after %s", outcome_signal_name(r->signal),
                                     story_span(r->exited_us).text)
                         : xasprintf("%s after %s", end, story_span(r->exited_us).text);
}

char *story_note_place(const struct story *s, const struct story_note *n)
{
        char name[PLAN_RANK_NAME_MAX];

        if (!*n->host)
                return describe_place(s, n->node, n->rank);
        return n->rank < 0
                       ? xstrdup(n->host)
                       : xasprintf("%s on %s", role_list_name(&s->roles, n->rank, name), n->host);
}

const char *story_note_what(const struct story_note *n)
{
        static const struct {
                const char *ev, *words;
        } table[] = {
                { "node.failed", "not reached" }, { "node.lost", "lost" },
                { "node.replaced", "replaced" },  { "node.silent", "silent" },
                { "node.heard", "heard again" },  { "rank.missing", "not joined" },
                { "rank.report", "error" },       { "run.stalled", "waiting" },
                { "run.hang", "hang" },           { "run.restart", "restart" },
                { "run.decision", "decision" },   { "run.library", "library" },
                { "run.shrunk", "fewer nodes" },  { "run.signal", "signal" },
                { "role.starts", "start" },       { "role.restart", "restart" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (!strcmp(n->what, table[i].ev))
                        return table[i].words;
        return n->what;
}

char *story_note_text(const struct story_note *n)
{
        return strcmp(n->what, "node.replaced") ? xstrdup(n->text)
                                                : xasprintf("%s takes its place", n->text);
}

char *story_attempt_text(const json_t *attempt)
{
        const json_t *won = json_object_get(attempt, "steps_won"),
                     *lost = json_object_get(attempt, "lost_us");
        const char *decision = json_member(attempt, "decision");
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        const char *gap = "";

        if (*decision) {
                buf_printf(&b, "%s: %s", decision, json_member(attempt, "reason"));
                gap = "; ";
        }
        if (json_integer_value(won)) {
                buf_printf(&b, "%s%lld step%s won", gap, (long long)json_integer_value(won),
                           json_integer_value(won) == 1 ? "" : "s");
                gap = ", ";
        }
        if (lost)
                buf_printf(&b, "%s%s lost", gap, story_span(json_integer_value(lost)).text);
        return buf_steal(&b);
}

size_t story_attempts_hidden(const struct story *s)
{
        size_t n = json_array_size(json_object_get(s->summary, "attempts"));

        return n < 2 ? n : n - MIN(n, (size_t)ATTEMPTS);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Appends the text of a row from column @at on, and a newline; on a terminal, @columns, lines of
 * the text are folded. */
static void put_story_row(struct buf *to, const char *text, size_t columns, size_t at)
{
        CLEANUP(free_textp) char *plain = printable_text(text, SIZE_MAX);

        columns_fold(to, plain, columns ? columns : SIZE_MAX, at,
                     columns < at + TEXT_LEAST ? 4 : at);
        buf_appends(to, "\n");
}

/* --- the start of each node ------------------------------------------------------------------- */

/* Writes @letter from @from_us to @until_us, at least once. */
static void draw_span(char *row, size_t width, double us_per_column, char letter, int64_t from_us,
                      int64_t until_us)
{
        size_t from, until;

        if (from_us < 0 || until_us < from_us)
                return;
        from = (size_t)((double)from_us / us_per_column);
        until = (size_t)((double)until_us / us_per_column);
        for (size_t i = MIN(from, width - 1); i <= MIN(until, width - 1); i++)
                row[i] = letter;
}

/* Draws the phases in reverse, so that the earlier of two phases in a column is seen. Behind the
 * last moment the row is empty. */
static void draw_node(const struct story *s, const struct story_node *n, char *row, size_t width)
{
        const struct story_start *a = &s->starts.v[0];
        double us = (double)story_start_end(a) / (double)width;
        int64_t last = MAX(n->started_us, n->joined_us);

        memset(row, '.', width);
        draw_span(row, width, us, 'J', n->started_us, n->joined_us);
        draw_span(row, width, us, 'S', n->started_us < 0 ? -1 : a->ordered_us, n->started_us);
        draw_span(row, width, us, 'P', n->ready_us, n->pushed_us);
        draw_span(row, width, us, 'A', n->connected_us, n->ready_us);
        draw_span(row, width, us, 'C', n->connected_us < 0 ? -1 : 0, n->connected_us);
        for (size_t i = last < 0 ? width : (size_t)((double)last / us) + 1; i < width; i++)
                row[i] = ' ';
}

/* Whether a phase of the first start ended last on the node, with the host of the row. */
static bool is_last_in(const struct story_phase *p, const struct story_node *row)
{
        return p->node == row->node && !row->replaced;
}

/* Appends the part of the node in a phase if the phase ended last there. */
static void append_last_phases(struct buf *to, const struct story *s, const struct story_node *row)
{
        const struct story_start *a = &s->starts.v[0];
        const char *sep = "   <- ";

        for (size_t i = 0; i < a->n_phases; i++)
                if (is_last_in(&a->phases[i], row) && s->n_nodes > 1) {
                        buf_printf(to, "%s%s %s", sep, a->phases[i].name,
                                   story_span(a->phases[i].own_us).text);
                        sep = ", ";
                }
        if (row->failed || row->lost)
                buf_printf(to, "%s%s", sep, row->lost ? "lost" : "not reached");
}

/* Whether the picture has the row: the first nodes, and the nodes of the critical path. */
static bool is_row_shown(const struct story *s, const struct story_node *row, size_t shown)
{
        const struct story_start *a = &s->starts.v[0];
        bool is_last = row->failed || row->lost;

        for (size_t i = 0; i < a->n_phases; i++)
                is_last |= is_last_in(&a->phases[i], row);
        return s->starts.n_rows <= ROWS || is_last || shown < ROWS - STORY_PHASES;
}

/* Appends a name, cut or filled to @width columns. */
static void append_host(struct buf *to, const char *host, size_t width)
{
        CLEANUP(free_textp) char *text = printable_text(host, width);
        size_t used = columns_count(text, strlen(text));

        buf_printf(to, "%s%*s", text, (int)(width - MIN(used, width)), "");
}

static void print_start_rows(struct buf *to, const struct story *s, size_t columns)
{
        const struct story_starts *all = &s->starts;
        size_t name = 4, width, shown = 0, wide = columns ? columns : COLUMNS;
        char row[256];

        for (size_t i = 0; i < all->n_rows; i++)
                name = MAX(name, MIN(columns_count(all->rows[i].host, strlen(all->rows[i].host)),
                                     (size_t)HOST_COLUMNS));
        name = MIN(name, wide / 3);
        /* Behind the picture there is room for "<- connect 1.2s, agent 0.3s". */
        width = MIN(MAX(wide > name + 36 ? wide - name - 36 : 0, MIN(wide / 2, (size_t)20)),
                    sizeof(row) - 1);
        append_host(to, "node", name);
        buf_printf(to, "  0%*s\n", (int)width - 1, story_span(story_start_end(all->v)).text);
        for (size_t i = 0; i < all->n_rows; i++) {
                struct buf line = BUF_INIT;

                if (!is_row_shown(s, &all->rows[i], shown))
                        continue;
                shown++;
                draw_node(s, &all->rows[i], row, width);
                append_host(to, all->rows[i].host, name);
                buf_appends(to, "  ");
                buf_append(&line, row, width);
                append_last_phases(&line, s, &all->rows[i]);
                CLEANUP(free_textp) char *text = buf_steal(&line);

                put_story_row(to, text, columns, name + 2);
        }
        if (shown < all->n_rows)
                buf_printf(to, "and %zu more; --html shows all\n", all->n_rows - shown);
        buf_printf(to, "C %s  A agent%s%sS start  J join  . waits for others\n",
                   all->n_rows && all->rows[0].held ? "hold" : "connect",
                   all->n_rows && all->rows[0].pushed_us >= 0 ? "  P push" : "",
                   wide < LEGEND_COLUMNS ? "\n" : "  ");
}

/* The first start has the picture: lines begin with the second. */
static void print_later_starts(struct buf *to, const struct story *s, size_t columns)
{
        size_t hidden = story_starts_hidden(s);

        if (s->starts.n > 1)
                buf_appends(to, "\nlater starts:\n");
        if (hidden > 1)
                buf_printf(to, "  %zu earlier ones\n", hidden - 1);
        for (size_t i = MAX(hidden, (size_t)1); i < s->starts.n; i++) {
                CLEANUP(free_textp) char *text = story_again_text(s, &s->starts.v[i], "->");

                buf_printf(to, "  attempt %zu: ", i + 1);
                put_story_row(to, text, columns, 13);
        }
}

static void print_start(struct buf *to, const struct story *s, size_t columns)
{
        const struct story_start *a = &s->starts.v[0];
        CLEANUP(free_textp) char *phases = describe_phases(a), *path = story_path_text(s, a, "->");

        if (a->n_phases) {
                buf_printf(to, "\nstart %s: %s\n", story_span(story_start_end(a)).text, phases);
                buf_appends(to, "critical path: ");
                printable_put(to, path, strlen(path));
                buf_appends(to, "\n\n");
                print_start_rows(to, s, columns);
        }
        print_later_starts(to, s, columns);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Appends the heat map: a row has the name, the mean of the rank and a cell per column. */
static void print_steps(struct buf *to, const struct story *s, size_t columns)
{
        static const char *const shades[] = { "·", "░", "▒", "▓", "█" };
        const struct trace_places places = { s->node_of, s->n_ranks, s->n_nodes };
        struct step_times t;
        size_t name = 12, width, wide = columns ? columns : COLUMNS;

        for (size_t i = 0; i < s->n_nodes; i++)
                name = MAX(name, MIN(columns_count(s->nodes[i].host, strlen(s->nodes[i].host)),
                                     (size_t)HOST_COLUMNS) +
                                         11);
        name = MIN(name, wide / 2);
        width = MIN(MAX(wide > name + 14 ? wide - name - 14 : 0, (size_t)6), (size_t)100);
        step_times_find(&t, &s->log, &places, width);
        if (t.n_rows)
                buf_printf(to,
                           "\nsteps %" PRId64 " to %" PRId64
                           ", %s each by itself, the slowest rank first\n\n",
                           t.first, t.last, story_span((int64_t)t.median_us).text);
        for (size_t i = 0; i < t.n_rows; i++) {
                const struct step_row *r = &t.rows[i];
                CLEANUP(free_textp)
                char *place = r->rank < 0 ? xasprintf("%zu others", r->n)
                                          : describe_place(s, -1, r->rank);

                append_host(to, place, name);
                buf_printf(to, "  %8s  ", story_span((int64_t)r->own_us).text);
                for (size_t c = 0; c < t.columns; c++) {
                        int shade = step_times_shade(&t, r->cells[c]);

                        buf_appends(to, shade < 0 ? " " : shades[shade]);
                }
                buf_appends(to, "\n");
        }
        if (t.n_rows)
                buf_printf(to, "· as the median  ░ 1.1 times  ▒ 1.25%s▓ 1.6  █ 2.5 and more\n",
                           wide < LEGEND_COLUMNS ? "\n" : "  ");
        step_times_finish(&t);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Appends "name: text", and frees @text; NULL = nothing. Sentences are left to the terminal to
 * fold. */
static void print_sentence(struct buf *to, const char *name, char *text)
{
        if (text) {
                buf_printf(to, "%s: ", name);
                printable_put(to, text, strlen(text));
                buf_appends(to, "\n");
        }
        free(text);
}

/* Appends a text, shortened to a row. */
static void append_row_text(struct buf *to, const char *text)
{
        char row[PRINTABLE_ROW];

        snprintf(row, sizeof(row), "%s", text);
        printable_end(row, sizeof(row));
        buf_printf(to, "  %s", row);
}

/* The command line, else the program, and the folder. */
static void print_run_command(struct buf *to, const struct story *s)
{
        const json_t *line = json_object_get(s->run, "line");
        CLEANUP(free_textp)
        char *words = story_shell_line(line ? line : json_object_get(s->run, "argv"));

        if (*words)
                print_sentence(to, "command",
                               xasprintf("%s%s, in %s", line ? "hnlaunch " : "", words,
                                         json_member(s->run, "cwd")));
}

static void print_failures(struct buf *to, const struct story *s, size_t columns)
{
        const json_t *f;
        size_t i, first = story_verdict_has_first(s);

        json_array_foreach(s->failures, i, f)
        {
                json_t *rank = json_object_get(f, "rank"), *j;
                struct buf line = BUF_INIT;
                char name[PLAN_RANK_NAME_MAX];

                if (i < first)
                        continue;
                if (i == first)
                        buf_appends(to, first ? "\nother failures:\n"
                                              : "\nfailures, the cause first:\n");
                if (i == FAILURES + first) {
                        buf_printf(to, "  and %zu more\n", json_array_size(s->failures) - i);
                        break;
                }
                buf_printf(to, "  %8s  ", story_span(story_failure_us(f)).text);
                if (strncmp(json_member(f, "text"), "rank ",
                            5)) { /* else the text names the rank */
                        if (rank)
                                buf_printf(&line, "%s on ",
                                           role_list_name(&s->roles, (int)json_integer_value(rank),
                                                          name));
                        buf_printf(&line, "%s", json_member(f, "host"));
                }
                if ((j = json_object_get(f, "signal")))
                        buf_printf(&line, "  %s", outcome_signal_name((int)json_integer_value(j)));
                if ((j = json_object_get(f, "code")))
                        buf_printf(&line, "  code %lld", (long long)json_integer_value(j));
                if (*json_member(f, "text"))
                        append_row_text(&line, json_member(f, "text"));
                if (json_is_true(json_object_get(f, "echo")))
                        buf_appends(&line, "  (follows from another)");
                CLEANUP(free_textp) char *text = buf_steal(&line);

                put_story_row(to, text, columns, 12);
        }
}

static void print_attempts(struct buf *to, const struct story *s, size_t columns)
{
        const json_t *all = json_object_get(s->summary, "attempts");
        size_t n = json_array_size(all), hidden = story_attempts_hidden(s);

        if (hidden < n)
                buf_appends(to, "\nattempts:\n");
        if (hidden && hidden < n)
                buf_printf(to, "  %zu earlier ones\n", hidden);
        for (size_t i = hidden; i < n; i++) {
                const json_t *a = json_array_get(all, i);
                CLEANUP(free_textp) char *text = story_attempt_text(a);
                const char *cause = json_member(a, "cause");

                buf_printf(to, "  %3lld %8s  ",
                           (long long)json_integer_value(json_object_get(a, "attempt")),
                           story_span(json_integer_value(json_object_get(a, "us"))).text);
                put_story_row(to, cause, columns, 16);
                if (!*text)
                        continue;
                buf_printf(to, "%*s", 16, "");
                put_story_row(to, text, columns, 16);
        }
}

static void print_notes(struct buf *to, const struct story *s, size_t columns)
{
        size_t shown = 0;

        for (size_t i = 0; i < s->n_notes; i++) {
                const struct story_note *n = &s->notes[i];
                CLEANUP(free_textp) char *place = story_note_place(s, n);
                CLEANUP(free_textp) char *words = story_note_text(n);
                size_t len = strlen(place);
                /* Words that begin with the place need no other. */
                bool names_it = !len || (!strncmp(words, place, len) && strchr(" :,", words[len]));
                CLEANUP(free_textp)
                char *text = xasprintf("%s%s%.300s", names_it ? "" : place,
                                       names_it || !*words ? "" : "  ", words);

                /* Counted beyond the limit, for "and N more". */
                if (story_is_told(s, n) || shown++ >= NOTES)
                        continue;
                if (shown == 1)
                        buf_appends(to, "\nwhat happened:\n");
                buf_printf(to, "  %8s  %-11s  ", story_span(n->us).text, story_note_what(n));
                put_story_row(to, text, columns, 25);
        }
        if (shown > NOTES)
                buf_printf(to, "  and %zu more\n", shown - NOTES);
}

void story_print(struct buf *to, const struct story *s, const char *no_verdict, size_t columns)
{
        const char *verdict = json_member(s->summary, "verdict");
        CLEANUP(free_textp) char *head = story_headline(s), *roles = story_roles_text(s);

        buf_printf(to, "run %s: %s\n", json_member(s->run, "run"), head);
        if (roles)
                put_story_row(to, roles, columns, 0);
        verdict = *verdict ? verdict : no_verdict;
        printable_put(to, verdict, strlen(verdict));
        buf_appends(to, "\n");
        print_run_command(to, s);
        print_sentence(to, "why", story_hang_text(s));
        print_sentence(to, "where the ranks were", story_where_text(s));
        print_sentence(to, "first divergence", story_divergence_text(s));
        print_sentence(to, s->slow.rank.node < 0 ? "slow node" : "slow rank", story_slow_text(s));
        print_failures(to, s, columns);
        print_attempts(to, s, columns);
        print_notes(to, s, columns);
        print_steps(to, s, columns);
        print_start(to, s, columns);
        buf_appends(to, "\n");
        print_sentence(to, "traces", story_traces_text(s));
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Returns a time, null for -1. */
static json_t *json_us(int64_t us)
{
        return us < 0 ? json_null() : json_integer((json_int_t)us);
}

/* Returns host, rank and role, as far as known. */
static json_t *json_place(const struct story *s, int node, int rank)
{
        /* "phases" is that of the first start, from before there were "starts". */
        json_t *j = json_pack("{s:o}", "host", json_text(story_host(s, node, rank)));

        if (rank >= 0)
                json_object_set_new(j, "rank", json_integer(rank));
        role_list_put(&s->roles, j, rank);
        return j;
}

static json_t *json_phases(const struct story *s, const struct story_start *a)
{
        json_t *phases = json_array();

        for (size_t i = 0; i < a->n_phases; i++) {
                const struct story_phase *p = &a->phases[i];
                json_t *j = json_pack("{s:o}", "host", json_text(p->host));

                if (p->rank >= 0)
                        json_object_set_new(j, "rank", json_integer(p->rank));
                role_list_put(&s->roles, j, p->rank);
                json_object_set_new(j, "phase", json_string(p->name));
                json_object_set_new(j, "from_us", json_us(p->from_us));
                json_object_set_new(j, "until_us", json_us(p->until_us));
                json_object_set_new(j, "last_us", json_us(p->own_us));
                json_object_set_new(j, "median_us", json_us(p->median_us));
                json_array_append_new(phases, j);
        }
        return phases;
}

static json_t *json_starts(const struct story *s)
{
        json_t *starts = json_array();

        for (size_t i = 0; i < s->starts.n; i++) {
                const struct story_start *a = &s->starts.v[i];

                json_array_append_new(starts, json_pack("{s:i, s:o, s:o, s:o}", "attempt",
                                                        (int)i + 1, "from_us", json_us(a->from_us),
                                                        "ordered_us", json_us(a->ordered_us),
                                                        "phases", json_phases(s, a)));
        }
        return starts;
}

static json_t *json_nodes(const struct story *s)
{
        json_t *nodes = json_array();

        for (size_t i = 0; i < s->n_nodes; i++) {
                const struct story_node *n = &s->nodes[i];
                const struct trace_node *t = &s->log.nodes[i];

                json_array_append_new(
                        nodes,
                        json_pack("{s:o, s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}",
                                  "host", json_text(n->host), "ranks", (int)n->n_ranks, "uploaded",
                                  n->uploaded, "lost", n->lost || n->failed, "connected_us",
                                  json_us(n->connected_us), "ready_us", json_us(n->ready_us),
                                  "pushed_us", json_us(n->pushed_us), "started_us",
                                  json_us(n->started_us), "joined_us", json_us(n->joined_us),
                                  "ended_us", json_us(n->ended_us), "trace", t->there,
                                  "clock_error_us",
                                  json_us(t->there && t->error_us < TRACE_CLOCK_UNKNOWN
                                                  ? t->error_us
                                                  : -1)));
        }
        return nodes;
}

json_t *story_json(const struct story *s)
{
        CLEANUP(free_textp) char *why = story_hang_text(s);
        json_t *j = json_pack(
                "{s:i, s:s, s:s, s:O?, s:o, s:o, s:o, s:i, s:o}", "v", 1, "run",
                json_member(s->run, "run"), "verdict", json_member(s->summary, "verdict"), "code",
                json_object_get(s->summary, "code"), "phases", json_phases(s, s->starts.v),
                "starts", json_starts(s), "nodes", json_nodes(s), "restarts", s->restarts,
                "failed_us", json_us(s->times.failed_us));
        json_t *found;

        found = s->divergence.rank < 0 ? json_null() : json_place(s, -1, s->divergence.rank);
        if (s->divergence.rank >= 0) {
                json_object_set_new(found, "us", json_us(s->divergence.us));
                json_object_set_new(found, "text", json_text(s->divergence.text));
        }
        json_object_set_new(j, "divergence", found);
        json_object_set_new(j, "why", json_text(why));
        found = s->slow.node.node < 0 ? json_null() : json_place(s, s->slow.node.node, -1);
        if (s->slow.node.node >= 0) {
                json_object_set_new(found, "percent", json_real(s->slow.node.percent));
                json_object_set_new(found, "steps", json_integer((json_int_t)s->slow.node.steps));
        }
        json_object_set_new(j, "slow_node", found);
        found = s->slow.rank.node < 0 ? json_null() : json_place(s, -1, s->slow.rank.node);
        if (s->slow.rank.node >= 0) {
                json_object_set_new(found, "percent", json_real(s->slow.rank.percent));
                json_object_set_new(found, "steps", json_integer((json_int_t)s->slow.rank.steps));
        }
        json_object_set_new(j, "slow_rank", found);
        if (s->roles.n)
                json_object_set_new(j, "roles", role_list_json(&s->roles));
        if (json_object_get(s->summary, "attempts"))
                json_object_set(j, "attempts", json_object_get(s->summary, "attempts"));
        return j;
}
