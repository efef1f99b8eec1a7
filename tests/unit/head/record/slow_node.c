/* SPDX-License-Identifier: Apache-2.0 */
#include "head/record/slow_node.h"

#include "lib/unit.h"
#include "wire/store_msg.h"

enum { NODES = 64, PER_NODE = 2, RANKS = NODES * PER_NODE, STEPS = 100 };

/* How ranks report a step: after waiting in the store, before a wait that no record shows, or
 * without waiting for each other. */
enum form { AFTER_WAIT, BEFORE_WAIT, ALONE, FORMS };

static uint64_t random_state;

static double draw(double from, double to)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return from + (to - from) * (double)(random_state >> 11) / 9007199254740992.0;
}

/* Simulates a run in which the ranks of node @slow (-1 = none) take @factor of the time. */
static void simulate(struct trace_log *log, enum form form, int slow, double factor, double jitter)
{
        double at[RANKS], clock[NODES];

        for (int i = 0; i < RANKS; i++)
                at[i] = draw(0, 20000);
        for (int i = 0; i < NODES; i++)
                clock[i] = draw(-200, 200);
        for (int step = 0; step < STEPS; step++) {
                double last = 0;

                for (int i = 0; i < RANKS; i++) {
                        double noise = draw(-1, 1) + draw(-1, 1) + draw(-1, 1);
                        double work = 50000 * (1 + jitter * noise);

                        work *= i / PER_NODE == slow ? factor : 1;
                        at[i] += work * (draw(0, 1) < 0.001 ? 3 : 1);
                        last = MAX(last, at[i]);
                }
                for (int i = 0; i < RANKS; i++) {
                        struct trace_event e = { .rank = (uint32_t)i,
                                                 .us = (int64_t)(at[i] + clock[i / PER_NODE]),
                                                 .kind = TRACE_STEP,
                                                 .number = (uint64_t)step };
                        double end = last + draw(50, 400);

                        if (form == AFTER_WAIT) {
                                e.us = (int64_t)(end + clock[i / PER_NODE]) + 1;
                                trace_log_add(log, &(struct trace_event){
                                                           .rank = (uint32_t)i,
                                                           .us = e.us - 1,
                                                           .kind = TRACE_OP,
                                                           .number = STORE_BARRIER,
                                                           .more = (uint64_t)(end - at[i]) });
                        }
                        trace_log_add(log, &e);
                        at[i] = form == ALONE ? at[i] : end;
                }
        }
        trace_log_sort(log);
}

static bool find_in_run(uint64_t seed, int slow, double factor, struct slow_node *ret)
{
        static int node_of[RANKS];
        struct trace_places places = { node_of, RANKS, NODES };
        struct trace_log log = { 0 };
        bool found;

        for (int i = 0; i < RANKS; i++)
                node_of[i] = i / PER_NODE;
        random_state = seed * 0x9e3779b97f4a7c15u + 7;
        for (int i = 0; i < 8; i++)
                draw(0, 1);
        simulate(&log, (enum form)(seed % FORMS), slow, factor, draw(0.005, 0.05));
        found = slow_node_find(&log, &places, ret);
        trace_log_finish(&log);
        return found;
}

TEST(a_node_slower_by_a_tenth_is_found)
{
        for (uint64_t seed = 1; seed <= 20; seed++) {
                int slow = (int)(seed * 7 % NODES);
                struct slow_node n;

                assert_true(find_in_run(seed, slow, 1.1, &n));
                assert_int_equal(n.node, slow);
                assert_true(n.percent > 4 && n.percent < 25);
                assert_true(n.steps >= STEPS);
        }
}

/* 100 runs; HN_ROUNDS=1000 makes as many. */
TEST(no_node_is_called_slow_by_chance)
{
        const char *rounds = getenv("HN_ROUNDS");
        uint64_t runs = rounds ? strtoul(rounds, NULL, 10) : 100;
        struct slow_node n;

        for (uint64_t seed = 1; seed <= runs; seed++)
                if (find_in_run(seed, -1, 1, &n))
                        fail_msg("seed %d: node %d, %.1f %%", (int)seed, n.node, n.percent);
}

TEST(few_steps_tell_nothing)
{
        int node_of[] = { 0, 1 };
        struct trace_places places = { node_of, 2, 2 };
        CLEANUP(trace_log_finish) struct trace_log log = { 0 };
        struct slow_node n;

        assert_false(slow_node_find(&log, &places, &n));
        for (int i = 0; i < 200; i++)
                trace_log_add(&log, &(struct trace_event){ .us = i * (i % 2 ? 100 : 900),
                                                           .rank = (uint32_t)i % 2,
                                                           .kind = TRACE_STEP,
                                                           .number = (uint64_t)i / 2 });
        trace_log_sort(&log);
        assert_false(slow_node_find(&log, &places, &n)); /* two nodes: which one is it? */
        assert_int_equal(n.node, -1);
}
