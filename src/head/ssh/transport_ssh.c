/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three kinds of threads: the main loop's, which owns links; libuv's pool, which finds routes; and
 * one of our own for each core, with a loop and the hops (sessions) that it was given for life.
 * All that goes over one jump host is given to one of them, so that it needs one login.
 * They talk through two kinds of queues: commands to a worker, events to the main loop. A link is
 * freed by the main thread when it was closed, its target was found and its worker let go of it.
 */
#include "head/nodes/transport.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strv.h"
#include "head/core/thread_pool.h"
#include "head/ssh/ssh_hop.h"
#include "head/ssh/ssh_target.h"

/* OpenSSL's locks let no more than that help each other. */
#define WORKERS_MAX 16
/* Handshakes at once. A node takes some 40 ms for one and the head 1.2 ms of a core, so that 32
 * keep a core busy; with more, sshds of nodes that share a machine only time out. */
#define FANOUT_PER_CORE 32
#define FANOUT_MIN      64
/* Name servers answer many questions at once. */
#define LOOKUPS_MIN    4
#define LOOKUPS_MAX    32
#define HOSTS_A_LOOKUP 8

enum item_kind {
        /* To a worker. */
        DO_OPEN,
        DO_CLOSE,
        DO_STOP,
        /* To the main loop. */
        DID_PHASE,
        DID_SLOW,
        DID_OPEN,
        DID_FAIL,
        DID_END,
        DID_SAY,
        DID_STORE,
        DID_CLOSE,
};

struct ssh_link;

struct item {
        struct item *next;
        enum item_kind kind;
        struct ssh_link *link;
        int fd;
        enum link_phase phase;
        struct link_failure *why;
        bool ours; /* the main thread told itself */
        size_t len;
        char text[];
};

struct queue {
        pthread_mutex_t mutex;
        struct item *head, **tail;
};

struct worker {
        struct ssh_transport *transport;
        pthread_t thread;
        uv_loop_t loop;
        uv_async_t async;
        struct queue commands;
        struct ssh_hops hops;
};

struct ssh_link {
        struct link link;
        struct ssh_transport *transport;
        const struct link_callbacks *cb;
        void *ctx;
        struct worker *worker; /* NULL until its target was found */
        struct ssh_hop *hop;   /* the worker's */
        char *host, *user;
        int port;
        struct thread_pool_work work;
        uv_timer_t *patience; /* with the look-up; NULL = over */
        bool lend;            /* the user's ssh-agent */
        bool working;         /* the target is being looked for */
        bool counted;         /* in the fan-out window */
        bool settled;         /* had its last callback */
        bool closed;          /* by its user */
        bool released;        /* by its worker */
        size_t on_the_way;    /* what the main thread told itself */
        struct ssh_target *target;
        struct link_failure why;
        bool routed;
        struct ssh_link *next_waiting;
};

struct ssh_transport {
        struct transport transport;
        uv_loop_t *loop;
        const struct ssh_options *options;
        struct ssh_site *site;
        struct thread_pool *lookups; /* NULL until there is a link */
        uv_async_t async;
        struct queue events;
        struct item *arrived; /* taken from there, not yet delivered */
        size_t cores;
        struct worker *workers[WORKERS_MAX];
        size_t workers_n, next_worker;
        struct ssh_link *waiting, **waiting_tail;
        int in_flight, window;
        size_t links; /* not yet freed */
        bool destroyed, async_closed;
};

/* ---- queues ---- */

static void queue_init(struct queue *q)
{
        pthread_mutex_init(&q->mutex, NULL);
        q->head = NULL;
        q->tail = &q->head;
}

static void queue_push(struct queue *q, struct item *item)
{
        pthread_mutex_lock(&q->mutex);
        *q->tail = item;
        q->tail = &item->next;
        pthread_mutex_unlock(&q->mutex);
}

static struct item *queue_take(struct queue *q)
{
        struct item *all;

        pthread_mutex_lock(&q->mutex);
        all = q->head;
        q->head = NULL;
        q->tail = &q->head;
        pthread_mutex_unlock(&q->mutex);
        return all;
}

static struct item *item_new(enum item_kind kind, struct ssh_link *link, size_t len)
{
        struct item *item = xcalloc(1, sizeof(*item) + len);

        item->kind = kind;
        item->link = link;
        item->fd = -1;
        item->len = len;
        return item;
}

static void item_free(struct item *item)
{
        fd_close(item->fd);
        free(item->why);
        free(item);
}

/* ---- in the workers ---- */

static void tell(struct ssh_link *l, struct item *item)
{
        struct ssh_transport *t = l->transport;

        queue_push(&t->events, item);
        uv_async_send(&t->async);
}

static void hop_phase(void *ctx, enum link_phase phase)
{
        struct item *item = item_new(DID_PHASE, ctx, 0);

        item->phase = phase;
        tell(ctx, item);
}

static void hop_slow(void *ctx)
{
        tell(ctx, item_new(DID_SLOW, ctx, 0));
}

static void hop_opened(void *ctx, int fd)
{
        struct item *item = item_new(DID_OPEN, ctx, 0);

        item->fd = fd;
        tell(ctx, item);
}

static void tell_failure(enum item_kind kind, struct ssh_link *l, const struct link_failure *why)
{
        struct item *item = item_new(kind, l, 0);

        item->why = xcalloc(1, sizeof(*why));
        *item->why = *why;
        tell(l, item);
}

static void hop_failed(void *ctx, const struct link_failure *why)
{
        tell_failure(DID_FAIL, ctx, why);
}

static void hop_ended(void *ctx, const struct link_failure *why)
{
        tell_failure(DID_END, ctx, why);
}

static void hop_noise(void *ctx, const char *text, size_t len)
{
        struct item *item = item_new(DID_SAY, ctx, len);

        memcpy(item->text, text, len);
        tell(ctx, item);
}

static void hop_stored(void *ctx, const char *text)
{
        struct item *item = item_new(DID_STORE, ctx, strlen(text) + 1);

        memcpy(item->text, text, item->len);
        tell(ctx, item);
}

static void hop_closed(void *ctx)
{
        tell(ctx, item_new(DID_CLOSE, ctx, 0));
}

static const struct ssh_hop_ops hop_ops = {
        .phase = hop_phase,
        .slow = hop_slow,
        .opened = hop_opened,
        .failed = hop_failed,
        .ended = hop_ended,
        .noise = hop_noise,
        .stored = hop_stored,
        .closed = hop_closed,
};

static void worker_do(struct worker *w, const struct item *item)
{
        struct ssh_link *l = item->link;

        switch (item->kind) {
        case DO_OPEN:
                l->hop = ssh_hop_open(&w->hops, l->target, l->lend, &hop_ops, l);
                break;
        case DO_CLOSE:
                ssh_hop_close(l->hop);
                break;
        default: /* DO_STOP: the last command, every hop was closed before */
                uv_close((uv_handle_t *)&w->async, NULL);
        }
}

static void worker_wake(uv_async_t *async)
{
        struct worker *w = async->data;
        struct item *next;

        for (struct item *item = queue_take(&w->commands); item; item = next) {
                next = item->next;
                worker_do(w, item);
                item_free(item);
        }
}

static void *worker_main(void *arg)
{
        struct worker *w = arg;

        uv_run(&w->loop, UV_RUN_DEFAULT);
        return NULL;
}

/* ---- in the main thread ---- */

static void command(struct worker *w, enum item_kind kind, struct ssh_link *l)
{
        queue_push(&w->commands, item_new(kind, l, 0));
        uv_async_send(&w->async);
}

static int worker_start(struct ssh_transport *t, struct error *err)
{
        struct worker *w = xcalloc(1, sizeof(*w));
        sigset_t all, old;
        int r = uv_loop_init(&w->loop);

        if (r < 0) {
                free(w);
                return err_set(err, -r, "cannot start an ssh thread: %s", strerror(-r));
        }
        queue_init(&w->commands);
        w->transport = t;
        w->hops.loop = &w->loop;
        w->hops.site = t->site;
        w->async.data = w;
        uv_async_init(&w->loop, &w->async, worker_wake);
        /* Signals are the main thread's; that includes SIGPIPE, which libssh can cause. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&w->thread, NULL, worker_main, w);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r) {
                uv_close((uv_handle_t *)&w->async, NULL);
                uv_run(&w->loop, UV_RUN_DEFAULT);
                uv_loop_close(&w->loop);
                free(w);
                return err_set(err, r, "cannot start an ssh thread: %s", strerror(r));
        }
        t->workers[t->workers_n++] = w;
        return 0;
}

static int lookups_start(struct ssh_transport *t, struct error *err)
{
        size_t hosts = MAX(t->options->hosts, 1);
        size_t n = MIN(MAX(hosts / HOSTS_A_LOOKUP, LOOKUPS_MIN), LOOKUPS_MAX);

        t->lookups = thread_pool_create(t->loop, (int)MIN(n, hosts), err);
        return t->lookups ? 0 : -err->code;
}

/* One thread for each core and host; none before there is something to do. */
static int workers_start(struct ssh_transport *t, struct error *err)
{
        size_t n = MIN(MIN(t->cores, MAX(t->options->hosts, 1)), WORKERS_MAX);

        if (!t->lookups && lookups_start(t, err) < 0)
                return -err->code;
        while (t->workers_n < n)
                if (worker_start(t, err) < 0)
                        return t->workers_n ? 0 : -err->code;
        return 0;
}

static void workers_stop(struct ssh_transport *t)
{
        for (size_t i = 0; i < t->workers_n; i++)
                command(t->workers[i], DO_STOP, NULL);
        for (size_t i = 0; i < t->workers_n; i++) {
                struct worker *w = t->workers[i];

                pthread_join(w->thread, NULL);
                uv_loop_close(&w->loop);
                pthread_mutex_destroy(&w->commands.mutex);
                free(w);
        }
        t->workers_n = 0;
}

static void transport_free_if_idle(struct ssh_transport *t)
{
        if (!t->destroyed || t->links || !t->async_closed)
                return;
        ssh_site_free(t->site);
        pthread_mutex_destroy(&t->events.mutex);
        free(t);
}

static void link_free_if_idle(struct ssh_link *l)
{
        struct ssh_transport *t = l->transport;

        if (!l->closed || l->working || l->on_the_way || (l->worker && !l->released))
                return;
        ssh_target_free(l->target);
        free(l->host);
        free(l->user);
        free(l);
        t->links--;
        transport_free_if_idle(t);
}

static void start_waiting(struct ssh_transport *t);

static void uncount(struct ssh_link *l)
{
        if (!l->counted)
                return;
        l->counted = false;
        l->transport->in_flight--;
        start_waiting(l->transport);
}

static void find_route(struct thread_pool_work *work)
{
        struct ssh_link *l = container_of(work, struct ssh_link, work);

        l->routed = ssh_target_find(l->transport->site, l->host, l->user, l->port, &l->target,
                                    &l->why) == 0;
        /* What OpenSSL keeps for each thread is not for later. */
        OPENSSL_thread_stop();
}

/* Not at once: no callback comes from inside a call of the link's user. */
static void tell_ourselves(struct item *item)
{
        item->ours = true;
        item->link->on_the_way++;
        tell(item->link, item);
}

static void fail_ourselves(struct ssh_link *l, const struct link_failure *why)
{
        struct item *item = item_new(DID_FAIL, l, 0);

        item->why = xcalloc(1, sizeof(*why));
        *item->why = *why;
        tell_ourselves(item);
}

static void free_timer(uv_handle_t *timer)
{
        free(timer);
}

static void stop_patience(struct ssh_link *l)
{
        if (l->patience)
                uv_close((uv_handle_t *)l->patience, free_timer);
        l->patience = NULL;
}

static void lookup_late(uv_timer_t *timer)
{
        struct ssh_link *l = timer->data;
        struct link_failure why = { .phase = LINK_RESOLVING, .cause = LINK_TIMED_OUT };

        stop_patience(l);
        snprintf(why.fact, sizeof(why.fact), "the name lookup took more than %gs",
                 l->transport->options->connect_timeout_ms / 1000.0);
        fail_ourselves(l, &why);
}

static void start_patience(struct ssh_link *l)
{
        int ms = l->transport->options->connect_timeout_ms;

        l->patience = xcalloc(1, sizeof(*l->patience));
        uv_timer_init(l->transport->loop, l->patience);
        l->patience->data = l;
        uv_timer_start(l->patience, lookup_late, (uint64_t)(ms > 0 ? ms : 10000), 0);
}

/* The sessions of a jump host live in one thread. */
static struct worker *choose_worker(struct ssh_transport *t, const struct ssh_target *target)
{
        size_t i = target->via ? target->via_number : t->next_worker++;

        return t->workers[i % t->workers_n];
}

static void route_found(struct thread_pool_work *work, int status)
{
        struct ssh_link *l = container_of(work, struct ssh_link, work);
        bool late = !l->patience;

        l->working = false;
        stop_patience(l);
        if (l->closed || status < 0) {
                link_free_if_idle(l);
        } else if (late) {
                return; /* the failure was told; it waits to be closed */
        } else if (l->routed) {
                l->worker = choose_worker(l->transport, l->target);
                command(l->worker, DO_OPEN, l);
        } else {
                fail_ourselves(l, &l->why);
        }
}

static void link_start(struct ssh_link *l)
{
        struct ssh_transport *t = l->transport;
        struct item *item;

        l->counted = true;
        t->in_flight++;
        l->working = true;
        l->work = (struct thread_pool_work){ .run = find_route, .done = route_found };
        start_patience(l);
        item = item_new(DID_PHASE, l, 0);
        item->phase = LINK_RESOLVING;
        tell_ourselves(item);
        thread_pool_run(t->lookups, &l->work);
}

static void start_waiting(struct ssh_transport *t)
{
        while (t->waiting && t->in_flight < t->window) {
                struct ssh_link *l = t->waiting;

                t->waiting = l->next_waiting;
                if (!t->waiting)
                        t->waiting_tail = &t->waiting;
                link_start(l);
        }
}

static void stop_waiting(struct ssh_link *l)
{
        struct ssh_transport *t = l->transport;
        struct ssh_link **at = &t->waiting;

        while (*at && *at != l)
                at = &(*at)->next_waiting;
        if (!*at)
                return;
        *at = l->next_waiting;
        if (!*at)
                t->waiting_tail = at;
}

/* An event of a link that is still wanted. */
static void deliver(struct ssh_link *l, struct item *item)
{
        int fd;

        switch (item->kind) {
        case DID_PHASE:
                if (l->cb->phase)
                        l->cb->phase(l->ctx, item->phase);
                break;
        case DID_OPEN:
                fd = item->fd;
                item->fd = -1;
                l->cb->opened(l->ctx, fd);
                break;
        case DID_FAIL:
                l->cb->failed(l->ctx, item->why);
                break;
        case DID_END:
                l->cb->ended(l->ctx, item->why);
                break;
        case DID_SAY:
                l->cb->noise(l->ctx, item->text, item->len);
                break;
        case DID_STORE:
                if (l->cb->stored)
                        l->cb->stored(l->ctx, item->text);
                break;
        default:
                break;
        }
}

static void event(struct item *item)
{
        struct ssh_link *l = item->link;

        if (item->kind == DID_OPEN || item->kind == DID_FAIL ||
            (item->kind == DID_SLOW && l->transport->options->fanout == 0))
                uncount(l);
        if (item->kind == DID_CLOSE) {
                l->released = true;
                link_free_if_idle(l);
        } else if (!l->closed && !l->settled) {
                l->settled = item->kind == DID_FAIL || item->kind == DID_END;
                deliver(l, item);
        }
        if (item->ours) {
                l->on_the_way--;
                link_free_if_idle(l);
        }
}

/* A callback may destroy the transport, which comes here again: it must go on with the same list.
 */
static void drain_events(struct ssh_transport *t)
{
        struct item *item;

        do {
                while ((item = t->arrived)) {
                        t->arrived = item->next;
                        event(item);
                        item_free(item);
                }
        } while ((t->arrived = queue_take(&t->events)));
}

static void main_wake(uv_async_t *async)
{
        drain_events(async->data);
}

static struct link *ssh_open(struct transport *transport, const struct link_target *to,
                             const struct link_callbacks *cb, void *ctx, struct error *err)
{
        struct ssh_transport *t = container_of(transport, struct ssh_transport, transport);
        struct ssh_link *l;

        if (!t->workers_n && workers_start(t, err) < 0)
                return NULL;
        l = xcalloc(1, sizeof(*l));
        l->link.transport = transport;
        l->transport = t;
        l->cb = cb;
        l->ctx = ctx;
        l->host = xstrdup(to->host);
        l->user = to->user ? xstrdup(to->user) : NULL;
        l->port = to->port;
        l->lend = to->has_children && t->options->forward_agent;
        t->links++;
        *t->waiting_tail = l;
        t->waiting_tail = &l->next_waiting;
        start_waiting(t);
        return &l->link;
}

static void ssh_close(struct link *link)
{
        struct ssh_link *l = container_of(link, struct ssh_link, link);

        l->closed = true;
        stop_waiting(l);
        if (l->worker)
                command(l->worker, DO_CLOSE, l);
        if (l->working)
                thread_pool_cancel(l->transport->lookups, &l->work);
        stop_patience(l);
        uncount(l);
        link_free_if_idle(l);
}

static void async_closed(uv_handle_t *handle)
{
        struct ssh_transport *t = handle->data;

        t->async_closed = true;
        transport_free_if_idle(t);
}

static void ssh_destroy(struct transport *transport)
{
        struct ssh_transport *t = container_of(transport, struct ssh_transport, transport);

        workers_stop(t);
        drain_events(t);
        t->destroyed = true;
        thread_pool_close(t->lookups);
        uv_close((uv_handle_t *)&t->async, async_closed);
}

static const struct transport_ops ssh_ops = {
        .open = ssh_open,
        .close = ssh_close,
        .destroy = ssh_destroy,
};

/* Three descriptors for each session: socket and pair. */
static void raise_fd_limit(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = limit.rlim_max;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
}

struct transport *transport_ssh_create(uv_loop_t *loop, const struct ssh_options *o,
                                       struct error *err)
{
        struct ssh_transport *t;
        struct ssh_site *site;

        if (ssh_site_create(&site, o, err) < 0)
                return NULL;
        raise_fd_limit();
        t = xcalloc(1, sizeof(*t));
        t->transport.ops = &ssh_ops;
        t->loop = loop;
        t->options = o;
        t->site = site;
        t->cores = uv_available_parallelism();
        t->window = o->fanout > 0 ? o->fanout : (int)MAX(FANOUT_PER_CORE * t->cores, FANOUT_MIN);
        t->waiting_tail = &t->waiting;
        t->async.data = t;
        queue_init(&t->events);
        uv_async_init(loop, &t->async, main_wake);
        return &t->transport;
}
