/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull: brings files of the nodes home when the ranks have ended (--pull PATH[:DEST])
 *
 * All nodes are asked at once and answer with PULLED (wire/push_msg.h). What is at PATH on HOST
 * becomes DEST/HOST/PATH (pull_write.h). A path that only some nodes have is fine. Files are
 * written at once, so that a slow file system slows the nodes down. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "head/nodes/node.h"
#include "head/term/diag.h"
#include "wire/frame.h"

struct pull;

/* @words: PATH[:DEST] each, relative to @here; without DEST: pulled/RUN. NULL with errors in @d
 * (exit 64 or 73): a PATH without a name of its own, two with the same place, or a DEST that cannot
 * be written to. */
struct pull *pull_create(const struct strv *words, const char *here, const char *run_id,
                         size_t n_nodes, struct diags *d);
void pull_destroy(struct pull *p); /* NULL is fine */

/* Asks the node; the frame is in n->out. */
void pull_ask(struct pull *p, struct node *n);
/* The node has not answered to the end, or was not asked: @why follows its name. Without effect for
 * a node that has answered. */
void pull_lost(struct pull *p, const struct node *n, const char *why);
/* Takes PULLED. -EPROTO with @err: malformed or out of turn. */
int pull_take(struct pull *p, const struct node *n, const struct frame *f, struct error *err);
/* Gives up nodes that have sent nothing for a minute. */
void pull_look(struct pull *p);
bool pull_waits(const struct pull *p); /* for a node; NULL does not */
/* The nodes that have not answered to the end keep their files; @why. */
void pull_cancel(struct pull *p, const char *why);

/* Tells what came, and what did not: as an error with @code, or, with @code 0, as a warning.
 * Returns whether something that was asked for is missing. NULL is fine. */
bool pull_report(const struct pull *p, struct diags *d, int code);
