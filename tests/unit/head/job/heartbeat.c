/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a lost node are dead when it is given up, or a restart knows how long to wait. */
#include "head/job/heartbeat.h"

#include "head/job/cluster.h"
#include "lib/unit.h"

enum { HEARD_MS = 5000 };

struct world {
        struct options options;
        struct host host;
        struct node node;
        struct cluster cluster;
        struct heartbeat heartbeat;
};

static void make_world(struct world *w, int64_t timeout_ms, bool local)
{
        *w = (struct world){ .options.node_timeout_ms = timeout_ms, .host.local = local };
        w->node.host = &w->host;
        w->node.heard_ns = HEARD_MS * INT64_C(1000000);
        w->cluster.options = &w->options;
        w->cluster.nodes = &w->node;
        w->cluster.n_nodes = 1;
        w->heartbeat.cluster = &w->cluster;
}

/* Milliseconds after the last word of the node until none of its ranks lives. */
static int64_t dead_after_ms(const struct world *w)
{
        return heartbeat_dead_ns(&w->heartbeat, &w->node, true) / 1000000 - HEARD_MS;
}

TEST(ranks_are_dead_when_the_node_is_given_up)
{
        static const int64_t timeouts[] = { 24000, 30000, 60000, 600000 };
        struct world w;

        for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
                make_world(&w, timeouts[i], false);
                assert_int_equal(heartbeat_interval_ms(&w.heartbeat), 500);
                assert_true(dead_after_ms(&w) <= timeouts[i] - 500);
        }
        make_world(&w, 30000, false);
        assert_int_equal(heartbeat_agent_ms(&w.heartbeat, &w.node), 23000);
}

TEST(a_short_timeout_leaves_the_agent_two_thirds)
{
        static const int64_t timeouts[] = { 100, 1000, 3000, 6000, 12000 };
        struct world w;

        for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
                make_world(&w, timeouts[i], false);
                assert_int_equal(heartbeat_agent_ms(&w.heartbeat, &w.node), timeouts[i] * 2 / 3);
                assert_true(dead_after_ms(&w) > timeouts[i]);
        }
}

TEST(this_machine_has_a_minute)
{
        static const int64_t want[][2] = {
                { 100, 2000 }, { 3000, 60000 }, { 30000, 60000 }, { 90000, 90000 }
        };
        struct world w;

        for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
                make_world(&w, want[i][0], true);
                assert_int_equal(heartbeat_silence_ms(&w.heartbeat, &w.node), want[i][1]);
                assert_int_equal(heartbeat_agent_ms(&w.heartbeat, &w.node), want[i][1]);
        }
}
