/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elf/elf_libs.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/files.h"
#include "lib/unit.h"

TEST(this_program_needs_libc)
{
        struct elf_libs l;
        bool found = false;

        assert_int_equal(elf_libs_read(&l, "/proc/self/exe"), 0);
        for (size_t i = 0; i < l.needed.n; i++)
                found |= !strncmp(l.needed.v[i], "libc.so", 7);
        assert_true(found);
        elf_libs_finish(&l);
        assert_int_equal(l.needed.n, 0);
}

/* linked.so is built by meson with a run path of three folders. */
TEST(run_path_is_split_and_origin_replaced)
{
        char self[4096], path[8192], expected[8192];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        CLEANUP(elf_libs_finish) struct elf_libs l;

        assert_true(n > 0);
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        snprintf(path, sizeof(path), "%s/linked.so", self);
        assert_int_equal(elf_libs_read(&l, path), 0);
        assert_int_equal(l.folders.n, 3); /* the relative one is left out */
        snprintf(expected, sizeof(expected), "%s/../lib", self);
        assert_string_equal(l.folders.v[0], "/opt/mpi/lib");
        assert_string_equal(l.folders.v[1], expected);
        assert_string_equal(l.folders.v[2], self);
}

TEST(other_files_are_refused)
{
        char path[] = "/tmp/elf_libs-XXXXXX";
        int fd = mkstemp(path);
        CLEANUP(elf_libs_finish) struct elf_libs l;

        close(fd);
        assert_int_equal(elf_libs_read(&l, path), -ENOEXEC);
        elf_libs_finish(&l);
        write_bytes(path, "w", "#!/bin/sh\n", 10);
        assert_int_equal(elf_libs_read(&l, path), -ENOEXEC);
        elf_libs_finish(&l);
        assert_int_equal(elf_libs_read(&l, "/tmp"), -ENOEXEC);
        elf_libs_finish(&l);
        unlink(path);
        assert_int_equal(elf_libs_read(&l, path), -ENOENT);
}

/* Whatever the bytes of the file are, reading ends and stays within the file. */
TEST(damaged_files_do_no_harm)
{
        char path[] = "/tmp/elf_libs-XXXXXX", *text;
        int fd = mkstemp(path);
        struct elf_libs l;
        size_t len, head;

        close(fd);
        assert_int_equal(fd_read_file("/proc/self/exe", 64 << 20, &text, &len), 0);
        head = MIN(len, (size_t)4096);
        for (size_t i = 0; i < 200; i++) {
                text[(i * 7919) % head] ^= (char)(1 + i);
                write_bytes(path, "w", text, len > 65536 ? 65536 : len);
                elf_libs_read(&l, path);
                elf_libs_finish(&l);
        }
        free(text);
        unlink(path);
}
