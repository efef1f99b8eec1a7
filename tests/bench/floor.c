/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/storm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/macros.h"
#include "base/strv.h"
#include "bench/pair.h"
#include "bench/peers.h"
#include "bench/usage.h"
#include "wire/frame.h"

enum { READ_SIZE = 64 << 10, ORDER_SIZE = FRAME_HEADER + 16 }; /* as long as a PING */

/* A request begins so. */
struct header {
        uint32_t len, answer; /* bytes of all of it, of what is sent back */
};

/* --- head ------------------------------------------------------------------------------------- */

struct line {
        uv_pipe_t pipe;
        struct buf in;
};

static struct {
        uv_loop_t loop;
        struct line *lines;
        uint32_t n_left;
        struct buf answer; /* as long as the longest */
} floor_side;

struct rest {
        uv_write_t req;
        char bytes[];
};

static void rest_written(uv_write_t *req, int status UNUSED)
{
        free(container_of(req, struct rest, req));
}

static void answer(struct line *l, size_t n)
{
        uv_stream_t *s = (uv_stream_t *)&l->pipe;
        struct buf *a = &floor_side.answer;
        uv_buf_t piece;
        int written;

        if (buf_len(a) < n) {
                size_t more = n - buf_len(a);

                memset(buf_reserve(a, more), 'a', more);
                buf_advance(a, more);
        }
        piece = uv_buf_init((char *)(uintptr_t)buf_data(a), (unsigned)n);
        written = uv_try_write(s, &piece, 1);
        written = MAX(written, 0);
        if ((size_t)written < n) {
                size_t left = n - (size_t)written;
                struct rest *r = xcalloc(1, sizeof(*r) + left);

                piece = uv_buf_init(r->bytes, (unsigned)left);
                uv_write(&r->req, s, &piece, 1, rest_written);
        }
}

static size_t serve(struct line *l, const unsigned char *p, size_t n)
{
        size_t used = 0;
        struct header h;

        while (n - used >= sizeof(h)) {
                memcpy(&h, p + used, sizeof(h));
                if (n - used < h.len)
                        break;
                answer(l, h.answer);
                used += h.len;
        }
        return used;
}

static void on_alloc(uv_handle_t *h UNUSED, size_t size UNUSED, uv_buf_t *ret)
{
        static char room[READ_SIZE];

        *ret = uv_buf_init(room, sizeof(room));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from)
{
        struct line *l = s->data;
        size_t used;

        if (n < 0) {
                uv_close((uv_handle_t *)s, NULL);
                if (--floor_side.n_left == 0)
                        uv_stop(&floor_side.loop);
        } else if (buf_len(&l->in)) {
                buf_append(&l->in, from->base, (size_t)n);
                buf_consume(&l->in, serve(l, buf_data(&l->in), buf_len(&l->in)));
        } else {
                used = serve(l, (unsigned char *)from->base, (size_t)n);
                buf_append(&l->in, from->base + used, (size_t)n - used);
        }
}

static void open_line(struct line *l, int fd)
{
        uv_pipe_init(&floor_side.loop, &l->pipe, 0);
        l->pipe.data = l;
        uv_pipe_open(&l->pipe, fd);
        uv_read_start((uv_stream_t *)&l->pipe, on_alloc, on_read);
}

bool floor_head(struct storm *s, int listener)
{
        int *fds = xcalloc(s->n_nodes, sizeof(*fds));
        int64_t begin, cpu_start, cpu_before;
        struct usage u;

        uv_loop_init(&floor_side.loop);
        floor_side.lines = xcalloc(s->n_nodes, sizeof(*floor_side.lines));
        floor_side.n_left = s->n_nodes;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                fds[i] = pair_accept(listener);
        cpu_start = usage_of(getpid()).cpu_ns;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                open_line(&floor_side.lines[i], fds[i]);
        free(fds);
        begin = usage_now_ns();
        cpu_before = usage_of(getpid()).cpu_ns;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                answer(&floor_side.lines[i], ORDER_SIZE);
        uv_run(&floor_side.loop, UV_RUN_DEFAULT);
        u = usage_of(getpid());
        s->floor.wall_ns = usage_now_ns() - begin;
        s->floor.head_ns = u.cpu_ns - cpu_before;
        s->floor.open_ns = cpu_before - cpu_start;
        s->floor.head_kb = u.peak_kb;
        return true;
}

/* --- agents ----------------------------------------------------------------------------------- */

struct trips {
        uint64_t made;
        size_t due; /* bytes that are on their way to us */
};

static struct {
        struct storm *storm;
        struct peers peers;
        struct trips *v;
        uint32_t n_left;
        int64_t begin_cpu;
} far_side;

/* The part of @all that belongs to trip @i of @n. */
static uint64_t part(uint64_t whole, uint64_t n, uint64_t i)
{
        return whole / n + (i < whole % n ? 1 : 0);
}

/* The next request; false: there are no more. */
static bool travel(struct peer *p)
{
        const struct storm_traffic *t = &far_side.storm->traffic[p->index];
        struct trips *trips = &far_side.v[p->index];
        struct header h;
        void *room;

        if (trips->made == t->writes)
                return false;
        h.len = (uint32_t)MAX(part(t->written, t->writes, trips->made), sizeof(h));
        h.answer = (uint32_t)part(t->read, t->writes, trips->made);
        trips->made++;
        trips->due = h.answer;
        buf_append(&p->out, &h, sizeof(h));
        room = buf_reserve(&p->out, h.len);
        memset(room, 'q', h.len - sizeof(h));
        buf_advance(&p->out, h.len - sizeof(h));
        return true;
}

static void arrived(void *ctx UNUSED, struct peer *p)
{
        struct trips *trips = &far_side.v[p->index];

        if (!far_side.begin_cpu)
                far_side.begin_cpu = usage_of(getpid()).cpu_ns;
        trips->due -= MIN(trips->due, buf_len(&p->in));
        far_side.storm->floor.down += trips->due == 0;
        buf_clear(&p->in);
        if (trips->due == 0 && !travel(p)) {
                peers_leave(&far_side.peers, p);
                far_side.n_left--;
        }
}

static int next(void *ctx UNUSED)
{
        return far_side.n_left == 0 ? -2 : -1;
}

bool floor_agents(struct storm *s, const char *name)
{
        struct usage u;

        far_side.storm = s;
        far_side.n_left = s->n_nodes;
        far_side.v = xcalloc(s->n_nodes, sizeof(*far_side.v));
        far_side.peers.ops = (struct peers_ops){ .arrived = arrived, .next = next };
        if (!peers_connect(&far_side.peers, name, s->n_nodes)) {
                perror("storm: connect");
                return false;
        }
        for (uint32_t i = 0; i < s->n_nodes; i++)
                far_side.v[i].due = ORDER_SIZE;
        if (!peers_run(&far_side.peers)) {
                fputs("storm: the floor has closed a connection\n", stderr);
                return false;
        }
        u = usage_of(getpid());
        s->floor.agents_ns = u.cpu_ns - far_side.begin_cpu;
        s->floor.agents_kb = u.peak_kb;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                s->floor.up += s->traffic[i].writes;
        s->floor.down -= s->n_nodes; /* the orders */
        return true;
}
