/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/library_watch.h"

#include "lib/unit.h"

TEST(libraries_of_mpi_are_found_among_mappings)
{
        static const struct {
                const char *maps, *open_mpi, *mpich;
        } table[] = {
                { "7f00-7f01 r--p 0000 08:01 77 /usr/lib/libc.so.6\n"
                  "7f02-7f03 r--p 0000 08:01 78 /opt/a b/libmpi.so.40.30.4\n"
                  "7f04-7f05 r-xp 0000 08:01 78 /opt/a b/libmpi.so.40.30.4\n"
                  "7f06-7f07 rw-p 0000 00:00 0\n",
                  "/opt/a b/libmpi.so.40.30.4", "" },
                { "1-2 r--p 0 0:0 1 /usr/lib/libmpich.so.12.2.1\n", "",
                  "/usr/lib/libmpich.so.12.2.1" },
                { "1-2 r--p 0 0:0 1 /usr/lib/libmpich.so.12\n1-2 r--p 0 0:0 1 /o/libmpi.so.40\n",
                  "/o/libmpi.so.40", "/usr/lib/libmpich.so.12" },
                { "1-2 r--p 0 0:0 1 /o/libmpi.so.40 (deleted)\n", "/o/libmpi.so.40 (deleted)", "" },
                { "1-2 r--p 0 0:0 1 /libmpi.so.12/plugin.so\n1-2 r--p 0 0:0 1 /x/libmpfr.so.6\n",
                  "", "" },
                { "1-2 r--p 0 0:0 1 /x/libmpi_abi.so.1\n", "", "" },
                { "1-2 r--p 0 0:0 1 libmpi.so.40\n", "", "" },
                { "1-2 r--p 0 0:0 1 /very/long/folder/of/somebody/libmpi.so.40\n"
                  "1-2 r--p 0 0:0 1 /b/libmpi.so.40\n",
                  "/b/libmpi.so.40", "" },
                { "", "", "" },
        };
        char open_mpi[32], mpich[32];

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                library_watch_find_mpi(table[i].maps, open_mpi, mpich, sizeof(mpich));
                assert_string_equal(open_mpi, table[i].open_mpi);
                assert_string_equal(mpich, table[i].mpich);
        }
}
