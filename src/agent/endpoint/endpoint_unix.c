/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's bytes are read into the endpoint's shared buffer, which becomes the client's own only
 * as long as it holds half a frame (take_client_bytes). Whole frames go to the relay at once.
 * Answers are encoded in the endpoint's frame buffer and written directly; only what the socket
 * does not take is copied. A client stops being read at UNREAD_PAUSE unread bytes, and while others
 * complete larger frames (unfinished.h), and is closed above UNREAD_MAX. A client is freed in its
 * close callback, where the relay learns of it.
 */
#include "agent/endpoint/endpoint_unix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utlist.h>

#include "agent/endpoint/unfinished.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/store_msg.h"

enum {
        READ_SIZE = 64 << 10,
        BACKLOG = 1024,
        /* A client with so many unread bytes is not read until the client has caught up ... */
        UNREAD_PAUSE = 4 << 20,
        /* ... and a client that leaves sixteen of the largest answers unread is closed. */
        UNREAD_MAX = 8 * FRAME_MAX,
};

struct unix_client {
        uv_pipe_t pipe; /* .data = the client */
        struct endpoint_unix *endpoint;
        struct relay_client *relay; /* lives as long as this */
        struct buf in;
        struct unfinished_part part;
        unsigned inflight; /* requests without an answer */
        bool closing, reading;
        struct unix_client *prev, *next;
};

struct endpoint_unix {
        uv_pipe_t listener;
        struct unfinished unfinished;
        struct relay *relay;
        char *path, *dir; /* dir = made by this object, NULL = not */
        struct unix_client *clients;
        struct buf shared; /* shared by clients between reads: most requests come whole */
        struct buf frame;  /* for the answer being written */
        unsigned handles;  /* not closed yet */
        bool bound, paused;
        bool full_told; /* that the store is full */
};

/* Bytes that the socket did not take at once. Trying first saves a request of the loop, and so a
 * system call, for each of many clients. */
struct unix_write {
        uv_write_t req;
        unsigned char bytes[];
};

static void update_client_reading(struct unix_client *c);
static void turn_unfinished_frames(struct endpoint_unix *e);

/* Drops one of e->handles. The last frees the endpoint. */
static void unref_unix_endpoint(struct endpoint_unix *e)
{
        if (--e->handles > 0)
                return;
        buf_finish(&e->shared);
        buf_finish(&e->frame);
        free(e->path);
        free(e->dir);
        free(e);
}

/* The memory of the client's half frame is free now, so other clients may go on. */
static void on_client_closed(uv_handle_t *h)
{
        struct unix_client *c = h->data;
        struct endpoint_unix *e = c->endpoint;

        relay_client_destroy(c->relay);
        buf_finish(&c->in);
        free(c);
        turn_unfinished_frames(e);
        unref_unix_endpoint(e);
}

/* The relay learns of it in the close callback, because this may be called from inside the
 * relay. */
static void close_client(struct unix_client *c)
{
        if (c->closing)
                return;
        c->closing = true;
        DL_DELETE(c->endpoint->clients, c);
        unfinished_remove(&c->endpoint->unfinished, &c->part);
        uv_close((uv_handle_t *)&c->pipe, on_client_closed);
}

/* False: no client may say this. Only shape and limits are looked at here. A false answer closes
 * the connection. */
static bool relay_client_frame(struct unix_client *c, const struct frame *f)
{
        struct store_head h = store_body_head(f->body, f->len);
        struct store_request req = { 0 };

        if (f->type != MSG_STORE || h.op >= STORE_OPS || c->inflight >= STORE_INFLIGHT_MAX ||
            store_request_decode(&req, f->body, f->len, NULL) < 0)
                return false;
        if (store_op_has_answer(req.op)) /* counted down in on_reply() */
                c->inflight++;
        relay_request(c->relay, &req);
        store_request_finish(&req);
        return true;
}

static void on_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct unix_client *c = h->data;
        /* A client with half a frame reads into a buffer of its own. */
        struct buf *to = buf_len(&c->in) ? &c->in : &c->endpoint->shared;
        size_t n = unfinished_read_size(&c->endpoint->unfinished, &c->part, READ_SIZE);

        ret->base = buf_reserve(to, n);
        ret->len = ret->base ? n : 0;
        if (!ret->base)
                buf_finish(to); /* only this client is closed; the buffer is shared */
}

/* Passes whole requests on. Idle clients have no buffer: thousands of connections share the buffer
 * of the endpoint, and only a client in the middle of a request takes the buffer over. */
static void take_client_bytes(struct unix_client *c, size_t n)
{
        struct buf *shared = &c->endpoint->shared;
        struct frame f;
        int ret;

        /* The bytes have been read into the shared buffer: the client takes the buffer over. */
        if (buf_len(&c->in) == 0) {
                c->in = *shared;
                *shared = (struct buf)BUF_INIT;
        }
        buf_advance(&c->in, n);
        while (!c->closing && (ret = frame_peek(&c->in, &f, NULL)) != 0) {
                if (ret > 0 && relay_client_frame(c, &f))
                        frame_consume(&c->in, &f);
                else
                        close_client(c);
        }
        if (buf_len(&c->in))
                return;
        /* Return the empty buffer, unless a large value has made it large. */
        buf_finish(shared); /* may be one that another read has made since */
        if (c->in.cap > 2 * READ_SIZE)
                buf_finish(&c->in);
        *shared = c->in;
        c->in = (struct buf)BUF_INIT;
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct unix_client *c = s->data;
        struct endpoint_unix *e = c->endpoint; /* lives until the close callbacks */

        if (n < 0)
                close_client(c);
        else if (n > 0)
                take_client_bytes(c, (size_t)n);
        if (!c->closing)
                update_client_reading(c);
        turn_unfinished_frames(e);
}

/* Starts or stops reading, depending on the endpoint's pause, the client's unread answers and the
 * memory for incomplete frames. */
static void update_client_reading(struct unix_client *c)
{
        struct unfinished *u = &c->endpoint->unfinished;
        /* Answers that the client leaves unread count, and no new requests of this client are
         * read. */
        size_t unread = uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe);
        bool want = !c->endpoint->paused && unread < UNREAD_PAUSE;

        unfinished_track(u, &c->part, buf_len(&c->in), !want);
        want = want && unfinished_may_read(u, &c->part);
        if (want && !c->reading)
                uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
        else if (!want && c->reading)
                uv_read_stop((uv_stream_t *)&c->pipe);
        c->reading = want;
}

/* --- incomplete frames ------------------------------------------------------------------------ */

static struct unix_client *client_of_part(const struct unfinished_part *p)
{
        return container_of(p, struct unix_client, part);
}

static void steer_unix_part(struct unfinished_part *p)
{
        update_client_reading(client_of_part(p));
}

/* A client that has not said HELLO is rank -1 in the log. */
static void name_unix_part(const struct unfinished_part *p, char *to, size_t size)
{
        snprintf(to, size, "rank %d", relay_client_rank(client_of_part(p)->relay));
}

static void fail_unix_part(struct unfinished_part *p, const char *why)
{
        char name[32];

        name_unix_part(p, name, sizeof(name));
        log_line(LOG_WARN, "closed a connection of %s to the store: %s", name, why);
        close_client(client_of_part(p));
}

static const struct unfinished_ops unix_unfinished = { steer_unix_part, fail_unix_part,
                                                       name_unix_part };

/* After a read, and when a client has gone. */
static void turn_unfinished_frames(struct endpoint_unix *e)
{
        struct unix_client *c;

        /* Clients are closed after the endpoint, too. */
        if (uv_is_closing((uv_handle_t *)&e->unfinished.timer))
                return;
        if (unfinished_turn(&e->unfinished)) {
                DL_FOREACH(e->clients, c)
                update_client_reading(c);
        }
        unfinished_arm(&e->unfinished);
}

/* False also when the kernel does not know the peer. */
static bool is_same_user(uv_pipe_t *pipe)
{
        struct ucred peer;
        socklen_t len = sizeof(peer);
        uv_os_fd_t fd;

        return uv_fileno((uv_handle_t *)pipe, &fd) == 0 &&
               getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* A write that is done may make room for reading; a failed write ends the client. */
static void on_written(uv_write_t *req, int status)
{
        struct unix_client *c = req->handle->data;

        free(container_of(req, struct unix_write, req));
        if (status < 0)
                close_client(c);
        else if (!c->closing)
                update_client_reading(c);
}

/* Sends bytes that the socket does not take at once. 0, or a negative errno. */
static int queue_client_bytes(struct unix_client *c, const unsigned char *p, size_t n)
{
        struct unix_write *o = malloc(sizeof(*o) + n);
        uv_buf_t piece;
        int ret;

        if (!o)
                return -ENOMEM;
        memcpy(o->bytes, p, n);
        piece = uv_buf_init((char *)o->bytes, (unsigned)n);
        ret = uv_write(&o->req, (uv_stream_t *)&c->pipe, &piece, 1, on_written);
        if (ret < 0)
                free(o);
        return ret;
}

/* Sends the frame of the endpoint. */
static void send_client_frame(struct unix_client *c)
{
        struct buf *frame = &c->endpoint->frame;
        size_t len = buf_len(frame);
        size_t queued = uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe);
        uv_buf_t piece = uv_buf_init((char *)(uintptr_t)buf_data(frame), (unsigned)len);
        /* The limit is kept before the bytes are queued, so no client can make the agent grow. */
        int n = buf_failed(frame) || queued + len > UNREAD_MAX ? -ENOMEM : 0;

        if (n == 0 && queued == 0) /* else bytes would overtake those in the queue */
                n = uv_try_write((uv_stream_t *)&c->pipe, &piece, 1);
        if (n == UV_EAGAIN)
                n = 0;
        if (n >= 0 && (size_t)n < len)
                n = queue_client_bytes(c, buf_data(frame) + n, len - (size_t)n);
        if (frame->cap > 2 * READ_SIZE || buf_failed(frame)) /* a large answer has made it large */
                buf_finish(frame);
        else
                buf_clear(frame);
        if (n < 0)
                close_client(c);
        else
                update_client_reading(c);
}

/* A reply of the relay. A refusal for lack of room is logged once. */
static void on_reply(void *ctx, const struct store_reply *reply)
{
        struct unix_client *c = ctx;
        size_t mark;

        c->inflight--;
        if (reply->status == STORE_FULL && !c->endpoint->full_told) {
                c->endpoint->full_told = true;
                log_line(LOG_WARN, "refused a request of rank %d to the store: %.*s",
                         relay_client_rank(c->relay), (int)reply->text.len,
                         (const char *)reply->text.p);
        }
        /* The counters above are kept also for a client whose close callback has not come. */
        if (c->closing)
                return;
        mark = frame_begin(&c->endpoint->frame, MSG_STORE);
        store_reply_encode(&c->endpoint->frame, reply);
        frame_end(&c->endpoint->frame, mark);
        send_client_frame(c);
}

/* An event for this client or for all, within the same limit of unread bytes. */
static void on_event(void *ctx, const struct store_event *event)
{
        struct unix_client *c = ctx;
        size_t mark;

        if (c->closing)
                return;
        mark = frame_begin(&c->endpoint->frame, MSG_STORE);
        store_event_encode(&c->endpoint->frame, event);
        frame_end(&c->endpoint->frame, mark);
        send_client_frame(c);
}

/* A new client, of the same user only. The folder's mode keeps other users out, but not root. */
static void on_connection(uv_stream_t *listener, int status)
{
        static const struct relay_client_ops ops = { .reply = on_reply,
                                                     .event = on_event,
                                                     .last_look = true };
        struct endpoint_unix *e = listener->data;
        struct unix_client *c;

        if (status < 0)
                return;
        c = xcalloc(1, sizeof(*c));
        c->endpoint = e;
        c->pipe.data = c;
        uv_pipe_init(listener->loop, &c->pipe, 0);
        e->handles++;
        DL_APPEND(e->clients, c);
        unfinished_add(&e->unfinished, &c->part);
        c->relay = relay_client_create(e->relay, ops, c);
        if (uv_accept(listener, (uv_stream_t *)&c->pipe) < 0 || !c->relay ||
            !is_same_user(&c->pipe))
                close_client(c);
        else
                update_client_reading(c);
}

void endpoint_unix_each(const struct endpoint_unix *e,
                        void (*fn)(void *ctx, const struct relay_client *client), void *ctx)
{
        const struct unix_client *c;

        DL_FOREACH(e->clients, c)
        fn(ctx, c->relay);
}

void endpoint_unix_pause(struct endpoint_unix *e, bool paused)
{
        struct unix_client *c;

        if (e->paused == paused)
                return;
        e->paused = paused;
        DL_FOREACH(e->clients, c)
        update_client_reading(c);
        turn_unfinished_frames(e);
}

static void on_listener_closed(uv_handle_t *h)
{
        unref_unix_endpoint(h->data);
}

void endpoint_unix_hang_up(struct endpoint_unix *e)
{
        struct unix_client *c, *next;

        DL_FOREACH_SAFE(e->clients, c, next)
        close_client(c);
}

void endpoint_unix_destroy(struct endpoint_unix *e)
{
        if (!e)
                return;
        endpoint_unix_hang_up(e);
        if (e->bound)
                unlink(e->path);
        if (e->dir)
                rmdir(e->dir);
        uv_close((uv_handle_t *)&e->listener, on_listener_closed);
        uv_close((uv_handle_t *)&e->unfinished.timer, on_listener_closed);
}

/* Makes the folder of @path, or checks that no other user can use it. */
static int ensure_own_folder(struct endpoint_unix *e, struct error *err)
{
        char *dir = xstrdup(e->path), *slash = strrchr(dir, '/');
        struct stat st;
        int ret = 0;

        if (slash)
                *slash = '\0';
        if (!slash || slash == dir) {
                ret = err_set(err, EINVAL, "%s: not a path in a folder of its own", e->path);
        } else if (mkdir(dir, 0700) == 0) {
                e->dir = dir;
                return 0;
        } else if (errno != EEXIST) {
                ret = err_set(err, errno, "cannot make %s: %s", dir, strerror(errno));
        } else if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
                   (st.st_mode & 077)) {
                ret = err_set(err, EPERM, "%s must be a folder of ours with mode 0700", dir);
        }
        free(dir);
        return ret;
}

/* Binds and listens in a folder of mode 0700. The mask keeps the socket private from the first
 * moment. 0, or -errno with @err. */
static int listen_on_path(struct endpoint_unix *e, struct error *err)
{
        mode_t mask;
        int ret;

        if (strlen(e->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
                return err_set(err, ENAMETOOLONG, "%s: too long for a socket", e->path);
        if (ensure_own_folder(e, err) < 0)
                return -err->code;
        /* The folder is ours alone, so an old socket there is of an earlier agent. */
        unlink(e->path);
        mask = umask(0177); /* no window between bind() and chmod() */
        ret = uv_pipe_bind(&e->listener, e->path);
        umask(mask);
        e->bound = ret == 0;
        if (ret == 0)
                ret = uv_listen((uv_stream_t *)&e->listener, BACKLOG, on_connection);
        return ret < 0 ? err_set(err, -ret, "cannot listen on %s: %s", e->path, uv_strerror(ret))
                       : 0;
}

struct endpoint_unix *endpoint_unix_create(uv_loop_t *loop, const char *path, struct relay *relay,
                                           struct error *err)
{
        struct endpoint_unix *e = xcalloc(1, sizeof(*e));
        struct error local = { 0 };

        e->relay = relay;
        e->path = xstrdup(path);
        uv_pipe_init(loop, &e->listener, 0);
        unfinished_init(&e->unfinished, loop, &unix_unfinished, &e->paused, 0, e);
        e->listener.data = e;
        e->handles = 2; /* listener and timer */
        if (listen_on_path(e, &local) == 0)
                return e;
        endpoint_unix_destroy(e);
        err_set(err, local.code, "%s", local.text);
        return NULL;
}
