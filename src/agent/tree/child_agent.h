/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child_agent: the ssh process to the agent of another node (--tree), or another agent on this node
 * (hold)
 *
 * A child process with one stream as standard input and output. Bytes of the head are written as
 * fast as the process reads; output is passed on at once, unless paused. No callback runs from
 * inside a call. Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "wire/tree_msg.h"

struct child_agent;

struct child_agent_ops {
        void (*received)(void *ctx, const void *data, size_t len);
        void (*written)(void *ctx, uint32_t bytes); /* of child_agent_send(), but inserted ones */
        void (*noise)(void *ctx, const void *text, size_t len); /* text from stderr */
        /* The process was reaped and all output has been passed on. The last callback. */
        void (*ended)(void *ctx, int status);
};

/* Starts the program of @o. @known_hosts is a file with the keys of the other node, NULL = the
 * node's own files count. NULL on failure, with the program's name in @err. */
struct child_agent *child_agent_open(uv_loop_t *loop, const struct child_agent_order *o,
                                     const char *known_hosts, const struct child_agent_ops *ops,
                                     void *ctx, struct error *err);
pid_t child_agent_pid(const struct child_agent *c); /* 0 = reaped */

/* @inserted: bytes that are not the head's, and are not reported through written(). */
void child_agent_send(struct child_agent *c, const void *data, size_t len, bool inserted);
/* Follows with the bytes of this program's own file. */
void child_agent_upload(struct child_agent *c);
/* True when output waits to be read. */
bool child_agent_readable(const struct child_agent *c);
/* Back pressure: stops or continues reading. */
void child_agent_pause(struct child_agent *c, bool paused);
/* Closes the stream, sends TERM now and KILL a second later; ended() follows. An agent on this node
 * gets no TERM, and the time to end its ranks. */
void child_agent_end(struct child_agent *c);
/* Takes the @status of waitpid(). */
void child_agent_reaped(struct child_agent *c, int status);
/* Frees the object when the loop has turned, without callbacks. Kills a process that was not
 * reaped. */
void child_agent_destroy(struct child_agent *c);
