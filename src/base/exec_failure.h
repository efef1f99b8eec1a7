/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exec_failure: why a program cannot be executed
 *
 * execve(2) says ENOENT also for an existing program without its interpreter, its loader, or the
 * target of a link. The files are looked at afterwards, by reading only.
 */
#pragma once

#include "base/error.h"

/* Writes to @err why execve() of @program failed with @error. A relative @program counts from @cwd
 * (NULL or "" = the current folder); @path is the PATH of a searched program, or NULL. Returns
 * -@error, or a more telling negative errno: -ELIBACC, an interpreter, a loader or the target of a
 * link does not exist; -EISDIR, -EACCES, -ENOEXEC. */
int exec_failure_explain(const char *program, const char *cwd, const char *path, int error,
                         struct error *err);

/* Returns the first file called @program in the folders of @path that is a link without a target
 * and has another program behind it in @path, as text for a message: malloc'ed, NULL = none. */
char *exec_failure_find_skipped(const char *program, const char *cwd, const char *path);
