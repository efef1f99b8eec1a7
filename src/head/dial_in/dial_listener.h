/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_listener: the port of node 0, and the connections that have not joined
 *
 * Those are peers of a pool of a fixed size. When all are in use, the next connection stays in the
 * kernel's queue until the oldest of them are dropped. A peer that joins leaves the pool and
 * belongs to the owner of the listener.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "head/dial_in/dial_in.h"
#include "head/dial_in/dial_peer.h"

enum { DIAL_POOL = 128 };

struct dial_listener {
        uv_tcp_t tcp;
        struct dial_peer *pool[DIAL_POOL];
        bool crowded; /* a connection waits for a peer */
        bool closing;
        const uint8_t *psk;
        struct dial_rejects *rejects;
        const struct dial_peer_ops *ops; /* of the peers */
        void *owner;                     /* of the peers */
};

/* Opens the port at the first address of @host that this machine has and other machines reach; at
 * all addresses if there is none, as behind a translated address or where node 0 knows itself as
 * localhost, or if @host is NULL. The other fields of @l are set. -errno with @err: in use, for
 * example; no handle is left open. */
int dial_listener_open(struct dial_listener *l, uv_loop_t *loop, const char *host, int port,
                       struct error *err);
/* Drops connections that have not joined in time; to be called several times a second. */
void dial_listener_tick(struct dial_listener *l);
/* Counts a connection that was no node's. */
void dial_listener_reject(struct dial_listener *l, const struct dial_peer *p,
                          enum dial_peer_fault fault);
/* Takes a peer that joined out of the pool. */
void dial_listener_release(struct dial_listener *l, struct dial_peer *p);
/* A peer was closed. Returns whether it is one of the pool, which goes on to use it. */
bool dial_listener_closed(struct dial_listener *l, const struct dial_peer *p);

/* Closes the port, with @closed, and the peers of the pool. */
void dial_listener_close(struct dial_listener *l, uv_close_cb closed);
/* Whether all peers of the pool are closed. */
bool dial_listener_idle(const struct dial_listener *l);
void dial_listener_finish(struct dial_listener *l); /* frees the pool, when idle */
