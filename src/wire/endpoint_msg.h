/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoint_msg: how the head opens the TCP endpoint of an agent and has the other nodes test it
 *
 *   head -> agent of rank 0   ENDPOINT         listen, for these peers
 *   head -> other agents      PROBE            connect to these addresses
 *   agent of rank 0 -> head   ENDPOINT_OPENED  the port
 *   other agents -> head      PROBED           the addresses that answered with the token
 *
 * ENDPOINT and PROBE go out together, so the test costs one round trip: a prober repeats refused
 * connections until its time is up. With ENDPOINT_LOOPBACK every agent gets an ENDPOINT and none a
 * PROBE.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

enum endpoint_mode {
        ENDPOINT_LOOPBACK = 1, /* listen on 127.0.0.1 only */
        ENDPOINT_NETWORK,      /* listen on all addresses, IPv4 and IPv6 */
};

enum {
        ENDPOINT_TOKEN = 32, /* characters; a prober says the first half, the endpoint the second */
        ENDPOINT_CANDIDATES_MAX = 64,
        ENDPOINT_PEERS_MAX = 1 << 18,
};

/* The first bytes of a prober; no client of the store begins with them. */
#define ENDPOINT_PROBE "HNPROBE\n"

struct endpoint_order {
        uint8_t mode;                   /* enum endpoint_mode */
        char token[ENDPOINT_TOKEN + 1]; /* of this attempt */
        uint32_t value_max;             /* bytes of a value; 0 = the usual limit */
        struct strv peers;              /* numeric addresses of the job's nodes */
};

struct endpoint_opened {
        uint32_t port;  /* 0 = could not be opened */
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

/* Encoders append a whole frame. Decoders: 0 or -EPROTO; x_finish() frees the decoded struct. */
void endpoint_order_encode(struct buf *b, const struct endpoint_order *m);
int endpoint_order_decode(struct endpoint_order *m, const struct frame *f, struct error *err);
void endpoint_order_finish(struct endpoint_order *m);

void endpoint_opened_encode(struct buf *b, const struct endpoint_opened *m);
int endpoint_opened_decode(struct endpoint_opened *m, const struct frame *f, struct error *err);

void probe_order_encode(struct buf *b, const struct probe_order *m);
int probe_order_decode(struct probe_order *m, const struct frame *f, struct error *err);
void probe_order_finish(struct probe_order *m);

void probed_encode(struct buf *b, const struct probed *m);
int probed_decode(struct probed *m, const struct frame *f, struct error *err);
void probed_finish(struct probed *m);
