/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check_print: the results of `hnlaunch check` as a table and as JSON
 */
#pragma once

#include <jansson.h>

#include "head/check/check_judge.h"
#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* Returns as lines the table, the checks that were not run, and the next steps; malloc'ed. Node i
 * of @r is host i. @width: of the terminal, 0 = none. */
char *check_print_table(const struct check_report *r, const struct hosts *hosts, size_t width);
/* Adds a row for each check with the level, and for failures the next steps. Lost nodes do not
 * count. */
void check_print_rows(struct diag *d, const struct check_report *r, const struct hosts *hosts,
                      enum check_level level);
/* Returns the faults of a node that fails: "it has only 33.6 MB in /dev/shm for 2 ranks";
 * malloc'ed. */
char *check_print_cause(const struct check_report *r, size_t node);
/* Returns the results; the names of members are a promise (hnlaunch-check(1)). */
json_t *check_print_json(const struct check_report *r);
/* Returns "2 checks failed on 3 of 64 nodes, 1 check warns of 2 nodes", or a sentence for fit
 * nodes; malloc'ed. */
char *check_print_verdict(const struct check_report *r);
