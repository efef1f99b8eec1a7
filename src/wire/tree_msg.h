/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branch messages: an agent that carries other agents (--tree)
 *
 * MSG_CHILD_AGENT makes the agent run the node's own ssh to another node; from then on MSG_TUNNEL
 * carries its standard input and output, until it ends or MSG_PRUNE ends it. What is said inside a
 * tunnel is what is said over any other link, other tunnels included. The number of a child is
 * the head's choice, one for each node. Encoders and decoders as in wire/msg.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

enum {
        /* Bytes towards the child that the head may send without a TUNNEL_TOOK. */
        TUNNEL_WINDOW = 256 << 10,
        /* The same for what the agent gives of its own, beside that. */
        TUNNEL_GIVE_WINDOW = 1 << 20,
        TUNNEL_NOISE_MAX = 2048,
};

/* NOISE of an agent that is to use the lent ssh-agent and has none; its ssh runs all the same. */
#define CHILD_AGENT_NO_AGENT "no ssh-agent was forwarded here"

struct child_agent_order {
        uint32_t number;
        uint32_t options_at; /* argv[0] to here is the program's own; then options may follow */
        bool lent_agent;     /* the login is to use the ssh-agent that the head has lent */
        struct strv argv;
        char *alias;       /* name under which @known_hosts has the node's keys */
        char *known_hosts; /* lines of the file; "" = the node's own files count */
};

enum tunnel_kind {
        TUNNEL_BYTES,  /* both ways */
        TUNNEL_UPLOAD, /* head -> agent: what it needs now is the file that you are yourself */
        TUNNEL_TOOK,   /* agent -> head: so many bytes have reached the child */
        TUNNEL_NOISE,  /* agent -> head: its ssh's stderr */
        TUNNEL_ENDED,  /* agent -> head: its ssh has ended, @number is the wait status. The last */
        TUNNEL_FAILED, /* agent -> head: it could not be started, the text says why. The last */
        /* head -> agent: a CHUNK of a pushed file that you have yourself: @entry, @offset, @number
         * bytes. What the child gets counts as if it had been sent through. */
        TUNNEL_GIVE,
        /* head -> agent: whenever you are pinged ping it, too, and say HEARD when nothing has come
         * from it for @number ms; 0 = no more. */
        TUNNEL_WATCH,
        TUNNEL_HEARD, /* agent -> head: the last byte came @number ms ago. Also before ENDED */
        /* agent -> head: its monotonic clock is @offset ns (signed) ahead of mine, +- @number us.
         * Said before a failure that it reports, and before a CLOCK that passes. */
        TUNNEL_CLOCK,
        /* head -> agent: give it @number bytes, from @offset on, of the last COMMON that you had, a
         * whole frame. They count as if they had been sent through. */
        TUNNEL_COMMON,
        TUNNEL_KINDS,
};

struct tunnel {
        uint32_t child;
        uint8_t kind;
        uint32_t number;           /* of those kinds that speak of it */
        uint32_t entry;            /* of GIVE */
        uint64_t offset;           /* of GIVE, CLOCK and COMMON */
        const unsigned char *data; /* of BYTES, NOISE and FAILED; lent by the frame */
        size_t len;
};

void child_agent_order_encode(struct buf *b, const struct child_agent_order *m);
int child_agent_order_decode(struct child_agent_order *m, const struct frame *f, struct error *err);
void child_agent_order_finish(struct child_agent_order *m);

void prune_encode(struct buf *b, uint32_t child);
int prune_decode(uint32_t *child, const struct frame *f, struct error *err);

void tunnel_encode(struct buf *b, const struct tunnel *m);
int tunnel_decode(struct tunnel *m, const struct frame *f, struct error *err);
