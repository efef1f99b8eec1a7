/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path_check: checks that the files of the ranks exist, and hashes the contents
 */
#pragma once

#include "wire/check_msg.h"

enum {
        /* Larger files are hashed at both ends, with their size. */
        PATH_CHECK_WHOLE = 64 << 20,
        PATH_CHECK_END = 8 << 20,
};

/* Adds a fact for each path of @o: of a folder "there", of a file "1234 bytes, 5f0c...", else the
 * fault: "missing", "no folder", "no file", "not executable", "not readable". */
void path_check(struct checked *m, const struct check_order *o);

/* Returns the file of a program, malloc'ed, as execvp(3) would find the file in @search (NULL = the
 * system's folders), from @cwd on. NULL: nowhere. */
char *path_check_search(const char *program, const char *cwd, const char *search);
/* Writes "1234 bytes, 5f0c...", or the fault. */
void path_check_file(char *to, size_t size, const char *path);
