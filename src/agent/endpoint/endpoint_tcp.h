/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Door_tcp: the TCP port through which PyTorch's TCPStore clients reach the store
 *
 * Clients speak the protocol of wire/tcpstore.h; their commands become requests of a relay client
 * each. Who may come in is the gate's business (peer_check.h). A first message that is the probe of
 * wire/endpoint_msg.h is answered and closed. Nothing here resolves a name or waits for anybody.
 *
 * Order: a connection has at most one command under way whose answer it awaits; what it sent behind
 * that stays unread until the answer is written. Commands without an answer (SET, APPEND,
 * MULTI_SET, QUEUE_PUSH) do not hold up what follows. A WAIT or BARRIER is different: whatever
 * comes next takes it back, CANCEL_WAIT with a 01, which is sent even when the wait was over, any
 * other command silently (clients up to 2.0 do that after a timeout). A wait that ends because
 * ranks failed is not answered at all: the client's own limit or the end of the job ends it.
 *
 * A client that breaks the protocol or a limit, whose ADD meets a value that is no number, or that
 * says half a command and no whole one for ENDPOINT_TCP_PATIENCE_MS, loses its connection and
 * nobody else's. One that does not read its answers is not read either, so what waits for it stays
 * below 4 MiB and one answer. Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "store/relay/relay.h"
#include "wire/endpoint_msg.h"

enum { ENDPOINT_TCP_PATIENCE_MS = 30000 };

struct endpoint_tcp;

/*
 * Listens where @order says, on @fd when that is the descriptor of a socket that is bound to a free
 * port of all addresses and does not listen yet (it is taken in any case; -1 = there is none). For
 * ENDPOINT_LOOPBACK the same number is bound on 127.0.0.1, and on ::1 if there is one. When the
 * port cannot be had, another one is. @order is lent for the call, @relay is borrowed until the
 * last close callback after endpoint_tcp_destroy(). NULL: failed and told in @err.
 */
struct endpoint_tcp *endpoint_tcp_create(uv_loop_t *loop, int fd,
                                         const struct endpoint_order *order, struct relay *relay,
                                         struct error *err);
/* For another attempt: as if it had been destroyed and created with @order, whose mode must be the
 * same, but nobody else can take the port in between. */
void endpoint_tcp_renew(struct endpoint_tcp *e, const struct endpoint_order *order);
/* Closes every connection. Memory and relay clients are freed by close callbacks, so let the loop
 * turn once more. NULL is fine. */
void endpoint_tcp_destroy(struct endpoint_tcp *e);

uint32_t endpoint_tcp_port(const struct endpoint_tcp *e);

/* Writes the answers that have gathered. Once in every turn of the loop, behind relay_turn(). */
void endpoint_tcp_turn(struct endpoint_tcp *e);

/* Back pressure: while paused no client is served. Pausing twice counts once. */
void endpoint_tcp_pause(struct endpoint_tcp *e, bool paused);

/* For the roster. */
struct endpoint_tcp_peer {
        const char *addr; /* lent */
        uint16_t port;
        const struct relay_client *client;
};
void endpoint_tcp_each(const struct endpoint_tcp *e,
                       void (*fn)(void *ctx, const struct endpoint_tcp_peer *peer), void *ctx);
uint32_t endpoint_tcp_rejected(
        const struct endpoint_tcp *e); /* connections that were turned away */
