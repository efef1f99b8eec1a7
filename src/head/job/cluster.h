/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cluster: all nodes of a job, and the transports to reach the nodes
 *
 * Lives as long as the job: nodes and links are kept from one attempt to the next. Node i is host
 * i. The counts are maintained by job_dispatch.c, as nodes change their states. Main loop's thread
 * only.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "base/strv.h"
#include "head/dial_in/transport_call.h"
#include "head/model/events.h"
#include "head/nodes/node.h"
#include "head/nodes/send_queue.h"
#include "head/nodes/transport.h"
#include "head/options/options.h"

struct heartbeat;
struct job_config;
struct ranks_signal;

/* Nodes that cannot be reached yet are tried again (ssh.connect_retry). */
struct node_retry {
        uv_timer_t timer;
        uint64_t pause_ms;
        int64_t until_ns; /* of clock_ns() */
};

struct cluster {
        uv_loop_t *loop;
        const struct options *options;
        const struct hosts *hosts;
        struct events *events;
        struct node *nodes; /* one per host */
        size_t n_nodes;
        size_t unresolved;                       /* being connected: not yet READY or FAILED */
        size_t failed, running;                  /* in these states */
        size_t n_carried;                        /* reached through the agents of other nodes */
        struct transport *local, *remote, *tree; /* NULL = not needed */
        const struct job_config *config;
        struct ssh_options ssh; /* .command is owned */
        struct call_options call;
        struct send_queue send_queue;      /* sends n->out at the end of a turn of the loop */
        struct strv notices[LINK_NOTICES]; /* about logins, not yet told */
        struct node_retry retry;
        struct heartbeat *heartbeat; /* told when a parent reports the silence of a node */
};

/* Creates the nodes; @ops are called with @ctx. @config is borrowed. */
struct cluster *cluster_create(uv_loop_t *loop, const struct job_config *config,
                               const struct node_ops *ops, void *ctx);
/* Raises the limit of descriptors: links, and two files per rank. */
void cluster_raise_limit(size_t n_nodes, int world_size);
/* Creates the transports for the hosts. 0, or -errno with @err. */
int cluster_open(struct cluster *c, struct error *err);
/* Initializes a timer with this data. The loop does not wait for the timer. */
void cluster_init_timer(const struct cluster *c, uv_timer_t *t, void *data);

/* Emits an event with the name of the node's host. @node and @rank: -1 = none. */
void cluster_emit(const struct cluster *c, enum event_kind kind, int node, int rank, int64_t value,
                  const char *text);

/* Begins to connect all nodes. */
void cluster_connect(struct cluster *c);
/* Whether a node that cannot be reached will be tried again (ssh.connect_retry): then its failure
 * is none yet. */
bool cluster_try_again(struct cluster *c, struct node *n);

/* Returns the next RUNNING node after @last (NULL = the first), or NULL after the last. */
struct node *cluster_each_running(const struct cluster *c, struct node *last);
/* Sends a signal for some of the ranks to all RUNNING nodes. */
void cluster_signal_ranks(struct cluster *c, const struct ranks_signal *m);
/* Logs the lines that a login shell has written before the agent: node_ops.noise(). */
void cluster_log_noise(void *ctx, struct node *n, const char *text, size_t len);

/* Closes all links, running the loop meanwhile, and frees the transports. The handles of the
 * transports are gone when the loop has turned. */
void cluster_close(struct cluster *c);
void cluster_free(struct cluster *c);

/* --- nodes behind other nodes (--tree): cluster_tree.c --- */

/* After cluster_open(): creates the transport and links every node to the parent. 0, also without
 * --tree, or -errno. */
int cluster_tree_open(struct cluster *c, struct error *err);
/* Whether @n failed only because the parent was lost. */
bool cluster_is_orphan(const struct node *n);
/* Whether a lost node may be connected again: an orphan, now directly, or one that dials in. */
bool cluster_can_return(const struct cluster *c, const struct node *n);
/* Begins to connect a FAILED node once more. Runs the loop until its last link is closed. */
void cluster_reconnect_node(struct cluster *c, struct node *n);
/* Begins to connect all nodes that may be connected again. Returns how many. */
size_t cluster_reconnect(struct cluster *c);
