/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoint_tcp: the TCP port through which PyTorch's TCPStore clients reach the store
 *
 * Clients speak the protocol of wire/tcpstore.h; each connection is a client of the relay. Peers
 * are checked by peer_check.h. A first message that is the probe of wire/endpoint_msg.h is answered
 * and closed; it proves the membership of its node by the token. Of any other connection about
 * which its node must be asked nothing is read before the answer, and such a question is asked when
 * the first bytes have come. Nothing here resolves a name or blocks.
 *
 * Order: a connection has at most one command under way that awaits an answer; later commands stay
 * unread until the answer is written. Commands without an answer (SET, APPEND, MULTI_SET,
 * QUEUE_PUSH) do not delay the next ones. A WAIT or BARRIER is cancelled by the next command:
 * CANCEL_WAIT is answered with 01, even when the wait was over, any other command cancels silently
 * (clients up to 2.0 do that after a timeout). A wait that ends because ranks failed is never
 * answered: the client's own limit or the end of the job ends it.
 *
 * The keys of a second group of PyTorch and of later ones get names of their own (generation.h).
 *
 * A client loses its connection, and no other client is affected, when it breaks the protocol or a
 * limit, when its ADD meets a value that is not a number, or when a command is incomplete and no
 * byte of it comes for ENDPOINT_TCP_PATIENCE_MS. Incomplete commands of all clients take 64 MiB;
 * above that a single large one goes on at a time (unfinished.h). A client that does not read
 * answers is not read either, so that unread answers stay below 4 MiB plus one answer. Call
 * everything on the loop's thread.
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
struct peer_owners;

/*
 * Opens the endpoint. @fd may be a socket bound to a free port of all addresses, not yet listening;
 * -1 = none. The descriptor is taken in any case and used unless @order asks for another place. For
 * ENDPOINT_LOOPBACK the same number is bound on 127.0.0.1, and on ::1 if present. When the port is
 * taken, another is bound. @order is borrowed for the call, @relay and @owners until the last close
 * callback after endpoint_tcp_destroy(). NULL on failure, with @err.
 */
struct endpoint_tcp *endpoint_tcp_create(uv_loop_t *loop, int fd,
                                         const struct endpoint_order *order, struct relay *relay,
                                         struct peer_owners *owners, struct error *err);
/* Prepares for another attempt: the same as destroying the endpoint and creating it with @order,
 * whose mode must be the same, but without giving up the port. */
void endpoint_tcp_renew(struct endpoint_tcp *e, const struct endpoint_order *order);
/* Closes all connections: the clients have ended, and others begin with an empty store. */
void endpoint_tcp_hang_up(struct endpoint_tcp *e);
/* Closes every connection. Memory and relay clients are freed by close callbacks, so let the loop
 * turn once more. NULL is fine. */
void endpoint_tcp_destroy(struct endpoint_tcp *e);

uint32_t endpoint_tcp_port(const struct endpoint_tcp *e);

/* Leaves @fds descriptors of the process to others: further connections are turned away, and the
 * newest are closed. At first half of all descriptors are left. */
void endpoint_tcp_reserve(struct endpoint_tcp *e, size_t fds);

/* Says how many ranks this endpoint serves, before they start. */
void endpoint_tcp_expect(struct endpoint_tcp *e, size_t ranks);

/* Writes the answers that have gathered. Once in every turn of the loop, behind relay_turn(). */
void endpoint_tcp_turn(struct endpoint_tcp *e);

/* Back pressure: while paused no client is served. Pausing twice counts once. */
void endpoint_tcp_pause(struct endpoint_tcp *e, bool paused);

/* A connection, for status reports. */
struct endpoint_tcp_peer {
        const char *addr; /* lent */
        uint16_t port;
        const struct relay_client *client;
};
void endpoint_tcp_each(const struct endpoint_tcp *e,
                       void (*fn)(void *ctx, const struct endpoint_tcp_peer *peer), void *ctx);
uint32_t endpoint_tcp_rejected(const struct endpoint_tcp *e); /* rejected connections */
