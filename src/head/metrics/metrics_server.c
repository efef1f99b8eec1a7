/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client is in the list from its connection to uv_close(); the newest is first. Its bytes are
 * collected until the request is whole, and answered once: metrics_request_status() judges the
 * request line, metrics_request_knows_host() the name. Behind the answer the writing side is shut
 * down and the rest of the request is read and dropped: closing at once would send a reset, which
 * can overtake the answer. A timer checks for late clients, and runs only while there are clients.
 * All handles are unreferenced, so the server keeps no loop alive; the last one to be closed frees
 * the server.
 */
#include "head/metrics/metrics_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum {
        REQUEST_MAX = 8192,
        CLIENTS_MAX = 64, /* at once; Prometheus needs one */
        NAMES = 4,        /* the address, two names of the machine, and NULL */
        BACKLOG = 16,
        LATE_MS = 10000,
        LOOK_MS = 1000,  /* between two checks for late clients */
        FRESH_MS = 1000, /* the age up to which the text is sent again */
};

/* A connection, up to its answer. */
struct metrics_client {
        uv_tcp_t tcp;
        struct metrics_server *server;
        struct metrics_client *next;
        uv_write_t write;
        uv_shutdown_t shutdown;
        struct buf answer;
        bool answered, ended; /* ended: it sends no more */
        uint64_t late_ms;     /* of the loop's clock: then the client is dropped */
        size_t unsent;        /* when it was looked at last */
        size_t len;
        char request[REQUEST_MAX];
};

struct metrics_server {
        uv_tcp_t listener;
        uv_timer_t timer;
        void (*text)(void *ctx, struct buf *to);
        void *ctx;
        struct metrics_client *clients;
        int n_clients;
        int open;          /* handles that are not closed */
        struct buf fresh;  /* the newest text */
        uint64_t fresh_ms; /* when it was made, 0 = never */
        char url[320];
        char *names[NAMES]; /* of this machine, and NULL */
};

/* --- address ---------------------------------------------------------------------------------- */

int metrics_address_parse(struct metrics_address *a, const char *text, struct error *err)
{
        /* The last colon: those before belong to an IPv6 address, which needs brackets. */
        const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
        const char *host = colon ? text : "127.0.0.1";
        size_t len = colon ? (size_t)(colon - text) : strlen(host), digits = strlen(port);
        bool brackets = len >= 2 && *host == '[' && host[len - 1] == ']';

        if (!digits || digits > 5 || strspn(port, "0123456789") < digits || atoi(port) > 65535)
                return err_set(err, EINVAL, "`%.40s` is no port", port);
        if (brackets) {
                host++;
                len -= 2;
        } else if (memchr(host, ':', len)) {
                return err_set(err, EINVAL, "an IPv6 address needs brackets");
        }
        if (!len || len >= sizeof(a->host))
                return err_set(err, EINVAL, "there is no address before the colon");
        *a = (struct metrics_address){ .port = atoi(port) };
        memcpy(a->host, host, len);
        return 0;
}

/* Binds to the first address of a name. 0, or -errno with @err. */
static int bind_address(uv_tcp_t *tcp, const struct metrics_address *a, struct error *err)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
        struct addrinfo *found = NULL;
        char port[8];
        int r;

        snprintf(port, sizeof(port), "%d", a->port);
        r = getaddrinfo(a->host, port, &hints, &found);
        if (r)
                return err_set(err, ENOENT, "%s: %s", a->host, gai_strerror(r));
        r = uv_tcp_bind(tcp, found->ai_addr, 0);
        freeaddrinfo(found);
        return r ? err_set(err, -r, "%s", strerror(-r)) : 0;
}

/* --- requests --------------------------------------------------------------------------------- */

/* Judges the first line of a request. The form comes before method and target: any other protocol
 * gets 400. */
static int judge_line(const char *line, size_t len)
{
        const char *end = line + len, *target = memchr(line, ' ', len), *version;

        if (len && end[-1] == '\r')
                end--;
        version = target ? memchr(target + 1, ' ', (size_t)(end - target - 1)) : NULL;
        if (!version || target == line || target[1] != '/' || end - version != 9 ||
            memcmp(version, " HTTP/1.", 8) != 0)
                return 400;
        if (target - line != 3 || memcmp(line, "GET", 3) != 0)
                return 405;
        target++;
        len = strcspn(target, " ?");
        return len == 8 && !memcmp(target, "/metrics", 8) ? 200 : 404;
}

int metrics_request_status(const char *text, size_t len)
{
        const char *nl = memchr(text, '\n', len), *end = text + len;
        int status = nl ? judge_line(text, (size_t)(nl - text)) : 0;

        /* A malformed line is answered at once, without an end of the request to wait for. */
        if (status == 400)
                return 400;
        for (; nl; nl = memchr(nl + 1, '\n', (size_t)(end - nl - 1))) {
                const char *next = nl + 1;

                /* An empty line ends the request; a bare newline is accepted, too. */
                next += next < end && *next == '\r';
                if (next < end && *next == '\n')
                        return status;
        }
        return len >= REQUEST_MAX ? 400 : 0;
}

/* Returns the length up to a character, or all of it. */
static size_t find_host_end(const char *text, size_t len, char stop)
{
        const char *end = memchr(text, stop, len);

        return end ? (size_t)(end - text) : len;
}

/* Whether the value of a Host is known. An address is always: only a name can be made to lead here
 * by another site (DNS rebinding). */
static bool is_known_host(const char *value, size_t len, const char *const *names)
{
        struct in6_addr address;
        char host[300];

        while (len && strchr(" \t", *value)) {
                value++;
                len--;
        }
        while (len && strchr(" \t\r", value[len - 1]))
                len--;
        if (len && *value == '[') {
                value++;
                len = find_host_end(value, len - 1, ']');
        } else {
                /* Without brackets the first colon begins the port. */
                len = find_host_end(value, len, ':');
                /* A dot at the end is part of a name, and of a browser's Host. */
                len -= len && value[len - 1] == '.';
        }
        snprintf(host, sizeof(host), "%.*s", (int)len, value);
        if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
                return true;
        for (; *names; names++)
                if (!strcasecmp(*names, host))
                        return true;
        return !strcasecmp(host, "localhost");
}

bool metrics_request_knows_host(const char *text, size_t len, const char *const *names)
{
        const char *end = text + len, *nl = text;

        while (nl && (nl = memchr(nl, '\n', (size_t)(end - nl))) && ++nl < end) {
                const char *stop = memchr(nl, '\n', (size_t)(end - nl));

                if (end - nl > 5 && !strncasecmp(nl, "Host:", 5) &&
                    !is_known_host(nl + 5, (size_t)((stop ? stop : end) - nl - 5), names))
                        return false;
        }
        return true;
}

/* --- clients ---------------------------------------------------------------------------------- */

/* Counts a handle as closed; frees the server with the last. */
static void unref_metrics_server(struct metrics_server *s)
{
        if (--s->open)
                return;
        buf_finish(&s->fresh);
        for (size_t i = 0; i < NAMES; i++)
                free(s->names[i]);
        free(s);
}

static void on_metrics_client_closed(uv_handle_t *h)
{
        struct metrics_client *c = h->data;

        unref_metrics_server(c->server);
        buf_finish(&c->answer);
        free(c);
}

/* Takes a client out of the list, whatever its state; a second call does nothing. */
static void drop_metrics_client(struct metrics_client *c)
{
        struct metrics_client **at = &c->server->clients;

        if (uv_is_closing((uv_handle_t *)&c->tcp))
                return;
        while (*at != c)
                at = &(*at)->next;
        *at = c->next;
        if (--c->server->n_clients == 0)
                uv_timer_stop(&c->server->timer);
        uv_close((uv_handle_t *)&c->tcp, on_metrics_client_closed);
}

/* libuv wants a callback; the end of the client is seen by on_metrics_read(). */
static void on_metrics_shut(uv_shutdown_t *request UNUSED, int status UNUSED)
{
}

/* The answer has left this process: shuts the writing side down, and waits for the end of the
 * client's side. */
static void on_metrics_written(uv_write_t *w, int status)
{
        struct metrics_client *c = w->handle->data;

        if (uv_is_closing((uv_handle_t *)&c->tcp))
                return;
        /* A client that sends no more is done; of any other the rest must be read first. */
        if (status < 0 || c->ended ||
            uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_metrics_shut) < 0)
                drop_metrics_client(c);
}

/* Returns the text, made anew when it is old. */
static const struct buf *refresh_text(struct metrics_server *s)
{
        uint64_t now = uv_now(s->listener.loop);

        if (!s->fresh_ms || now - s->fresh_ms >= FRESH_MS) {
                buf_clear(&s->fresh);
                s->text(s->ctx, &s->fresh);
                /* 0 means never. */
                s->fresh_ms = MAX(now, (uint64_t)1);
        }
        return &s->fresh;
}

/* Writes the answer to a whole request. The text is copied, because the next client may have it
 * made anew meanwhile. */
static void answer_metrics_client(struct metrics_client *c, int status)
{
        static const struct {
                int status;
                const char *line, *body;
        } others[] = {
                { 404, "404 Not Found", "the metrics are at /metrics\n" },
                { 405, "405 Method Not Allowed\r\nAllow: GET", "GET is the only method\n" },
                { 400, "400 Bad Request", "this is no request of HTTP/1.1\n" },
                { 421, "421 Misdirected Request", "Host is no name of this machine\n" },
        };
        const struct buf *text = status == 200 ? refresh_text(c->server) : NULL;
        const char *line = "200 OK", *body = "";
        uv_buf_t out;

        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (others[i].status == status) {
                        line = others[i].line;
                        body = others[i].body;
                }
        buf_printf(&c->answer,
                   "HTTP/1.1 %s\r\nContent-Type: text/plain; %scharset=utf-8\r\n"
                   "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                   line, text ? "version=0.0.4; " : "", text ? buf_len(text) : strlen(body), body);
        if (text)
                buf_append(&c->answer, buf_data(text), buf_len(text));
        c->answered = true;
        c->late_ms = uv_now(c->tcp.loop) + LATE_MS;
        c->unsent = buf_len(&c->answer);
        out = uv_buf_init((char *)(uintptr_t)buf_data(&c->answer), (unsigned)c->unsent);
        if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &out, 1, on_metrics_written) < 0)
                drop_metrics_client(c);
}

/* Behind the answer, bytes are read into the same place and dropped. */
static void on_metrics_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *buf)
{
        struct metrics_client *c = h->data;
        size_t at = c->answered ? 0 : c->len;

        *buf = uv_buf_init(c->request + at, (unsigned)(sizeof(c->request) - at));
}

/* Collects the request and answers as soon as its end is there. An answer is made once; what
 * follows is read and dropped. */
static void on_metrics_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf UNUSED)
{
        struct metrics_client *c = stream->data;
        int status;

        /* The client has shut its side down, as `nc` does; the answer is still on the way. */
        if (n == UV_EOF && uv_stream_get_write_queue_size(stream)) {
                c->ended = true; /* but may read on */
                return;
        }
        if (n < 0) {
                drop_metrics_client(c);
                return;
        }
        if (c->answered)
                return;
        c->len += (size_t)n;
        status = metrics_request_status(c->request, c->len);
        if (status && status != 400 &&
            !metrics_request_knows_host(c->request, c->len, (const char *const *)c->server->names))
                status = 421;
        if (status)
                answer_metrics_client(c, status);
}

/* Drops late clients; a client with a part of the answer has more time. */
static void on_metrics_look(uv_timer_t *t)
{
        struct metrics_server *s = t->data;
        struct metrics_client *next;
        uint64_t now = uv_now(t->loop);

        for (struct metrics_client *c = s->clients; c; c = next) {
                size_t unsent = uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp);

                next = c->next;
                if (c->answered && unsent < c->unsent) {
                        c->unsent = unsent;
                        c->late_ms = now + LATE_MS;
                }
                if (now >= c->late_ms)
                        drop_metrics_client(c);
        }
}

/* Drops the oldest client without a request and without unread bytes; else the oldest of all. */
static void drop_metrics_surplus(struct metrics_server *s)
{
        struct metrics_client *silent = NULL, *oldest = NULL;
        uv_os_fd_t fd;

        for (struct metrics_client *c = s->clients; c; c = c->next) {
                oldest = c;
                if (!c->answered && uv_fileno((const uv_handle_t *)&c->tcp, &fd) == 0 &&
                    !fd_unread(fd))
                        silent = c;
        }
        drop_metrics_client(silent ? silent : oldest);
}

static void on_metrics_client(uv_stream_t *listener, int status)
{
        struct metrics_server *s = listener->data;
        struct metrics_client *c;

        if (status < 0)
                return;
        c = xcalloc(1, sizeof(*c));
        c->server = s;
        c->tcp.data = c;
        c->late_ms = uv_now(listener->loop) + LATE_MS;
        uv_tcp_init(listener->loop, &c->tcp);
        /* A client must not keep hnlaunch from ending. */
        uv_unref((uv_handle_t *)&c->tcp);
        s->open++;
        c->next = s->clients;
        s->clients = c;
        if (++s->n_clients == 1)
                uv_timer_start(&s->timer, on_metrics_look, LOOK_MS, LOOK_MS);
        /* In the list already, so that every way out is drop_metrics_client(). */
        if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0 ||
            uv_read_start((uv_stream_t *)&c->tcp, on_metrics_alloc, on_metrics_read) < 0)
                drop_metrics_client(c);
        else if (s->n_clients > CLIENTS_MAX)
                drop_metrics_surplus(s);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void on_metrics_server_closed(uv_handle_t *h)
{
        unref_metrics_server(h->data);
}

void metrics_server_close(struct metrics_server *s)
{
        while (s && s->clients)
                drop_metrics_client(s->clients);
        if (!s)
                return;
        uv_close((uv_handle_t *)&s->timer, on_metrics_server_closed);
        uv_close((uv_handle_t *)&s->listener, on_metrics_server_closed);
}

/* Notes where the server listens. */
static int note_url(struct metrics_server *s, const struct metrics_address *a, struct error *err)
{
        bool v6 = strchr(a->host, ':');
        struct sockaddr_storage own;
        /* The port may have been 0, so the socket tells which one was taken. */
        int len = sizeof(own), r;
        char port[NI_MAXSERV];

        r = uv_tcp_getsockname(&s->listener, (struct sockaddr *)&own, &len);
        if (r == 0 && getnameinfo((struct sockaddr *)&own, (socklen_t)len, NULL, 0, port,
                                  sizeof(port), NI_NUMERICSERV) != 0)
                r = -EINVAL;
        if (r)
                return err_set(err, -r, "%s", strerror(-r));
        snprintf(s->url, sizeof(s->url), "http://%s%s%s:%s/metrics", v6 ? "[" : "", a->host,
                 v6 ? "]" : "", port);
        return 0;
}

/* Notes the names under which others may ask: the given one, and this machine's, with its domain
 * where the network can ask. */
static void note_names(struct metrics_server *s, const struct metrics_address *a)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_CANONNAME };
        bool local = !strcmp(a->host, "127.0.0.1") || !strcmp(a->host, "::1");
        struct addrinfo *found = NULL;
        char own[256];

        s->names[0] = xstrdup(a->host);
        if (gethostname(own, sizeof(own)) < 0)
                return;
        s->names[1] = xstrdup(own);
        /* A resolver may take seconds: asked only where others reach the port. */
        if (!local && getaddrinfo(own, NULL, &hints, &found) == 0 && found->ai_canonname)
                s->names[2] = xstrdup(found->ai_canonname);
        else
                /* The short form, where the name of this machine has a domain. */
                s->names[2] = xstrndup(own, strcspn(own, "."));
        if (found)
                freeaddrinfo(found);
}

struct metrics_server *metrics_server_open(uv_loop_t *loop, const struct metrics_address *a,
                                           void (*text)(void *ctx, struct buf *to), void *ctx,
                                           struct error *err)
{
        struct metrics_server *s = xcalloc(1, sizeof(*s));
        int r;

        *s = (struct metrics_server){ .text = text, .ctx = ctx, .open = 2 };
        uv_tcp_init(loop, &s->listener);
        uv_timer_init(loop, &s->timer);
        s->listener.data = s->timer.data = s;
        uv_unref((uv_handle_t *)&s->listener);
        uv_unref((uv_handle_t *)&s->timer);
        note_names(s, a);
        r = bind_address(&s->listener, a, err);
        if (r == 0) {
                r = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_metrics_client);
                if (r)
                        err_set(err, -r, "%s", strerror(-r));
        }
        if (r == 0 && note_url(s, a, err) == 0)
                return s;
        metrics_server_close(s);
        return NULL;
}

const char *metrics_server_url(const struct metrics_server *s)
{
        return s->url;
}
