/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/send_queue.h"

static void flush_queued_nodes(uv_prepare_t *h)
{
        struct send_queue *q = h->data;

        while (q->first) {
                struct node *n = q->first;

                q->first = n->queued.next;
                n->queued.yes = false;
                node_flush(n);
        }
}

void send_queue_init(struct send_queue *q, uv_loop_t *loop)
{
        *q = (struct send_queue){ 0 };
        uv_prepare_init(loop, &q->prepare);
        q->prepare.data = q;
        uv_prepare_start(&q->prepare, flush_queued_nodes);
        uv_unref((uv_handle_t *)&q->prepare);
}

void send_queue_add(struct send_queue *q, struct node *n)
{
        if (n->queued.yes)
                return;
        n->queued.yes = true;
        n->queued.next = q->first;
        q->first = n;
}
