/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture is a grid: names on the left, a small SVG a row, values on the right. A row is as wide
 * as there is room, on a phone or on paper: places in time are given in per cent, or lie in an
 * inner SVG stretched without the strokes. A page breaks between rows only. Overlapping marks of a
 * lane become a single mark: the size of a picture is bounded for any number of records.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/record/step_times.h"
#include "head/record/story_html.h"
#include "head/record/story_text.h"

enum {
        CHART = 1000,       /* units of a row's width */
        ROW = 18,           /* height of a row */
        START_NODES = 1000, /* rows of the start */
        LANES = 64,         /* ranks with a lane */
        SERIES_NODES = 16,  /* nodes with series */
        POINTS = 240,       /* of a series */
        STEP_COLUMNS = 120,
        PAGE_ROWS = 32, /* longer pictures may break between pages of paper */
};

/* A picture while it is written. */
struct picture {
        struct buf *to;
        int64_t from_us, until_us;
        int64_t zero_us; /* times are counted from here */
};

/* Returns the place of a time in units of CHART; times outside lie on the edge. */
static double place_x(const struct picture *p, int64_t us)
{
        double part = (double)(us - p->from_us) / (double)MAX(p->until_us - p->from_us, INT64_C(1));

        return CHART * MIN(MAX(part, 0.0), 1.0);
}

static double place_percent(const struct picture *p, int64_t us)
{
        return place_x(p, us) * 100 / CHART;
}

/* Times on top: from, until, and three between. */
static void open_picture(const struct picture *p, const char *class, const char *what)
{
        static const char *const anchors[] = { "start", "middle", "middle", "middle", "end" };

        buf_printf(p->to,
                   "<div class=\"chart %s\" role=\"img\" aria-label=\"%s\"><span></span><svg "
                   "class=\"axis\">",
                   class, what);
        for (int i = 0; i <= 4; i++) {
                int64_t us = p->from_us - p->zero_us + (p->until_us - p->from_us) * i / 4;

                buf_printf(p->to, "<text x=\"%d%%\" y=\"12\" text-anchor=\"%s\"%s>%s%s</text>",
                           25 * i, anchors[i], i % 2 ? " class=\"odd\"" : "",
                           us < 0 ? "\xe2\x88\x92" : "",
                           us ? story_span(us < 0 ? -us : us).text : "0");
        }
        buf_appends(p->to, strcmp(class, "values") != 0 ? "</svg>\n" : "</svg><span></span>\n");
}

/* A narrow page leaves out the @host; "" = none. */
static void open_row(const struct picture *p, const char *name, const char *host, bool bold)
{
        buf_appends(p->to, bold ? "<span><b>" : "<span>");
        html_text(p->to, name);
        buf_appends(p->to, bold ? "</b>" : "");
        if (*host) {
                buf_appends(p->to, "<i> on ");
                html_text(p->to, host);
                buf_appends(p->to, "</i>");
        }
        buf_appends(p->to, "</span><svg>");
}

/* Opens the row of a rank; with a single node no host is named. */
static void open_rank_row(const struct picture *p, const struct story *s, int rank, bool bold)
{
        char name[PLAN_RANK_NAME_MAX];

        role_list_name(&s->roles, rank, name);
        open_row(p, name, s->n_nodes > 1 ? story_host(s, -1, rank) : "", bold);
}

static void open_keys(struct buf *to)
{
        buf_appends(to, "</div><p class=\"keys\">");
}

/* Explains a mark; @shape draws from -7 to 7 and from 0 to ROW. */
static void put_key(struct buf *to, const char *shape, const char *words)
{
        buf_printf(to, "<span><svg viewBox=\"-7 0 14 %d\">%s</svg>%s</span> ", ROW, shape, words);
}

/* --- the start -------------------------------------------------------------------------------- */

/* A bar, with the name where there is room. */
static void put_bar(const struct picture *p, char letter, const char *name, int64_t from_us,
                    int64_t until_us)
{
        double x, width;

        if (from_us < 0 || until_us < from_us)
                return;
        x = place_percent(p, from_us);
        /* A phase of no time stays visible. */
        width = MAX(place_percent(p, until_us) - x, 0.1);
        buf_printf(p->to,
                   "<rect class=\"%c\" x=\"%.1f%%\" y=\"2\" width=\"%.1f%%\" height=\"14\">"
                   "<title>%s %s</title></rect>",
                   letter, x, width, name, story_span(until_us - from_us).text);
        /* Narrower bars have the name in the title only. */
        if (width >= 22)
                buf_printf(p->to, "<text class=\"in\" x=\"%.1f%%\" y=\"13\">%s</text>",
                           x + width / 2, name);
}

/* Draws the phases of a host; -1 instead of a time leaves a bar out. */
static void put_start_row(const struct picture *p, const struct story *s,
                          const struct story_node *n)
{
        int64_t ordered_us = n->started_us < 0 ? -1 : s->starts.v[0].ordered_us;

        open_row(p, n->host, "", n->lost || n->failed);
        put_bar(p, 'C', n->held ? "hold" : "connect", n->connected_us < 0 ? -1 : 0,
                n->connected_us);
        put_bar(p, 'A', n->uploaded ? "agent, uploaded" : "agent", n->connected_us, n->ready_us);
        put_bar(p, 'P', "push", n->ready_us, n->pushed_us);
        put_bar(p, 'S', "start", ordered_us, n->started_us);
        put_bar(p, 'J', "join", n->started_us, n->joined_us);
        if (n->lost || n->failed)
                buf_printf(p->to, "<text x=\"100%%\" y=\"13\" text-anchor=\"end\">%s</text>",
                           n->lost ? "lost" : "not reached");
        buf_appends(p->to, "</svg>\n");
}

void picture_start(struct buf *to, const struct story *s)
{
        const struct story_start *a = &s->starts.v[0];
        struct picture p = { to, 0, story_start_end(a), 0 };
        size_t rows = MIN(s->starts.n_rows, (size_t)START_NODES);

        open_picture(&p, rows > PAGE_ROWS ? "long" : "short", "The start of each node");
        for (size_t i = 0; i < rows; i++)
                put_start_row(&p, s, &s->starts.rows[i]);
        open_keys(to);
        for (size_t i = 0; i < a->n_phases; i++) {
                const struct story_phase *ph = &a->phases[i];
                CLEANUP(free_textp)
                char *shape = xasprintf(
                             "<rect class=\"%c\" x=\"-7\" y=\"2\" width=\"14\" height=\"14\"/>",
                             ph->letter),
                     *words = xasprintf("%s %s", ph->name,
                                        story_span(ph->until_us - ph->from_us).text);

                put_key(to, shape, words);
        }
        buf_printf(to, "%s%s</p>", s->n_nodes > 1 ? "Gaps wait for other nodes." : "",
                   rows < s->starts.n_rows ? " Only the first nodes are shown." : "");
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Returns the cell for a column. Without an end of a step in the column the next cell counts: its
 * step was under way. -1 = none. */
static double find_step_cell(const struct step_times *t, size_t row, size_t column)
{
        while (column < t->columns && t->rows[row].cells[column] < 0)
                column++;
        return column < t->columns ? t->rows[row].cells[column] : -1;
}

/* Draws neighbours of the same shade together, with the longest time among them. */
static void put_step_cells(const struct picture *p, const struct step_times *t, size_t row)
{
        double width = 100 / (double)t->columns, most;

        for (size_t c = 0, from; c < t->columns;) {
                int shade = step_times_shade(t, most = find_step_cell(t, row, c));

                for (from = c; c < t->columns; c++) {
                        double us = find_step_cell(t, row, c);

                        if (step_times_shade(t, us) != shade)
                                break;
                        most = MAX(most, us);
                }
                if (shade >= 0)
                        buf_printf(p->to,
                                   "<rect class=\"h%d\" x=\"%.2f%%\" y=\"1\" width=\"%.2f%%\" "
                                   "height=\"16\"><title>%s</title></rect>",
                                   shade, (double)from * width, (double)(c - from) * width,
                                   story_span((int64_t)most).text);
        }
}

static void put_step_keys(struct buf *to)
{
        static const char *const words[] = { "as the median", "1.1 times", "1.25", "1.6",
                                             "2.5 and more" };

        open_keys(to);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                CLEANUP(free_textp)
                char *shape = xasprintf(
                        "<rect class=\"h%zu\" x=\"-7\" y=\"2\" width=\"14\" height=\"14\"/>", i);

                put_key(to, shape, words[i]);
        }
        buf_appends(to, "</p>");
}

/* Whether the heat map would have any colour. */
static bool has_long_steps(const struct step_times *t)
{
        for (size_t r = 0; r < t->n_rows; r++)
                for (size_t c = 0; c < t->columns; c++)
                        if (step_times_shade(t, t->rows[r].cells[c]) > 0)
                                return true;
        return false;
}

/* Draws the heat map, with the mean of each row on the right. */
static void put_step_rows(const struct picture *p, const struct story *s,
                          const struct step_times *t)
{
        open_picture(p, "values", "How long the steps of each rank took");
        for (size_t i = 0; i < t->n_rows; i++) {
                const struct step_row *r = &t->rows[i];
                CLEANUP(free_textp) char *others = xasprintf("%zu others", r->n);

                if (r->rank < 0)
                        open_row(p, others, "", false);
                else
                        /* The slow rank of the sentence above is bold. */
                        open_rank_row(p, s, r->rank, !i && s->slow.rank.node == r->rank);
                put_step_cells(p, t, i);
                buf_printf(p->to, "</svg><span>%s</span>\n", story_span((int64_t)r->own_us).text);
        }
        put_step_keys(p->to);
}

void picture_steps(struct buf *to, const struct story *s)
{
        const struct trace_places places = { s->node_of, s->n_ranks, s->n_nodes };
        struct step_times t;

        step_times_find(&t, &s->log, &places, STEP_COLUMNS);
        if (t.n_rows) {
                bool has_long = has_long_steps(&t);

                buf_printf(to,
                           "<section><h2>Steps %" PRId64 " to %" PRId64
                           "</h2><p>%s each by itself, without waits for others; %s.</p>",
                           t.first, t.last, story_span((int64_t)t.median_us).text,
                           has_long ? "the slowest rank on top" : "no rank took 1.1 times as long");
                if (has_long)
                        put_step_rows(&(struct picture){ to, t.from_us, t.until_us, 0 }, s, &t);
                buf_appends(to, "</section>\n");
        }
        step_times_finish(&t);
}

/* --- lanes of ranks --------------------------------------------------------------------------- */

/* Whether a rank stands on top of the others. */
static bool is_odd_rank(const struct story *s, int rank)
{
        return rank == s->cause_rank || rank == s->divergence.rank || rank == s->slow.rank.node;
}

/* Chooses the ranks shown: odd ranks, failed ranks, then the others in order. */
static size_t choose_lanes(const struct story *s, int *lane_of)
{
        size_t n = 0, failed = 0;

        for (size_t i = 0; i < s->n_ranks; i++) {
                const struct story_rank *r = &s->ranks[i];
                bool bad = r->exited_us >= 0 && (r->code || r->signal) &&
                           (s->times.stop_us < 0 || r->exited_us <= s->times.stop_us);

                /* A quarter of the lanes for failures: with a thousand of them other ranks must
                 * still be seen. */
                lane_of[i] = is_odd_rank(s, (int)i) || (bad && failed++ < LANES / 4) ? 0 : -1;
                n += lane_of[i] == 0;
        }
        for (size_t i = 0; i < s->n_ranks && n < LANES; i++)
                if (lane_of[i] < 0) {
                        lane_of[i] = 0;
                        n++;
                }
        n = 0;
        for (size_t i = 0; i < s->n_ranks; i++)
                /* Numbers in the order of the ranks, now that all are chosen. */
                if (lane_of[i] == 0)
                        lane_of[i] = (int)n++;
        return n;
}

enum { MARK_WAIT, MARK_STEP, MARK_OUT, MARK_ERR, MARK_KINDS };

/* The marks of a rank: a path of each kind, and the end of the newest mark. */
struct lane {
        struct buf paths[MARK_KINDS];
        double last[MARK_KINDS];
};

static const struct {
        double least; /* between two */
        const char *class, *key, *words;
} marks[] = {
        [MARK_WAIT] = { 2, "wait", "M-7 9h14", "waits for others in the store" },
        [MARK_STEP] = { 2, "step", "M0 5v8", "step" },
        [MARK_OUT] = { 4, "out", "M0 9h0", "output" },
        [MARK_ERR] = { 6, "err", "M0 9h0", "stderr" },
};

/* Adds a mark, unless it would overlap the one before of its kind. */
static void take_lane_event(const struct picture *p, struct lane *lane, const struct trace_event *e)
{
        double x = place_x(p, e->us), from = x;
        struct buf *path;
        int kind;

        if (e->kind == TRACE_STEP)
                kind = MARK_STEP;
        else if (e->kind == TRACE_OUT)
                kind = e->more & 1 ? MARK_ERR : MARK_OUT;
        else if (trace_event_waits(e))
                kind = MARK_WAIT;
        else
                return;
        if (kind == MARK_WAIT)
                from = place_x(p, e->us - (int64_t)MIN(e->more, (uint64_t)INT64_MAX / 2));
        path = &lane->paths[kind];
        if ((buf_len(path) && x < lane->last[kind] + marks[kind].least) ||
            (kind == MARK_WAIT && x - from < marks[kind].least))
                return;
        lane->last[kind] = x;
        if (kind == MARK_WAIT)
                buf_printf(path, "M%.0f 9H%.0f", from, x);
        else if (kind == MARK_STEP)
                buf_printf(path, "M%.0f 5v8", x);
        else
                buf_printf(path, "M%.0f %dh0", x, kind == MARK_ERR ? 4 : 15);
}

/* How a rank ended. */
enum { END_NONE, END_ZERO, END_FAILED, END_STOPPED, ENDS };

static const struct {
        const char *shape, *words;
} ends[] = {
        [END_ZERO] = { "<rect class=\"zero\" x=\"-3\" y=\"6\" width=\"6\" height=\"6\"/>",
                       "ended with 0" },
        [END_FAILED] = { "<path class=\"failed\" d=\"M-4 5l8 8m0-8l-8 8\"/>", "failed" },
        [END_STOPPED] = { "<circle class=\"stopped\" cy=\"9\" r=\"3\"/>", "stopped by hnlaunch" },
};

/* Whether something has a place in the picture. */
static bool is_within(const struct picture *p, int64_t us)
{
        return us >= p->from_us && us <= p->until_us;
}

/* Returns how a rank ended. TERM or KILL after the order to stop is hnlaunch's own doing. */
static int find_end(const struct story *s, const struct story_rank *r)
{
        if (r->exited_us < 0)
                return END_NONE;
        if (!r->code && !r->signal)
                return END_ZERO;
        return s->times.stop_us >= 0 && r->exited_us > s->times.stop_us &&
                               (r->signal == SIGTERM || r->signal == SIGKILL)
                       ? END_STOPPED
                       : END_FAILED;
}

bool picture_has_lanes(const struct story *s)
{
        for (size_t i = 0; i < s->log.n; i++) {
                const struct trace_event *e = &s->log.v[i];

                if (e->kind == TRACE_STEP || e->kind == TRACE_OUT || trace_event_waits(e))
                        return true;
        }
        for (size_t i = 0; i < s->n_ranks; i++)
                if (find_end(s, &s->ranks[i]) == END_FAILED ||
                    (s->times.failed_us >= 0 && s->ranks[i].started_us >= 0))
                        return true;
        return false;
}

/* Draws a line across the row. */
static void put_moment(const struct picture *p, int64_t us, const char *class)
{
        if (is_within(p, us))
                buf_printf(p->to, "<path class=\"%s\" d=\"M%.0f 0v%d\"/>", class, place_x(p, us),
                           ROW);
}

/* Draws the rank's life. Returns the kind of the end. */
static int put_lane(const struct picture *p, const struct story *s, int rank, const struct lane *l)
{
        const struct story_rank *r = &s->ranks[rank];
        CLEANUP(free_textp) char *words = story_end_text(r);
        int64_t until = r->exited_us < 0 ? p->until_us : r->exited_us;
        int end = is_within(p, r->exited_us) ? find_end(s, r) : END_NONE;

        open_rank_row(p, s, rank, is_odd_rank(s, rank));
        buf_appends(p->to, "<title>");
        html_text(p->to, words);
        buf_printf(p->to,
                   "</title><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">"
                   "<path class=\"life\" d=\"M%.0f 9H%.0f\"/>",
                   CHART, ROW, place_x(p, MAX(r->started_us, p->from_us)), place_x(p, until));
        for (int k = 0; k < MARK_KINDS; k++)
                if (buf_len(&l->paths[k]))
                        buf_printf(p->to, "<path class=\"%s\" d=\"%.*s\"/>", marks[k].class,
                                   (int)buf_len(&l->paths[k]),
                                   (const char *)buf_data(&l->paths[k]));
        put_moment(p, s->times.failed_us, "failure");
        if (story_diverged_before(s))
                put_moment(p, s->divergence.us, "divergence");
        buf_appends(p->to, "</svg>");
        if (end != END_NONE)
                buf_printf(p->to, "<svg x=\"%.1f%%\">%s</svg>", place_percent(p, until),
                           ends[end].shape);
        buf_appends(p->to, "</svg>\n");
        return end;
}

/* Names the marks, ends and lines of the picture. */
static void put_lane_keys(const struct picture *p, const struct story *s, const struct lane *lanes,
                          size_t n, unsigned ended)
{
        open_keys(p->to);
        for (int k = 0; k < MARK_KINDS; k++)
                for (size_t i = 0; i < n; i++)
                        if (buf_len(&lanes[i].paths[k])) {
                                CLEANUP(free_textp)
                                char *shape = xasprintf("<path class=\"%s\" d=\"%s\"/>",
                                                        marks[k].class, marks[k].key);

                                put_key(p->to, shape, marks[k].words);
                                break;
                        }
        for (int e = END_ZERO; e < ENDS; e++)
                if (ended & 1U << e)
                        put_key(p->to, ends[e].shape, ends[e].words);
        if (story_diverged_before(s) && is_within(p, s->divergence.us))
                put_key(p->to, "<path class=\"divergence\" d=\"M0 0v18\"/>", "first divergence");
        if (is_within(p, s->times.failed_us))
                put_key(p->to, "<path class=\"failure\" d=\"M0 0v18\"/>",
                        s->cause_rank >= 0 ? "first failure" : "order to stop");
        if (n < s->n_ranks)
                buf_printf(p->to, "%zu of %zu ranks are shown.", n, s->n_ranks);
        buf_appends(p->to, "</p>\n");
}

void picture_ranks(struct buf *to, const struct story *s, int64_t from_us, int64_t until_us,
                   int64_t zero_us)
{
        int *lane_of = xcalloc(s->n_ranks, sizeof(*lane_of));
        struct picture p = { to, from_us, until_us, zero_us };
        size_t n = choose_lanes(s, lane_of);
        struct lane *lanes = xcalloc(n, sizeof(*lanes));
        unsigned ended = 0;

        for (size_t i = 0; i < s->log.n; i++) {
                const struct trace_event *e = &s->log.v[i];

                /* Ranks of the log are below n_ranks (trace_log_read()). */
                if (lane_of[e->rank] >= 0 && is_within(&p, e->us))
                        take_lane_event(&p, &lanes[lane_of[e->rank]], e);
        }
        open_picture(&p, n > PAGE_ROWS ? "long" : "short", "The ranks over time");
        /* Odd ranks on top, then the others. */
        for (int others = 0; others <= 1; others++)
                for (size_t i = 0; i < s->n_ranks; i++)
                        if (lane_of[i] >= 0 && is_odd_rank(s, (int)i) != others)
                                ended |= 1U << put_lane(&p, s, (int)i, &lanes[lane_of[i]]);
        put_lane_keys(&p, s, lanes, n, ended);
        for (size_t i = 0; i < n; i++)
                for (int k = 0; k < MARK_KINDS; k++)
                        buf_finish(&lanes[i].paths[k]);
        free(lanes);
        free(lane_of);
}

/* --- series ----------------------------------------------------------------------------------- */

/* Returns a number of all GPUs: the mean use (@what 0), else a sum of memory (1) or power (2). */
static double get_gpus(const struct sample *s, size_t what)
{
        double sum = 0;
        int known = 0;

        for (uint32_t i = 0; i < s->n_gpus; i++) {
                const struct sample_gpu *g = &s->gpus[i];

                if (what == 0 && g->use_percent == SAMPLE_USE_UNKNOWN)
                        continue;
                sum += (double)(what == 0 ? g->use_percent : what == 1 ? g->memory_mib : g->watts);
                known++;
        }
        return what == 0 && known ? sum / known : sum;
}

/* Returns a number of a sample in the unit of series[]. */
static double get_series(const struct sample *s, int series)
{
        switch (series) {
        case 0:
                return (double)s->cpu_permille / 10;
        case 1:
                return (double)s->memory_mib / 1024;
        case 2:
                return (double)(s->in_kib + s->out_kib) / 1024;
        case 3:
                return get_gpus(s, 0);
        case 4:
                return get_gpus(s, 1) / 1024;
        default:
                return get_gpus(s, 2);
        }
}

static const struct {
        const char *name, *unit;
        const char *small; /* a 1024th of the unit, for a series below 1; NULL = none */
        bool of_gpus;
} series[] = {
        { "processors", "%", NULL, false },
        { "memory", "GiB", "MiB", false },
        { "network, in and out", "MiB/s", "KiB/s", false },
        { "GPUs", "%", NULL, true },
        { "memory of GPUs", "GiB", "MiB", true },
        { "power of GPUs", "W", NULL, true },
};

/* A line from the first sample to the last, scaled to the largest value, with this value in the
 * caption. An amount of 0 all the time has no line. */
static void put_series(struct buf *to, const struct story *s, int node, int which)
{
        CLEANUP(buf_finish) struct buf path = BUF_INIT;
        int64_t from_us = -1, until_us = 1;
        double most = 0, least = 1e300;
        size_t n = 0, taken = 0;
        char low[32], high[32];
        bool small;

        for (size_t i = 0; i < s->log.n_samples; i++)
                /* The first sample of a node has no interval, and so no rates. */
                if (s->log.samples[i].node == node && s->log.samples[i].s.interval_ms) {
                        most = MAX(most, get_series(&s->log.samples[i].s, which));
                        least = MIN(least, get_series(&s->log.samples[i].s, which));
                        from_us = n++ ? from_us : s->log.samples[i].us;
                        until_us = MAX(s->log.samples[i].us, from_us + 1);
                }
        if (n < 2 || (series[which].small && most <= 0))
                return;
        small = series[which].small && most < 1;
        snprintf(low, sizeof(low), "%.1f", small ? least * 1024 : least);
        snprintf(high, sizeof(high), "%.1f", small ? most * 1024 : most);
        for (size_t i = 0, k = 0; i < s->log.n_samples; i++) {
                const struct node_sample *m = &s->log.samples[i];

                /* Every n-th sample of a long run. */
                if (m->node != node || !m->s.interval_ms || k++ % (n / POINTS + 1))
                        continue;
                buf_printf(&path, "%c%.1f %.1f", taken++ ? 'L' : 'M',
                           240.0 * (double)(m->us - from_us) / (double)(until_us - from_us),
                           38 - (most > 0 ? 36 * get_series(&m->s, which) / most : 0));
        }
        buf_printf(to,
                   "<figure><svg viewBox=\"0 0 240 40\" preserveAspectRatio=\"none\">"
                   "<path class=\"series\" d=\"%.*s\"/></svg>"
                   "<figcaption>%s %s%s%s %s</figcaption></figure>",
                   (int)buf_len(&path), (const char *)buf_data(&path), series[which].name, low,
                   strcmp(low, high) != 0 ? " to " : "", strcmp(low, high) != 0 ? high : "",
                   small ? series[which].small : series[which].unit);
}

void picture_series(struct buf *to, const struct story *s)
{
        /* Nodes without samples get no place among the first ones shown. */
        bool *sampled = xcalloc(s->n_nodes, sizeof(*sampled)), *gpus;
        size_t shown = 0;

        gpus = xcalloc(s->n_nodes, sizeof(*gpus));
        for (size_t i = 0; i < s->log.n_samples; i++) {
                sampled[s->log.samples[i].node] = true;
                gpus[s->log.samples[i].node] |= s->log.samples[i].s.n_gpus > 0;
        }
        for (size_t i = 0; i < s->n_nodes && shown < SERIES_NODES; i++) {
                if (!sampled[i])
                        continue;
                if (!shown++)
                        buf_printf(to, "<section><h2>The node%s, a sample a second</h2>",
                                   s->n_nodes == 1 ? "" : "s");
                if (s->n_nodes > 1) {
                        buf_appends(to, "<h3>");
                        html_text(to, s->nodes[i].host);
                        buf_appends(to, "</h3>");
                }
                buf_appends(to, "<div class=\"grid\">");
                for (size_t k = 0; k < ARRAY_SIZE(series); k++)
                        if (!series[k].of_gpus || gpus[i])
                                put_series(to, s, (int)i, (int)k);
                buf_appends(to, "</div>");
        }
        if (shown)
                buf_appends(to, "</section>\n");
        free(sampled);
        free(gpus);
}
