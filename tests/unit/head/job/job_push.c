/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to a push that has ended meet nodes that have been forgotten. */
#include "head/job/job_push.h"

#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/heartbeat.h"
#include "lib/frames.h"
#include "lib/unit.h"

enum { NODES = 3 }; /* the first is the parent of the others */

struct world {
        uv_loop_t loop;
        struct options options;
        struct host hosts[NODES];
        struct node nodes[NODES];
        struct plan_node plan_nodes[NODES];
        struct plan plan;
        struct events events;
        struct cluster cluster, no_nodes; /* the heartbeat's */
        struct attempt attempt;
        struct heartbeat heartbeat;
        struct job_push *push;
};

static int set_up(void **state)
{
        static char names[NODES][4] = { "n0", "n1", "n2" };
        struct world *w = xcalloc(1, sizeof(*w));

        uv_loop_init(&w->loop);
        events_init(&w->events);
        for (int i = 0; i < NODES; i++) {
                w->hosts[i].name = names[i];
                node_init(&w->nodes[i], &w->loop, i, &w->hosts[i], NULL, NULL, NULL);
                w->nodes[i].state = NODE_READY;
                w->nodes[i].parent = i ? &w->nodes[0] : NULL;
                w->plan_nodes[i].n_ranks = 1;
        }
        w->plan = (struct plan){ .nodes = w->plan_nodes, .n_nodes = NODES };
        w->options.node_timeout_ms = 30000;
        w->cluster = (struct cluster){ .loop = &w->loop,
                                       .options = &w->options,
                                       .events = &w->events,
                                       .nodes = w->nodes,
                                       .n_nodes = NODES };
        w->no_nodes = w->cluster;
        w->no_nodes.n_nodes = 0;
        w->attempt.outcome = (struct outcome)OUTCOME_INIT;
        heartbeat_init(&w->heartbeat, &w->no_nodes, &w->attempt, NULL, NULL);
        w->push = job_push_create(&w->cluster, &w->attempt, &w->heartbeat, "run");
        *state = w;
        return 0;
}

static int tear_down(void **state)
{
        struct world *w = *state;

        job_push_close(w->push);
        heartbeat_close(&w->heartbeat);
        for (int i = 0; i < NODES; i++)
                node_close(&w->nodes[i]);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        job_push_free(w->push);
        for (int i = 0; i < NODES; i++)
                node_finish(&w->nodes[i]);
        assert_int_equal(uv_loop_close(&w->loop), 0);
        free(w);
        return 0;
}

TEST_WITH(set_up, tear_down, a_node_that_shares_with_a_forgotten_one_looks_again)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct world *w = *state;
        struct manifest m = { .fd = -1 };
        struct frame want;
        struct error err;

        /* Offers to all nodes, and waits for no answer. */
        w->attempt.outcome.cause.kind = CAUSE_NODE;
        assert_int_equal(job_push_run(w->push, &w->plan, &m, &err), JOB_INTERRUPTED);
        job_push_forget(w->push, 1);
        assert_false(job_push_takes_part(w->push, 1));

        push_want_encode(&b, &(struct push_want){ .holder = 1 });
        want = only_frame(&b, MSG_WANT);
        buf_clear(&w->nodes[0].out);
        assert_int_equal(job_push_take(w->push, &w->nodes[0], &want, &err), 0);
        only_frame(&w->nodes[0].out, MSG_LOOK);
        assert_true(job_push_takes_part(w->push, 2));
}
