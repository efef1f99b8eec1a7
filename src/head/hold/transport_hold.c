/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link waits until the hold has given the stream of the host, or has no agent there: then the
 * other transport opens an inner link. The connection to the hold stays open for the life of the
 * run. To the hold, its end means that the run is over; to the run, its end means that the hold has
 * died. All callbacks come from the loop, so a timer handles lines received with the first answer.
 */
#include "head/hold/transport_hold.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/hold/hold_match.h"
#include "head/hold/hold_socket.h"

enum {
        EXPLAIN_MS = 50, /* from the end of a stream to the end of the connection */
        WAIT_MS = 90000, /* for an agent still being prepared */
};

/* Grant of a host by the hold. */
enum grant { GRANT_NONE, GRANT_DUE, GRANT_GIVEN, GRANT_TAKEN, GRANT_ABSENT };

struct held {
        int fd;         /* the connection; -1 = the hold has ended */
        struct buf in;  /* lines not yet read */
        struct buf fds; /* descriptors not yet named by a line, int each */
        char id[16];
        int pid;
        size_t *hosts, n;  /* indices of the hosts in the request */
        enum grant *grant; /* by host of the run */
        int *stream;       /* likewise, of GRANT_GIVEN */
        size_t n_hosts;
        struct transport_maker maker;
        struct hold_prepare prepare;
};

static struct transport *create_hold_transport(void *ctx, uv_loop_t *loop,
                                               const struct transport_maker *other,
                                               struct error *err);

/* --- asking ----------------------------------------------------------------------------------- */

const char *held_id(const struct held *h)
{
        return h->id;
}

void held_free(struct held *h)
{
        if (!h)
                return;
        for (size_t i = 0; i < h->n_hosts; i++)
                if (h->grant[i] == GRANT_GIVEN)
                        fd_close(h->stream[i]);
        while (buf_len(&h->fds) >= sizeof(int)) {
                int fd;

                memcpy(&fd, buf_data(&h->fds), sizeof(fd));
                fd_close(fd);
                buf_consume(&h->fds, sizeof(fd));
        }
        fd_close(h->fd);
        buf_finish(&h->in);
        buf_finish(&h->fds);
        free(h->hosts);
        free(h->grant);
        free(h->stream);
        free(h);
}

/* Reads a refusal of the hold. */
static void read_hold_refusal(const json_t *answer, struct hold_refusal *to)
{
        static const char *const members[] = { [HOLD_USED] = "used",
                                               [HOLD_DIFFERS] = "differs",
                                               [HOLD_MISSING] = "missing",
                                               [HOLD_SILENT] = "error" };

        to->why = HOLD_SILENT;
        snprintf(to->text, sizeof(to->text), "its answer is malformed");
        for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
                const char *text =
                        members[i] ? json_string_value(json_object_get(answer, members[i])) : NULL;

                if (!text)
                        continue;
                to->why = i;
                snprintf(to->text, sizeof(to->text), "%s", text);
        }
        snprintf(to->host, sizeof(to->host), "%s", json_member(answer, "host"));
}

/* Lists the hosts of the request. */
static json_t *add_hosts(struct held *h, const struct hosts *hosts)
{
        json_t *names = json_array();

        h->n_hosts = hosts->n;
        h->hosts = xcalloc(hosts->n + 1, sizeof(*h->hosts));
        h->grant = xcalloc(hosts->n + 1, sizeof(*h->grant));
        h->stream = xcalloc(hosts->n + 1, sizeof(*h->stream));
        for (size_t i = 0; i < hosts->n; i++) {
                CLEANUP(free_textp) char *name = hold_match_host(&hosts->v[i]);

                if (hosts->v[i].local)
                        continue;
                json_array_append_new(names, json_text(name));
                h->hosts[h->n++] = i;
                h->grant[i] = GRANT_DUE;
        }
        return names;
}

const struct transport_maker *held_maker(const struct held *h)
{
        return &h->maker;
}

struct held *hold_take(const char *path, const struct hold_run *run, const json_t *settings,
                       const struct hosts *hosts, const struct hold_prepare *prepare,
                       struct hold_refusal *ret)
{
        struct held *h = xcalloc(1, sizeof(*h));
        json_t *request = json_pack("{s:s, s:s, s:s?, s:O, s:o}", "do", "take", "run", run->id,
                                    "program", run->program, "settings",
                                    (json_t *)(uintptr_t)settings, "hosts", add_hosts(h, hosts));
        json_t *answer = NULL;
        struct error err;

        *ret = (struct hold_refusal){ .why = HOLD_NONE };
        h->fd = hold_socket_ask(path, request, &answer, &h->in, &h->fds, &err);
        if (h->fd >= 0 && json_is_true(json_object_get(answer, "ok"))) {
                snprintf(h->id, sizeof(h->id), "%s", json_member(answer, "hold"));
                h->pid = (int)json_integer_value(json_object_get(answer, "pid"));
                json_decref(answer);
                h->maker = (struct transport_maker){ create_hold_transport, h };
                h->prepare = *prepare;
                return h;
        }
        if (h->fd >= 0) {
                read_hold_refusal(answer, ret);
                snprintf(ret->hold, sizeof(ret->hold), "%s", json_member(answer, "hold"));
        } else if (err.code != ENOENT && err.code != ECONNREFUSED) {
                ret->why = HOLD_SILENT;
                snprintf(ret->text, sizeof(ret->text), "%s", err.text);
        }
        json_decref(answer);
        held_free(h);
        return NULL;
}

/* --- links ------------------------------------------------------------------------------------ */

enum hold_link_state { HOLD_LINK_WAITS, HOLD_LINK_OPEN, HOLD_LINK_COLD, HOLD_LINK_OVER };

struct hold_link {
        struct link link;
        struct hold_link *next;
        enum hold_link_state state;
        struct link *inner;    /* of HOLD_LINK_COLD */
        struct link_target to; /* with copied texts */
        char *host, *user;
        const struct link_callbacks *cb;
        void *ctx;
};

struct hold_transport {
        struct transport transport;
        uv_loop_t *loop;
        struct held *held;
        struct transport_maker other;
        struct transport *remote; /* the other transport, once made */
        struct hold_link *links;
        uv_poll_t poll;
        uv_timer_t later;
        int open; /* handles not yet closed */
};

static struct hold_transport *hold_transport_of(struct transport *t)
{
        return container_of(t, struct hold_transport, transport);
}

/* Opens a link by the cold transport. NULL with @err. */
static struct link *open_cold(struct hold_transport *t, const struct link_target *to,
                              const struct link_callbacks *cb, void *ctx, struct error *err)
{
        const struct hold_prepare *p = &t->held->prepare;

        if (!t->remote && p->call(p->ctx, err) == 0)
                t->remote = t->other.create(t->other.ctx, t->loop, NULL, err);
        return t->remote ? link_open(t->remote, to, cb, ctx, err) : NULL;
}

/* Opens the link by the cold transport: the hold has no agent there. */
static void go_cold(struct hold_transport *t, struct hold_link *l)
{
        struct link_failure why = { .phase = LINK_RESOLVING, .cause = LINK_SPAWN };
        struct error err = { 0 };

        log_line(LOG_INFO, "%s is connected anew: hold %s has no agent there", l->host,
                 t->held->id);
        l->inner = open_cold(t, &l->to, l->cb, l->ctx, &err);
        l->state = l->inner ? HOLD_LINK_COLD : HOLD_LINK_OVER;
        if (l->inner)
                return;
        snprintf(why.fact, sizeof(why.fact), "%.*s", (int)sizeof(why.fact) - 1, err.text);
        l->cb->failed(l->ctx, &why);
}

/* Opens the waiting links for which the hold has decided. */
static void advance_links(struct hold_transport *t)
{
        struct hold_link *next;

        for (struct hold_link *l = t->links; l; l = next) {
                struct held *h = t->held;
                size_t i = l->to.number;

                next = l->next;
                if (l->state != HOLD_LINK_WAITS)
                        continue;
                if (h->grant[i] == GRANT_GIVEN) {
                        h->grant[i] = GRANT_TAKEN;
                        l->state = HOLD_LINK_OPEN;
                        l->cb->opened(l->ctx, h->stream[i]);
                } else if (h->grant[i] != GRANT_DUE) {
                        go_cold(t, l);
                }
        }
}

/* --- lines of the hold ------------------------------------------------------------------------ */

/* Returns the host with @number in the request, or -1. */
static ssize_t host_of(const struct held *h, const json_t *number)
{
        json_int_t k = json_integer_value(number);

        return json_is_integer(number) && k >= 0 && (size_t)k < h->n ? (ssize_t)h->hosts[k] : -1;
}

/* Takes the next descriptor for host @i. */
static void assign_stream(struct held *h, size_t i)
{
        int fd;

        if (buf_len(&h->fds) < sizeof(fd))
                return;
        memcpy(&fd, buf_data(&h->fds), sizeof(fd));
        buf_consume(&h->fds, sizeof(fd));
        if (h->grant[i] != GRANT_DUE || fd_set_nonblock(fd) < 0) {
                fd_close(fd);
                return;
        }
        h->grant[i] = GRANT_GIVEN;
        h->stream[i] = fd;
}

/* Ends the link to a node that the hold has lost, with the hold's reason. */
static void lose_link(struct hold_transport *t, size_t i, const json_t *line)
{
        struct link_failure why = { .one_sided = json_is_true(json_object_get(line, "one_sided")) };
        json_int_t cause = json_integer_value(json_object_get(line, "cause"));
        json_int_t phase = json_integer_value(json_object_get(line, "phase"));

        why.cause = cause >= 0 && cause < LINK_CAUSES ? (enum link_cause)cause : LINK_ENDED;
        why.phase = phase >= 0 && phase < LINK_PHASES ? (enum link_phase)phase : LINK_OPEN;
        snprintf(why.fact, sizeof(why.fact), "%s", json_member(line, "fact"));
        for (struct hold_link *l = t->links; l; l = l->next)
                if (l->to.number == i && l->state == HOLD_LINK_OPEN) {
                        l->state = HOLD_LINK_OVER;
                        l->cb->ended(l->ctx, &why);
                        return;
                }
}

static void read_hold_line(struct hold_transport *t, const json_t *line)
{
        struct held *h = t->held;
        const json_t *number;
        size_t k;
        ssize_t i;

        json_array_foreach(json_object_get(line, "nodes"), k, number)
        {
                i = host_of(h, number);
                if (i >= 0)
                        assign_stream(h, (size_t)i);
        }
        json_array_foreach(json_object_get(line, "absent"), k, number)
        {
                i = host_of(h, number);
                if (i >= 0 && h->grant[i] == GRANT_DUE)
                        h->grant[i] = GRANT_ABSENT;
        }
        i = host_of(h, json_object_get(line, "lost"));
        if (i >= 0)
                lose_link(t, (size_t)i, line);
}

static void read_hold_lines(struct hold_transport *t)
{
        struct buf *in = &t->held->in;
        const unsigned char *end;

        while ((end = memchr(buf_data(in), '\n', buf_len(in)))) {
                size_t len = (size_t)(end - buf_data(in)) + 1;
                json_t *line = json_loadb((const char *)buf_data(in), len, 0, NULL);

                buf_consume(in, len);
                read_hold_line(t, line);
                json_decref(line);
        }
        advance_links(t);
}

static void give_up_due(struct held *h)
{
        for (size_t i = 0; i < h->n_hosts; i++)
                if (h->grant[i] == GRANT_DUE)
                        h->grant[i] = GRANT_ABSENT;
}

/* Connects hosts still due anew, and reports the run's nodes as lost. */
static void end_hold(struct hold_transport *t)
{
        struct held *h = t->held;
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_HOLD };
        struct hold_link *next;

        uv_poll_stop(&t->poll);
        give_up_due(h);
        snprintf(why.fact, sizeof(why.fact), "hold %s (pid %d) has ended", h->id, h->pid);
        snprintf(why.help, sizeof(why.help),
                 "start again: the run then logs in; hnlaunch hold makes a new hold");
        for (struct hold_link *l = t->links; l; l = next) {
                next = l->next;
                if (l->state != HOLD_LINK_OPEN)
                        continue;
                l->state = HOLD_LINK_OVER;
                l->cb->ended(l->ctx, &why);
        }
        advance_links(t);
}

static void on_hold_readable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        struct hold_transport *t = poll->data;
        int n = hold_socket_receive(t->held->fd, &t->held->in, &t->held->fds);

        if (n > 0)
                read_hold_lines(t);
        else if (n != -EAGAIN && n != -EINTR)
                end_hold(t);
}

/* Reads the last lines of the hold: a killed hold closes streams and connection in any order. */
static void explain_hold_link(struct link *link)
{
        struct hold_link *l = container_of(link, struct hold_link, link);
        struct hold_transport *t = hold_transport_of(link->transport);
        struct pollfd p = { .fd = t->held->fd, .events = POLLIN };

        if (l->state == HOLD_LINK_OPEN && uv_is_active((uv_handle_t *)&t->poll) &&
            poll(&p, 1, EXPLAIN_MS) > 0)
                on_hold_readable(&t->poll, 0, UV_READABLE);
}

static void on_hold_slow(uv_timer_t *timer)
{
        struct hold_transport *t = timer->data;

        give_up_due(t->held);
        advance_links(t);
}

static void on_hold_later(uv_timer_t *timer)
{
        read_hold_lines(timer->data);
        uv_timer_start(timer, on_hold_slow, WAIT_MS, 0);
        uv_unref((uv_handle_t *)timer);
}

/* --- the transport ---------------------------------------------------------------------------- */

static struct link *open_hold_link(struct transport *transport, const struct link_target *to,
                                   const struct link_callbacks *cb, void *ctx, struct error *err)
{
        struct hold_transport *t = hold_transport_of(transport);
        struct hold_link *l;
        enum grant g = to->number < t->held->n_hosts ? t->held->grant[to->number] : GRANT_NONE;

        /* The hold gives the first link to a host. */
        if (g != GRANT_DUE && g != GRANT_GIVEN)
                return open_cold(t, to, cb, ctx, err);
        l = xcalloc(1, sizeof(*l));
        *l = (struct hold_link){ .link.transport = transport,
                                 .next = t->links,
                                 .to = *to,
                                 .host = xstrdup(to->host),
                                 .user = to->user ? xstrdup(to->user) : NULL,
                                 .cb = cb,
                                 .ctx = ctx };
        l->to.host = l->host;
        l->to.user = l->user;
        t->links = l;
        uv_ref((uv_handle_t *)&t->later);
        uv_timer_start(&t->later, on_hold_later, 0, 0);
        return &l->link;
}

static void end_hold_link(struct link *link, void (*end)(struct link *))
{
        struct hold_link *l = container_of(link, struct hold_link, link);
        struct hold_transport *t = hold_transport_of(link->transport);
        struct hold_link **at = &t->links;

        while (*at != l)
                at = &(*at)->next;
        *at = l->next;
        end(l->inner);
        /* No other link may use a later grant. */
        if (l->state == HOLD_LINK_WAITS && t->held->grant[l->to.number] == GRANT_DUE)
                t->held->grant[l->to.number] = GRANT_NONE;
        free(l->host);
        free(l->user);
        free(l);
}

static void close_hold_link(struct link *link)
{
        end_hold_link(link, link_close);
}

static void abandon_hold_link(struct link *link)
{
        end_hold_link(link, link_abandon);
}

static void on_hold_handle_closed(uv_handle_t *handle)
{
        struct hold_transport *t = handle->data;

        if (--t->open == 0)
                free(t);
}

static void destroy_hold_transport(struct transport *transport)
{
        struct hold_transport *t = hold_transport_of(transport);

        transport_destroy(t->remote);
        uv_close((uv_handle_t *)&t->poll, on_hold_handle_closed);
        uv_close((uv_handle_t *)&t->later, on_hold_handle_closed);
}

static const struct transport_ops hold_transport_ops = {
        .open = open_hold_link,
        .close = close_hold_link,
        .abandon = abandon_hold_link,
        .explain = explain_hold_link,
        .destroy = destroy_hold_transport,
};

static struct transport *create_hold_transport(void *ctx, uv_loop_t *loop,
                                               const struct transport_maker *other,
                                               struct error *err)
{
        struct hold_transport *t = xcalloc(1, sizeof(*t));
        struct held *h = ctx;
        int r = uv_poll_init(loop, &t->poll, h->fd);

        if (r < 0) {
                free(t);
                err_set(err, -r, "cannot watch the hold: %s", strerror(-r));
                return NULL;
        }
        t->transport.ops = &hold_transport_ops;
        t->loop = loop;
        t->held = h;
        t->other = *other;
        t->open = 2;
        uv_timer_init(loop, &t->later);
        t->poll.data = t->later.data = t;
        uv_poll_start(&t->poll, UV_READABLE, on_hold_readable);
        return &t->transport;
}
