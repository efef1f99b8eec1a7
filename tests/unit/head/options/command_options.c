/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every command with every option: a command takes its own, refuses the others with the command
 * that has them, and lists its own in its help.
 */

#include <errno.h>

#include "base/fd.h"
#include "head/options/option_table.h"
#include "lib/unit.h"
#include "option_line.h"

/* Returns a line of @command with the option, by name or letter, a value that it takes, and what
 * else it needs. */
static char *line_with(enum command command, const struct option_def *def, bool by_letter)
{
        static const struct {
                const char *name, *value;
        } values[] = { { "local", NULL },       { "ppn", "1" },
                       { "iface", "lo" },       { "container", "none" },
                       { "log-dir", "none" },   { "show", "0" },
                       { "label", "none" },     { "ranks", "0" },
                       { "dial-in", "auto" },   { "set", "run.ppn=1" },
                       { "stdin", "none" },     { "export", "ALL" },
                       { "metrics", "9400" },   { "unset", "A" },
                       { "start-with", "ssh" }, { "store-size", "512M" },
                       { "since", "5m" },       { "np", "1" },
                       { "json", NULL },        { "local-rank-arg", NULL } };
        const char *value = def->arg;
        CLEANUP(free_textp) char *choice = value ? xstrndup(value, strcspn(value, "|")) : NULL;
        const char *word = command == COMMAND_SIGNAL ? " run USR1"
                           : ON_RUNS >> command & 1  ? " run"
                           : command == COMMAND_RUN  ? " -w a true"
                                                     : "";

        value = choice;
        if (choice && (!strcmp(choice, "N") || !strcmp(choice, "K") || !strcmp(choice, "PORT")))
                value = "1";
        if (choice && !strcmp(choice, "TIME"))
                value = "1";
        for (size_t i = 0; i < ARRAY_SIZE(values); i++)
                if (!strcmp(values[i].name, def->name))
                        value = values[i].value;
        if (by_letter)
                return xasprintf("%s -%c %s%s", option_commands[command].name, def->letter,
                                 value ? value : "", word);
        return xasprintf("%s --%s%s%s%s", option_commands[command].name, def->name,
                         value ? "=" : "", value ? value : "", word);
}

/* Whether the option @given of the line was refused as one of other commands. */
static bool is_refused(const char *line, const char *given)
{
        char text[80];
        bool refused;

        load(line);
        snprintf(text, sizeof(text), "%s is an option of ", given);
        refused = strstr(messages(), text);
        return refused;
}

TEST(a_command_takes_its_own_options)
{
        for (enum command c = 0; c < COMMAND_HELP; c++)
                for (size_t i = 0; i < option_count; i++) {
                        const struct option_def *def = &option_table[i];
                        CLEANUP(free_textp) char *line = line_with(c, def, false);
                        CLEANUP(free_textp) char *given = xasprintf("--%s", def->name);

                        if (is_refused(line, given) == option_belongs(def, c))
                                fail_msg("`%s` is %s", line,
                                         option_belongs(def, c) ? "refused" : "taken");
                }
}

/* A letter may be one option here and another there. Of a run, letters of other commands are
 * mistaken for those of other launchers, and told as such. */
TEST(a_command_takes_its_own_letters)
{
        for (enum command c = 0; c < COMMAND_HELP; c++)
                for (size_t i = 0; i < option_count; i++) {
                        const struct option_def *def = &option_table[i];
                        bool has = def->letter && option_by_letter(def->letter, c);

                        if (!def->letter || (!has && ON_LAUNCH >> c & 1))
                                continue;
                        CLEANUP(free_textp)
                        char *line =
                                line_with(c, has ? option_by_letter(def->letter, c) : def, true);
                        CLEANUP(free_textp) char *given = xasprintf("-%c", def->letter);

                        if (is_refused(line, given) == has)
                                fail_msg("`%s` is %s", line, has ? "refused" : "taken");
                }
}

TEST(a_refusal_names_the_commands_that_have_it)
{
        static const struct {
                const char *line, *says;
        } lines[] = {
                { "logs --ppn 3",
                  "--ppn is an option of run, plan, check, rerun, hold and config, not of logs" },
                { "logs --ppn 3", "hnlaunch logs -h lists the options of logs" },
                { "ps -H nix",
                  "-H is an option of run, plan, check, rerun, hosts, trust, hold, stage "
                  "and config, not of ps" },
                { "-w a --follow true", "--follow is an option of logs, not of run" },
                { "-w a --follow true", "hnlaunch logs --follow ..." },
                { "stop --dry-run k", "--dry-run is an option of run and plan, not of stop" },
                { "rerun --dry-run k", "--dry-run is an option of run and plan, not of rerun" },
                { "rerun --job a k",
                  "--job is an option of run, plan, check and config, not of rerun" },
                { "rerun --tail 5 k", "--tail is an option of logs, not of rerun" },
                { "report -n 5",
                  "-n is an option of run, plan, check, rerun and config, not of report" },
                { "logs -o run.ppn=3",
                  "-o run.ppn is an option of run, plan, check, rerun, hold and config" },
                { "logs --stder", "did you mean `--stderr`?" },
                { "--store-siz 2G true", "did you mean `-o net.store_size=SIZE`?" },
                { "logs --pnp", "hnlaunch logs -h lists the options of logs" },
                { "stop --mca a b k", "unknown option `--mca`" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                assert_int_equal(load(lines[i].line), -EINVAL);
                assert_int_equal(diags_first_error(&d)->exit, 64);
                if (!strstr(messages(), lines[i].says))
                        fail_msg("%s: %s", lines[i].line, messages());
        }
}

TEST(options_may_stand_behind_the_run)
{
        assert_int_equal(load("logs k3f9q -f --ranks 3 --grep a"), 0);
        assert_int_equal(o.argv.n, 1);
        assert_string_equal(o.argv.v[0], "k3f9q");
        assert_true(o.logs.follow);
        assert_int_equal(o.ranks.n, 1);
        assert_string_equal(o.logs.pattern, "a");
        /* The letter of another option elsewhere. */
        assert_int_equal(load("logs k3f9q -n5"), 0);
        assert_int_equal(o.logs.tail, 5);
        assert_int_equal(o.plan.np, 0);
        assert_int_equal(load("stop k3f9q --grace 0 -q"), 0);
        assert_int_equal(o.grace_ms, 0);
        assert_int_equal(load("logs -- -f"), 0);
        assert_false(o.logs.follow);
        assert_string_equal(o.argv.v[0], "-f");
        /* Those behind a program are its own. */
        assert_int_equal(load("plan -w a true --ppn 3"), 0);
        assert_int_equal(o.argv.n, 3);
}

/* Whether help and page of @c list the option: those that rerun passes on are options of a run. */
static bool is_own_option(const struct option_def *def, enum command c)
{
        return option_belongs(def, c) &&
               (c != COMMAND_RERUN || def->commands & ON(RERUN) || !option_is_passed_on(def));
}

TEST(each_command_has_its_help)
{
        char word[80];

        for (enum command c = 0; c < COMMAND_HELP; c++) {
                CLEANUP(free_textp) char *help = help_text(option_commands[c].name);
                CLEANUP(free_textp)
                char *usage = xasprintf("usage: hnlaunch %s", option_commands[c].name);

                if (c == COMMAND_CONFIG) /* a topic */
                        continue;
                assert_int_equal(strncmp(help, usage, strlen(usage)), 0);
                assert_non_null(strstr(help, option_commands[c].help));
                if (ON_LAUNCH >> c & 1)
                        continue;
                for (size_t i = 0; i < option_count; i++) {
                        const struct option_def *def = &option_table[i];

                        snprintf(word, sizeof(word), "%s--%s%s", def->letter ? ", " : "  ",
                                 def->name,
                                 !def->arg                      ? ""
                                 : def->flags & OPTION_OPTIONAL ? "["
                                                                : " ");
                        if (!strstr(help, word) !=
                            (!is_own_option(def, c) || def->commands == ON_ALL))
                                fail_msg("%s in the help of %s", word, option_commands[c].name);
                }
        }
}

/* Each command but run has a page. That of a command with options of its own has these and no
 * others.
 */
TEST(each_command_has_its_page)
{
        const char *root = getenv("SOURCE_ROOT");
        char word[80];

        for (enum command c = 0; c < COMMAND_HELP; c++) {
                CLEANUP(free_textp) char *text = NULL;
                CLEANUP(free_textp)
                char *path = xasprintf("%s/docs/hnlaunch-%s.1.scd", root ? root : ".",
                                       option_commands[c].name);

                if (c == COMMAND_RUN)
                        continue;
                assert_int_equal(fd_read_file(path, 1 << 20, &text, NULL), 0);
                if (!strstr(text, option_commands[c].help))
                        fail_msg("the first line of %s", path);
                for (size_t i = 0; i < option_count; i++) {
                        const struct option_def *def = &option_table[i];
                        bool listed;

                        if (def->commands == ON_ALL ||
                            (ON_LAUNCH >> c & 1 && option_belongs(def, COMMAND_RUN)))
                                continue; /* those of a run are in its page */
                        snprintf(word, sizeof(word), "\n*--%s*", def->name);
                        listed = strstr(text, word);
                        snprintf(word, sizeof(word), "*, *--%s*", def->name);
                        listed |= strstr(text, word) != NULL;
                        if (listed != is_own_option(def, c))
                                fail_msg("--%s in %s", def->name, path);
                }
        }
}

TEST(help_finds_what_is_asked)
{
        static const struct {
                const char *line, *topic, *says;
        } lines[] = {
                { "logs -h", "logs", "usage: hnlaunch logs [OPTION...] [RUN]" },
                { "logs --help", "logs", "-f, --follow" },
                { "logs k3f9q --help", "logs", "-f, --follow" },
                { "help stop", "stop", "--grace TIME" },
                { "help --ppn", "--ppn", "HNLAUNCH_RUN_PPN" },
                { "help -f", "-f", "commands: logs" },
                { "help export", "export", "key:      env.export" },
                { "help net.store_size", "net.store_size", "  -o net.store_size=SIZE" },
                { "help --store-size", "--store-size", "  -o net.store_size=SIZE" },
                { "plan -h", "plan", "--probe" },
                { "help config", "config", "/etc/hnlaunch/config.ini" },
                { "run -h", NULL, "hnlaunch --local 4" },
                { "help", NULL, "hnlaunch --local 4" },
                { "--help", "all", "--hostfile FILE" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                CLEANUP(free_textp) char *help = NULL;

                assert_int_equal(load(lines[i].line), 0);
                assert_int_equal(o.command, COMMAND_HELP);
                if (lines[i].topic)
                        assert_string_equal(o.help_topic, lines[i].topic);
                else
                        assert_null(o.help_topic);
                help = help_text(o.help_topic);
                if (!strstr(help, lines[i].says))
                        fail_msg("%s: %s", lines[i].line, help);
        }
}

TEST(commands_of_other_tools_lead_here)
{
        static const char *const words[][2] = {
                { "kill", "stop" },        { "cancel", "stop" },  { "status", "ps" },
                { "list", "ps" },          { "tail", "logs -f" }, { "rm", "stop" },
                { "man", "help" },         { "docs", "help" },    { "nodes", "plan --probe" },
                { "info", "plan --probe" }
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                CLEANUP(free_textp) char *line = xasprintf("%s k3f9q", words[i][0]);
                CLEANUP(free_textp)
                char *says = xasprintf("unknown command `%s`; it is `hnlaunch %s`", words[i][0],
                                       words[i][1]);
                CLEANUP(free_textp) char *behind = xasprintf("-w a %s k3f9q", words[i][0]);
                CLEANUP(free_textp) char *run = xasprintf("run -w a %s k3f9q", words[i][0]);

                assert_int_equal(load(line), -EINVAL);
                assert_non_null(strstr(messages(), says));
                /* A program has the name. */
                assert_int_equal(load(behind), 0);
                assert_int_equal(load(run), 0);
        }
}

UNIT_MAIN(no_settings, NULL)
