/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: which message about a rank an agent may send now
 *
 * Follows each rank of an attempt through the messages of its node: STARTED, OUTPUT to the end of
 * each stream, REPORT, EXITED, and each node to DUMP and GONE. docs/protocol.md ("Turns") has the
 * rules. Pure. Main loop's thread only.
 *
 * Each turns_x() notes the message and returns 0, or returns -EPROTO with @err: the message is out
 * of turn, or about a rank that was not launched on @node.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "head/model/plan.h"
#include "head/model/role_list.h"

struct turns;

/* The turns of an attempt that begins, before any order. */
struct turns *turns_create(const struct plan *plan);
/* Ranks are ordered, for the first time or after their end. */
void turns_order(struct turns *t, const struct plan *plan, const struct role_span *s);
void turns_destroy(struct turns *t); /* NULL is fine */

/* Takes STARTED, REPORT, RANK_READY, EXITED, and CREDIT, which may also come after the rank's end.
 */
int turns_take(struct turns *t, int node, uint8_t type, uint32_t rank, struct error *err);
/* Each rank of the node has ended. */
bool turns_ended(const struct turns *t, int node);
/* @rank MSG_NO_RANK: the whole order. Once for each order of the node; other ranks of the node may
 * then be missing at GONE. Returns 1 if the node has refused another order before. */
int turns_refused(struct turns *t, int node, uint32_t rank, struct error *err);
/* Whether every node has refused, and no rank of the job has started. */
bool turns_all_refused(const struct turns *t);
/* Whether the node of the rank has refused, and the rank has not started. It never will, or ends at
 * once. */
bool turns_is_refused(const struct turns *t, int rank);
/* Whether a rank of the job has started. */
bool turns_any_started(const struct turns *t);
/* @len 0 is the end of the stream. Also after the rank's end. */
int turns_output(struct turns *t, int node, uint32_t rank, uint8_t stream, size_t len,
                 struct error *err);
/* NCCL, once. */
int turns_nccl(struct turns *t, int node, struct error *err);
/* DUMP, only when each rank of the node has ended, or after a refusal. */
int turns_dump(struct turns *t, int node, struct error *err);
/* Only when each rank of the node has ended, or after a refusal. */
int turns_gone(struct turns *t, int node, struct error *err);
