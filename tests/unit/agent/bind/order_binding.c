/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/bind/order_binding.h"
#include "lib/unit.h"

/* Two ranks of a node, each of a program and a world. The first world has @own of them. */
static struct bind_query ask(struct launch_program *programs, uint32_t own, const struct strv *env)
{
        static uint32_t gpus[2] = { 0, 1 };
        struct launch_rank rank = { .program = own, .gpus = &gpus[own], .n_gpus = 1 };
        struct launch_other other = { 1 - own, 1 - own, &gpus[1 - own], 1 };
        const struct launch_order l = { .bind = (char *)"exclusive",
                                        .world.first = own,
                                        .programs = programs,
                                        .n_programs = 2,
                                        .ranks = &rank,
                                        .n_ranks = 1,
                                        .others = { &other, 1 } };

        return order_binding_ask(&l, env);
}

static void assert_same(const struct bind_query_rank *a, const struct bind_query_rank *b)
{
        assert_int_equal(a->rank, b->rank);
        assert_int_equal(a->threads, b->threads);
        assert_int_equal(a->n_gpus, b->n_gpus);
        assert_ptr_equal(a->gpus, b->gpus);
}

/* Asks for both worlds, and asserts that both know the same of rank @i. */
static struct bind_query_rank known_of(struct launch_program *programs, uint32_t i,
                                       const struct strv *env)
{
        struct bind_query own = ask(programs, i, env), other = ask(programs, 1 - i, env);
        struct bind_query_rank found = own.ranks[0];

        assert_int_equal(own.n_ranks + own.n_others, 2);
        assert_same(&own.ranks[0], &other.others[0]);
        assert_same(&own.others[0], &other.ranks[0]);
        free(own.ranks);
        free(own.others);
        free(other.ranks);
        free(other.others);
        return found;
}

TEST(worlds_know_the_same_of_each_rank)
{
        struct launch_program programs[2] = { 0 };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;

        assert_int_equal(known_of(programs, 0, &env).n_gpus, 1);
        strv_env_set(&programs[0].env, "HIP_VISIBLE_DEVICES", "1");
        strv_env_set(&programs[1].env, "OMP_NUM_THREADS", "4");
        assert_int_equal(known_of(programs, 0, &env).n_gpus, 0);
        assert_int_equal(known_of(programs, 1, &env).n_gpus, 1);
        assert_int_equal(known_of(programs, 0, &env).threads, 0);
        assert_int_equal(known_of(programs, 1, &env).threads, 4);
        strv_env_set(&env, "ROCR_VISIBLE_DEVICES", "0");
        strv_env_set(&env, "OMP_NUM_THREADS", "2");
        assert_int_equal(known_of(programs, 1, &env).n_gpus, 0);
        assert_int_equal(known_of(programs, 0, &env).threads, 2);
        strv_finish(&programs[0].env);
        strv_finish(&programs[1].env);
}
