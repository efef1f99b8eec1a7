/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strv: a NULL-terminated vector of strings: argv, environ, lists of names
 *
 * Owns the strings. @v is never NULL after the first push and always NULL-terminated, so exec takes
 * it. Running out of memory ends the process, as in memory.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/memory.h"

struct strv {
        char **v;
        size_t n, cap;
};

#define STRV_INIT                                                                                  \
        {                                                                                          \
                0                                                                                  \
        }

void strv_finish(struct strv *s);
void strv_push(struct strv *s, const char *text);                 /* copies */
void strv_push_mem(struct strv *s, const void *text, size_t len); /* copies, adds the NUL */
void strv_push_take(struct strv *s, char *text);                  /* takes a malloc'ed string */
void strv_pushf(struct strv *s, const char *fmt, ...) PRINTF(2, 3);
void strv_copy(struct strv *to, const struct strv *from); /* appends copies */
bool strv_has(const struct strv *s, const char *text);

/* The vector as an environment of NAME=VALUE; set replaces. Each looks at all entries. */
const char *strv_env_get(const struct strv *s, const char *name);
void strv_env_set(struct strv *s, const char *name, const char *value);
void strv_env_set_number(struct strv *s, const char *name, uint32_t value);
void strv_env_setf(struct strv *s, const char *name, const char *fmt, ...) PRINTF(3, 4);
/* Removes the variable; NAME* removes all that begin so. */
void strv_env_unset(struct strv *s, const char *pattern);
/* Appends a new variable. */
void strv_env_add(struct strv *s, const char *name, const char *value);
/* Sets all @pairs, in order; entries without a name are left out. Linear in both. */
void strv_env_merge(struct strv *s, const struct strv *pairs);
/* Sets the few @pairs, of different names, and empties the list. */
void strv_env_move(struct strv *s, struct strv *pairs);
