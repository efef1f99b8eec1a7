/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strv: a vector of strings that it owns, ended by NULL: argv, environ, lists of names
 *
 * @v is never NULL after the first push and always NULL-terminated, so it can be given to exec.
 * The functions end the process with 125 when memory runs out: both programs may, the library does
 * not use them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
void strv_remove(struct strv *s, size_t i); /* keeps the order */

/* The vector as an environment of NAME=VALUE. set replaces, unset ignores what is not there. */
const char *strv_env_get(const struct strv *s, const char *name);
void strv_env_set(struct strv *s, const char *name, const char *value);
void strv_env_setf(struct strv *s, const char *name, const char *fmt, ...) PRINTF(3, 4);
void strv_env_unset(struct strv *s, const char *name);
