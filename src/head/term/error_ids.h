/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error_ids: every HN number and exit code, with meaning, cause and remedy
 *
 * `hnlaunch explain`, `hnlaunch help exit`, hnlaunch-errors(7) and the completions are made from
 * this list, and the table of hnlaunch(1) is compared with it. Constant data; any thread.
 */
#pragma once

#include <stddef.h>

enum {
        EXIT_MAX = 255,
        EXIT_SIGNAL = 128, /* stands for 128 + N, killed by signal N */
        EXIT_OF_RANK = -1, /* stands for every code without an entry */
};

struct error_id {
        int number;          /* 502 of HN502, or an exit code */
        const char *meaning; /* a line without a full stop */
        const char *cause, *remedy;
};

extern const struct error_id error_ids[]; /* ascending */
extern const size_t error_id_count;
extern const struct error_id exit_ids[]; /* ascending, then EXIT_SIGNAL and EXIT_OF_RANK */
extern const size_t exit_id_count;

/* Returns the title of the hundred of @number, for example "Ranks". */
const char *error_ids_title(int number);
/* Returns the entry of HN@number, or NULL. */
const struct error_id *error_id_find(int number);
/* Returns the entry for exit @code, EXIT_SIGNAL or EXIT_OF_RANK where the code has none of its own;
 * NULL when no process can exit with @code. */
const struct error_id *exit_id_find(int code);
