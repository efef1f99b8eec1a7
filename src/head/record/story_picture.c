/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures are WIDTH units wide, names on the left. Marks of a lane that would lie on one another
 * become one, so that a picture has a bounded size whatever the number of records.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/record/step_times.h"
#include "head/record/story_html.h"
#include "head/record/story_text.h"

enum {
        WIDTH = 1000,
        NAMES = 150, /* of it for names */
        CHART = WIDTH - NAMES - 60,
        BAR = 18, /* height of a node's bar, and of a rank's lane */
        HEAD = 24,
        START_NODES = 1000,
        LANES = 64,
        SERIES_NODES = 16,
        MARKS = CHART, /* of one kind in a lane */
        POINTS = 240,  /* of a series */
        STEP_COLUMNS = 120,
};

struct picture {
        struct buf *to;
        int64_t from_us, until_us;
};

static double place_x(const struct picture *p, int64_t us)
{
        double part = (double)(us - p->from_us) / (double)MAX(p->until_us - p->from_us, INT64_C(1));

        return NAMES + CHART * MIN(MAX(part, 0.0), 1.0);
}

static void open_picture(const struct picture *p, size_t rows, const char *what)
{
        buf_printf(p->to, "<svg viewBox=\"0 0 %d %zu\" role=\"img\" aria-label=\"%s\">", WIDTH,
                   HEAD + rows * BAR + 4, what);
}

/* Times below the top: from, until, and three between. */
static void put_axis(const struct picture *p, size_t rows)
{
        for (int i = 0; i <= 4; i++) {
                int64_t us = p->from_us + (p->until_us - p->from_us) * i / 4;
                const char *anchor = i == 0 ? "start" : i == 4 ? "end" : "middle";

                buf_printf(p->to,
                           "<path d=\"M%.1f %dV%zu\" stroke=\"var(--line)\"/><text class=\"t\" "
                           "x=\"%.1f\" y=\"11\" text-anchor=\"%s\">%s</text>",
                           place_x(p, us), HEAD - 8, HEAD + rows * BAR, place_x(p, us), anchor,
                           story_span(us).text);
        }
}

static void put_row_name(const struct picture *p, size_t row, const char *name, bool bold)
{
        buf_printf(p->to, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\"%s>", NAMES - 6,
                   HEAD + row * BAR + 13, bold ? " style=\"font-weight:700\"" : "");
        html_text(p->to, name);
        buf_appends(p->to, "</text>");
}

/* --- the start -------------------------------------------------------------------------------- */

/* A bar with its letter, where there is room for it. */
static void put_bar(const struct picture *p, size_t row, char letter, const char *name,
                    const char *fill, int64_t from_us, int64_t until_us)
{
        double x, width;

        if (from_us < 0 || until_us < from_us)
                return;
        x = place_x(p, from_us);
        width = MAX(place_x(p, until_us) - x, 1.0);
        buf_printf(p->to,
                   "<rect x=\"%.1f\" y=\"%zu\" width=\"%.1f\" height=\"%d\" fill=\"%s\" "
                   "stroke=\"var(--bg)\"><title>%s %s</title></rect>",
                   x, HEAD + row * BAR + 1, width, BAR - 4, fill, name,
                   story_span(until_us - from_us).text);
        if (width >= 12)
                buf_printf(p->to, "<text x=\"%.1f\" y=\"%zu\">%c</text>", x + 3,
                           HEAD + row * BAR + 13, letter);
}

static void put_start_row(const struct picture *p, const struct story *s, size_t node)
{
        const struct story_node *n = &s->nodes[node];

        put_row_name(p, node, n->host, n->lost || n->failed);
        put_bar(p, node, 'C', "connect", "var(--b)", n->connected_us < 0 ? -1 : 0, n->connected_us);
        put_bar(p, node, 'A', n->uploaded ? "agent, uploaded" : "agent", "var(--c)",
                n->connected_us, n->ready_us);
        put_bar(p, node, 'P', "push", "var(--b)", n->ready_us, n->pushed_us);
        if (!s->restarts)
                put_bar(p, node, 'S', "start", "var(--b)",
                        n->started_us < 0 ? -1 : s->times.ordered_us, n->started_us);
        put_bar(p, node, 'J', "join", "var(--c)", n->started_us, n->joined_us);
        if (n->lost || n->failed)
                buf_printf(p->to, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%s</text>", WIDTH,
                           HEAD + node * BAR + 13, n->lost ? "lost" : "not reached");
}

void picture_start(struct buf *to, const struct story *s)
{
        struct picture p = { to, 0, 1 };
        size_t rows = MIN(s->n_nodes, (size_t)START_NODES);

        for (size_t i = 0; i < s->n_phases; i++)
                p.until_us = MAX(p.until_us, s->phases[i].until_us);
        open_picture(&p, rows, "The start of each node");
        put_axis(&p, rows);
        for (size_t i = 0; i < rows; i++)
                put_start_row(&p, s, i);
        buf_printf(to,
                   "</svg><p class=\"dim\">C connect, A agent, %sS start of the ranks, J join; "
                   "gaps wait for other nodes.%s</p>",
                   s->n_nodes && s->nodes[0].pushed_us >= 0 ? "P push, " : "",
                   rows < s->n_nodes ? " Only the first nodes are shown." : "");
}

/* --- steps ------------------------------------------------------------------------------------ */

static void put_step_cells(const struct picture *p, const struct step_times *t, size_t row)
{
        static const char *const opacity[] = { ".1", ".3", ".55", ".8", "1" };
        double width = (double)CHART / (double)t->columns;

        for (size_t c = 0; c < t->columns; c++) {
                double us = t->rows[row].cells[c];
                int shade = step_times_shade(t, us);

                if (shade >= 0)
                        buf_printf(
                                p->to,
                                "<rect x=\"%.1f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" "
                                "fill=\"var(--%s)\" fill-opacity=\"%s\"><title>%s</title></rect>",
                                NAMES + (double)c * width, HEAD + row * BAR + 1, width, BAR - 2,
                                shade == 4 ? "bad" : "a", opacity[shade],
                                story_span((int64_t)us).text);
        }
}

void picture_steps(struct buf *to, const struct story *s)
{
        const struct trace_places places = { s->node_of, s->n_ranks, s->n_nodes };
        struct step_times t;

        step_times_find(&t, &s->log, &places, STEP_COLUMNS);
        if (t.n_rows) {
                struct picture p = { to, t.from_us, t.until_us };

                buf_printf(to,
                           "<section><h2>Steps %" PRId64 " to %" PRId64
                           "</h2><p>%s each by itself, without waits for others. The slowest rank "
                           "is on top; the darker, the longer: more than 1.1, 1.25, 1.6 and 2.5 "
                           "times the median.</p><div class=\"wide\">",
                           t.first, t.last, story_span((int64_t)t.median_us).text);
                open_picture(&p, t.n_rows, "How long the steps of each rank took");
                put_axis(&p, t.n_rows);
                for (size_t i = 0; i < t.n_rows; i++) {
                        const struct step_row *r = &t.rows[i];
                        CLEANUP(free_textp)
                        char *name = r->rank < 0 ? xasprintf("%zu others", r->n)
                                                 : story_place_text(s, -1, r->rank);

                        put_row_name(&p, i, name, !i && s->slow.rank.node == r->rank);
                        put_step_cells(&p, &t, i);
                        buf_printf(to, "<text x=\"%d\" y=\"%zu\">%s</text>", NAMES + CHART + 4,
                                   HEAD + i * BAR + 13, story_span((int64_t)r->own_us).text);
                }
                buf_appends(to, "</svg></div></section>\n");
        }
        step_times_finish(&t);
}

/* --- lanes of ranks --------------------------------------------------------------------------- */

/* Chooses the ranks that are shown: those that failed or diverged, then the others in order. */
static size_t choose_lanes(const struct story *s, int *lane_of)
{
        size_t n = 0, failed = 0;

        for (size_t i = 0; i < s->n_ranks; i++) {
                const struct story_rank *r = &s->ranks[i];
                bool odd = (int)i == s->cause_rank || (int)i == s->divergence.rank;
                bool bad = r->exited_us >= 0 && (r->code || r->signal) &&
                           (s->times.stop_us < 0 || r->exited_us <= s->times.stop_us);

                lane_of[i] = odd || (bad && failed++ < LANES / 4) ? 0 : -1;
                n += lane_of[i] == 0;
        }
        for (size_t i = 0; i < s->n_ranks && n < LANES; i++)
                if (lane_of[i] < 0) {
                        lane_of[i] = 0;
                        n++;
                }
        n = 0;
        for (size_t i = 0; i < s->n_ranks; i++)
                if (lane_of[i] == 0)
                        lane_of[i] = (int)n++;
        return n;
}

/* The marks of one kind, lane by lane, as one path. */
struct mark_kind {
        const char *stroke, *title;
        double last[LANES]; /* x of the newest mark */
        size_t n[LANES];
        struct buf path;
};

enum { MARK_STEP, MARK_WAIT, MARK_OUT, MARK_ERR, MARK_KINDS };

/* False: it would lie on the one before. */
static bool take_mark(struct mark_kind *k, size_t lane, double x, double least)
{
        if (k->n[lane] >= MARKS || (k->n[lane] && x < k->last[lane] + least))
                return false;
        k->n[lane]++;
        k->last[lane] = x;
        return true;
}

static void take_lane_event(const struct picture *p, struct mark_kind *kinds, size_t lane,
                            const struct trace_event *e)
{
        double x = place_x(p, e->us), y = HEAD + (double)lane * BAR, from;
        struct mark_kind *k;

        if (e->kind == TRACE_STEP && take_mark(k = &kinds[MARK_STEP], lane, x, 1)) {
                buf_printf(&k->path, "M%.1f %.0fv8", x, y + 4);
        } else if (e->kind == TRACE_OUT && e->more & 1 &&
                   take_mark(k = &kinds[MARK_ERR], lane, x, 3)) {
                buf_printf(&k->path, "M%.1f %.0fl3 -6l3 6z", x - 3, y + 8);
        } else if (e->kind == TRACE_OUT && !(e->more & 1) &&
                   take_mark(k = &kinds[MARK_OUT], lane, x, 2)) {
                buf_printf(&k->path, "M%.1f %.0fh1.5", x, y + 15);
        } else if (trace_event_waits(e)) {
                from = place_x(p, e->us - (int64_t)MIN(e->more, (uint64_t)INT64_MAX / 2));
                if (x - from >= 2 && take_mark(k = &kinds[MARK_WAIT], lane, x, 1))
                        buf_printf(&k->path, "M%.1f %.0fH%.1fv4H%.1fz", from, y + 6, x, from);
        }
}

/* The ranks' lives, and how they ended. */
static void put_lane(const struct picture *p, const struct story *s, size_t rank, size_t lane)
{
        const struct story_rank *r = &s->ranks[rank];
        CLEANUP(free_textp) char *name = story_place_text(s, -1, (int)rank);
        int64_t until = r->exited_us < 0 ? p->until_us : r->exited_us;
        double y = HEAD + (double)lane * BAR;
        CLEANUP(free_textp) char *end = story_end_text(r);

        put_row_name(p, lane, name, (int)rank == s->cause_rank || (int)rank == s->divergence.rank);
        buf_printf(p->to, "<path d=\"M%.1f %.0fH%.1f\" stroke=\"var(--dim)\"><title>",
                   place_x(p, MAX(r->started_us, p->from_us)), y + 8, place_x(p, until));
        html_text(p->to, end);
        buf_appends(p->to, "</title></path>");
        if (r->exited_us < p->from_us || r->exited_us > p->until_us)
                return;
        if (r->code || r->signal)
                buf_printf(p->to,
                           "<path d=\"M%.1f %.0fl8 8m0 -8l-8 8\" stroke=\"var(--bad)\" "
                           "stroke-width=\"2\"/>",
                           place_x(p, until) - 4, y + 4);
        else
                buf_printf(p->to,
                           "<rect x=\"%.1f\" y=\"%.0f\" width=\"7\" height=\"7\" "
                           "fill=\"var(--fg)\"/>",
                           place_x(p, until) - 3, y + 4);
}

/* A line through all lanes, named on its left or right side. */
static void put_line_at(const struct picture *p, size_t rows, int64_t us, const char *stroke,
                        const char *dashes, bool right, const char *name)
{
        double x = place_x(p, us);

        if (us < p->from_us || us > p->until_us)
                return;
        buf_printf(
                p->to,
                "<path d=\"M%.1f %dV%zu\" stroke=\"%s\" stroke-width=\"1.5\" "
                "stroke-dasharray=\"%s\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>",
                x, HEAD - 8, HEAD + rows * BAR, stroke, dashes, right ? x + 3 : x - 3, HEAD - 1,
                right ? "start" : "end", name);
}

void picture_ranks(struct buf *to, const struct story *s, int64_t from_us, int64_t until_us)
{
        struct mark_kind *kinds = xcalloc(MARK_KINDS, sizeof(*kinds));
        int *lane_of = xcalloc(s->n_ranks, sizeof(*lane_of));
        struct picture p = { to, from_us, until_us };
        size_t rows = choose_lanes(s, lane_of);

        kinds[MARK_STEP].stroke = kinds[MARK_WAIT].stroke = "var(--a)";
        kinds[MARK_OUT].stroke = "var(--fg)";
        kinds[MARK_ERR].stroke = "var(--bad)";
        open_picture(&p, rows, "The ranks over time");
        put_axis(&p, rows);
        for (size_t i = 0; i < s->n_ranks; i++)
                if (lane_of[i] >= 0)
                        put_lane(&p, s, i, (size_t)lane_of[i]);
        for (size_t i = 0; i < s->log.n; i++) {
                const struct trace_event *e = &s->log.v[i];

                if (lane_of[e->rank] >= 0 && e->us >= from_us && e->us <= until_us)
                        take_lane_event(&p, kinds, (size_t)lane_of[e->rank], e);
        }
        for (int i = 0; i < MARK_KINDS; i++) {
                if (buf_len(&kinds[i].path))
                        buf_printf(to, "<path d=\"%.*s\" stroke=\"%s\" fill=\"%s\"/>",
                                   (int)buf_len(&kinds[i].path),
                                   (const char *)buf_data(&kinds[i].path), kinds[i].stroke,
                                   i == MARK_WAIT  ? "var(--c)"
                                   : i == MARK_ERR ? "var(--bad)"
                                                   : "none");
                buf_finish(&kinds[i].path);
        }
        put_line_at(&p, rows, s->times.failed_us, "var(--bad)", "none", true,
                    s->cause_rank >= 0 ? "failure" : "stop");
        if (s->divergence.rank >= 0)
                put_line_at(&p, rows, s->divergence.us, "var(--mark)", "4 3", false, "divergence");
        buf_printf(to,
                   "</svg><p class=\"dim\">| step, \xe2\x96\xad wait for others in the store, "
                   "\xe2\x88\x99 output, \xe2\x96\xb2 stderr, \xc3\x97 failed, \xe2\x96\xa0 ended "
                   "with 0.%s</p>",
                   rows < s->n_ranks ? " Not all ranks are shown." : "");
        free(lane_of);
        free(kinds);
}

/* --- series ----------------------------------------------------------------------------------- */

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
        bool of_gpus;
} series[] = {
        { "processors", "%", false },
        { "memory", "GiB", false },
        { "network, in and out", "MiB/s", false },
        { "GPUs", "%", true },
        { "memory of GPUs", "GiB", true },
        { "power of GPUs", "W", true },
};

/* One line over time, from 0 to its largest value, which the caption tells. */
static void put_series(struct buf *to, const struct story *s, int node, int which)
{
        CLEANUP(buf_finish) struct buf path = BUF_INIT;
        int64_t last_us = story_last_us(s);
        double most = 0, least = 1e300;
        size_t n = 0, taken = 0;

        for (size_t i = 0; i < s->log.n_samples; i++)
                if (s->log.samples[i].node == node && s->log.samples[i].s.interval_ms) {
                        most = MAX(most, get_series(&s->log.samples[i].s, which));
                        least = MIN(least, get_series(&s->log.samples[i].s, which));
                        n++;
                }
        if (n < 2)
                return;
        for (size_t i = 0, k = 0; i < s->log.n_samples; i++) {
                const struct node_sample *m = &s->log.samples[i];

                if (m->node != node || !m->s.interval_ms || k++ % (n / POINTS + 1))
                        continue;
                buf_printf(&path, "%c%.1f %.1f", taken++ ? 'L' : 'M',
                           240.0 * (double)MAX(m->us, INT64_C(0)) / (double)last_us,
                           38 - (most > 0 ? 36 * get_series(&m->s, which) / most : 0));
        }
        buf_printf(
                to,
                "<figure><svg viewBox=\"0 0 240 40\"><path d=\"M0 39H240\" stroke=\"var(--line)\"/>"
                "<path d=\"%.*s\" fill=\"none\" stroke=\"var(--a)\" stroke-width=\"1.5\"/></svg>"
                "<figcaption>%s: %.1f to %.1f %s</figcaption></figure>",
                (int)buf_len(&path), (const char *)buf_data(&path), series[which].name, least, most,
                series[which].unit);
}

void picture_series(struct buf *to, const struct story *s)
{
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
                buf_appends(to, shown++ ? "<h3>"
                                        : "<section><h2>The nodes, a sample a second</h2><h3>");
                html_text(to, s->nodes[i].host);
                buf_appends(to, "</h3><div class=\"grid\">");
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
