/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exec_failure: why a program cannot be executed
 *
 * execve(2) says ENOENT also for a program that is there and lacks what it needs: its interpreter,
 * its loader, or the target of a link. The files are looked at afterwards, by reading only.
 */
#pragma once

#include "base/error.h"

/* Writes to @err why execve() of @program failed with @error. A relative @program counts from
 * @cwd (NULL or "" = the current folder); @path is the PATH in which it was searched, or NULL.
 * Returns -@error, or a negative errno that says more: -ELIBACC, what the program needs does not
 * exist (interpreter, loader, target of a link), -EISDIR, -EACCES, -ENOEXEC. */
int exec_failure_explain(const char *program, const char *cwd, const char *path, int error,
                         struct error *err);

/* Returns the first file called @program in the folders of @path that is a link without a target
 * and has another program behind it in @path, as text for a message: malloc'ed, NULL = none. */
char *exec_failure_find_skipped(const char *program, const char *cwd, const char *path);
