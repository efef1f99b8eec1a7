/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Macros: shared by all files
 */
#pragma once

#include <stddef.h>
#include <sys/param.h> /* MIN, MAX: libuv includes it too */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define UNUSED        __attribute__((unused))
#define PUBLIC                                                                                     \
        __attribute__((visibility("default"))) /* visible to the program that loads the module */
#define PRINTF(fmt, n) __attribute__((format(printf, fmt, n)))

/* Returns the struct that embeds @ptr as the field @member. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Runs @fn(&variable) at the end of the scope; STEAL() keeps the value from @fn. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define STEAL(p)                                                                                   \
        ({                                                                                         \
                __typeof__(*(p)) steal_ = *(p);                                                    \
                *(p) = NULL;                                                                       \
                steal_;                                                                            \
        })
