/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strv.h"
#include "head/nodes/agent_binary.h"
#include "lib/unit.h"

static char top[] = "/tmp/hntest-image-XXXXXX";
static struct strv made = STRV_INIT;

static int enter(void **state UNUSED)
{
        assert_non_null(mkdtemp(top));
        return 0;
}

static int leave(void **state UNUSED)
{
        for (size_t i = 0; i < made.n; i++)
                unlink(made.v[i]);
        strv_finish(&made);
        return rmdir(top);
}

static void put(const char *name, const void *data, size_t len)
{
        char *path = xasprintf("%s/%s", top, name);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, data, len), 0);
        fd_close(fd);
        strv_push_take(&made, path);
}

/* A program as far as anybody looks who does not run it. */
static void put_program(const char *name, Elf64_Half machine)
{
        Elf64_Ehdr head = { .e_ident = ELFMAG, .e_machine = machine };

        put(name, &head, sizeof(head));
}

static int load(struct agent_binaries *set, const char *name, bool siblings, struct error *err)
{
        char *path = xasprintf("%s/%s", top, name);
        int r = agent_binaries_load(set, path, siblings, err);

        free(path);
        return r;
}

TEST(agents_for_other_machines_are_found_beside_ours)
{
        struct agent_binaries set;
        struct error err;
        char names[64];

        put_program("hnlaunch-agent", EM_X86_64);
        put_program("hnlaunch-agent-aarch64", EM_AARCH64);
        put_program("hnlaunch-agent-riscv64", EM_RISCV);
        assert_int_equal(load(&set, "hnlaunch-agent", true, &err), 0);
        agent_binaries_names(&set, names, sizeof(names));
        assert_string_equal(names, "x86_64, aarch64, riscv64");
        assert_string_equal(agent_binary_for(&set, "aarch64")->arch, "aarch64");
        assert_string_not_equal(agent_binary_for(&set, "aarch64")->hash,
                                agent_binary_for(&set, "x86_64")->hash);
        assert_null(agent_binary_for(&set, "ppc64le"));
        agent_binaries_finish(&set);
        assert_int_equal(load(&set, "hnlaunch-agent", false, &err), 0);
        assert_int_equal(set.n, 1);
        agent_binaries_finish(&set);
}

/* Else a node of one machine would be sent the program of another, and say "Exec format error". */
TEST(an_agent_under_the_name_of_another_machine_is_refused)
{
        struct agent_binaries set;
        struct error err;

        put_program("hnlaunch-agent-aarch64", EM_X86_64);
        assert_int_equal(load(&set, "hnlaunch-agent", true, &err), -ENOEXEC);
        assert_non_null(strstr(err.text, "hnlaunch-agent-aarch64 is for x86_64"));
        agent_binaries_finish(&set);
        put_program("hnlaunch-agent-aarch64", EM_AARCH64);
}

TEST(what_is_no_program_is_refused)
{
        static const char script[] = "#!/bin/sh\n# longer than the header of a program is, so that "
                                     "it is not only too short\n";
        struct agent_binaries set;
        struct error err;

        put("script", script, strlen(script));
        put_program("foreign", EM_S390);
        assert_int_equal(load(&set, "script", false, &err), -ENOEXEC);
        agent_binaries_finish(&set);
        assert_int_equal(load(&set, "foreign", false, &err), -ENOEXEC);
        assert_non_null(strstr(err.text, "is not a program of a known machine"));
        agent_binaries_finish(&set);
        assert_int_equal(load(&set, "nowhere", false, &err), -ENOENT);
        assert_non_null(strstr(err.text, "nowhere"));
        agent_binaries_finish(&set);
}

int main(void)
{
        return unit_run(enter, leave);
}
