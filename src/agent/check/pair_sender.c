/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/pair_sender.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/macros.h"

/* Small pieces keep the end of the time close: a piece given to the stream is sent in full.
 * UNSENT_MAX bounds the kernel's bytes, apart from bytes that wait for an acknowledgement. */
enum { PIECE = 64 << 10, UNSENT_MAX = 128 << 10 };

/* Without TCP_NODELAY, single bytes of the echo would wait for the acknowledgement of the byte
 * before (Nagle). A failure of either option only makes the values less exact. */
void pair_sender_prepare(uv_tcp_t *t)
{
        static const int unsent = UNSENT_MAX;
        int fd;

        uv_tcp_nodelay(t, 1);
        if (uv_fileno((const uv_handle_t *)t, &fd) == 0)
                setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

static void send_piece(struct pair_sender *s);

/* libuv calls this in a later turn of the loop, also when all went at once. */
static void on_piece_sent(uv_write_t *w, int status)
{
        struct pair_sender *s = w->data;

        if (uv_is_closing((uv_handle_t *)s->to))
                return;
        if (status < 0 || !s->left || clock_ns() - s->begun_ns >= s->limit_ns)
                s->done(s, status);
        else
                send_piece(s);
}

/* The zeros are never changed, so all senders share a piece. */
static void send_piece(struct pair_sender *s)
{
        static char zeros[PIECE];
        uv_buf_t piece = uv_buf_init(zeros, (unsigned)MIN(s->left, (uint64_t)PIECE));
        int r;

        s->write.data = s;
        s->given += piece.len;
        s->left -= piece.len;
        r = uv_write(&s->write, (uv_stream_t *)s->to, &piece, 1, on_piece_sent);
        if (r < 0)
                s->done(s, r);
}

void pair_sender_start(struct pair_sender *s, uv_tcp_t *to, uint32_t ms, uint32_t bytes,
                       void (*done)(struct pair_sender *s, int status))
{
        *s = (struct pair_sender){ .to = to,
                                   .begun_ns = clock_ns(),
                                   .limit_ns = ms * INT64_C(1000000),
                                   .left = bytes,
                                   .done = done };
        send_piece(s);
}

/* A microsecond at least counts as the time, against a division by 0 and absurd rates. */
uint64_t pair_rate(uint64_t bytes, int64_t ns)
{
        return (uint64_t)((double)bytes * 1e9 / (double)MAX(ns, INT64_C(1000)));
}

/* SIOCOUTQ counts the bytes of the socket without an acknowledgement, sent or not. Bytes in the
 * queue of libuv have not reached the socket at all. */
uint64_t pair_sender_rate(const struct pair_sender *s)
{
        uint64_t queued = uv_stream_get_write_queue_size((const uv_stream_t *)s->to);
        int fd, unacknowledged = 0;

        if (uv_fileno((const uv_handle_t *)s->to, &fd) == 0)
                ioctl(fd, SIOCOUTQ, &unacknowledged);
        queued += (uint64_t)unacknowledged;
        return pair_rate(s->given - MIN(queued, s->given), clock_ns() - s->begun_ns);
}
