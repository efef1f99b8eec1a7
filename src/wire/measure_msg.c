/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/measure_msg.h"

#include <stdlib.h>

#include "wire/msg_functions.h"

/* Longer than any numeric address, and short enough for a bound on memory. */
enum { ADDRESS_MAX = 256 };

static void code_measure_target(struct codec *c, struct measure_target *t)
{
        codec_u32(c, &t->port);
        codec_require(c, t->port && t->port <= UINT16_MAX);
        codec_strv(c, &t->addrs, MEASURE_ADDRS_MAX, ADDRESS_MAX);
}

/* The limits of time and bytes bound what a node may send by one order. */
static void code_measure_order(struct codec *c, struct measure_order *m)
{
        codec_u32(c, &m->number);
        codec_text(c, m->token, sizeof(m->token));
        codec_bool(c, &m->listen);
        codec_u32(c, &m->timeout_ms);
        codec_u32(c, &m->send_ms);
        codec_u32(c, &m->send_bytes);
        codec_require(c, m->timeout_ms <= MEASURE_MS_MAX && m->send_ms <= MEASURE_MS_MAX &&
                                 m->send_bytes <= MEASURE_BYTES_MAX);
        CODEC_ARRAY(c, m->targets, m->n_targets, MEASURE_TARGETS_MAX, code_measure_target);
        codec_str(c, &m->nccl.library, MSG_MAX_STRING);
        codec_strv(c, &m->nccl.env, MSG_MAX_STRINGS, MSG_MAX_STRING);
}

bool measure_nccl_is_set(const struct measure_nccl *m)
{
        return m->library && *m->library;
}

void measure_nccl_finish(struct measure_nccl *m)
{
        free(m->library);
        strv_finish(&m->env);
        *m = (struct measure_nccl){ 0 };
}

static void code_measured_target(struct codec *c, struct measured_target *t)
{
        codec_u32(c, &t->error);
        codec_u32(c, &t->addr);
        codec_u32(c, &t->latency_us);
        codec_u64(c, &t->sent);
        codec_u64(c, &t->received);
}

static void code_measured(struct codec *c, struct measured *m)
{
        codec_u32(c, &m->number);
        codec_u32(c, &m->port);
        codec_require(c, m->port <= UINT16_MAX);
        codec_text(c, m->text, sizeof(m->text));
        CODEC_ARRAY(c, m->results, m->n_results, MEASURE_TARGETS_MAX, code_measured_target);
}

DEFINE_OWNING_MESSAGE(measure_order, MSG_MEASURE)
DEFINE_OWNING_MESSAGE(measured, MSG_MEASURED)
