/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_helper: the process hnlaunch-pmix, and frames to and from it
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

struct pmix_helper;

struct pmix_helper_ops {
        void (*frame)(void *ctx, const struct frame *f); /* lent */
        void (*ended)(
                void *ctx); /* the helper has closed the socket, or has sent a malformed frame */
};

/* Starts the helper with @env, which the loader reads to find libraries. It is killed when the
 * agent ends. NULL with @err: no memory file, process or descriptor; or the node's loader is
 * missing. */
struct pmix_helper *pmix_helper_start(uv_loop_t *loop, const struct strv *env,
                                      struct pmix_helper_ops ops, void *ctx, struct error *err);
pid_t pmix_helper_pid(const struct pmix_helper *h);
/* Returns the queue for frames; call pmix_helper_flush() after appending. */
struct buf *pmix_helper_out(struct pmix_helper *h);
void pmix_helper_flush(struct pmix_helper *h);
/* Reads what the helper has sent by now. */
void pmix_helper_catch_up(struct pmix_helper *h);
/* Kills the process, which the agent reaps, and frees all memory when the loop has turned. May be
 * called from ops. */
void pmix_helper_kill(struct pmix_helper *h);
