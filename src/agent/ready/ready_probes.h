/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ready probes: asks the ranks of a world on this node whether they are ready (--ready)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/msg.h"

struct ready_probes;

/* @ready is called from the loop, once for each rank that is ready. @alone: struct
 * rank_probe_order.
 */
struct ready_probes *ready_probes_create(uv_loop_t *loop, bool alone,
                                         void (*ready)(void *ctx, uint32_t rank), void *ctx);
void ready_probes_destroy(struct ready_probes *p); /* NULL is fine, here and below */
/* Notes how a rank that will start is asked. @env: of the rank, with its ports; @cwd: for a file;
 * all are lent. 0, or -EINVAL with @err: the rank has no such port. */
int ready_probes_add(struct ready_probes *p, uint32_t rank, const struct launch_ready *how,
                     const struct strv *env, const char *cwd, struct error *err);
void ready_probes_start(struct ready_probes *p, uint32_t rank); /* the rank runs */
void ready_probes_end(struct ready_probes *p, uint32_t rank);   /* the rank has ended */
