/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes for the far end collect in n->out. node_flush() writes as much as the pipe takes at once
 * and leaves the rest to libuv (io->in_flight, a single write); a tunnel takes all.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "head/nodes/node_private.h"
#include "head/nodes/send_queue.h"

enum { KEEP = 256 }; /* memory kept by an empty buffer: enough for a ping */

/* Frees the memory of a large message, which the following small messages do not need. */
static void trim_node_buffer(struct buf *b)
{
        if (buf_len(b) == 0 && b->cap > KEEP)
                buf_finish(b);
}

/* Counts bytes in this process; the kernel bounds the rest. */
static size_t count_unread(const struct node *n)
{
        const struct node_io *io = n->io;

        return buf_len(&n->out) +
               (io->writing ? uv_stream_get_write_queue_size((const uv_stream_t *)&io->pipe) : 0);
}

/* Fails the node from the loop: the caller of node_has_room() may be in the middle of a message. */
static void on_node_overrun(uv_timer_t *t)
{
        struct node *n = t->data;

        node_break(n, LINK_OTHER, "the agent does not read: %zu MiB of messages wait for it",
                   count_unread(n) >> 20);
        buf_finish(&n->out);
}

bool node_has_room(struct node *n, size_t len)
{
        if (count_unread(n) + len <= NODE_UNREAD_MAX + n->answers_max)
                return true;
        /* The timer has no other use after HELLO. */
        uv_timer_start(&n->io->deadline, on_node_overrun, 0, 0);
        return false;
}

/* The bytes in flight are written; bytes appended meanwhile follow in the next write. */
static void on_node_written(uv_write_t *req, int status)
{
        struct node *n = req->data;
        struct node_io *io = n->io;

        io->writing = false;
        io->handles--;
        buf_clear(&io->in_flight);
        trim_node_buffer(&io->in_flight);
        if (io->closing)
                return;
        if (status < 0)
                node_ask_reason(n);
        if (status < 0 && n->failure && n->failure->cause == LINK_HOLD)
                node_fail(n, n->failure);
        else if (status < 0)
                node_break(n, LINK_ENDED, "cannot write to the agent: %s", uv_strerror(status));
        else
                node_flush(n);
}

void node_flush(struct node *n)
{
        struct node_io *io = n->io;
        struct buf empty = io->in_flight;
        uv_buf_t piece;
        int r;

        if (!node_has_room(n, 0))
                return;
        if (io->stream == STREAM_TUNNEL && !io->closing) {
                io->link->transport->ops->send(io->link, &n->out);
                trim_node_buffer(&n->out);
                return;
        }
        if (io->writing || io->closing || io->stream != STREAM_PIPE)
                return;
        if (buf_failed(&n->out)) {
                node_break(n, LINK_OTHER, "out of memory for messages to the agent");
                return;
        }
        if (!buf_len(&n->out))
                return;
        /* As a rule the pipe takes everything at once. An error is left to uv_write(), to be
         * reported from the loop and not inside the caller's function. */
        piece = uv_buf_init((char *)n->out.mem + n->out.start, (unsigned)buf_len(&n->out));
        r = uv_try_write((uv_stream_t *)&io->pipe, &piece, 1);
        if (r > 0)
                buf_consume(&n->out, (size_t)r);
        trim_node_buffer(&n->out);
        if (!buf_len(&n->out))
                return;
        /* Hands the rest to libuv; frames added meanwhile form the next write. */
        io->in_flight = n->out;
        n->out = empty;
        piece = uv_buf_init((char *)io->in_flight.mem + io->in_flight.start,
                            (unsigned)buf_len(&io->in_flight));
        io->write.data = n;
        if (uv_write(&io->write, (uv_stream_t *)&io->pipe, &piece, 1, on_node_written) == 0) {
                io->writing = true;
                io->handles++;
        }
}

bool node_unsent(const struct node *n)
{
        struct node_io *io = n->io;
        uv_os_fd_t fd;
        int waiting = 0;

        /* SIOCOUTQ is 0 when the other end of the socket has read all. */
        if (io->stream != STREAM_PIPE || io->closing ||
            uv_fileno((const uv_handle_t *)&io->pipe, &fd) != 0)
                return false;
        return buf_len(&n->out) || io->writing || (ioctl(fd, SIOCOUTQ, &waiting) == 0 && waiting);
}

void node_out_long(struct node *n, const void *p, size_t len)
{
        struct node_io *io = n->io;
        uv_buf_t pieces[] = {
                uv_buf_init((char *)n->out.mem + n->out.start, (unsigned)buf_len(&n->out)),
                uv_buf_init((char *)(uintptr_t)p, (unsigned)len),
        };
        size_t queued = pieces[0].len, taken = 0;
        int r = 0;

        if (!io->writing && !io->closing && io->stream == STREAM_PIPE && !buf_failed(&n->out))
                r = uv_try_write((uv_stream_t *)&io->pipe, pieces, 2);
        if (r > 0) {
                buf_consume(&n->out, MIN(queued, (size_t)r));
                taken = (size_t)r - MIN(queued, (size_t)r);
        }
        buf_append(&n->out, (const char *)p + taken, len - taken);
        trim_node_buffer(&n->out);
}

void node_common(struct node *n, const struct buf *frame)
{
        struct node_io *io = n->io;

        /* A reference is sent at once, and must not overtake bytes that wait in n->out. */
        if (io->stream == STREAM_TUNNEL && !io->closing && n->parent && !buf_len(&n->out))
                io->link->transport->ops->common(io->link, buf_len(frame));
        else
                buf_append(&n->out, buf_data(frame), buf_len(frame));
}

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

void node_dismiss(struct node *n)
{
        empty_encode(&n->out, MSG_BYE);
        node_flush(n);
}
