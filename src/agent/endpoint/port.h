/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port: a TCP port kept free for MASTER_PORT until the rank with that address starts
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

struct held_port {
        int fd;          /* -1 = not held */
        int lock;        /* on @number, against other agents; -1 = none */
        uint32_t number; /* 0 = there is none; kept after port_release() */
};

#define PORT_INIT                                                                                  \
        {                                                                                          \
                .fd = -1, .lock = -1                                                               \
        }

/* Binds a free port on all addresses, IPv6 and IPv4, without listening, and locks it. After a
 * release the same number is bound again if still free. On failure, with errno, @number stays and
 * nothing is held. */
void port_hold(struct held_port *p);
/* Frees the port for a rank. The lock stays: no other agent gives it to its ranks. */
void port_release(struct held_port *p);
/* Releases and unlocks the port, and forgets its number. */
void port_drop(struct held_port *p);

/* Ports for the ranks of an attempt, held from PORTS to the start of the ranks, and locked until
 * others are held or they are dropped. */
struct reserved_ports {
        struct held_port *v;
        uint32_t n;
};

/* Holds @n free ports in place of those before. 0 with the numbers in @p, or a negative errno when
 * not all could be bound; nothing is held then. */
int ports_hold(struct reserved_ports *p, uint32_t n);
/* Frees the ports for the ranks, right before they start. */
void ports_release(struct reserved_ports *p);
/* Releases and unlocks the ports; also with zeroed @p. */
void ports_drop(struct reserved_ports *p);

/* Returns a TCP socket bound to @addr and fills in a port that was 0, none that is locked; or
 * -errno. @v6only: an IPv6 address does not include IPv4. */
int port_bind(struct sockaddr *addr, socklen_t len, int v6only);
