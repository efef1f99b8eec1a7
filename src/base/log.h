/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log: lines for people on stderr, "hnlaunch: text"
 *
 * For events without a caller to tell: other functions return their errors.
 */
#pragma once

#include "base/macros.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Called with one whole line without newline, and the number of a warning of hnlaunch explain, 0 =
 * none. The default writes "hnlaunch: line\n", or "warning[HN314]: line\n", to stderr. */
typedef void (*log_sink)(void *ctx, enum log_level level, int id, const char *line);

void log_set_level(enum log_level most);
void log_set_sink(log_sink sink, void *ctx); /* NULL = the default */
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
void log_warning(int id, const char *fmt, ...) PRINTF(2, 3); /* of LOG_WARN */
