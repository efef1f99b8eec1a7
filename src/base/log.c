/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/printable.h"

static void to_stderr(void *ctx UNUSED, enum log_level level UNUSED, const char *line)
{
        CLEANUP(free_textp) char *safe = printable_text(line, PRINTABLE_LINE);

        fprintf(stderr, "hnlaunch: %s\n", safe);
}

static struct {
        enum log_level most;
        log_sink sink;
        void *ctx;
} log_state = { LOG_WARN, to_stderr, NULL };

void log_set_level(enum log_level most)
{
        log_state.most = most;
}

void log_set_sink(log_sink sink, void *ctx)
{
        log_state.sink = sink ? sink : to_stderr;
        log_state.ctx = ctx;
}

void log_line(enum log_level level, const char *fmt, ...)
{
        char line[PRINTABLE_LINE + 8]; /* longer than is shown: the sink marks the cut */
        va_list ap;

        if (level > log_state.most)
                return;
        va_start(ap, fmt);
        vsnprintf(line, sizeof(line), fmt, ap);
        va_end(ap);
        printable_end(line, sizeof(line));
        log_state.sink(log_state.ctx, level, line);
}
