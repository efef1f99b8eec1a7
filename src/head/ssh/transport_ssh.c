/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three kinds of threads: the main loop's thread owns the links; a thread pool finds targets;
 * worker threads, one per core, each have a loop and keep their hops (sessions) until the end. All
 * hops over a jump host are given to the same worker, to share a login.
 *
 * A link's life: ssh_open() queues the link until the fan-out window has a free place, then the
 * target is looked up in the pool; on_target_found() sends DO_OPEN to a worker, which runs the hop
 * and sends back events (DID_*). Each thread has a mailbox, a mutex-guarded list with a uv_async to
 * wake the reader. A place in the window is free again when the hop has opened, failed, or is slow.
 * The last event of every closed link is DID_CLOSE, sent by the worker or, without a hop, by the
 * main thread: handle_event() then frees the link.
 */
#include "head/nodes/transport.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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
/* The first version without CVE-2023-2283, CVE-2023-6004 and CVE-2023-48795, as in meson.build. */
#define LIBSSH_OLDEST SSH_VERSION_INT(0, 10, 6)
/* What a server may say before the main loop has read it; more is dropped. */
#define NOISE_MAX (64u << 10)
/* Name servers answer many questions at once. */
#define LOOKUPS_MIN    4
#define LOOKUPS_MAX    32
#define HOSTS_A_LOOKUP 8

/* Commands to a worker. */
enum ssh_command { DO_OPEN, DO_CLOSE, DO_STOP };

struct ssh_link;

struct ssh_item {
        struct ssh_item *next;
        struct ssh_link *link;
        enum ssh_command command;                  /* to a worker */
        struct ssh_hop_event event;                /* to the main loop */
        _Alignas(struct link_failure) char data[]; /* the event's */
};

struct ssh_mailbox {
        uv_async_t async;
        pthread_mutex_t mutex;
        struct ssh_item *head, **tail;
};

struct ssh_worker {
        pthread_t thread;
        uv_loop_t loop;
        struct ssh_mailbox commands;
        struct ssh_hops hops;
};

/* The lookup of a link's target in the thread pool. */
struct target_lookup {
        struct thread_pool_work work;
        uv_timer_t timer; /* the time limit */
        bool running;
        bool late;                 /* the time is over, and the failure was reported */
        struct ssh_target *target; /* NULL after the lookup: see why */
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
        bool started;        /* not in the list of waiting links */
        bool counted;        /* in the fan-out window */
        bool finalized;      /* had its last callback */
        bool closed;         /* by its user */
        atomic_size_t noise; /* bytes of DID_SAY on their way to the main loop */
        struct ssh_link *next_waiting;
};

struct ssh_transport {
        struct transport transport;
        uv_loop_t *loop;
        const struct ssh_options *options;
        struct ssh_site *site;
        struct thread_pool *lookups; /* NULL until there is a link */
        struct ssh_mailbox events;
        struct ssh_item *arrived; /* taken from there, not yet delivered */
        size_t cores;
        struct ssh_worker *workers[WORKERS_MAX];
        size_t workers_n, next_worker;
        struct ssh_link *waiting, **waiting_tail;
        int in_flight, window;
        size_t links; /* not yet freed */
        bool destroyed;
};

/* ---- mailboxes ---- */

static void open_mailbox(struct ssh_mailbox *m, uv_loop_t *loop, uv_async_cb on_items)
{
        pthread_mutex_init(&m->mutex, NULL);
        m->tail = &m->head;
        uv_async_init(loop, &m->async, on_items);
}

/* Appends a command or an event, with a copy of its data, and wakes the reader. */
static void post_item(struct ssh_mailbox *m, struct ssh_link *link, enum ssh_command command,
                      const struct ssh_hop_event *event)
{
        struct ssh_item *item = xcalloc(1, sizeof(*item) + event->len);

        item->link = link;
        item->command = command;
        item->event = *event;
        item->event.data = item->data;
        if (event->len)
                memcpy(item->data, event->data, event->len);
        pthread_mutex_lock(&m->mutex);
        *m->tail = item;
        m->tail = &item->next;
        pthread_mutex_unlock(&m->mutex);
        uv_async_send(&m->async);
}

/* Takes all items at once, in their order; the caller frees each. */
static struct ssh_item *take_items(struct ssh_mailbox *m)
{
        struct ssh_item *all;

        pthread_mutex_lock(&m->mutex);
        all = STEAL(&m->head);
        m->tail = &m->head;
        pthread_mutex_unlock(&m->mutex);
        return all;
}

static void send_command(struct ssh_worker *w, enum ssh_command command, struct ssh_link *l)
{
        post_item(&w->commands, l, command, &(struct ssh_hop_event){ 0 });
}

/* Sends an event to the main loop; also from the main thread, so that no callback comes from inside
 * a call of the link's user. */
static void send_event(void *ctx, const struct ssh_hop_event *event)
{
        struct ssh_link *l = ctx;
        size_t cost = event->kind == DID_SAY ? sizeof(struct ssh_item) + event->len : 0;

        if (cost && atomic_fetch_add(&l->noise, cost) > NOISE_MAX) {
                atomic_fetch_sub(&l->noise, cost);
                return;
        }
        post_item(&l->transport->events, l, 0, event);
}

/* ---- in the workers ---- */

/* In a worker's thread: takes the commands of the main loop. */
static void on_commands(uv_async_t *async)
{
        struct ssh_worker *w = container_of(async, struct ssh_worker, commands.async);
        struct ssh_item *next;

        for (struct ssh_item *item = take_items(&w->commands); item; item = next) {
                struct ssh_link *l = item->link;

                if (item->command == DO_OPEN)
                        l->hop = ssh_hop_open(&w->hops, l->lookup.target, NULL, l->forwards_agent,
                                              send_event, l);
                else if (item->command == DO_CLOSE)
                        ssh_hop_close(l->hop);
                else /* DO_STOP: the last command; every hop was closed before */
                        uv_close((uv_handle_t *)async, NULL);
                next = item->next;
                free(item);
        }
}

static void *run_ssh_worker(void *arg)
{
        struct ssh_worker *w = arg;

        uv_run(&w->loop, UV_RUN_DEFAULT);
        return NULL;
}

/* ---- in the main thread ---- */

/* Starts a thread with a loop of its own for sessions: the cryptography of a thousand logins needs
 * several cores. */
static int start_ssh_worker(struct ssh_transport *t, struct error *err)
{
        struct ssh_worker *w = xcalloc(1, sizeof(*w));
        int r = uv_loop_init(&w->loop);

        if (r < 0) {
                free(w);
                return err_set(err, -r, "cannot start an ssh thread: %s", strerror(-r));
        }
        open_mailbox(&w->commands, &w->loop, on_commands);
        w->hops.loop = &w->loop;
        w->hops.site = t->site;
        r = thread_start(&w->thread, run_ssh_worker, w); /* also libssh can cause SIGPIPE */
        if (r) {
                uv_close((uv_handle_t *)&w->commands.async, NULL);
                /* Runs the close callback of the mailbox; the loop cannot be closed before. */
                uv_run(&w->loop, UV_RUN_DEFAULT);
                uv_loop_close(&w->loop);
                free(w);
                return err_set(err, r, "cannot start an ssh thread: %s", strerror(r));
        }
        t->workers[t->workers_n++] = w;
        return 0;
}

/* Starts the threads with the first link: as many as cores, but not more than hosts. */
static int start_ssh_workers(struct ssh_transport *t, struct error *err)
{
        size_t hosts = MAX(t->options->hosts, 1), n = MIN(MIN(t->cores, hosts), WORKERS_MAX);
        size_t lookups = MIN(MAX(hosts / HOSTS_A_LOOKUP, LOOKUPS_MIN), LOOKUPS_MAX);

        if (!t->lookups)
                t->lookups = thread_pool_create(t->loop, (int)MIN(lookups, hosts), err);
        if (!t->lookups)
                return -err->code;
        while (t->workers_n < n)
                if (start_ssh_worker(t, err) < 0)
                        /* Fewer threads than wanted are enough. */
                        return t->workers_n ? 0 : -err->code;
        return 0;
}

static void find_link_target(struct thread_pool_work *work)
{
        struct ssh_link *l = container_of(work, struct ssh_link, lookup.work);

        ssh_target_find(l->transport->site, l->host, l->user, l->port, &l->lookup.target,
                        &l->lookup.why);
        /* Frees OpenSSL's memory of this thread. */
        OPENSSL_thread_stop();
}

static void send_failure(struct ssh_link *l, const struct link_failure *why)
{
        send_event(l,
                   &(struct ssh_hop_event){ .kind = DID_FAIL, .data = why, .len = sizeof(*why) });
}

static int find_lookup_limit(const struct ssh_transport *t)
{
        int ms = t->options->connect_timeout_ms;

        return ms > 0 ? ms : 10000;
}

static void on_lookup_timeout(uv_timer_t *timer)
{
        struct ssh_link *l = container_of(timer, struct ssh_link, lookup.timer);
        struct link_failure why = { .phase = LINK_RESOLVING, .cause = LINK_TIMED_OUT };

        l->lookup.late = true;
        snprintf(why.fact, sizeof(why.fact), "the name lookup took more than %gs",
                 find_lookup_limit(l->transport) / 1000.0);
        send_failure(l, &why);
}

/* Sends the notices that have not been told. */
static void send_notices(struct ssh_link *l)
{
        enum link_notice kind;
        char *text;

        while ((text = ssh_site_notice(l->transport->site, &kind))) {
                send_event(l, &(struct ssh_hop_event){ .kind = DID_NOTICE,
                                                       .notice = kind,
                                                       .data = text,
                                                       .len = strlen(text) + 1 });
                free(text);
        }
}

/* The lookup has ended: hands the link to a worker, unless the link was closed, or has failed by
 * time. */
static void on_target_found(struct thread_pool_work *work, int status)
{
        struct ssh_link *l = container_of(work, struct ssh_link, lookup.work);
        struct ssh_transport *t = l->transport;
        const struct ssh_target *target = l->lookup.target;

        l->lookup.running = false;
        if (!l->closed && !l->lookup.late)
                send_notices(l);
        uv_timer_stop(&l->lookup.timer);
        if (l->closed) {
                send_event(l, &(struct ssh_hop_event){ .kind = DID_CLOSE });
        } else if (l->lookup.late || status < 0) {
                return; /* the failure was reported; the link waits to be closed */
        } else if (target) {
                /* The same thread for all sessions of a jump host, else the next one. */
                size_t i = target->via ? target->via_number : t->next_worker++;

                l->worker = t->workers[i % t->workers_n];
                send_command(l->worker, DO_OPEN, l);
        } else {
                send_failure(l, &l->lookup.why);
        }
}

/* Starts the lookups of waiting links, as many as the window allows. */
static void start_waiting_links(struct ssh_transport *t)
{
        while (t->waiting && t->in_flight < t->window) {
                struct ssh_link *l = t->waiting;

                t->waiting = l->next_waiting;
                if (!t->waiting)
                        t->waiting_tail = &t->waiting;
                if (l->closed) {
                        send_event(l, &(struct ssh_hop_event){ .kind = DID_CLOSE });
                        continue;
                }
                l->started = l->counted = l->lookup.running = true;
                t->in_flight++;
                l->lookup.work = (struct thread_pool_work){ .run = find_link_target,
                                                            .done = on_target_found };
                uv_timer_start(&l->lookup.timer, on_lookup_timeout, (uint64_t)find_lookup_limit(t),
                               0);
                send_event(l,
                           &(struct ssh_hop_event){ .kind = DID_PHASE, .phase = LINK_RESOLVING });
                thread_pool_run(t->lookups, &l->lookup.work);
        }
}

/* A place is free: the next waiting link begins. Once for each link. */
static void leave_window(struct ssh_link *l)
{
        if (!l->counted)
                return;
        l->counted = false;
        l->transport->in_flight--;
        start_waiting_links(l->transport);
}

static void on_transport_closed(uv_handle_t *async)
{
        struct ssh_transport *t = container_of(async, struct ssh_transport, events.async);

        ssh_site_free(t->site);
        pthread_mutex_destroy(&t->events.mutex);
        free(t);
}

static void close_idle_transport(struct ssh_transport *t)
{
        if (t->destroyed && !t->links)
                uv_close((uv_handle_t *)&t->events.async, on_transport_closed);
}

static void on_link_closed(uv_handle_t *timer)
{
        free(container_of(timer, struct ssh_link, lookup.timer));
}

/* Calls the callback for an event, unless the user has closed the link; frees the link with the
 * last event. The callback comes last, as it may close the link and destroy the transport. */
static void handle_event(struct ssh_link *l, const struct ssh_hop_event *e)
{
        struct ssh_transport *t = l->transport;

        if (e->kind == DID_SAY)
                atomic_fetch_sub(&l->noise, sizeof(struct ssh_item) + e->len);
        /* A slow host waits for the network, not for this machine: others may take its place,
         * unless the user has set the fan-out. */
        if (e->kind == DID_OPEN || e->kind == DID_FAIL ||
            (e->kind == DID_SLOW && t->options->fanout == 0))
                leave_window(l);
        if (e->kind == DID_CLOSE) {
                ssh_target_free(l->lookup.target);
                free(l->host);
                free(l->user);
                uv_close((uv_handle_t *)&l->lookup.timer, on_link_closed);
                t->links--;
                close_idle_transport(t);
                return;
        }
        /* Events on their way when the user closed the link. */
        if (l->closed || l->finalized) {
                if (e->kind == DID_OPEN)
                        fd_close(e->fd);
                return;
        }
        l->finalized = e->kind == DID_FAIL || e->kind == DID_END;
        if (e->kind == DID_PHASE && l->cb->phase)
                l->cb->phase(l->ctx, e->phase);
        else if (e->kind == DID_OPEN)
                l->cb->opened(l->ctx, e->fd);
        else if (e->kind == DID_FAIL)
                l->cb->failed(l->ctx, e->data);
        else if (e->kind == DID_END)
                l->cb->ended(l->ctx, e->data);
        else if (e->kind == DID_SAY)
                l->cb->noise(l->ctx, e->data, e->len);
        else if (e->kind == DID_NOTICE && l->cb->notice)
                l->cb->notice(l->ctx, e->notice, e->data);
}

/* Handles the events that have come. Later ones wake the loop again: timers have their turn between
 * them, whatever a server sends. A callback may destroy the transport, which calls this function
 * again: hence the list is part of the transport. */
static void on_events(uv_async_t *async)
{
        struct ssh_transport *t = container_of(async, struct ssh_transport, events.async);
        struct ssh_item *item;

        /* Not empty: the call came from a callback of the loop below. */
        if (!t->arrived)
                t->arrived = take_items(&t->events);
        while ((item = t->arrived)) {
                t->arrived = item->next;
                handle_event(item->link, &item->event);
                free(item);
        }
}

/* Queues the link; at most ssh.fanout logins are under way at once. */
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
        uv_timer_init(t->loop, &l->lookup.timer);
        t->links++;
        *t->waiting_tail = l;
        t->waiting_tail = &l->next_waiting;
        start_waiting_links(t);
        return &l->link;
}

/* Closes the link, wherever the login has come to. DID_CLOSE ends the link in the main loop. */
static void ssh_close(struct link *link)
{
        struct ssh_link *l = container_of(link, struct ssh_link, link);

        l->closed = true;
        if (!l->started)
                return; /* start_waiting_links() ends the link */
        if (l->worker)
                send_command(l->worker, DO_CLOSE, l);
        else if (l->lookup.running)
                /* on_target_found() then sends DID_CLOSE. */
                thread_pool_cancel(l->transport->lookups, &l->lookup.work);
        else
                send_event(l, &(struct ssh_hop_event){ .kind = DID_CLOSE });
        uv_timer_stop(&l->lookup.timer);
        leave_window(l);
}

/* Stops the workers and waits for their threads. The transport is freed when no lookup is left in
 * the pool. */
static void ssh_destroy(struct transport *transport)
{
        struct ssh_transport *t = container_of(transport, struct ssh_transport, transport);

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
        on_events(&t->events.async); /* the rest of a turn that destroys the transport */
        on_events(&t->events.async); /* and what the workers have sent at their end */
        t->destroyed = true;
        thread_pool_close(t->lookups);
        close_idle_transport(t);
}

static const struct transport_ops ssh_ops = {
        .open = ssh_open,
        .close = ssh_close,
        .destroy = ssh_destroy,
};

/* The library that is loaded may be older than the one of the build. */
static int check_libssh(struct error *err)
{
        const char *have = ssh_version(0);

        if (ssh_version(LIBSSH_OLDEST))
                return 0;
        err_set(err, ELIBBAD, "cannot use libssh %.*s of this machine: it is older than 0.10.6",
                (int)strcspn(have, "/"), have);
        err->number = HN_LIBSSH_TOO_OLD;
        return err_help(err, "update libssh, whose older versions have known holes; --ssh-command "
                             "ssh goes without it");
}

struct transport *transport_ssh_create(uv_loop_t *loop, const struct ssh_options *o,
                                       struct error *err)
{
        struct ssh_transport *t;
        struct ssh_site *site;
        struct rlimit limit;

        /* hnlaunch-ssh.so loads a libsodium; that of main() is a part of hnlaunch. */
        if (sodium_init() < 0) {
                err_set(err, ENOSYS, "cannot get random bytes from this system");
                return NULL;
        }
        if (check_libssh(err) < 0 || ssh_site_create(&site, o, err) < 0)
                return NULL;
        /* Each session needs three descriptors: a socket and a pair. */
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = limit.rlim_max;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
        t = xcalloc(1, sizeof(*t));
        t->transport.ops = &ssh_ops;
        t->loop = loop;
        t->options = o;
        t->site = site;
        t->cores = uv_available_parallelism();
        t->window = o->fanout > 0 ? o->fanout : (int)MAX(FANOUT_PER_CORE * t->cores, FANOUT_MIN);
        t->waiting_tail = &t->waiting;
        open_mailbox(&t->events, loop, on_events);
        return &t->transport;
}
