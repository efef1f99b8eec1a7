/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top screen: `hnlaunch top` on the whole terminal, with ncurses
 *
 * A shared object of its own, hnlaunch-top.so, so that no other command loads ncurses. Takes the
 * terminal over during top_screen_show(), and restores the terminal afterwards.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/macros.h"

struct top_screen {
        int fd; /* lines of JSON of the run; does not wait */
        /* Asks why ranks wait: returns a descriptor for lines of JSON, the last of which has no
         * "more" and the answer in "text". -errno with @err. */
        int (*ask_why)(void *ctx, struct error *err);
        /* Orders the end of the run. 0, or -errno with @err. */
        int (*stop)(void *ctx, struct error *err);
        /* Shows the output of these ranks on the restored terminal, until the user returns. */
        void (*show_logs)(void *ctx, const char *ranks);
        void *ctx;
};

enum top_screen_end {
        TOP_SCREEN_QUIT,      /* the user has quit, or *ret_signal is a signal to end */
        TOP_SCREEN_RUN_ENDED, /* @fd is at the end */
        TOP_SCREEN_NO_CURSOR, /* the terminal cannot move its cursor: nothing was shown */
};

/* *ret_end: the last line of a run that has ended if this line is not about hosts and ranks, a new
 * reference, else NULL. *ret_signal: 0 = none. */
typedef enum top_screen_end top_screen_fn(const struct top_screen *s, json_t **ret_end,
                                          int *ret_signal);
PUBLIC top_screen_fn top_screen_show;
