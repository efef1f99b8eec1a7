/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error_ids: every HN number and exit code, with meaning, cause and remedy
 *
 * The one list: `hnlaunch explain`, `hnlaunch help exit`, hnlaunch-errors(7) and the completions
 * are made from it, and the table of hnlaunch(1) is compared with it. Constant data; any thread.
 */
#pragma once

#include <stddef.h>

enum {
        EXIT_MAX = 255,
        EXIT_SIGNAL = 128, /* stands for 128 + N, killed by signal N */
        EXIT_OF_RANK = -1, /* stands for every code that has no entry of its own */
};

struct error_id {
        int number;          /* 502 of HN502, or an exit code */
        const char *meaning; /* one line without a full stop */
        const char *cause, *remedy;
};

extern const struct error_id error_ids[]; /* ascending */
extern const size_t error_id_count;
extern const struct error_id exit_ids[]; /* ascending, then the two that stand for several */
extern const size_t exit_id_count;

/* Returns the title of the hundred that @number belongs to, such as "Ranks". */
const char *error_ids_title(int number);
/* Returns the entry of HN@number, or NULL. */
const struct error_id *error_id_find(int number);
/* Returns what explains exit @code: its own entry, else EXIT_SIGNAL or EXIT_OF_RANK; NULL when no
 * process can exit with it. */
const struct error_id *exit_id_find(int code);
