/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate: who may come in through the TCP endpoint
 *
 * PyTorch's protocol carries no secret, so the connection itself is looked at. From this machine: a
 * process of our own uid, says the kernel (sockdiag.h). From elsewhere: the address is that of a
 * node of the job. Everybody else is a stranger: counted, and told once per address.
 */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"

struct peer_check;

struct tcp_peer {
        char addr[INET6_ADDRSTRLEN]; /* numeric; of IPv4 as such */
        uint16_t port;
};

/* @peers: numeric addresses of the job's nodes, lent for the call; what is none is left out. */
struct peer_check *peer_check_create(const struct strv *peers);
void peer_check_destroy(struct peer_check *c); /* NULL is fine */

/* 0: the other end of @fd may come in. -EPERM: it may not, or whose it is cannot be told.
 * -ENOTCONN: it has gone again, so there is nobody to judge. @ret is filled in any case. */
int peer_check_admit(struct peer_check *c, int fd, struct tcp_peer *ret, struct error *why);

/* Counts a stranger, and logs the first one from its address. */
void peer_check_reject(struct peer_check *c, const struct tcp_peer *peer, const char *why);
uint32_t peer_check_rejected(const struct peer_check *c);
