/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Push_receiver: files pushed by the head to this node before the ranks start
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/frame.h"
#include "wire/push_msg.h"

struct file_cache;
struct push_pack;
struct push_receiver;
struct uplink;

/* @changed is called when the push begins, ends, or has found the folder. @up is borrowed. */
struct push_receiver *push_receiver_create(struct uplink *up, void (*changed)(void *ctx),
                                           void *ctx);
void push_receiver_destroy(struct push_receiver *p); /* closed before */

/* Orders of the head, for @receiver, a struct push_receiver: a manifest, another look at the
 * cache. */
void push_receiver_on_offer(void *receiver, const struct frame *f);
void push_receiver_on_look(void *receiver, const struct frame *f);
/* Lists the staged folders, and removes some: no part of a push. */
void push_receiver_on_stage(void *receiver, const struct frame *f);

/* Stores pieces of missing files, from any sender. */
void push_receiver_take(struct push_receiver *p, const struct push_pack *m);
/* Returns whether files were offered, and not all are here. */
bool push_receiver_is_fetching(const struct push_receiver *p);
/* The folder of the files of a use, borrowed; NULL = nothing was pushed. */
const char *push_receiver_dir(const struct push_receiver *p, enum push_use use);
const struct file_cache *push_receiver_cache(const struct push_receiver *p); /* borrowed */
/* Files of ranks were sent to the head: files left in the folder need no warning. */
void push_receiver_mark_pulled(struct push_receiver *p);
/* Removes the files unless kept, and warns of remaining entries. */
void push_receiver_close(struct push_receiver *p);
