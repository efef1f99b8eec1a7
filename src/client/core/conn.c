/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mutex guards everything but the bytes under way. The thread that set `reading` owns the input
 * buffer and the right to read the socket; the thread that set `writing` owns the right to write.
 * Both use the socket without the mutex. Giving a right back wakes all waiting threads, and one of
 * them takes over.
 *
 * A call puts a struct conn_request on the list, sends the frame and waits in await_answer():
 * either as reader, which hands every reply to the request with the same tag, or on `changed`. A
 * passed deadline does not drop a request: the client sends CANCEL, and the store answers with the
 * result, when that was faster, or with a timeout that names the missing ranks. Only after GRACE_MS
 * without an answer does the call give up. A connection once broken stays broken: every later call
 * fails with the reason in `why`.
 *
 * Without a socket, requests go to `local` (an engine in this process, which answers inside the
 * call) or to `ops` (under torchrun).
 */
#include "client/core/conn.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utlist.h>

#include "base/fd.h"
#include "base/macros.h"
#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "store/engine/store.h"
#include "wire/frame.h"
#include "wire/msg.h"

enum {
        READ_SIZE = 64 << 10,
        EVENTS_MAX = 64,
        /* How long the store may take to answer a CANCEL before the connection counts as dead. */
        GRACE_MS = 10 * 1000,
};

/* A request on the stack of the waiting thread. */
struct conn_request {
        uint32_t tag;
        bool done; /* by accept_reply(); the fields below are set */
        hn_status status;
        struct conn_answer answer;
        char *text; /* of an error */
        uint32_t *ranks, n_ranks;
        struct conn_request *next;
};

struct conn {
        pthread_mutex_t mutex;
        /* A reply or an event came, a right was given back, or the connection broke. */
        pthread_cond_t changed;
        int fd;              /* -1 = none */
        struct store *local; /* or NULL */
        const struct conn_ops *ops;
        void *store; /* of @ops */
        bool reading, writing, broken;
        char why[200]; /* reason of `broken` */
        uint32_t next_tag;
        unsigned n_pending; /* limited as the endpoint does, by STORE_INFLIGHT_MAX */
        struct conn_request *requests;
        struct buf in;
        hn_event events[EVENTS_MAX];
        unsigned n_events;
        hn_event failure; /* the first failure among the events; kind NONE = none */
};

void conn_answer_finish(struct conn_answer *a)
{
        free(a->value);
        *a = (struct conn_answer)CONN_ANSWER_INIT;
}

/* Marks the connection as lost for good. The first reason stays. Mutex held. */
static void break_off(struct conn *c, const char *why)
{
        if (!c->broken)
                snprintf(c->why, sizeof(c->why), "%s", why);
        c->broken = true;
        pthread_cond_broadcast(&c->changed);
}

/* Returns a copy with a NUL behind the bytes; NULL = no memory. */
static void *copy_bytes(struct bytes b)
{
        char *p = malloc(b.len + 1);

        if (!p)
                return NULL;
        if (b.len)
                memcpy(p, b.p, b.len);
        p[b.len] = '\0';
        return p;
}

/* Gives a reply to its request; drops the reply when no thread waits any more. */
static void accept_reply(struct conn *c, struct store_reply *reply)
{
        static const hn_status statuses[STORE_STATUSES] = {
                [STORE_OK] = HN_OK,
                [STORE_TIMEOUT] = HN_ERR_TIMEOUT,
                [STORE_PEER] = HN_ERR_PEER,
                [STORE_INVALID] = HN_ERR_INVALID,
                [STORE_MISMATCH] = HN_ERR_MISMATCH,
                [STORE_TOO_BIG] = HN_ERR_INVALID,
                [STORE_NOMEM] = HN_ERR_NOMEM,
                [STORE_FULL] = HN_ERR_NO_SPACE,
        };
        struct conn_request *p;

        /* A request given up after GRACE_MS is off the list, and a late answer finds no request. */
        LL_SEARCH_SCALAR(c->requests, p, tag, reply->tag);
        if (!p || p->done)
                return;
        p->done = true;
        p->status = statuses[reply->status];
        p->answer.number = reply->number;
        p->answer.len = reply->value.len;
        p->answer.value = copy_bytes(reply->value);
        p->text = copy_bytes(reply->text);
        if (reply->n_ranks)
                p->ranks = malloc(reply->n_ranks * sizeof(*p->ranks));
        if (p->ranks) {
                memcpy(p->ranks, reply->ranks, reply->n_ranks * sizeof(*p->ranks));
                p->n_ranks = reply->n_ranks;
        }
        /* Without the list of ranks the answer is still good. */
        if (!p->answer.value || !p->text)
                p->status = HN_ERR_NOMEM;
        pthread_cond_broadcast(&c->changed);
}

/* Queues an event for hn_event_poll(), in place of the oldest when the queue is full. The first
 * failure is kept, and waiting calls wake up to see the failure. */
static void accept_event(struct conn *c, const struct store_event *from)
{
        hn_event *e;

        if (c->n_events == EVENTS_MAX)
                /* The oldest goes. */
                memmove(c->events, c->events + 1, --c->n_events * sizeof(c->events[0]));
        e = &c->events[c->n_events++];
        *e = (hn_event){ .size = sizeof(*e),
                         .kind = (hn_event_kind)from->kind,
                         .rank = from->rank,
                         .node = from->node };
        snprintf(e->text, sizeof(e->text), "%.*s", (int)from->text.len,
                 from->text.len ? (const char *)from->text.p : "");
        /* A request to stop is no failure of a rank. */
        if (c->failure.kind == HN_EVENT_NONE && e->kind != HN_EVENT_STOP_REQUESTED)
                c->failure = *e;
        pthread_cond_broadcast(&c->changed);
}

/* Delivers the messages in the input buffer. */
static void accept_input(struct conn *c)
{
        struct frame f;
        int ret = 0;

        while (!c->broken && (ret = frame_peek(&c->in, &f, NULL)) > 0) {
                struct store_reply reply = { 0 };
                struct store_event event;
                /* 0: no op, so the connection breaks off below. */
                uint8_t op = f.type == MSG_STORE ? store_body_head(f.body, f.len).op : 0;

                if (op == STORE_REPLY && store_reply_decode(&reply, f.body, f.len, NULL) == 0)
                        accept_reply(c, &reply);
                else if (op == STORE_EVENT && store_event_decode(&event, f.body, f.len, NULL) == 0)
                        accept_event(c, &event);
                else
                        break_off(c, "malformed message from the agent");
                store_reply_finish(&reply);
                frame_consume(&c->in, &f);
        }
        if (ret < 0)
                break_off(c, "malformed message from the agent");
        /* A large value has made the buffer grow; small messages follow. */
        if (buf_len(&c->in) == 0 && c->in.cap > 4 * READ_SIZE)
                buf_finish(&c->in);
}

/* Reads the bytes at hand; called by the reader without the mutex. Returns why the connection is
 * lost, or NULL. */
static const char *read_socket(struct conn *c)
{
        void *to = buf_reserve(&c->in, READ_SIZE);
        ssize_t n = to ? recv(c->fd, to, READ_SIZE, MSG_DONTWAIT) : -1;

        if (!to) /* before errno, which buf_reserve() need not set */
                return "out of memory";
        if (n > 0)
                buf_advance(&c->in, (size_t)n);
        else if (n == 0 || errno == ECONNRESET)
                return "the launcher's agent on this node closed the connection";
        else if (errno != EAGAIN && errno != EINTR)
                return strerror(errno);
        return NULL;
}

/* Waits until something may have happened: reads for all threads, unless another thread does.
 * Mutex held. */
static void wait_progress(struct conn *c, int64_t deadline)
{
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        const char *why = NULL;

        /* Without a socket nothing can arrive but through another thread. */
        if (c->fd < 0 || c->reading) {
                deadline_cond_wait(&c->changed, &c->mutex, deadline);
                return;
        }
        c->reading = true;
        pthread_mutex_unlock(&c->mutex);
        /* An empty poll is no error: the caller looks at the deadline. */
        if (poll(&p, 1, deadline_left(deadline)) > 0)
                why = read_socket(c);
        pthread_mutex_lock(&c->mutex);
        c->reading = false;
        if (why)
                break_off(c, why);
        accept_input(c);
        /* Another thread may want to read on. */
        pthread_cond_broadcast(&c->changed);
}

/* Waits for space in the send buffer of the socket. Replies are read meanwhile, because the
 * endpoint stops reading from a client with too many unread replies. Mutex not held. */
static void wait_writable(struct conn *c, int64_t deadline)
{
        struct pollfd p = { .fd = c->fd, .events = POLLOUT };
        bool may_read;

        pthread_mutex_lock(&c->mutex);
        may_read = !c->reading;
        pthread_mutex_unlock(&c->mutex);
        if (may_read)
                p.events |= POLLIN;
        /* Short, because another thread may stop reading during a poll for POLLOUT only. */
        if (poll(&p, 1, MIN((unsigned)deadline_left(deadline), 100u)) <= 0 || !(p.revents & POLLIN))
                return;
        pthread_mutex_lock(&c->mutex);
        if (!c->reading)
                wait_progress(c, 0);
        pthread_mutex_unlock(&c->mutex);
}

/* Writes a frame; called by the writer without the mutex. NULL, or why the connection is lost. */
static const char *write_frame(struct conn *c, const struct buf *b, int64_t deadline)
{
        size_t at = 0;

        while (at < buf_len(b)) {
                ssize_t n =
                        send(c->fd, buf_data(b) + at, buf_len(b) - at, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0)
                        at += (size_t)n;
                else if (errno == EPIPE || errno == ECONNRESET)
                        return "the launcher's agent on this node closed the connection";
                else if (errno != EAGAIN && errno != EINTR)
                        return strerror(errno);
                else if (clock_ms() > deadline)
                        return "timed out sending to the launcher's agent on this node";
                else
                        wait_writable(c, deadline);
        }
        return NULL;
}

static hn_status fail_lost_store(const struct conn *c)
{
        return set_error(HN_ERR_ABORTED, "lost the connection to the store: %s", c->why);
}

/* Hands a request to the engine, or writes it as a frame. Mutex held on entry and exit. A frame
 * once begun must be finished, so the deadline is at least GRACE_MS ahead. With @local the mutex
 * stays held throughout. */
static hn_status transmit_request(struct conn *c, const struct store_request *req, int64_t deadline)
{
        int64_t patience = MAX(deadline, clock_ms() + GRACE_MS);
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        const char *why;
        size_t mark;

        /* The engine may answer inside of this call, through local_reply(). */
        if (c->local) {
                store_request(c->local, 0, 0, req);
                return HN_OK;
        }
        mark = frame_begin(&b, MSG_STORE);
        store_request_encode(&b, req);
        frame_end(&b, mark);
        /* A frame may not be cut by another. */
        while (c->writing && !c->broken)
                deadline_cond_wait(&c->changed, &c->mutex, patience);
        if (c->broken)
                return fail_lost_store(c);
        if (buf_failed(&b))
                return set_error(HN_ERR_NOMEM, "out of memory");
        c->writing = true;
        pthread_mutex_unlock(&c->mutex);
        why = write_frame(c, &b, patience);
        pthread_mutex_lock(&c->mutex);
        c->writing = false;
        pthread_cond_broadcast(&c->changed);
        if (!why)
                return HN_OK;
        break_off(c, why);
        return fail_lost_store(c);
}

/* Waits for the answer; at the deadline asks the store to give up. Mutex held. */
static hn_status await_answer(struct conn *c, struct conn_request *p, int64_t deadline)
{
        struct store_request cancel = { .op = STORE_CANCEL, .tag = p->tag };
        bool cancelled = false;

        /* Twice past a deadline: first CANCEL, then the end of GRACE_MS. */
        while (!p->done && !c->broken) {
                if (clock_ms() < deadline) {
                        wait_progress(c, deadline);
                } else if (!cancelled) {
                        cancelled = true;
                        deadline = clock_ms() + GRACE_MS;
                        transmit_request(c, &cancel, deadline);
                } else {
                        return set_error(HN_ERR_TIMEOUT, "no answer from the launcher");
                }
        }
        return p->done ? HN_OK : fail_lost_store(c);
}

/* Sets the error of an answered request, from the store's sentence and ranks. */
static hn_status fail_request(const struct conn_request *p, int64_t timeout_ms)
{
        const char *text = p->text ? p->text : "";

        /* A timeout of 0 is a question, and "after 0 s" would say nothing. */
        if (p->status == HN_ERR_TIMEOUT && timeout_ms != 0)
                set_error(p->status, "%s after %g s", text,
                          (double)deadline_span(timeout_ms) / 1000);
        else
                set_error(p->status, "%s", *text ? text : hn_strerror(p->status));
        set_error_ranks(p->ranks, p->n_ranks);
        return p->status;
}

hn_status conn_call(struct conn *c, struct store_request *req, int64_t timeout_ms,
                    struct conn_answer *ret)
{
        struct conn_request p = { 0 };
        int64_t deadline = deadline_in(timeout_ms);
        hn_status status;

        if (c->ops)
                return c->ops->call(c->store, req, timeout_ms, ret);
        pthread_mutex_lock(&c->mutex);
        /* The endpoint would break off a connection with more requests. */
        if (c->n_pending >= STORE_INFLIGHT_MAX) {
                pthread_mutex_unlock(&c->mutex);
                return set_error(HN_ERR_INVALID, "more than %d concurrent calls",
                                 STORE_INFLIGHT_MAX);
        }
        p.tag = req->tag = c->next_tag++;
        LL_PREPEND(c->requests, &p);
        c->n_pending++;
        status = transmit_request(c, req, deadline);
        if (status == HN_OK)
                status = await_answer(c, &p, deadline);
        /* Before the mutex is given back: the request lives on this stack. */
        LL_DELETE(c->requests, &p);
        c->n_pending--;
        pthread_mutex_unlock(&c->mutex);
        if (status == HN_OK && p.status != HN_OK)
                status = fail_request(&p, timeout_ms);
        if (status == HN_OK && ret)
                *ret = p.answer;
        else
                free(p.answer.value);
        free(p.text);
        free(p.ranks);
        return status;
}

hn_status conn_post(struct conn *c, struct store_request *req)
{
        hn_status status = HN_OK;

        if (c->ops)
                return c->ops->post(c->store, req);
        pthread_mutex_lock(&c->mutex);
        req->tag = c->next_tag++;
        if (!c->local) /* a world of one has no other rank to tell */
                status = transmit_request(c, req, 0);
        pthread_mutex_unlock(&c->mutex);
        return status;
}

hn_status conn_event(struct conn *c, hn_event *ret, int64_t timeout_ms)
{
        int64_t deadline = deadline_in(timeout_ms);
        hn_status status = HN_OK;

        pthread_mutex_lock(&c->mutex);
        /* Looks at least once, so that a timeout of 0 finds events that are in the socket. */
        for (bool looked = false;
             c->n_events == 0 && !c->broken && (!looked || clock_ms() < deadline); looked = true)
                wait_progress(c, deadline);
        if (c->n_events > 0) {
                *ret = c->events[0];
                memmove(c->events, c->events + 1, --c->n_events * sizeof(c->events[0]));
        } else {
                status = c->broken ? fail_lost_store(c)
                                   : set_error(HN_ERR_TIMEOUT, "no event within the timeout");
        }
        pthread_mutex_unlock(&c->mutex);
        return status;
}

hn_status conn_health(struct conn *c, int64_t timeout_ms)
{
        int64_t deadline = deadline_in(timeout_ms);
        hn_status status = HN_OK;
        uint32_t rank;

        pthread_mutex_lock(&c->mutex);
        for (bool looked = false;
             !c->failure.kind && !c->broken && (!looked || clock_ms() < deadline); looked = true)
                wait_progress(c, deadline);
        if (c->failure.kind) {
                status = set_error(HN_ERR_PEER, "%s", c->failure.text);
                rank = (uint32_t)c->failure.rank; /* -1 = a node was lost: no rank is named */
                set_error_ranks(&rank, c->failure.rank >= 0);
        } else if (c->broken) {
                status = fail_lost_store(c);
        }
        pthread_mutex_unlock(&c->mutex);
        return status;
}

static struct conn *make_conn(void)
{
        struct conn *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->fd = -1;
        c->next_tag = 1;
        pthread_mutex_init(&c->mutex, NULL);
        deadline_cond_init(&c->changed);
        return c;
}

void conn_close(struct conn *c)
{
        if (!c)
                return;
        store_destroy(c->local);
        if (c->ops)
                c->ops->close(c->store);
        fd_close(c->fd);
        buf_finish(&c->in);
        pthread_cond_destroy(&c->changed);
        pthread_mutex_destroy(&c->mutex);
        free(c);
}

/* Connecting to a Unix socket waits only while the backlog is full. */
static hn_status connect_store_socket(struct conn *c, const char *path, int64_t deadline)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        struct timespec pause = { .tv_nsec = 5000000 }; /* 5 ms */

        if (strlen(path) >= sizeof(at.sun_path))
                return set_error(HN_ERR_INVALID, "HN_STORE is too long for a socket: %s", path);
        strcpy(at.sun_path, path);
        c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (c->fd < 0)
                return set_error(HN_ERR_SYSTEM, "cannot create a socket: %s", strerror(errno));
        while (connect(c->fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
                if (errno == EACCES || errno == EPERM)
                        return set_error(HN_ERR_AUTH, "%s belongs to another user", path);
                if (errno != EAGAIN && errno != EINTR)
                        return set_error(HN_ERR_SYSTEM,
                                         "cannot connect to the launcher's agent at %s: %s", path,
                                         strerror(errno));
                if (clock_ms() >= deadline)
                        return set_error(HN_ERR_TIMEOUT,
                                         "timed out connecting to the agent (backlog full)");
                nanosleep(&pause, NULL);
        }
        return HN_OK;
}

hn_status conn_open(const char *path, int64_t timeout_ms, struct conn **ret)
{
        struct conn *c = make_conn();
        hn_status status;

        if (!c)
                return set_error(HN_ERR_NOMEM, "out of memory");
        status = connect_store_socket(c, path, deadline_in(timeout_ms));
        if (status == HN_OK)
                *ret = c;
        else
                conn_close(c);
        return status;
}

static void local_reply(void *ctx, uint64_t owner UNUSED, const struct store_reply *reply)
{
        struct store_reply lent = *reply; /* accept_reply() takes no const */

        accept_reply(ctx, &lent);
}

static const char *local_host(void *ctx UNUSED, int rank UNUSED)
{
        return "localhost";
}

hn_status conn_open_local(struct conn **ret)
{
        struct conn *c = make_conn();

        if (c)
                c->local = store_create(
                        (struct store_ops){ .reply = local_reply, .host_of = local_host }, c, 1);
        if (!c || !c->local) {
                conn_close(c);
                return set_error(HN_ERR_NOMEM, "out of memory");
        }
        *ret = c;
        return HN_OK;
}

hn_status conn_open_ops(const struct conn_ops *ops, void *store, struct conn **ret)
{
        struct conn *c = make_conn();

        if (!c) {
                ops->close(store);
                return set_error(HN_ERR_NOMEM, "out of memory");
        }
        c->ops = ops;
        c->store = store;
        *ret = c;
        return HN_OK;
}
