/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list has the newest client first. Clients that wait for the end of the run, ask why or watch
 * (top) stay for their answers, and a client without a request stays until another needs its place.
 *
 * A client is dropped at its end, when a write fails, or when it leaves too much unread. Dropping
 * takes it out of the list at once; the memory is freed when libuv has closed the handle, so that a
 * function may use the client after an answer. All handles are unreferenced: none delays the end of
 * the loop.
 */
#include "head/run/run_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/core/json_text.h"

/* A request is short: the longest names a host or a role. UNREAD_MAX is above ANSWER_MAX of
 * run_list.c, the longest answer that a command reads. */
enum { REQUEST_MAX = 512, CLIENTS_MAX = 64, BACKLOG = 16, UNREAD_MAX = 128 << 20 };

struct run_client {
        uv_pipe_t pipe;
        struct run_socket *server;
        struct run_client *next;
        bool waits; /* for the end of the run */
        bool asks;  /* why */
        bool looks; /* on (top) */
        bool spoke; /* has made a request */
        int pid;    /* 0 = in another namespace */
        size_t len;
        char line[REQUEST_MAX];
};

struct run_socket {
        uv_pipe_t listener;
        struct run_socket_ops ops;
        void *ctx;
        struct run_client *clients;
        struct run_client *owner; /* the `attach` with the right to standard input; NULL = none */
        int n_clients, n_looking;
        int open; /* handles not yet closed */
};

/* The path is kept outside of the struct: run_socket_abandon() may be called by a handler of a
 * signal, without a pointer to the run. A process has one run. */
static char abandoned[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* of the open socket */

static void unref_run_socket(struct run_socket *s)
{
        if (--s->open == 0)
                free(s);
}

static void on_client_closed(uv_handle_t *h)
{
        struct run_client *c = h->data;

        unref_run_socket(c->server);
        free(c);
}

/* Closes a client. The next to attach may become the owner of standard input; samples for top end
 * with the last client that looks. */
static void drop_run_client(struct run_client *c)
{
        struct run_client **at = &c->server->clients;

        if (uv_is_closing((uv_handle_t *)&c->pipe))
                return;
        while (*at != c)
                at = &(*at)->next;
        *at = c->next;
        c->server->n_clients--;
        if (c->server->owner == c)
                c->server->owner = NULL;
        uv_close((uv_handle_t *)&c->pipe, on_client_closed);
        if (c->looks && --c->server->n_looking == 0)
                c->server->ops.top_rest(c->server->ctx);
}

/* An answer being sent. */
struct run_write {
        uv_write_t request;
        char *line;
};

static void on_run_written(uv_write_t *request, int status UNUSED)
{
        struct run_write *w = request->data;

        free(w->line);
        free(w);
}

/* Takes @line. A client that leaves too much unread loses its connection. */
static void send_run_line(struct run_client *c, char *line)
{
        struct run_write *w = xcalloc(1, sizeof(*w));
        uv_buf_t buf;

        w->request.data = w;
        w->line = line;
        buf = uv_buf_init(w->line, (unsigned)strlen(w->line));
        if (uv_write(&w->request, (uv_stream_t *)&c->pipe, &buf, 1, on_run_written) < 0) {
                on_run_written(&w->request, 0);
                drop_run_client(c);
        } else if (uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe) > UNREAD_MAX) {
                drop_run_client(c);
        }
}

/* Takes @answer. */
static void answer_client(struct run_client *c, json_t *answer)
{
        CLEANUP(free_textp) char *text = json_dump_plain(answer, JSON_COMPACT);

        json_decref(answer);
        send_run_line(c, xasprintf("%s\n", text));
}

static void refuse_run_request(struct run_client *c, const char *why)
{
        answer_client(c, json_pack("{s:s}", "error", why));
}

/* Further bytes on this connection are standard input of the ranks. */
static void take_stdin(struct run_client *c)
{
        struct error err;
        uv_os_fd_t fd = -1;
        int own = -1;

        /* The duplicate goes to the reader of standard input, and this client is closed: two
         * readers of one stream would each get a part. */
        uv_read_stop((uv_stream_t *)&c->pipe);
        if (uv_fileno((const uv_handle_t *)&c->pipe, &fd) == 0)
                own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (own < 0)
                refuse_run_request(c, "it has no free descriptor");
        else if (c->server->ops.lend_stdin(c->server->ctx, own, &err) < 0)
                refuse_run_request(c, err.text);
        else
                answer_client(c, json_pack("{s:b}", "ok", 1));
        drop_run_client(c);
}

static void begin_to_look(struct run_client *c)
{
        if (!c->looks)
                c->server->n_looking++;
        c->looks = true;
        send_run_line(c, c->server->ops.top(c->server->ctx));
}

static void drain_by_request(struct run_client *c, const json_t *request)
{
        const char *host = json_string_value(json_object_get(request, "host"));
        const json_t *in_ms = json_object_get(request, "in_ms");
        struct error err;

        if (!host || json_integer_value(in_ms) < 0 || (in_ms && !json_is_integer(in_ms)))
                refuse_run_request(c, "a malformed request");
        else if (c->server->ops.drain(c->server->ctx, host, json_integer_value(in_ms), &err) < 0)
                refuse_run_request(c, err.text);
        else
                answer_client(c, json_pack("{s:b}", "ok", 1));
}

static void signal_by_request(struct run_client *c, const json_t *request)
{
        json_int_t signo = json_integer_value(json_object_get(request, "signal"));
        const char *role = json_string_value(json_object_get(request, "role"));
        struct error err;

        if (signo <= 0 || signo >= NSIG)
                refuse_run_request(c, "a malformed request");
        else if (c->server->ops.signal(c->server->ctx, (int)signo, role, c->pid, &err) < 0)
                refuse_run_request(c, err.text);
        else
                answer_client(c, json_pack("{s:b}", "ok", 1));
}

/* Carries out a request. Answers that come later (wait, why, top) keep the connection open. */
static void obey_request(struct run_client *c, const json_t *request)
{
        struct run_socket *s = c->server;
        const char *what = json_string_value(json_object_get(request, "do"));
        const json_t *grace = json_object_get(request, "grace_ms");

        if (!what) {
                refuse_run_request(c, "no request");
        } else if (!strcmp(what, "info")) {
                answer_client(c, s->ops.info(s->ctx));
        } else if (!strcmp(what, "wait")) {
                c->waits = true;
        } else if (!strcmp(what, "status")) {
                s->ops.status(s->ctx);
                answer_client(c, json_pack("{s:b}", "ok", 1));
        } else if (!strcmp(what, "attach")) {
                /* Only the first `attach` gets the terminal's input to the
                 * ranks; the others watch. */
                s->owner = s->owner ? s->owner : c;
                answer_client(c, json_pack("{s:b}", "owner", s->owner == c));
        } else if (!strcmp(what, "stdin")) {
                take_stdin(c);
        } else if (!strcmp(what, "stdin-end")) {
                s->ops.end_stdin(s->ctx);
                answer_client(c, json_pack("{s:b}", "ok", 1));
        } else if (!strcmp(what, "why")) {
                /* The look may have begun for another client: the answer goes
                 * to all clients that ask. */
                c->asks = true;
                s->ops.why(s->ctx);
        } else if (!strcmp(what, "top")) {
                begin_to_look(c);
        } else if (!strcmp(what, "stop")) {
                answer_client(c, json_pack("{s:b}", "ok", 1));
                s->ops.stop(s->ctx, json_is_integer(grace) ? json_integer_value(grace) : -1,
                            c->pid);
        } else if (!strcmp(what, "drain")) {
                drain_by_request(c, request);
        } else if (!strcmp(what, "signal")) {
                signal_by_request(c, request);
        } else {
                refuse_run_request(c, "an unknown request");
        }
}

static void on_client_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *buf)
{
        struct run_client *c = h->data;

        *buf = uv_buf_init(c->line + c->len, (unsigned)(sizeof(c->line) - c->len));
}

/* Takes whole lines. A line longer than the buffer is no request of ours. */
static void on_client_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf UNUSED)
{
        struct run_client *c = stream->data;
        char *end;

        if (n < 0) {
                drop_run_client(c);
                return;
        }
        c->len += (size_t)n;
        while ((end = memchr(c->line, '\n', c->len)) && !uv_is_closing((uv_handle_t *)&c->pipe)) {
                size_t used = (size_t)(end - c->line) + 1;
                json_t *request = json_loadb(c->line, used, 0, NULL);

                memmove(c->line, c->line + used, c->len -= used);
                c->spoke = true;
                obey_request(c, request);
                json_decref(request);
        }
        if (c->len == sizeof(c->line))
                drop_run_client(c);
}

/* Whether no byte of a request has come. */
static bool is_silent_client(const struct run_client *c)
{
        uv_os_fd_t fd;

        return !c->spoke && uv_fileno((const uv_handle_t *)&c->pipe, &fd) == 0 && !fd_unread(fd);
}

/* Makes room for the newest client: drops the oldest client without a request, or else the
 * newest. */
static void drop_run_surplus(struct run_socket *s)
{
        struct run_client *drop = s->clients;

        for (struct run_client *c = s->clients->next; c; c = c->next)
                if (is_silent_client(c))
                        drop = c;
        /* All older clients have requests: the newest goes, and its command
         * tells that the run is busy. */
        drop_run_client(drop);
}

/* Whether the client has the user's uid. Sets its process number. */
static bool is_own_peer(struct run_client *c)
{
        struct ucred peer;
        socklen_t len = sizeof(peer);
        uv_os_fd_t fd;

        if (uv_fileno((const uv_handle_t *)&c->pipe, &fd) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
                return false;
        c->pid = peer.pid;
        return peer.uid == geteuid();
}

/* A client, of the same user only. The handle does not keep the loop alive, so clients do not delay
 * the end of a run. */
static void on_connection(uv_stream_t *listener, int status)
{
        struct run_socket *s = listener->data;
        struct run_client *c;

        if (status < 0)
                return;
        c = xcalloc(1, sizeof(*c));
        c->server = s;
        c->pipe.data = c;
        uv_pipe_init(listener->loop, &c->pipe, 0);
        uv_unref((uv_handle_t *)&c->pipe);
        s->open++;
        s->n_clients++;
        c->next = s->clients;
        s->clients = c;
        if (uv_accept(listener, (uv_stream_t *)&c->pipe) < 0 || !is_own_peer(c) ||
            uv_read_start((uv_stream_t *)&c->pipe, on_client_alloc, on_client_read) < 0)
                drop_run_client(c);
        else if (s->n_clients > CLIENTS_MAX)
                drop_run_surplus(s);
}

static void on_listener_closed(uv_handle_t *h)
{
        unref_run_socket(h->data);
}

struct run_socket *run_socket_open(uv_loop_t *loop, const char *path, struct run_socket_ops ops,
                                   void *ctx, struct error *err)
{
        struct run_socket *s = xcalloc(1, sizeof(*s));
        int r;

        *s = (struct run_socket){ .ops = ops, .ctx = ctx, .open = 1 };
        s->listener.data = s;
        uv_pipe_init(loop, &s->listener, 0);
        uv_unref((uv_handle_t *)&s->listener);
        r = uv_pipe_bind(&s->listener, path);
        if (r == 0 && chmod(path, 0600) < 0)
                r = -errno;
        if (r == 0)
                r = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
        if (r == 0) {
                snprintf(abandoned, sizeof(abandoned), "%s", path);
                return s;
        }
        err_set(err, -r, "cannot listen at %s: %s", path, strerror(-r));
        uv_close((uv_handle_t *)&s->listener, on_listener_closed);
        return NULL;
}

void run_socket_tell_end(struct run_socket *s, int code, const char *verdict,
                         const char *incomplete)
{
        struct run_client *next;

        for (struct run_client *c = s ? s->clients : NULL; c; c = next) {
                next = c->next;
                if (c->waits || c->asks || c->looks)
                        answer_client(c, json_pack("{s:i, s:o, s:o*}", "code", code, "verdict",
                                                   json_text(verdict), "incomplete",
                                                   incomplete ? json_text(incomplete) : NULL));
        }
}

void run_socket_tell_why(struct run_socket *s, const json_t *answer, bool last)
{
        struct run_client *next;

        for (struct run_client *c = s ? s->clients : NULL; c; c = next) {
                next = c->next;
                if (!c->asks)
                        continue;
                /* The client stays for the next part of the answer: stacks come later than the
                 * first finding. */
                c->asks = !last;
                answer_client(c, json_incref((json_t *)answer));
        }
}

void run_socket_tell_top(struct run_socket *s, const char *line)
{
        struct run_client *next;

        for (struct run_client *c = s ? s->clients : NULL; c; c = next) {
                next = c->next;
                /* A slow reader misses frames in place of getting old ones. */
                if (c->looks && !uv_stream_get_write_queue_size((uv_stream_t *)&c->pipe))
                        send_run_line(c, xstrdup(line));
        }
}

void run_socket_close(struct run_socket *s)
{
        while (s && s->clients)
                drop_run_client(s->clients);
        if (!s)
                return;
        run_socket_abandon();
        uv_close((uv_handle_t *)&s->listener, on_listener_closed);
}

void run_socket_abandon(void)
{
        char *end = strrchr(abandoned, '/');

        if (!end)
                return;
        unlink(abandoned);
        *end = '\0';
        rmdir(abandoned); /* not while another run is there */
        *abandoned = '\0';
}
