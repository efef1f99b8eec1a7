/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump_sender: sends the dumps of PyTorch's flight recorder to the head
 *
 * Ranks write dumps into the job's folder as nccl_trace_rank_<rank>, with PyTorch's own rank
 * (wire/env/nccl_env.h). The dumps are read when no process of the attempt is left; of files larger
 * than MSG_MAX_DUMP only the size is sent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/uplink.h"

struct dump_sender;

struct dump_sender *dump_sender_create(void);
void dump_sender_destroy(struct dump_sender *s);
/* An attempt begins. @keep: send the content of dumps, too. */
void dump_sender_begin(struct dump_sender *s, bool keep);

/* Looks for dumps in @dir, NULL = there is no folder. Dumps beyond MSG_MAX_DUMPS are left out, with
 * a line in the log. */
void dump_sender_find(struct dump_sender *s, const char *dir);
/* Sends as much as the uplink takes now; true when nothing is left. Call again when the uplink has
 * drained. */
bool dump_sender_run(struct dump_sender *s, struct uplink *up);
/* Frees the list and closes the file; the files stay. */
void dump_sender_close(struct dump_sender *s);
