/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/node_facts.h"

#include <string.h>
#include <sys/vfs.h>

#include "lib/unit.h"

static struct node_facts read_path(const char *path)
{
        struct node_facts m = { 0 };

        node_facts_read_path(&m, path);
        return m;
}

TEST(a_path_has_the_type_and_the_id_of_its_file_system)
{
        struct statfs fs;
        uint64_t id;

        assert_int_equal(statfs("/proc/self/stat", &fs), 0);
        assert_int_equal(read_path("/proc/self/stat").fs_type, fs.f_type);
        assert_int_equal(statfs("/", &fs), 0);
        memcpy(&id, &fs.f_fsid, sizeof(id));
        assert_int_equal(read_path("/").fs_type, (uint64_t)fs.f_type & UINT32_MAX);
        assert_int_equal(read_path("/").fs_id, id);
}

TEST(a_file_that_is_gone_counts_as_its_folder)
{
        struct node_facts root = read_path("/"), gone = read_path("/gone-since"),
                          proc = read_path("/proc/gone-since");

        assert_int_equal(gone.fs_type, root.fs_type);
        assert_int_equal(gone.fs_id, root.fs_id);
        assert_int_equal(proc.fs_type, read_path("/proc").fs_type);
}

TEST(of_a_folder_that_is_not_there_nothing_is_known)
{
        assert_int_equal(read_path("/gone-since/x").fs_type, 0);
        assert_int_equal(read_path("x").fs_type, 0);
        assert_int_equal(read_path("").fs_type, 0);
}
