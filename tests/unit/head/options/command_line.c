/* SPDX-License-Identifier: Apache-2.0 */
/* Words of other launchers: one option or letters, and a colon between programs. */
#include <stdio.h>

#include "head/options/program_options.h"
#include "lib/unit.h"
#include "option_line.h"

/* One word behind one dash, and one error that names it. */
TEST(words_of_others_are_no_letters)
{
        static const struct {
                const char *line, *help;
        } cases[] = {
                { "-hybrid-hosts", "-w LIST" },
                { "-hetero-nodes", "leave it out" },
                { "-hostlist a", "-w LIST" },
                { "-hwthread-cpus", "--bind POLICY" },
                { "-help-me", "--help lists all options" },
                { "-Vendor x", "--help lists all options" },
                { "-env A 1", "-x NAME=VALUE" },
                { "-env=A", "-x NAME=VALUE" },
                { "-genv A 1", "-x NAME=VALUE" },
                { "-genvlist A,B", "-x NAME" },
                { "-perhost 2", "--ppn N" },
                { "-print-rank-map", "hnlaunch plan" },
                { "-print-all-exitcodes", "summary.json" },
                { "-prefix /opt", "leave it out" },
                { "-path /x", "-x PATH" },
                { "-nolocal", "--exclude HOST" },
                { "-nooversubscribe", "--oversubscribe" },
                { "-bootstrap ssh", "--ssh-command" },
                { "-launcher ssh", "--ssh-command" },
                { "-configfile f", "-n 1 ./a : -n 3 ./b" },
                { "-rr", "--map node" },
                { "-localhost h", "--iface" },
                { "-rmk slurm", "--start-with CMD" },
                { "-outfile-pattern o", "--log-dir" },
                { "-xterm 0", "--show LIST" },
                { "-qr", "--help lists all options" },
                { "-verb", "--help lists all options" },
                { "-versoin", "did you mean `--version`?" },
                { "-Whatever", "--help lists all options" },
                { "-hv4", "--help lists all options" },
                { "-nodefile-of-mine f", "write -n odefile-of-mine" },
                { "-xyzzy", "write -x yzzy" },
                { "-wnode", "write -w node" },
                { "-Hydra", "write -H ydra" },
                { "-openmp", "write -o penmp" },
        };

        unsetenv("yzzy");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char line[80], fact[80];

                snprintf(line, sizeof(line), "-w a %s p", cases[i].line);
                snprintf(fact, sizeof(fact), "unknown option `%.*s`",
                         (int)strcspn(cases[i].line, " ="), cases[i].line);
                assert_int_equal(load(line), -22);
                assert_int_equal(d.n, 1);
                assert_string_equal(d.v[0].fact, fact);
                if (!strstr(messages(), cases[i].help))
                        fail_msg("%s: %s", line, messages());
                assert_int_equal(o.command, COMMAND_RUN);
        }
}

TEST(letters_may_be_joined)
{
        static const char *const lines[] = {
                "-qv -n4 -wnode1 -xPATH -xFOO=bar -p2222 p",
                "-qvn4 -wnode1 -xPATH -xfoo=bar -p 2222 p",
                "-vqn 4 -w node1 -x PATH -xhttp_proxy -p2222 p",
                "-vq -qvwnode1 -xPATH -xA* -n4 -p2222 p",
                "-vqHnode1 -n4 -xPATH -xin_this_shell -p2222 p",
                "-vq -orun.np=4 -wnode1 -xPATH -xinthisshell -p2222 p",
        };

        assert_int_equal(load("logs -fv"), 0);
        assert_true(o.logs.follow);
        assert_int_equal(load("-w a -n=4 p"), -22);
        assert_non_null(strstr(messages(), "-n must be 1 to"));
        setenv("inthisshell", "1", 1);
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                if (load(lines[i]))
                        fail_msg("%s: %s", lines[i], messages());
                assert_true(o.quiet && o.verbose);
                assert_int_equal(o.plan.np, 4);
                assert_int_equal(o.port, 2222);
                assert_int_equal(o.exports.n, 2);
                assert_string_equal((o.hostlists.n ? &o.hostlists : &o.hostfiles)->v[0], "node1");
                assert_int_equal(o.argv.n, 1);
        }
}

TEST(a_colon_begins_a_second_program)
{
        static const struct {
                const char *line;
                size_t words; /* of the program; 0 = refused */
                int ranks[3]; /* of programs behind a colon */
        } cases[] = {
                { "-w a -n 1 ./solver : -n 3 ./io", 1, { 3 } },
                { "plan -w a ./a 1 : -np 2 ./b", 2, { 2 } },
                { "-w a -n 1 ./a : -x A=1 --chdir d ./b x : -n 4 ./c", 1, { 0, 4 } },
                { "-w a:2 ./solver in.dat : ./io", 0 },
                { "-w a sh x.sh : sh y.sh", 0 },
                { "-w a ./a : /opt/io", 0 },
                { "-w a : -n 1 ./a", 0 },
                { "run -w a ./a : --host b ./b", 0 },
                { "-w a -- ./solver : -n 3 ./io", 5 },
                { "-w a -- : ./io", 2 },
                { "-w a ./a :", 2 },
                { "-w a expr ab : .*", 4 },
                { "-w a ./a 1 : 2", 4 },
                { "-w a ./a 1 : -2", 4 },
                { "-w a ./a x:y ::", 3 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                if (load(cases[i].line) != (cases[i].words ? 0 : -22))
                        fail_msg("%s: %s", cases[i].line, messages());
                if (cases[i].words) {
                        assert_int_equal(o.argv.n, cases[i].words);
                        for (size_t k = 0; k < o.n_more; k++)
                                assert_int_equal(o.more[k].np, cases[i].ranks[k]);
                } else {
                        assert_int_equal(d.n, 1);
                        assert_int_equal(d.v[0].id, 725);
                }
        }
}

TEST(a_program_is_a_role)
{
        assert_int_equal(load("plan -w n --role c --world w --replicas 2 ./c"), -22);
        assert_non_null(strstr(messages(), "role `c`: --world and --replicas"));
        assert_int_equal(load("plan -w n --role c : : --role d ./d"), -22);
        assert_non_null(strstr(messages(), "no program stands in front of `: :`"));
        if (load("plan -w n -x J=1 --ppn 2 --role a --nodes 50% -x A=1 -n 4 ./a x : --on a:last "
                 "--role b ./b : --role c --nodes n[1-2] --map node --gpus-per-rank 2 ./c : --role "
                 "d "
                 "--on b --share-gpus --chdir e ./d"))
                fail_msg("%s", messages());
        assert_int_equal(options_count_roles(&o), 4);
        assert_int_equal(o.exports.n, 1);
        assert_int_equal(options_program(&o, 0)->exports.n, 1);
        assert_int_equal(options_role(&o, 0)->nodes.percent, 50);
        assert_int_equal(options_role(&o, 0)->plan.np, 4);
        assert_int_equal(options_role(&o, 0)->plan.ppn, 2);
        assert_int_equal(options_role(&o, 0)->plan.gpus_per_rank, 1);
        assert_string_equal(options_role(&o, 1)->on.role, "a");
        assert_int_equal(options_role(&o, 1)->on.node, ROLE_LAST_NODE);
        assert_int_equal(options_role(&o, 1)->plan.ppn, 0);
        assert_int_equal(options_role(&o, 1)->plan.gpus_per_rank, 0);
        assert_string_equal(options_role(&o, 2)->nodes.list, "n[1-2]");
        assert_int_equal(options_role(&o, 2)->plan.map, PLAN_MAP_NODE);
        assert_int_equal(options_role(&o, 2)->plan.gpus_per_rank, 2);
        assert_int_equal(options_role(&o, 3)->on.node, ROLE_EACH_NODE);
        assert_true(options_role(&o, 3)->share_gpus);
        assert_int_equal(options_role(&o, 3)->plan.gpus_per_rank, 1);
        assert_string_equal(options_program(&o, 3)->chdir, "e");
        assert_string_equal(options_argv(&o, 3)->v[0], "./d");
        assert_int_equal(o.plan.np, 0);
}

int main(void)
{
        setenv("XDG_CONFIG_HOME", "/dev/null/none", 1);
        setenv("HNLAUNCH_SYSTEM_CONFIG", "/dev/null/none", 1);
        return unit_run(no_settings, NULL);
}
