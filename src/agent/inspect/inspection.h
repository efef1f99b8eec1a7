/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspection: runs inspectors in child processes and hands their answers to the head
 *
 * The children are no part of an attempt, and must not hold up the end of an attempt:
 * inspection_stop() before the end. Orders of different kinds run side by side: processes, RAS,
 * flight recorders, checks. A new order ends the running order of the same kind.
 */
#pragma once

#include <sys/types.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "agent/inspect/inspector.h"

struct inspection;

struct inspection *inspection_create(uv_loop_t *loop, struct uplink *up);
/* Copies the arguments. Without a process for the child there is no answer. */
void inspection_start(struct inspection *s, const struct inspect_order *o,
                      const struct inspector_rank *ranks, size_t n,
                      const struct inspector_paths *paths);
/* Has a child call @run, which writes whole frames to @to: the answers to a CHECK. */
void inspection_start_check(struct inspection *s, void (*run)(const void *ctx, int to),
                            const void *ctx);
/* Tells the children to kill their tools and to end; SIGCHLD reports the ends. */
void inspection_stop(struct inspection *s);
/* The child @pid was reaped; another child is ignored. */
void inspection_reaped(struct inspection *s, pid_t pid);
void inspection_close(struct inspection *s); /* let the loop turn once more */
void inspection_destroy(struct inspection *s);
