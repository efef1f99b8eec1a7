/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event line: an event as a line of JSON
 *
 * The form of events.ndjson and of --json. The default records take two lines a
 * rank, so a line is put together without a tree of JSON values. Not thread-safe.
 */
#pragma once

#include <time.h>

#include "head/model/events.h"
#include "head/model/role_list.h"

/* Zeroed before the first line. */
struct event_clock {
        time_t second; /* of the text; 0 = none yet */
        char text[32]; /* "2026-11-27T02:10:00" */
};

/* Returns the event with the wall clock of now as a line with its newline, malloc'ed; NULL: its
 * kind is for progress lines only. @run_id: for the start of a run. @roles: of the ranks. */
char *event_line_make(struct event_clock *c, const char *run_id, const struct role_list *roles,
                      const struct event *e);
