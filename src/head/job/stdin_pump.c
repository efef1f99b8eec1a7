/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminals and pipes are read by the loop. A regular file, which poll() always calls readable, is
 * read by a thread of the pool, piece by piece.
 *
 * taken[] counts by rank the bytes for which the agent has sent a CREDIT. The pump is paused while
 * sent - min(taken) is a window or more; a rank without interest counts as UINT64_MAX. After the
 * last piece an empty piece tells the end.
 */
#include "head/job/stdin_pump.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "head/job/attempt.h"
#include "head/job/cluster.h"

struct stdin_pump {
        struct cluster *cluster;
        const struct attempt *attempt;
        bool all; /* every rank is sent the bytes, else rank 0 */
        uint64_t sent, *taken;
        struct thread_pool *pool;
        union {
                uv_handle_t handle;
                uv_stream_t stream;
                uv_tty_t tty;
                uv_pipe_t pipe;
        } h;
        struct thread_pool_work work;
        ssize_t got; /* by the last read of a file */
        bool is_file, reading, closing, paused, ended;
        int fd;
        char buffer[32768];
};

static void read_next_piece(struct stdin_pump *p);

static void provide_buffer(uv_handle_t *h, size_t size UNUSED, uv_buf_t *ret)
{
        struct stdin_pump *p = h->data;

        *ret = uv_buf_init(p->buffer, sizeof(p->buffer));
}

static void send_stdin(struct node *n, uint32_t rank, const void *data, size_t len)
{
        rank_bytes_encode(&n->out, MSG_STDIN, rank, data, len);
        node_flush(n);
}

/* Sends a piece; @len 0 = the end. */
static void pump_piece(struct stdin_pump *p, const void *data, size_t len);

static void on_stdin(uv_stream_t *s, ssize_t got, const uv_buf_t *b)
{
        struct stdin_pump *p = s->data;

        if (got > 0) {
                pump_piece(p, b->base, (size_t)got);
        } else if (got < 0) {
                p->ended = true;
                uv_read_stop(s);
                pump_piece(p, NULL, 0);
        }
}

/* Pauses while the slowest rank has a full window of bytes under way. */
static void update_pause(struct stdin_pump *p)
{
        uint64_t least = p->sent;
        bool paused;

        for (int r = 0; r < (p->all ? p->attempt->plan->world_size : 1); r++)
                least = MIN(least, p->taken[r]);
        paused = p->sent - least >= MSG_WINDOW;
        if (p->paused == paused)
                return;
        p->paused = paused;
        if (p->ended)
                return;
        if (p->is_file && !paused && !p->reading)
                read_next_piece(p);
        else if (!p->is_file && paused)
                uv_read_stop(&p->h.stream);
        else if (!p->is_file)
                uv_read_start(&p->h.stream, provide_buffer, on_stdin);
}

static void pump_piece(struct stdin_pump *p, const void *data, size_t len)
{
        struct node *first = &p->cluster->nodes[p->attempt->plan->ranks[0].node];

        if (p->all)
                for (struct node *n = NULL; (n = cluster_each_running(p->cluster, n));)
                        send_stdin(n, MSG_EVERY_RANK, data, len);
        else if (first->state == NODE_RUNNING)
                send_stdin(first, 0, data, len);
        p->sent += len;
        update_pause(p);
}

/* In a thread. */
static void read_piece(struct thread_pool_work *w)
{
        struct stdin_pump *p = container_of(w, struct stdin_pump, work);

        p->got = read(p->fd, p->buffer, sizeof(p->buffer));
}

static void free_pump(struct stdin_pump *p)
{
        free(p->taken);
        free(p);
}

static void on_piece(struct thread_pool_work *w, int status UNUSED)
{
        struct stdin_pump *p = container_of(w, struct stdin_pump, work);

        p->reading = false;
        if (p->closing) {
                free_pump(p);
                return;
        }
        pump_piece(p, p->buffer, p->got > 0 ? (size_t)p->got : 0);
        p->ended = p->got <= 0;
        if (!p->ended && !p->paused)
                read_next_piece(p);
}

static void read_next_piece(struct stdin_pump *p)
{
        p->reading = true;
        p->work = (struct thread_pool_work){ .run = read_piece, .done = on_piece };
        thread_pool_run(p->pool, &p->work);
}

struct stdin_pump *stdin_pump_create(struct cluster *c, const struct attempt *a,
                                     struct thread_pool *pool, int fd, bool all)
{
        struct stdin_pump *p = xcalloc(1, sizeof(*p));
        int r = -1;

        p->cluster = c;
        p->attempt = a;
        p->all = all;
        p->taken = xcalloc((size_t)a->plan->world_size, sizeof(*p->taken));
        p->pool = pool;
        p->fd = fd;
        switch (uv_guess_handle(fd)) {
        case UV_TTY:
                r = uv_tty_init(c->loop, &p->h.tty, fd, 1);
                break;
        case UV_NAMED_PIPE:
                r = uv_pipe_init(c->loop, &p->h.pipe, 0);
                if (!r)
                        r = uv_pipe_open(&p->h.pipe, dup(fd));
                break;
        default:
                p->is_file = true;
                read_next_piece(p);
                return p;
        }
        if (r) {
                pump_piece(p, NULL, 0);
                free_pump(p);
                return NULL;
        }
        p->h.handle.data = p;
        uv_read_start(&p->h.stream, provide_buffer, on_stdin);
        return p;
}

int stdin_pump_credit(struct stdin_pump *p, int rank, uint32_t bytes)
{
        if (!p || (!p->all && rank != 0))
                return -EPROTO;
        if (p->taken[rank] == UINT64_MAX)
                return 0;
        if (bytes > p->sent - p->taken[rank])
                return -EPROTO;
        p->taken[rank] += bytes;
        update_pause(p);
        return 0;
}

void stdin_pump_left(struct stdin_pump *p, int rank)
{
        if (!p || (!p->all && rank != 0))
                return;
        p->taken[rank] = UINT64_MAX;
        update_pause(p);
}

static void on_closed(uv_handle_t *h)
{
        free_pump(h->data);
}

void stdin_pump_destroy(struct stdin_pump *p)
{
        if (!p)
                return;
        p->closing = true;
        if (!p->is_file)
                uv_close(&p->h.handle, on_closed);
        else if (!p->reading)
                free_pump(p);
}
