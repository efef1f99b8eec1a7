/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tree_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/msg_private.h"

enum { KNOWN_MAX = 1 << 20 };

void child_agent_order_encode(struct buf *b, const struct child_agent_order *m)
{
        size_t mark = frame_begin(b, MSG_CHILD_AGENT);

        put_u32(b, m->number);
        put_u32(b, m->options_at);
        put_u8(b, m->lent_agent);
        put_strv(b, &m->argv);
        put_str(b, m->alias);
        put_str(b, m->known_hosts);
        frame_end(b, mark);
}

int child_agent_order_decode(struct child_agent_order *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        m->number = take_u32(&r);
        m->options_at = take_u32(&r);
        m->lent_agent = take_u8(&r);
        take_strv(&r, MSG_MAX_STRINGS, MSG_MAX_STRING, &m->argv);
        m->alias = take_str(&r, MSG_MAX_STRING);
        m->known_hosts = take_str(&r, KNOWN_MAX);
        if (!m->options_at || m->options_at > m->argv.n)
                r.failed = true;
        if (msg_done(&r, f, err) == 0)
                return 0;
        child_agent_order_finish(m);
        return -EPROTO;
}

void child_agent_order_finish(struct child_agent_order *m)
{
        strv_finish(&m->argv);
        free(m->alias);
        free(m->known_hosts);
        memset(m, 0, sizeof(*m));
}

void prune_encode(struct buf *b, uint32_t child)
{
        msg_encode_u32(b, MSG_PRUNE, child);
}

int prune_decode(uint32_t *child, const struct frame *f, struct error *err)
{
        return msg_decode_u32(child, f, err);
}

static bool has_offset(uint8_t kind)
{
        return kind == TUNNEL_GIVE || kind == TUNNEL_CLOCK || kind == TUNNEL_COMMON;
}

static bool has_number(uint8_t kind)
{
        return has_offset(kind) || kind == TUNNEL_TOOK || kind == TUNNEL_ENDED ||
               kind == TUNNEL_WATCH || kind == TUNNEL_HEARD;
}

void tunnel_encode(struct buf *b, const struct tunnel *m)
{
        size_t mark = frame_begin(b, MSG_TUNNEL);

        put_u32(b, m->child);
        put_u8(b, m->kind);
        if (has_number(m->kind))
                put_u32(b, m->number);
        if (m->kind == TUNNEL_GIVE)
                put_u32(b, m->entry);
        if (has_offset(m->kind))
                put_u64(b, m->offset);
        buf_append(b, m->data, m->len);
        frame_end(b, mark);
}

int tunnel_decode(struct tunnel *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        m->child = take_u32(&r);
        m->kind = take_u8(&r);
        if (m->kind >= TUNNEL_KINDS)
                r.failed = true;
        if (has_number(m->kind))
                m->number = take_u32(&r);
        if (m->kind == TUNNEL_GIVE)
                m->entry = take_u32(&r);
        if (has_offset(m->kind))
                m->offset = take_u64(&r);
        m->data = take_rest(&r, &m->len);
        if (m->len && (has_number(m->kind) || m->kind == TUNNEL_UPLOAD))
                r.failed = true;
        return msg_done(&r, f, err);
}
