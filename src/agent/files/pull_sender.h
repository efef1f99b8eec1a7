/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull_sender: sends files of ended ranks to the head (--pull)
 *
 * A path of the order may lead through links; below the path no link is followed. A file is sent up
 * to the size at the time of opening. Ranks may have left anything: other kinds of files are told
 * and left, as are unreadable files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/core/uplink.h"
#include "wire/push_msg.h"

struct pull_sender;

struct pull_sender *pull_sender_create(uv_loop_t *loop);
/* Begins to send; takes over the content of @order. An order before is forgotten. @cwd is borrowed
 * until the end. */
void pull_sender_begin(struct pull_sender *s, struct pull_order *order, const char *cwd);
/* Sends as much as the uplink takes now. Call in every turn of the loop. */
void pull_sender_turn(struct pull_sender *s, struct uplink *up);
void pull_sender_stop(struct pull_sender *s);
/* Stops, and frees @s in the next turn of the loop. */
void pull_sender_destroy(struct pull_sender *s);
