/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks have saved when a host is drained; two ranks on a node each. */
#include "head/job/job_drain.h"

#include "head/job/attempt.h"
#include "head/job/world_servers.h"
#include "job_nodes.h"
#include "lib/unit.h"

enum { NODES = 2 };

struct world {
        struct job_nodes on;
        struct plan_node plan_nodes[NODES];
        struct plan_rank ranks[NODES];
        struct plan_world worlds[1];
        struct plan plan;
        struct attempt attempt;
        struct job_drain *drain;
        int ends;
};

static void note_end(void *ctx, const struct cause *c)
{
        struct world *w = ctx;

        assert_int_equal(c->kind, CAUSE_DRAIN);
        w->ends++;
}

static int set_up(void **state)
{
        const char *const hosts[NODES] = { "n0", "n1" };
        const struct world_servers_ops ops = { .send = NULL };
        struct world *w = xcalloc(1, sizeof(*w));

        job_nodes_open(&w->on, NODES, NODE_RUNNING);
        for (int i = 0; i < NODES; i++) {
                w->plan_nodes[i].n_ranks = 1;
                w->ranks[i] = (struct plan_rank){ .rank = i, .node = i };
        }
        w->worlds[0] = (struct plan_world){ 0, NODES, NODES };
        w->plan = (struct plan){ w->plan_nodes, NODES, w->ranks, NODES, NODES, w->worlds, 1 };
        w->on.options.max_restarts = 1;
        w->attempt =
                (struct attempt){ .state = JOB_RUNNING,
                                  .plan = &w->plan,
                                  .stores = world_servers_create(&ops, w, &w->plan, hosts, 1 << 20),
                                  .outcome = OUTCOME_INIT };
        w->drain = job_drain_create(&w->on.cluster, &w->attempt, NULL, note_end, w);
        *state = w;
        return 0;
}

static int tear_down(void **state)
{
        struct world *w = *state;

        job_drain_close(w->drain);
        job_nodes_close(&w->on);
        job_drain_free(w->drain);
        world_servers_destroy(w->attempt.stores);
        job_nodes_finish(&w->on);
        free(w);
        return 0;
}

static void drain_first_host(struct world *w)
{
        struct error err;

        assert_int_equal(job_drain_order(w->drain, 0, 60000, "test", &err), 0);
}

static void end_rank(struct world *w, int rank, bool well)
{
        w->attempt.outcome.exited++;
        job_drain_rank_ended(w->drain, rank, well);
}

#define TEST_WORLD(name) TEST_OF(set_up, tear_down, struct world *w, name)

TEST_WORLD(a_rank_that_has_ended_answers_for_no_other)
{
        drain_first_host(w);
        end_rank(w, 0, true);
        job_drain_answered(w->drain, 0);
        assert_int_equal(w->ends, 0);
        job_drain_answered(w->drain, 1);
        assert_int_equal(w->ends, 1);
}

TEST_WORLD(an_answer_counts_that_the_end_has_overtaken)
{
        drain_first_host(w);
        end_rank(w, 0, false);
        job_drain_answered(w->drain, 0);
        job_drain_answered(w->drain, 0);
        assert_false(job_drain_all_saved(w->drain));
        end_rank(w, 1, true);
        assert_true(job_drain_all_saved(w->drain));
        assert_int_equal(w->ends, 1);
}

TEST_WORLD(a_rank_that_starts_again_has_not_saved)
{
        end_rank(w, 0, true);
        w->attempt.outcome.exited--;
        job_drain_rank_again(w->drain, 0);
        end_rank(w, 1, true);
        assert_false(job_drain_all_saved(w->drain));
        drain_first_host(w);
        assert_int_equal(w->ends, 0);
        job_drain_answered(w->drain, 0);
        assert_int_equal(w->ends, 1);
        end_rank(w, 0, true);
        assert_true(job_drain_all_saved(w->drain));
}
