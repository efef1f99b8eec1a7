/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/macros.h"

void format_duration(char *to, size_t size, int64_t us)
{
        int64_t s = us / 1000000;

        /* Cut, not rounded: "59.9s" never becomes "60.0s". */
        if (us < 1000000)
                snprintf(to, size, "%" PRId64 "ms", us / 1000);
        else if (s < 60)
                snprintf(to, size, "%" PRId64 ".%" PRId64 "s", s, us / 100000 % 10);
        else if (s < 3600)
                snprintf(to, size, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
        else
                snprintf(to, size, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
}

struct format_span format_span(uint64_t ms)
{
        struct format_span s;

        if (ms % 1000 == 0 && ms < 600000)
                snprintf(s.text, sizeof(s.text), "%" PRIu64 "s", ms / 1000);
        else if (ms % 60000 == 0 && ms < 3600000)
                snprintf(s.text, sizeof(s.text), "%" PRIu64 "m", ms / 60000);
        else
                format_duration(s.text, sizeof(s.text), (int64_t)ms * 1000);
        return s;
}

void format_size(char *to, size_t size, uint64_t bytes)
{
        static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
        double n = (double)bytes;
        size_t unit = 0;

        while (n >= 1000 && unit + 1 < ARRAY_SIZE(units)) {
                n /= 1000;
                unit++;
        }
        /* Three digits at most, but for bytes: "1.2 GB", "12.3 GB", "340 MB". */
        snprintf(to, size, "%.*f %s", unit && n < 100 ? 1 : 0, n,
                 bytes == 1 ? "byte" : units[unit]);
}

void format_time_of_day(char *to, size_t size, int64_t us)
{
        time_t t = (time_t)(us / 1000000);
        struct tm tm;

        localtime_r(&t, &tm);
        snprintf(to, size, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec,
                 (int)(us % 1000000 / 1000));
}
