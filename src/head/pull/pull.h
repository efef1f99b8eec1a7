/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull: brings files of the nodes home when the ranks have ended (--pull PATH[:DEST])
 *
 * All nodes are asked at once and answer with PULLED (wire/push_msg.h). PATH on HOST becomes
 * DEST/HOST/PATH (pull_write.h). A path may be missing on some nodes. Files are written at once, so
 * a slow file system slows the nodes down. Main loop's thread only.
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
 * (exit 64 or 73): a PATH without a name, two PATHs with the same place, or a DEST without write
 * permission. */
struct pull *pull_create(const struct strv *words, const char *here, const char *run_id,
                         size_t n_nodes, struct diags *d);
void pull_destroy(struct pull *p); /* NULL is fine */

/* Asks the node; the frame is in n->out. */
void pull_ask(struct pull *p, struct node *n);
/* Gives a node up before the end of the answer, or before the request: @why follows the name. Does
 * nothing for a node with a complete answer. */
void pull_lost(struct pull *p, const struct node *n, const char *why);
/* Takes PULLED. -EPROTO with @err: malformed or out of turn. */
int pull_take(struct pull *p, const struct node *n, const struct frame *f, struct error *err);
/* Gives up nodes after a minute of silence. */
void pull_look(struct pull *p);
bool pull_waits(const struct pull *p); /* for a node; NULL does not */
/* Gives up all nodes without a complete answer; @why. */
void pull_cancel(struct pull *p, const char *why);

/* Reports complete and missing files: as an error with @code, or, with @code 0, as a warning.
 * Returns whether a requested file is missing. NULL is fine. */
bool pull_report(const struct pull *p, struct diags *d, int code);
