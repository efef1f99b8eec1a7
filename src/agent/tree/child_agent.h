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

struct child_agent;

struct child_agent_ops {
        void (*received)(void *ctx, struct child_agent *c, const void *data, size_t len);
        void (*written)(void *ctx, struct child_agent *c,
                        uint32_t bytes); /* of child_agent_send() */
        void (*noise)(void *ctx, struct child_agent *c, const void *text,
                      size_t len); /* its stderr */
        /* It was reaped and all that it said has been handed up. The last callback. */
        void (*ended)(void *ctx, struct child_agent *c, int status);
};

/* Starts the program of @o. @known_hosts is a file with the keys of the other node, NULL = the
 * node's own files count. NULL: failed and told in @err, with the program in it. */
struct child_agent *child_agent_open(uv_loop_t *loop, const struct child_agent_order *o,
                                     const char *known_hosts, const struct child_agent_ops *ops,
                                     void *ctx, struct error *err);
uint32_t child_agent_number(const struct child_agent *c);
pid_t child_agent_pid(const struct child_agent *c); /* 0 = reaped */

void child_agent_send(struct child_agent *c, const void *data, size_t len);
/* The same for bytes that are not the head's: took() does not tell of them. */
void child_agent_insert(struct child_agent *c, const void *data, size_t len);
/* Follows with the bytes of this program's own file. */
void child_agent_upload(struct child_agent *c);
/* It has said something that was not read yet. */
bool child_agent_readable(const struct child_agent *c);
/* Back pressure: stops or goes on to read what it says. */
void child_agent_pause(struct child_agent *c, bool paused);
/* Closes its stream, TERM now, KILL a second later; ended() follows. */
void child_agent_end(struct child_agent *c);
/* waitpid() has given its @status. */
void child_agent_reaped(struct child_agent *c, int status);
/* No callback follows; the memory goes when the loop has turned. A process that was not reaped is
 * killed. */
void child_agent_destroy(struct child_agent *c);
