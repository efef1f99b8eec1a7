/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "head/nodes/program_link.h"
#include "lib/unit.h"

/* Writes the arguments for the node n7 in brackets, or the error. */
static const char *argument_text(const char *via)
{
        static char text[512];
        struct program_link p = PROGRAM_LINK_INIT;
        struct strv argv = STRV_INIT;
        struct error err;

        text[0] = '\0';
        if (program_link_parse(via, &p, &err) < 0) {
                snprintf(text, sizeof(text), "%s", err.text);
        } else {
                program_link_arguments(&p, &(struct program_marks){ .host = "n7" }, &argv);
                for (size_t i = 0; i < argv.n; i++)
                        snprintf(text + strlen(text), sizeof(text) - strlen(text), "[%s]",
                                 argv.v[i]);
        }
        strv_finish(&argv);
        program_link_finish(&p);
        return text;
}

TEST(host_is_filled_in)
{
        static const struct {
                const char *via, *want;
        } cases[] = {
                { "docker exec -i {host}", "[docker][exec][-i][n7]" },
                { "x --node={host}.local '{host} {host}' \"a b\"",
                  "[x][--node=n7.local][n7 n7][a b]" },
                { "{host}", "[n7]" },
                { "x {hos} {{host}}", "[x][{hos}][{n7}]" },
                { "docker exec {hosts}",
                  "docker exec {hosts} has no {host} for the name of the node" },
                { "docker exec", "docker exec has no {host} for the name of the node" },
                { "", "it is empty" },
                { "x '{host}", "a ' is not closed" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(argument_text(cases[i].via), cases[i].want);
}

/* Returns the words of srun between the number of tasks on a node and the kind of MPI. */
static const char *sharing_text(void)
{
        static char text[128];
        struct program_marks marks = { .hosts = "n1,n2", .count = 2, .copy = "/tmp/x" };
        struct program_link p = PROGRAM_LINK_INIT;
        struct strv argv = STRV_INIT;
        struct error err;
        size_t i = 0;

        text[0] = '\0';
        assert_int_equal(program_link_parse("srun", &p, &err), 0);
        program_link_arguments(&p, &marks, &argv);
        while (strcmp(argv.v[i], "--ntasks-per-node=1") != 0)
                i++;
        for (i++; strcmp(argv.v[i], "--mpi=none") != 0; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", argv.v[i]);
        strv_finish(&argv);
        program_link_finish(&p);
        return text;
}

TEST(step_has_all_of_the_job)
{
        static const struct {
                const char *name, *value, *want;
        } cases[] = {
                { "SLURM_TASKS_PER_NODE", "2(x4)", "--overlap --mem=0 " },
                { "SLURM_GPUS_PER_TASK", "2", "--overlap --mem=0 --gpus-per-node=4 " },
                { "SLURM_GPUS_PER_TASK", "a100:1", "--overlap --mem=0 --gpus-per-node=2 " },
                { "SLURM_TASKS_PER_NODE", "2(x3),1", "--overlap --mem=0 " },
                { "OMPI_MCA_plm_slurm_args", "-v", "--overlap --mem=0 " },
                { "OMPI_MCA_plm_slurm_args", "--external-launcher", "--external-launcher " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                setenv(cases[i].name, cases[i].value, 1);
                assert_string_equal(sharing_text(), cases[i].want);
        }
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                unsetenv(cases[i].name);
}

TEST(step_copies_the_agent_or_not)
{
        CLEANUP(program_link_finish) struct program_link p = PROGRAM_LINK_INIT;
        struct error err;

        assert_int_equal(program_link_parse("srun", &p, &err), 0);
        assert_true(program_link_copies(&p));
        for (int copies = 0; copies < 2; copies++) {
                struct program_marks marks = { .hosts = "n1,n2",
                                               .count = 2,
                                               .copy = copies ? "/tmp/x" : NULL };
                CLEANUP(strv_finish) struct strv argv = STRV_INIT;

                program_link_arguments(&p, &marks, &argv);
                assert_int_equal(strv_has(&argv, "--bcast=/tmp/x"), copies);
                assert_string_equal(argv.v[argv.n - 1], copies ? "--bcast=/tmp/x" : "--wait=0");
        }
}

TEST(cancelled_steps_are_known)
{
        static const struct {
                const char *via, *said, *want;
        } cases[] = {
                { "srun",
                  "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-23T17:38:41 ***\n",
                  "Slurm cancelled its step" },
                { "srun",
                  "x\nslurmstepd: error: *** JOB 1 ON n1 CANCELLED AT X DUE TO TIME LIMIT ***\ny",
                  "Slurm cancelled its step due to time limit" },
                { "srun", "*** STEP 1.0 ON n1 CANCELLED AT X ***\nDUE TO Y",
                  "Slurm cancelled its step" },
                { "srun", "*** STEP 1.0 ON n1 CANCELLED AT X DUE TO ", "Slurm cancelled its step" },
                { "srun", "srun: error: n1: task 0: Killed", "lost" },
                { "sge", "*** STEP 1.0 ON n1 CANCELLED AT X ***", "lost" },
                { "x {host}", "*** STEP 1.0 ON n1 CANCELLED AT X ***", "lost" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(program_link_finish) struct program_link p = PROGRAM_LINK_INIT;
                struct link_failure why = { .fact = "lost" };
                struct error err;

                assert_int_equal(program_link_parse(cases[i].via, &p, &err), 0);
                snprintf(why.evidence, sizeof(why.evidence), "%s", cases[i].said);
                program_link_classify(&p, &why);
                assert_string_equal(why.fact, cases[i].want);
                assert_int_equal(*why.help != 0, strcmp(cases[i].want, "lost") != 0);
        }
}

TEST(names_stand_for_ways)
{
        CLEANUP(program_link_finish) struct program_link p = PROGRAM_LINK_INIT;
        struct error err;

        assert_true(program_link_is_ssh(NULL) && program_link_is_ssh("auto") &&
                    program_link_is_ssh("ssh"));
        assert_false(program_link_is_ssh("srun") || program_link_is_ssh("ssh {host}"));
        assert_true(program_link_is_managed("srun") && program_link_is_managed("sge"));
        assert_true(program_link_calls("srun") && program_link_calls("ray"));
        assert_false(program_link_calls("sge") || program_link_calls("x {host}"));
        assert_false(program_link_is_managed("srun {host}") || program_link_is_managed(NULL));
        assert_int_equal(program_link_parse("srun", &p, &err), 0);
        assert_string_equal(p.name, "srun");
        assert_string_equal(p.variable, "SLURM_JOB_ID");
        program_link_finish(&p);
        p = (struct program_link)PROGRAM_LINK_INIT;
        assert_int_equal(program_link_parse("ray", &p, &err), 0);
        assert_string_equal(p.name, "ray");
        assert_string_equal(p.words.v[0], "python3");
        assert_null(p.variable);
        program_link_finish(&p);
        p = (struct program_link)PROGRAM_LINK_INIT;
        assert_int_equal(program_link_parse("/opt/bin/enter {host}", &p, &err), 0);
        assert_string_equal(p.name, "enter");
}

/* srun would take variables of the job for options of the step. */
TEST(options_of_srun_are_not_inherited)
{
        CLEANUP(program_link_finish) struct program_link p = PROGRAM_LINK_INIT;
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        struct error err;

        setenv("SLURM_GPUS_PER_NODE", "2", 1);
        setenv("SLURM_MEM_PER_CPU", "100", 1);
        setenv("SLURM_LABELIO", "1", 1);
        setenv("SLURM_JOB_ID", "7", 1);
        assert_int_equal(program_link_parse("srun", &p, &err), 0);
        program_link_environment(&p, &env);
        assert_null(strv_env_get(&env, "SLURM_GPUS_PER_NODE"));
        assert_null(strv_env_get(&env, "SLURM_MEM_PER_CPU"));
        assert_null(strv_env_get(&env, "SLURM_LABELIO"));
        assert_string_equal(strv_env_get(&env, "SLURM_JOB_ID"), "7");
}
