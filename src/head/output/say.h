/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Say: hnlaunch's own lines on stderr
 *
 * Each text begins on a new line, even if a rank has left an unfinished line on the same terminal
 * or in the same file. While ranks write, texts go through the printer: in the right order, and
 * without waiting for a reader. Main thread only.
 */
#pragma once

#include <stddef.h>

#include "base/log.h"
#include "base/macros.h"
#include "head/term/diag.h"

struct options;
struct printer;

/* From now on texts go through @p, as the output of ranks; NULL: directly to stderr. */
void say_through(struct printer *p);

/* Has every text but the live line copied; NULL = no longer. The text is lent. */
void say_copy_to(void (*copy)(void *ctx, const char *text, size_t len), void *ctx);

/* Writes whole lines, with a newline at the end. */
void say(const char *fmt, ...) PRINTF(1, 2);
void say_diags(const struct diags *d, bool color);
/* Writes a line, with a newline at the end, to stdout; also on a new line if stdout and stderr are
 * the same file. */
void say_to_stdout(const char *line);
/* Flushes stdout. Returns the errno of the first failed write to stdout, 0 = none failed. */
int say_stdout_error(void);
/* Closes stdout. Returns the same, or the errno of close(); with an error *@ret_name is the name of
 * stdout as of say_name_stream(). */
int say_close_stdout(char **ret_name);
/* Returns @name, if @fd is a file with its path: "standard output (/data/out.log)", malloc'ed. */
char *say_name_stream(const char *name, int fd);
/* Whether messages on stderr have colour. */
bool say_has_color(const struct options *o);
/* From now on a write of a text takes a second at most; what is not written then is lost. */
void say_briefly(void);
/* A log_sink. @color: a bool, whether a warning has colour. */
void say_log(void *color, enum log_level level, int id, const char *line);

bool say_shows_live(void); /* the live line stands at the bottom */
/* The ranks got a line, or more, that a user has entered at @fd, which may be a terminal. */
void say_after_entry(int fd);
/* The next text comes after a key that the terminal has echoed, as Ctrl-C. */
void say_after_key(void);

/* Shows the live line, to be replaced by the next text of any kind. The end of a row beyond the
 * terminal's width is cut off. While ranks write, as printer_draw_live(), with @bar; else only the
 * last row of @text. */
void say_live(const char *text, const char *bar);
void say_erase(void); /* erases the live line */
