/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: whether this machine has a program of a name, and where
 */
#pragma once

#include <stdbool.h>

/* Where the executable @name is in PATH; malloc'ed, NULL = nowhere. */
char *program_find_in_path(const char *name);
bool program_in_path(const char *name);
/* That, or a file @name in @folder (NULL = the current one). */
bool program_exists(const char *name, const char *folder);
