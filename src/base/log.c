/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sink for the whole process: the agent sends its lines to the head, and the head has a sink
 * with colors. Texts hold names and answers of other machines, so the default sink makes each line
 * printable.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/printable.h"

static void to_stderr(void *ctx UNUSED, enum log_level level UNUSED, int id, const char *line)
{
        CLEANUP(free_textp) char *safe = printable_text(line, PRINTABLE_LINE);

        if (id)
                fprintf(stderr, "warning[HN%d]: %s\n", id, safe);
        else
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

static void send_log_text(enum log_level level, int id, const char *fmt, va_list ap) PRINTF(3, 0);
static void send_log_text(enum log_level level, int id, const char *fmt, va_list ap)
{
        char line[PRINTABLE_LINE + 8]; /* longer than is shown: the sink marks the cut */

        if (level > log_state.most)
                return;
        vsnprintf(line, sizeof(line), fmt, ap);
        printable_end(line, sizeof(line));
        log_state.sink(log_state.ctx, level, id, line);
}

void log_line(enum log_level level, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        send_log_text(level, 0, fmt, ap);
        va_end(ap);
}

void log_warning(int id, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        send_log_text(LOG_WARN, id, fmt, ap);
        va_end(ap);
}
