/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens links with a transport and copies between them and stdin and stdout: what the tests of the
 * transports look through.
 *
 *   link_probe [option...] ssh|command|local [user@]host[:port]...
 *
 *   -c COMMAND   remote command (the program for "local")
 *   -F FILE      ssh config      -i FILE   identity        -J JUMP   jump hosts
 *   -S COMMAND   ssh command     -t MS     connect timeout -f N      fan-out window
 *   -a           accept new host keys
 *   -s N         read at most N bytes every 10 ms (a slow reader)
 *   -x EVENT     close the link at this phase ("connecting", ... "open")
 *
 * Prints to stderr, one line each: "HOST phase NAME", "HOST opened", "HOST noise TEXT", "HOST
 * stored KEY", "HOST failed PHASE CAUSE: FACT (DETAIL)" and the evidence, each line behind "| ".
 * "HOST ended" likewise. Ends with 0 when all links opened and ended with exit code 0, else 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/fd.h"
#include "head/nodes/transport.h"

struct probe {
        struct link *link;
        char *name, *host, *user;
        int port, fd;
        uv_poll_t poll;
        uv_timer_t timer; /* paces a slow reader */
        bool polling, over, eof, input_over;
        struct buf to_link;
};

static const char *const phases[LINK_PHASES] = { "resolving", "connecting", "kex", "hostkey",
                                                 "auth",      "exec",       "open" };
static const char *const causes[LINK_CAUSES] = {
        "no-name",     "timed-out",   "refused",     "unreachable",   "dropped",
        "key-unknown", "key-changed", "key-revoked", "key-unchecked", "denied",
        "spawn",       "ended",       "parent",      "config",        "other",
};

static uv_loop_t *loop;
static struct transport *transport;
static struct probe *probes;
static int probes_n, left, status, slow, close_phase = -1;

static void on_poll(uv_poll_t *poll, int error, int events);

static void arm_poll(struct probe *p)
{
        int events = 0;

        if (!p->polling)
                return;
        if (!p->eof && !uv_is_active((uv_handle_t *)&p->timer))
                events |= UV_READABLE;
        if (!p->input_over || buf_len(&p->to_link))
                events |= UV_WRITABLE;
        if (events)
                uv_poll_start(&p->poll, events, on_poll);
        else
                uv_poll_stop(&p->poll);
}

static void finish_probe(struct probe *p)
{
        if (p->over)
                return;
        p->over = true;
        link_close(p->link);
        p->link = NULL;
        if (--left == 0) {
                transport_destroy(transport);
                transport = NULL;
        }
}

static void stop_polling(struct probe *p)
{
        if (!p->polling)
                return;
        p->polling = false;
        uv_close((uv_handle_t *)&p->poll, NULL);
        uv_close((uv_handle_t *)&p->timer, NULL);
        p->fd = fd_close(p->fd);
}

static void on_pace_timer(uv_timer_t *timer)
{
        arm_poll(timer->data);
}

static void read_link(struct probe *p)
{
        char piece[65536];
        size_t size = slow ? MIN((size_t)slow, sizeof(piece)) : sizeof(piece);
        ssize_t n = read(p->fd, piece, size);

        if (n > 0) {
                fd_write_all(1, piece, (size_t)n);
                if (slow)
                        uv_timer_start(&p->timer, on_pace_timer, 10, 0);
        } else if (n == 0 || errno != EAGAIN) {
                p->eof = true;
        }
}

static void write_link(struct probe *p)
{
        ssize_t n;

        if (!p->input_over && buf_len(&p->to_link) == 0) {
                n = read(0, buf_reserve(&p->to_link, 65536), 65536);
                if (n > 0)
                        buf_advance(&p->to_link, (size_t)n);
                else
                        p->input_over = true;
        }
        n = buf_len(&p->to_link)
                    ? send(p->fd, buf_data(&p->to_link), buf_len(&p->to_link), MSG_NOSIGNAL)
                    : 0;
        if (n > 0)
                buf_consume(&p->to_link, (size_t)n);
        else if (n < 0 && errno != EAGAIN) {
                p->input_over = true;
                buf_clear(&p->to_link);
        }
        if (p->input_over && !buf_len(&p->to_link))
                shutdown(p->fd, SHUT_WR);
}

static void on_poll(uv_poll_t *poll, int error, int events)
{
        struct probe *p = poll->data;

        if (error < 0)
                p->eof = p->input_over = true;
        if (events & UV_READABLE)
                read_link(p);
        if (events & UV_WRITABLE)
                write_link(p);
        arm_poll(p);
}

static void on_opened(void *ctx, int fd)
{
        struct probe *p = ctx;

        fprintf(stderr, "%s opened\n", p->name);
        p->fd = fd;
        p->polling = true;
        p->poll.data = p->timer.data = p;
        uv_poll_init(loop, &p->poll, fd);
        uv_timer_init(loop, &p->timer);
        arm_poll(p);
        if (close_phase == LINK_OPEN) {
                stop_polling(p);
                finish_probe(p);
        }
}

static void print_failure(const struct probe *p, const char *what, const struct link_failure *why)
{
        char text[sizeof(why->evidence)], *at = text, *line;

        fprintf(stderr, "%s %s %s %s: %s (%s) port %d user %s\n", p->name, what, phases[why->phase],
                causes[why->cause], why->fact, why->detail, why->port, why->user);
        snprintf(text, sizeof(text), "%s", why->evidence);
        while ((line = strsep(&at, "\n")))
                if (*line)
                        fprintf(stderr, "| %s\n", line);
        if (why->help[0])
                fprintf(stderr, "= %s\n", why->help);
}

static void on_failed(void *ctx, const struct link_failure *why)
{
        print_failure(ctx, "failed", why);
        status = 1;
        finish_probe(ctx);
}

/* What is still in the pair comes before the end. */
static void on_ended(void *ctx, const struct link_failure *why)
{
        struct probe *p = ctx;

        slow = 0;
        fcntl(p->fd, F_SETFL, 0);
        while (p->polling && !p->eof)
                read_link(p);
        print_failure(p, "ended", why);
        if (!strstr(why->fact, "exit code 0"))
                status = 1;
        stop_polling(p);
        finish_probe(p);
}

static void on_noise(void *ctx, const char *text, size_t len)
{
        const struct probe *p = ctx;

        fprintf(stderr, "%s noise %.*s\n", p->name, (int)len, text);
}

static void on_notice(void *ctx, enum link_notice kind, const char *text)
{
        const struct probe *p = ctx;

        if (kind == NOTICE_NEW_KEY)
                fprintf(stderr, "%s stored %s\n", p->name, text);
}

static void on_phase(void *ctx, enum link_phase now)
{
        struct probe *p = ctx;

        fprintf(stderr, "%s phase %s\n", p->name, phases[now]);
        if ((int)now == close_phase)
                finish_probe(p);
}

static const struct link_callbacks callbacks = {
        .opened = on_opened,
        .failed = on_failed,
        .ended = on_ended,
        .noise = on_noise,
        .notice = on_notice,
        .phase = on_phase,
};

static void split_target(struct probe *p, char *text)
{
        char *at = strrchr(text, '@'), *colon;

        p->name = strdup(text);
        if (at) {
                *at = '\0';
                p->user = text;
                text = at + 1;
        }
        colon = strrchr(text, ':');
        if (colon) {
                *colon = '\0';
                p->port = atoi(colon + 1);
        }
        p->host = text;
}

static void start_probes(char **targets, int n)
{
        struct error err = { 0 };

        probes = calloc((size_t)n, sizeof(*probes));
        probes_n = left = n;
        for (int i = 0; i < n; i++) {
                struct probe *p = &probes[i];
                struct link_target to;

                split_target(p, targets[i]);
                p->fd = -1;
                to = (struct link_target){ .host = p->host, .user = p->user, .port = p->port };
                p->link = link_open(transport, &to, &callbacks, p, &err);
                if (!p->link) {
                        fprintf(stderr, "link_probe: %s\n", err.text);
                        exit(2);
                }
        }
}

static int phase_of(const char *name)
{
        for (int i = 0; i < LINK_PHASES; i++)
                if (strcmp(phases[i], name) == 0)
                        return i;
        return -1;
}

static void parse_options(int argc, char **argv, struct ssh_options *o, struct strv *identities)
{
        int c;

        while ((c = getopt(argc, argv, "+c:F:i:J:S:t:f:as:x:")) != -1) {
                if (c == 'c')
                        o->command = optarg;
                else if (c == 'F')
                        o->config_file = optarg;
                else if (c == 'i')
                        strv_push(identities, optarg);
                else if (c == 'J')
                        o->jump = optarg;
                else if (c == 'S')
                        o->ssh_command = optarg;
                else if (c == 't')
                        o->connect_timeout_ms = atoi(optarg);
                else if (c == 'f')
                        o->fanout = atoi(optarg);
                else if (c == 'a')
                        o->accept_new = true;
                else if (c == 's')
                        slow = atoi(optarg);
                else if (c == 'x')
                        close_phase = phase_of(optarg);
                else
                        exit(2);
        }
}

int main(int argc, char **argv)
{
        struct strv identities = STRV_INIT;
        struct ssh_options o = { .command = "true", .connect_timeout_ms = 10000 };
        struct error err = { 0 };

        parse_options(argc, argv, &o, &identities);
        o.identities = &identities;
        o.hosts = (size_t)(argc - optind - 1);
        if (argc - optind < 2)
                return 2;
        loop = uv_default_loop();
        if (strcmp(argv[optind], "local") == 0)
                transport = transport_local_create(loop, o.command, NULL);
        else if (strcmp(argv[optind], "command") == 0)
                transport = transport_command_create(loop, &o, &err);
        else
                transport = transport_ssh_create(loop, &o, &err);
        if (!transport) {
                fprintf(stderr, "link_probe: %s\n", err.text);
                return 2;
        }
        start_probes(argv + optind + 1, argc - optind - 1);
        uv_run(loop, UV_RUN_DEFAULT);
        for (int i = 0; i < probes_n; i++) {
                buf_finish(&probes[i].to_link);
                free(probes[i].name);
        }
        free(probes);
        strv_finish(&identities);
        return uv_loop_close(loop) == 0 ? status : 3;
}
