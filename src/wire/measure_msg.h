/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measure_msg: connections between nodes for `hnlaunch check`: are peers reached, and how fast
 *
 *   head -> agent   MEASURE    listen for peers, or connect to peers that listen, or stop
 *   agent -> head   MEASURED   the port; what became of each peer
 *
 * An agent that listens answers each connection that says the first half of the token with the
 * second half, as an endpoint answers a probe (wire/endpoint_msg.h). Then it returns MEASURE_ECHOES
 * bytes one by one, drops what follows up to its end, sends bytes of its own, and closes the
 * connection. It interprets none of them, but for the first one: behind MEASURE_HELPER the
 * connection goes to a helper for NCCL on each side instead (wire/helper/nccl_record.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/endpoint_msg.h"
#include "wire/frame.h"

enum {
        MEASURE_ECHOES = 8,
        MEASURE_HELPER = 'N', /* the first byte; bytes to be returned are '.' */
        MEASURE_TARGETS_MAX = 256,
        MEASURE_ADDRS_MAX = 8,
        MEASURE_BYTES_MAX = 256 << 20, /* of .send_bytes */
        MEASURE_MS_MAX = 60000,        /* of .timeout_ms and .send_ms */
        MEASURE_NCCL_MS = 25000,       /* for a pair with NCCL */
        MEASURE_NCCL_FAILED = 10000,   /* in place of an errno */
};

/* How GPUs are measured. */
struct measure_nccl {
        char *library;   /* path of libnccl; "" or NULL = TCP is measured */
        struct strv env; /* of ranks, where it differs from the agent's */
};

struct measure_target {
        uint32_t port;
        struct strv addrs; /* numeric, best first */
};

struct measure_order {
        uint32_t number;                /* for the answer */
        char token[ENDPOINT_TOKEN + 1]; /* of this test */
        bool listen;                    /* open a port, or keep it open; else close it */
        uint32_t timeout_ms;            /* for a peer to answer */
        /* Bytes are sent each way for this time or up to this number, whichever comes first; 0 =
         * only whether the peer answers. */
        uint32_t send_ms, send_bytes;
        struct measure_target *targets; /* all at once */
        uint32_t n_targets;
        struct measure_nccl nccl; /* counts where bytes are sent, and for who listens */
};

struct measured_target {
        uint32_t error;      /* errno, as of a probe_result, or MEASURE_NCCL_FAILED; 0 = the peer
                                answers */
        uint32_t addr;       /* the address that answers; with an error the first */
        uint32_t latency_us; /* the shortest of the round trips */
        uint64_t sent;       /* bytes per second to the peer */
        uint64_t received;   /* and from it */
};

struct measured {
        uint32_t number;
        uint32_t port;                   /* that is open; 0 = none */
        char text[160];                  /* why none could be opened, or why NCCL has failed */
        struct measured_target *results; /* in the order of the targets */
        uint32_t n_results;
};

void measure_order_encode(struct buf *b, const struct measure_order *m);
int measure_order_decode(struct measure_order *m, const struct frame *f, struct error *err);
void measure_order_finish(struct measure_order *m);
/* False: TCP is measured. */
bool measure_nccl_is_set(const struct measure_nccl *m);
void measure_nccl_finish(struct measure_nccl *m);
void measured_encode(struct buf *b, const struct measured *m);
int measured_decode(struct measured *m, const struct frame *f, struct error *err);
void measured_finish(struct measured *m);
