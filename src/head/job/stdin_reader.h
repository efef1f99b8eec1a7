/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feed: reads our standard input for rank 0, whatever it is: terminal, pipe or file
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "head/core/thread_pool.h"

struct feed;

/* @bytes is called on the loop with each piece, @len 0 once at the end. @fd is borrowed. */
struct feed *stdin_reader_create(uv_loop_t *loop, struct thread_pool *pool, int fd,
                                 void (*bytes)(void *ctx, const void *data, size_t len), void *ctx);
/* Reads no more until told so again; a piece that is under way may still come. NULL is fine. */
void stdin_reader_pause(struct feed *f, bool paused);
void stdin_reader_destroy(struct feed *f); /* NULL is fine; freed when the loop turns */
