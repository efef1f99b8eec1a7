/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/check_msg.h"

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/msg_type.h"

TEST(a_check_comes_back_as_sent)
{
        struct check_path path = { .name = "program",
                                   .kind = CHECK_PROGRAM,
                                   .path = (char[]){ "./a.out" },
                                   .cwd = (char[]){ "/data" },
                                   .search = (char[]){ "/usr/bin" } };
        struct check_program program = { .number = 1, .cwd = (char[]){ "/data" } };
        struct check_name name = { "name.7", (char[]){ "node007" } };
        const struct check_order sent = { .number = 3,
                                          .names = { &name, 1 },
                                          .paths = &path,
                                          .n_paths = 1,
                                          .programs = &program,
                                          .n_programs = 1,
                                          .run = (char[]){ "exit 3" },
                                          .run_cwd = (char[]){ "/home" } };
        struct check_order m;

        strv_push(&program.argv, "python3");
        strv_push(&program.env, "PYTHONPATH=/opt");
        ASSERT_COMES_BACK(check_order, MSG_CHECK, &m, &sent);
        assert_int_equal(m.number, 3);
        assert_int_equal(m.n_paths, 1);
        assert_int_equal(m.paths[0].kind, CHECK_PROGRAM);
        assert_string_equal(m.paths[0].name, "program");
        assert_string_equal(m.paths[0].path, "./a.out");
        assert_string_equal(m.paths[0].cwd, "/data");
        assert_string_equal(m.paths[0].search, "/usr/bin");
        assert_int_equal(m.n_programs, 1);
        assert_int_equal(m.programs[0].number, 1);
        assert_string_equal(m.programs[0].argv.v[0], "python3");
        assert_string_equal(m.programs[0].env.v[0], "PYTHONPATH=/opt");
        assert_string_equal(m.programs[0].cwd, "/data");
        assert_int_equal(m.names.n, 1);
        assert_string_equal(m.names.v[0].fact, "name.7");
        assert_string_equal(m.names.v[0].host, "node007");
        assert_string_equal(m.run, "exit 3");
        assert_string_equal(m.run_cwd, "/home");
        check_order_finish(&m);
        path.kind = CHECK_PATH_KINDS;
        ASSERT_MALFORMED(check_order, MSG_CHECK, &sent);
        ASSERT_MALFORMED(check_order, MSG_CHECK, &(struct check_order){ .what = CHECK_WHATS });
        strv_finish(&program.argv);
        strv_finish(&program.env);
}

TEST(facts_come_back_as_sent)
{
        struct checked sent = { .number = 4, .more = true }, m;

        checked_add(&sent, "kernel", "6.1.0", "");
        checked_add(&sent, "thp", "", "cannot read");
        ASSERT_COMES_BACK(checked, MSG_CHECKED, &m, &sent);
        assert_int_equal(m.number, 4);
        assert_true(m.more);
        assert_int_equal(m.n_facts, 2);
        assert_string_equal(m.facts[0].value, "6.1.0");
        assert_string_equal(m.facts[1].problem, "cannot read");
        checked_finish(&m);
        checked_finish(&sent);
}
