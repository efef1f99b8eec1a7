/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format: durations, sizes and times of day for people
 *
 * Each with @to writes at most @size bytes there, NUL included; 32 are enough.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void format_duration(char *to, size_t size, int64_t us); /* "340ms", "1.1s", "8m41s", "2h05m" */
void format_size(char *to, size_t size, uint64_t bytes); /* "340 bytes", "1.2 GB"; units of 1000 */
/* "17:04:05.123", local time; @us since 1970. */
void format_time_of_day(char *to, size_t size, int64_t us);

struct format_span {
        char text[32];
};

/* Returns "120s", "10m" for round times, as in options; else "2m03s", "12.3s". */
struct format_span format_span(uint64_t ms);
