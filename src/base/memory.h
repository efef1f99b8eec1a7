/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: allocation that ends the process when memory runs out
 *
 * Both programs use it: neither can do anything sensible without memory, and exit code 125 is the
 * launcher's own failure. The client library does not: it reports HN_ERR_NOMEM to its caller. Each
 * function returns memory for free() and never NULL.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/macros.h"

void *xcalloc(size_t n, size_t size); /* zeroed; at least one byte */
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);
char *xvasprintf(const char *fmt, va_list ap) PRINTF(1, 0);

/* Frees a string that leaves its scope: CLEANUP(free_textp) char *text = ... */
void free_textp(char **text);
