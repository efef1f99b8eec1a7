/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer_check: decides which connections the TCP endpoint accepts
 *
 * PyTorch's protocol carries no secret, so the peer itself is checked. A peer on this machine must
 * be a process of our own uid, by the kernel's account (sockdiag.h). A peer elsewhere must have the
 * address of a node of the job, and unless net.store_peers is node, that node's agent must say that
 * the peer is a process of the job's user (peer_owners.h). Other connections are unauthorized:
 * counted, and logged once per address.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/endpoint_msg.h"

struct peer_check;

struct tcp_peer {
        char addr[INET6_ADDRSTRLEN]; /* numeric; IPv4 without the prefix ::ffff: */
        uint16_t port, own_port;
        struct owner_ends ends;
};

/* @peers: numeric addresses of the job's nodes, borrowed for the call; other words are ignored.
 * @ask_owners: an address alone does not admit. */
struct peer_check *peer_check_create(const struct strv *peers, bool ask_owners);
void peer_check_destroy(struct peer_check *c); /* NULL is fine */

/* Checks the other end of @fd. 0: accepted. 1: accepted if its node says so. -EPERM: unauthorized,
 * or the owner is unknown. -ENOTCONN: already closed, not worth a word. @ret is filled in any case.
 */
int peer_check_admit(struct peer_check *c, int fd, struct tcp_peer *ret, struct error *why);

/* Whether the other end was closed, also for writing only: the kernel may know no owner of it any
 * more, or that of a later connection from the same port. */
bool peer_check_disconnected(int fd);

/* Counts an unauthorized connection, and logs the first one of its address. @id: number of the
 * warning, 0 = none. */
void peer_check_reject(struct peer_check *c, const struct tcp_peer *peer, int id, const char *why);
uint32_t peer_check_rejected(const struct peer_check *c);
