/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh stream: one channel of a session, joined to a socketpair
 *
 * Opens the channel (a remote command, or a connection onward from a jump host), hands out one end
 * of a socketpair and copies between channel and pair. Bytes wait where they are when the other
 * side does not take them: nothing is lost and nothing grows. Belongs to the session's thread.
 */
#pragma once

#include <libssh/libssh.h>
#include <uv.h>

#include "head/nodes/transport.h"

struct ssh_stream;

struct ssh_stream_ops {
        /* The channel is open (the command runs). The callee owns @fd. */
        void (*opened)(void *ctx, int fd);
        /* It could not be opened, the session itself is well. */
        void (*refused)(void *ctx, const char *why);
        void (*noise)(void *ctx, const char *text, size_t len);
        /* The local side has room or bytes: call ssh_stream_pump(). */
        void (*ready)(void *ctx);
};

/* A command, or with @command NULL a connection to @host:@port. Strings are copied. */
struct ssh_stream *ssh_stream_create(uv_loop_t *loop, ssh_session session,
                                     const struct ssh_stream_ops *ops, void *ctx,
                                     const char *command, const char *host, int port);

/* The same for a @channel that the server opens, and @fd, which it takes; not opened() nor
 * refused(). May be called from libssh's callback. */
struct ssh_stream *ssh_stream_join(uv_loop_t *loop, ssh_session session,
                                   const struct ssh_stream_ops *ops, void *ctx, ssh_channel channel,
                                   int fd);

/* Before the first pump: the server is asked to offer our ssh-agent to the command. It does not
 * answer; who uses the offer comes as a channel of its own. */
void ssh_stream_ask_agent(struct ssh_stream *s);

/* Goes on with opening, then moves bytes both ways until either side would block. 0, or -1 when
 * the session failed. */
int ssh_stream_pump(struct ssh_stream *s);

/* Both sides have ended and everything was delivered, or it was refused. */
bool ssh_stream_done(const struct ssh_stream *s);

/* The channel was opened and the remote command's or session's end is known. */
bool ssh_stream_exited(const struct ssh_stream *s, int *ret_status, const char **ret_signal);

/* No callback follows. Before the session is freed. The memory goes when the loop has run on. */
void ssh_stream_close(struct ssh_stream *s);

/* Packets came for this stream since its last pump, perhaps while another one was pumped. */
bool ssh_stream_active(const struct ssh_stream *s);
