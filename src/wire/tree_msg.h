/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree_msg: an agent as parent of other agents (--tree, hold)
 *
 * MSG_CHILD_AGENT makes the agent run the node's own ssh to another node; from then on MSG_TUNNEL
 * carries the ssh's standard input and output, until the ssh ends or MSG_PRUNE ends it. The bytes
 * in a tunnel are the messages of any other link, other tunnels included. The head chooses the
 * number of a child, one per node. Encoders and decoders as in wire/msg.h.
 *
 * Without words MSG_CHILD_AGENT makes the agent start its own program once more, on its own node: a
 * prepared agent, for a run on a hold. Its bytes pass unseen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

enum {
        /* Bytes towards the child sent by the head without a TUNNEL_TOOK. */
        TUNNEL_WINDOW = 256 << 10,
        TUNNEL_NOISE_MAX = 2048,
};

/* NOISE of an agent that should use the forwarded ssh-agent and has none; the ssh starts all the
 * same. */
#define CHILD_AGENT_NO_AGENT "no ssh-agent was forwarded here"

struct child_agent_order {
        uint32_t number;
        uint32_t options_at; /* argv[0] to here is the program's own; then options may follow */
        bool lent_agent;     /* the login uses the ssh-agent forwarded by the head */
        struct strv argv;    /* empty: the agent's own program, and all but @number is unused */
        char *alias;         /* name under which @known_hosts has the node's keys */
        char *known_hosts;   /* lines of the file; "" = the node's own files count */
};

enum tunnel_kind {
        TUNNEL_BYTES,  /* both ways */
        TUNNEL_UPLOAD, /* head -> agent: send the child your own binary */
        TUNNEL_TOOK,   /* agent -> head: so many bytes have reached the child */
        TUNNEL_NOISE,  /* agent -> head: stderr of the ssh */
        TUNNEL_ENDED,  /* agent -> head: the ssh has ended, @number is the wait status. The last
                          message */
        TUNNEL_FAILED, /* agent -> head: the ssh could not be started, the text says why. The last
                          message */
        /* head -> agent: ping the child with every ping from the head, and send HEARD after @number
           ms of silence; 0 = stop. */
        TUNNEL_WATCH,
        TUNNEL_HEARD, /* agent -> head: the last byte came @number ms ago. Also before ENDED */
        /* agent -> head: the child's monotonic clock is @offset ns (signed) ahead of the agent's,
           +- @number us. Sent before a failure reported by the child, and before a CLOCK that
           passes through. */
        TUNNEL_CLOCK,
        /* head -> agent: send the child @number bytes from @offset on of the agent's last COMMON, a
           whole frame. Counted as if they had come through the tunnel. */
        TUNNEL_COMMON,
        TUNNEL_KINDS,
};

struct tunnel {
        uint32_t child;
        uint8_t kind;
        uint32_t number;           /* of the kinds above that use a number */
        uint64_t offset;           /* of CLOCK and COMMON */
        const unsigned char *data; /* of BYTES, NOISE and FAILED; lent by the frame */
        size_t len;
};

void child_agent_order_encode(struct buf *b, const struct child_agent_order *m);
int child_agent_order_decode(struct child_agent_order *m, const struct frame *f, struct error *err);
void child_agent_order_finish(struct child_agent_order *m);

void tunnel_encode(struct buf *b, const struct tunnel *m);
int tunnel_decode(struct tunnel *m, const struct frame *f, struct error *err);
