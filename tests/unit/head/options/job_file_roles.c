/* SPDX-License-Identifier: Apache-2.0 */
#include "head/options/job_file_roles.h"

#include <stdio.h>
#include <unistd.h>

#include "head/options/program_options.h"
#include "lib/files.h"
#include "lib/unit.h"
#include "option_line.h"

static int load_job(const char *text, const char *words)
{
        char line[160];

        write_file(job_path, text);
        snprintf(line, sizeof(line), "plan --job %s %s", job_path, words);
        return load(line);
}

static void assert_roles(const char *text, const char *names)
{
        CLEANUP(buf_finish) struct buf found = BUF_INIT;

        if (load_job(text, "-w n") < 0)
                fail_msg("%s: %s", text, messages());
        for (size_t i = 0; i < options_count_roles(&o); i++)
                buf_printf(&found, "%s=%s ", options_role(&o, i)->name, options_argv(&o, i)->v[0]);
        buf_append(&found, "", 1);
        assert_string_equal((const char *)buf_data(&found), names);
}

TEST_WITH(make_file, remove_file, sections_are_roles)
{
        if (load_job("[run]\nhosts = n\nppn = 2\n[env]\nset.J = 1\n"
                     "[role a]\nnodes = 50%\nn = 4\nprogram = ./a 'x y' ; # z\n"
                     "[role b]\non = a:last\nprogram = ./b\n"
                     "[role c]\nnodes = n[1-2]\nmap = node\ngpus_per_rank = 2\nprogram = ./c\n"
                     "[env c]\nset.C = 1, 2\npass = A B_*\n"
                     "[role d]\non = b\nshare-gpus = yes\nchdir = /e\nprogram = ./d\n",
                     "-x L=1") < 0)
                fail_msg("%s", messages());
        assert_int_equal(options_count_roles(&o), 4);
        assert_int_equal(o.exports.n, 2);
        assert_int_equal(options_role(&o, 0)->nodes.percent, 50);
        assert_int_equal(options_role(&o, 0)->plan.np, 4);
        assert_int_equal(options_role(&o, 0)->plan.ppn, 2);
        assert_int_equal(options_argv(&o, 0)->n, 5);
        assert_string_equal(options_argv(&o, 0)->v[1], "x y");
        assert_string_equal(options_argv(&o, 0)->v[4], "z");
        assert_string_equal(options_role(&o, 1)->on.role, "a");
        assert_int_equal(options_role(&o, 1)->on.node, ROLE_LAST_NODE);
        assert_string_equal(options_role(&o, 2)->nodes.list, "n[1-2]");
        assert_int_equal(options_role(&o, 2)->plan.map, PLAN_MAP_NODE);
        assert_int_equal(options_role(&o, 2)->plan.gpus_per_rank, 2);
        assert_int_equal(options_program(&o, 2)->exports.n, 3);
        assert_string_equal(options_program(&o, 2)->exports.v[0], "C=1, 2");
        assert_string_equal(options_program(&o, 2)->exports.v[2], "B_*");
        assert_true(options_role(&o, 3)->share_gpus);
        assert_string_equal(options_program(&o, 3)->chdir, "/e");
}

TEST_WITH(make_file, remove_file, roles_have_the_order_of_their_sections)
{
        assert_roles("[env b]\nset.X=1\n[env c]\nset.X=1\n[role a]\nnodes = 1\nprogram = x\n"
                     "[role c]\nnodes = 1\nprogram = z\n[role  b] ; last\nnodes = 1\nprogram = y\n",
                     "a=x c=z b=y ");
        assert_roles("[role only]\nprogram : x\n", "only=x ");
        assert_roles("[run]\nppn = 1\n", "");
}

TEST_WITH(make_file, remove_file, the_line_wins_over_the_keys_of_the_job)
{
        if (load_job("[run]\nhosts = n\nppn = 2\ntimeout = 5s\n[role a]\nnodes = 1\nprogram = a\n"
                     "[role b]\nnodes = 1\nppn = 3\nprogram = b\n",
                     "--ppn 4 --timeout 7s") < 0)
                fail_msg("%s", messages());
        assert_int_equal(o.timeout_ms, 7000);
        assert_int_equal(options_role(&o, 0)->plan.ppn, 4);
        assert_int_equal(options_role(&o, 1)->plan.ppn, 3);
}

TEST_WITH(make_file, remove_file, mistakes_have_their_place)
{
        static const struct {
                const char *text, *says, *place, *mark;
        } cases[] = {
                { "[role a]\nprogram = a\n[rôle b]\nx = y\n",
                  "error[HN723]: unknown section [rôle b] in a job file", ":3:2", "" },
                { "[role]\nprogram = a\n", "a role has a name: [role NAME]", ":1:2", "" },
                { "[role 1a]\nprogram = a\n", "error[HN712]: a role needs a name", ":1:7",
                  "     ^^\n" },
                { "[role a]\nprogram = a\ngpu_per_rank = 2\n",
                  "error[HN711]: unknown key `gpu_per_rank` of a role", ":3:1",
                  "did you mean `gpus_per_rank`?" },
                { "[role a]\nprogram = a\ntimeout = 2s\n", "put it under [run]", ":3:1", "" },
                { "[role a]\nprogram = a\nset.A = 2\n", "stand under [env a]", ":3:1", "" },
                { "[role a]\nprogram = a\n[env a]\nfile = x\n", "put it under [env]", ":4:1", "" },
                { "[role a]\nprogram = a\n[env a]\nA = x\n", "keys are pass, and set.NAME", ":4:1",
                  "" },
                { "[run]\nreplicas = 2\n", "put it under a [role NAME]", ":2:1", "" },
                { "[role a]\nprogram = a\n[role a]\nprogram = b\n",
                  "error[HN727]: two roles are called `a`", ":3:7", "the first" },
                { "[role a]\nprogram = a\n  [role b]\n", "error[HN705]: role `b` has no program",
                  ":3:9", "     ^\n" },
                { "[env b]\nset.A = 1\n[role a]\nprogram = a\n",
                  "error[HN726]: [env b]: there is no role of this name", ":1:6",
                  "the roles are `a`" },
                { "[env b]\nset.A = 1\n", "the file has no [role NAME]", ":1:6", "" },
                { "[run]\nprogram = x\n[role a]\nprogram = a\n",
                  "error[HN722]: a program of the job beside roles", ":2:11", "" },
                { "[run]\nnp = 4\n[role a]\nprogram = a\n",
                  "error[HN729]: a number of ranks for the job beside roles", ":2:6", "" },
                { "[role a]\nprogram = a\nprogram = b\n", "error[HN722]: a role has one program",
                  ":3:1", "" },
                { "[role a]\nprogram =\n", "error[HN712]: program needs a command", ":2:1", "" },
                { "[role a]\nprogram = a\nnodes = 0\n", "error[HN712]: nodes of a role must be",
                  ":3:9", "" },
                { "[role a]\nprogram = a\non = b\n[role bb]\nprogram = b\n",
                  "error[HN726]: --on b of role `a`", ":3:6", "" },
                { "[role a]\nprogram = a\non = b\n[role b]\nprogram = b\non = a\n",
                  "error[HN728]: roles stand on each other", ":3:6", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char place[80];

                snprintf(place, sizeof(place), "%s%s", job_path, cases[i].place);
                if (load_job(cases[i].text, "-w n") != -22)
                        fail_msg("%s: accepted", cases[i].text);
                if (!strstr(messages(), cases[i].says) || !strstr(messages(), place) ||
                    !strstr(messages(), cases[i].mark))
                        fail_msg("%s:\n%s", cases[i].text, messages());
                assert_int_equal(diags_first_error(&d)->exit, 78);
                assert_int_equal(diags_errors(&d), 1);
        }
}

TEST_WITH(make_file, remove_file, roles_have_one_place)
{
        static const struct {
                const char *words, *says;
        } cases[] = {
                { "-w n --role b x : --role c y",
                  "error[HN721]: roles on the command line, `b`, `c`, and in the job file" },
                { "-w n prog", "error[HN721]: the command line has the program `prog`" },
                { "-w n -n 1 x : -n 1 y", "error[HN721]: the command line has the program `x`" },
                { "-w n -n 3", "error[HN729]: -n beside a job file with roles" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(load_job("[role a]\nprogram = a\n", cases[i].words), -22);
                if (!strstr(messages(), cases[i].says))
                        fail_msg("%s:\n%s", cases[i].words, messages());
                assert_int_equal(diags_errors(&d), 1);
        }
}

int main(void)
{
        setenv("XDG_CONFIG_HOME", "/dev/null/none", 1);
        setenv("HNLAUNCH_SYSTEM_CONFIG", "/dev/null/none", 1);
        return unit_run(NULL, NULL);
}
