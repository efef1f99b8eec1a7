/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/pull/pull_write.h"
#include "lib/files.h"
#include "lib/unit.h"

static int make_home(void **state)
{
        return make_scratch(state) < 0 ? -1 : chdir(scratch);
}

static int remove_home(void **state)
{
        return chdir("/") < 0 ? -1 : remove_scratch(state);
}

static int write_whole(int root, const char *path, uint32_t mode, const char *text)
{
        struct pull_file f = PULL_FILE_INIT;
        int r = pull_write_begin(&f, root, path, mode);

        if (r == 0)
                r = pull_write_bytes(&f, text, strlen(text));
        return r < 0 ? r : pull_write_end(&f, true);
}

static void assert_content(const char *path, const char *want)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len;

        assert_int_equal(fd_read_file(path, 1000, &text, &len), 0);
        assert_string_equal(text, want);
}

TEST_WITH(make_home, remove_home, files_come_with_their_folders_and_modes)
{
        int root = pull_write_root("a/b/host");
        struct stat st;

        umask(022);
        assert_true(root >= 0);
        assert_int_equal(write_whole(root, "x/y/z", 0755, "text"), 0);
        assert_content("a/b/host/x/y/z", "text");
        assert_int_equal(stat("a/b/host/x/y/z", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_int_equal(write_whole(root, "x/y/z", 0400, "other"), 0);
        assert_content("a/b/host/x/y/z", "other");
        assert_int_equal(stat("a/b/host/x/y/z", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(pull_write_folder(root, "empty/one", 0500), 0);
        assert_int_equal(stat("a/b/host/empty/one", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(pull_write_folder(root, "", 0700), 0);
        assert_int_equal(pull_write_folder(root, "x", 0700), 0);
        assert_int_equal(pull_write_folder(root, "x/y/z", 0700), -ENOTDIR);
        assert_int_equal(write_whole(root, "x/y", 0600, ""), -EISDIR);
        assert_int_equal(access("a/b/host/x/.hnlaunch-pull", F_OK), -1);
        close(root);
}

TEST_WITH(make_home, remove_home, no_link_is_followed)
{
        int root = pull_write_root("host");

        assert_int_equal(mkdir("outside", 0700), 0);
        assert_int_equal(pull_write_link(root, "way", "../outside"), 0);
        assert_int_equal(write_whole(root, "way/file", 0600, "x"), -ENOTDIR);
        assert_int_equal(pull_write_folder(root, "way/folder", 0700), -ENOTDIR);
        assert_int_equal(pull_write_link(root, "way/link", "x"), -ENOTDIR);
        assert_int_equal(rmdir("outside"), 0); /* is empty */
        assert_int_equal(pull_write_link(root, "to-file", "../victim"), 0);
        assert_int_equal(write_whole(root, "to-file", 0600, "mine"), 0);
        assert_int_equal(access("victim", F_OK), -1);
        assert_content("host/to-file", "mine");
        close(root);
        assert_int_equal(symlink("outside", "other"), 0);
        assert_true(pull_write_root("other") < 0);
}

TEST_WITH(make_home, remove_home, an_unfinished_file_leaves_the_older_one)
{
        int root = pull_write_root("host");
        struct pull_file f = PULL_FILE_INIT;

        assert_int_equal(write_whole(root, "d/f", 0600, "old"), 0);
        assert_int_equal(pull_write_begin(&f, root, "d/f", 0600), 0);
        assert_int_equal(pull_write_bytes(&f, "ne", 2), 0);
        assert_int_equal(pull_write_end(&f, false), 0);
        assert_int_equal(f.fd, -1);
        assert_content("host/d/f", "old");
        assert_int_equal(access("host/d/.hnlaunch-pull", F_OK), -1);
        close(root);
}

TEST(links_that_leave_the_folder_are_told_apart)
{
        static const struct {
                const char *path, *target;
                bool safe;
        } rows[] = {
                { "l", "x", true },           { "l", "./x/y", true },
                { "a/l", "../x", true },      { "a/b/l", "../../x", true },
                { "l", "a..b", true },        { "l", "", false },
                { "l", "/x", false },         { "l", "..", false },
                { "a/l", "../../x", false },  { "a/l", "b/../x", false },
                { "a/l", "..//../x", false }, { "l", "x/..", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(pull_link_is_safe(rows[i].path, rows[i].target), rows[i].safe);
}
