/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nccl_record: what the helper hnlaunch-nccl writes for the agent about a pair of nodes
 *
 * Both sides are of one build and on one machine, so the layout is the compiler's. A record fits
 * into PIPE_BUF: it is written whole or not at all.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

enum {
        NCCL_RECORD_MARK = 0x6c63636e,
        NCCL_RECORD_WHY = 128,
        NCCL_PAIR_S = 20, /* of a helper; the driver may take seconds to begin */
};

struct nccl_record {
        uint32_t mark;
        uint32_t latency_us;       /* the shortest of the round trips of four bytes */
        uint64_t sent;             /* bytes per second to the peer */
        uint64_t received;         /* and from it */
        char why[NCCL_RECORD_WHY]; /* NCCL has failed; "" = the figures count */
};

_Static_assert(sizeof(struct nccl_record) <= PIPE_BUF, "written whole or not at all");
