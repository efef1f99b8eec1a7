/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/endpoint_msg.h"

#include <stdlib.h>
#include <string.h>

#include "wire/msg_private.h"

enum { ADDRESS_MAX = 64 };

void endpoint_order_encode(struct buf *b, const struct endpoint_order *m)
{
        size_t mark = frame_begin(b, MSG_ENDPOINT);

        put_u8(b, m->mode);
        put_str(b, m->token);
        put_u32(b, m->value_max);
        put_strv(b, &m->peers);
        frame_end(b, mark);
}

int endpoint_order_decode(struct endpoint_order *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        m->mode = take_u8(&r);
        take_str_into(&r, m->token, sizeof(m->token));
        m->value_max = take_u32(&r);
        take_strv(&r, ENDPOINT_PEERS_MAX, ADDRESS_MAX, &m->peers);
        if (m->mode != ENDPOINT_LOOPBACK && m->mode != ENDPOINT_NETWORK)
                r.failed = true;
        if (msg_done(&r, f, err) == 0)
                return 0;
        endpoint_order_finish(m);
        return -err->code;
}

void endpoint_order_finish(struct endpoint_order *m)
{
        strv_finish(&m->peers);
        memset(m, 0, sizeof(*m));
}

void endpoint_opened_encode(struct buf *b, const struct endpoint_opened *m)
{
        size_t mark = frame_begin(b, MSG_ENDPOINT_OPENED);

        put_u32(b, m->port);
        put_str(b, m->text);
        frame_end(b, mark);
}

int endpoint_opened_decode(struct endpoint_opened *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        m->port = take_u32(&r);
        take_str_into(&r, m->text, sizeof(m->text));
        return msg_done(&r, f, err);
}

void probe_order_encode(struct buf *b, const struct probe_order *m)
{
        size_t mark = frame_begin(b, MSG_PROBE);

        put_str(b, m->token);
        put_u32(b, m->port);
        put_u32(b, m->timeout_ms);
        put_strv(b, &m->addrs);
        frame_end(b, mark);
}

int probe_order_decode(struct probe_order *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        take_str_into(&r, m->token, sizeof(m->token));
        m->port = take_u32(&r);
        m->timeout_ms = take_u32(&r);
        take_strv(&r, ENDPOINT_CANDIDATES_MAX, ADDRESS_MAX, &m->addrs);
        if (msg_done(&r, f, err) == 0)
                return 0;
        probe_order_finish(m);
        return -err->code;
}

void probe_order_finish(struct probe_order *m)
{
        strv_finish(&m->addrs);
        memset(m, 0, sizeof(*m));
}

void probed_encode(struct buf *b, const struct probed *m)
{
        size_t mark = frame_begin(b, MSG_PROBED);

        put_u32(b, m->n);
        for (uint32_t i = 0; i < m->n; i++) {
                put_u32(b, m->results[i].error);
                put_str(b, m->results[i].iface);
                put_u32(b, m->results[i].us);
        }
        frame_end(b, mark);
}

int probed_decode(struct probed *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        m->results = msg_take_array(&r, ENDPOINT_CANDIDATES_MAX, sizeof(*m->results), &m->n);
        for (uint32_t i = 0; i < m->n; i++) {
                m->results[i].error = take_u32(&r);
                take_str_into(&r, m->results[i].iface, sizeof(m->results[i].iface));
                m->results[i].us = take_u32(&r);
        }
        if (msg_done(&r, f, err) == 0)
                return 0;
        probed_finish(m);
        return -err->code;
}

void probed_finish(struct probed *m)
{
        free(m->results);
        memset(m, 0, sizeof(*m));
}
