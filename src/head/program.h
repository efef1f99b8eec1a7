/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: whether this machine has a program of a name
 */
#pragma once

#include <stdbool.h>

/* An executable @name in a folder of PATH. */
bool program_in_path(const char *name);
/* That, or a file @name in @folder (NULL = the current one). */
bool program_exists(const char *name, const char *folder);
