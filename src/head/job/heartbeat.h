/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heartbeat: pings to the nodes of a job, and the loss of silent nodes
 *
 * Runs while ranks run, while files are pushed, and while the endpoint is opened. Idle agents are
 * pinged only on request (MSG_PING_REQUEST). Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "head/nodes/node.h"

/* Nodes wait for their disks while files are pushed: so many times longer than otherwise, at most.
 */
#define HEARTBEAT_PUSH_TIMES 10

struct attempt;
struct cause;
struct cluster;

/* All pointers are borrowed. @owes: whether a READY node is to answer. The loop must turn between
 * heartbeat_close() and heartbeat_free(). */
struct heartbeat *heartbeat_create(struct cluster *c, struct attempt *a,
                                   bool (*owes)(void *ctx, const struct node *n), void *ctx);
void heartbeat_close(struct heartbeat *h);
void heartbeat_free(struct heartbeat *h);
/* Begins to ping and to watch nodes with ranks or an open answer. Silence so far is forgiven. */
void heartbeat_start(struct heartbeat *h, bool pushing);
void heartbeat_stop(struct heartbeat *h);
/* From now on the loop lives while the heart beats; it does not before. */
void heartbeat_keep_loop(struct heartbeat *h);
/* Whether nodes store files, for which they have more patience. */
bool heartbeat_pushes(const struct heartbeat *h);

/* Milliseconds between two pings. */
uint64_t heartbeat_interval_ms(const struct heartbeat *h);
/* Milliseconds of silence after which @n counts as lost. */
uint32_t heartbeat_silence_ms(const struct heartbeat *h, const struct node *n);
/* Milliseconds without a ping after which the agent of @n ends its ranks. */
uint32_t heartbeat_agent_ms(const struct heartbeat *h, const struct node *n);
/* The time of clock_ns() from which on no rank of @n, a lost node, lives. @may_live: the agent may
 * not know that it is lost, else its connection has ended there, too. */
int64_t heartbeat_dead_ns(const struct heartbeat *h, const struct node *n, bool may_live);

/* Whether the agent of @lost has left because it heard nothing: hnlaunch did not run (SIGSTOP, a
 * sleep of the machine) until now or a moment ago. Sets kind, node and text of @c then. */
bool heartbeat_explains(const struct heartbeat *h, const struct node *lost, struct cause *c);

/* Answers the request for a ping. */
void heartbeat_requested(struct heartbeat *h, struct node *n);
/* The parent of @n received the last byte @silent_ms ago. */
void heartbeat_heard(struct heartbeat *h, struct node *n, uint32_t silent_ms);

/* Ctrl-Z: tells the agents, then stops this process until SIGCONT. The ranks run on. */
void heartbeat_suspend(struct heartbeat *h);
