/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/warm_msg.h"

#include "wire/bind_policy.h"
#include "wire/msg_functions.h"

static void code_warm_order(struct codec *c, struct warm_order *m)
{
        codec_str(c, &m->word, MSG_MAX_STRING);
        codec_strv(c, &m->modules, WARM_MODULES_MAX, WARM_NAME_MAX);
        codec_u32(c, &m->slots);
        codec_require(c, m->word && *m->word && m->modules.n && m->slots &&
                                 m->slots <= WARM_SLOTS_MAX);
        codec_str(c, &m->bind, BIND_TEXT_MAX);
        codec_str(c, &m->cwd, MSG_MAX_STRING);
        codec_strv(c, &m->env, MSG_MAX_STRINGS, MSG_MAX_STRING);
        codec_strv(c, &m->unset, MSG_MAX_STRINGS, MSG_MAX_STRING);
}

static void code_warmed(struct codec *c, struct warmed *m)
{
        codec_u32(c, &m->slots);
        codec_u32(c, &m->mib);
        codec_u32(c, &m->ms);
        codec_text(c, m->text, sizeof(m->text));
}

DEFINE_OWNING_MESSAGE(warm_order, MSG_WARM)
DEFINE_PLAIN_MESSAGE(warmed, MSG_WARMED)
