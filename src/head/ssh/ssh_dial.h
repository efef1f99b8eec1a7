/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh dial: a TCP connection to the first address that answers
 *
 * The addresses are tried one after the other, each for its share of the time. The socket is
 * close-on-exec and non-blocking, sends small packets at once, and notices dead peers.
 */
#pragma once

#include <netdb.h>
#include <uv.h>

struct ssh_dial;

/* Once, from the loop: the socket, now the callee's, or -1 with the errno and the address of the
 * last try ("10.0.1.9"). The dial is gone afterwards. */
typedef void (*ssh_dial_done)(void *ctx, int fd, int error, const char *address);

/* @addresses is borrowed until the end. */
struct ssh_dial *ssh_dial_start(uv_loop_t *loop, const struct addrinfo *addresses, int timeout_ms,
                                ssh_dial_done done, void *ctx);
void ssh_dial_cancel(struct ssh_dial *d); /* no callback follows; NULL is fine */

/* Asks the kernel to acknowledge at once: sshd would wait 40 ms for a delayed one. */
void ssh_dial_quick_ack(int fd);
