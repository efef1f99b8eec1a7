/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "agent/nccl/nccl_version.h"
#include "lib/unit.h"

TEST(a_version_is_three_numbers)
{
        assert_int_equal(nccl_version_parse("2.28.9+cuda13.0"), 22809);
        assert_int_equal(nccl_version_parse("2.7.8"), 20708);
        assert_int_equal(nccl_version_parse("2"), 0);
        assert_int_equal(nccl_version_parse("2.28"), 0);
        assert_int_equal(nccl_version_parse("%d.%d.%d"), 0);
        assert_int_equal(nccl_version_parse("2.280.9"), 0);
        assert_int_equal(nccl_version_parse(""), 0);
}

TEST(the_library_is_found_among_mappings)
{
        static const struct {
                const char *maps, *path;
        } table[] = {
                { "7f00-7f01 r--p 0000 08:01 77 /usr/lib/libc.so.6\n"
                  "7f02-7f03 r--p 0000 08:01 78 /home/u/a b/nccl/lib/libnccl.so.2\n"
                  "7f04-7f05 rw-p 0000 00:00 0\n",
                  "/home/u/a b/nccl/lib/libnccl.so.2" },
                { "1-2 r--p 0 0:0 1 /opt/libnccl.so.2.28.9\n", "/opt/libnccl.so.2.28.9" },
                { "1-2 r--p 0 0:0 1 /opt/libnccl.so\n", "/opt/libnccl.so" },
                { "1-2 r--p 0 0:0 1 /opt/libnccl-net.so\n1-2 r--p 0 0:0 1 /x/libnccl.sock\n",
                  NULL },
                { "1-2 r--p 0 0:0 1 libnccl.so\n", NULL },
                { "", NULL },
        };
        char path[64], small[8];

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                bool found = nccl_version_find_path(table[i].maps, path, sizeof(path));

                assert_int_equal(found, table[i].path != NULL);
                if (found)
                        assert_string_equal(path, table[i].path);
                assert_false(nccl_version_find_path(table[i].maps, small, sizeof(small)));
        }
}

/* Writes @text at @at of a file named libnccl.so.2; returns its version. */
static uint32_t version_at(long at, const char *text)
{
        char folder[] = "/tmp/test_nccl.XXXXXX", path[64];
        uint32_t version;
        FILE *f;

        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/libnccl.so.2", folder);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        fputs(text, f);
        assert_int_equal(ftruncate(fileno(f), at + 4096), fflush(f));
        assert_int_equal(fclose(f), 0);
        version = nccl_version_of_file(path);
        unlink(path);
        rmdir(folder);
        return version;
}

TEST(the_version_is_found_in_the_file)
{
        static const char text[] = "NCCL version 2.28.9+cuda13.0";

        assert_int_equal(version_at(0, text), 22809);
        for (long at = (64 << 10) - 100; at < (64 << 10) + 100; at += 3) /* over a piece's end */
                assert_int_equal(version_at(at, text), 22809);
        assert_int_equal(version_at(3 << 20, "NCCL version %d.%d NCCL version 2.18.1+cuda12.1"),
                         21801);
        assert_int_equal(version_at(9 << 20, text), 0); /* behind what is searched */
        assert_int_equal(version_at(0, "no version"), 0);
        assert_int_equal(nccl_version_of_file("/nowhere/libnccl.so.2.29.7"), 22907);
        assert_int_equal(nccl_version_of_file("/nowhere/libnccl.so.2"), 0);
        assert_int_equal(nccl_version_of_file("/dev/null"), 0);
        assert_int_equal(nccl_version_of_file("/tmp"), 0);
}
