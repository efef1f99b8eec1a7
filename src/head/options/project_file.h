/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Project_file: what a project file may set
 *
 * A .hnlaunch.ini can come with a cloned repository. Unless the user's or the system's file lists
 * its folder as safe, it may say what a job needs, and not whom to trust, what to run, what to read
 * or who gets in. The table of options decides for each key (option_def.project); the rules it
 * names are here. Whatever the rule, a value holds no bytes that would reach a terminal as more
 * than text.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/options/option_table.h"
#include "head/term/diag.h"

/* What a rule allows, as the manual has it: "any value", "hosts without users", "nothing". */
const char *project_rule_name(enum project_rule rule);

/* May an untrusted file in @folder set @key (SECTION.KEY, also env.set.NAME) to @value? NULL = yes,
 * else what would be allowed, for a message. @def is the key's row. */
const char *project_file_objects(const struct option_def *def, const char *key, const char *value,
                                 const char *folder);

/* Variables that no program takes for code or a file to load: env.set.NAME. Ends with NULL. */
extern const char *const project_variables[];

/* The first host of the hostfile @file that says more than PROJECT_HOSTFILES allows. NULL = none.
 */
const struct host *project_file_bad_host(const struct hosts *hosts, const char *file);
