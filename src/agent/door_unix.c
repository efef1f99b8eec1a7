/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/door_unix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/buf.h"
#include "base/macros.h"
#include "base/strv.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/store_msg.h"

enum {
        READ_SIZE = 64 << 10,
        BACKLOG = 1024,
        /* A client with that many unread bytes is not read any more until it has caught up ... */
        UNREAD_PAUSE = 4 << 20,
        /* ... and one that had sixteen of the largest answers under way and reads none is closed.
         */
        UNREAD_MAX = 8 * FRAME_MAX,
};

struct client {
        uv_pipe_t pipe; /* .data = the client */
        struct door *door;
        uint32_t id;
        struct buf in;
        unsigned inflight; /* requests without an answer */
        bool announced;    /* the head has heard of it, so it must hear that it is gone */
        bool closing, reading;
        UT_hash_handle hh;
};

struct door {
        uv_pipe_t listener;
        struct door_ops ops;
        void *ctx;
        char *path, *dir; /* dir = made by us, NULL = not */
        struct client *clients;
        uint32_t next_id;
        unsigned handles; /* not closed yet */
        bool bound, paused, destroyed;
};

/* One write: the frame stands behind it. */
struct outgoing {
        uv_write_t req;
        size_t len;
        unsigned char bytes[];
};

static void client_read(struct client *c);

static void door_unref(struct door *d)
{
        if (--d->handles > 0)
                return;
        free(d->path);
        free(d->dir);
        free(d);
}

static void client_closed(uv_handle_t *h)
{
        struct client *c = h->data;
        struct door *d = c->door;

        buf_finish(&c->in);
        free(c);
        door_unref(d);
}

static void client_close(struct client *c)
{
        struct door *d = c->door;
        struct store_request gone = { .client = c->id, .op = STORE_GONE };
        struct buf b = BUF_INIT;

        if (c->closing)
                return;
        c->closing = true;
        HASH_DEL(d->clients, c);
        uv_close((uv_handle_t *)&c->pipe, client_closed);
        if (!c->announced || d->destroyed)
                return;
        store_request_encode(&b, &gone);
        if (!buf_failed(&b))
                d->ops.send(d->ctx, buf_data(&b), buf_len(&b));
        buf_finish(&b);
}

/* False: no client may say this. Only shape and limits are looked at here. */
static bool acceptable(const struct frame *f)
{
        struct store_request req = { 0 };
        struct store_head h = store_body_head(f->body, f->len);
        bool good = f->type == MSG_STORE && h.op < STORE_OPS &&
                    store_request_decode(&req, f->body, f->len, NULL) == 0;

        store_request_finish(&req);
        return good;
}

static bool pass_up(struct client *c, const struct frame *f)
{
        uint8_t op = store_body_head(f->body, f->len).op;

        if (!acceptable(f) || c->inflight >= STORE_INFLIGHT_MAX)
                return false;
        if (op < STORE_CANCEL)
                c->inflight++;
        c->announced = true;
        /* The frame lies in our own buffer, so its client field can be filled in place. */
        store_body_set_client((void *)f->body, c->id);
        c->door->ops.send(c->door->ctx, f->body, f->len);
        return true;
}

static void take_frames(struct client *c)
{
        struct frame f;
        int ret;

        while (!c->closing && (ret = frame_peek(&c->in, &f, NULL)) != 0) {
                if (ret < 0 || !pass_up(c, &f)) {
                        client_close(c);
                        return;
                }
                frame_consume(&c->in, &f);
        }
        /* A large value leaves a large buffer behind; small requests do not need it. */
        if (buf_len(&c->in) == 0 && c->in.cap > READ_SIZE)
                buf_finish(&c->in);
}

static void on_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct client *c = h->data;

        ret->base = buf_reserve(&c->in, READ_SIZE);
        ret->len = ret->base ? READ_SIZE : 0;
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct client *c = s->data;

        if (n < 0) {
                client_close(c);
        } else if (n > 0) {
                buf_advance(&c->in, (size_t)n);
                take_frames(c);
        }
        if (!c->closing)
                client_read(c);
}

/* Starts or stops reading as the door and the client's own backlog want it. */
static void client_read(struct client *c)
{
        size_t unread = uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe);
        bool want = !c->door->paused && unread < UNREAD_PAUSE;

        if (want && !c->reading)
                uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
        else if (!want && c->reading)
                uv_read_stop((uv_stream_t *)&c->pipe);
        c->reading = want;
}

static bool same_user(uv_pipe_t *pipe)
{
        struct ucred peer;
        socklen_t len = sizeof(peer);
        uv_os_fd_t fd;

        return uv_fileno((uv_handle_t *)pipe, &fd) == 0 &&
               getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* Numbers are not used again while their client lives, and never the one that means all. */
static uint32_t free_id(struct door *d)
{
        struct client *c;

        do {
                if (++d->next_id == STORE_ALL)
                        d->next_id = 1;
                HASH_FIND(hh, d->clients, &d->next_id, sizeof(d->next_id), c);
        } while (c);
        return d->next_id;
}

static void on_connection(uv_stream_t *listener, int status)
{
        struct door *d = listener->data;
        struct client *c;

        if (status < 0)
                return;
        c = xcalloc(1, sizeof(*c));
        c->door = d;
        c->pipe.data = c;
        uv_pipe_init(listener->loop, &c->pipe, 0);
        d->handles++;
        c->id = free_id(d);
        HASH_ADD(hh, d->clients, id, sizeof(c->id), c);
        if (uv_accept(listener, (uv_stream_t *)&c->pipe) < 0 || !same_user(&c->pipe))
                client_close(c);
        else
                client_read(c);
}

static void on_written(uv_write_t *req, int status)
{
        struct client *c = req->handle->data;

        free(container_of(req, struct outgoing, req));
        if (status < 0)
                client_close(c);
        else if (!c->closing)
                client_read(c);
}

static void client_write(struct client *c, const void *body, size_t len)
{
        struct buf b = BUF_INIT;
        struct outgoing *o;
        size_t queued = uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe);
        uv_buf_t piece;

        if (c->closing)
                return;
        if (queued + len > UNREAD_MAX) {
                client_close(c);
                return;
        }
        store_encode(&b, body, len);
        o = buf_failed(&b) ? NULL : malloc(sizeof(*o) + buf_len(&b));
        if (!o) {
                buf_finish(&b);
                client_close(c);
                return;
        }
        memcpy(o->bytes, buf_data(&b), buf_len(&b));
        piece = uv_buf_init((char *)o->bytes, (unsigned)buf_len(&b));
        buf_finish(&b);
        if (uv_write(&o->req, (uv_stream_t *)&c->pipe, &piece, 1, on_written) < 0) {
                free(o);
                client_close(c);
                return;
        }
        client_read(c);
}

int door_deliver(struct door *d, const void *body, size_t len, struct error *err)
{
        struct store_head h = store_body_head(body, len);
        struct client *c, *next;

        if (h.op != STORE_REPLY && h.op != STORE_NEWS)
                return err_set(err, EPROTO, "the head sent a store message of kind %u", h.op);
        if (h.client == STORE_ALL) {
                HASH_ITER(hh, d->clients, c, next)
                {
                        client_write(c, body, len);
                }
                return 0;
        }
        HASH_FIND(hh, d->clients, &h.client, sizeof(h.client), c);
        if (!c)
                return 0;
        if (h.op == STORE_REPLY && c->inflight > 0)
                c->inflight--;
        client_write(c, body, len);
        return 0;
}

void door_pause(struct door *d, bool paused)
{
        struct client *c, *next;

        if (d->paused == paused)
                return;
        d->paused = paused;
        HASH_ITER(hh, d->clients, c, next)
        {
                client_read(c);
        }
}

static void listener_closed(uv_handle_t *h)
{
        door_unref(h->data);
}

void door_destroy(struct door *d)
{
        struct client *c, *next;

        if (!d)
                return;
        d->destroyed = true;
        HASH_ITER(hh, d->clients, c, next)
        {
                client_close(c);
        }
        if (d->bound)
                unlink(d->path);
        if (d->dir)
                rmdir(d->dir);
        uv_close((uv_handle_t *)&d->listener, listener_closed);
}

/* Makes the folder of @path, or makes sure that it is ours alone. */
static int own_folder(struct door *d, struct error *err)
{
        char *dir = xstrdup(d->path), *slash = strrchr(dir, '/');
        struct stat st;
        int ret = 0;

        if (slash)
                *slash = '\0';
        if (!slash || slash == dir) {
                ret = err_set(err, EINVAL, "%s: not a path in a folder of its own", d->path);
        } else if (mkdir(dir, 0700) == 0) {
                d->dir = dir;
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

static int listen_at(struct door *d, struct error *err)
{
        mode_t mask;
        int ret;

        if (strlen(d->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
                return err_set(err, ENAMETOOLONG, "%s: too long for a socket", d->path);
        if (own_folder(d, err) < 0)
                return -err->code;
        unlink(d->path);
        mask = umask(0177);
        ret = uv_pipe_bind(&d->listener, d->path);
        umask(mask);
        d->bound = ret == 0;
        if (ret == 0)
                ret = uv_listen((uv_stream_t *)&d->listener, BACKLOG, on_connection);
        return ret < 0 ? err_set(err, -ret, "cannot listen on %s: %s", d->path, uv_strerror(ret))
                       : 0;
}

struct door *door_create(uv_loop_t *loop, const char *path, struct door_ops ops, void *ctx,
                         struct error *err)
{
        struct door *d = xcalloc(1, sizeof(*d));
        struct error local = { 0 };

        d->ops = ops;
        d->ctx = ctx;
        d->path = xstrdup(path);
        uv_pipe_init(loop, &d->listener, 0);
        d->listener.data = d;
        d->handles = 1;
        if (listen_at(d, &local) == 0)
                return d;
        door_destroy(d);
        err_set(err, local.code, "%s", local.text);
        return NULL;
}
