/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/bind_msg.h"

#include <string.h>

#include "wire/bind_policy.h"
#include "wire/msg_functions.h"

/* A plan has no more GPUs and ranks on a node than a LAUNCH; larger counts are malformed. */
enum {
        MAX_RANK_GPUS = 1024,
        MAX_BOUND_RANKS = 1 << 16,
};

static void code_bind_query_rank(struct codec *c, struct bind_query_rank *r)
{
        codec_u32(c, &r->rank);
        codec_u32(c, &r->threads);
        codec_u32_array(c, &r->gpus, &r->n_gpus, MAX_RANK_GPUS);
}

static void code_bind_query(struct codec *c, struct bind_query *m)
{
        codec_str(c, &m->bind, BIND_TEXT_MAX);
        codec_bool(c, &m->near_nic);
        CODEC_ARRAY(c, m->ranks, m->n_ranks, MAX_BOUND_RANKS, code_bind_query_rank);
        CODEC_ARRAY(c, m->others, m->n_others, MAX_BOUND_RANKS, code_bind_query_rank);
}

/* @why is a short text of the agent; lists of processors and ports can be long. */
static void code_bound_rank(struct codec *c, struct bound_rank *r)
{
        codec_u32(c, &r->rank);
        codec_str(c, &r->cpus, BIND_TEXT_MAX);
        codec_u32(c, &r->node);
        codec_text(c, r->why, sizeof(r->why));
        codec_str(c, &r->nics, BIND_TEXT_MAX);
}

static void code_bound(struct codec *c, struct bound *m)
{
        CODEC_ARRAY(c, m->ranks, m->n_ranks, MAX_BOUND_RANKS, code_bound_rank);
}

DEFINE_OWNING_MESSAGE(bind_query, MSG_BIND)
DEFINE_OWNING_MESSAGE(bound, MSG_BOUND)
