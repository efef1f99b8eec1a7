/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/options/option_foreign.h"
#include "head/options/option_table.h"
#include "head/term/error_ids.h"
#include "lib/unit.h"
#include "option_line.h"

TEST(built_in_values_are_there)
{
        assert_int_equal(load("-w a prog"), 0);
        assert_int_equal(o.command, COMMAND_RUN);
        assert_int_equal(o.connect_timeout_ms, 10000);
        assert_int_equal(o.start_timeout_ms, 120000);
        assert_int_equal(o.timeout_ms, DURATION_NEVER);
        assert_int_equal(o.grace_ms, 10000);
        assert_int_equal(o.plan.gpus_per_rank, 1);
        assert_int_equal(o.on_failure, FAILURE_STOP);
        assert_false(o.accept_new);
        assert_string_equal(o.show, "all");
        assert_null(o.export_mode);
}

TEST(options_end_at_the_program)
{
        assert_int_equal(load("-H h -n 4 prog -n 9 --verbose -- x"), 0);
        assert_int_equal(o.plan.np, 4);
        assert_int_equal(o.verbose, 0);
        assert_int_equal(o.argv.n, 6);
        assert_string_equal(o.argv.v[0], "prog");
        assert_string_equal(o.argv.v[4], "--");
        assert_int_equal(load("-H h -- --odd-name"), 0);
        assert_string_equal(o.argv.v[0], "--odd-name");
}

TEST(commands_are_known_as_first_word_only)
{
        static const struct {
                const char *line;
                enum command command;
                const char *program;
        } cases[] = {
                { "run -w a plan", COMMAND_RUN, "plan" },  { "run -w a plna", COMMAND_RUN, "plna" },
                { "-w a plna", COMMAND_RUN, "plna" },      { "-w a ./plan", COMMAND_RUN, "./plan" },
                { "plan -w a run", COMMAND_PLAN, "run" },  { "plan -w a", COMMAND_PLAN, NULL },
                { "-w a --dry-run x", COMMAND_PLAN, "x" }, { "config", COMMAND_CONFIG, NULL },
                { "version", COMMAND_VERSION, NULL },      { "-V", COMMAND_VERSION, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(load(cases[i].line), 0);
                assert_int_equal(o.command, cases[i].command);
                if (cases[i].program)
                        assert_string_equal(o.argv.v[0], cases[i].program);
                else
                        assert_int_equal(o.argv.n, 0);
        }
}

TEST(help_knows_its_topic)
{
        static const struct {
                const char *line, *topic;
        } cases[] = { { "-h", NULL },           { "-h logs", "logs" }, { "-h on-hang", "on-hang" },
                      { "-h nothing", NULL },   { "--help", "all" },   { "--help exit", "exit" },
                      { "--help=env", "env" },  { "help", NULL },      { "help config", "config" },
                      { "-w a -h prog", NULL }, { "--help -v", "all" } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(load(cases[i].line), 0);
                assert_int_equal(o.command, COMMAND_HELP);
                if (cases[i].topic)
                        assert_string_equal(o.help_topic, cases[i].topic);
                else
                        assert_null(o.help_topic);
        }
}

TEST(local_takes_a_bare_number)
{
        static const struct {
                const char *line;
                int n;
                const char *program;
        } cases[] = { { "--local 4 ./a 5", 4, "./a" },
                      { "--local=3 4", 3, "4" },
                      { "--local prog", 0, "prog" },
                      { "--local -v 7", 0, "7" },
                      { "--local 2x", 0, "2x" } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(load(cases[i].line), 0);
                assert_true(o.local && o.plan.local);
                assert_int_equal(o.local_n, cases[i].n);
                assert_string_equal(o.argv.v[0], cases[i].program);
        }
}

TEST(spellings_of_others_work)
{
        static const char *const lines[] = {
                "-np 4 --ppn 2 -H h --nodes 3 p",
                "--np 4 --nproc_per_node 2 --machinefile h --num_nodes=3 p",
                "-n4 --num-gpus=2 -hostfile h -nnodes 3 p",
                "--np=4 --npernode 2 --hostfile=h --nnodes 3 p",
        };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                assert_int_equal(load(lines[i]), 0);
                assert_int_equal(o.plan.np, 4);
                assert_int_equal(o.plan.ppn, 2);
                assert_int_equal(o.nodes, 3);
                assert_string_equal(o.hostfiles.v[0], "h");
        }
}

/* With two values as `--name=1 2 3`. */
TEST(options_of_others_are_answered)
{
        for (size_t i = 0; i < option_foreign_count; i++) {
                const struct option_foreign *f = &option_foreigns[i];
                char line[128];
                int r;

                if (option_by_name(f->name))
                        fail_msg(
                                "--%s is an option of hnlaunch: its row of option_foreigns must go",
                                f->name);
                assert_in_range(f->values, 0, 2);
                snprintf(line, sizeof(line), "-v --%s%s%s -n 3 -w a p x", f->name,
                         f->values ? " 1" : "", f->values == 2 ? " 2" : "");
                r = load(line);
                assert_int_equal(r, f->accepted ? 0 : -22);
                if (!strstr(messages(), f->says) || !strstr(messages(), f->name))
                        fail_msg("%s: %s", line, messages());
                assert_int_equal(o.plan.np, f->accepted ? 3 : 0);
                if (f->accepted)
                        assert_int_equal(o.argv.n, 2);
                if (!f->accepted)
                        continue;
                snprintf(line, sizeof(line), "-w a --%s%s p", f->name, f->values ? "=1" : "");
                assert_int_equal(load(line), 0);
                assert_int_equal(d.n, 0); /* told with -v only */
        }
}

/* What stands in scripts of torchrun, deepspeed, mpirun and srun. */
TEST(usual_options_of_others_are_known)
{
        static const char *const names[] = {
                "map-by",      "bind-to",        "mca",           "allow-run-as-root",
                "standalone",  "nnodes",         "rdzv-backend",  "rdzv-endpoint",
                "master-port", "node-rank",      "tag-output",    "output-filename",
                "nodelist",    "tasks-per-node", "cpus-per-task", "report-bindings",
                "display-map", "no-python",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!option_by_name(names[i]) && !option_foreign_by_name(names[i]))
                        fail_msg("--%s", names[i]);
        for (const char *c = "mDtcg"; *c; c++) {
                size_t i = 0;

                while (i < option_letter_count && option_letters[i].letter != *c)
                        i++;
                if (i == option_letter_count)
                        fail_msg("-%c", *c);
        }
}

/* A value that looks like an option is one when it belongs to the option's own word. */
TEST(values_may_look_like_options)
{
        assert_int_equal(load("-w a --label=-H --chdir=-w -x-n=1 --stdin -- -p"), -22);
        assert_int_equal(load("-w a --label=-H --chdir -Q -x-n=1 p"), 0);
        assert_string_equal(o.label_template, "-H");
        assert_string_equal(o.chdir, "-Q");
        assert_string_equal(o.exports.v[0], "-n=1");
        assert_int_equal(load("-w a --label {rank}{}{1}{ p"), 0);
        assert_string_equal(o.label_template, "{rank}{}{1}{");
}

/* All of them at once, in the spellings that scripts have. */
TEST(a_foreign_line_is_answered_whole)
{
        assert_int_equal(load("--allow-run-as-root -mca btl self -map-by slot --bind_to none "
                              "--tag-output -np 4 --nodelist a,b --tasks-per-node=2 p"),
                         -22);
        assert_int_equal(diags_errors(&d), 3);
        assert_string_equal(d.v[0].fact, "unknown option `-mca`");
        assert_string_equal(d.v[2].fact, "unknown option `--tag-output`");
        assert_int_equal(load("--nodelist a,b --tasks-per-node=2 --master_port 29500 p"), 0);
        assert_string_equal(o.hostlists.v[0], "a,b");
        assert_int_equal(o.plan.ppn, 2);
}

TEST(foreign_letters_say_what_to_write)
{
        for (size_t i = 0; i < option_letter_count; i++) {
                char line[] = "-w a -? 1 p";

                assert_null(option_by_letter(option_letters[i].letter, COMMAND_RUN));
                *strchr(line, '?') = option_letters[i].letter;
                assert_int_equal(load(line), -22);
                assert_non_null(strstr(messages(), "is ambiguous"));
                assert_non_null(strstr(messages(), option_letters[i].instead));
        }
}

TEST(durations_have_units)
{
        static const struct {
                const char *text;
                int64_t ms;
        } cases[] = { { "10", 10000 },
                      { "10s", 10000 },
                      { "2m", 120000 },
                      { "500ms", 500 },
                      { "1h", 3600000 },
                      { "1d", 86400000 },
                      { "0", -2 },
                      { "never", -1 },
                      { "", -2 },
                      { "-1", -2 },
                      { "1.5s", -2 },
                      { "10 s", -2 },
                      { "5x", -2 },
                      { "99999999d", -2 },
                      { "1e3", -2 },
                      { "ms", -2 },
                      { "9999999999999999999", -2 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err = { 0 };
                int r = option_apply(&o, option_by_name("timeout"), cases[i].text, &err);

                assert_int_equal(r, cases[i].ms == -2 ? -22 : 0);
                if (!r)
                        assert_int_equal(o.timeout_ms, cases[i].ms);
                else
                        assert_non_null(strstr(err.text, "10s"));
        }
}

TEST(values_are_read_by_kind)
{
        assert_int_equal(load("-w a --ppn gpu --map node --gpu-visibility own --stdin none --label "
                              "{rank}: --export none -x A=1 -x B* --color never --progress plain "
                              "--host-key accept-new -vv -v p"),
                         0);
        assert_int_equal(o.plan.ppn, PLAN_PPN_GPU);
        assert_int_equal(o.plan.map, PLAN_MAP_NODE);
        assert_true(o.gpu_visibility_own);
        assert_int_equal(o.stdin_mode, STDIN_NONE);
        assert_int_equal(o.label, LABEL_TEMPLATE);
        assert_string_equal(o.label_template, "{rank}:");
        assert_string_equal(o.export_mode, "NONE");
        assert_int_equal(o.exports.n, 2);
        assert_string_equal(o.exports.v[1], "B*");
        assert_int_equal(o.color, NO);
        assert_int_equal(o.progress, PROGRESS_PLAIN);
        assert_true(o.accept_new);
        assert_int_equal(o.verbose, 3);
}

TEST(the_stores_endpoint_has_three_ways)
{
        static const struct {
                const char *line;
                enum store_listen endpoint;
        } cases[] = { { "-w a p", STORE_LISTEN_NETWORK },
                      { "-w a --store-listen network p", STORE_LISTEN_NETWORK },
                      { "-w a --store_listen=loopback p", STORE_LISTEN_LOOPBACK },
                      { "-w a -o net.store_listen=none p", STORE_LISTEN_NONE },
                      { "-w a --store-door none p", STORE_LISTEN_NONE },
                      { "-w a --store_door=loopback p", STORE_LISTEN_LOOPBACK },
                      { "-w a -o net.store_door=none p", STORE_LISTEN_NONE },
                      { "-w a --store-door none --store-listen loopback p",
                        STORE_LISTEN_LOOPBACK } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(load(cases[i].line), 0);
                assert_int_equal(o.store_listen, cases[i].endpoint);
        }
}

TEST(the_last_one_wins_and_o_is_equal)
{
        assert_int_equal(load("-w a -n 2 -o run.np=3 p"), 0);
        assert_int_equal(o.plan.np, 3);
        assert_int_equal(load("-w a -o run.np=3 -n 2 -o env.set.X=a=b p"), 0);
        assert_int_equal(o.plan.np, 2);
        assert_string_equal(o.exports.v[0], "X=a=b");
}

TEST(mistakes_name_the_next_step)
{
        static const struct {
                const char *line, *says;
        } cases[] = {
                { "", "no program" },
                { "prog",
                  "say where to run: --local 4 on this machine, -H FILE, or -w 'gpu[001-004]'" },
                { "--standalone --nproc_per_node=2 prog", "say where to run: --local 2 on" },
                { "-np 2 prog", "say where to run: --local 2 on this machine" },
                { "-n 3 prog", "say where to run: --local 3 on this machine" },
                { "--nnodes 2 --nproc_per_node 8 prog", "--local 4 on this machine" },
                { "--nproc_per_node gpu prog", "--local 4 on this machine" },
                { "-H", "`-H` needs a file" },
                { "--ranks", "`--ranks` needs a list of ranks" },
                { "--timeout", "`--timeout` needs a time such as 10s" },
                { "-w a --jump= p", "--jump needs a host" },
                { "plna", "unknown command `plna`; did you mean `plan`?" },
                { "confg -w a", "did you mean `config`?" },
                { "conf -w a", "did you mean `config`?" },
                { "hepl", "hnlaunch run hepl" },
                { "-w a plan", "`plan` is a command, and commands come first" },
                { "-w a run prog", "hnlaunch run OPTIONS..." },
                { "submit -w a", "no hosts given" },
                { "prog --hostfile h", "`--hostfile` after `prog` was passed to prog" },
                { "prog -w=h", "no hosts given" },
                { "-w a", "no program" },
                { "-w a --hostfiel h p", "did you mean `--hostfile`?" },
                { "-w a --num_node 3 p", "did you mean `--nodes`?" },
                { "-w a --verb p", "unknown option `--verb`" },
                { "-w", "`-w` needs a host list" },
                { "--hosts", "`--hosts` needs a host list" },
                { "-w a --quiet=1 p", "takes no value" },
                { "-N 4 p", "--ppn N (ranks per node) or --nodes N" },
                { "-N 4 p", "`-N` is ambiguous: ranks per node in mpirun, nodes in srun" },
                { "-w a -f h p", "-o ssh.fanout=N" },
                { "-i k p", "--include SPEC" },
                { "-l p", "--user NAME" },
                { "-Z p", "unknown option `-Z`" },
                { "-w a --label -H hosts.txt p",
                  "`--label` needs auto|none|TEMPLATE, but the option `-H` follows" },
                { "-w a --label -H p", "write --label=-H" },
                { "-H --np 4 p", "`-H` needs a file, but the option `--np` follows" },
                { "-w a --chdir --hosts=b p", "write --chdir=--hosts=b" },
                { "-w a --label {foo} p",
                  "--label has no field `{foo}`; fields are {host} {rank} {local_rank} "
                  "{node_rank} {num_nodes} {master_addr} {master_port} {port:NAME} {stream}" },
                { "-w a --label={rank}{Host}: p", "no field `{Host}`" },
                { "help foo", "there is no help on `foo`" },
                { "help timeot", "did you mean `timeout`?" },
                { "help exitt", "did you mean `exit`?" },
                { "help wy", "did you mean `why`?" },
                { "help HN502", "hnlaunch explain HN502 tells cause and remedy" },
                { "help 125", "hnlaunch explain 125 tells" },
                { "completion bash", "share/bash-completion/completions/hnlaunch" },
                { "--help=foo", "hnlaunch -h shows commands and topics" },
                { "--help foo", "there is no help on `foo`" },
                { "-H f -H g -H f p", "the hostfile f is given twice" },
                { "-H /etc/passwd -H /etc/./passwd p", "/etc/./passwd is given twice" },
                { "-m pkg.mod", "python -m PKG.MODULE" },
                { "--nnodes 4:1 -w a p", "--nnodes must be 1 to 65536, or MIN:MAX, got `4:1`" },
                { "--nodes 0:4 -w a p", "--nodes must be 1 to 65536, or MIN:MAX, got `0:4`" },
                { "--nodes 1: -w a p", "--nodes must be 1 to 65536, or MIN:MAX, got `1:`" },
                { "--nodes 1:2:3 -w a p", "or MIN:MAX, got `1:2:3`" },
                { "--spares 0 -w a p", "--spares must be 1 to 65535, or auto, got `0`" },
                { "--spares some -w a p", "--spares must be 1 to 65535, or auto, got `some`" },
                { "--local 2 --spares 1 p", "--local and --spares exclude each other" },
                { "--nodes 1:2 -n 4 -w a p", "-n and --nodes MIN:MAX exclude each other" },
                { "-w a --mca", "`--mca` needs a value" },
                { "-w a --standalone=1 p", "`--standalone` takes no value" },
                { "--dial-in h:1 --min-nodes 1 p", "--dial-in and --min-nodes exclude each other" },
                { "-w a,b -n 2 --min-nodes 1 p", "-n and --min-nodes exclude each other" },
                { "-w a,b --nodes 1 --min-nodes 2 p", "--min-nodes 2 is more than --nodes 1" },
                { "--local 2 -H h p", "--local and -H exclude each other" },
                { "--local 2 -w h p", "--local and -w exclude each other" },
                { "-w a --probe p", "--probe is an option of plan" },
                { "-w a -n 0 p", "-n must be 1 to 1048576, got `0`" },
                { "-w a -n 99999999999999999999 p", "-n must be 1 to" },
                { "-w a --ppn some p", "--ppn must be 1 to 65536, gpu or cpu, got `some`" },
                { "-w a --map both p", "--map must be one of slot|node, got `both`" },
                { "-w a --store-listen tcp p", "network|loopback|none" },
                { "-w a --store-peers root p", "user|node" },
                { "-w a --grace never p", "10s, 2m" },
                { "-w a -o run.drain_time=1s p",
                  "run.drain_time must be a time from 2s to 24d, such as 10s, 2m or 1h, got `1s`" },
                { "-w a --node-timeout 50ms p", "from 100ms to 24d" },
                { "-w a --preflight=2 p", "must be one of none|0|1|pairs, got `2`" },
                { "-w a --on-bad-node stop p", "--on-bad-node without --preflight" },
                { "-w a --preflight --on-bad-node drop p", "drop without --min-nodes" },
                { "-w a --timeout 0 p", "from 1ms to 3660d, such as 10s, 2m or 1h, or never" },
                { "-w a -o net.store_size=1K p", "must be a size from 1M to 1024T" },
                { "-w a --user -oProxyCommand=x p", "--user needs a name, got `-oProxyCommand=x`" },
                { "-w a --show 0,x p", "--show needs ranks such as 0,8-15" },
                { "-w a -o run.pn=3 p", "did you mean `run.np`?" },
                { "-w a -o nothing p", "SECTION.KEY=VALUE" },
                { "-w a -x =v p", "NAME=VALUE" },
                { "-w a -o out.txt p", "--log-dir DIR keeps the output in one file per rank" },
                { "-w a -it p", "unknown option `-it`" },
                { "-w a -it p", "--pty gives the terminal to rank 0" },
                { "-w a -d p", "--detach leaves the run without a terminal" },
                { "-w a -d afterok:7 p", "salloc or sbatch" },
                { "-w a --restart 5 p", "help: --max-restarts 5 starts the job again" },
                { "-w a --restart always p", "help: --max-restarts 3 starts the job again" },
                { "-w a --restart on-failure:4 p", "help: --max-restarts 4 starts" },
                { "-w a --restart some p", "hnlaunch help restart tells what it takes" },
                { "-w a --restart 5x p", "hnlaunch help restart tells what it takes" },
                { "-w a --timeout 1:00:00 p", "help: write 1h" },
                { "-w a --timeout 00:90 p", "help: write 90s" },
                { "-w a --grace 2:00 p", "help: write 2m" },
                { "-w a --timeout 0:00 p", "hnlaunch help timeout tells what it takes" },
                { "-w a --timeout 1:0x p", "hnlaunch help timeout tells what it takes" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(load(cases[i].line), -22);
                assert_int_equal(diags_first_error(&d)->exit, 64);
                if (!strstr(messages(), cases[i].says))
                        fail_msg("%s: %s", cases[i].line, messages());
        }
}

/* Names of before, which work until 1.0. */
TEST(old_names_work)
{
        assert_int_equal(load("-w a --success rank0 --from none --via srun --push . --keep "
                              "--record true"),
                         0);
        assert_int_equal(o.success, SUCCESS_RANK0);
        assert_string_equal(o.via, "srun");
        assert_true(o.keep);
        assert_true(o.record);
        setenv("HNLAUNCH_RUN_VIA", "sge", 1);
        setenv("HNLAUNCH_LOG_RECORD", "yes", 1);
        assert_int_equal(load("-w a -o run.success=rank0 true"), 0);
        assert_int_equal(o.success, SUCCESS_RANK0);
        assert_string_equal(o.via, "sge");
        assert_true(o.record);
        unsetenv("HNLAUNCH_RUN_VIA");
        unsetenv("HNLAUNCH_LOG_RECORD");
}

TEST(the_table_is_sound)
{
        for (size_t i = 0; i < option_count; i++) {
                const struct option_def *a = &option_table[i];

                assert_true(a->help && *a->help);
                /* --role is a value of commands for a run. */
                assert_true(!a->parse == (a->action != ACTION_NONE) || !strcmp(a->name, "role"));
                assert_ptr_equal(option_by_name(a->name), a);
                if (a->key)
                        assert_ptr_equal(option_by_key(a->key), a);
                for (size_t k = i + 1; k < option_count; k++)
                        assert_string_not_equal(a->name, option_table[k].name);
                /* No command has a letter twice. */
                for (enum command c = 0; a->letter && c < COMMAND_HELP; c++)
                        if (option_belongs(a, c))
                                assert_ptr_equal(option_by_letter(a->letter, c), a);
        }
        for (size_t i = 0; i < option_alias_count; i++)
                assert_string_equal(option_by_name(option_aliases[i].name)->name,
                                    option_aliases[i].means);
}

/* ---- the texts list what the table holds ---- */

/* What options_print_help() writes; malloc'ed. */
/* meson names the source folder; a test built by hand runs where it was compiled. Valid until the
 * next call. */
static const char *source_path(const char *name)
{
        const char *root = getenv("SOURCE_ROOT");
        static char path[4096];

        snprintf(path, sizeof(path), "%s/%s", root ? root : ".", name);
        return path;
}

static const char *manual_path(void)
{
        return source_path("docs/hnlaunch.1.scd");
}

TEST(every_option_is_in_help_and_manual)
{
        char *help = help_text("all"), *manual = NULL, word[80];

        assert_int_equal(fd_read_file(manual_path(), 1 << 20, &manual, NULL), 0);
        for (size_t i = 0; i < option_count; i++) {
                const struct option_def *def = &option_table[i];
                bool hidden = def->flags & OPTION_HIDDEN;
                bool of_run = option_belongs(def, COMMAND_RUN);

                snprintf(word, sizeof(word), "  -o %s=", def->key);
                if (def->flags & OPTION_KEY && !strstr(help, word))
                        fail_msg("%s in --help", word);
                snprintf(word, sizeof(word), "*-o* *%s*=", def->key);
                if (def->flags & OPTION_KEY && !strstr(manual, word))
                        fail_msg("%s in %s", word, manual_path());
                hidden |= def->flags & OPTION_KEY;
                snprintf(word, sizeof(word), "--%s%s", def->name,
                         !def->arg                      ? "\n"
                         : def->flags & OPTION_OPTIONAL ? "[="
                                                        : " ");
                if (!def->arg)
                        word[strlen(word) - 1] = '\0';
                if (!strstr(help, word) != (hidden || !of_run))
                        fail_msg("%s in --help", word);
                of_run = option_belongs(def, COMMAND_RUN) || option_belongs(def, COMMAND_PLAN);
                snprintf(word, sizeof(word), "*--%s*", def->name);
                if (of_run && !strstr(manual, word) != hidden)
                        fail_msg("%s in %s", word, manual_path());
                snprintf(word, sizeof(word), "*-%c*, *--%s*", def->letter, def->name);
                if (def->letter && of_run && !strstr(manual, word))
                        fail_msg("%s in %s", word, manual_path());
                snprintf(word, sizeof(word), "%s", def->key ? def->key : "");
                if (!hidden && !strstr(manual, word))
                        fail_msg("key %s in %s", word, manual_path());
        }
        free(help);
        free(manual);
}

/* Copies @text without the marks of scdoc. */
static char *unmarked_text(const char *text)
{
        char *copy = strdup(text), *to = copy;

        for (const char *c = text; *c; c++)
                if (*c != '*' && *c != '_')
                        *to++ = *c;
        *to = '\0';
        return copy;
}

TEST(the_manual_has_every_exit_code)
{
        char *manual = NULL, *plain, *table, row[256];
        size_t rows = 0;

        assert_int_equal(fd_read_file(manual_path(), 1 << 20, &manual, NULL), 0);
        plain = unmarked_text(manual);
        table = strstr(plain, "\n# EXIT STATUS\n");
        assert_non_null(table);
        *strstr(table + 1, "\n# ") = '\0';
        for (size_t i = 0; i < exit_id_count; i++) {
                const struct error_id *id = &exit_ids[i];

                if (id->number == EXIT_OF_RANK)
                        continue;
                snprintf(row, sizeof(row), " %d%s\n%s %s\n", id->number,
                         id->number == EXIT_SIGNAL ? "+N" : "", i ? ": " : ":<", id->meaning);
                if (!strstr(table, row))
                        fail_msg("%s: no row%s", manual_path(), row);
        }
        for (const char *c = table; (c = strstr(c, "\n| ")); c++)
                rows++;
        assert_int_equal(rows + 2, exit_id_count); /* the first row, and EXIT_OF_RANK has none */
        free(plain);
        free(manual);
}

TEST(numbers_are_in_order)
{
        for (size_t i = 1; i < error_id_count; i++)
                assert_true(error_ids[i - 1].number < error_ids[i].number);
        for (int code = 0; code <= EXIT_MAX; code++)
                assert_non_null(exit_id_find(code));
        assert_null(exit_id_find(-1));
        assert_null(exit_id_find(EXIT_MAX + 1));
        assert_int_equal(exit_id_find(137)->number, EXIT_SIGNAL);
        assert_int_equal(exit_id_find(141)->number, 141);
        assert_int_equal(exit_id_find(3)->number, EXIT_OF_RANK);
        assert_null(error_id_find(1));
}

TEST(the_manual_has_the_options_of_others)
{
        char *manual = NULL, word[80];

        assert_int_equal(fd_read_file(manual_path(), 1 << 20, &manual, NULL), 0);
        for (size_t i = 0; i < option_foreign_count; i++) {
                snprintf(word, sizeof(word), "*--%s*", option_foreigns[i].name);
                if (!strstr(manual, word) != !option_foreigns[i].accepted)
                        fail_msg("%s in %s", word, manual_path());
        }
        for (size_t i = 0; i < option_letter_count; i++) {
                snprintf(word, sizeof(word), "*-%c*", option_letters[i].letter);
                if (!strstr(manual, word))
                        fail_msg("%s in %s", word, manual_path());
        }
        free(manual);
}

/* Every option that the manual names after "*--" must exist. */
TEST(the_manual_lists_nothing_else)
{
        static const char *const pages[] = { ".1",       "-hostfile.5",    "-records.5",
                                             "-ssh.5",   "-allocations.7", "-containers.7",
                                             "-mpi.7",   "-store.7",       "-variables.7",
                                             "-config.1" };
        char *manual = NULL, name[64], page[80];

        for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
                snprintf(page, sizeof(page), "docs/hnlaunch%s.scd", pages[i]);
                assert_int_equal(fd_read_file(source_path(page), 1 << 20, &manual, NULL), 0);
                for (char *c = manual; (c = strstr(c, "*--")); c += 3) {
                        snprintf(name, sizeof(name), "%.*s",
                                 (int)strspn(c + 3, "abcdefghijklmnopqrstuvwxyz-"), c + 3);
                        if (!option_by_name(name) && !option_foreign_by_name(name))
                                fail_msg("%s has --%s", page, name);
                }
                free(manual);
        }
}

/* zsh refuses a bare bracket: every pattern that could be pasted has quotes. */
static void assert_patterns_are_quoted(const char *name, const char *text)
{
        static const char *const before[] = { "-w ",        "--hosts ", "--include ",
                                              "--exclude ", "as in ",   "as in *" };

        for (size_t i = 0; i < ARRAY_SIZE(before); i++)
                for (const char *c = text; (c = strstr(c, before[i])); c++) {
                        const char *word = c + strlen(before[i]);
                        size_t len = strcspn(word, " \n");

                        if (*word >= 'a' && *word <= 'z' && memchr(word, '[', len) &&
                            memchr(word, ']', len))
                                fail_msg("%s: %s%.*s", name, before[i], (int)len, word);
                }
}

TEST(patterns_are_quoted)
{
        static const char *const files[] = { "README.md", "docs/hnlaunch.1.scd",
                                             "docs/hnlaunch-hostfile.5.scd", "docs/tutorial.md",
                                             "examples/quickstart.sh" };
        char *text = help_text(NULL);

        assert_patterns_are_quoted("-h", text);
        free(text);
        text = help_text("all");
        assert_patterns_are_quoted("--help", text);
        free(text);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                assert_int_equal(fd_read_file(source_path(files[i]), 1 << 20, &text, NULL), 0);
                assert_patterns_are_quoted(files[i], text);
                free(text);
        }
}

/* Whether @text has @word with no letter before or behind it. */
static bool has_word(const char *text, const char *word)
{
        size_t len = strlen(word);

        for (const char *at = text; (at = strstr(at, word)); at++)
                if ((at == text || !isalpha((unsigned char)at[-1])) &&
                    !isalpha((unsigned char)at[len]))
                        return true;
        return false;
}

TEST(short_help_fits_on_a_screen_and_names_all_commands_and_real_options)
{
        char *help = help_text(NULL), name[64];
        int lines = 0;

        for (char *c = help; *c; c++)
                lines += *c == '\n';
        assert_in_range(lines, 10, 24);
        for (char *c = help; (c = strstr(c, " --")); c += 3) {
                snprintf(name, sizeof(name), "%.*s",
                         (int)strspn(c + 3, "abcdefghijklmnopqrstuvwxyz-"), c + 3);
                if (!option_by_name(name) && strcmp(name, "lr") != 0)
                        fail_msg("-h has --%s", name);
        }
        for (size_t i = 0; i < option_command_count; i++)
                if (!has_word(help, option_commands[i].name))
                        fail_msg("-h lacks the command %s", option_commands[i].name);
        free(help);
}

UNIT_MAIN(no_settings, NULL)

/* Returns whether a field has memory of its own, and fills it. */
static bool fill_field(struct options *to, const struct option_field *field)
{
        void *at = (char *)to + field->offset;

        switch (field->type) {
        case FIELD_TEXT:
                *(char **)at = xstrdup("text");
                return true;
        case FIELD_LIST:
                strv_push(at, "entry");
                return true;
        case FIELD_RANKS:
                intlist_add(at, 1);
                return true;
        case FIELD_CONTAINER:
                ((struct container_order *)at)->name = xstrdup("image");
                return true;
        default:
                return false;
        }
}

/* AddressSanitizer finds what is not freed. */
TEST(the_table_frees_each_text_and_list)
{
        static const struct options empty;
        struct options full = { 0 };
        size_t n = fill_field(&full, &option_program.field);

        for (size_t i = 0; i < option_count; i++) {
                n += fill_field(&full, &option_table[i].field);
                n += fill_field(&full, &option_table[i].second);
        }
        assert_true(n > 30);
        option_free_fields(&full);
        assert_memory_equal(&full, &empty, sizeof(full));
}
