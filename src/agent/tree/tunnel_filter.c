/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up: the stream begins with text of a login shell (SEARCHING), which passes at once. Behind the
 * magic line (FRAMED) whole frames are looked at: runs of passing frames leave in one piece, others
 * are handled here. Before frames pass, the relay's turn is taken, so no frame overtakes a store
 * request taken off earlier. A malformed frame makes the filter pass everything (BLIND).
 *
 * Down: the head's bytes are walked through to know where its frames end. Answers and pings gather
 * in @held and are inserted at the next such end.
 */
#include "agent/tree/tunnel_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "wire/tree_msg.h"

enum { KEEP = 64 << 10 }; /* memory that an idle filter keeps */

enum tunnel_filter_state {
        SEARCHING, /* for the magic line, as the head does */
        FRAMED,
        BLIND, /* a malformed frame has passed */
};

struct tunnel_filter {
        enum tunnel_filter_state state;
        struct relay *relay;
        struct relay_client *client;
        struct buf
                in; /* beginning of an incomplete frame; before frames, the end of a login's text */
        struct frame_walk down; /* position in the frames of the head */
        struct buf held;        /* our frames for the child, held until the head's frame ends */
        bool ping_held;         /* the held frames include a ping */
        bool asked;             /* the relay may have unsent requests of this child */
        const struct tunnel_filter_ops *ops;
        void *ctx;
};

/* --- down ------------------------------------------------------------------------------------- */

/* Inserts the held frames, if the head is between two frames. */
static void release_inserted(struct tunnel_filter *t)
{
        if (!buf_len(&t->held) || !frame_walk_between(&t->down))
                return;
        t->ops->down(t->ctx, buf_data(&t->held), buf_len(&t->held), true);
        buf_clear(&t->held);
        t->ping_held = false;
        if (t->held.cap > KEEP)
                buf_finish(&t->held);
}

static void on_reply(void *ctx, const struct store_reply *reply)
{
        struct tunnel_filter *t = ctx;
        size_t mark = frame_begin(&t->held, MSG_STORE);

        store_reply_encode(&t->held, reply);
        frame_end(&t->held, mark);
        release_inserted(t);
}

void tunnel_filter_ping(struct tunnel_filter *t, const struct ping *p)
{
        /* A shell or an ssh that is still logging in would take the ping for input. */
        if (t->state != FRAMED || t->ping_held)
                return;
        ping_encode(&t->held, MSG_PING, p);
        t->ping_held = true;
        release_inserted(t);
}

/* Passes bytes of the head on. Held frames go behind the first complete frame, because a frame of
 * the head may take long. */
void tunnel_filter_down(struct tunnel_filter *t, const void *data, size_t len)
{
        const unsigned char *p = data;
        size_t done = 0, at = 0;

        /* Before the magic line the head's bytes are not frames. */
        while (t->state == FRAMED && at < len) {
                at += frame_walk(&t->down, p + at, len - at);
                if (!buf_len(&t->held) || !frame_walk_between(&t->down))
                        continue;
                t->ops->down(t->ctx, p + done, at - done, false);
                done = at;
                release_inserted(t);
        }
        if (done < len)
                t->ops->down(t->ctx, p + done, len - done, false);
}

/* --- up --------------------------------------------------------------------------------------- */

/* False for frames that are taken off the stream, and for frames whose time matters to the head:
 * the failure of a rank, or the clock of a descendant. */
static bool is_passing(const struct frame *f)
{
        struct exited exited;
        struct tunnel tunnel;

        if (f->type == MSG_EXITED)
                return exited_decode(&exited, f, NULL) < 0 || !exited.status || exited.stopped;
        if (f->type == MSG_TUNNEL)
                return tunnel_decode(&tunnel, f, NULL) < 0 || tunnel.kind != TUNNEL_CLOCK;
        return f->type != MSG_STORE && f->type != MSG_PONG && f->type != MSG_PING_REQUEST;
}

/* Takes a frame off the stream. False: the frame passes. */
static bool take_frame(struct tunnel_filter *t, const struct frame *f)
{
        struct store_head h;
        struct store_request req;
        struct ping p;

        if (f->type == MSG_STORE) {
                h = store_body_head(f->body, f->len);
                if (h.client != STORE_NODE || !relay_serves(h.op) ||
                    store_request_decode(&req, f->body, f->len, NULL) < 0)
                        return false;
                relay_request(t->client, &req);
                store_request_finish(&req);
                t->asked = true;
        } else if (f->type == MSG_PONG) {
                if (ping_decode(&p, f, NULL) < 0)
                        return false;
                t->ops->pong(t->ctx, &p);
        } else if (f->type == MSG_PING_REQUEST) {
                t->ops->ping_request(t->ctx);
        } else {
                t->ops->news(t->ctx);
                return false;
        }
        return true;
}

/* Passes the first @n bytes of @t->in, which are whole frames. */
static void pass_frames(struct tunnel_filter *t, size_t n)
{
        if (!n)
                return;
        if (t->asked)
                relay_turn(t->relay);
        t->asked = false;
        t->ops->up(t->ctx, buf_data(&t->in), n);
        buf_consume(&t->in, n);
}

/* Neighbours pass together. */
static void filter_frames(struct tunnel_filter *t)
{
        struct buf rest = t->in; /* looks only */
        size_t passing = 0;
        struct frame f;
        int r;

        while ((r = frame_peek(&rest, &f, NULL)) > 0) {
                size_t n = FRAME_HEADER + f.len;

                rest.start += n;
                if (is_passing(&f)) {
                        passing += n;
                        continue;
                }
                pass_frames(t, passing);
                passing = 0;
                if (take_frame(t, &f))
                        buf_consume(&t->in, n);
                else
                        passing = n;
        }
        pass_frames(t, passing);
        if (r < 0) {
                t->state = BLIND;
                pass_frames(t, buf_len(&t->in));
        }
        if (!buf_len(&t->in) && t->in.cap > KEEP)
                buf_finish(&t->in);
}

/* Searches for the magic line behind a login's text. The text has passed already; the last bytes
 * are kept, because the line may come in two pieces. */
static void search_magic(struct tunnel_filter *t, const void *data, size_t len)
{
        const size_t magic = strlen(MSG_MAGIC);
        const unsigned char *p = buf_data(&t->in),
                            *at = memmem(p, buf_len(&t->in), MSG_MAGIC, magic);
        /* The bytes of earlier calls have passed already; only @data is new. */
        size_t before = buf_len(&t->in) - len, end;

        if (!at) {
                t->ops->up(t->ctx, data, len);
                buf_consume(&t->in, buf_len(&t->in) - MIN(buf_len(&t->in), magic - 1));
                return;
        }
        t->state = FRAMED;
        end = (size_t)(at - p) + magic;
        /* Up to the end of the magic line the head sees what it would see without a filter. */
        t->ops->up(t->ctx, data, end - before);
        buf_consume(&t->in, end);
}

int tunnel_filter_up(struct tunnel_filter *t, const void *data, size_t len)
{
        if (t->state == BLIND) {
                t->ops->up(t->ctx, data, len);
                return 0;
        }
        if (buf_append(&t->in, data, len) < 0)
                return -ENOMEM;
        if (t->state == SEARCHING)
                search_magic(t, data, len);
        if (t->state == FRAMED)
                filter_frames(t);
        return buf_failed(&t->held) ? -ENOMEM : 0;
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct tunnel_filter *tunnel_filter_create(struct relay *r, const struct tunnel_filter_ops *ops,
                                           void *ctx)
{
        struct tunnel_filter *t = xcalloc(1, sizeof(*t));

        *t = (struct tunnel_filter){ .relay = r, .ops = ops, .ctx = ctx };
        t->client = relay_client_create(
                r, (struct relay_client_ops){ .reply = on_reply, .is_relay = true }, t);
        if (t->client)
                return t;
        free(t);
        return NULL;
}

/* Sends the child's cancelled requests before its end is reported. */
void tunnel_filter_destroy(struct tunnel_filter *t)
{
        if (!t)
                return;
        relay_client_destroy(t->client);
        relay_turn(t->relay);
        buf_finish(&t->in);
        buf_finish(&t->held);
        free(t);
}
