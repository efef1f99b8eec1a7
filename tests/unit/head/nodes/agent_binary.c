/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "base/strv.h"
#include "head/nodes/agent_binary.h"
#include "lib/files.h"
#include "lib/unit.h"

static void put(const char *name, const void *data, size_t len)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", scratch, name);

        write_bytes(path, "w", data, len);
        assert_int_equal(chmod(path, 0700), 0);
}

/* A program as far as anybody looks who does not run it. */
static void put_program(const char *name, Elf64_Half machine)
{
        Elf64_Ehdr head = { .e_ident = ELFMAG, .e_machine = machine };

        put(name, &head, sizeof(head));
}

static int load(struct agent_binaries *set, const char *name, bool siblings, struct error *err)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", scratch, name);

        return agent_binaries_load(set, path, siblings, err);
}

TEST(agents_for_other_machines_are_found_beside_ours)
{
        CLEANUP(agent_binaries_finish) struct agent_binaries set;
        struct error err;
        char names[64];

        put_program("hnlaunch-agent", EM_X86_64);
        put_program("hnlaunch-agent-aarch64", EM_AARCH64);
        put_program("hnlaunch-agent-riscv64", EM_RISCV);
        assert_int_equal(load(&set, "hnlaunch-agent", true, &err), 0);
        agent_binaries_names(&set, names, sizeof(names));
        assert_string_equal(names, "x86_64, aarch64, riscv64");
        assert_string_equal(agent_binary_for(&set, "aarch64")->arch, "aarch64");
        assert_string_not_equal(agent_binary_for(&set, "aarch64")->id,
                                agent_binary_for(&set, "x86_64")->id);
        assert_null(agent_binary_for(&set, "ppc64le"));
        agent_binaries_finish(&set);
        assert_int_equal(load(&set, "hnlaunch-agent", false, &err), 0);
        assert_int_equal(set.n, 1);
}

/* A program with one note, of the linker unless told otherwise. */
struct noted_program {
        Elf64_Ehdr head;
        Elf64_Phdr part;
        Elf64_Nhdr note;
        char name[4];
        unsigned char id[20];
        uint32_t code;
};

/* Returns the id of a program with such a note, malloc'ed. */
static char *id_of(const struct noted_program *p)
{
        struct agent_binaries set;
        struct error err;
        char *id;

        put("noted", p, sizeof(*p));
        assert_int_equal(load(&set, "noted", false, &err), 0);
        id = xstrdup(set.v[0].id);
        agent_binaries_finish(&set);
        return id;
}

static bool has_same_id(const struct noted_program *a, const struct noted_program *b)
{
        CLEANUP(free_textp) char *one = id_of(a), *other = id_of(b);

        assert_int_equal(strlen(one), 32);
        return strcmp(one, other) == 0;
}

/* The build id names a program without a look at all of its bytes; without one they are hashed. */
TEST(the_build_id_of_the_linker_names_an_agent)
{
        const struct noted_program p = { .head = { .e_ident = ELFMAG,
                                                   .e_machine = EM_X86_64,
                                                   .e_phoff = offsetof(struct noted_program, part),
                                                   .e_phnum = 1 },
                                         .part = { .p_type = PT_NOTE,
                                                   .p_offset = offsetof(struct noted_program, note),
                                                   .p_filesz = 36,
                                                   .p_align = 4 },
                                         .note = { 4, 20, NT_GNU_BUILD_ID },
                                         .name = "GNU",
                                         .id = { 0x12, 0x34 } };
        struct noted_program other = p;

        other.code = 1;
        assert_true(has_same_id(&p, &other));
        other.id[19] = 1;
        assert_false(has_same_id(&p, &other));
        for (int i = 0; i < 7; i++) {
                struct noted_program bad = p, changed;

                if (i == 0)
                        bad.note.n_type = NT_GNU_ABI_TAG;
                else if (i == 1)
                        bad.note.n_descsz = 4000;
                else if (i == 2)
                        bad.note.n_namesz = UINT32_MAX;
                else if (i == 3)
                        bad.part.p_filesz = 4000;
                else if (i == 4)
                        bad.part.p_offset = UINT64_MAX;
                else if (i == 5)
                        bad.note.n_descsz = 0;
                else
                        bad.head.e_phoff = UINT64_MAX;
                changed = bad;
                changed.code = 1;
                assert_false(has_same_id(&bad, &changed));
        }
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
        CLEANUP(agent_binaries_finish) struct agent_binaries set;
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
}

UNIT_MAIN(make_scratch, remove_scratch)
