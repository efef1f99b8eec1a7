/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: those that a unit test reads, and the folder that it leaves
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/memory.h"
#include "lib/unit.h"

/* Makes a file, or with @mode "a" lengthens it. */
static inline void write_bytes(const char *path, const char *mode, const void *data, size_t len)
{
        FILE *f = fopen(path, mode);

        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, len, f), len);
        assert_int_equal(fclose(f), 0);
}

/* Makes a file of a text. */
static inline void write_file(const char *path, const char *text)
{
        write_bytes(path, "w", text, strlen(text));
}

static inline void append_to_file(const char *path, const char *text)
{
        write_bytes(path, "a", text, strlen(text));
}

/* Makes the folders that the path of a file needs. */
static inline void make_folders_of(const char *path)
{
        CLEANUP(free_textp) char *folder = xstrdup(path);

        for (char *slash = folder + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                mkdir(folder, 0755);
                *slash = '/';
        }
}

/* Removes a folder with all that it holds; returns 0 as a fixture does. */
static inline int remove_tree(const char *path)
{
        CLEANUP(free_textp) char *command = xasprintf("rm -rf '%s'", path);

        return system(command);
}

/* An empty folder for the tests of a file, and its descriptor: of fixtures that fit unit_run(). */
UNUSED static char scratch[] = "/tmp/hntest-XXXXXX";
UNUSED static int scratch_fd = -1;

static inline int make_scratch(void **state UNUSED)
{
        strcpy(scratch + sizeof(scratch) - sizeof("XXXXXX"), "XXXXXX");
        assert_non_null(mkdtemp(scratch));
        scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return scratch_fd < 0 ? -1 : 0;
}

static inline int remove_scratch(void **state UNUSED)
{
        fd_close(scratch_fd);
        return remove_tree(scratch);
}
