/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoint_msg: how the head opens the TCP endpoint of an agent and has the other nodes test it
 *
 *   head -> agent of rank 0   ENDPOINT         listen, for these peers
 *   head -> other agents      PROBE            connect to these addresses
 *   agent of rank 0 -> head   ENDPOINT_OPENED  the port
 *   other agents -> head      PROBED           the addresses that answered with the token
 *
 *   head -> agent of rank 0   PORTS            hold free ports for the ranks, to be named by the
 * head agent of rank 0 -> head   PORTS_HELD       the ports
 *
 * ENDPOINT and PROBE go out together, so the test costs one round trip: a prober repeats refused
 * connections until its time is up. With ENDPOINT_LOOPBACK every agent gets an ENDPOINT and none a
 * PROBE.
 *
 * An agent knows the users of its own node's sockets only, so the endpoint asks about connections
 * from other nodes:
 *
 *   endpoint -> head -> agent of the other ends   OWNERS_REQUEST  whose sockets are these?
 *   and back                                      OWNERS          an answer for each
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"
#include "wire/port_name.h"

enum endpoint_mode {
        ENDPOINT_LOOPBACK = 1, /* listen on 127.0.0.1 only */
        ENDPOINT_NETWORK,      /* listen on all addresses, IPv4 and IPv6 */
};

enum {
        ENDPOINT_TOKEN = 32, /* characters; a prober says the first half, the endpoint the second */
        ENDPOINT_CANDIDATES_MAX = 64,
        ENDPOINT_PEERS_MAX = 1 << 18,
        OWNERS_MAX = 4096,       /* connections of one OWNERS_REQUEST */
        OWNERS_OPEN_MAX = 65536, /* connections asked about by an endpoint, without an answer yet */
};

/* The first bytes of a prober; no client of the store begins with them. */
#define ENDPOINT_PROBE "HNPROBE\n"

struct endpoint_order {
        uint8_t mode;                   /* enum endpoint_mode */
        char token[ENDPOINT_TOKEN + 1]; /* of this attempt */
        uint32_t value_max;             /* bytes of a value; 0 = the usual limit */
        bool ask_owners;                /* about connections from other nodes */
        struct strv peers;              /* numeric addresses of the job's nodes */
};

struct endpoint_opened {
        uint32_t port;  /* 0 = could not be opened */
        char text[256]; /* then: why */
};

/* The answer to PORTS, which is a number: so many ports are bound until the ranks start. */
struct ports_held {
        uint32_t *numbers; /* none = not all could be bound */
        uint32_t n;
        char text[256]; /* then: why */
};

struct probe_order {
        char token[ENDPOINT_TOKEN + 1];
        uint32_t port;
        uint32_t timeout_ms;
        struct strv addrs; /* numeric candidates, best first */
};

/* The outcome for one candidate. */
struct probe_result {
        uint32_t error; /* errno; 0 = answered with the token, EPROTO = with another answer */
        char iface[16]; /* of this node, which the route takes; "" = not known */
        uint32_t us;    /* connect to answer, microseconds */
};

struct probed {
        struct probe_result *results; /* in the order of the candidates */
        uint32_t n;
};

/* The two ends of connections: IPv6 addresses, IPv4 as ::ffff:a.b.c.d. */
struct owner_ends {
        unsigned char from[16]; /* the connecting end, of the node that is asked */
        unsigned char to[16];   /* the endpoint */
};

/* Reads a numeric address in this form. False: another word. */
bool owner_ends_address(const char *text, unsigned char ret[16]);

struct owners_request {
        uint32_t number; /* of the sender, repeated in the answer */
        struct owner_ends ends;
        uint32_t port;   /* of the endpoint */
        uint32_t *ports; /* of the connecting ends */
        uint32_t n;
};

enum owner_verdict {
        OWNER_USER = 1, /* the uid of the agent there: the job's user */
        OWNER_OTHER,    /* another uid */
        OWNER_NONE,     /* no process of the node has such a socket */
        OWNER_UNKNOWN,  /* the node was lost, or did not answer in time */
        OWNER_VERDICTS,
};

struct owner {
        uint8_t verdict; /* enum owner_verdict */
        uint32_t uid;    /* of OWNER_OTHER */
};

struct owners {
        uint32_t number;
        char nodes[128];      /* names of the nodes that were asked; "" in the answer of a node */
        struct owner *owners; /* in the order of the ports */
        uint32_t n;
};

/* Encoders append a whole frame. Decoders: 0 or -EPROTO; x_finish() frees the decoded struct. */
void endpoint_order_encode(struct buf *b, const struct endpoint_order *m);
int endpoint_order_decode(struct endpoint_order *m, const struct frame *f, struct error *err);
void endpoint_order_finish(struct endpoint_order *m);

void endpoint_opened_encode(struct buf *b, const struct endpoint_opened *m);
int endpoint_opened_decode(struct endpoint_opened *m, const struct frame *f, struct error *err);

void ports_held_encode(struct buf *b, const struct ports_held *m);
int ports_held_decode(struct ports_held *m, const struct frame *f, struct error *err);
void ports_held_finish(struct ports_held *m);

void probe_order_encode(struct buf *b, const struct probe_order *m);
int probe_order_decode(struct probe_order *m, const struct frame *f, struct error *err);
void probe_order_finish(struct probe_order *m);

void probed_encode(struct buf *b, const struct probed *m);
int probed_decode(struct probed *m, const struct frame *f, struct error *err);
void probed_finish(struct probed *m);

void owners_request_encode(struct buf *b, const struct owners_request *m);
int owners_request_decode(struct owners_request *m, const struct frame *f, struct error *err);
void owners_request_finish(struct owners_request *m);

void owners_encode(struct buf *b, const struct owners *m);
int owners_decode(struct owners *m, const struct frame *f, struct error *err);
void owners_finish(struct owners *m);
