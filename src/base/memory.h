/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: allocation without failure: the process ends when memory runs out
 *
 * For head and agent, which cannot go on without memory: exit code 125 is the launcher's own
 * failure. Not for the client library, which returns HN_ERR_NOMEM to the caller. Each function
 * returns memory for free() and never NULL.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/macros.h"

void *xcalloc(size_t n, size_t size); /* zeroed; at least one byte */
void *xrealloc(void *p, size_t n, size_t size);
/* Makes space behind @n elements of @v for one more; doubles, so that long lists cost linear time.
 */
void *xgrow(void *v, size_t n, size_t *cap, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);
char *xvasprintf(const char *fmt, va_list ap) PRINTF(1, 0);

/* Frees a string at the end of the scope: CLEANUP(free_textp) char *text = ... */
void free_textp(char **text);
