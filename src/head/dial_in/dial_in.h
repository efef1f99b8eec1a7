/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial-in: the platform starts the same hnlaunch on every node (--dial-in)
 *
 * Node 0 is the head, and runs ranks as every node. Each other node connects to node 0 and runs an
 * agent; the connection carries the agent's input and output (wire/noise/dial.h). All layers above
 * are as over ssh.
 *
 *   dial_place.c         the place of node 0, and the number of this node
 *   dial_secret.c        the common secret of the nodes
 *   transport_dial_in.c  node 0: the listener, and which connection is which node
 *   dial_peer.c          node 0: a connection
 *   dial_call.c          other nodes: connects until node 0 takes the node in
 *   dial_node.c          other nodes: the agent, and the end of the job
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "head/dial_in/dial_secret.h"
#include "head/hosts/hosts.h"
#include "head/model/dial_env.h"
#include "head/nodes/transport.h"
#include "head/options/options.h"
#include "head/term/diag.h"

/* Connections of no node. */
struct dial_rejects {
        size_t foreign; /* another protocol or another secret */
        size_t silent;  /* closed, or no greeting in time */
        size_t replayed;
        char last[64]; /* address of the newest */
};

struct dial_in {
        struct dial_place place;
        struct dial_secret secret;
        bool quiet;
        int64_t timeout_ms;  /* for all nodes to come; DURATION_NEVER */
        int64_t grace_ms;    /* --grace */
        struct hosts *hosts; /* of node 0: gets the names of the nodes */
        struct dial_rejects rejects;
        bool met;            /* a node has proved the secret */
        struct dial_end end; /* told to the nodes when the transport is destroyed */
};

/* Fills @d from the options: the place and the secret. 0, or -EINVAL with an error in @diags. */
int dial_in_load(struct dial_in *d, const struct options *o, struct diags *diags);
/* Frees @d, wipes the secret and removes the file in the home. NULL does nothing. */
void dial_in_destroy(struct dial_in *d);

/* Adds a host for each node: node 0 is local, the others are called node1 ... until a connected
 * node tells the real name. */
void dial_in_add_hosts(struct dial_in *d, struct hosts *hosts);

/* Warns of connections of no node (HN331). */
void dial_in_report(const struct dial_in *d, struct diags *diags);

/* Creates the transport of node 0 with a link per dialed-in node. @d is borrowed until the
 * transport's handles are closed. NULL with @err: the port cannot be opened. */
struct transport *transport_dial_in_create(uv_loop_t *loop, struct dial_in *d, struct error *err);

/* Runs another node than node 0 until the job ends. Returns the exit code; a message not
 * told yet is in @diags, else a verdict in @d->end.text. @agent is the path of the agent,
 * @container the order for the container (container_order_encode()), or NULL. */
int dial_node_run(struct dial_in *d, const char *agent, const char *container, struct diags *diags);
