/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmi_port: the port on loopback at which ranks reach PMI (PMI_PORT)
 *
 * For ranks without the descriptor of PMI_FD: a wrapper closes the descriptor, or a daemon starts
 * the program. A client connects and sends "cmd=initack pmiid=N" with the number of PMI_ID; from
 * then on the connection belongs to the rank. Source: PMII_Set_from_port() of MPICH, and Hydra's
 * option -pmi-port.
 *
 * A connection of another user is refused (agent/endpoint/peer_check.h). At most
 * PMI_PORT_WAITING_MAX connections wait for their first line: a further connection closes the
 * oldest. The first refusals are logged with HN_PMI_REFUSED. Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/error_number.h"

enum {
        PMI_PORT_WAITING_MAX = 256,
        PMI_PORT_LINE_MAX = 128, /* of the first line, with the LF */
};

struct pmi_port;

struct pmi_port_ops {
        /* A process of the own user has sent the first line, @len bytes without the LF, which are
         * followed by a NUL and may be changed. 0: the callee has taken over @fd, the connection. A
         * negative errno with @why: refused. */
        int (*claim)(void *ctx, int fd, char *line, size_t len, struct error *why);
};

/* Listens on a free port. NULL with @err: no port. */
struct pmi_port *pmi_port_open(uv_loop_t *loop, struct pmi_port_ops ops, void *ctx,
                               struct error *err);
/* Closes the port and the connections not taken over; close callbacks free the memory, so let the
 * loop turn once more. NULL is fine. */
void pmi_port_close(struct pmi_port *p);
uint32_t pmi_port_number(const struct pmi_port *p);
