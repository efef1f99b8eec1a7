/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branch: the node's own ssh to another node, whose agent it carries (--tree)
 *
 * A child process whose standard input and output are one stream. What the head sends is written
 * to it as fast as it takes it, what it says is handed up as it comes, unless paused. No callback
 * runs from inside a call. The loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "wire/tree_msg.h"

struct branch;

struct branch_ops {
        void (*said)(void *ctx, struct branch *b, const void *data, size_t len);
        void (*took)(void *ctx, struct branch *b, uint32_t bytes); /* of branch_send() */
        void (*noise)(void *ctx, struct branch *b, const void *text, size_t len); /* its stderr */
        /* It was reaped and all that it said has been handed up. The last callback. */
        void (*ended)(void *ctx, struct branch *b, int status);
};

/* Starts the program of @o. @known_hosts is a file with the keys of the other node, NULL = the
 * node's own files count. NULL: failed and told in @err, with the program in it. */
struct branch *branch_open(uv_loop_t *loop, const struct branch_order *o, const char *known_hosts,
                           const struct branch_ops *ops, void *ctx, struct error *err);
uint32_t branch_number(const struct branch *b);
pid_t branch_pid(const struct branch *b); /* 0 = reaped */

void branch_send(struct branch *b, const void *data, size_t len);
/* The same for bytes that are not the head's: took() does not tell of them. */
void branch_insert(struct branch *b, const void *data, size_t len);
/* Follows with the bytes of this program's own file. */
void branch_upload(struct branch *b);
/* It has said something that was not read yet. */
bool branch_readable(const struct branch *b);
/* Back pressure: stops or goes on to read what it says. */
void branch_pause(struct branch *b, bool paused);
/* Closes its stream, TERM now, KILL a second later; ended() follows. */
void branch_end(struct branch *b);
/* waitpid() has given its @status. */
void branch_reaped(struct branch *b, int status);
/* No callback follows; the memory goes when the loop has turned. A process that was not reaped is
 * killed. */
void branch_destroy(struct branch *b);
