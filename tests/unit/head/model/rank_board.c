/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/rank_board.h"
#include "lib/unit.h"
#include "wire/msg.h"

static int first_ranks[] = { 0, 1 }, second_ranks[] = { 2 };
static struct plan_node nodes[] = {
        { .host = 0, .node_rank = 0, .n_ranks = 2, .ranks = { first_ranks, 2 } },
        { .host = 1, .node_rank = 1, .n_ranks = 1, .ranks = { second_ranks, 1 } },
};
static struct plan_rank ranks[] = { { .rank = 0, .node = 0 },
                                    { .rank = 1, .node = 0 },
                                    { .rank = 2, .node = 1 } };
static struct plan plan = { nodes, 2, ranks, 3, 2 };

static struct events events;
static struct rank_board *board;

static void emit(enum event_kind kind, int node, int rank, int64_t value, int64_t count)
{
        events_emit(
                &events,
                (struct event){
                        .kind = kind, .node = node, .rank = rank, .value = value, .count = count });
}

/* Opens the board; all ranks live. */
static int start_all(void **state UNUSED)
{
        events_init(&events);
        board = rank_board_create(&events, &plan);
        emit(EVENT_RUN_START, -1, -1, 3, 2);
        for (int r = 0; r < 3; r++)
                emit(EVENT_RANK_STARTED, ranks[r].node, r, 100, 0);
        return 0;
}

static int finish_board(void **state UNUSED)
{
        rank_board_destroy(board);
        return 0;
}

TEST_WITH(start_all, finish_board, a_rank_lives_until_its_end)
{
        assert_int_equal(board->alive, 3);
        emit(EVENT_RANK_EXITED, 0, 1, -9, 0);
        assert_int_equal(board->alive, 2);
        assert_int_equal(board->rows[1].life, RANK_ENDED);
        assert_int_equal(board->rows[1].exit, -9);
        assert_false(board->rows[1].stopped);
        assert_true(rank_board_is_over(&board->rows[1]));
        assert_false(rank_board_is_over(&board->rows[0]));
        emit(EVENT_STOP, -1, -1, 0, 0);
        emit(EVENT_RANK_EXITED, 0, 0, 0, 0);
        assert_true(board->rows[0].stopped);
}

TEST_WITH(start_all, finish_board, a_rank_that_starts_again_is_a_new_one)
{
        emit(EVENT_RANK_JOINED, 0, 1, 50, 0);
        rank_board_step(board, 1, 7, 20);
        emit(EVENT_RANK_STARTED, 0, 1, 100, 0); /* told late */
        assert_true(board->rows[1].joined);
        emit(EVENT_RANK_EXITED, 0, 1, 3, 0);
        assert_int_equal(board->rows[1].step, 7);
        emit(EVENT_RANK_STARTED, 0, 1, 101, 0);
        assert_int_equal(board->alive, 3);
        assert_false(board->rows[1].joined);
        assert_int_equal(board->rows[1].joined_ms, -1);
        assert_int_equal(board->rows[1].step, -1);
}

TEST_WITH(start_all, finish_board, ranks_of_a_lost_node_are_lost)
{
        emit(EVENT_RANK_EXITED, 0, 1, 3, 0);
        emit(EVENT_NODE_LOST, 0, -1, 0, 0);
        assert_int_equal(board->alive, 1);
        assert_int_equal(board->rows[0].life, RANK_LOST);
        assert_int_equal(board->rows[1].life, RANK_ENDED);
        assert_int_equal(board->rows[2].life, RANK_ALIVE);
        emit(EVENT_NODE_LOST, 0, -1, 0, 0); /* told twice */
        assert_int_equal(board->alive, 1);
}

TEST_WITH(start_all, finish_board, joins_are_those_of_the_attempt)
{
        assert_false(board->rows[1].joined);
        emit(EVENT_RANK_JOINED, 0, 1, 250, 0);
        emit(EVENT_RANK_JOINED, 1, 2, -1, 0);
        assert_true(board->rows[1].joined);
        assert_int_equal(board->rows[1].joined_ms, 250);
        assert_true(board->rows[2].joined);
        assert_int_equal(board->rows[2].joined_ms, -1);
        assert_false(board->rows[0].joined);
        emit(EVENT_RESTART, -1, -1, 1, 0);
        assert_false(board->rows[1].joined);
        assert_int_equal(board->rows[1].joined_ms, -1);
}

TEST_WITH(start_all, finish_board, a_job_that_shrinks_has_fewer_rows)
{
        emit(EVENT_NODE_LOST, 1, -1, 0, 0);
        plan.world_size = 2;
        emit(EVENT_RUN_SHRUNK, -1, -1, 2, 1);
        emit(EVENT_RESTART, -1, 2, 1, 0);
        assert_int_equal(board->n, 2);
        emit(EVENT_RANK_STARTED, 0, 1, 100, 0);
        rank_board_step(board, 2, 5, 0);
        assert_int_equal(board->alive, 1);
        assert_int_equal(rank_board_steps(board).told, 0);
        plan.world_size = 3;
}

TEST_WITH(start_all, finish_board, steps_are_those_of_the_attempt)
{
        struct rank_board_steps s = rank_board_steps(board);

        assert_int_equal(s.told, 0);
        rank_board_step(board, 1, 7, 50);
        rank_board_step(board, 2, 5, 0);
        s = rank_board_steps(board);
        assert_int_equal(s.told, 2);
        assert_int_equal(s.least, 5);
        assert_int_equal(s.most, 7);
        assert_int_equal(s.total, 50);
        assert_int_equal(s.slowest, 2);
        rank_board_step(board, 0, 9, 0);
        emit(EVENT_RANK_EXITED, 1, 2, 0, 0);
        s = rank_board_steps(board); /* a rank that has ended holds the others back no more */
        assert_int_equal(s.told, 3);
        assert_int_equal(s.least, 7);
        assert_int_equal(s.slowest, 1);
        emit(EVENT_RANK_EXITED, 0, 0, 0, 0);
        emit(EVENT_RANK_EXITED, 0, 1, 0, 0);
        assert_int_equal(rank_board_steps(board).least, 9);
        emit(EVENT_RESTART, -1, -1, 1, 0);
        assert_int_equal(board->attempt, 1);
        assert_int_equal(board->alive, 0);
        assert_int_equal(board->rows[1].life, RANK_WAITS);
        assert_int_equal(rank_board_steps(board).told, 0);
}

TEST_WITH(start_all, finish_board, output_counts_through_attempts)
{
        rank_board_output(board, 1, MSG_STDOUT, 10);
        rank_board_output(board, 1, MSG_STDERR, 3);
        emit(EVENT_RESTART, -1, -1, 1, 0);
        rank_board_output(board, 1, MSG_STDOUT, 1);
        rank_board_output(board, 3, MSG_STDOUT, 1);
        rank_board_output(board, -1, MSG_STDOUT, 1);
        assert_int_equal(board->rows[1].bytes[0], 11);
        assert_int_equal(board->rows[1].bytes[1], 3);
        assert_true(board->rows[1].written_us >= 0);
        assert_int_equal(board->rows[0].written_us, -1);
}

/* Ranks 0 and 1 are a role a, rank 2 is a role b of --main. */
TEST_WITH(start_all, finish_board, steps_of_one_role_count)
{
        static char *names[] = { (char *)"b", NULL };
        const struct strv main_roles = { .v = names, .n = 1 };
        struct rank_board_steps s;

        for (int r = 0; r < 3; r++) {
                ranks[r].role = r < 2 ? "a" : "b";
                ranks[r].program = r == 2;
        }
        rank_board_prefer(board, &main_roles);
        rank_board_step(board, 1, 700, 900);
        emit(EVENT_RANK_PROGRESS, 0, 1, 700, 0);
        s = rank_board_steps(board);
        assert_string_equal(s.role, "a");
        assert_int_equal(s.least, 700);
        assert_int_equal(board->pace->most, 700);
        rank_board_step(board, 2, 5, 50);
        emit(EVENT_RANK_PROGRESS, 1, 2, 5, 0);
        rank_board_step(board, 1, 701, 900);
        emit(EVENT_RANK_PROGRESS, 0, 1, 701, 0);
        s = rank_board_steps(board);
        assert_string_equal(s.role, "b");
        assert_int_equal(s.told, 1);
        assert_int_equal(s.least, 5);
        assert_int_equal(s.most, 5);
        assert_int_equal(s.total, 50);
        assert_int_equal(s.slowest, 2);
        assert_int_equal(board->pace->most, 5);
        assert_false(rank_board_counts_steps(board, 1));
        emit(EVENT_RESTART, -1, -1, 1, 0);
        assert_null(rank_board_steps(board).role);
        assert_true(rank_board_counts_steps(board, 1));
        for (int r = 0; r < 3; r++)
                ranks[r].role = NULL;
}

TEST_WITH(start_all, finish_board, questions_of_one_turn_have_one_rate)
{
        rank_board_step(board, 0, 100, 0);
        assert_float_equal(rank_board_rate(board, 10000), 0, 0);
        rank_board_step(board, 0, 104, 0);
        assert_float_equal(rank_board_rate(board, 12000), 2, 0);
        rank_board_step(board, 0, 110, 0);
        assert_float_equal(rank_board_rate(board, 12000), 2, 0);
}
