/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top lines: the newest line of JSON on a descriptor
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "base/buf.h"

struct top_lines {
        struct buf bytes;
};

/* Reads once, without waiting if the descriptor does not wait. Returns the number of bytes, 0 at
 * the end, -errno: -EAGAIN, -EINTR; -EMSGSIZE: a line is too long. */
ssize_t top_lines_read(struct top_lines *l, int fd);
/* Returns the newest whole line, a new reference, and drops all earlier lines. NULL = no whole line
 * yet, or the line is no object. */
json_t *top_lines_take(struct top_lines *l);
void top_lines_finish(struct top_lines *l);
