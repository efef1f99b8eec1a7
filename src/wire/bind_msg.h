/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bind_msg: how the agent would bind the ranks of an order, asked for a plan
 *
 *   head -> agent   BIND    --bind, and the GPUs and threads of each rank
 *   agent -> head   BOUND   processors, memory and NICs of each rank, or why there are none
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/frame.h"

struct bind_query_rank {
        uint32_t rank;    /* in the job */
        uint32_t threads; /* OMP_NUM_THREADS of the user; 0 = not set */
        uint32_t *gpus;   /* device indices */
        uint32_t n_gpus;
};

/* The ranks of one world on the node. */
struct bind_query {
        char *bind;    /* see wire/bind_policy.h */
        bool near_nic; /* --nic near */
        struct bind_query_rank *ranks;
        uint32_t n_ranks;
        struct bind_query_rank *others; /* of other worlds, that divide the cores with these */
        uint32_t n_others;
};

struct bound_rank {
        uint32_t rank;
        char *cpus;    /* "0-3,8"; "" = not bound */
        uint32_t node; /* whose memory is preferred; UINT32_MAX = no preference */
        char why[120]; /* why the rank is not bound; "" = nothing to say */
        char *nics;    /* "mlx5_0:1,mlx5_1:1"; "" = none is chosen */
};

struct bound {
        struct bound_rank *ranks;
        uint32_t n_ranks;
};

void bind_query_encode(struct buf *b, const struct bind_query *m);
int bind_query_decode(struct bind_query *m, const struct frame *f, struct error *err);
void bind_query_finish(struct bind_query *m);
void bound_encode(struct buf *b, const struct bound *m);
int bound_decode(struct bound *m, const struct frame *f, struct error *err);
void bound_finish(struct bound *m);
