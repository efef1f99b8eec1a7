/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch_restart: the decision after an attempt
 *
 * Without --restart auto the job counts restarts (job_restart()). With --restart auto the evidence
 * of all attempts decides (head/model/restart_rule.h): each decision is one line, the event
 * run.decision, and an entry in `attempts` of summary.json.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct launch;

/* Before the first attempt. */
void launch_restart_begin(struct launch *l);
/* After an attempt. True = the job is ready for the next. */
bool launch_restart_again(struct launch *l);
/* Returns the exit code of the job after @code of the ranks: 125 when no spare host was left to
 * replace a host put out, with a message in diags. */
int launch_restart_code(struct launch *l, int code);
/* The list of attempts for summary.json, lent; NULL without --restart auto. */
json_t *launch_restart_attempts(const struct launch *l);
void launch_restart_free(struct launch *l);
