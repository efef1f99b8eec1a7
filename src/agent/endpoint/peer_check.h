/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer_check: decides which connections the TCP endpoint accepts
 *
 * PyTorch's protocol carries no secret, so the peer itself is checked. A peer on this machine must
 * be a process of our own uid, by the kernel's account (sockdiag.h); a peer elsewhere must have the
 * address of a node of the job. Other connections are unauthorized: counted, and logged once per
 * address.
 */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"

struct peer_check;

struct tcp_peer {
        char addr[INET6_ADDRSTRLEN]; /* numeric; IPv4 without the prefix ::ffff: */
        uint16_t port;
};

/* @peers: numeric addresses of the job's nodes, borrowed for the call; other words are ignored. */
struct peer_check *peer_check_create(const struct strv *peers);
void peer_check_destroy(struct peer_check *c); /* NULL is fine */

/* Checks the other end of @fd. 0: accepted. -EPERM: unauthorized, or the owner is unknown.
 * -ENOTCONN: already closed, not worth a word. @ret is filled in any case. */
int peer_check_admit(struct peer_check *c, int fd, struct tcp_peer *ret, struct error *why);

/* Counts an unauthorized connection, and logs the first one of its address. */
void peer_check_reject(struct peer_check *c, const struct tcp_peer *peer, const char *why);
uint32_t peer_check_rejected(const struct peer_check *c);
