/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Project_file: the rules for values of a project file
 *
 * A .hnlaunch.ini can come with a cloned repository. Unless the user's or the system's file lists
 * the folder as safe, the file may describe the needs of a job, but not decide on trust, programs,
 * files to read or access. The table of options names a rule for each key (option_def.project); the
 * rules are here. Under every rule a value holds only printable text, never a terminal's escape
 * sequences.
 */
#pragma once

#include "head/options/option_table.h"

/* Returns the name of a rule, as in the manual: "any value", "hosts without users", "nothing". */
const char *project_rule_name(enum project_rule rule);

/* Checks whether an untrusted file in @folder may set @key (SECTION.KEY, also env.set.NAME) to
 * @value. NULL = yes, else the allowed values, for a message. @def is the key's row. */
const char *project_file_objects(const struct option_def *def, const char *key, const char *value,
                                 const char *folder);

/* Variables without influence on code or files to load, for env.set.NAME. Ends with NULL. */
extern const char *const project_variables[];
