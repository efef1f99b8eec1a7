/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format wants all lines of a metric behind one another, so the ranks are gone through once per
 * metric. Labels of a rank are the same in all metrics.
 */
#include "head/metrics/metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/msg.h"

struct metrics {
        struct metrics_source s;
        const struct rank_board *ranks;
        char *stop, *hang; /* of these events; NULL = there was none */
};

/* --- facts ------------------------------------------------------------------------------------ */

/* Replaces a kept text; texts of events are lent. */
static void keep_metrics_text(char **to, const char *text)
{
        free(*to);
        *to = xstrdup(text ? text : "");
}

/* Keeps the reasons of a stop and a hang; a new attempt has neither. */
static void on_metrics_event(void *ctx, const struct event *e)
{
        struct metrics *m = ctx;

        if (e->kind == EVENT_STOP) {
                keep_metrics_text(&m->stop, e->text);
        } else if (e->kind == EVENT_HANG) {
                keep_metrics_text(&m->hang, e->text);
        } else if (e->kind == EVENT_RESTART) {
                free(m->stop);
                free(m->hang);
                m->stop = m->hang = NULL;
        }
}

/* --- text ------------------------------------------------------------------------------------- */

/* Appends the two lines that come in front of each metric. */
static void add_head(struct buf *b, const char *name, const char *type, const char *help)
{
        buf_printf(b, "# HELP hnlaunch_%s %s\n# TYPE hnlaunch_%s %s\n", name, help, name, type);
}

/* Appends the value of a label, between quotes, with the three escapes of the format. */
static void add_value(struct buf *b, const char *text)
{
        size_t plain;

        buf_appends(b, "\"");
        for (; *text; text += plain + (text[plain] != '\0')) {
                plain = strcspn(text, "\n\"\\");
                buf_append(b, text, plain);
                if (text[plain])
                        buf_printf(b, "\\%c", text[plain] == '\n' ? 'n' : text[plain]);
        }
        buf_appends(b, "\"");
}

/* Appends the name and the labels of a rank, but for the closing brace. */
static void add_rank(const struct metrics *m, struct buf *b, const char *name, int rank)
{
        const struct plan *plan = m->ranks->plan;
        const struct plan_rank *r = &plan->ranks[rank];

        buf_printf(b, "hnlaunch_%s{rank=\"%d\",host=", name, rank);
        add_value(b, m->s.hosts->v[plan->nodes[r->node].host].name);
        if (r->role) {
                int replica = plan_find_replica(plan, (size_t)r->world);

                buf_printf(b, ",role=\"%s\",role_rank=\"%d\"", r->role,
                           rank - plan->worlds[r->world].first);
                if (replica >= 0)
                        buf_printf(b, ",replica=\"%d\"", replica);
        }
}

/* Appends a time of the event stream as seconds since 1970. */
static void add_date(const struct metrics *m, struct buf *b, int64_t us)
{
        us += m->s.start_us;
        buf_printf(b, " %" PRId64 ".%03d\n", us / 1000000, (int)(us / 1000 % 1000));
}

static void add_run_facts(const struct metrics *m, struct buf *b)
{
        add_head(b, "info", "gauge", "The run and the version of hnlaunch.");
        buf_appends(b, "hnlaunch_info{run=");
        add_value(b, m->s.run_id);
        buf_appends(b, ",version=");
        add_value(b, m->s.version);
        buf_appends(b, "} 1\n");
        add_head(b, "start_time_seconds", "gauge", "Start of hnlaunch, since 1970.");
        buf_appends(b, "hnlaunch_start_time_seconds");
        add_date(m, b, 0);
        add_head(b, "attempt", "gauge", "Number of the attempt, from 0.");
        buf_printf(b, "hnlaunch_attempt %" PRId64 "\n", m->ranks->attempt);
}

/* Appends states and last signs of life. A node that is connecting or lost has no time: an old one
 * would look like a silent node. */
static void add_nodes(const struct metrics *m, struct buf *b)
{
        static const char *const names[METRICS_STATES] = {
                [METRICS_CONNECTING] = "connecting",
                [METRICS_READY] = "ready",
                [METRICS_RUNNING] = "running",
                [METRICS_ENDED] = "ended",
                [METRICS_LOST] = "lost",
        };
        size_t counts[METRICS_STATES] = { 0 };

        for (size_t i = 0; i < m->s.hosts->n; i++)
                counts[m->s.node(m->s.ctx, i).state]++;
        add_head(b, "nodes", "gauge", "Nodes by state.");
        for (int i = 0; i < METRICS_STATES; i++)
                buf_printf(b, "hnlaunch_nodes{state=\"%s\"} %zu\n", names[i], counts[i]);
        add_head(b, "node_last_heard_timestamp_seconds", "gauge",
                 "When the newest byte came from a node that is not lost, since 1970.");
        for (size_t i = 0; i < m->s.hosts->n; i++) {
                struct metrics_node n = m->s.node(m->s.ctx, i);

                if (n.heard_us < 0 || n.state == METRICS_CONNECTING || n.state == METRICS_LOST)
                        continue;
                buf_appends(b, "hnlaunch_node_last_heard_timestamp_seconds{host=");
                add_value(b, m->s.hosts->v[i].name);
                buf_appends(b, "}");
                add_date(m, b, n.heard_us);
        }
}

enum rank_state { METRICS_WAITS, METRICS_RUNS, METRICS_SUCCEEDED, METRICS_FAILED, METRICS_STOPPED };

/* A rank lost with the node has failed. */
static enum rank_state find_rank_state(const struct rank_board_row *r)
{
        if (r->life == RANK_WAITS)
                return METRICS_WAITS;
        if (r->life == RANK_ALIVE)
                return METRICS_RUNS;
        if (r->life == RANK_LOST)
                return METRICS_FAILED;
        return !r->exit ? METRICS_SUCCEEDED : r->stopped ? METRICS_STOPPED : METRICS_FAILED;
}

static void add_rank_counts(const struct metrics *m, struct buf *b)
{
        static const char *const names[] = { "waiting", "running", "succeeded", "failed",
                                             "stopped" };
        int counts[ARRAY_SIZE(names)] = { 0 };

        for (int r = 0; r < m->ranks->n; r++)
                counts[find_rank_state(&m->ranks->rows[r])]++;
        add_head(b, "ranks", "gauge", "Ranks of the attempt by state.");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                buf_printf(b, "hnlaunch_ranks{state=\"%s\"} %d\n", names[i], counts[i]);
}

/* Whether no rank of the attempt is left, and there were any. */
static bool attempt_has_ended(const struct metrics *m)
{
        for (int r = 0; r < m->ranks->n; r++)
                if (!rank_board_is_over(&m->ranks->rows[r]))
                        return false;
        return m->ranks->n > 0;
}

/* The words of the verdict, before there is one. */
static void add_reason(struct buf *b, const char *name, const char *help, const char *reason)
{
        if (!reason)
                return;
        add_head(b, name, "gauge", help);
        buf_printf(b, "hnlaunch_%s{reason=", name);
        add_value(b, reason);
        buf_appends(b, "} 1\n");
}

/* Appends the newest step of each rank that tells any. */
static void add_rank_steps(const struct metrics *m, struct buf *b)
{
        add_head(b, "rank_step", "gauge", "The step that a rank has told last.");
        for (int r = 0; r < m->ranks->n; r++)
                if (m->ranks->rows[r].step >= 0) {
                        add_rank(m, b, "rank_step", r);
                        buf_printf(b, "} %" PRId64 "\n", m->ranks->rows[r].step);
                }
        add_head(b, "rank_steps_expected", "gauge", "The number of steps that a rank will take.");
        for (int r = 0; r < m->ranks->n; r++)
                if (m->ranks->rows[r].step >= 0 && m->ranks->rows[r].total > 0) {
                        add_rank(m, b, "rank_steps_expected", r);
                        buf_printf(b, "} %" PRId64 "\n", m->ranks->rows[r].total);
                }
}

/* Appends counters of bytes, which include ranks without output, and times of those with some. */
static void add_rank_output(const struct metrics *m, struct buf *b)
{
        static const char *const streams[] = { "stdout", "stderr" };

        add_head(b, "rank_output_bytes_total", "counter", "Bytes that a rank has written.");
        for (int r = 0; r < m->ranks->n; r++)
                for (int s = 0; s < 2; s++) {
                        add_rank(m, b, "rank_output_bytes_total", r);
                        buf_printf(b, ",stream=\"%s\"} %" PRIu64 "\n", streams[s],
                                   m->ranks->rows[r].bytes[s]);
                }
        add_head(b, "rank_last_output_timestamp_seconds", "gauge",
                 "When a rank has written last, since 1970.");
        for (int r = 0; r < m->ranks->n; r++)
                if (m->ranks->rows[r].written_us >= 0) {
                        add_rank(m, b, "rank_last_output_timestamp_seconds", r);
                        buf_appends(b, "}");
                        add_date(m, b, m->ranks->rows[r].written_us);
                }
}

/* A cause found later replaces the failure that led to the stop. */
static void add_stop(const struct metrics *m, struct buf *b)
{
        const char *stop = m->stop;
        char cause[700];

        /* Also without a stop: ranks may all have failed by themselves. */
        if ((stop || attempt_has_ended(m)) && m->s.reason &&
            m->s.reason(m->s.ctx, cause, sizeof(cause)))
                stop = cause;
        add_reason(b, "stop_info", "Why all ranks are stopped, or the job has failed.", stop);
}

void metrics_text(const struct metrics *m, struct buf *to)
{
        add_run_facts(m, to);
        add_nodes(m, to);
        add_rank_counts(m, to);
        add_stop(m, to);
        add_reason(to, "hang_info", "The last hang that was found (--hang-after).", m->hang);
        add_rank_steps(m, to);
        add_rank_output(m, to);
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct metrics *metrics_create(const struct metrics_source *s)
{
        struct metrics *m = xcalloc(1, sizeof(*m));

        m->s = *s;
        m->ranks = s->ranks;
        events_listen(s->events, on_metrics_event, m);
        return m;
}

void metrics_destroy(struct metrics *m)
{
        if (!m)
                return;
        free(m->stop);
        free(m->hang);
        free(m);
}
