/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "head/options/config.h"
#include "lib/files.h"
#include "lib/unit.h"
#include "option_line.h"

/* A home with a project below it; removed at the end of each test. */
static char root[64];

static void put_file(const char *name, const char *text)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        write_file(path, text);
        assert_int_equal(chmod(path, 0644), 0);
}

static void make_folder(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        assert_int_equal(mkdir(path, 0755), 0);
}

static void enter(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        assert_int_equal(chdir(path), 0);
}

static int make_home(void **state UNUSED)
{
        static char system[256], real[4096];

        strcpy(root, "/tmp/hnlaunch-config-XXXXXX");
        assert_non_null(mkdtemp(root));
        assert_non_null(realpath(root, real));
        snprintf(root, sizeof(root), "%.60s", real);
        snprintf(system, sizeof(system), "%s/system.ini", root);
        setenv("HNLAUNCH_SYSTEM_CONFIG", system, 1);
        setenv("HOME", root, 1);
        unsetenv("XDG_CONFIG_HOME");
        make_folder(".config");
        make_folder(".config/hnlaunch");
        make_folder("proj");
        make_folder("proj/deep");
        enter("proj/deep");
        return 0;
}

static int remove_home(void **state UNUSED)
{
        assert_int_equal(chdir("/"), 0);
        return remove_tree(root);
}

/* Loads options in the current folder, perhaps with another word. */
static int load_here(const char *extra)
{
        char line[96];

        snprintf(line, sizeof(line), "%s -w a p", extra ? extra : "");
        return load(line);
}

static void assert_says(const char *what)
{
        if (!strstr(messages(), what))
                fail_msg("no `%s` in:\n%s", what, messages());
}

TEST_WITH(make_home, remove_home, later_files_win)
{
        put_file("system.ini", "[run]\nnp = 1\nppn = 1\nnodes = 1\ngrace = 1s\n");
        put_file(".config/hnlaunch/config.ini", "[run]\nnp = 2\nppn = 2\nnodes = 2\n");
        put_file("proj/job.ini", "[run]\nnp = 3\nppn = 3\n");
        setenv("HNLAUNCH_RUN_NP", "4", 1);
        assert_int_equal(load_here("--job=../job.ini"), 0);
        assert_int_equal(o.plan.np, 4);
        assert_int_equal(o.plan.ppn, 3);
        assert_int_equal(o.nodes, 2);
        assert_int_equal(o.grace_ms, 1000);
        assert_int_equal(load_here("-n5"), 0);
        assert_int_equal(o.plan.np, 5);
        unsetenv("HNLAUNCH_RUN_NP");
}

TEST_WITH(make_home, remove_home, a_host_list_on_the_line_silences_the_file)
{
        put_file("proj/job.ini", "[run]\nhostfile = hosts.txt, more.txt\n");
        assert_int_equal(load_here("--job=../job.ini"), 0);
        assert_int_equal(o.hostfiles.n, 0);
        assert_int_equal(o.hostlists.n, 1);
}

TEST_WITH(make_home, remove_home, paths_start_at_the_file)
{
        char want[128];

        put_file("proj/job.ini",
                 "[run]\nhostfile = hosts.txt, ~/more.txt\nchdir = out\nstdin = in.txt\n"
                 "pull = a/b:c, d, e:/f, g:\nprogram = p\nhosts = a\n[log]\ndir = "
                 "none\n[ssh]\nconfig = /etc/x\n");
        put_file("system.ini", "[run]\nstdin = auto\n");
        assert_int_equal(load("--job ../job.ini"), 0);
        assert_int_equal(o.hostfiles.n, 2);
        assert_string_equal(o.hostfiles.v[0], "../hosts.txt");
        snprintf(want, sizeof(want), "%s/more.txt", root);
        assert_string_equal(o.hostfiles.v[1], want);
        assert_string_equal(o.chdir, "../out");
        assert_string_equal(o.stdin_file, "../in.txt");
        assert_int_equal(o.pull.n, 4);
        assert_string_equal(o.pull.v[0], "a/b:../c");
        assert_string_equal(o.pull.v[1], "d");
        assert_string_equal(o.pull.v[2], "e:/f");
        assert_string_equal(o.pull.v[3], "g:");
        assert_string_equal(o.log_dir, "none");
        assert_string_equal(o.ssh_config, "/etc/x");
        put_file("proj/job.ini", "[run]\nhosts = a\nstdin = none\nprogram = p\n");
        assert_int_equal(load("--job ../job.ini"), 0);
        assert_int_equal(o.stdin_mode, STDIN_NONE);
}

TEST_WITH(make_home, remove_home, a_job_file_names_the_program)
{
        put_file("proj/job.ini", "[run]\nhosts = a, b\nprogram = plan ; x # y = [z]\n");
        assert_int_equal(load("--job ../job.ini"), 0);
        assert_int_equal(o.command, COMMAND_RUN);
        assert_int_equal(o.argv.n, 7);
        assert_string_equal(o.argv.v[0], "plan");
        assert_string_equal(o.argv.v[1], ";");
        assert_string_equal(o.argv.v[6], "[z]");
        assert_int_equal(o.line_argv, 0);
        assert_int_equal(load("--job ../job.ini mine x"), 0);
        assert_int_equal(o.argv.n, 2);
        assert_string_equal(o.argv.v[0], "mine");
        assert_int_equal(o.line_argv, 2);
}

TEST_WITH(make_home, remove_home, a_job_file_splits_its_program_as_a_shell)
{
        static const struct {
                const char *text;
                const char *words[5];
        } cases[] = {
                { "p a  b\t c", { "p", "a", "b", "c" } },
                { "p 'a  b' \"c 'd'\"", { "p", "a  b", "c 'd'" } },
                { "p '' \"\"x''", { "p", "", "x" } },
                { "p a\\ b \\' \\\\", { "p", "a b", "'", "\\" } },
                { "p \"\\d \\\" \\\\ \\$x\" '\\d'", { "p", "\\d \" \\ $x", "\\d" } },
                { "p $HOME ~ * `x` $(y)", { "p", "$HOME", "~", "*", "`x`" } },
                { "p #a;b ;", { "p", "#a;b", ";" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[256];

                snprintf(text, sizeof(text), "[run]\nhosts = a\n program=%s\r\nnp = 1\n",
                         cases[i].text);
                put_file("proj/job.ini", text);
                if (load("--job ../job.ini") < 0)
                        fail_msg("%s: %s", cases[i].text, messages());
                for (size_t w = 0; w < 5 && cases[i].words[w]; w++)
                        if (w >= o.argv.n || strcmp(o.argv.v[w], cases[i].words[w]) != 0)
                                fail_msg("%s: word %zu is `%s`", cases[i].text, w,
                                         w < o.argv.n ? o.argv.v[w] : "missing");
        }
}

TEST_WITH(make_home, remove_home, a_job_file_has_its_own_mistakes)
{
        static const struct {
                const char *text, *says, *place;
        } cases[] = {
                { "[run]\ngarce = 3s\n", "error[HN711]: unknown key `run.garce`", ":2:1" },
                { "np = 3\n", "put it under [run]", ":1:1" },
                { "program = a ; b\n[run]\n", "put it under [run]", ":1:1" },
                { "[run]\nprogramm = a\n", "did you mean `run.program`?", ":2:1" },
                { "[run]\nnp = n\n", "error[HN712]: run.np must be", ":2:6" },
                { "[run]\n[roles a]\nnp = 1\nprogram = x\n",
                  "error[HN723]: unknown section [roles a] in a job file", ":2:2" },
                { "[run]\nnp = 1\n[]\n", "error[HN723]: unknown section []", ":3:1" },
                { "[run]\nprogram = a\nprogram = b\n", "error[HN722]: a job file has one program",
                  ":3:1" },
                { "[env]\nprogram = a\n", "error[HN711]: unknown key `env.program`", ":2:1" },
                { "[run]\nprogram =\n", "error[HN712]: run.program needs a command: it is empty",
                  ":2:1" },
                { "[run]\nprogram = a 'b\n", "error[HN712]: run.program needs a command: a ' is",
                  ":2:11" },
                { "[run]\nprogram = a \\\n", "error[HN712]: the program ends with a backslash",
                  ":2:1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char place[64];

                put_file("proj/job.ini", cases[i].text);
                snprintf(place, sizeof(place), "../job.ini%s", cases[i].place);
                assert_int_equal(load("--job ../job.ini"), -22);
                assert_says(cases[i].says);
                assert_says(place);
                assert_int_equal(diags_first_error(&d)->exit, 78);
                assert_int_equal(diags_errors(&d), 1);
        }
}

TEST_WITH(make_home, remove_home, exports_of_all_levels_add_up)
{
        put_file(".config/hnlaunch/config.ini",
                 "[env]\npass = NCCL_*, HF_HOME\nset.A = x, y ; a comment\n");
        assert_int_equal(load_here("-xB=2"), 0);
        assert_int_equal(o.exports.n, 4);
        assert_string_equal(o.exports.v[0], "NCCL_*");
        assert_string_equal(o.exports.v[1], "HF_HOME");
        assert_string_equal(o.exports.v[2], "A=x, y");
        assert_string_equal(o.exports.v[3], "B=2");
}

TEST_WITH(make_home, remove_home, a_file_of_earlier_versions_is_named_not_read)
{
        char want[128];

        put_file(".hnlaunch.ini", "[run]\nnp = 7\nprogram = evil\nno key");
        snprintf(want, sizeof(want), "warning[HN719]: %s/.hnlaunch.ini is no longer read", root);
        assert_int_equal(load_here(NULL), 0);
        assert_int_equal(o.plan.np, 0);
        assert_int_equal(d.n, 1);
        assert_says(want);
        assert_int_equal(load_here("--job=../../.hnlaunch.ini"), -22);
        assert_null(strstr(messages(), "HN719"));
        make_folder("proj/.git");
        assert_int_equal(load_here(NULL), 0);
        assert_int_equal(d.n, 0);
}

TEST_WITH(make_home, remove_home, unknown_keys_warn_or_end_it)
{
        put_file("system.ini", "[run]\n\nhostfil = x\n[rum]\nnp = 3\n");
        assert_int_equal(load_here(NULL), 0);
        assert_int_equal(diags_errors(&d), 0);
        assert_int_equal(d.n, 2);
        assert_says("system.ini:3:1");
        assert_says("did you mean `run.hostfile`?");
        assert_says("did you mean `run.np`?");
        assert_int_equal(load_here("-orun.strict_config=yes"), -22);
        assert_int_equal(diags_first_error(&d)->exit, 78);
        put_file("system.ini", "[rum]\nnp = 3\n[run]\nstrict_config = yes\n");
        assert_int_equal(load_here(NULL), -22);
        assert_int_equal(diags_first_error(&d)->exit, 78);
        setenv("HNLAUNCH_RUN_NPP", "3", 1);
        put_file("system.ini", "");
        assert_int_equal(load_here(NULL), 0);
        assert_says("unknown variable HNLAUNCH_RUN_NPP");
        unsetenv("HNLAUNCH_RUN_NPP");
}

TEST_WITH(make_home, remove_home, wrong_values_show_their_line)
{
        put_file("system.ini", "[run]\n  grace = soon\n[ssh]\nport=70000\n");
        assert_int_equal(load_here(NULL), -22);
        assert_int_equal(diags_errors(&d), 2);
        assert_int_equal(diags_first_error(&d)->exit, 78);
        assert_says("system.ini:2:11");
        assert_says("system.ini:4:6");
        assert_says("^^^^");
}

/* ---- the parser alone ---- */

static int parse(struct settings *s, const char *text, size_t len)
{
        *s = (struct settings){ 0 };
        diags_finish(&d);
        return config_parse(s, LEVEL_USER, "/x/c.ini", text, len, &d);
}

TEST(bom_crlf_and_a_missing_newline_are_fine)
{
        static const char text[] = "\xef\xbb\xbf[run]\r\nnp = 3\r\n# c\r\n   ppn=2";
        CLEANUP(settings_finish) struct settings s;

        assert_int_equal(parse(&s, text, sizeof(text) - 1), 0);
        assert_int_equal(s.n, 2);
        assert_string_equal(s.v[0].value, "3");
        assert_string_equal(s.v[1].value, "2");
        assert_string_equal(s.v[1].origin, "/x/c.ini:4");
}

TEST(long_lines_are_refused_not_cut)
{
        char text[1000] = "[run]\nchdir = ";
        CLEANUP(settings_finish) struct settings s;

        memset(text + strlen(text), 'x', 300);
        strcat(text, "\nnp = 3\n");
        assert_int_equal(parse(&s, text, strlen(text)), -22);
        assert_int_equal(s.n, 1);
        assert_string_equal(s.v[0].origin, "/x/c.ini:3");
        assert_says("/x/c.ini:2: the line is longer than");
}

TEST(a_file_that_is_no_text_is_told_once)
{
        static const char wide[] = "\xff\xfe[\0r\0u\0n\0]\0\n\0n\0p\0",
                          nuls[] = "[run]\n\0\n\0\nnp = 1\n";
        CLEANUP(settings_finish) struct settings s;

        assert_int_equal(parse(&s, wide, sizeof(wide) - 1), -22);
        assert_int_equal(diags_errors(&d), 1);
        assert_says("error[HN713]: /x/c.ini is written in UTF-16");
        settings_finish(&s);
        diags_finish(&d);
        assert_int_equal(parse(&s, nuls, sizeof(nuls) - 1), -22);
        assert_int_equal(diags_errors(&d), 1);
        assert_says("/x/c.ini:2:1");
}

TEST(only_a_job_file_names_a_program)
{
        static const char text[] = "[run]\nprogram = x\n[safe]\ndirectory = /a\n";
        CLEANUP(settings_finish) struct settings s;

        assert_int_equal(parse(&s, text, sizeof(text) - 1), -22);
        assert_int_equal(s.n, 0);
        assert_says("error[HN722]: only a job file may name the program");
        assert_says("/x/c.ini:2:1");
        assert_says("warning[HN711]: unknown key `safe.directory`");
}

TEST(broken_lines_are_all_told)
{
        static const char text[] = "[run\nnp\n[run] tail\n[run]\nnp = 1\n\0 = 2\n";
        CLEANUP(settings_finish) struct settings s;

        assert_int_equal(parse(&s, text, sizeof(text) - 1), -22);
        assert_int_equal(diags_errors(&d), 4);
        assert_says("/x/c.ini:1:1");
        assert_says("/x/c.ini:2:1");
        assert_says("/x/c.ini:3:1");
        assert_says("/x/c.ini:6:1");
        assert_int_equal(s.n, 1);
}

TEST_WITH(make_home, remove_home, the_table_tells_origins_and_hides_secrets)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len = 0;
        FILE *f = open_memstream(&text, &len);

        put_file("system.ini", "[run]\nnp = 1\n[env]\nset.MY_TOKEN = hush\n");
        assert_int_equal(load_here("-n5"), 0);
        config_print(o.settings, false, f);
        fclose(f);
        assert_non_null(strstr(text, "system.ini:2"));
        assert_non_null(strstr(text, "instead of 1,"));
        assert_non_null(strstr(text, "MY_TOKEN=***"));
        assert_null(strstr(text, "hush"));
}
