/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Last_error: the last error of each thread
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <stdint.h>

#include "base/macros.h"

/* Stores the sentence for hn_last_error(), clears the ranks, returns @status. */
hn_status set_error(hn_status status, const char *fmt, ...) PRINTF(2, 3);
/* Stores the ranks of the error; call after set_error(). */
void set_error_ranks(const uint32_t *ranks, uint32_t n);
