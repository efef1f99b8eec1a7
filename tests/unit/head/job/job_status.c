/* SPDX-License-Identifier: Apache-2.0 */
/* A round of questions ends with its attempt; two ranks on a node each. */
#include "head/job/job_status.h"

#include "head/job/attempt.h"
#include "head/job/job.h"
#include "head/model/rank_board.h"
#include "head/status/rank_table.h"
#include "job_nodes.h"
#include "lib/unit.h"
#include "wire/status_msg.h"

enum { NODES = 2 };

struct world {
        struct job_nodes on;
        struct plan_node plan_nodes[NODES];
        struct plan_rank ranks[NODES];
        struct plan_world worlds[1];
        struct plan plan;
        struct rank_board_row rows[NODES];
        struct rank_board board;
        struct attempt attempt;
        struct job_config config;
        struct job_status *status;
        int taken;
};

static int set_up(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));

        job_nodes_open(&w->on, NODES, NODE_RUNNING);
        for (int i = 0; i < NODES; i++) {
                w->plan_nodes[i] = (struct plan_node){ .host = (size_t)i, .n_ranks = 1 };
                intlist_add(&w->plan_nodes[i].ranks, i);
                w->ranks[i] = (struct plan_rank){ .rank = i, .node = i };
                w->rows[i] =
                        (struct rank_board_row){ .joined_ms = -1, .step = -1, .written_us = -1 };
        }
        w->worlds[0] = (struct plan_world){ 0, NODES, NODES };
        w->plan = (struct plan){ w->plan_nodes, NODES, w->ranks, NODES, NODES, w->worlds, 1 };
        w->board = (struct rank_board){
                .events = &w->on.events, .plan = &w->plan, .rows = w->rows, .n = NODES
        };
        w->attempt =
                (struct attempt){ .state = JOB_RUNNING, .plan = &w->plan, .outcome = OUTCOME_INIT };
        w->config.ranks = &w->board;
        w->status = job_status_create(&w->on.cluster, &w->attempt, &w->config);
        *state = w;
        return 0;
}

static int tear_down(void **state)
{
        struct world *w = *state;

        job_status_close(w->status);
        job_nodes_close(&w->on);
        job_status_free(w->status);
        job_nodes_finish(&w->on);
        for (int i = 0; i < NODES; i++)
                intlist_finish(&w->plan_nodes[i].ranks);
        free(w);
        return 0;
}

static void take_table(void *ctx, const struct rank_table *t)
{
        struct world *w = ctx;

        assert_int_equal(t->n, NODES);
        w->taken++;
}

TEST_WITH(set_up, tear_down, a_round_ends_before_the_plan_changes)
{
        const struct node_status answer = { .number = 1 };
        struct world *w = *state;

        job_status_launched(w->status);
        assert_true(job_status_take_table(w->status, take_table, w));
        assert_true(job_status_take(w->status, 0, &answer));
        assert_int_equal(w->taken, 0);
        w->attempt.state = JOB_OVER;
        job_status_settle(w->status);
        assert_int_equal(w->taken, 1);

        /* The next attempt goes on without the second node, whose answer is late. */
        w->plan.world_size = w->plan.num_nodes = w->worlds[0].size = w->worlds[0].num_nodes = 1;
        w->plan_nodes[1].n_ranks = 0;
        w->board.n = 1;
        w->attempt.state = JOB_RUNNING;
        job_status_launched(w->status);
        assert_true(job_status_take(w->status, 1, &answer));
        job_status_settle(w->status);
        assert_int_equal(w->taken, 1);
}
