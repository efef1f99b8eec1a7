/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tree_msg.h"

#include "wire/msg_functions.h"

/* Lines of a known_hosts file for one node, with all its keys and certificates. */
enum { KNOWN_MAX = 1 << 20 };

static void code_child_agent_order(struct codec *c, struct child_agent_order *m)
{
        codec_u32(c, &m->number);
        codec_u32(c, &m->options_at);
        codec_bool(c, &m->lent_agent);
        codec_strv(c, &m->argv, MSG_MAX_STRINGS, MSG_MAX_STRING);
        /* The agent inserts options of its own at this place, behind the name of the program. No
         * words: the agent's own program, on the same node. */
        codec_require(c, m->argv.n ? m->options_at && m->options_at <= m->argv.n : !m->options_at);
        codec_str(c, &m->alias, MSG_MAX_STRING);
        codec_str(c, &m->known_hosts, KNOWN_MAX);
}

/* These kinds have a number as well. */
static bool has_offset(uint8_t kind)
{
        return kind == TUNNEL_CLOCK || kind == TUNNEL_COMMON;
}

static bool has_number(uint8_t kind)
{
        return has_offset(kind) || kind == TUNNEL_TOOK || kind == TUNNEL_ENDED ||
               kind == TUNNEL_WATCH || kind == TUNNEL_HEARD;
}

static void code_tunnel(struct codec *c, struct tunnel *m)
{
        codec_u32(c, &m->child);
        codec_u8(c, &m->kind);
        codec_require(c, m->kind < TUNNEL_KINDS);
        if (has_number(m->kind))
                codec_u32(c, &m->number);
        if (has_offset(m->kind))
                codec_u64(c, &m->offset);
        codec_rest(c, &m->data, &m->len);
        /* Kinds with a number have no data, and UPLOAD has neither. */
        codec_require(c, !m->len || (!has_number(m->kind) && m->kind != TUNNEL_UPLOAD));
}

DEFINE_OWNING_MESSAGE(child_agent_order, MSG_CHILD_AGENT)
DEFINE_PLAIN_MESSAGE(tunnel, MSG_TUNNEL)
