/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/job_private.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/strv.h"
#include "head/status/rank_table.h"
#include "wire/status_msg.h"

enum {
        ANSWER_MS = 1000,    /* a node that has not answered by then is silent */
        ROUND_MIN_MS = 1000, /* from one look for ranks that have joined to the next */
        LOOK_MIN_MS = 100,
        LOOK_MAX_MS = 5000,
        SEEK_MIN_MS = 250, /* from one look for joins that only agents know to the next, at first */
        SEEK_MAX_MS = 60000,
        STEP_GAP_MS = 1000, /* from one event about a rank's progress to the next */
        NOTE_MAX = 80,
};

/* Why the nodes are being asked. */
enum { FOR_ALL = 1, FOR_JOINS = 2, FOR_WAITS = 4, FOR_END = 8, FOR_EVENTS = 16 };

/* How far a rank is by its own words. */
struct rank_step {
        int64_t step, total, told_ns;
        char note[NOTE_MAX + 1];
        bool said, untold; /* no event has told it yet */
};

struct job_status {
        struct job *j;
        uv_timer_t answer, join, look, seek;
        bool asked_joins;
        bool told_missing; /* as a warning: said once */
        unsigned why;      /* 0 = nobody is being asked */
        uint32_t number;
        bool *asked; /* by node: its answer is still to come */
        size_t n_asked;
        struct rank_table table;
        int64_t *joined_ms;      /* by rank, since the launch; -1 = has not opened libhnlaunch */
        bool *told_joined;       /* by rank: an event */
        bool *ended;             /* by rank */
        struct rank_step *steps; /* by rank; NULL until a rank says how far it is */
        int64_t parked_ns;       /* since when a rank has waited in the store; 0 = none does */
        int64_t idle_ns;         /* since when none has */
        int64_t gap_ms;          /* a wait as long as this is told */
        struct diags last;       /* what ended the job */
};

static void timer_init(struct job_status *r, uv_timer_t *t)
{
        uv_timer_init(&r->j->loop, t);
        t->data = r;
        uv_unref((uv_handle_t *)t);
}

struct job_status *job_status_create(struct job *j)
{
        struct job_status *r = xcalloc(1, sizeof(*r));

        r->j = j;
        timer_init(r, &r->answer);
        timer_init(r, &r->join);
        timer_init(r, &r->look);
        timer_init(r, &r->seek);
        return r;
}

void job_status_close(struct job_status *r)
{
        if (!r)
                return;
        uv_close((uv_handle_t *)&r->answer, NULL);
        uv_close((uv_handle_t *)&r->join, NULL);
        uv_close((uv_handle_t *)&r->look, NULL);
        uv_close((uv_handle_t *)&r->seek, NULL);
}

void job_status_free(struct job_status *r)
{
        if (!r)
                return;
        rank_table_finish(&r->table);
        diags_finish(&r->last);
        free(r->asked);
        free(r->joined_ms);
        free(r->told_joined);
        free(r->ended);
        free(r->steps);
        free(r);
}

/* --- telling ---------------------------------------------------------------------------------- */

static void say(struct job *j, struct diags *d)
{
        if (j->c.say)
                j->c.say(j->c.say_ctx, d);
        diags_finish(d);
}

static void emit_missing(struct job_status *r)
{
        for (size_t i = 0; i < r->table.n; i++)
                if (rank_row_missing(&r->table.rows[i]))
                        job_emit(r->j, EVENT_RANK_MISSING, r->table.rows[i].node, (int)i, 0, NULL);
}

/* Ranks that have come to PyTorch's store: which connection is whose, only the nodes know. */
static void emit_joined(struct job_status *r)
{
        for (size_t i = 0; i < r->table.n; i++) {
                if (r->told_joined[i] || !rank_row_joined(&r->table.rows[i]))
                        continue;
                r->told_joined[i] = true;
                job_emit(r->j, EVENT_RANK_JOINED, r->table.rows[i].node, (int)i, 0, NULL);
        }
}

static void give_up(struct job_status *r)
{
        struct cause c = { .kind = CAUSE_JOIN, .rank = -1, .node = -1 };
        char *text =
                rank_table_missing_sentence(&r->table, (uint64_t)r->j->c.options->start_timeout_ms);

        for (size_t i = r->table.n; i-- > 0;)
                if (rank_row_missing(&r->table.rows[i])) {
                        c.rank = (int)i;
                        c.node = r->table.rows[i].node;
                }
        c.after_ms = job_since_launch_ms(r->j);
        snprintf(c.text, sizeof(c.text), "%s", text);
        free(text);
        job_failed(r->j, outcome_happened(&r->j->outcome, &c));
}

/* A time that the user has set is an order; ours must not end a job that prepares its data for
 * long. And only those who wait for somebody can be said to miss him: if nobody does so yet, the
 * order is carried out when somebody has waited as long. */
static void tell_joins(struct job_status *r)
{
        const struct options *o = r->j->c.options;
        struct diags d = DIAGS_INIT;
        size_t missing = rank_table_count(&r->table, rank_row_missing);
        bool over = !missing || job_state_stops(r->j->job_state);
        bool waited_for =
                store_server_waiting(r->j->store) || rank_table_count(&r->table, rank_row_waits);
        bool in_vain =
                !r->told_missing || rank_table_longest(&r->table) >= (int64_t)o->start_timeout_ms;
        bool fatal = o->start_timeout_given && waited_for && in_vain;

        if (!rank_table_count(&r->table, rank_row_joined))
                return; /* the clock goes round until somebody has */
        if (over || fatal || !o->start_timeout_given)
                uv_timer_stop(&r->join);
        if (over || (r->told_missing && !fatal))
                return;
        rank_table_tell_missing(&r->table, &d, (uint64_t)o->start_timeout_ms, fatal);
        if (!r->told_missing)
                emit_missing(r);
        r->told_missing = true;
        if (fatal) {
                diags_move(&r->last, &d);
                give_up(r);
                return;
        }
        say(r->j, &d);
        /* The same is not said again by the other clock. */
        r->gap_ms = MAX(r->gap_ms, 2 * o->wait_warn_ms);
}

static void tell_waits(struct job_status *r)
{
        struct diags d = DIAGS_INIT;
        int64_t longest = rank_table_longest(&r->table);

        if (job_state_stops(r->j->job_state))
                return;
        if (longest < r->gap_ms) {
                /* Many short waits, one after the other: not before the oldest can be due. */
                r->parked_ns = clock_ns() - longest * 1000000;
                return;
        }
        r->gap_ms *= 2;
        if (!rank_table_tell_waiting(&r->table, &d,
                                     (uint32_t)MIN(r->j->c.options->wait_warn_ms, UINT32_MAX)))
                return;
        job_emit(r->j, EVENT_STALLED, -1, -1, longest, diags_first(&d)->fact);
        say(r->j, &d);
}

static void tell_all(struct job_status *r)
{
        struct diags d = DIAGS_INIT;

        rank_table_tell_all(&r->table, &d, job_since_launch_ms(r->j));
        say(r->j, &d);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void match(struct job_status *r)
{
        const struct hello **hellos = xcalloc(r->j->n_nodes, sizeof(const struct hello *));

        for (size_t i = 0; i < r->j->n_nodes; i++)
                hellos[i] = &r->j->nodes[i].hello;
        rank_table_match(&r->table, hellos);
        free(hellos);
}

static void complete(struct job_status *r)
{
        /* Between two attempts nobody is missing, and there is no store. */
        unsigned why = job_state_runs(r->j->job_state) ? r->why : r->why & (FOR_ALL | FOR_END);

        uv_timer_stop(&r->answer);
        r->why = 0;
        match(r);
        if (job_state_runs(r->j->job_state))
                emit_joined(r);
        if (why & FOR_ALL)
                tell_all(r);
        if (why & FOR_JOINS)
                tell_joins(r);
        if (why & FOR_WAITS)
                tell_waits(r);
        rank_table_finish(&r->table);
        /* Unless all ranks have ended meanwhile. */
        if (why & FOR_END && (job_state_runs(r->j->job_state) || r->j->job_state == JOB_READY))
                job_time_reached(r->j);
}

static void answers_are_late(uv_timer_t *t)
{
        complete(t->data);
}

static void fill_table(struct job_status *r)
{
        struct job *j = r->j;

        rank_table_init(&r->table, j->plan, j->c.hosts);
        for (int i = 0; i < j->plan->world_size; i++) {
                if (r->joined_ms[i] >= 0)
                        rank_table_joined(&r->table, i, r->joined_ms[i]);
                if (r->steps && r->steps[i].said)
                        rank_table_progress(&r->table, i,
                                            (struct rank_progress){ r->steps[i].step,
                                                                    r->steps[i].total,
                                                                    r->steps[i].note });
                if (r->ended[i] || j->nodes[j->plan->ranks[i].node].state == NODE_GONE)
                        rank_table_ended(&r->table, i);
        }
}

static void ask(struct job_status *r, unsigned why)
{
        struct job *j = r->j;
        bool busy = r->why != 0;

        r->why |= why;
        if (busy)
                return;
        r->number++;
        r->n_asked = 0;
        fill_table(r);
        for (size_t i = 0; i < j->n_nodes; i++) {
                r->asked[i] = j->nodes[i].state == NODE_RUNNING;
                r->n_asked += r->asked[i];
        }
        uv_timer_start(&r->answer, answers_are_late, r->n_asked ? ANSWER_MS : 0, 0);
        for (size_t i = 0; i < j->n_nodes; i++) {
                if (!r->asked[i])
                        continue;
                status_request_encode(node_out(&j->nodes[i]), r->number);
                node_flush(&j->nodes[i]);
        }
}

void job_status_take(struct job *j, int node, const struct node_status *answer)
{
        struct job_status *r = j->status;

        if (!r->why || answer->number != r->number || !r->asked[node])
                return;
        r->asked[node] = false;
        rank_table_add(&r->table, node, answer);
        if (--r->n_asked == 0)
                complete(r);
}

/* --- when ------------------------------------------------------------------------------------- */

static void join_time_is_over(uv_timer_t *t)
{
        struct job_status *r = t->data;

        bool first = !r->asked_joins;

        if (!job_state_runs(r->j->job_state))
                return; /* between two attempts */
        r->asked_joins = true;
        /* Agents are asked once; again only when somebody has come since. */
        if (!job_state_stops(r->j->job_state) && (first || store_server_waiting(r->j->store)))
                ask(r, FOR_JOINS);
}

/* Only looks at a number of our own: agents are asked when somebody has waited long enough. */
static void look(uv_timer_t *t)
{
        struct job_status *r = t->data;
        int64_t now = clock_ns();

        if (r->j->job_state != JOB_RUNNING)
                return;
        if (!store_server_waiting(r->j->store)) {
                r->idle_ns = r->parked_ns ? now : r->idle_ns;
                r->parked_ns = 0;
                /* Calm for as long as the last warning had to wait: begin anew. */
                if (now - r->idle_ns >= r->gap_ms * 1000000)
                        r->gap_ms = r->j->c.options->wait_warn_ms;
                return;
        }
        if (!r->parked_ns)
                r->parked_ns = now;
        if (now - r->parked_ns >= r->gap_ms * 1000000)
                ask(r, FOR_WAITS);
}

static bool all_told(const struct job_status *r)
{
        for (int i = 0; i < r->j->plan->world_size; i++)
                if (!r->told_joined[i] && !r->ended[i])
                        return false;
        return true;
}

/* Agents are asked as soon as the store is used, and ever more rarely while ranks are missing. */
static void seek(uv_timer_t *t)
{
        struct job_status *r = t->data;

        if (all_told(r)) {
                uv_timer_stop(t);
        } else if (r->j->job_state == JOB_RUNNING && store_server_used(r->j->store)) {
                uv_timer_set_repeat(t, MIN(2 * uv_timer_get_repeat(t), (uint64_t)SEEK_MAX_MS));
                ask(r, FOR_EVENTS);
        }
}

void job_status_launched(struct job *j)
{
        struct job_status *r = j->status;
        int64_t warn = j->c.options->wait_warn_ms, period;

        free(r->asked);
        free(r->joined_ms);
        free(r->told_joined);
        free(r->ended);
        free(r->steps);
        r->steps = NULL;
        r->asked_joins = r->told_missing = false;
        r->parked_ns = 0;
        r->asked = xcalloc(j->n_nodes, sizeof(*r->asked));
        r->joined_ms = xcalloc((size_t)j->plan->world_size, sizeof(*r->joined_ms));
        r->told_joined = xcalloc((size_t)j->plan->world_size, sizeof(*r->told_joined));
        r->ended = xcalloc((size_t)j->plan->world_size, sizeof(*r->ended));
        for (int i = 0; i < j->plan->world_size; i++)
                r->joined_ms[i] = -1;
        r->gap_ms = warn;
        r->idle_ns = j->launched_ns;
        if (j->c.options->start_timeout_ms > 0)
                uv_timer_start(&r->join, join_time_is_over,
                               (uint64_t)j->c.options->start_timeout_ms,
                               (uint64_t)MAX(j->c.options->start_timeout_ms, ROUND_MIN_MS));
        if (j->c.tell_joins && j->c.options->store_listen != STORE_LISTEN_NONE)
                uv_timer_start(&r->seek, seek, SEEK_MIN_MS, SEEK_MIN_MS);
        if (warn <= 0)
                return;
        period = MAX(MIN(warn / 4, LOOK_MAX_MS), LOOK_MIN_MS);
        uv_timer_start(&r->look, look, (uint64_t)period, (uint64_t)period);
}

void job_status_joined(struct job *j, int rank)
{
        j->status->joined_ms[rank] = (int64_t)job_since_launch_ms(j);
        j->status->told_joined[rank] = true;
}

static void emit_step(struct job *j, int rank)
{
        struct rank_step *s = &j->status->steps[rank];
        int node = j->plan->ranks[rank].node;

        s->told_ns = clock_ns();
        s->untold = false;
        events_emit(j->c.events, (struct event){ .kind = EVENT_RANK_PROGRESS,
                                                 .node = node,
                                                 .rank = rank,
                                                 .value = s->step,
                                                 .count = s->total,
                                                 .host = j->c.hosts->v[node].name,
                                                 .text = *s->note ? s->note : NULL });
}

/* A program may say each of its thousand steps a second: one event a second, and its last words. */
void job_status_progress(struct job *j, int rank, int64_t step, int64_t total, const char *note)
{
        struct job_status *r = j->status;
        struct rank_step *s;

        if (step < 0 || r->ended[rank])
                return;
        if (!r->steps)
                r->steps = xcalloc((size_t)j->plan->world_size, sizeof(*r->steps));
        s = &r->steps[rank];
        s->step = step;
        s->total = MAX(total, 0);
        snprintf(s->note, sizeof(s->note), "%s", note);
        s->untold = true;
        if (!s->said || clock_ns() - s->told_ns >= STEP_GAP_MS * INT64_C(1000000))
                emit_step(j, rank);
        s->said = true;
}

void job_status_ended(struct job *j, int rank)
{
        if (j->status->steps && j->status->steps[rank].untold)
                emit_step(j, rank);
        j->status->ended[rank] = true;
}

bool job_status_has_ended(const struct job *j, int rank)
{
        return j->status->ended[rank];
}

/* Nothing runs yet: whom the launch waits for. */
static void show_connecting(struct job *j)
{
        size_t *waiting = xcalloc(j->n_nodes, sizeof(*waiting)), n = 0;
        struct diags d = DIAGS_INIT;
        struct diag *di;
        char *names;

        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->nodes[i].state < NODE_READY)
                        waiting[n++] = i;
        di = diag_tell(&d, "%zu of %zu nodes are ready", j->n_nodes - j->failed - n, j->n_nodes);
        names = hosts_fold(j->c.hosts, waiting, n);
        if (n)
                diag_note(di, "waiting for %s", names);
        free(names);
        free(waiting);
        say(j, &d);
}

void job_status_show(struct job *j)
{
        if (job_state_runs(j->job_state))
                ask(j->status, FOR_ALL);
        else
                show_connecting(j);
}

void job_status_show_last(struct job *j)
{
        ask(j->status, FOR_ALL | FOR_END);
}

void job_last_diags(struct job *j, struct diags *to)
{
        diags_move(to, &j->status->last);
}
