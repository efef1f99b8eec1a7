/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/stage_msg.h"

#include "wire/msg_functions.h"
#include "wire/push_msg.h"

static void code_stage_order(struct codec *c, struct stage_order *m)
{
        codec_u8(c, &m->remove);
        codec_u64(c, &m->limit);
        codec_u64(c, &m->max_age_s);
}

static void code_staged_copy(struct codec *c, struct staged_copy *m)
{
        codec_str(c, &m->folder, PUSH_PATH_MAX);
        codec_str(c, &m->name, PUSH_PATH_MAX);
        codec_u8(c, &m->use);
        codec_require(c, m->use < PUSH_USES);
        codec_u64(c, &m->bytes);
        codec_u64(c, &m->files);
        codec_u64(c, &m->age_s);
        codec_u8(c, &m->in_use);
        codec_u8(c, &m->removed);
}

static void code_staged(struct codec *c, struct staged *m)
{
        CODEC_ARRAY(c, m->v, m->n, STAGED_MAX, code_staged_copy);
}

DEFINE_PLAIN_MESSAGE(stage_order, MSG_STAGE)
DEFINE_OWNING_MESSAGE(staged, MSG_STAGED)
