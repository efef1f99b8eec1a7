/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/rank/torch_version.h"
#include "lib/files.h"
#include "lib/unit.h"

static void put_file(const char *path, const char *text)
{
        make_folders_of(path);
        write_file(path, text);
        chmod(path, 0755);
}

/* An installation in base/, whose python3 leads to python3.11; venv/ and open/ are environments of
 * it, open/ with its packages. */
static int set_up(void **state)
{
        assert_int_equal(make_scratch(state), 0);
        assert_int_equal(chdir(scratch), 0);
        put_file("base/bin/python3.11", "");
        put_file("base/lib/python3.11/site-packages/torch/version.py",
                 "from typing import Optional\n\n__all__ = ['__version__', 'debug']\n"
                 "__version__ = '2.6.0+cu124'\ndebug = False\n");
        put_file("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
        put_file("venv/lib/python3.11/site-packages/torch/version.py",
                 "__version__ = '2.15.0+cu132'\n");
        put_file("open/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\n");
        put_file("alone/pyvenv.cfg", "home = /usr/bin\n");
        put_file("home/.local/lib/python3.11/site-packages/torch/version.py",
                 "__version__ = '2.2.2'\n");
        put_file("path/torch/version.py", "__version__ = '1.13.0a0'\n");
        assert_int_equal(symlink("python3.11", "base/bin/python3"), 0);
        for (const char *const *venv = (const char *const[]){ "venv", "open", "alone", NULL };
             *venv; venv++) {
                char name[64];

                snprintf(name, sizeof(name), "%s/bin", *venv);
                mkdir(name, 0755);
                snprintf(name, sizeof(name), "%s/bin/python3", *venv);
                assert_int_equal(symlink("../../base/bin/python3", name), 0);
        }
        return 0;
}

static int tear_down(void **state)
{
        assert_int_equal(chdir("/"), 0);
        return remove_scratch(state);
}

static unsigned find(const char *program, const char *const *env)
{
        return torch_version_find((char *const[]){ (char *)program, NULL }, (char *const *)env,
                                  scratch);
}

#define ENV(...)                                                                                   \
        (const char *const[])                                                                      \
        {                                                                                          \
                __VA_ARGS__, NULL                                                                  \
        }

TEST(the_interpreter_is_the_program)
{
        char absolute[PATH_MAX];

        snprintf(absolute, sizeof(absolute), "%s/venv/bin/python3", scratch);
        assert_int_equal(find(absolute, ENV("PATH=/bin")), 215);
        assert_int_equal(find("venv/bin/python3", ENV("PATH=/bin")), 215);
        assert_int_equal(find("base/bin/python3", ENV("PATH=/bin")), 206);
        assert_int_equal(find("python3", ENV("PATH=nowhere:venv/bin:base/bin")), 215);
        assert_int_equal(find("python3.11", ENV("PATH=venv/bin:base/bin")), 206);
        assert_int_equal(find("python3", ENV("PATH=nowhere")), 0);
        assert_int_equal(find("python3", ENV("HOME=/")), 0);
        assert_int_equal(find("no/such/python3", ENV("PATH=venv/bin")), 0);
}

TEST(folders_are_tried_in_pythons_order)
{
        assert_int_equal(find("open/bin/python3", ENV("PATH=/bin")), 206);
        assert_int_equal(find("alone/bin/python3", ENV("PATH=/bin")), 0);
        assert_int_equal(find("base/bin/python3", ENV("HOME=home")), 202);
        assert_int_equal(find("base/bin/python3", ENV("HOME=home", "PYTHONNOUSERSITE=1")), 206);
        assert_int_equal(find("venv/bin/python3", ENV("HOME=home")), 215);
        assert_int_equal(find("venv/bin/python3", ENV("PYTHONPATH=:nowhere:path")), 113);
}

TEST(ranks_read_what_the_first_found)
{
        char *const argv[] = { (char *)"venv/bin/python3", NULL };
        char *const elsewhere[] = { (char *)"base/bin/python3", NULL };
        char *const env[] = { (char *)"PATH=/bin", NULL };
        struct torch_note *n = torch_note_map();
        pid_t pid;
        int status;

        assert_non_null(n);
        torch_note_wait(n, 1); /* nobody looks */
        pid = fork();
        if (!pid)
                _exit(torch_note_find(n, argv, env, scratch) == 215 ? 0 : 1);
        assert_true(pid > 0);
        while (!n->state)
                torch_note_wait(n, 1000);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(torch_note_find(n, elsewhere, env, scratch), 215);
        assert_int_equal(torch_note_find(NULL, elsewhere, env, scratch), 206);
        torch_note_unmap(n);
        torch_note_unmap(NULL);
}

TEST(the_interpreter_of_a_script)
{
        char text[PATH_MAX + 32];

        snprintf(text, sizeof(text), "#!%s/venv/bin/python3 -u\nimport torch\n", scratch);
        put_file("./tool", text);
        assert_int_equal(find("./tool", ENV("PATH=base/bin")), 215);
        put_file("bin/tool", "#! /usr/bin/env python3\n");
        assert_int_equal(find("tool", ENV("PATH=bin:base/bin")), 206);
        put_file("./job.sh", "#!/bin/sh\nexec python3 train.py\n");
        assert_int_equal(find("./job.sh", ENV("PATH=base/bin")), 206);
        assert_int_equal(find("sh", ENV("PATH=venv/bin:/bin")), 215);
        assert_int_equal(find("/usr/bin/apptainer", ENV("PATH=venv/bin:/bin")), 0);
}

TEST(files_may_be_anything)
{
        static const char *const odd[] = { "",
                                           "__version__ = ",
                                           "__version__ = '",
                                           "__version__ = '2",
                                           "__version__ = '2.'",
                                           "__version__ = 'x.y'",
                                           "__version__ = '-1.5'",
                                           "__version__ = '0.4.1'",
                                           "__version__ = '99999999999999999999.1'" };
        char *longer = calloc(1, 3 * PATH_MAX);

        for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
                put_file("odd/torch/version.py", odd[i]);
                assert_int_equal(find("alone/bin/python3", ENV("PYTHONPATH=odd")), 0);
        }
        assert_int_equal(unlink("odd/torch/version.py"), 0);
        assert_int_equal(mkfifo("odd/torch/version.py", 0600), 0); /* is not waited for */
        assert_int_equal(find("alone/bin/python3", ENV("PYTHONPATH=odd")), 0);
        memcpy(longer, "PATH=", 5);
        memset(longer + 5, 'x', 3 * PATH_MAX - 6);
        assert_int_equal(find("python3", ENV(longer)), 0);
        assert_int_equal(find(longer, ENV("PATH=venv/bin")), 215); /* as any unknown program */
        free(longer);
        assert_int_equal(find("", ENV("PATH=/nowhere")), 0);
}

UNIT_MAIN(set_up, tear_down)
