/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three kinds of threads: the main loop's thread owns the links; a thread pool finds targets;
 * worker threads, one per core, each have a loop and keep their hops (sessions) until the end. All
 * hops over a jump host are given to the same worker, to share a login.
 *
 * A link's life: ssh_open() queues the link until the fan-out window has a free place; start_link()
 * looks up the target in the pool; on_target_found() sends DO_OPEN to a worker, which runs the hop
 * and sends back events (DID_*). Commands and events travel through a mutex-guarded list each, with
 * a uv_async to wake the reader. A place in the window is free again when the hop has opened,
 * failed, or is slow. A link is freed by the main thread when the user has closed it, the lookup
 * has ended and the worker has released the hop.
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
#include "base/memory.h"
#include "head/core/thread_pool.h"
#include "head/ssh/ssh_hop.h"
#include "head/ssh/ssh_target.h"

/* Further threads only wait for OpenSSL's locks. */
#define WORKERS_MAX 16
/* Handshakes at once. A handshake takes some 40 ms on the node and 1.2 ms of a core here, so that
 * 32 keep a core busy; with more, sshds of nodes on a shared machine only time out. */
#define FANOUT_PER_CORE 32
#define FANOUT_MIN      64
/* Name servers answer many questions at once. */
#define LOOKUPS_MIN    4
#define LOOKUPS_MAX    32
#define HOSTS_A_LOOKUP 8

enum ssh_item_kind {
        /* Commands to a worker. */
        DO_OPEN,
        DO_CLOSE,
        DO_STOP,
        /* Events to the main loop. */
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

struct ssh_item {
        struct ssh_item *next;
        enum ssh_item_kind kind;
        struct ssh_link *link;
        int fd;
        enum link_phase phase;
        struct link_failure *why;
        bool own; /* sent by the main thread to itself */
        size_t len;
        char text[];
};

struct item_queue {
        pthread_mutex_t mutex;
        struct ssh_item *head, **tail;
};

struct ssh_worker {
        struct ssh_transport *transport;
        pthread_t thread;
        uv_loop_t loop;
        uv_async_t async;
        struct item_queue commands;
        struct ssh_hops hops;
};

/* The lookup of a link's target in the thread pool. */
struct target_lookup {
        struct thread_pool_work work;
        uv_timer_t *timer; /* the time limit; NULL = over */
        bool running;
        bool found; /* @target is there, else @why is */
        struct ssh_target *target;
        struct link_failure why;
};

struct ssh_link {
        struct link link;
        struct ssh_transport *transport;
        const struct link_callbacks *cb;
        void *ctx;
        struct ssh_worker *worker; /* NULL until the target was found */
        struct ssh_hop *hop;       /* the worker's */
        char *host, *user;
        int port;
        bool forwards_agent;
        struct target_lookup lookup;
        bool counted;      /* in the fan-out window */
        bool finalized;    /* had its last callback */
        bool closed;       /* by its user */
        bool released;     /* by its worker */
        size_t own_events; /* events on the way from the main thread to itself */
        struct ssh_link *next_waiting;
};

struct ssh_transport {
        struct transport transport;
        uv_loop_t *loop;
        const struct ssh_options *options;
        struct ssh_site *site;
        struct thread_pool *lookups; /* NULL until there is a link */
        uv_async_t async;
        struct item_queue events;
        struct ssh_item *arrived; /* taken from there, not yet delivered */
        size_t cores;
        struct ssh_worker *workers[WORKERS_MAX];
        size_t workers_n, next_worker;
        struct ssh_link *waiting, **waiting_tail;
        int in_flight, window;
        size_t links; /* not yet freed */
        bool destroyed, async_closed;
};

/* ---- queues ---- */

static void init_item_queue(struct item_queue *q)
{
        pthread_mutex_init(&q->mutex, NULL);
        q->head = NULL;
        q->tail = &q->head;
}

static void push_item(struct item_queue *q, struct ssh_item *item)
{
        pthread_mutex_lock(&q->mutex);
        *q->tail = item;
        q->tail = &item->next;
        pthread_mutex_unlock(&q->mutex);
}

static struct ssh_item *take_items(struct item_queue *q)
{
        struct ssh_item *all;

        pthread_mutex_lock(&q->mutex);
        all = q->head;
        q->head = NULL;
        q->tail = &q->head;
        pthread_mutex_unlock(&q->mutex);
        return all;
}

static struct ssh_item *new_item(enum ssh_item_kind kind, struct ssh_link *link, size_t len)
{
        struct ssh_item *item = xcalloc(1, sizeof(*item) + len);

        item->kind = kind;
        item->link = link;
        item->fd = -1;
        item->len = len;
        return item;
}

static void free_item(struct ssh_item *item)
{
        fd_close(item->fd);
        free(item->why);
        free(item);
}

/* ---- in the workers ---- */

static void send_event(struct ssh_link *l, struct ssh_item *item)
{
        struct ssh_transport *t = l->transport;

        push_item(&t->events, item);
        uv_async_send(&t->async);
}

static void on_hop_phase(void *ctx, enum link_phase phase)
{
        struct ssh_item *item = new_item(DID_PHASE, ctx, 0);

        item->phase = phase;
        send_event(ctx, item);
}

static void on_hop_slow(void *ctx)
{
        send_event(ctx, new_item(DID_SLOW, ctx, 0));
}

static void on_hop_opened(void *ctx, int fd)
{
        struct ssh_item *item = new_item(DID_OPEN, ctx, 0);

        item->fd = fd;
        send_event(ctx, item);
}

static struct ssh_item *new_failure_item(enum ssh_item_kind kind, struct ssh_link *l,
                                         const struct link_failure *why)
{
        struct ssh_item *item = new_item(kind, l, 0);

        item->why = xcalloc(1, sizeof(*why));
        *item->why = *why;
        return item;
}

static void on_hop_failed(void *ctx, const struct link_failure *why)
{
        send_event(ctx, new_failure_item(DID_FAIL, ctx, why));
}

static void on_hop_ended(void *ctx, const struct link_failure *why)
{
        send_event(ctx, new_failure_item(DID_END, ctx, why));
}

static void on_hop_noise(void *ctx, const char *text, size_t len)
{
        struct ssh_item *item = new_item(DID_SAY, ctx, len);

        memcpy(item->text, text, len);
        send_event(ctx, item);
}

static void on_hop_stored(void *ctx, const char *text)
{
        struct ssh_item *item = new_item(DID_STORE, ctx, strlen(text) + 1);

        memcpy(item->text, text, item->len);
        send_event(ctx, item);
}

static void on_hop_released(void *ctx)
{
        send_event(ctx, new_item(DID_CLOSE, ctx, 0));
}

static const struct ssh_hop_ops hop_ops = {
        .phase = on_hop_phase,
        .slow = on_hop_slow,
        .opened = on_hop_opened,
        .failed = on_hop_failed,
        .ended = on_hop_ended,
        .noise = on_hop_noise,
        .stored = on_hop_stored,
        .closed = on_hop_released,
};

static void run_command(struct ssh_worker *w, const struct ssh_item *item)
{
        struct ssh_link *l = item->link;

        switch (item->kind) {
        case DO_OPEN:
                l->hop = ssh_hop_open(&w->hops, l->lookup.target, l->forwards_agent, &hop_ops, l);
                break;
        case DO_CLOSE:
                ssh_hop_close(l->hop);
                break;
        default: /* DO_STOP: the last command; every hop was closed before */
                uv_close((uv_handle_t *)&w->async, NULL);
        }
}

static void on_commands(uv_async_t *async)
{
        struct ssh_worker *w = async->data;
        struct ssh_item *next;

        for (struct ssh_item *item = take_items(&w->commands); item; item = next) {
                next = item->next;
                run_command(w, item);
                free_item(item);
        }
}

static void *run_ssh_worker(void *arg)
{
        struct ssh_worker *w = arg;

        uv_run(&w->loop, UV_RUN_DEFAULT);
        return NULL;
}

/* ---- in the main thread ---- */

static void send_command(struct ssh_worker *w, enum ssh_item_kind kind, struct ssh_link *l)
{
        push_item(&w->commands, new_item(kind, l, 0));
        uv_async_send(&w->async);
}

static int start_ssh_worker(struct ssh_transport *t, struct error *err)
{
        struct ssh_worker *w = xcalloc(1, sizeof(*w));
        sigset_t all, old;
        int r = uv_loop_init(&w->loop);

        if (r < 0) {
                free(w);
                return err_set(err, -r, "cannot start an ssh thread: %s", strerror(-r));
        }
        init_item_queue(&w->commands);
        w->transport = t;
        w->hops.loop = &w->loop;
        w->hops.site = t->site;
        w->async.data = w;
        uv_async_init(&w->loop, &w->async, on_commands);
        /* Signals belong to the main thread, also SIGPIPE, which libssh can cause. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&w->thread, NULL, run_ssh_worker, w);
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

static int start_lookups(struct ssh_transport *t, struct error *err)
{
        size_t hosts = MAX(t->options->hosts, 1);
        size_t n = MIN(MAX(hosts / HOSTS_A_LOOKUP, LOOKUPS_MIN), LOOKUPS_MAX);

        t->lookups = thread_pool_create(t->loop, (int)MIN(n, hosts), err);
        return t->lookups ? 0 : -err->code;
}

/* Starts the threads with the first link: as many as cores, but not more than hosts. */
static int start_ssh_workers(struct ssh_transport *t, struct error *err)
{
        size_t n = MIN(MIN(t->cores, MAX(t->options->hosts, 1)), WORKERS_MAX);

        if (!t->lookups && start_lookups(t, err) < 0)
                return -err->code;
        while (t->workers_n < n)
                if (start_ssh_worker(t, err) < 0)
                        return t->workers_n ? 0 : -err->code;
        return 0;
}

static void stop_ssh_workers(struct ssh_transport *t)
{
        for (size_t i = 0; i < t->workers_n; i++)
                send_command(t->workers[i], DO_STOP, NULL);
        for (size_t i = 0; i < t->workers_n; i++) {
                struct ssh_worker *w = t->workers[i];

                pthread_join(w->thread, NULL);
                uv_loop_close(&w->loop);
                pthread_mutex_destroy(&w->commands.mutex);
                free(w);
        }
        t->workers_n = 0;
}

static void free_idle_transport(struct ssh_transport *t)
{
        if (!t->destroyed || t->links || !t->async_closed)
                return;
        ssh_site_free(t->site);
        pthread_mutex_destroy(&t->events.mutex);
        free(t);
}

static void free_idle_link(struct ssh_link *l)
{
        struct ssh_transport *t = l->transport;

        if (!l->closed || l->lookup.running || l->own_events || (l->worker && !l->released))
                return;
        ssh_target_free(l->lookup.target);
        free(l->host);
        free(l->user);
        free(l);
        t->links--;
        free_idle_transport(t);
}

static void start_waiting_links(struct ssh_transport *t);

static void leave_window(struct ssh_link *l)
{
        if (!l->counted)
                return;
        l->counted = false;
        l->transport->in_flight--;
        start_waiting_links(l->transport);
}

static void find_link_target(struct thread_pool_work *work)
{
        struct ssh_link *l = container_of(work, struct ssh_link, lookup.work);

        l->lookup.found = ssh_target_find(l->transport->site, l->host, l->user, l->port,
                                          &l->lookup.target, &l->lookup.why) == 0;
        /* Frees OpenSSL's memory of this thread. */
        OPENSSL_thread_stop();
}

/* Goes through the queue, so that no callback comes from inside a call of the link's user. */
static void send_own_event(struct ssh_item *item)
{
        item->own = true;
        item->link->own_events++;
        send_event(item->link, item);
}

static void free_lookup_timer(uv_handle_t *timer)
{
        free(timer);
}

static void stop_lookup_timer(struct ssh_link *l)
{
        if (l->lookup.timer)
                uv_close((uv_handle_t *)l->lookup.timer, free_lookup_timer);
        l->lookup.timer = NULL;
}

static void on_lookup_timeout(uv_timer_t *timer)
{
        struct ssh_link *l = timer->data;
        struct link_failure why = { .phase = LINK_RESOLVING, .cause = LINK_TIMED_OUT };

        stop_lookup_timer(l);
        snprintf(why.fact, sizeof(why.fact), "the name lookup took more than %gs",
                 l->transport->options->connect_timeout_ms / 1000.0);
        send_own_event(new_failure_item(DID_FAIL, l, &why));
}

static void start_lookup_timer(struct ssh_link *l)
{
        int ms = l->transport->options->connect_timeout_ms;

        l->lookup.timer = xcalloc(1, sizeof(*l->lookup.timer));
        uv_timer_init(l->transport->loop, l->lookup.timer);
        l->lookup.timer->data = l;
        uv_timer_start(l->lookup.timer, on_lookup_timeout, (uint64_t)(ms > 0 ? ms : 10000), 0);
}

/* Chooses the same thread for all sessions of a jump host, else the next one. */
static struct ssh_worker *choose_ssh_worker(struct ssh_transport *t,
                                            const struct ssh_target *target)
{
        size_t i = target->via ? target->via_number : t->next_worker++;

        return t->workers[i % t->workers_n];
}

static void on_target_found(struct thread_pool_work *work, int status)
{
        struct ssh_link *l = container_of(work, struct ssh_link, lookup.work);
        bool late = !l->lookup.timer;

        l->lookup.running = false;
        stop_lookup_timer(l);
        if (l->closed || status < 0) {
                free_idle_link(l);
        } else if (late) {
                return; /* the failure was reported; the link waits to be closed */
        } else if (l->lookup.found) {
                l->worker = choose_ssh_worker(l->transport, l->lookup.target);
                send_command(l->worker, DO_OPEN, l);
        } else {
                send_own_event(new_failure_item(DID_FAIL, l, &l->lookup.why));
        }
}

static void start_link(struct ssh_link *l)
{
        struct ssh_transport *t = l->transport;
        struct ssh_item *item;

        l->counted = true;
        t->in_flight++;
        l->lookup.running = true;
        l->lookup.work =
                (struct thread_pool_work){ .run = find_link_target, .done = on_target_found };
        start_lookup_timer(l);
        item = new_item(DID_PHASE, l, 0);
        item->phase = LINK_RESOLVING;
        send_own_event(item);
        thread_pool_run(t->lookups, &l->lookup.work);
}

static void start_waiting_links(struct ssh_transport *t)
{
        while (t->waiting && t->in_flight < t->window) {
                struct ssh_link *l = t->waiting;

                t->waiting = l->next_waiting;
                if (!t->waiting)
                        t->waiting_tail = &t->waiting;
                start_link(l);
        }
}

static void dequeue_link(struct ssh_link *l)
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

/* Calls the callback for an event, unless the user has closed the link. */
static void deliver_event(struct ssh_link *l, struct ssh_item *item)
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

static void handle_event(struct ssh_item *item)
{
        struct ssh_link *l = item->link;

        if (item->kind == DID_OPEN || item->kind == DID_FAIL ||
            (item->kind == DID_SLOW && l->transport->options->fanout == 0))
                leave_window(l);
        if (item->kind == DID_CLOSE) {
                l->released = true;
                free_idle_link(l);
        } else if (!l->closed && !l->finalized) {
                l->finalized = item->kind == DID_FAIL || item->kind == DID_END;
                deliver_event(l, item);
        }
        if (item->own) {
                l->own_events--;
                free_idle_link(l);
        }
}

/* Handles all events. A callback may destroy the transport, which calls this function again: hence
 * the list is part of the transport. */
static void handle_events(struct ssh_transport *t)
{
        struct ssh_item *item;

        do {
                while ((item = t->arrived)) {
                        t->arrived = item->next;
                        handle_event(item);
                        free_item(item);
                }
        } while ((t->arrived = take_items(&t->events)));
}

static void on_events(uv_async_t *async)
{
        handle_events(async->data);
}

static struct link *ssh_open(struct transport *transport, const struct link_target *to,
                             const struct link_callbacks *cb, void *ctx, struct error *err)
{
        struct ssh_transport *t = container_of(transport, struct ssh_transport, transport);
        struct ssh_link *l;

        if (!t->workers_n && start_ssh_workers(t, err) < 0)
                return NULL;
        l = xcalloc(1, sizeof(*l));
        l->link.transport = transport;
        l->transport = t;
        l->cb = cb;
        l->ctx = ctx;
        l->host = xstrdup(to->host);
        l->user = to->user ? xstrdup(to->user) : NULL;
        l->port = to->port;
        l->forwards_agent = to->has_children && t->options->forward_agent;
        t->links++;
        *t->waiting_tail = l;
        t->waiting_tail = &l->next_waiting;
        start_waiting_links(t);
        return &l->link;
}

static void ssh_close(struct link *link)
{
        struct ssh_link *l = container_of(link, struct ssh_link, link);

        l->closed = true;
        dequeue_link(l);
        if (l->worker)
                send_command(l->worker, DO_CLOSE, l);
        if (l->lookup.running)
                thread_pool_cancel(l->transport->lookups, &l->lookup.work);
        stop_lookup_timer(l);
        leave_window(l);
        free_idle_link(l);
}

static void on_transport_closed(uv_handle_t *handle)
{
        struct ssh_transport *t = handle->data;

        t->async_closed = true;
        free_idle_transport(t);
}

static void ssh_destroy(struct transport *transport)
{
        struct ssh_transport *t = container_of(transport, struct ssh_transport, transport);

        stop_ssh_workers(t);
        handle_events(t);
        t->destroyed = true;
        thread_pool_close(t->lookups);
        uv_close((uv_handle_t *)&t->async, on_transport_closed);
}

static const struct transport_ops ssh_ops = {
        .open = ssh_open,
        .close = ssh_close,
        .destroy = ssh_destroy,
};

/* Each session needs three descriptors: a socket and a pair. */
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
        init_item_queue(&t->events);
        uv_async_init(loop, &t->async, on_events);
        return &t->transport;
}
