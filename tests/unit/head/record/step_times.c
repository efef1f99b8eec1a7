/* SPDX-License-Identifier: Apache-2.0 */
#include "head/record/step_times.h"

#include "lib/unit.h"
#include "wire/store_msg.h"

enum { RANKS = 12, STEPS = 40, COLUMNS = 10, STEP_US = 10000 };

/* Each rank waits for the last one. Rank 5 takes three times as long, in the second half ten times.
 */
static void simulate_steps(struct trace_log *log, int steps)
{
        int64_t us = 0;

        for (int step = 0; step < steps; step++) {
                int64_t longest = STEP_US * (step < steps / 2 ? 3 : 10);

                for (uint32_t r = 0; r < RANKS; r++) {
                        int64_t own = r == 5 ? longest : STEP_US;

                        trace_log_add(log,
                                      &(struct trace_event){ .rank = r,
                                                             .us = us + longest,
                                                             .kind = TRACE_OP,
                                                             .number = STORE_BARRIER,
                                                             .more = (uint64_t)(longest - own) });
                        trace_log_add(log, &(struct trace_event){ .rank = r,
                                                                  .us = us + longest + 1,
                                                                  .kind = TRACE_STEP,
                                                                  .number = (uint64_t)step });
                }
                us += longest + 1;
        }
        trace_log_sort(log);
}

static void find_times(struct step_times *t, int steps)
{
        static const int node_of[RANKS];
        const struct trace_places places = { node_of, RANKS, 1 };
        CLEANUP(trace_log_finish) struct trace_log log = { 0 };

        simulate_steps(&log, steps);
        step_times_find(t, &log, &places, COLUMNS);
}

TEST(the_slowest_rank_is_on_top)
{
        CLEANUP(step_times_finish) struct step_times t;

        find_times(&t, STEPS);
        assert_int_equal(t.n_rows, STEP_TIMES_ROWS);
        assert_int_equal(t.rows[0].rank, 5);
        assert_int_equal(t.rows[0].n, 1);
        assert_int_equal(t.rows[1].rank, 0);
        assert_int_equal(t.rows[STEP_TIMES_ROWS - 1].rank, -1);
        assert_int_equal(t.rows[STEP_TIMES_ROWS - 1].n, RANKS - STEP_TIMES_ROWS + 1);
        assert_int_equal(t.first, 0);
        assert_int_equal(t.last, STEPS - 1);
        assert_true(t.median_us > STEP_US - 10 && t.median_us < STEP_US + 10);
        assert_true(t.rows[0].own_us > 6 * STEP_US && t.rows[0].own_us < 7 * STEP_US);
        /* Time goes from left to right: the second half takes most of it. */
        assert_int_equal(step_times_shade(&t, t.rows[0].cells[0]), 4);
        assert_true(t.rows[0].cells[COLUMNS - 1] > 3 * t.rows[0].cells[0]);
        for (size_t c = 0; c < COLUMNS; c++)
                assert_int_equal(step_times_shade(&t, t.rows[3].cells[c]), 0);
}

TEST(few_steps_make_no_map)
{
        CLEANUP(step_times_finish) struct step_times t;

        find_times(&t, 10);
        assert_int_equal(t.n_rows, 0);
}

TEST(shades_are_times_of_the_median)
{
        const struct step_times t = { .median_us = 100 };

        assert_int_equal(step_times_shade(&t, -1), -1);
        assert_int_equal(step_times_shade(&t, 50), 0);
        assert_int_equal(step_times_shade(&t, 110), 0);
        assert_int_equal(step_times_shade(&t, 120), 1);
        assert_int_equal(step_times_shade(&t, 150), 2);
        assert_int_equal(step_times_shade(&t, 200), 3);
        assert_int_equal(step_times_shade(&t, 300), 4);
}
