/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: looks a program up on this machine
 */
#pragma once

#include <stdbool.h>

/* Returns the path of the executable @name in PATH, malloc'ed; NULL: there is none. */
char *program_find_in_path(const char *name);
bool program_in_path(const char *name);
/* Tells whether @name is in PATH or is a file in @folder (NULL = the current folder). */
bool program_exists(const char *name, const char *folder);
