/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer_owners: asks other nodes which user owns the connections that come from there
 *
 * A connection waits here, unread, until its node has answered through the head. Connections with
 * the same two addresses share a question: all that gather in a turn of the loop, and all that come
 * while the last question about these addresses is open. Numbers of questions never repeat, so that
 * answers to questions of an earlier attempt are recognized. The head answers every question, also
 * for lost and silent nodes. Pure, but for owners_look_up().
 */
#pragma once

#include "wire/endpoint_msg.h"

struct peer_owners;

/* A connection that waits; part of the caller's memory, zeroed. */
struct peer_wait {
        struct peer_group *group; /* NULL = does not wait */
        size_t index;             /* in a list of the group */
        uint32_t port;            /* of the other end */
        /* The answer. @nodes: names of the nodes that were asked. May call peer_owners_forget(). */
        void (*judged)(struct peer_wait *w, const struct owner *o, const char *nodes);
};

/* @ask sends a question, lent for the call. */
struct peer_owners *peer_owners_create(void (*ask)(void *ctx, const struct owners_request *m),
                                       void *ctx);
void peer_owners_destroy(struct peer_owners *o); /* no connection may wait; NULL is fine */

/* Adds a connection from @ends->from, @port to @ends->to, @own_port. */
void peer_owners_add(struct peer_owners *o, struct peer_wait *w, const struct owner_ends *ends,
                     uint32_t port, uint32_t own_port);
/* A connection waits no longer. */
void peer_owners_forget(struct peer_wait *w);
/* Sends questions about newcomers. Once in every turn of the loop. */
void peer_owners_turn(struct peer_owners *o);
/* Takes an answer of the head; an unknown number is ignored. */
void peer_owners_take(struct peer_owners *o, const struct owners *answer);

/* Answers a question about sockets of this node, by the kernel's account (sockdiag.h). A process of
 * the caller's uid is OWNER_USER. Free with owners_finish(). */
void owners_look_up(const struct owners_request *m, struct owners *ret);
