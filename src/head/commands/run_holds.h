/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run holds: the holds that `hnlaunch ps` lists, and `hnlaunch release`
 */
#pragma once

#include <jansson.h>

#include "head/options/options.h"
#include "head/term/diag.h"

/* Returns the descriptions of all holds that answer, an array, the oldest first; a new
 * reference. Warns of the others in @d. */
json_t *run_holds_list(struct diags *d);
/* Returns a table of the holds, malloc'ed. */
char *run_holds_table(const json_t *holds);
/* Does the command. Returns the exit code, with messages in @d. */
int run_holds_release(const struct options *o, struct diags *d);
