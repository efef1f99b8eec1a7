/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: those that a unit test reads, and the folder that it leaves
 */
#pragma once

#include <stdio.h>

#include "base/memory.h"
#include "lib/unit.h"

/* Makes a file of a text. */
static inline void write_file(const char *path, const char *text)
{
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

/* Removes a folder with all that it holds; returns 0 as a fixture does. */
static inline int remove_tree(const char *path)
{
        CLEANUP(free_textp) char *command = xasprintf("rm -rf '%s'", path);

        return system(command);
}
