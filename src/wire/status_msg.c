/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/status_msg.h"

#include <stdlib.h>
#include <string.h>

#include "wire/msg_private.h"

enum { RANKS_MAX = 1 << 16, CONNS_MAX = 1 << 18 };

void status_request_encode(struct buf *b, uint32_t number)
{
        msg_encode_u32(b, MSG_STATUS_REQUEST, number);
}

int status_request_decode(uint32_t *number, const struct frame *f, struct error *err)
{
        return msg_decode_u32(number, f, err);
}

static void put_status_wait(struct buf *b, const struct node_status_wait *w)
{
        put_str(b, w->op);
        put_str(b, w->key);
        put_u32(b, w->n_keys);
        put_u32(b, w->ms);
}

static void take_status_wait(struct reader *r, struct node_status_wait *w)
{
        take_str_into(r, w->op, sizeof(w->op));
        take_str_into(r, w->key, sizeof(w->key));
        w->n_keys = take_u32(r);
        w->ms = take_u32(r);
}

static void put_status_rank(struct buf *b, const struct node_status_rank *k)
{
        put_u32(b, k->rank);
        put_u32(b, k->local_rank);
        put_u32(b, k->pid);
        put_u8(b, k->state);
        put_u32(b, k->started_ms);
        put_u32(b, k->said_ms);
        put_u32(b, k->seen_ms);
        put_u32(b, k->cpu_percent);
        put_str(b, k->channel);
        put_status_wait(b, &k->wait);
        put_u32(b, k->n_ports);
        for (uint32_t i = 0; i < k->n_ports; i++)
                put_u32(b, k->ports[i]);
}

static void take_status_rank(struct reader *r, struct node_status_rank *k)
{
        k->rank = take_u32(r);
        k->local_rank = take_u32(r);
        k->pid = take_u32(r);
        k->state = take_u8(r);
        k->started_ms = take_u32(r);
        k->said_ms = take_u32(r);
        k->seen_ms = take_u32(r);
        k->cpu_percent = take_u32(r);
        take_str_into(r, k->channel, sizeof(k->channel));
        take_status_wait(r, &k->wait);
        k->n_ports = take_u32(r);
        if (k->n_ports > STATUS_PORTS) {
                k->n_ports = 0;
                r->failed = true;
        }
        for (uint32_t i = 0; i < k->n_ports; i++)
                k->ports[i] = take_u32(r);
}

static void put_status_conn(struct buf *b, const struct node_status_conn *c)
{
        put_str(b, c->addr);
        put_u32(b, c->port);
        put_u32(b, c->seen_ms);
        put_status_wait(b, &c->wait);
}

static void take_status_conn(struct reader *r, struct node_status_conn *c)
{
        take_str_into(r, c->addr, sizeof(c->addr));
        c->port = take_u32(r);
        c->seen_ms = take_u32(r);
        take_status_wait(r, &c->wait);
}

void node_status_encode(struct buf *b, const struct node_status *m)
{
        size_t mark = frame_begin(b, MSG_STATUS);

        put_u32(b, m->number);
        put_u32(b, m->rejected);
        put_u32(b, m->n_ranks);
        for (uint32_t i = 0; i < m->n_ranks; i++)
                put_status_rank(b, &m->ranks[i]);
        put_u32(b, m->n_conns);
        for (uint32_t i = 0; i < m->n_conns; i++)
                put_status_conn(b, &m->conns[i]);
        frame_end(b, mark);
}

int node_status_decode(struct node_status *m, const struct frame *f, struct error *err)
{
        struct reader r = READER_INIT(f->body, f->len);

        memset(m, 0, sizeof(*m));
        m->number = take_u32(&r);
        m->rejected = take_u32(&r);
        m->ranks = msg_take_array(&r, RANKS_MAX, sizeof(*m->ranks), &m->n_ranks);
        for (uint32_t i = 0; i < m->n_ranks && !r.failed; i++)
                take_status_rank(&r, &m->ranks[i]);
        m->conns = msg_take_array(&r, CONNS_MAX, sizeof(*m->conns), &m->n_conns);
        for (uint32_t i = 0; i < m->n_conns && !r.failed; i++)
                take_status_conn(&r, &m->conns[i]);
        if (msg_done(&r, f, err) == 0)
                return 0;
        node_status_finish(m);
        return -err->code;
}

void node_status_finish(struct node_status *m)
{
        free(m->ranks);
        free(m->conns);
        memset(m, 0, sizeof(*m));
}
