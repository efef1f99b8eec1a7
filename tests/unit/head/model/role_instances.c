/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/role_instances.h"

#include "head/model/plan.h"
#include "head/model/role_book.h"
#include "lib/unit.h"

/* Two roles on two nodes: ranks 0 to 3 are role a, two on each node; 4 to 7 role b, two replicas of
 * which the second spans both nodes. */
static struct plan_world worlds[] = { { 0, 4, 2 }, { 4, 1, 1 }, { 5, 3, 2 } };
static struct plan_rank ranks[8];
static struct plan_node nodes[2];

static struct plan make_plan(void)
{
        static const struct {
                int node, world, role;
        } rows[] = { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 0, 0 }, { 1, 0, 0 },
                     { 0, 1, 1 }, { 1, 2, 1 }, { 0, 2, 1 }, { 1, 2, 1 } };

        for (int i = 0; i < 8; i++) {
                ranks[i] = (struct plan_rank){ .rank = i,
                                               .node = rows[i].node,
                                               .world = rows[i].world,
                                               .program = rows[i].role };
                intlist_add(&nodes[rows[i].node].ranks, i);
        }
        return (struct plan){ .nodes = nodes,
                              .n_nodes = 2,
                              .ranks = ranks,
                              .world_size = 8,
                              .worlds = worlds,
                              .n_worlds = 3 };
}

TEST(a_node_reserves_the_ports_of_its_instances)
{
        struct role_book *b = role_book_create();
        struct plan p = make_plan();

        role_book_add(b, "a");
        role_book_set_replicated(b, role_book_add(b, "b"));
        assert_int_equal(role_instances_count_ports(b, &p, 0, 0), 0);
        role_book_need_port(b, 0, "x");
        role_book_need_port(b, 0, "y");
        role_book_need_port(b, 1, "z");
        assert_int_equal(role_instance_of(b, &p, 3), 3);
        assert_int_equal(role_instance_of(b, &p, 4), 4);
        assert_int_equal(role_instance_of(b, &p, 7), 5);
        assert_int_equal(role_instances_count_ports(b, &p, 0, 0), 4);
        assert_int_equal(role_instances_count_ports(b, &p, 1, 0), 4);
        assert_int_equal(role_instances_count_ports(b, &p, 0, 1), 1);
        assert_int_equal(role_instances_count_ports(b, &p, 1, 1), 0);
        assert_int_equal(role_instances_count_ports(b, &p, 0, 2), 0);
        assert_int_equal(role_instances_count_ports(b, &p, 1, 2), 1);
        assert_int_equal(role_instance_first_port(b, &p, 0), 0);
        assert_int_equal(role_instance_first_port(b, &p, 3), 2);
        assert_int_equal(role_instance_first_port(b, &p, 5), 0);
        role_book_destroy(b);
        intlist_finish(&nodes[0].ranks);
        intlist_finish(&nodes[1].ranks);
}
