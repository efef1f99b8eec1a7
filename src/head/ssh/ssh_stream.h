/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh stream: a channel of a session, joined to a socketpair
 *
 * Opens the channel (a remote command, or a connection onward from a jump host), hands out an end
 * of a socketpair and copies between channel and pair. Bytes not taken by the other side stay in
 * place: no byte is lost and no buffer grows without limit. For the session's thread only.
 */
#pragma once

#include <libssh/libssh.h>
#include <uv.h>

#include "head/nodes/transport.h"

struct ssh_stream;

struct ssh_stream_ops {
        /* The channel is open (the command runs). The callee owns @fd. */
        void (*opened)(void *ctx, int fd);
        /* The server refused the channel or the command; the session goes on. */
        void (*refused)(void *ctx, const char *why);
        void (*noise)(void *ctx, const char *text, size_t len); /* stderr; may be NULL */
        /* The local socket is readable or writable: call ssh_stream_pump(). */
        void (*ready)(void *ctx);
};

/* Creates a stream for @command, or with NULL for a connection to @host:@port. Strings are copied.
 * NULL: no descriptors, see errno. */
struct ssh_stream *ssh_stream_create(uv_loop_t *loop, ssh_session session,
                                     const struct ssh_stream_ops *ops, void *ctx,
                                     const char *command, const char *host, int port);

/* Joins a @channel opened by the server with @fd, which the stream closes later. opened() and
 * refused() are not called. May be called from libssh's callback. */
struct ssh_stream *ssh_stream_join(uv_loop_t *loop, ssh_session session,
                                   const struct ssh_stream_ops *ops, void *ctx, ssh_channel channel,
                                   int fd);

/* Asks the server to forward the user's ssh-agent to the command; to be called before the first
 * pump. The server does not answer: each use of the agent comes as a separate channel. */
void ssh_stream_ask_agent(struct ssh_stream *s);

/* Continues to open the channel, then moves bytes both ways until either side would block. 0, or -1
 * if the session failed. */
int ssh_stream_pump(struct ssh_stream *s);

/* Tells whether both sides have ended and every byte was delivered, or the channel was refused. */
bool ssh_stream_done(const struct ssh_stream *s);

/* Tells whether the exit status or the signal of the remote command is known. */
bool ssh_stream_exited(const struct ssh_stream *s, int *ret_status, const char **ret_signal);

/* Closes the stream, before the session is freed. No callback follows; the memory is freed by the
 * loop. */
void ssh_stream_close(struct ssh_stream *s);

/* Tells whether packets for this stream came since the last pump, also while another was pumped. */
bool ssh_stream_active(const struct ssh_stream *s);
