/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit_code: the exit codes of hnlaunch beside those of ranks: sysexits.h, and the habit of timeout
 * and env
 *
 * head/term/error_ids.c explains each of them.
 */
#pragma once

#include <sysexits.h>

enum {
        EX_TIME_LIMIT = 124,
        EX_FAILED = 125, /* hnlaunch itself */
        EX_NOT_EXECUTABLE = 126,
        EX_NOT_FOUND = 127,
        EX_SIGNAL = 128, /* plus the number of the signal */
};
