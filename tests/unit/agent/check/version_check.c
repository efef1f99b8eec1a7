/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/version_check.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/files.h"
#include "lib/unit.h"

static void put_bytes_in(const char *path, const char *text, size_t len)
{
        CLEANUP(free_textp) char *file = xasprintf("%s/%s", scratch, path);

        make_folders_of(file);
        write_bytes(file, "w", text, len);
        chmod(file, 0755);
}

#define PUT(path, text) put_bytes_in(path, text, sizeof(text) - 1)

/* base/ has Python 3.11.2 with torch 2.6.0, venv/ another torch; "shared/" has the version in
 * libpython, "bare/" nowhere. */
static int set_up(void **state)
{
        assert_int_equal(make_scratch(state), 0);
        assert_int_equal(chdir(scratch), 0);
        PUT("base/bin/python3.11", "\177ELF 3.11.0\0x3.11.9\0007\0003.11.2\0003.11.3\0");
        PUT("base/lib/python3.11/site-packages/torch/version.py",
            "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n"
            "__version__ = '2.6.0+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\n");
        PUT("base/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
            "... NCCL version 2.21.5+cuda12.4\0 and the kernels, which are longer than the "
            "version");
        PUT("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
        PUT("venv/lib/python3.11/site-packages/torch/version.py",
            "__version__ = '2.4.0'\ncuda: Optional[str] = None\n");
        PUT("shared/bin/python3.12", "\177ELF");
        PUT("shared/lib/libpython3.12.so.1.0", "\0003.12.0rc1\0");
        PUT("bare/bin/python3.9", "\177ELF");
        PUT("scripts/tool", "#!/usr/bin/env python3\n");
        PUT("scripts/job.sh", "#!/bin/sh\npython3 train.py\n");
        PUT("shims/python3", "#!/bin/sh\nexec pyenv exec python3\n");
        PUT("plugin/libnccl-net-ofi.so", "1234");
        mkdir("venv/bin", 0755);
        assert_int_equal(symlink("python3.11", "base/bin/python3"), 0);
        assert_int_equal(symlink("../../base/bin/python3", "venv/bin/python3"), 0);
        return 0;
}

static int tear_down(void **state)
{
        assert_int_equal(chdir("/"), 0);
        return remove_scratch(state);
}

static struct checked m;

/* Finds the versions of @line, words with blanks, with @path as PATH below the root. */
static void look(const char *line, const char *path, const char *plugin, uint32_t number)
{
        struct check_program p = { .number = number, .cwd = scratch };
        struct check_order o = { .programs = &p, .n_programs = 1 };
        CLEANUP(free_textp) char *words = xstrdup(line);
        CLEANUP(free_textp) char *search = xasprintf("%s/%s", scratch, path);
        char *rest = words, *word;

        while ((word = strsep(&rest, " ")))
                strv_push(&p.argv, word);
        strv_env_set(&p.env, "PATH", search);
        strv_env_set(&p.env, "HOME", "/nowhere");
        strv_env_set(&p.env, "LD_LIBRARY_PATH", "");
        strv_env_set(&p.env, "PYTHONPATH", "");
        strv_env_set(&p.env, "NCCL_NET_PLUGIN", plugin);
        checked_finish(&m);
        version_check(&m, &o);
        strv_finish(&p.argv);
        strv_finish(&p.env);
}

static const char *get(const char *name)
{
        for (uint32_t i = 0; i < m.n_facts; i++)
                if (!strcmp(m.facts[i].name, name))
                        return *m.facts[i].problem ? m.facts[i].problem : m.facts[i].value;
        fail_msg("no fact %s", name);
        return "";
}

TEST(versions_of_python_and_its_packages_are_read_from_files)
{
        look("python3 train.py", "base/bin", "", 0);
        assert_string_equal(get("python"), "3.11.2");
        assert_string_equal(get("torch"), "2.6.0+cu124");
        assert_string_equal(get("cuda"), "12.4");
        assert_string_equal(get("nccl"), "2.21.5");
        look("python3 train.py", "venv/bin", "", 2);
        assert_string_equal(get("python.2"), "3.11.2");
        assert_string_equal(get("torch.2"), "2.4.0");
        assert_string_equal(get("cuda.2"), "none");
        assert_string_equal(get("nccl.2"), "none");
        assert_string_equal(get("nccl.plugin.2"), "none");
        look("shared/bin/python3.12", "base/bin", "", 0);
        assert_string_equal(get("python"), "3.12.0rc1");
        assert_string_equal(get("torch"), "none");
        look("bare/bin/python3.9", "base/bin", "", 0);
        assert_string_equal(get("python"), "3.9");
}

TEST(python_may_stand_behind_other_programs)
{
        static const char *const lines[] = { "numactl -N0 venv/bin/python3 train.py",
                                             "env A=b venv/bin/python3", "venv/bin/python3" };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                look(lines[i], "base/bin", "", 0);
                assert_string_equal(get("torch"), "2.4.0");
        }
        look("scripts/tool", "base/bin", "", 0);
        assert_string_equal(get("torch"), "2.6.0+cu124");
        look("scripts/job.sh", "base/bin", "", 0);
        assert_string_equal(get("torch"), "2.6.0+cu124");
        look("/bin/sh -c train", "base/bin", "", 0);
        assert_string_equal(get("torch"), "2.6.0+cu124");
        look("apptainer exec a.sif python3 train.py", "base/bin", "", 0);
        assert_string_equal(get("python"), "none");
        look("python3 train.py", "shims", "", 0);
        for (uint32_t i = 0; i < m.n_facts; i++)
                if (!strstr(m.facts[i].problem, "shims/python3 is a script that starts a Python"))
                        fail_msg("%s", m.facts[i].problem);
        look("/bin/ls", "base/bin", "", 0);
        assert_string_equal(get("python"), "none");
        assert_string_equal(get("torch"), "none");
        assert_string_equal(get("cuda"), "none");
        assert_string_equal(get("nccl"), "none");
        look("nowhere/prog", "base/bin", "", 0);
        assert_string_equal(get("nccl"), "none");
}

TEST(the_plug_in_is_the_one_that_the_variable_names)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/plugin/libnccl-net-ofi.so", scratch);
        char first[CHECK_VALUE];

        look("python3", "base/bin", path, 0);
        snprintf(first, sizeof(first), "%s", get("nccl.plugin"));
        if (strncmp(first, "libnccl-net-ofi.so, 4 bytes, ", 29) != 0)
                fail_msg("%s", first);
        PUT("plugin/libnccl-net-ofi.so", "1235");
        look("python3", "base/bin", path, 0);
        assert_string_not_equal(get("nccl.plugin"), first);
        look("python3", "base/bin", "/nowhere/libnccl-net.so", 0);
        assert_string_equal(get("nccl.plugin"), "none");
        look("python3", "base/bin", "hntest-no-such", 0);
        assert_string_equal(get("nccl.plugin"), "none");
        checked_finish(&m);
}

UNIT_MAIN(set_up, tear_down)
