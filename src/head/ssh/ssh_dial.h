/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh dial: a TCP connection to the first answering address
 *
 * The addresses are tried in turn, each for a share of the time. The socket is close-on-exec and
 * non-blocking, sends small packets at once, and detects dead peers.
 */
#pragma once

#include <netdb.h>
#include <uv.h>

#include "head/ssh/ssh_source.h"

struct ssh_dial;

/* The last attempt. */
struct ssh_dial_failure {
        int error;        /* errno */
        bool binding;     /* the socket got no local address, and nothing was sent */
        char address[64]; /* "10.0.1.9" */
};

/* Called once, from the loop, with the socket, owned by the callee, or with -1 and the reason. The
 * dial is freed afterwards. */
typedef void (*ssh_dial_done)(void *ctx, int fd, const struct ssh_dial_failure *why);

/* Starts a dial of @timeout_ms. The connection ends when the peer has acknowledged nothing for
 * @silence_ms and a minute. @addresses and @source (NULL = any) are borrowed until @done is called.
 */
struct ssh_dial *ssh_dial_start(uv_loop_t *loop, const struct addrinfo *addresses,
                                const struct ssh_source *source, int timeout_ms, int64_t silence_ms,
                                ssh_dial_done done, void *ctx);
void ssh_dial_cancel(struct ssh_dial *d); /* no callback follows; NULL does nothing */
