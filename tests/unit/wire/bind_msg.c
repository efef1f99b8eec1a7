/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/bind_msg.h"
#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/msg_type.h"

TEST(a_query_comes_back_the_same)
{
        uint32_t gpus[] = { 3, 1 };
        struct bind_query_rank ranks[] = { { 8, 4, gpus, 2 }, { 9, 0, NULL, 0 } };
        const struct bind_query in = { (char *)"core:2", true, ranks, 2, ranks, 1 };
        CLEANUP(bind_query_finish) struct bind_query out;

        ASSERT_ONLY_WHOLE(bind_query, MSG_BIND, &in);
        ASSERT_COMES_BACK(bind_query, MSG_BIND, &out, &in);
        assert_string_equal(out.bind, "core:2");
        assert_true(out.near_nic);
        assert_int_equal(out.n_others, 1);
        assert_int_equal(out.others[0].gpus[0], 3);
        assert_int_equal(out.n_ranks, 2);
        assert_int_equal(out.ranks[0].rank, 8);
        assert_int_equal(out.ranks[0].threads, 4);
        assert_int_equal(out.ranks[0].n_gpus, 2);
        assert_int_equal(out.ranks[0].gpus[1], 1);
        assert_int_equal(out.ranks[1].n_gpus, 0);
}

TEST(an_answer_comes_back_the_same)
{
        struct bound_rank ranks[] = { { 8, (char *)"0-3,8", 1, "", (char *)"mlx5_0:1" },
                                      { 9, (char *)"", UINT32_MAX, "too few", (char *)"" } };
        const struct bound in = { ranks, 2 };
        CLEANUP(bound_finish) struct bound out;

        ASSERT_ONLY_WHOLE(bound, MSG_BOUND, &in);
        ASSERT_COMES_BACK(bound, MSG_BOUND, &out, &in);
        assert_int_equal(out.n_ranks, 2);
        assert_string_equal(out.ranks[0].cpus, "0-3,8");
        assert_int_equal(out.ranks[0].node, 1);
        assert_string_equal(out.ranks[1].why, "too few");
        assert_string_equal(out.ranks[0].nics, "mlx5_0:1");
}
