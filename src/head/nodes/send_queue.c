/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/send_queue.h"

static void flush_queued_nodes(struct send_queue *q)
{
        while (q->first) {
                struct node *n = q->first;

                q->first = n->next_queued;
                n->queued = false;
                node_flush(n);
        }
}

static void on_loop_check(uv_check_t *h)
{
        flush_queued_nodes(h->data);
}

static void on_loop_prepare(uv_prepare_t *h)
{
        flush_queued_nodes(h->data);
}

void send_queue_init(struct send_queue *q, uv_loop_t *loop)
{
        *q = (struct send_queue){ 0 };
        uv_check_init(loop, &q->check);
        uv_prepare_init(loop, &q->prepare);
        q->check.data = q->prepare.data = q;
        uv_check_start(&q->check, on_loop_check);
        uv_prepare_start(&q->prepare, on_loop_prepare);
        uv_unref((uv_handle_t *)&q->check);
        uv_unref((uv_handle_t *)&q->prepare);
}

void send_queue_add(struct send_queue *q, struct node *n)
{
        if (n->queued)
                return;
        n->queued = true;
        n->next_queued = q->first;
        q->first = n;
}

void send_queue_close(struct send_queue *q)
{
        uv_close((uv_handle_t *)&q->check, NULL);
        uv_close((uv_handle_t *)&q->prepare, NULL);
}
