/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_push: files pushed by the head to this node before the ranks start
 */
#pragma once

#include "agent/contain/guard.h"
#include "agent/core/uplink.h"
#include "agent/files/file_cache.h"

enum push_state {
        PUSH_NONE,
        PUSH_FETCHING, /* offered, and not all files are here */
        PUSH_ENDED,    /* complete or failed; the head knows which */
};

struct agent_push {
        enum push_state state;
        struct file_cache cache;
        struct uplink *up;
        struct guard_notes *notes;  /* NULL = no guard */
        void (*changed)(void *ctx); /* after a change of @state */
        void *ctx;
};

/* Orders of the head: a manifest, a piece of a missing file, another look at the cache. */
void agent_push_offer(struct agent_push *p, const struct frame *f);
void agent_push_take_chunk(struct agent_push *p, const struct frame *f);
void agent_push_look(struct agent_push *p, const struct frame *f);

/* Appends the CHUNK with a piece of a cached file, for a child node. 0, or -1: reported to the head
 * as a failed push. */
int agent_push_read_chunk(struct agent_push *p, struct buf *to, uint32_t entry, uint64_t offset,
                          uint32_t len);
/* The folder of the pushed files, borrowed; NULL = nothing was pushed. */
const char *agent_push_dir(const struct agent_push *p);
/* Removes the files unless kept, and warns of what is left. */
void agent_push_close(struct agent_push *p);
