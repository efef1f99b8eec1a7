/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/env/subst.h"

#include "lib/unit.h"

static struct launch_port ports[] = { { "jax", 40001 }, { "a_1", 40002 }, { "later", 0 } };
static struct launch_rank rank = { .rank = 9, .local_rank = 1 };

static struct launch_program program;

static struct launch_order order(void)
{
        program = (struct launch_program){ .arguments.subst = true };
        return (struct launch_order){ .node_rank = 4,
                                      .num_nodes = 5,
                                      .master_addr = "fe80::1",
                                      .master_port = 4711,
                                      .host = "gpu005",
                                      .programs = &program,
                                      .n_programs = 1,
                                      .first_node = { .ports = ports, ARRAY_SIZE(ports) } };
}

/* The second argument of the rank, when it was @text. */
static void expect(const char *text, const char *want)
{
        struct strv argv = STRV_INIT;
        struct launch_order l = order();

        strv_push(&program.argv, "{rank}");
        strv_push(&program.argv, text);
        subst_arguments(&argv, &l, &rank);
        assert_int_equal(argv.n, 2);
        assert_string_equal(argv.v[0], "{rank}");
        assert_string_equal(argv.v[1], want);
        assert_int_equal(subst_has_any(text), strcmp(text, want) != 0);
        strv_finish(&argv);
        strv_finish(&program.argv);
}

TEST(place_holders_are_replaced)
{
        expect("{rank}", "9");
        expect("{local_rank}{node_rank}", "14");
        expect("--nnodes={num_nodes}", "--nnodes=5");
        expect("[{master_addr}]:{master_port}", "[fe80::1]:4711");
        expect("{master_addr}:{port:jax}", "[fe80::1]:40001");
        expect("tcp://{master_addr}:29500/", "tcp://[fe80::1]:29500/");
        expect("{master_addr}", "fe80::1");
        expect("{master_addr} {master_port}", "fe80::1 4711");
        expect("{host}:{port:jax}", "gpu005:40001");
        expect("{host}/{port:jax}/{port:a_1}", "gpu005/40001/40002");
        expect("{port:later}", "(free port there)");
        expect("{{rank}}", "{9}");
        expect("{rank}\n{rank}\xff", "9\n9\xff");
}

TEST(other_braces_stay)
{
        static const char *const texts[] = { "",       "{",       "}",       "{}",
                                             "{rank",  "{ rank}", "{Rank}",  "{ranks}",
                                             "{port}", "{port:",  "${RANK}", "{\"a\": 1}",
                                             "\\{x}",  "\\",      "\\\\",    "{stream}",
                                             "{local}" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                expect(texts[i], texts[i]);
}

TEST(a_backslash_keeps_a_place_holder)
{
        expect("\\{rank}", "{rank}");
        expect("\\{port:jax}{rank}", "{port:jax}9");
        expect("\\\\{rank}", "\\{rank}");
        expect("\\{\\{rank}", "\\{{rank}");
}

TEST(nothing_is_replaced_unasked)
{
        struct strv argv = STRV_INIT;
        struct launch_order l = order();

        program.arguments = (struct launch_arguments){ .local_rank = "--local_rank" };
        strv_push(&program.argv, "a");
        strv_push(&program.argv, "\\{rank}");
        subst_arguments(&argv, &l, &rank);
        assert_int_equal(argv.n, 3);
        assert_string_equal(argv.v[1], "\\{rank}");
        assert_string_equal(argv.v[2], "--local_rank=1");
        strv_finish(&argv);
        strv_finish(&program.argv);
}

/* Ports of the instance of a role come before those of rank 0's node. */
TEST(ports_of_the_rank_are_replaced_without_being_asked)
{
        struct launch_port own[] = { { "http", 41000 }, { "jax", 41001 }, { "planned", 0 } };
        struct launch_rank_ports of_rank = { own, ARRAY_SIZE(own) };
        struct strv argv = STRV_INIT, env = STRV_INIT;
        struct launch_order l = order();

        l.ranks = &rank;
        l.n_ranks = 1;
        l.rank_ports = &of_rank;
        l.n_rank_ports = 1;
        program.arguments = (struct launch_arguments){ .local_rank = "" };
        strv_push(&program.argv, "{port:http}");
        strv_push(&program.argv, "{port:http}/{port:jax}/{port:a_1}/{port:planned}");
        strv_push(&program.argv, "\\{port:http} {rank} \\{rank} {port:other}");
        strv_push(&program.env, "A={port:http},{rank}");
        strv_push(&program.env, "B=\\{port:http}{port:other}");
        strv_push(&env, "A=before");
        subst_arguments(&argv, &l, &rank);
        assert_int_equal(argv.n, 3);
        assert_string_equal(argv.v[0], "{port:http}");
        assert_string_equal(argv.v[1], "41000/41001/40002/(free port there)");
        assert_string_equal(argv.v[2], "{port:http} {rank} \\{rank} {port:other}");
        subst_variables(&env, &l, &rank);
        assert_string_equal(strv_env_get(&env, "A"), "41000,{rank}");
        assert_string_equal(strv_env_get(&env, "B"), "{port:http}{port:other}");
        of_rank.n = 0;
        subst_variables(&env, &l, &rank);
        assert_string_equal(strv_env_get(&env, "A"), "{port:http},{rank}");
        strv_finish(&argv);
        strv_finish(&env);
        strv_finish(&program.argv);
        strv_finish(&program.env);
}

/* The words of --wrap come first, with place-holders replaced in any case. */
TEST(a_wrapper_stands_in_front)
{
        struct strv argv = STRV_INIT;
        struct launch_order l = order();

        program.arguments = (struct launch_arguments){ 0 };
        strv_push(&program.arguments.wrap, "env");
        strv_push(&program.arguments.wrap, "A={rank}");
        strv_push(&program.argv, "prog");
        strv_push(&program.argv, "{rank}");
        subst_arguments(&argv, &l, &rank);
        assert_int_equal(argv.n, 4);
        assert_string_equal(argv.v[0], "env");
        assert_string_equal(argv.v[1], "A=9");
        assert_string_equal(argv.v[2], "prog");
        assert_string_equal(argv.v[3], "{rank}");
        strv_finish(&argv);
        strv_finish(&program.argv);
        strv_finish(&program.arguments.wrap);
}

TEST(a_port_is_found_with_its_name)
{
        struct subst_piece p = subst_read("{port:Any Thing}...");

        assert_int_equal(p.kind, SUBST_PORT);
        assert_false(p.escaped);
        assert_int_equal(p.len, 16);
        assert_int_equal(p.name_len, 9);
        assert_memory_equal(p.name, "Any Thing", 9);
        p = subst_read("\\{port:}");
        assert_int_equal(p.kind, SUBST_PORT);
        assert_true(p.escaped);
        assert_int_equal(p.len, 8);
}
