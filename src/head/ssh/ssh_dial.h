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

struct ssh_dial;

/* Called once, from the loop, with the socket, owned by the callee, or with -1, the errno and the
 * address of the last attempt ("10.0.1.9"). The dial is freed afterwards. */
typedef void (*ssh_dial_done)(void *ctx, int fd, int error, const char *address);

/* Starts a dial. @addresses is borrowed until @done is called. */
struct ssh_dial *ssh_dial_start(uv_loop_t *loop, const struct addrinfo *addresses, int timeout_ms,
                                ssh_dial_done done, void *ctx);
void ssh_dial_cancel(struct ssh_dial *d); /* no callback follows; NULL does nothing */
