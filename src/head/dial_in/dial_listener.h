/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_listener: the port of node 0, and the connections before JOIN
 *
 * A connection is always accepted. Among too many connections without a proof the oldest goes, of
 * the same address when the address has more than a fair share: silent connections keep no node
 * out. Joined peers are in another list until the close.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "head/dial_in/dial_in.h"
#include "head/dial_in/dial_peer.h"

enum {
        DIAL_SILENT_MAX = 256,  /* connections without a greeting */
        DIAL_SHARE = 64,        /* ... of an address */
        DIAL_JOINING_MAX = 512, /* with a greeting, possibly a replay */
        DIAL_LINGER_MS = 5000,  /* for a peer to close after END */
};

struct dial_listener {
        uv_tcp_t tcp;
        LIST_HEAD(, dial_peer) fresh; /* have not joined, or are closing; the newest first */
        LIST_HEAD(, dial_peer) joined;
        const uint8_t *psk;
        struct dial_rejects *rejects;
        const struct dial_peer_ops *ops; /* of the peers */
        void *owner;                     /* of the peers */
};

/* Opens the port at the first address of @host on this machine and within reach of others; at
 * all addresses if there is none, as behind a translated address or where node 0 knows itself as
 * localhost, or if @host is NULL. The other fields of @l are set, and zero in .tcp. -errno with
 * @err: in use, for example. If libuv has refused the port, .tcp is a handle by then (type UV_TCP),
 * which is being closed, with @closed. */
int dial_listener_open(struct dial_listener *l, uv_loop_t *loop, const char *host, int port,
                       uv_close_cb closed, struct error *err);
/* Drops connections without JOIN in time; to be called several times a second. */
void dial_listener_tick(struct dial_listener *l);
/* Counts a connection of no node. */
void dial_listener_reject(struct dial_listener *l, const struct dial_peer *p,
                          enum dial_peer_fault fault);
/* A peer has joined. */
void dial_listener_join(struct dial_listener *l, struct dial_peer *p);
/* Closes peers 5 s after END. Returns whether others are ending. */
bool dial_listener_linger(struct dial_listener *l);
/* Frees a closed peer. Returns whether the peer had joined. */
bool dial_listener_closed(struct dial_listener *l, struct dial_peer *p);

/* Closes the port, with @closed, and the peers before JOIN. */
void dial_listener_close(struct dial_listener *l, uv_close_cb closed);
/* Whether there is no peer any more. */
bool dial_listener_idle(const struct dial_listener *l);
