/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port: a TCP port that is kept free for MASTER_PORT until the worker that listens on it starts
 */
#pragma once

#include <stdint.h>

struct held_port {
        int fd;          /* -1 = not held */
        uint32_t number; /* 0 = there is none; kept after port_release() */
};

#define PORT_INIT                                                                                  \
        {                                                                                          \
                .fd = -1                                                                           \
        }

/* Binds a free port on all addresses, IPv6 and IPv4, without listening. After a release the same
 * number is taken back if it is still free. Without success @number stays and nothing is held. */
void port_hold(struct held_port *p);
void port_release(struct held_port *p);
