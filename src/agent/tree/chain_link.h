/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chain link: a connection between two nodes of a chain, sealed with a key for this one connection
 *
 * The node behind listens, the node before connects. Both prove that they know the key: the node
 * before says the number of the stream, the node behind says how many PACKs it has. Then PACKs
 * follow, to the node behind alone. Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "wire/frame.h"
#include "wire/push_msg.h"

struct chain_link;
struct chain_port;

struct chain_link_ops {
        /* The peer has proved itself, with this number. */
        void (*proved)(void *ctx, struct chain_link *l, uint32_t number);
        /* A frame has come; false: the rest waits for chain_link_resume(). */
        bool (*frame)(void *ctx, const struct frame *f);
        /* Bytes were written. */
        void (*written)(void *ctx);
        /* The link has ended and is closed: errno, 0 = the peer has closed it. Not called after
         * chain_link_close(). */
        void (*ended)(void *ctx, struct chain_link *l, int error);
};

/* Who the link is for; copied, but the pointers are borrowed. */
struct chain_peer {
        uv_loop_t *loop;
        const struct chain_link_ops *ops;
        void *ctx;
        unsigned char key[PUSH_CHAIN_KEY];
        uint32_t number; /* that this side says */
};

/* Connects to a numeric address. ended() is called from the loop after any failure; NULL: the
 * address is not numeric. */
struct chain_link *chain_link_connect(const struct chain_peer *p, const char *addr, uint32_t port);
/* Closes the link; NULL is fine. */
void chain_link_close(struct chain_link *l);
/* Seals and sends a frame. */
void chain_link_send(struct chain_link *l, const void *data, size_t len);
/* Bytes that wait to be sent in this process. */
size_t chain_link_unsent(const struct chain_link *l);
/* Has more frames delivered, those that have come first. */
void chain_link_resume(struct chain_link *l);

/* Opens a port for one peer. Connections without the key are closed after 5 s or when there are too
 * many; the first with the key closes the port and all others. NULL: -errno in @ret. */
struct chain_port *chain_port_open(const struct chain_peer *p, int *ret);
uint32_t chain_port_number(const struct chain_port *o);
/* Ends connections that take too long. */
void chain_port_check(struct chain_port *o);
/* Closes the port and the connections without the key; NULL is fine. */
void chain_port_close(struct chain_port *o);
