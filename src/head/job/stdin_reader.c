/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/stdin_reader.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/strv.h"

struct feed {
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
        char room[32768];
        void (*bytes)(void *ctx, const void *data, size_t len);
        void *ctx;
};

static void give_room(uv_handle_t *h, size_t size, uv_buf_t *ret)
{
        struct feed *f = h->data;

        (void)size;
        *ret = uv_buf_init(f->room, sizeof(f->room));
}

static void arrived(uv_stream_t *s, ssize_t got, const uv_buf_t *b)
{
        struct feed *f = s->data;

        if (got > 0) {
                f->bytes(f->ctx, b->base, (size_t)got);
        } else if (got < 0) {
                f->ended = true;
                uv_read_stop(s);
                f->bytes(f->ctx, NULL, 0);
        }
}

static void file_next(struct feed *f);

/* In a thread. */
static void read_file(struct thread_pool_work *w)
{
        struct feed *f = container_of(w, struct feed, work);

        f->got = read(f->fd, f->room, sizeof(f->room));
}

static void file_read(struct thread_pool_work *w, int status UNUSED)
{
        struct feed *f = container_of(w, struct feed, work);

        f->reading = false;
        if (f->closing) {
                free(f);
                return;
        }
        f->bytes(f->ctx, f->room, f->got > 0 ? (size_t)f->got : 0);
        f->ended = f->got <= 0;
        if (!f->ended && !f->paused)
                file_next(f);
}

static void file_next(struct feed *f)
{
        f->reading = true;
        f->work = (struct thread_pool_work){ .run = read_file, .done = file_read };
        thread_pool_run(f->pool, &f->work);
}

struct feed *stdin_reader_create(uv_loop_t *loop, struct thread_pool *pool, int fd,
                                 void (*bytes)(void *ctx, const void *data, size_t len), void *ctx)
{
        struct feed *f = xcalloc(1, sizeof(*f));
        int r = -1;

        f->pool = pool;
        f->fd = fd;
        f->bytes = bytes;
        f->ctx = ctx;
        switch (uv_guess_handle(fd)) {
        case UV_TTY:
                r = uv_tty_init(loop, &f->h.tty, fd, 1);
                break;
        case UV_NAMED_PIPE:
                r = uv_pipe_init(loop, &f->h.pipe, 0);
                if (!r)
                        r = uv_pipe_open(&f->h.pipe, dup(fd));
                break;
        default:
                f->is_file = true;
                file_next(f);
                return f;
        }
        if (r) {
                bytes(ctx, NULL, 0);
                free(f);
                return NULL;
        }
        f->h.handle.data = f;
        uv_read_start(&f->h.stream, give_room, arrived);
        return f;
}

void stdin_reader_pause(struct feed *f, bool paused)
{
        if (!f || f->paused == paused)
                return;
        f->paused = paused;
        if (f->ended)
                return;
        if (f->is_file && !paused && !f->reading)
                file_next(f);
        else if (!f->is_file && paused)
                uv_read_stop(&f->h.stream);
        else if (!f->is_file)
                uv_read_start(&f->h.stream, give_room, arrived);
}

static void closed(uv_handle_t *h)
{
        free(h->data);
}

void stdin_reader_destroy(struct feed *f)
{
        if (!f)
                return;
        f->closing = true;
        if (!f->is_file)
                uv_close(&f->h.handle, closed);
        else if (!f->reading)
                free(f);
}
