/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: those that a unit test reads, and the folder that it leaves
 */
#pragma once

#include <stdio.h>
#include <sys/stat.h>

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
