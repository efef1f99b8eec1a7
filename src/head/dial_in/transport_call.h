/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport_call: a command of a manager starts all agents, and the agents connect to the head
 *
 * Links opened in the same turn of the loop make a round, with a listener on a port, a secret, and
 * a process of the command (--start-with srun) for this round alone. Each agent calls the listener
 * (agent/core/call_home.h), says the name of the node, and is joined to the link of the node. The
 * port closes when all have called. A link fails when the node has not called in time, or the
 * command has ended before; the last lines of the command's stderr say why.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "head/nodes/transport.h"

struct call_options {
        const char *via;       /* a value of --start-with with program_link_calls() */
        const char *agent;     /* path of the agent, also on this machine */
        const char *container; /* for the agents, container_order_encode(); NULL = none */
        size_t hosts;          /* numbers of links are below */
        int64_t deadline_ms;   /* for a node to call; DURATION_NEVER */
};

/* @o and all texts there are borrowed for the transport's life. NULL with @err. */
struct transport *transport_call_create(uv_loop_t *loop, const struct call_options *o,
                                        struct error *err);
