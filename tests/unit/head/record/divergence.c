/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs are simulated moment by moment and fail in one of seven ways, with other numbers of ranks,
 * steps, delays and kinds of records for each seed. The true culprit is known, and often is not the
 * rank that fails first.
 */
#include "head/record/divergence.h"

#include <signal.h>
#include <stdio.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/store_msg.h"

enum { RUNS = 5000, RANKS_MAX = 64 };

enum failure { CRASH, EXCEPTION, STALL, LEAVES, OTHER_ORDER, STOPPED, STALLS_ALONE, FAILURES };

struct sim {
        uint64_t random;
        struct trace_log log;
        enum failure failure;
        int n, culprit, cause;
        int64_t at[RANKS_MAX]; /* where each rank's time has come to */
        int64_t until_us;
        double step_us, jitter, speed[RANKS_MAX];
        int64_t clock_us[RANKS_MAX]; /* the error of each rank's clock */
        int checkpoint;              /* rank 0 writes one in each so many steps; 0 = none */
        double pause;                /* how often a step takes several times as long */
        int warns;                   /* a rank that writes to stderr now and then; -1 = none */
        bool steps, ops, outputs, in_step, groups;
};

static uint64_t next_random(struct sim *s)
{
        s->random ^= s->random << 13;
        s->random ^= s->random >> 7;
        s->random ^= s->random << 17;
        return s->random;
}

static double draw(struct sim *s, double from, double to)
{
        return from + (to - from) * (double)(next_random(s) >> 11) / 9007199254740992.0;
}

static int draw_int(struct sim *s, int from, int to)
{
        return from + (int)(next_random(s) % (uint64_t)(to - from + 1));
}

static void record(struct sim *s, int rank, int64_t us, uint8_t kind, uint64_t number,
                   uint64_t more, uint32_t key)
{
        trace_log_add(&s->log, &(struct trace_event){ .us = us + s->clock_us[rank],
                                                      .rank = (uint32_t)rank,
                                                      .kind = kind,
                                                      .number = number,
                                                      .more = more,
                                                      .key = key });
}

static void record_wait(struct sim *s, int rank, int64_t from, int64_t to, uint8_t status,
                        uint32_t key)
{
        if (s->ops)
                record(s, rank, to, TRACE_OP, STORE_BARRIER | (uint64_t)status << 8,
                       (uint64_t)(to - from), key);
}

/* The time of a rank's own part of a step. */
static int64_t draw_work(struct sim *s, int rank, int step)
{
        double normal = 1 + s->jitter * (draw(s, -1, 1) + draw(s, -1, 1) + draw(s, -1, 1)) / 1.5;

        if (draw(s, 0, 1) < s->pause)
                normal *= draw(s, 1, 5);
        if (s->checkpoint && !rank && step % s->checkpoint == 0)
                normal += draw(s, 1, 20);
        return (int64_t)(s->step_us * s->speed[rank] * MAX(normal, 0.1));
}

/* With groups the ranks wait in their half of the world first. Returns when @rank's half is there.
 */
static int64_t meet_half(struct sim *s, int rank)
{
        int64_t last = 0;

        for (int r = 0; r < s->n; r++)
                if ((r < s->n / 2) == (rank < s->n / 2))
                        last = MAX(last, s->at[r]);
        return last;
}

static uint32_t key_of_half(const struct sim *s, int rank)
{
        return rank < s->n / 2 ? 2 : 3;
}

/* A step of all ranks: work, a step reported before or after the wait for the others, output. */
static void simulate_step(struct sim *s, int step, bool in_sync)
{
        int64_t last = 0, end[RANKS_MAX];

        for (int r = 0; r < s->n; r++) {
                s->at[r] += draw_work(s, r, step);
                last = MAX(last, s->at[r]);
                if (s->steps && s->in_step)
                        record(s, r, s->at[r], TRACE_STEP, (uint64_t)step, 0, 0);
                if (r == s->warns && draw_int(s, 0, 9) == 0)
                        record(s, r, s->at[r] - 1, TRACE_OUT, 1, 60 << 1 | 1, 0);
        }
        for (int r = 0; r < s->n; r++) {
                int64_t half = s->groups ? meet_half(s, r) + 20 : s->at[r];

                end[r] = in_sync ? last + draw_int(s, 50, 500) : s->at[r];
                if (in_sync && s->groups)
                        record_wait(s, r, s->at[r], half, STORE_OK, key_of_half(s, r));
                if (in_sync)
                        record_wait(s, r, half, end[r], STORE_OK, 1);
        }
        for (int r = 0; r < s->n; r++) {
                s->at[r] = end[r];
                if (s->steps && !s->in_step)
                        record(s, r, s->at[r], TRACE_STEP, (uint64_t)step, 0, 0);
                if (s->outputs && (r == 0 || !in_sync || step % 3 == 0))
                        record(s, r, s->at[r] + 10, TRACE_OUT, 1, 80 << 1, 0);
        }
}

/* What a rank waits for when the culprit does not come. */
static uint32_t key_waited_for(const struct sim *s, int rank)
{
        bool with_culprit = (rank < s->n / 2) == (s->culprit < s->n / 2);

        if (rank == s->culprit)
                return 4;
        return s->groups && with_culprit ? key_of_half(s, rank) : 1;
}

static void write_errors(struct sim *s, int rank, int64_t until)
{
        int64_t us = until - draw_int(s, 500, 50000);

        for (int i = 0; i < 3 && us < until; i++, us += 150)
                record(s, rank, us, TRACE_OUT, 4, 300 << 1 | 1, 0);
}

/* The others wait for the culprit until one of them gives up. */
static void time_out(struct sim *s, bool other_key)
{
        int64_t limit = (int64_t)(s->step_us * draw(s, 30, 90)) + 50000, first = INT64_MAX;

        do
                s->cause = draw_int(s, 0, s->n - 1);
        while (s->cause == s->culprit);
        for (int r = 0; r < s->n; r++) {
                s->at[r] += r == s->culprit ? 0 : draw_work(s, r, 100000);
                if (r != s->culprit && s->steps && s->in_step)
                        record(s, r, s->at[r], TRACE_STEP, 100000, 0, 0);
                first = r == s->cause ? s->at[r] + limit : first;
        }
        s->until_us = first + 2000;
        for (int r = 0; r < s->n; r++) {
                uint32_t key = key_waited_for(s, r);

                if (r == s->culprit && !other_key)
                        continue;
                record_wait(s, r, s->at[r], r == s->cause ? first : s->until_us + 3000,
                            r == s->cause ? STORE_TIMEOUT : STORE_PEER, key);
        }
        write_errors(s, s->cause, s->until_us);
        record(s, s->cause, s->until_us, TRACE_EXIT, 1 << 8, 0, 0);
}

/* Every second, up to the order to stop. */
static void record_samples(struct sim *s, bool stopped, int64_t since)
{
        for (int64_t us = 0; us <= s->until_us; us += 1000000)
                for (int r = 0; r < s->n; r++) {
                        bool odd = r == s->culprit && us >= since;

                        record(s, r, us, TRACE_SAMPLE, odd ? 0 : 97,
                               odd && stopped ? 'T' : (odd ? 'S' : 'R'), 0);
                }
}

static void simulate_failure(struct sim *s)
{
        int64_t since = s->at[s->culprit];

        switch (s->failure) {
        case CRASH:
        case EXCEPTION:
                s->cause = s->culprit;
                s->until_us = since + (int64_t)(draw_work(s, s->culprit, 1) * draw(s, 0, 1)) + 1;
                for (int r = 0; r < s->n; r++)
                        if (r != s->culprit)
                                record_wait(s, r,
                                            s->at[r] + (int64_t)(s->step_us * draw(s, 0.1, 1)),
                                            s->until_us + 2000, STORE_PEER, 1);
                if (s->failure == EXCEPTION)
                        write_errors(s, s->culprit, s->until_us);
                record(s, s->culprit, s->until_us, TRACE_EXIT,
                       s->failure == CRASH ? SIGSEGV : 1 << 8, 0, 0);
                break;
        case STALL:
                time_out(s, false);
                break;
        case LEAVES:
                record(s, s->culprit, since + 100, TRACE_EXIT, 0, 0, 0);
                time_out(s, false);
                break;
        case OTHER_ORDER:
                time_out(s, true);
                break;
        case STOPPED:
                /* The others spin in a collective that the store does not see. */
                s->until_us = since + draw_int(s, 5, 40) * 1000000;
                record_samples(s, draw_int(s, 0, 1), since);
                break;
        default: /* the others go on without it, until the time of the job is over */
                for (int i = 0; i < 40; i++) {
                        s->at[s->culprit] = INT64_MAX / 2;
                        for (int r = 0; r < s->n; r++) {
                                if (r == s->culprit)
                                        continue;
                                s->at[r] += draw_work(s, r, 1);
                                if (s->steps)
                                        record(s, r, s->at[r], TRACE_STEP, (uint64_t)(100000 + i),
                                               0, 0);
                                if (s->outputs)
                                        record(s, r, s->at[r] + 10, TRACE_OUT, 1, 80 << 1, 0);
                                s->until_us = s->at[r];
                        }
                }
                break;
        }
}

/* Chooses a program and its failure, of which the records tell something. */
static void draw_program(struct sim *s)
{
        s->failure = (enum failure)draw_int(s, 0, FAILURES - 1);
        s->n = draw_int(s, 0, 3) ? draw_int(s, 2, 16) : draw_int(s, 2, RANKS_MAX);
        s->step_us = 5e3 * draw(s, 1, 10) * draw(s, 1, 10);
        s->jitter = draw(s, 0.005, 0.15);
        s->culprit = draw_int(s, 0, s->n - 1);
        s->cause = -1;
        s->outputs = draw_int(s, 0, 1);
        s->steps = draw_int(s, 0, 1);
        s->ops = !s->steps || draw_int(s, 0, 1);
        s->in_step = !s->ops || draw_int(s, 0, 1);
        if (s->failure == OTHER_ORDER) {
                s->ops = true;
                s->n = MAX(s->n, 3);
        }
        if (s->failure == STALLS_ALONE) {
                s->ops = false;
                s->steps = s->steps || !s->outputs;
        }
        s->groups = s->ops && s->n >= 4 && draw_int(s, 0, 1);
        s->checkpoint = draw_int(s, 0, 2) ? 0 : draw_int(s, 5, 40);
        s->pause = draw_int(s, 0, 1) ? 0.01 : 0;
        s->warns = draw_int(s, 0, 3) ? -1 : draw_int(s, 0, s->n - 1);
        for (int r = 0; r < s->n; r++) {
                s->speed[r] = draw(s, 0.97, 1.03);
                s->clock_us[r] = draw_int(s, -300, 300);
        }
}

/* Returns whether the right rank was named, at the right time. */
static bool simulate_run(uint64_t seed, enum failure *ret_failure)
{
        struct sim s = { .random = seed * 0x9e3779b97f4a7c15u + 1 };
        char *keys[] = { xstrdup(""), xstrdup("world"), xstrdup("low"), xstrdup("high"),
                         xstrdup("other") };
        struct divergence d;
        bool right;
        int warm_up, steps, start;

        for (int i = 0; i < 8; i++)
                next_random(&s);
        draw_program(&s);
        *ret_failure = s.failure;
        steps = draw_int(&s, 12, 120);
        warm_up = s.steps ? 0 : 12;
        s.log.keys = xcalloc(ARRAY_SIZE(keys), sizeof(*s.log.keys));
        memcpy(s.log.keys, keys, sizeof(keys));
        s.log.n_keys = ARRAY_SIZE(keys);
        start = 100000 - steps - warm_up;
        for (int r = 0; r < s.n; r++)
                s.at[r] = draw_int(&s, 0, 50000);
        for (int i = start; i < 100000; i++)
                simulate_step(&s, i, s.failure != STALLS_ALONE);
        simulate_failure(&s);
        trace_log_sort(&s.log);
        divergence_find(&(struct divergence_input){ .log = &s.log,
                                                    .n_ranks = s.n,
                                                    .until_us = s.until_us,
                                                    .cause_rank = s.cause },
                        &d);
        right = d.rank == s.culprit && d.us <= s.until_us;
        if (!right && getenv("TELL"))
                printf("# seed %llu: failure %d, %d ranks, culprit %d, cause %d; found %d: %s\n",
                       (unsigned long long)seed, s.failure, s.n, s.culprit, s.cause, d.rank,
                       d.text);
        trace_log_finish(&s.log);
        return right;
}

TEST(the_culprit_is_named)
{
        size_t right = 0, wrong[FAILURES] = { 0 }, all[FAILURES] = { 0 };

        for (uint64_t seed = 1; seed <= RUNS; seed++) {
                enum failure f;
                bool is_right = simulate_run(seed, &f);

                right += is_right;
                wrong[f] += !is_right;
                all[f]++;
        }
        for (int f = 0; f < FAILURES; f++)
                print_message("# failure %d: %zu of %zu wrong\n", f, wrong[f], all[f]);
        print_message("# %zu of %d right\n", right, RUNS);
        assert_true(right * 100 >= (size_t)RUNS * 99);
}

TEST(nothing_is_found_in_nothing)
{
        struct trace_log log = { 0 };
        struct divergence d;

        divergence_find(&(struct divergence_input){ &log, 3, 1000, -1 }, &d);
        assert_int_equal(d.rank, -1);
        divergence_find(&(struct divergence_input){ &log, 3, 1000, 2 }, &d);
        assert_int_equal(d.rank, 2);
        assert_true(d.us == 1000);
}
