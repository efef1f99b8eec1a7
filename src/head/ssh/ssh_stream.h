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
        void (*noise)(void *ctx, const char *text, size_t len); /* stderr; may be NULL */
        /* The local socket is readable or writable: call ssh_stream_pump(). */
        void (*ready)(void *ctx);
};

struct ssh_stream_order {
        const char *command; /* borrowed until the stream is closed; NULL = connect to @host */
        /* Ask the server to forward the user's ssh-agent to the command. The server does not
         * answer: each use of the agent comes as a separate channel. */
        bool wants_agent;
        const char *host; /* copied */
        int port;
};

/* How a stream ended. After a refusal the session goes on. */
struct ssh_stream_end {
        char refused[200]; /* the server's reason to refuse the channel or the command */
        bool exited;       /* the exit status or the signal of the command is known */
        int exit_status;
        char exit_signal[32];
};

/* Creates a stream. NULL: no descriptors or memory, see errno. */
struct ssh_stream *ssh_stream_create(uv_loop_t *loop, ssh_session session,
                                     const struct ssh_stream_ops *ops, void *ctx,
                                     const struct ssh_stream_order *order);

/* Joins a @channel opened by the server with @fd, which the stream closes later. NULL: as above;
 * @fd is closed. May be called from libssh's callback. */
struct ssh_stream *ssh_stream_join(uv_loop_t *loop, ssh_session session,
                                   const struct ssh_stream_ops *ops, void *ctx, ssh_channel channel,
                                   int fd);

/* Continues to open the channel, then moves bytes both ways until either side would block. 0, or if
 * the session failed -1, or -EPROTO: the server has sent more bytes than the window allows. */
int ssh_stream_pump(struct ssh_stream *s);

/* Returns the caller's end of the socketpair, once: when the channel is open and the command runs.
 * -1 before and afterwards. */
int ssh_stream_take_fd(struct ssh_stream *s);

/* Returns the end of a stream once both sides have ended and every byte was delivered, or the
 * channel was refused. NULL before. */
const struct ssh_stream_end *ssh_stream_done(const struct ssh_stream *s);

/* Closes the stream, before the session is freed. No callback follows; the memory is freed by the
 * loop. */
void ssh_stream_close(struct ssh_stream *s);

/* Tells whether bytes wait for the caller to read. */
bool ssh_stream_blocked(const struct ssh_stream *s);

/* Tells whether this stream has something to do since its last pump: packets came, or the server
 * takes bytes again, while another stream was pumped. */
bool ssh_stream_active(const struct ssh_stream *s);
