/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look has three steps, each with a limit of time:
 *
 * 1. the table of all ranks (store, state) and, at once, their processor time of a second
 * 2. the stacks of the outliers, and of two ranks of each world that wait; of all ranks of few
 * 3. a second later, all stacks, those of step 2 once more, and the table once more: a rank goes on
 * if its place has changed or a new wait has begun
 *
 * Beside these steps NCCL's RAS is asked twice (look_ras.c), and PyTorch's flight recorders are
 * ordered to dump (look_flight.c): in an unasked look, only if step 2 has shown a hang.
 *
 * Before ranks are stopped at the time limit of the job, or after a rank has waited for the others
 * in vain, step 1 is followed by the stacks of all ranks, in 3 s altogether.
 *
 * After the first step the clients at the socket get a first answer if a hang is visible, after the
 * third the last. A node without an answer in time ends no step early and holds no step up for
 * long.
 */
#include "head/watch/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/job/job.h"
#include "head/output/say.h"
#include "head/run/run_socket.h"
#include "head/status/rank_table.h"
#include "head/status/rank_table_text.h"
#include "head/watch/hang.h"
#include "head/watch/look_flight.h"
#include "head/watch/look_ras.h"
#include "head/why/why.h"
#include "head/why/why_tell.h"

enum {
        /* Limits of the steps. Stacks of all ranks take the longest: a debugger may read one rank
         * after another. */
        LOOK_MS = 3000,
        LAST_LOOK_MS = 1500, /* each of two steps before the ranks are stopped */
        FIRST_STACKS_MS = 12000,
        ALL_STACKS_MS = 30000,
        ANSWER_MS = 3000, /* beyond the limit of an order */
        /* Ranks with stacks in step 2: outliers of a job, and ranks to compare with in each world.
         * In a job of SMALL_WORLD ranks, all. */
        OUTLIERS_MAX = 16,
        NORMAL_RANKS = 2,
        SMALL_WORLD = 16,
        GAP_MS = 1000,         /* between two looks at a rank */
        CLOCK_SLACK_MS = 1100, /* ages are as old as the last answer of a round */
        BESIDE_MS = 10000,     /* RAS and flight recorders */
};

enum why_step {
        WHY_CLOSED,
        WHY_IDLE,
        WHY_LOOKING,
        WHY_FIRST_STACKS,
        WHY_PAUSE,
        WHY_ALL_STACKS,
        WHY_BESIDE, /* only RAS and flight recorders are still to come */
};

struct look {
        const struct run_view *r;
        uv_timer_t timer; /* the limit of a step */
        bool has_timer;
        bool here;    /* the terminal waits for the answer, too */
        bool unasked; /* no rank has done anything for --hang-after */
        bool last;    /* the ranks are stopped after this look */
        enum why_step step;
        bool has_table;
        int64_t table_ms; /* clock of the first table */
        int64_t first_ms; /* of the first stacks */
        uint32_t number;  /* of the newest order */
        bool *asked;      /* by node: answers are still to come */
        /* Nodes with an answer still to come; 0 ends a step early, once the table is there. */
        size_t n_asked;
        struct why_rank *ranks;
        size_t n;
        struct look_ras ras;
        struct look_flight flight;
};

/* Frees what one look has gathered. The object stays for the next look. */
static void drop_why_ranks(struct look *w)
{
        look_ras_finish(&w->ras);
        look_flight_finish(&w->flight);
        for (size_t i = 0; i < w->n; i++)
                why_rank_finish(&w->ranks[i]);
        free(w->ranks);
        free(w->asked);
        w->ranks = NULL;
        w->asked = NULL;
        w->n = w->n_asked = 0;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Hands an answer to the clients and the terminal. Takes @answer. */
static void tell_why(struct look *w, json_t *answer, bool last)
{
        struct diags d = DIAGS_INIT;

        json_object_set_new(answer, "run", json_string(w->r->id));
        if (last && w->here) {
                why_tell(answer, diag_row_width(STDERR_FILENO), &d);
                say_diags(&d, w->r->color);
                diags_finish(&d);
        }
        if (last) {
                w->step = WHY_IDLE;
                w->here = w->unasked = false;
        }
        run_socket_tell_why(w->r->socket, answer, last);
        json_decref(answer);
}

/* Returns all stacks and the answers of RAS for hang.txt and `hnlaunch why`, malloc'ed. */
static char *make_report(const struct look *w, const struct why_finding *f)
{
        CLEANUP(free_textp) char *stacks = why_report(f, w->ranks, w->n);
        struct buf b = BUF_INIT;

        buf_appends(&b, stacks);
        look_ras_report(&w->ras, &b);
        return buf_steal(&b);
}

/* Notes the ends of ranks that left with 0. */
static void note_ends(struct look *w)
{
        const struct outcome *o = job_outcome(w->r->job);

        for (size_t i = 0; i < w->n; i++) {
                struct why_rank *r = &w->ranks[i];
                const struct cause *left =
                        r->life == WHY_ENDED ? outcome_find_left(o, r->rank) : NULL;
                struct cause c = left ? *left : (struct cause){ 0 };

                c.kind = left ? CAUSE_LEFT : CAUSE_NONE;
                outcome_describe(&c, r->end, sizeof(r->end));
        }
}

/* Notes the failure that a living rank has told: it may be why the others wait. */
static void note_told(struct look *w, struct why_finding *f)
{
        char text[640];

        if (job_find_told(w->r->job, text, sizeof(text)) >= 0)
                strv_push(&f->notes, text);
}

/* Finds and tells what the look knows so far; @last: the look is over. The first answer comes only
 * with a hang that the table shows. */
static void answer_why(struct look *w, bool last)
{
        struct why_finding f;
        const char *dumps = NULL;
        json_t *answer;

        note_ends(w);
        why_find(w->ranks, w->n, &f);
        if (last) {
                look_ras_use(&w->ras, w->ranks, w->n, &f);
                dumps = look_flight_use(&w->flight, &f);
                note_told(w, &f);
        }
        if (!last && f.kind == WHY_NO_HANG) { /* stacks may tell another story */
                why_finding_finish(&f);
                return;
        }
        answer = why_describe(&f, w->ranks, w->n);
        if (last) {
                CLEANUP(free_textp) char *report = make_report(w, &f);

                json_object_set_new(answer, "report", json_text(report));
        } else {
                json_object_set_new(answer, "more", json_true());
        }
        if (dumps)
                json_object_set_new(answer, "dumps", json_text(dumps));
        /* The answer is handed on before tell_why(), which resets @unasked. */
        if (last && w->unasked)
                hang_found(w->r, &f, answer);
        else if (last && !w->last)
                hang_asked(w->r, &f);
        if (last && w->last)
                hang_last(w->r, &f, answer);
        if (last)
                job_dumping(w->r->job, false);
        why_finding_finish(&f);
        tell_why(w, answer, last);
}

/* --- orders ----------------------------------------------------------------------------------- */

static int node_of(const struct look *w, size_t rank)
{
        return w->r->plan->ranks[rank].node;
}

/* Orders the chosen living ranks of each node to be looked at; NULL = all. Before the first table
 * all count as living. */
static void order_look(struct look *w, enum inspect_what what, const bool *chosen,
                       uint32_t limit_ms)
{
        size_t n_nodes = w->r->plan->n_nodes;
        struct inspect_order *orders = xcalloc(n_nodes, sizeof(*orders));

        /* Answers to an older order no longer count. */
        w->number++;
        w->n_asked = 0;
        memset(w->asked, 0, n_nodes * sizeof(*w->asked));
        for (size_t i = 0; i < w->n; i++) {
                struct inspect_order *o = &orders[node_of(w, i)];

                if ((chosen && !chosen[i]) || w->ranks[i].life != WHY_ALIVE)
                        continue;
                o->ranks = xrealloc(o->ranks, o->n_ranks + 1, sizeof(*o->ranks));
                o->ranks[o->n_ranks++] = (uint32_t)i;
        }
        for (size_t i = 0; i < n_nodes; i++) {
                if (orders[i].n_ranks) {
                        orders[i].number = w->number;
                        orders[i].what = what;
                        orders[i].limit_ms = limit_ms;
                        w->asked[i] = job_inspect(w->r->job, i, &orders[i]);
                        w->n_asked += w->asked[i];
                }
                inspect_order_finish(&orders[i]);
        }
        free(orders);
}

static void on_step_over(uv_timer_t *timer);
static void take_table(void *ctx, const struct rank_table *t);

/* Begins step 2 or 3. With no node to ask the step ends at once, by the timer, so the stack of
 * callers does not grow. */
static void begin_stacks(struct look *w, enum why_step step, const bool *chosen, int limit_ms)
{
        w->step = step;
        /* The second step needs no table, and without running ranks none will come. */
        w->has_table = step == WHY_FIRST_STACKS || !job_take_table(w->r->job, take_table, w);
        order_look(w, INSPECT_STACKS, chosen, (uint32_t)limit_ms);
        /* Ranks about to be stopped get no extra time. */
        if (!w->last)
                limit_ms += ANSWER_MS;
        uv_timer_start(&w->timer, on_step_over, w->n_asked ? (uint64_t)limit_ms : 0, 0);
}

/* Chooses two ranks of a world that wait or, without these, the first that live. */
static void choose_normal_ranks(const struct look *w, size_t from, size_t end, bool *chosen)
{
        size_t normal = 0;

        for (int waiting = 1; waiting >= 0; waiting--)
                for (size_t i = from; i < end && normal < NORMAL_RANKS; i++)
                        if (w->ranks[i].life == WHY_ALIVE && w->ranks[i].waits == waiting &&
                            !chosen[i]) {
                                chosen[i] = true;
                                normal++;
                        }
}

/* Chooses the outliers, and ranks of each world to compare with. */
static void choose_first_ranks(struct look *w, bool *chosen)
{
        struct why_finding f;

        for (size_t i = 0; i < w->n && w->n <= SMALL_WORLD; i++)
                chosen[i] = true;
        why_find(w->ranks, w->n, &f);
        for (size_t i = 0; i < f.outliers.n && i < OUTLIERS_MAX; i++)
                chosen[f.outliers.v[i]] = true;
        for (size_t i = 0, end; i < w->n; i = end) {
                end = why_world_end(w->ranks, w->n, i);
                choose_normal_ranks(w, i, end, chosen);
        }
        why_finding_finish(&f);
}

/* Whether RAS and flight recorders have said all. */
static bool is_all_beside(const struct look *w)
{
        return !look_ras_is_asked(&w->ras) && !w->flight.n_asked;
}

/* Whether step 2 shows a hang, or RAS has told of communicators. An unasked look has ranks dump
 * only then: a dump disturbs a rank that is well. */
static bool may_be_hang(struct look *w)
{
        struct why_finding f;
        bool is_hang;

        why_find(w->ranks, w->n, &f);
        is_hang = f.kind != WHY_NO_HANG || w->ras.first.n_comms;
        why_finding_finish(&f);
        return is_hang;
}

/* Goes on to the next step: called when all answers are there, or the limit is over. */
static void end_step(struct look *w)
{
        bool *chosen;

        switch (w->step) {
        case WHY_LOOKING:
                if (w->last) {
                        begin_stacks(w, WHY_ALL_STACKS, NULL, LAST_LOOK_MS);
                        break;
                }
                answer_why(w, false);
                chosen = xcalloc(w->n, sizeof(*chosen));
                choose_first_ranks(w, chosen);
                /* The pause counts from the order, as stacks may take longer than the pause. */
                w->first_ms = clock_ms();
                begin_stacks(w, WHY_FIRST_STACKS, chosen, FIRST_STACKS_MS);
                free(chosen);
                break;
        case WHY_FIRST_STACKS:
                w->step = WHY_PAUSE;
                uv_timer_start(&w->timer, on_step_over,
                               (uint64_t)MAX(w->first_ms + GAP_MS - clock_ms(), INT64_C(0)), 0);
                break;
        case WHY_PAUSE:
                if (w->unasked && may_be_hang(w))
                        look_flight_begin(&w->flight, w->r, ++w->number, w->ras.until);
                begin_stacks(w, WHY_ALL_STACKS, NULL, ALL_STACKS_MS);
                break;
        /* RAS and flight recorders began with the look, and get the rest of their own time. */
        case WHY_ALL_STACKS:
                if (!is_all_beside(w) && clock_ms() < w->ras.until) {
                        w->step = WHY_BESIDE;
                        uv_timer_start(&w->timer, on_step_over,
                                       (uint64_t)(w->ras.until - clock_ms()), 0);
                        break;
                }
                /* fall through */
        case WHY_BESIDE:
                uv_timer_stop(&w->timer);
                answer_why(w, true);
                drop_why_ranks(w);
                if (w->last)
                        job_end_look(w->r->job);
                w->last = false;
                break;
        case WHY_CLOSED:
        case WHY_IDLE:
                break;
        }
}

static void on_step_over(uv_timer_t *timer)
{
        end_step(timer->data);
}

/* --- evidence --------------------------------------------------------------------------------- */

/* Takes what the table tells of a rank. The row of a silent node is old: the rank counts as one
 * that did not answer. */
static void take_row(struct why_rank *to, const struct rank_row *r, uint32_t number)
{
        static const enum why_life lives[] = {
                [RANK_ROW_ALIVE] = WHY_ALIVE,
                [RANK_ROW_ENDED] = WHY_ENDED,
                [RANK_ROW_UNKNOWN] = WHY_NOT_STARTED,
                [RANK_ROW_LOST] = WHY_LOST,
        };

        if (r->known == RANK_ROW_SILENT) {
                why_rank_miss(to, number);
                return;
        }
        to->life = lives[r->known];
        /* The agent finds no process for the rank: its end is on the way. */
        if (r->known == RANK_ROW_ALIVE && !r->k.state)
                to->life = WHY_ENDED;
        *to->wait = '\0';
        if (!rank_row_waits(r))
                return;
        rank_table_what_for(&r->k.wait, to->wait, sizeof(to->wait));
        to->wait_ms = r->k.wait.ms;
}

/* Whether a rank has got ahead since the first table, @before_ms ago: the wait for @wait is over,
 * or the present wait has begun since. */
static bool has_come_through(const char *wait, const struct why_rank *now, int64_t before_ms)
{
        if (now->life != WHY_ALIVE)
                return false;
        if (*wait && strcmp(wait, now->wait) != 0)
                return true;
        return *now->wait && (int64_t)now->wait_ms < before_ms;
}

static void take_table(void *ctx, const struct rank_table *t)
{
        struct look *w = ctx;
        bool again = w->step == WHY_ALL_STACKS;
        int64_t before_ms = clock_ms() - w->table_ms;

        /* A table may come late, after the end of its step. */
        if (w->has_table || (!again && w->step != WHY_LOOKING))
                return;
        for (size_t i = 0; i < t->n && i < w->n; i++) {
                struct why_rank *r = &w->ranks[i];
                char wait[sizeof(r->wait)];

                memcpy(wait, r->wait, sizeof(wait));
                take_row(r, &t->rows[i], w->number);
                /* A wait that seems to have begun shortly after the first table may be the same
                 * one. */
                if (again && has_come_through(wait, r, before_ms - CLOCK_SLACK_MS))
                        r->moved = true;
        }
        w->has_table = true;
        w->table_ms = again ? w->table_ms : clock_ms();
        if (!w->n_asked)
                end_step(w);
}

static void take_inspected(void *ctx, int node, struct inspected *m)
{
        struct look *w = ctx;
        bool done = !m->left;

        /* A late answer, or one that was not asked for. Parts may come in any number; the last has
         * .left 0. */
        if (w->step <= WHY_IDLE || m->number != w->number || !w->asked[node])
                return;
        if (m->rank < w->n && node_of(w, m->rank) == node)
                why_rank_take(&w->ranks[m->rank], m);
        w->asked[node] = !done;
        w->n_asked -= done;
        if (!w->n_asked && w->has_table)
                end_step(w);
}

/* Hands on an answer of RAS. The last one may end the look, if all else is known. */
static void take_ras(void *ctx, int node, struct ras_reply *m)
{
        struct look *w = ctx;

        if (w->step <= WHY_IDLE)
                return;
        look_ras_take(&w->ras, node, m);
        if (w->step == WHY_BESIDE && is_all_beside(w))
                end_step(w);
}

/* Hands on a part of a dump. -EPROTO with @err: the node breaks the protocol, and is given up by
 * the caller. */
static int take_flight(void *ctx, int node, const struct dump *m, struct error *err)
{
        struct look *w = ctx;

        if (w->step <= WHY_IDLE)
                return 0;
        if (look_flight_take(&w->flight, node, m, err) < 0)
                return -EPROTO;
        if (w->step == WHY_BESIDE && is_all_beside(w))
                end_step(w);
        return 0;
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* Begins step 1. The table was asked for by the caller, which shows that ranks run. */
static void begin_steps(struct look *w)
{
        const struct plan *plan = w->r->plan;
        int64_t until;

        if (!w->has_timer) {
                uv_timer_init(job_loop(w->r->job), &w->timer);
                uv_unref((uv_handle_t *)&w->timer);
                w->timer.data = w;
                w->has_timer = true;
        }
        w->n = (size_t)plan->world_size;
        w->ranks = xcalloc(w->n, sizeof(*w->ranks));
        w->asked = xcalloc(plan->n_nodes, sizeof(*w->asked));
        for (size_t i = 0; i < w->n; i++) {
                w->ranks[i].rank = (int)i;
                w->ranks[i].world = plan->ranks[i].world;
                w->ranks[i].first = plan->worlds[plan->ranks[i].world].first;
                w->ranks[i].role = plan->ranks[i].role;
                w->ranks[i].replica = plan_find_replica(plan, (size_t)plan->ranks[i].world);
                w->ranks[i].share = job_look_share(w->r->job, plan->ranks[i].world, w->unasked);
                w->ranks[i].host = w->r->hosts->v[plan->nodes[plan->ranks[i].node].host].name;
        }
        w->step = WHY_LOOKING;
        w->has_table = false;
        if (!w->unasked && !w->last)
                job_begin_look(w->r->job);
        /* Before a stop, RAS and dumps have no time beyond both steps. */
        until = clock_ms() + (w->last ? 2 * LAST_LOOK_MS : BESIDE_MS);
        look_ras_begin(&w->ras, w->r, ++w->number, until);
        if (!w->unasked)
                look_flight_begin(&w->flight, w->r, ++w->number, until);
        order_look(w, INSPECT_CPU, NULL, LOOK_MS);
        uv_timer_start(&w->timer, on_step_over, w->last ? LAST_LOOK_MS : LOOK_MS, 0);
}

/* @here: the terminal gets the answer, too. */
static void request_look(struct look *w, bool here)
{
        w->here |= here;
        if (w->step != WHY_IDLE)
                return; /* the present look answers */
        if (w->r->job && job_take_table(w->r->job, take_table, w))
                begin_steps(w);
        else
                tell_why(w,
                         json_pack("{s:i, s:s, s:s, s:[], s:[], s:[], s:[], s:[], s:[]}", "v", 1,
                                   "kind", "no ranks", "text", "no ranks run", "outliers", "rows",
                                   "problems", "ranks", "notes", "sources"),
                         true);
}

void look_begin(const struct run_view *r)
{
        request_look(watchers_find(r->watchers, &look_watcher), false);
}

static void on_second_quit(void *ctx)
{
        request_look(ctx, true);
}

static void on_quiet_job(void *ctx)
{
        struct look *w = ctx;

        w->unasked = true;
        request_look(w, false);
}

/* False: the ranks are stopped without a look, because another look goes on, or no rank runs. */
static bool on_last_look(void *ctx)
{
        struct look *w = ctx;

        if (w->last)
                return true;
        if (w->step != WHY_IDLE || !job_take_table(w->r->job, take_table, w))
                return false;
        w->last = true;
        begin_steps(w);
        return true;
}

static void *create_look(const struct run_view *r, struct job_config *c)
{
        struct look *w = xcalloc(1, sizeof(*w));

        w->r = r;
        w->step = WHY_IDLE;
        c->why = (struct job_why){ .ask = on_second_quit,
                                   .quiet = on_quiet_job,
                                   .last = on_last_look,
                                   .inspected = take_inspected,
                                   .ras = take_ras,
                                   .dump = take_flight,
                                   .ctx = w };
        return w;
}

/* Answers that still come find WHY_CLOSED. The memory goes in destroy(), after the loop has closed
 * the timer. */
static void close_look(void *self)
{
        struct look *w = self;

        drop_why_ranks(w);
        w->step = WHY_CLOSED;
        if (w->has_timer)
                uv_close((uv_handle_t *)&w->timer, NULL);
}

const struct watcher look_watcher = {
        .create = create_look,
        .close = close_look,
        .destroy = free,
};
