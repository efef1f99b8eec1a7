/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "head/hosts/hostfile.h"
#include "head/options/config.h"

/* A home with a project below it; removed at the end of each test. */
static char root[64];

static void write_file(const char *name, const char *text)
{
        char path[256];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", root, name);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
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
        char command[128];

        assert_int_equal(chdir("/"), 0);
        snprintf(command, sizeof(command), "rm -rf '%s'", root);
        return system(command);
}

/* The text of all messages; valid until the next call. */
static const char *messages(const struct diags *d)
{
        static char text[8192];
        FILE *f = fmemopen(text, sizeof(text), "w");

        *text = '\0'; /* nothing may be written at all */
        diags_print(d, f, false);
        fclose(f);
        return text;
}

/* Loads options in the current folder; @line as in test_options.c. */
static int load(struct options *o, struct diags *d, const char *extra)
{
        char a0[] = "hnlaunch", w[] = "-w", host[] = "a", prog[] = "p", x[64];
        char *argv[] = { a0, extra ? x : w, extra ? w : host, extra ? host : prog, prog, NULL };

        snprintf(x, sizeof(x), "%s", extra ? extra : "");
        *d = (struct diags)DIAGS_INIT;
        return options_load(o, extra ? 5 : 4, argv, d);
}

static void unload(struct options *o, struct diags *d)
{
        options_finish(o);
        diags_finish(d);
}

static void assert_says(const struct diags *d, const char *what)
{
        if (!strstr(messages(d), what))
                fail_msg("no `%s` in:\n%s", what, messages(d));
}

static void test_later_files_win(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file("system.ini", "[run]\nnp = 1\nppn = 1\nnodes = 1\ngrace = 1s\n");
        write_file(".config/hnlaunch/config.ini", "[run]\nnp = 2\nppn = 2\nnodes = 2\n");
        write_file("proj/.hnlaunch.ini", "[run]\nnp = 3\nppn = 3\n");
        setenv("HNLAUNCH_RUN_NP", "4", 1);
        assert_int_equal(load(&o, &d, NULL), 0);
        assert_int_equal(o.plan.np, 4);
        assert_int_equal(o.plan.ppn, 3);
        assert_int_equal(o.nodes, 2);
        assert_int_equal(o.grace_ms, 1000);
        unload(&o, &d);
        assert_int_equal(load(&o, &d, "-n5"), 0);
        assert_int_equal(o.plan.np, 5);
        unload(&o, &d);
        unsetenv("HNLAUNCH_RUN_NP");
}

static void test_a_host_list_on_the_line_silences_the_file(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file("proj/.hnlaunch.ini", "[run]\nhostfile = hosts.txt, more.txt\n");
        assert_int_equal(load(&o, &d, NULL), 0);
        assert_int_equal(o.hostfiles.n, 0);
        assert_int_equal(o.hostlists.n, 1);
        unload(&o, &d);
}

static void test_paths_start_at_the_file(void **state UNUSED)
{
        struct options o;
        struct diags d;
        char *argv[] = { (char[]){ "hnlaunch" }, (char[]){ "p" } }, want[128];

        write_file("proj/.hnlaunch.ini", "[run]\nhostfile = hosts.txt, ~/more.txt\n");
        d = (struct diags)DIAGS_INIT;
        assert_int_equal(options_load(&o, 2, argv, &d), 0);
        assert_int_equal(o.hostfiles.n, 2);
        snprintf(want, sizeof(want), "%s/proj/hosts.txt", root);
        assert_string_equal(o.hostfiles.v[0], want);
        snprintf(want, sizeof(want), "%s/more.txt", root);
        assert_string_equal(o.hostfiles.v[1], want);
        unload(&o, &d);
}

static void test_exports_of_all_levels_add_up(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file(".config/hnlaunch/config.ini",
                   "[env]\npass = NCCL_*, HF_HOME\nset.A = x, y ; a comment\n");
        assert_int_equal(load(&o, &d, "-xB=2"), 0);
        assert_int_equal(o.exports.n, 4);
        assert_string_equal(o.exports.v[0], "NCCL_*");
        assert_string_equal(o.exports.v[1], "HF_HOME");
        assert_string_equal(o.exports.v[2], "A=x, y");
        assert_string_equal(o.exports.v[3], "B=2");
        unload(&o, &d);
}

static void test_a_project_may_not_change_trust(void **state UNUSED)
{
        static const char *const bad[] = {
                "[ssh]\nhost_key = accept-new\n",
                "[ssh]\nhost-key = accept-new\n",
                "[ssh]\ncommand = sh -c evil\n",
                "[ssh]\nuser = root\n",
                "[ssh]\njump = evil\n",
                "[ssh]\ntree_auth = forward\n",
                "[ssh]\nconfig = evil.cfg\n",
                "[ssh]\nidentity = key\n",
                "[run]\nagent = ./evil\n",
                "[env]\nfile = .env\n",
                "[env]\nset.LD_PRELOAD = ./evil.so\n",
                "[env]\nset.PATH = .\n",
                "[safe]\ndirectory = *\n",
                "[log]\ndir = /etc\n",
                "[log]\ndir = runs/../../x\n",
                "[log]\ndir = ~/.ssh\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct options o;
                struct diags d;

                write_file("proj/.hnlaunch.ini", bad[i]);
                if (load(&o, &d, NULL) == 0)
                        fail_msg("allowed: %s", bad[i]);
                assert_int_equal(diags_first_error(&d)->exit, 78);
                assert_says(&d, "a project file may not set");
                assert_says(&d, "proj/.hnlaunch.ini:2:");
                unload(&o, &d);
        }
}

/* "run.ppn" = "8" in the project's file; false = it was refused as untrusted, at its line. */
static bool project_may(const char *key, const char *value)
{
        const char *dot = strchr(key, '.');
        char text[512];
        struct options o;
        struct diags d;
        bool refused;

        snprintf(text, sizeof(text), "[%.*s]\n%s = %s\n", (int)(dot - key), key, dot + 1, value);
        write_file("proj/.hnlaunch.ini", text);
        load(&o, &d, NULL);
        refused = strstr(messages(&d), "error[HN714]: a project file may not set");
        if (refused) {
                assert_int_equal(diags_first_error(&d)->exit, 78);
                assert_says(&d, key);
                assert_says(&d, "proj/.hnlaunch.ini:2:1");
                assert_says(&d, "directory = ");
                for (size_t i = 0; i < o.settings->n; i++)
                        assert_int_not_equal(o.settings->v[i].level, LEVEL_PROJECT);
        }
        unload(&o, &d);
        return !refused;
}

static void test_a_project_file_keeps_to_the_table(void **state UNUSED)
{
        static const char *const values[] = { "1", "yes", "auto", "none", "x" };

        for (size_t i = 0; i < option_count; i++) {
                const struct option_def *def = &option_table[i];

                for (size_t v = 0; def->key && v < ARRAY_SIZE(values); v++)
                        if (project_may(def->key, values[v]) == (def->project == PROJECT_REFUSED))
                                fail_msg("%s = %s", def->key, values[v]);
                if (def->key && project_may(def->key, "a\033]0;x\007"))
                        fail_msg("%s takes control bytes", def->key);
                if (def->key && project_may(def->key, "a\xe2\x80\xae"))
                        fail_msg("%s turns text around", def->key);
        }
}

static void test_a_project_file_keeps_to_the_rules(void **state UNUSED)
{
        static const struct {
                enum project_rule rule;
                const char *key, *good, *bad;
        } cases[] = {
                { PROJECT_NAMES, "env.pass", "HF_HOME, WANDB_*", "PATH=/evil" },
                { PROJECT_NAMES, "env.pass", "A,\tB", "A, LD_PRELOAD=./evil.so" },
                { PROJECT_NAMES, "env.pass", "A*", "*" },
                { PROJECT_NAMES, "env.pass", "A?", "B, [A-Z]*" },
                { PROJECT_NAMES, "env.export", "NONE", "ALL" },
                { PROJECT_NAMES, "env.export", "HF_HOME,WANDB_*", "all" },
                { PROJECT_NAMES, "env.export", "A", "A,?*" },
                { PROJECT_HOSTS, "run.hosts", "n[1-4]:8, [2001:db8::7]", "n1, mallory@n2" },
                { PROJECT_HOSTFILES, "run.hostfile", "hosts.txt, ~/more.txt", NULL },
                { PROJECT_BELOW, "log.dir", "runs", "/etc" },
                { PROJECT_BELOW, "log.dir", "a/b..c", "a/../../b" },
                { PROJECT_BELOW, "log.dir", "a/./b", "~/.ssh" },
                { PROJECT_BELOW, "log.dir", "inside/new", "outside/new" },
                { PROJECT_BELOW, "log.dir", "inside", "outside" },
        };
        bool seen[PROJECT_RULES] = {
                [PROJECT_UNDECIDED] = true, [PROJECT_REFUSED] = true, [PROJECT_FREE] = true
        };

        assert_int_equal(symlink("/tmp", "../outside"), 0);
        assert_int_equal(symlink("deep", "../inside"), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(option_by_key(cases[i].key)->project, cases[i].rule);
                seen[cases[i].rule] = true;
                if (!project_may(cases[i].key, cases[i].good))
                        fail_msg("refused: %s = %s", cases[i].key, cases[i].good);
                if (cases[i].bad && project_may(cases[i].key, cases[i].bad))
                        fail_msg("allowed: %s = %s", cases[i].key, cases[i].bad);
        }
        for (int rule = 0; rule < PROJECT_RULES; rule++)
                assert_true(seen[rule]);
}

/* Loads a project's hostfile as a launch does. 0, or -EINVAL with messages. */
static int check_hostfile(const char *text, struct diags *d)
{
        char *argv[] = { (char[]){ "hnlaunch" }, (char[]){ "p" } };
        struct hosts hosts = HOSTS_INIT;
        struct options o;
        int r;

        *d = (struct diags)DIAGS_INIT;
        write_file("proj/hosts.txt", text);
        write_file("proj/.hnlaunch.ini", "[run]\nhostfile = hosts.txt\n");
        assert_int_equal(options_load(&o, 2, argv, d), 0);
        assert_int_equal(hostfile_load(&hosts, o.hostfiles.v[0], d), 0);
        r = config_check_hosts(o.settings, &hosts, d);
        hosts_finish(&hosts);
        options_finish(&o);
        return r;
}

static void test_a_projects_hostfile_chooses_no_logins(void **state UNUSED)
{
        static const char *const good[] = { "n1\nn2 slots=2 gpus=0,1\nlocalhost\nn[3-5]:8 tags=x\n",
                                            "n1 iface=ib0 numa=0 spare\n" },
                                 *const bad[] = { "n1\nmallory@n2\n", "n1\nn2 user=mallory\n",
                                                  "n1\nn[2-3] slots=1 port=2222\n",
                                                  "n1\nn2 addr=192.0.2.1\n" };
        struct diags d;

        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(check_hostfile(good[i], &d), 0);
                diags_finish(&d);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(check_hostfile(bad[i], &d), -22);
                assert_int_equal(diags_first_error(&d)->exit, 78);
                assert_says(&d, "error[HN714]: a hostfile named by a project file may not set");
                assert_says(&d, "proj/hosts.txt:2:1");
                assert_says(&d, "proj/.hnlaunch.ini:2 names it");
                diags_finish(&d);
        }
        write_file(".config/hnlaunch/config.ini", "[safe]\ndirectory = ~/proj\n");
        assert_int_equal(check_hostfile(bad[0], &d), 0);
        diags_finish(&d);
}

static void test_a_project_may_set_what_is_harmless(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file("proj/.hnlaunch.ini", "[run]\nppn = 8\n[env]\nset.NCCL_DEBUG = WARN\n"
                                         "[log]\ndir = runs\n");
        assert_int_equal(load(&o, &d, NULL), 0);
        assert_string_equal(o.exports.v[0], "NCCL_DEBUG=WARN");
        assert_non_null(strstr(o.log_dir, "/proj/runs"));
        unload(&o, &d);
}

static void test_a_safe_directory_may_set_everything(void **state UNUSED)
{
        static const char *const lines[] = { "~/proj", "~/proj/", "~/*" };

        write_file("proj/.hnlaunch.ini", "[ssh]\nuser = alice\n");
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct options o;
                struct diags d;
                char text[128];

                snprintf(text, sizeof(text), "[safe]\ndirectory = %s\n", lines[i]);
                write_file(".config/hnlaunch/config.ini", text);
                assert_int_equal(load(&o, &d, NULL), 0);
                assert_string_equal(o.user, "alice");
                unload(&o, &d);
        }
}

static void test_a_project_file_that_others_can_write_is_refused(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file("proj/.hnlaunch.ini", "[run]\nppn = 8\n");
        assert_int_equal(chmod("../.hnlaunch.ini", 0664), 0);
        assert_int_equal(load(&o, &d, NULL), -22);
        assert_int_equal(diags_first_error(&d)->exit, 78);
        assert_says(&d, "chmod go-w");
        unload(&o, &d);
}

static void test_somebody_elses_project_file_is_refused(void **state UNUSED)
{
        struct options o;
        struct diags d;

        if (geteuid() != 0)
                skip(); /* only root can give files away */
        write_file("proj/.hnlaunch.ini", "[run]\nppn = 8\n");
        assert_int_equal(chown("../.hnlaunch.ini", 4242, 4242), 0);
        assert_int_equal(load(&o, &d, NULL), -22);
        assert_says(&d, "belongs to user 4242");
        unload(&o, &d);
}

static void test_the_search_stops_at_a_repository(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file(".hnlaunch.ini", "[run]\nnp = 7\n");
        assert_int_equal(load(&o, &d, NULL), 0);
        assert_int_equal(o.plan.np, 7);
        unload(&o, &d);
        make_folder("proj/.git");
        assert_int_equal(load(&o, &d, NULL), 0);
        assert_int_equal(o.plan.np, 0);
        unload(&o, &d);
}

static void test_unknown_keys_warn_or_end_it(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file("system.ini", "[run]\n\nhostfil = x\n[rum]\nnp = 3\n");
        assert_int_equal(load(&o, &d, NULL), 0);
        assert_int_equal(diags_errors(&d), 0);
        assert_int_equal(d.n, 2);
        assert_says(&d, "system.ini:3:1");
        assert_says(&d, "did you mean `run.hostfile`?");
        assert_says(&d, "did you mean `run.np`?");
        unload(&o, &d);
        assert_int_equal(load(&o, &d, "--strict-config"), -22);
        assert_int_equal(diags_first_error(&d)->exit, 78);
        unload(&o, &d);
        setenv("HNLAUNCH_RUN_NPP", "3", 1);
        write_file("system.ini", "");
        assert_int_equal(load(&o, &d, NULL), 0);
        assert_says(&d, "unknown variable HNLAUNCH_RUN_NPP");
        unload(&o, &d);
        unsetenv("HNLAUNCH_RUN_NPP");
}

static void test_wrong_values_show_their_line(void **state UNUSED)
{
        struct options o;
        struct diags d;

        write_file("system.ini", "[run]\n  grace = soon\n[ssh]\nport=70000\n");
        assert_int_equal(load(&o, &d, NULL), -22);
        assert_int_equal(diags_errors(&d), 2);
        assert_int_equal(diags_first_error(&d)->exit, 78);
        assert_says(&d, "system.ini:2:11");
        assert_says(&d, "system.ini:4:6");
        assert_says(&d, "^^^^");
        unload(&o, &d);
}

/* ---- the parser alone ---- */

static int parse(struct settings *s, struct diags *d, const char *text, size_t len)
{
        *s = (struct settings){ 0 };
        *d = (struct diags)DIAGS_INIT;
        return config_parse(s, LEVEL_USER, "/x/c.ini", text, len, false, true, d);
}

static void test_bom_crlf_and_a_missing_newline_are_fine(void **state UNUSED)
{
        static const char text[] = "\xef\xbb\xbf[run]\r\nnp = 3\r\n# c\r\n   ppn=2";
        struct settings s;
        struct diags d;

        assert_int_equal(parse(&s, &d, text, sizeof(text) - 1), 0);
        assert_int_equal(s.n, 2);
        assert_string_equal(s.v[0].value, "3");
        assert_string_equal(s.v[1].value, "2");
        assert_string_equal(s.v[1].origin, "/x/c.ini:4");
        settings_finish(&s);
        diags_finish(&d);
}

static void test_long_lines_are_refused_not_cut(void **state UNUSED)
{
        char text[1000] = "[run]\nchdir = ";
        struct settings s;
        struct diags d;

        memset(text + strlen(text), 'x', 300);
        strcat(text, "\nnp = 3\n");
        assert_int_equal(parse(&s, &d, text, strlen(text)), -22);
        assert_int_equal(s.n, 1);
        assert_string_equal(s.v[0].origin, "/x/c.ini:3");
        assert_says(&d, "/x/c.ini:2: the line is longer than");
        settings_finish(&s);
        diags_finish(&d);
}

static void test_broken_lines_are_all_told(void **state UNUSED)
{
        static const char text[] = "[run\nnp\n[run] tail\n[run]\nnp = 1\n\0 = 2\n";
        struct settings s;
        struct diags d;

        assert_int_equal(parse(&s, &d, text, sizeof(text) - 1), -22);
        assert_int_equal(diags_errors(&d), 4);
        assert_says(&d, "/x/c.ini:1:1");
        assert_says(&d, "/x/c.ini:2:1");
        assert_says(&d, "/x/c.ini:3:1");
        assert_says(&d, "/x/c.ini:6:1");
        assert_int_equal(s.n, 1);
        settings_finish(&s);
        diags_finish(&d);
}

static void test_the_table_tells_origins_and_hides_secrets(void **state UNUSED)
{
        struct options o;
        struct diags d;
        char *text = NULL;
        size_t len = 0;
        FILE *f = open_memstream(&text, &len);

        write_file("system.ini", "[run]\nnp = 1\n[env]\nset.MY_TOKEN = hush\n");
        assert_int_equal(load(&o, &d, "-n5"), 0);
        config_print(o.settings, false, f);
        fclose(f);
        assert_non_null(strstr(text, "system.ini:2"));
        assert_non_null(strstr(text, "instead of 1,"));
        assert_non_null(strstr(text, "MY_TOKEN=***"));
        assert_null(strstr(text, "hush"));
        free(text);
        unload(&o, &d);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_home, remove_home)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_later_files_win),
                TEST(test_a_host_list_on_the_line_silences_the_file),
                TEST(test_paths_start_at_the_file),
                TEST(test_exports_of_all_levels_add_up),
                TEST(test_a_project_may_not_change_trust),
                TEST(test_a_project_file_keeps_to_the_table),
                TEST(test_a_project_file_keeps_to_the_rules),
                TEST(test_a_projects_hostfile_chooses_no_logins),
                TEST(test_a_project_may_set_what_is_harmless),
                TEST(test_a_safe_directory_may_set_everything),
                TEST(test_a_project_file_that_others_can_write_is_refused),
                TEST(test_somebody_elses_project_file_is_refused),
                TEST(test_the_search_stops_at_a_repository),
                TEST(test_unknown_keys_warn_or_end_it),
                TEST(test_wrong_values_show_their_line),
                cmocka_unit_test(test_bom_crlf_and_a_missing_newline_are_fine),
                cmocka_unit_test(test_long_lines_are_refused_not_cut),
                cmocka_unit_test(test_broken_lines_are_all_told),
                TEST(test_the_table_tells_origins_and_hides_secrets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
