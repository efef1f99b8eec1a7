/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Say: hnlaunch's own lines on stderr
 *
 * They begin on a new line, whatever a rank has left unfinished on the same terminal or in the same
 * file. While ranks write, they go the ranks' way: in the right order, and without waiting for a
 * reader. The main thread only.
 */
#pragma once

#include <stddef.h>

#include "base/log.h"
#include "base/macros.h"
#include "head/term/diag.h"

struct printer;

/* Ranks may write to stderr through @p from now on; NULL: they do so no longer. */
void say_through(struct printer *p);

/* Whole lines, with the newline at their end. */
void say(const char *fmt, ...) PRINTF(1, 2);
void say_diags(const struct diags *d, bool color);
/* A line on stdout, with the newline at its end. Where that is the same file as stderr it begins a
 * line there. */
void say_to_stdout(const char *line);
/* Writes what stdout still holds. The errno of the first write to it that failed, 0 = none. */
int say_stdout_error(void);
void say_log(void *ctx, enum log_level level, const char *line); /* a log_sink */

/* The live line, which the next one, or anything else that is said, replaces. Without a newline;
 * what the terminal has no room for is cut off. Not while ranks write. */
void say_live(const char *text);
void say_erase(void); /* takes the live line away */
