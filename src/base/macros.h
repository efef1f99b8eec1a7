/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Macros: the few that every file may use
 */
#pragma once

#include <stddef.h>
#include <sys/param.h> /* MIN, MAX: libuv includes it too */

#define ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))
#define UNUSED         __attribute__((unused))
#define PUBLIC         __attribute__((visibility("default"))) /* to who loads the module */
#define PRINTF(fmt, n) __attribute__((format(printf, fmt, n)))

/* The struct that embeds @ptr as its field @member. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Runs @fn(&variable) when the variable leaves its scope; STEAL() takes the value out of reach. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define STEAL(p)                                                                                   \
        ({                                                                                         \
                __typeof__(*(p)) steal_ = *(p);                                                    \
                *(p) = NULL;                                                                       \
                steal_;                                                                            \
        })
