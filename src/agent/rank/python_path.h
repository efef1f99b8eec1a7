/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python_path: which Python a program starts, and where its packages are
 *
 * Python is not run: files are looked for where an interpreter would look (PEP 405, CPython's
 * Modules/getpath.py and Lib/site.py). Folders that come into sys.path another way, such as by a
 * .pth file, are not found. Async-signal-safe; blocks as long as the file system does.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum python_by {
        PYTHON_NONE,
        PYTHON_NAMED,     /* the program's name begins with "python" */
        PYTHON_OF_SCRIPT, /* of the script's first line */
        PYTHON_OF_PATH,   /* python3 of PATH: shells and profilers start Python from there */
};

struct python_place {
        enum python_by by;
        char path[PATH_MAX], real[PATH_MAX]; /* of the interpreter; without links */
        char name[32];                       /* "python3.11" */
};

/* Finds the interpreter of @program. Of programs that start containers it is not known. Relative
 * paths count from @cwd, NULL or "" = the current folder. */
bool python_find(struct python_place *ret, const char *program, char *const *env, const char *cwd);

/* Returns true to end the visits. */
typedef bool python_visit(void *ctx, const char *folder);

/* Visits the folders of packages in the order of sys.path, whether they exist or not. Returns
 * whether a visit has returned true. */
bool python_each_folder(const struct python_place *p, char *const *env, const char *cwd,
                        python_visit *visit, void *ctx);

/* Reads the first @size - 1 bytes of a regular file, as a string. False: there is none. */
bool python_read_head(const char *path, char *to, size_t size);
