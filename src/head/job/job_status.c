/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions go out in rounds: ask_nodes() sends a STATUS request to every RUNNING node and begins a
 * table; a further reason meanwhile is added to the same round. finish_round() runs when the last
 * answer has come, or after ANSWER_MS, and tells the result for each reason.
 *
 * The timer quiet sees whether a rank has done anything (--hang-after); when none has for long,
 * config.why takes a closer look. Three timers begin rounds:
 * - join: --start-timeout. Warns of missing ranks, or, if the user set the time, ends the job when
 *   a rank waits.
 * - look: compares the number of waiting requests in the store every quarter of --wait-warn. The
 *   agents are asked only when a rank has waited for long enough.
 * - seek: for records and --json. Only the agents know the ranks at PyTorch's store; they are asked
 *   when the store had requests, ever more rarely while no new rank is found.
 */
#include "head/job/job_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/job.h"
#include "head/job/world_servers.h"
#include "head/job/world_watches.h"
#include "head/status/rank_facts.h"
#include "head/status/rank_table.h"
#include "head/term/diag.h"
#include "wire/status_msg.h"

enum {
        ANSWER_MS = 1000,    /* then a node counts as silent */
        ROUND_MIN_MS = 1000, /* between two looks for missing ranks */
        LOOK_MIN_MS = 100,
        LOOK_MAX_MS = 2000,
        FINALIZE_MS = 3000, /* in MPI_Finalize(), for a rank that has told why it ends */
        SEEK_MIN_MS = 250,
        SEEK_MAX_MS = 60000,
};

/* Reasons for a round. */
enum {
        FOR_ALL = 1,
        FOR_JOINS = 2,
        FOR_WAITS = 4,
        FOR_END = 8,
        FOR_EVENTS = 16,
        FOR_TABLE = 32,
        FOR_ENDING = 64
};

/* A round of questions. */
struct status_round {
        uv_timer_t timer;
        unsigned reasons; /* 0 = no round */
        uint32_t number;
        bool *asked; /* by node: the answer is still to come */
        size_t n_asked;
        struct rank_table table;
        void (*done)(void *ctx); /* FOR_END */
        void *ctx;
        void (*take)(void *ctx, const struct rank_table *t); /* FOR_TABLE */
        void *take_ctx;
};

/* The search for ranks at PyTorch's store. */
struct join_seek {
        uv_timer_t timer;
        uint64_t requests; /* that the store had when the last search began */
};

struct job_status {
        struct cluster *cluster;
        struct attempt *attempt;
        const struct job_config *config;
        uv_timer_t join, look, quiet;
        struct join_seek seek;
        struct world_watches hangs;
        struct status_round round;
        bool asked_joins;
        bool told_missing;              /* as a warning: only once */
        bool told_other;                /* that a process looks for a store of its own: only once */
        struct node_status_other other; /* such a process; pid 0 = none is known */
        struct rank_facts facts;
        int64_t parked_ns; /* since when a rank has waited in the store; 0 = none does */
        int64_t idle_ns;   /* since when none has */
        int64_t gap_ms;    /* a wait as long as this is told */
        int64_t ending_ms; /* one as long as this leads to a look for ranks that end */
        bool told_ending;  /* a rank that has told why it ends, and cannot: only once */
        struct diags last; /* the message of a job ended by missing ranks */
};

static void on_join_time(uv_timer_t *t);

/* --- telling --- */

/* Tells the messages, and frees them. */
static void say_status(const struct job_status *s, struct diags *d)
{
        if (s->config->say)
                s->config->say(s->config->say_ctx, d);
        diags_finish(d);
}

/* Fails the job because ranks are missing; names the first. */
static void fail_missing(struct job_status *s)
{
        uint64_t timeout_ms = (uint64_t)s->cluster->options->start_timeout_ms;
        struct cause c = attempt_cause(s->attempt, CAUSE_JOIN);
        const struct rank_table *t = &s->round.table;
        char *text = rank_table_missing_sentence(t, timeout_ms);

        for (size_t i = t->n; i-- > 0;)
                if (rank_row_missing(&t->rows[i])) {
                        c.rank = (int)i;
                        c.node = t->rows[i].node;
                }
        snprintf(c.text, sizeof(c.text), "%s", text);
        free(text);
        attempt_fail(s->attempt, &c);
}

/* No rank has come to the store: does a process that a rank has started look for another one? */
static void tell_other_store(struct job_status *s)
{
        uint64_t timeout_ms = (uint64_t)s->cluster->options->start_timeout_ms;
        struct diags d = DIAGS_INIT;

        if (!s->other.pid || s->told_other || job_state_stops(s->attempt->state))
                return;
        s->told_other = true;
        rank_table_tell_other_store(&s->round.table, &d, &s->other, timeout_ms);
        say_status(s, &d);
}

/* Only a time set by the user ends the job: the default must not end a job with a long preparation
 * of data. And ranks are missed only when another rank waits, so the job ends when a rank has
 * waited as long. */
static void tell_joins(struct job_status *s)
{
        const struct options *o = s->cluster->options;
        struct rank_table *t = &s->round.table;
        struct diags d = DIAGS_INIT;
        int64_t young_ms = rank_table_excuse_young(t, o->start_timeout_ms);
        bool over = !rank_table_count(t, rank_row_missing) || job_state_stops(s->attempt->state);
        bool waited_for =
                world_servers_waiting(s->attempt->stores) || rank_table_count(t, rank_row_waits);
        bool in_vain = !s->told_missing || rank_table_longest(t) >= (int64_t)o->start_timeout_ms;
        bool fatal = !over && o->start_timeout_given && waited_for && in_vain;

        if (!rank_table_count(t, rank_row_joined)) {
                tell_other_store(s);
                return; /* the timer repeats until a rank has joined */
        }
        if (young_ms && !fatal && !job_state_stops(s->attempt->state)) {
                s->asked_joins = false; /* a look is due then, also without a waiting rank */
                uv_timer_start(&s->join, on_join_time, (uint64_t)young_ms,
                               (uint64_t)MAX(o->start_timeout_ms, ROUND_MIN_MS));
        } else if (over || fatal || !o->start_timeout_given) {
                uv_timer_stop(&s->join);
        }
        if (over || (s->told_missing && !fatal))
                return;
        rank_table_tell_missing(t, &d, (uint64_t)o->start_timeout_ms, fatal);
        for (size_t i = 0; i < t->n && !s->told_missing; i++)
                if (rank_row_missing(&t->rows[i]))
                        cluster_emit(s->cluster, EVENT_RANK_MISSING, t->rows[i].node, (int)i, 0,
                                     NULL);
        s->told_missing = true;
        if (fatal) {
                diags_move(&s->last, &d);
                fail_missing(s);
                return;
        }
        say_status(s, &d);
        /* The other timer would tell the same. */
        s->gap_ms = MAX(s->gap_ms, 2 * o->wait_warn_ms);
}

/* Tells of a rank of an MPI program that has told why it ends, and waits for the others in
 * MPI_Finalize(). False: there is none. */
static bool tell_ending(struct job_status *s)
{
        struct rank_table *t = &s->round.table;
        int64_t least_ms = MIN(FINALIZE_MS, s->cluster->options->wait_warn_ms);
        struct diags d = DIAGS_INIT;
        char reason[512];
        size_t i = 0;

        while (i < t->n && !(rank_row_meets(&t->rows[i]) && t->rows[i].k.wait.ms >= least_ms &&
                             outcome_has_told(&s->attempt->outcome, (int)i, attempt_newest_stderr,
                                              s->attempt, reason, sizeof(reason))))
                i++;
        if (s->told_ending || i == t->n ||
            rank_table_count_world(t, (int)i, rank_row_meets) == rank_table_world_size(t, (int)i))
                return false;
        s->told_ending = true;
        rank_table_tell_finalize(t, &d, &t->rows[i], reason);
        cluster_emit(s->cluster, EVENT_STALLED, -1, (int)i, t->rows[i].k.wait.ms, d.v[0].fact);
        say_status(s, &d);
        return true;
}

/* Warns of ranks that wait for long. The gap to the next warning doubles, so a hang of hours makes
 * a dozen of warnings. */
static void tell_waits(struct job_status *s)
{
        uint32_t threshold_ms = (uint32_t)MIN(s->cluster->options->wait_warn_ms, UINT32_MAX);
        int64_t longest = rank_table_longest(&s->round.table);
        struct diags d = DIAGS_INIT;

        if (job_state_stops(s->attempt->state))
                return;
        if (longest < s->gap_ms) {
                /* Many short waits, one after the other: look again when the oldest is due. */
                s->parked_ns = clock_ns() - longest * 1000000;
                return;
        }
        s->gap_ms *= 2;
        if (tell_ending(s) || !rank_table_tell_waiting(&s->round.table, &d, threshold_ms))
                return;
        cluster_emit(s->cluster, EVENT_STALLED, -1, -1, longest, d.v[0].fact);
        say_status(s, &d);
}

/* Whether a rank that has not ended has told why it ends. Reads the words of all ranks, so ever
 * more rarely while a rank waits. */
static bool has_ending_rank(struct job_status *s, int64_t parked_ms)
{
        char reason[512];
        int n = s->attempt->plan->world_size;

        if (parked_ms < s->ending_ms || s->told_ending)
                return false;
        s->ending_ms *= 2;
        for (int i = 0; i < n; i++)
                if (outcome_has_told(&s->attempt->outcome, i, attempt_newest_stderr, s->attempt,
                                     reason, sizeof(reason)))
                        return true;
        return false;
}

/* --- asking --- */

/* The last answer has come, or the time for answers is over. */
static void finish_round(uv_timer_t *t)
{
        struct job_status *s = t->data;
        struct status_round *r = &s->round;
        const struct cluster *c = s->cluster;
        const struct hello **hellos = xcalloc(c->n_nodes, sizeof(const struct hello *));
        bool runs = job_state_runs(s->attempt->state);
        /* Between two attempts there is no store, and no rank is missing. */
        unsigned reasons = runs ? r->reasons : r->reasons & (FOR_ALL | FOR_END | FOR_TABLE);
        struct diags d = DIAGS_INIT;

        uv_timer_stop(t);
        r->reasons = 0;
        for (size_t i = 0; i < c->n_nodes; i++)
                hellos[i] = &c->nodes[i].hello;
        rank_table_match(&r->table, hellos);
        free(hellos);
        if (runs && rank_facts_emit_joined(&s->facts, &r->table))
                uv_timer_set_repeat(&s->seek.timer, SEEK_MIN_MS);
        if (reasons & FOR_ALL) {
                rank_table_tell_all(&r->table, &d, attempt_age_ms(s->attempt));
                say_status(s, &d);
        }
        if (reasons & FOR_TABLE)
                r->take(r->take_ctx, &r->table);
        if (reasons & FOR_JOINS)
                tell_joins(s);
        if (reasons & FOR_ENDING)
                tell_ending(s);
        if (reasons & FOR_WAITS)
                tell_waits(s);
        rank_table_finish(&r->table);
        /* Unless all ranks have ended meanwhile. */
        if (reasons & FOR_END &&
            (job_state_runs(s->attempt->state) || s->attempt->state == JOB_READY))
                r->done(r->ctx);
}

void job_status_settle(struct job_status *s)
{
        if (s->round.reasons)
                finish_round(&s->round.timer);
}

/* Begins the table with the knowledge of the head itself. */
static void begin_table(struct job_status *s)
{
        const struct plan *plan = s->attempt->plan;
        struct rank_table *t = &s->round.table;

        rank_table_init(t, plan, s->cluster->hosts, s->config->run_id);
        t->width = diag_row_width(STDERR_FILENO);
        rank_facts_fill(&s->facts, t);
        for (int i = 0; i < plan->world_size; i++)
                if (s->cluster->nodes[plan->ranks[i].node].state == NODE_GONE)
                        rank_table_ended(t, i);
}

/* Begins a round, or adds a reason to the present round. */
static void ask_nodes(struct job_status *s, unsigned reason)
{
        struct status_round *r = &s->round;
        bool busy = r->reasons != 0;

        r->reasons |= reason;
        if (busy)
                return;
        r->number++;
        r->n_asked = 0;
        begin_table(s);
        for (size_t i = 0; i < s->cluster->n_nodes; i++) {
                r->asked[i] = s->cluster->nodes[i].state == NODE_RUNNING;
                r->n_asked += r->asked[i];
        }
        /* Without a node to ask the round ends in the next turn, never inside this call. */
        uv_timer_start(&r->timer, finish_round, r->n_asked ? ANSWER_MS : 0, 0);
        for (struct node *n = NULL; (n = cluster_each_running(s->cluster, n));) {
                number_encode(&n->out, MSG_STATUS_REQUEST, r->number);
                node_flush(n);
        }
}

bool job_status_take(struct job_status *s, int node, const struct node_status *answer)
{
        struct status_round *r = &s->round;

        if (!answer->number || answer->number > r->number)
                return false;
        /* An answer to an earlier round is late, but no fault of the node. */
        if (!r->reasons || answer->number != r->number || !r->asked[node])
                return true;
        r->asked[node] = false;
        rank_table_add(&r->table, node, answer);
        if (!s->other.pid && answer->other.rank < (uint32_t)s->attempt->plan->world_size &&
            s->attempt->plan->ranks[answer->other.rank].node == node)
                s->other = answer->other;
        if (--r->n_asked == 0)
                finish_round(&r->timer);
        return true;
}

/* --- when --- */

/* Time to ask which ranks have joined the store: a program may have started ranks that look for
 * another store. */
static void on_join_time(uv_timer_t *t)
{
        struct job_status *s = t->data;
        bool first = !s->asked_joins;

        if (!job_state_runs(s->attempt->state))
                return; /* between two attempts */
        s->asked_joins = true;
        if (job_state_stops(s->attempt->state))
                return;
        /* After the first round, while a rank waits, or while a program may still start ranks of
         * its own. */
        if (first || world_servers_waiting(s->attempt->stores) ||
            (!s->told_other && !world_servers_requests(s->attempt->stores)))
                ask_nodes(s, FOR_JOINS);
}

/* Checks, without a message, whether requests have been waiting in the store for long; only then
 * the nodes are asked. */
static void on_look(uv_timer_t *t)
{
        struct job_status *s = t->data;
        int64_t now = clock_ns();

        if (s->attempt->state != JOB_RUNNING)
                return;
        if (!world_servers_waiting(s->attempt->stores)) {
                s->idle_ns = s->parked_ns ? now : s->idle_ns;
                s->parked_ns = 0;
                s->ending_ms = FINALIZE_MS;
                /* Idle for as long as the last warning had to wait: begin with the first gap. */
                if (now - s->idle_ns >= s->gap_ms * 1000000)
                        s->gap_ms = s->cluster->options->wait_warn_ms;
                return;
        }
        if (!s->parked_ns)
                s->parked_ns = now;
        if (now - s->parked_ns >= s->gap_ms * 1000000)
                ask_nodes(s, FOR_WAITS);
        else if (has_ending_rank(s, (now - s->parked_ns) / 1000000))
                ask_nodes(s, FOR_ENDING);
}

/* A rank that comes to PyTorch's store asks something there. Who asks much does not lead to many
 * searches: each that finds no rank doubles the time to the next. */
static void on_seek(uv_timer_t *t)
{
        struct job_status *s = t->data;
        const struct world_servers *store = s->attempt->stores; /* none between two attempts */

        if (rank_facts_all_told(&s->facts)) {
                uv_timer_stop(t);
        } else if (s->attempt->state == JOB_RUNNING && store &&
                   world_servers_requests(store) != s->seek.requests) {
                s->seek.requests = world_servers_requests(store);
                uv_timer_set_repeat(t, MIN(2 * uv_timer_get_repeat(t), (uint64_t)SEEK_MAX_MS));
                ask_nodes(s, FOR_EVENTS);
        }
}

/* A world has shown no sign of life for --hang-after: the look that begins here asks the nodes
 * itself. */
static void on_quiet(uv_timer_t *t)
{
        struct job_status *s = t->data;

        if (s->attempt->state == JOB_RUNNING && world_watches_due(&s->hangs))
                s->config->why.quiet(s->config->why.ctx);
}

/* A look at a fraction of the time costs nothing, and finds its end early enough. */
static void start_look(uv_timer_t *t, uv_timer_cb fn, int64_t time_ms)
{
        int64_t period = MAX(MIN(time_ms / 4, LOOK_MAX_MS), LOOK_MIN_MS);

        uv_timer_start(t, fn, (uint64_t)period, (uint64_t)period);
}

/* Clears what counts for one attempt only, and sets each timer anew that the options want. */
void job_status_launched(struct job_status *s)
{
        const struct options *o = s->cluster->options;
        int64_t warn = o->wait_warn_ms;

        rank_facts_begin(&s->facts, s->config->ranks, s->cluster->hosts, s->cluster->events);
        s->asked_joins = s->told_missing = false;
        s->seek.requests = 0;
        s->other = (struct node_status_other){ 0 };
        s->parked_ns = 0;
        free(s->round.asked);
        s->round.asked = xcalloc(s->cluster->n_nodes, sizeof(*s->round.asked));
        s->gap_ms = warn;
        s->ending_ms = FINALIZE_MS;
        s->told_ending = false;
        s->idle_ns = s->attempt->launched_ns;
        if (o->start_timeout_ms > 0)
                uv_timer_start(&s->join, on_join_time, (uint64_t)o->start_timeout_ms,
                               (uint64_t)MAX(o->start_timeout_ms, ROUND_MIN_MS));
        if (s->config->tell_joins && o->store_listen != STORE_LISTEN_NONE)
                uv_timer_start(&s->seek.timer, on_seek, SEEK_MIN_MS, SEEK_MIN_MS);
        if (warn > 0)
                start_look(&s->look, on_look, warn);
        world_watches_begin(&s->hangs, s->attempt, o, s->config->ranks);
        if (o->hang_after_ms > 0 && s->attempt->plan->world_size > 1 && s->config->why.quiet)
                start_look(&s->quiet, on_quiet, o->hang_after_ms);
}

/* --- ranks --- */

void job_status_output(struct job_status *s, int rank)
{
        world_watches_output(&s->hangs, rank);
}

void job_status_dumping(struct job_status *s, bool on)
{
        world_watches_dumping(&s->hangs, on);
}

bool job_status_still_hangs(const struct job_status *s)
{
        return s->attempt->state == JOB_RUNNING && world_watches_stand(&s->hangs);
}

int64_t job_status_hang_ms(const struct job_status *s)
{
        return job_status_still_hangs(s) ? world_watches_silent_ms(&s->hangs) : 0;
}

void job_status_ask(struct job_status *s)
{
        if (s->attempt->state == JOB_RUNNING)
                world_watches_ask(&s->hangs);
}

bool job_status_hangs(struct job_status *s, const struct intlist *worlds, bool tell)
{
        return s->attempt->state == JOB_RUNNING && world_watches_found(&s->hangs, worlds, tell);
}

enum why_share job_status_share(const struct job_status *s, int world, bool unasked)
{
        return world_watches_share(&s->hangs, world, unasked);
}

void job_status_joined(struct job_status *s, int rank)
{
        world_watches_alive(&s->hangs, rank);
}

void job_status_progress(struct job_status *s, int rank, int64_t step, int64_t total,
                         const char *note)
{
        world_watches_alive(&s->hangs, rank);
        rank_facts_progress(&s->facts, rank, step, total, note);
}

void job_status_line_step(struct job_status *s, int rank, int64_t step, int64_t total)
{
        rank_facts_line_step(&s->facts, rank, step, total);
}

void job_status_ended(struct job_status *s, int rank)
{
        world_watches_alive(&s->hangs, rank);
        rank_facts_ended(&s->facts, rank);
}

/* --- showing --- */

void job_status_show(struct job_status *s)
{
        const struct cluster *c = s->cluster;
        struct diags d = DIAGS_INIT;
        size_t *waiting, n = 0;
        struct diag *di;
        char *names;

        if (job_state_runs(s->attempt->state)) {
                ask_nodes(s, FOR_ALL);
                return;
        }
        waiting = xcalloc(c->n_nodes, sizeof(*waiting));
        for (size_t i = 0; i < c->n_nodes; i++)
                /* A FAILED node that is tried again is not counted in c->failed. */
                if (c->nodes[i].state < NODE_READY || c->nodes[i].again)
                        waiting[n++] = i;
        di = diag_tell(&d, "%zu of %zu nodes are ready", c->n_nodes - c->failed - n, c->n_nodes);
        names = hosts_fold(c->hosts, waiting, n);
        if (n)
                diag_note(di, "waiting for %s", names);
        free(names);
        free(waiting);
        say_status(s, &d);
}

void job_status_show_last(struct job_status *s, void (*done)(void *ctx), void *ctx)
{
        s->round.done = done;
        s->round.ctx = ctx;
        ask_nodes(s, FOR_ALL | FOR_END);
}

bool job_status_take_table(struct job_status *s,
                           void (*take)(void *ctx, const struct rank_table *t), void *ctx)
{
        if (!job_state_runs(s->attempt->state))
                return false;
        s->round.take = take;
        s->round.take_ctx = ctx;
        ask_nodes(s, FOR_TABLE);
        return true;
}

void job_status_move_last(struct job_status *s, struct diags *to)
{
        diags_move(to, &s->last);
}

/* --- life cycle --- */

struct job_status *job_status_create(struct cluster *c, struct attempt *a,
                                     const struct job_config *config)
{
        struct job_status *s = xcalloc(1, sizeof(*s));

        s->cluster = c;
        s->attempt = a;
        s->config = config;
        cluster_init_timer(c, &s->round.timer, s);
        cluster_init_timer(c, &s->join, s);
        cluster_init_timer(c, &s->look, s);
        cluster_init_timer(c, &s->seek.timer, s);
        cluster_init_timer(c, &s->quiet, s);
        rank_facts_init(&s->facts, c->loop);
        return s;
}

void job_status_close(struct job_status *s)
{
        uv_close((uv_handle_t *)&s->round.timer, NULL);
        uv_close((uv_handle_t *)&s->join, NULL);
        uv_close((uv_handle_t *)&s->look, NULL);
        uv_close((uv_handle_t *)&s->seek.timer, NULL);
        uv_close((uv_handle_t *)&s->quiet, NULL);
        rank_facts_close(&s->facts);
}

void job_status_free(struct job_status *s)
{
        rank_table_finish(&s->round.table);
        diags_finish(&s->last);
        rank_facts_finish(&s->facts);
        world_watches_finish(&s->hangs);
        free(s->round.asked);
        free(s);
}
