/* SPDX-License-Identifier: Apache-2.0 */
#include "head/options/multi_prog.h"

#include <stdio.h>
#include <unistd.h>

#include "head/core/shell_words.h"
#include "head/model/plan.h"
#include "head/options/program_options.h"
#include "lib/files.h"
#include "lib/unit.h"
#include "option_line.h"

static int load_file(const char *text, const char *words)
{
        char line[160];

        write_file(job_path, text);
        snprintf(line, sizeof(line), "plan -w n %s --multi-prog %s", words, job_path);
        return load(line);
}

/* "RANKS: WORDS; ..." of the programs, with ! for place-holders that are replaced. */
static char *describe(void)
{
        struct buf text = BUF_INIT;

        for (size_t i = 0; i < o.multi->n; i++) {
                CLEANUP(free_textp) char *ranks = intlist_fold(&o.multi->v[i].ranks);
                CLEANUP(free_textp) char *words = shell_words_join(options_argv(&o, i));

                buf_printf(&text, "%s%s%s: %s", i ? "; " : "", ranks,
                           o.multi->v[i].subst ? "!" : "", words);
        }
        return buf_steal(&text);
}

TEST_WITH(make_file, remove_file, lines_are_programs)
{
        static const struct {
                const char *text, *words, *programs;
                int np;
        } cases[] = {
                { "0 a\n", "", "0: a", 1 },
                { "# x\n\n  #y\n4-6 hostname\n1,7\techo  t:%t\n0,2-3 c\r\n", "",
                  "4-6: hostname; 1,7!: echo 't:{rank}'; 0,2-3: c", 8 },
                { "0-1,3 a o%o\n2 b", "", "0: a o0; 1: a o1; 3: a o2; 2: b", 4 },
                { "1-2 a %t.%o\n* b %t %o\n", "-n 6",
                  "1!: a '{rank}.0'; 2!: a '{rank}.1'; !: b '{rank}' '{rank}'", 6 },
                { "* a", "", ": a", 0 },
                { "* a '%t  x'\\ y \\%o '' \"b\"", "", ": a '%t  x y' %o '' '\"b\"'", 0 },
                { "* a %t {rank} {x} \\{host}", "", "!: a '{rank}' '\\{rank}' '{x}' '\\{host}'",
                  0 },
                { "* a %x %%t", "", "!: a %x '%{rank}'", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(free_textp) char *found = NULL;

                if (load_file(cases[i].text, cases[i].words) < 0)
                        fail_msg("%s: %s", cases[i].text, messages());
                found = describe();
                assert_string_equal(found, cases[i].programs);
                assert_int_equal(o.plan.np, cases[i].np);
        }
}

TEST_WITH(make_file, remove_file, ranks_get_their_programs)
{
        struct plan_rank ranks[4] = { { .program = 9 } };
        struct plan plan = { .ranks = ranks, .world_size = 4 };

        assert_int_equal(load_file("* a\n2 b\n", ""), 0);
        assert_int_equal(multi_prog_share(o.multi, &plan, &d), 0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(ranks[i].program, i == 2);
        plan.world_size = 2;
        assert_int_equal(multi_prog_share(o.multi, &plan, &d), -22);
        assert_non_null(strstr(messages(), "there is no rank 2: the job has 2"));
}

int main(void)
{
        setenv("XDG_CONFIG_HOME", "/dev/null/none", 1);
        setenv("HNLAUNCH_SYSTEM_CONFIG", "/dev/null/none", 1);
        return unit_run(NULL, NULL);
}
