/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/send_queue.h"

static void flush_all(struct send_queue *o)
{
        while (o->first) {
                struct node *n = o->first;

                o->first = n->next_out;
                n->in_outbox = false;
                node_flush(n);
        }
}

static void checked(uv_check_t *h)
{
        flush_all(h->data);
}

static void prepared(uv_prepare_t *h)
{
        flush_all(h->data);
}

void send_queue_init(struct send_queue *o, uv_loop_t *loop)
{
        *o = (struct send_queue){ 0 };
        uv_check_init(loop, &o->check);
        uv_prepare_init(loop, &o->prepare);
        o->check.data = o->prepare.data = o;
        uv_check_start(&o->check, checked);
        uv_prepare_start(&o->prepare, prepared);
        uv_unref((uv_handle_t *)&o->check);
        uv_unref((uv_handle_t *)&o->prepare);
}

void send_queue_add(struct send_queue *o, struct node *n)
{
        if (n->in_outbox)
                return;
        n->in_outbox = true;
        n->next_out = o->first;
        o->first = n;
}

void send_queue_close(struct send_queue *o)
{
        uv_close((uv_handle_t *)&o->check, NULL);
        uv_close((uv_handle_t *)&o->prepare, NULL);
}
