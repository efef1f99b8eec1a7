/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_board_event() is the only writer of a rank's life; output is counted by rank_board_output().
 * Rows are made at the start of the run, and keep their bytes through all attempts.
 */
#include "head/model/rank_board.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/msg.h"

/* Makes the rows when the plan has its ranks. A rank waits until its EVENT_RANK_STARTED. */
static void make_board_rows(struct rank_board *b)
{
        free(b->rows);
        b->n = b->plan->world_size;
        b->rows = xcalloc((size_t)b->n, sizeof(*b->rows));
        b->alive = 0;
        for (int r = 0; r < b->n; r++)
                b->rows[r] =
                        (struct rank_board_row){ .joined_ms = -1, .step = -1, .written_us = -1 };
}

/* Forgets what the last process of the rank has told; bytes and the last output stay. */
static void forget_board_life(struct rank_board_row *r)
{
        r->joined = false;
        r->joined_ms = -1;
        r->step = -1;
        r->total = 0;
}

/* Output counts through all attempts. */
static void begin_board_attempt(struct rank_board *b, int64_t attempt)
{
        b->attempt = attempt;
        b->stopping = false;
        b->alive = 0;
        for (int r = 0; r < b->n; r++) {
                b->rows[r].life = RANK_WAITS;
                forget_board_life(&b->rows[r]);
        }
}

/* Nodes were left out, and the other ranks have new numbers. */
static void forget_board_output(struct rank_board *b)
{
        for (int r = 0; r < b->n; r++) {
                b->rows[r].bytes[0] = b->rows[r].bytes[1] = 0;
                b->rows[r].written_us = -1;
        }
}

/* Changes the life of a rank, and the number of living ranks with it. */
static void set_life(struct rank_board *b, struct rank_board_row *r, enum rank_life life)
{
        b->alive += (life == RANK_ALIVE) - (r->life == RANK_ALIVE);
        r->life = life;
}

/* A rank that had ended before the loss keeps its exit code. */
static void lose_board_node(struct rank_board *b, int node)
{
        for (int r = 0; r < b->n; r++)
                if (b->plan->ranks[r].node == node && !rank_board_is_over(&b->rows[r]))
                        set_life(b, &b->rows[r], RANK_LOST);
}

static void on_board_event(void *ctx, const struct event *e)
{
        struct rank_board *b = ctx;
        struct rank_board_row *r = e->rank >= 0 && e->rank < b->n ? &b->rows[e->rank] : NULL;

        if (e->kind != EVENT_RANK_PROGRESS || rank_board_counts_steps(b, e->rank))
                step_pace_take(b->pace, e);
        if (e->kind == EVENT_RUN_START) {
                make_board_rows(b);
        } else if (e->kind == EVENT_RUN_SHRUNK) {
                b->n = b->plan->world_size; /* rows have room for more */
                forget_board_output(b);
        } else if (e->kind == EVENT_RESTART) {
                begin_board_attempt(b, e->value);
        } else if (e->kind == EVENT_STOP) {
                b->stopping = true;
        } else if (e->kind == EVENT_NODE_LOST) {
                lose_board_node(b, e->node);
        } else if (e->kind == EVENT_RANK_STARTED && r) {
                /* A rank starts again within the attempt (--restart-scope). */
                if (r->life == RANK_ENDED)
                        forget_board_life(r);
                set_life(b, r, RANK_ALIVE);
        } else if (e->kind == EVENT_RANK_JOINED && r) {
                r->joined = true;
                r->joined_ms = e->value;
        } else if (e->kind == EVENT_RANK_EXITED && r) {
                set_life(b, r, RANK_ENDED);
                r->exit = e->value;
                /* An end after the order to stop is no failure of the rank. */
                r->stopped = b->stopping;
        }
}

struct rank_board *rank_board_create(struct events *es, const struct plan *plan)
{
        struct rank_board *b = xcalloc(1, sizeof(*b));

        b->events = es;
        b->plan = plan;
        b->pace = xcalloc(1, sizeof(*b->pace));
        events_listen(es, on_board_event, b);
        return b;
}

void rank_board_destroy(struct rank_board *b)
{
        free(b->rows);
        free(b->pace);
        free(b);
}

void rank_board_output(struct rank_board *b, int rank, uint8_t stream, size_t bytes)
{
        if (rank < 0 || rank >= b->n)
                return;
        b->rows[rank].bytes[stream == MSG_STDERR] += bytes;
        b->rows[rank].written_us = events_now_us(b->events);
}

void rank_board_prefer(struct rank_board *b, const struct strv *main_roles)
{
        b->pace->of.main_roles = main_roles;
}

bool rank_board_counts_steps(const struct rank_board *b, int rank)
{
        const char *stepping = b->pace->of.role;
        const char *role = stepping ? b->plan->ranks[rank].role : NULL;

        return !stepping || (role && !strcmp(role, stepping));
}

void rank_board_step(struct rank_board *b, int rank, int64_t step, int64_t total)
{
        const struct plan_rank *r = &b->plan->ranks[rank];

        if (r->role)
                step_pace_choose(b->pace, r->role, r->program);
        b->rows[rank].step = step;
        b->rows[rank].total = total;
}

bool rank_board_is_over(const struct rank_board_row *r)
{
        return r->life >= RANK_ENDED;
}

struct rank_board_steps rank_board_steps(const struct rank_board *b)
{
        struct rank_board_steps s = { .role = b->pace->of.role };
        bool lives = false;

        for (int r = 0; r < b->n; r++) {
                const struct rank_board_row *k = &b->rows[r];

                if (k->step < 0 || !rank_board_counts_steps(b, r))
                        continue;
                /* Ended ranks count for the greatest step, but the least is of ranks that go on. */
                s.most = s.told++ ? MAX(s.most, k->step) : k->step;
                s.total = MAX(s.total, k->total);
                if (k->life == RANK_ALIVE && (!lives || k->step < s.least)) {
                        lives = true;
                        s.least = k->step;
                        s.slowest = r;
                }
        }
        if (!lives)
                s.least = s.most;
        return s;
}

double rank_board_rate(struct rank_board *b, uint64_t loop_ms)
{
        const struct rank_board_steps s = rank_board_steps(b);

        /* The question itself feeds the rate: without a reader no frames are kept. */
        step_rate_add(&b->pace->rate, (int64_t)loop_ms * 1000, s.told ? s.least : -1);
        return step_rate_now(&b->pace->rate);
}
