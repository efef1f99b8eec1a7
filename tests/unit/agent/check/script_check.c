/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/script_check.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/contain/pidns.h"
#include "agent/core/proc.h"
#include "base/clock.h"
#include "base/memory.h"
#include "lib/unit.h"

static const char *run(const char *command)
{
        static char value[CHECK_VALUE];
        struct check_order o = { .run = (char *)command, .run_cwd = (char[]){ "/" } };
        struct checked m = { 0 };

        script_check(&m, &o);
        assert_int_equal(m.n_facts, *command ? 1 : 0);
        memcpy(value, m.n_facts ? m.facts[0].value : "", m.n_facts ? sizeof(value) : 1);
        checked_finish(&m);
        return value;
}

TEST(a_command_is_told_by_its_end_and_last_line)
{
        assert_string_equal(run("true"), "exit 0");
        assert_string_equal(run("echo fine; exit 0"), "exit 0");
        assert_string_equal(run("exit 3"), "exit 3");
        assert_string_equal(run("echo one; echo 'two 2' >&2; exit 3"), "exit 3: two 2");
        assert_string_equal(run("printf 'no newline'; exit 1"), "exit 1: no newline");
        assert_string_equal(run("echo a; echo; exit 1"), "exit 1: a");
        assert_string_equal(run("printf '\\033[31mred\\n'; exit 1"), "exit 1: [31mred");
        assert_string_equal(run("echo bye; kill -9 $$"), "signal 9: bye");
        assert_string_equal(run("no-such-command-hn 2>/dev/null"), "exit 127");
        assert_string_equal(run(""), "");
}

TEST(much_output_is_read_and_cut)
{
        struct script_end end;

        assert_true(script_run(&end, "seq 300000; exit 4", "/", 30000));
        assert_int_equal(WEXITSTATUS(end.status), 4);
        assert_string_equal(end.first, "1");
        assert_string_equal(end.last, "300000");
        assert_true(script_run(&end, "printf '%0999d\\n' 7", "/", 30000));
        assert_int_equal(strlen(end.last), sizeof(end.last) - 1);
}

/* Waits until the process in the file is gone. */
static bool has_ended(const char *path)
{
        char text[32] = "";
        FILE *f = fopen(path, "r");
        pid_t pid;

        assert_non_null(f);
        assert_non_null(fgets(text, sizeof(text), f));
        fclose(f);
        pid = (pid_t)atoi(text);
        assert_true(pid > 1);
        return kill(pid, 0) < 0;
}

TEST(nothing_that_a_command_has_started_stays)
{
        char path[] = "/tmp/hntest-script.XXXXXX";
        CLEANUP(free_textp) char *command = NULL;
        int fd = mkstemp(path);
        int64_t begun = clock_ns();
        struct script_end end;

        assert_true(fd >= 0);
        close(fd);
        command = xasprintf("(setsid sh -c 'echo $$ >%s; exec sleep 1000' &) ; "
                            "until [ -s %s ]; do sleep 0.01; done; exit 5",
                            path, path);
        assert_true(script_run(&end, command, "/", 30000));
        assert_false(end.late);
        assert_int_equal(WEXITSTATUS(end.status), 5);
        assert_true(has_ended(path));
        free(command);
        command = xasprintf("echo $$ >%s; echo begun; sleep 1000", path);
        assert_true(script_run(&end, command, "/", 300));
        assert_true(end.late);
        assert_string_equal(end.last, "begun");
        assert_true(has_ended(path));
        assert_true(clock_ns() - begun < (int64_t)20 * 1000000000);
        unlink(path);
}

enum { NO_NAMESPACE = 77 };

/* As an agent: the child that runs the command is born in a process namespace. */
static _Noreturn void run_in_namespace(void)
{
        struct pidns p = { 0 };
        struct error err;
        struct script_end end;
        int status;
        pid_t pid;

        if (pidns_enter(&p, &err) < 0)
                _exit(NO_NAMESPACE);
        pid = fork();
        if (!pid)
                _exit(!script_run(&end, "sleep 1000 & echo up", "/", 30000) || proc_any_child());
        if (waitpid(pid, &status, 0) != pid)
                _exit(1);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

TEST(nothing_stays_in_a_process_namespace)
{
        int status;
        pid_t pid = fork();

        if (!pid)
                run_in_namespace();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_NAMESPACE)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(a_folder_that_is_not_there_is_replaced)
{
        struct script_end end;

        assert_true(script_run(&end, "pwd", "/usr", 30000));
        assert_string_equal(end.last, "/usr");
        assert_true(script_run(&end, "pwd", "/no/such/folder", 30000));
        assert_string_equal(end.last, "/");
}

TEST(the_nodes_own_name_has_an_address_or_none)
{
        CLEANUP(checked_finish) struct checked m = { 0 };

        hostname_check(&m);
        assert_int_equal(m.n_facts, 1);
        assert_string_equal(m.facts[0].name, "hostname");
        assert_true(!strcmp(m.facts[0].value, "a network address") ||
                    !strcmp(m.facts[0].value, "none") || !strcmp(m.facts[0].value, "::1") ||
                    !strncmp(m.facts[0].value, "127.", 4) || *m.facts[0].problem);
}

TEST(names_of_other_nodes_have_addresses_or_none)
{
        struct check_name names[] = { { "name.4", (char[]){ "localhost" } },
                                      { "name.5", (char[]){ "no-such-node.invalid" } },
                                      { "name.6", (char[]){ "a;exit" } },
                                      { "name.7", (char[]){ "localhost" } } };
        struct check_order o = { .names = { names, 4 } };
        CLEANUP(checked_finish) struct checked m = { 0 };

        checked_add(&m, "hostname", "none", "");
        names_check(&m, &o);
        assert_int_equal(m.n_facts, 5);
        for (int i = 1; i < 5; i++)
                assert_string_equal(m.facts[i].name, names[i - 1].fact);
        assert_string_equal(m.facts[3].value, "");
        assert_string_equal(m.facts[3].problem, "the name has characters that are not looked up");
        if (!strcmp(m.facts[1].problem, "getent(1) cannot be used"))
                skip();
        assert_non_null(strstr(m.facts[1].value, "1"));
        assert_null(strstr(m.facts[1].value, "STREAM"));
        /* Of each address getent(1) prints a line for each kind of socket. */
        assert_true(!strchr(m.facts[1].value, ' ') || !strcmp(m.facts[1].value, "::1 127.0.0.1") ||
                    !strcmp(m.facts[1].value, "127.0.0.1 ::1"));
        assert_string_equal(m.facts[4].value, m.facts[1].value);
        /* Without a network the name server may not answer in time. */
        if (!*m.facts[2].problem)
                assert_string_equal(m.facts[2].value, "none");
}

TEST(without_a_usable_getent_names_are_not_known)
{
        struct check_name names[] = { { "name.4", (char[]){ "localhost" } } };
        struct check_order o = { .names = { names, 1 } };
        CLEANUP(checked_finish) struct checked m = { 0 };
        CLEANUP(free_textp) char *path = xstrdup(getenv("PATH"));

        setenv("PATH", "/no/such/folder", 1);
        names_check(&m, &o);
        setenv("PATH", path, 1);
        assert_int_equal(m.n_facts, 1);
        assert_string_equal(m.facts[0].value, "");
        assert_string_equal(m.facts[0].problem, "getent(1) cannot be used");
}
