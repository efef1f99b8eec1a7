/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every hop has a libssh session with an event of its own: sessions that share one fail together.
 * libssh is called from steps only, one step function per state, and never from its callbacks; a
 * step runs when the socket, the timer or the local side of a stream has news.
 */
#include "head/ssh_hop_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/strv.h"
#include "head/ssh_trust.h"

/* Until then a connection attempt counts for the fan-out window. */
#define SLOW_MS 500
/* The dial reports its own time-out, with the address. */
#define DIAL_GRACE_MS 1000
/* Pauses after a drop during the handshake: sshd's MaxStartups. */
#define RETRY_MS     60
#define RETRY_MAX_MS 1000
#define PUMP_ROUNDS  8

enum step { STEP_AGAIN, STEP_NEXT };

static void hop_dial(struct ssh_hop *h);

static int hop_timeout(const struct ssh_hop *h)
{
        int ms = ssh_site_options(h->hops->site)->connect_timeout_ms;

        return ms > 0 ? ms : 10000;
}

/* ---- ends ---- */

static void free_memory(uv_handle_t *handle)
{
        free(handle);
}

static void release_proxy(struct ssh_hop *h)
{
        if (!h->proxy)
                return;
        uv_process_kill(h->proxy, SIGTERM);
        uv_close((uv_handle_t *)h->proxy, free_memory);
        h->proxy = NULL;
}

/* libssh closes the descriptor that it was given after an error, and leaves it open otherwise. It
 * never tells which, and its number may be another thread's by now: compare. */
static void take_back(struct ssh_hop *h)
{
        struct stat ours, theirs;

        if (h->lent >= 0 && fstat(h->fd, &ours) == 0 && fstat(h->lent, &theirs) == 0 &&
            ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev)
                fd_close(h->lent);
        h->lent = -1;
}

/* The route's server hears how it went. */
static void hop_leave(struct ssh_hop *h, enum ssh_server_answer answer)
{
        if (h->inside)
                ssh_server_leave(h->route->server, answer, uv_now(h->hops->loop));
        h->inside = false;
}

/* Back to before the dial. */
static void release_session(struct ssh_hop *h)
{
        hop_leave(h, SERVER_SILENT);
        if (h->exec)
                ssh_stream_close(h->exec);
        h->exec = NULL;
        if (h->event) {
                ssh_event_remove_session(h->event, h->session);
                ssh_event_free(h->event);
                h->event = NULL;
        }
        if (h->session) {
                ssh_disconnect(h->session);
                ssh_free(h->session);
                h->session = NULL;
        }
        if (h->poll)
                uv_close((uv_handle_t *)h->poll, free_memory);
        h->poll = NULL;
        ssh_dial_cancel(h->dial);
        h->dial = NULL;
        take_back(h);
        h->fd = fd_close(h->fd);
        release_proxy(h);
        jump_hang_up(h);
}

static void hop_stop(struct ssh_hop *h)
{
        h->state = HOP_CLOSED;
        uv_timer_stop(&h->timer);
        jump_free_forwards(h);
        release_session(h);
}

static void say_where(const struct ssh_hop *h, struct link_failure *why)
{
        why->port = h->route->host.port;
        snprintf(why->user, sizeof(why->user), "%s", h->route->host.user);
}

/* Ends the hop with failed(), or ended() once it was opened. */
void hop_fail(struct ssh_hop *h, struct link_failure *why)
{
        if (h->state == HOP_CLOSED)
                return;
        say_where(h, why);
        if (h->jump_name) {
                h->state = HOP_CLOSED;
                snprintf(h->refused, sizeof(h->refused), "%.199s", why->fact);
                h->refused_cause = why->cause;
                jump_fail_waiting(h, why);
        }
        hop_stop(h);
        if (h->jump_name)
                return;
        if (h->opened)
                h->ops->ended(h->ctx, why);
        else
                h->ops->failed(h->ctx, why);
}

void hop_failf(struct ssh_hop *h, enum link_phase phase, enum link_cause cause, const char *detail,
               const char *fmt, ...)
{
        struct link_failure why = { .phase = phase, .cause = cause };
        va_list args;

        va_start(args, fmt);
        vsnprintf(why.fact, sizeof(why.fact), fmt, args);
        va_end(args);
        snprintf(why.detail, sizeof(why.detail), "%s", detail);
        snprintf(why.evidence, sizeof(why.evidence), "%.*s", (int)h->said_len, h->said);
        hop_fail(h, &why);
}

static void fail_socket(struct ssh_hop *h, int error, const char *address)
{
        int port = h->route->host.port;
        double s = hop_timeout(h) / 1000.0;

        if (error == ETIMEDOUT)
                hop_failf(h, LINK_CONNECTING, LINK_TIMED_OUT, address,
                          "no answer on port %d in %gs", port, s);
        else if (error == ECONNREFUSED)
                hop_failf(h, LINK_CONNECTING, LINK_REFUSED, address,
                          "connection refused on port %d", port);
        else if (error == EHOSTUNREACH || error == ENETUNREACH || error == EADDRNOTAVAIL)
                hop_failf(h, LINK_CONNECTING, LINK_UNREACHABLE, address, "no route to host");
        else
                hop_failf(h, LINK_CONNECTING, LINK_OTHER, address, "cannot connect to port %d: %s",
                          port, strerror(error));
}

/* ---- time ---- */

static void timer_fired(uv_timer_t *timer);

static void enter(struct ssh_hop *h, enum hop_state state, enum link_phase phase, int ms)
{
        if (h->ops->phase && phase != h->phase && state != HOP_UP)
                h->ops->phase(h->ctx, phase);
        h->phase = phase;
        h->state = state;
        if (ms)
                uv_timer_start(&h->timer, timer_fired, (uint64_t)ms, 0);
        else
                uv_timer_stop(&h->timer);
}

static void timed_out(struct ssh_hop *h)
{
        int port = h->route->host.port;
        double s = hop_timeout(h) / 1000.0;

        switch (h->state) {
        case HOP_TCP:
                fail_socket(h, ETIMEDOUT, h->route->via ? "over the jump host" : "");
                break;
        case HOP_BANNER:
        case HOP_CONNECT:
                hop_failf(h, LINK_KEX, LINK_TIMED_OUT, "", "no ssh handshake on port %d in %gs",
                          port, s);
                break;
        case HOP_AUTH:
                hop_failf(h, LINK_AUTH, LINK_TIMED_OUT, "", "no answer to the ssh login in %gs",
                          2 * s);
                break;
        default:
                hop_failf(h, LINK_EXEC, LINK_TIMED_OUT, "",
                          "the remote command was not started in %gs", s);
        }
}

static void tell_slow(struct ssh_hop *h)
{
        if (!h->slow_told && h->ops->slow)
                h->ops->slow(h->ctx);
        h->slow_told = true;
}

static void timer_fired(uv_timer_t *timer)
{
        struct ssh_hop *h = timer->data;

        if (h->state == HOP_PAUSE) {
                hop_dial(h);
        } else if (h->state == HOP_TCP && !h->slow_told) {
                tell_slow(h);
                uv_timer_start(timer, timer_fired, (uint64_t)hop_timeout(h) + DIAL_GRACE_MS, 0);
        } else {
                timed_out(h);
        }
}

/* ---- dialling ---- */

static void dialled(void *ctx, int fd, int error, const char *address)
{
        struct ssh_hop *h = ctx;

        h->dial = NULL;
        if (fd < 0)
                fail_socket(h, error, address);
        else
                hop_connected(h, fd, true);
}

static void proxy_exited(uv_process_t *proxy UNUSED, int64_t status UNUSED, int signal UNUSED)
{
        /* The socket ends with it, which says more. */
}

static void dial_proxy(struct ssh_hop *h)
{
        char shell[] = "/bin/sh", flag[] = "-c";
        char *command = xasprintf("exec %s", h->route->host.proxy_command);
        char *argv[] = { shell, flag, command, NULL };
        int fds[2], r = fd_pair(fds);
        uv_stdio_container_t stdio[3] = {
                { .flags = UV_INHERIT_FD, .data.fd = r == 0 ? fds[1] : -1 },
                { .flags = UV_INHERIT_FD, .data.fd = r == 0 ? fds[1] : -1 },
                { .flags = UV_INHERIT_FD, .data.fd = 2 },
        };
        uv_process_options_t options = {
                .file = shell,
                .args = argv,
                .flags = UV_PROCESS_DETACHED,
                .stdio_count = 3,
                .stdio = stdio,
                .exit_cb = proxy_exited,
        };

        if (r == 0) {
                h->proxy = xcalloc(1, sizeof(*h->proxy));
                r = uv_spawn(h->hops->loop, h->proxy, &options);
                fd_close(fds[1]);
                if (r < 0)
                        fd_close(fds[0]);
        }
        free(command);
        if (r < 0) {
                hop_failf(h, LINK_CONNECTING, LINK_SPAWN, "", "cannot start the ProxyCommand: %s",
                          strerror(-r));
                return;
        }
        fd_set_nonblock(fds[0]);
        hop_connected(h, fds[0], false);
}

static bool turned_away(const struct ssh_hop *h)
{
        return strstr(h->greeting, "Not allowed at this time") != NULL;
}

static void fail_dropped(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_KEX, .cause = LINK_DROPPED };
        int port = h->route->host.port;

        if (turned_away(h)) {
                snprintf(why.fact, sizeof(why.fact),
                         "the server on port %d takes no connections from here for now", port);
                snprintf(why.help, sizeof(why.help), "%s",
                         "failed or unfinished logins came from this machine, and sshd "
                         "(PerSourcePenalties) waits some seconds to minutes for each: try later");
        } else {
                snprintf(why.fact, sizeof(why.fact),
                         "the server closes the connection during the handshake on port %d", port);
                if (strstr(h->greeting, "MaxStartups"))
                        snprintf(why.help, sizeof(why.help), "%s",
                                 "others log in there too, more than its MaxStartups allows: try "
                                 "a smaller --fanout, or ask for a larger MaxStartups");
        }
        if (*h->greeting)
                snprintf(why.evidence, sizeof(why.evidence), "it says: %s\n", h->greeting);
        hop_fail(h, &why);
}

/* Until the server was kind to nobody for so long. */
static bool patient(const struct ssh_hop *h)
{
        uint64_t since = MAX(h->begun, ssh_server_last_good(h->route->server));

        return uv_now(h->hops->loop) < since + 2 * (uint64_t)hop_timeout(h);
}

/* Others may use the time. */
static void hop_pause(struct ssh_hop *h, int ms)
{
        tell_slow(h);
        h->state = HOP_PAUSE;
        uv_timer_start(&h->timer, timer_fired, (uint64_t)ms, 0);
}

/* True when it is this hop's turn to dial. */
static bool hop_may_dial(struct ssh_hop *h)
{
        struct ssh_server *server = h->route->server;
        uint64_t now = uv_now(h->hops->loop);
        struct link_failure why;
        int wait;

        if (ssh_server_denied(server, h->route->host.user, now, &why)) {
                hop_fail(h, &why);
                return false;
        }
        wait = ssh_server_enter(server, now);
        if (wait && patient(h))
                hop_pause(h, wait);
        else if (wait)
                fail_dropped(h);
        h->inside = !wait;
        return h->inside;
}

static void hop_dial(struct ssh_hop *h)
{
        if (!hop_may_dial(h))
                return;
        enter(h, HOP_TCP, LINK_CONNECTING, h->slow_told ? hop_timeout(h) + DIAL_GRACE_MS : SLOW_MS);
        if (h->via)
                jump_dial(h);
        else if (h->route->host.proxy_command)
                dial_proxy(h);
        else
                h->dial = ssh_dial_start(h->hops->loop, h->route->addresses, hop_timeout(h),
                                         dialled, h);
}

/* ---- handshake ---- */

static void socket_ready(uv_poll_t *poll, int status, int events UNUSED)
{
        struct ssh_hop *h = poll->data;

        /* libssh finds the error by itself, perhaps only with its next read; libuv has stopped. */
        if (status < 0)
                h->armed = 0;
        hop_run(h);
}

static void hop_arm(struct ssh_hop *h)
{
        int events = UV_READABLE;

        if (!h->poll || !h->session)
                return;
        /* Not ssh_get_poll_flags(): libssh would hear of room after every packet it has sent. */
        if (ssh_get_status(h->session) & SSH_WRITE_PENDING)
                events |= UV_WRITABLE;
        if (h->tcp && h->state < HOP_UP)
                ssh_dial_quick_ack(h->fd);
        if (events != h->armed)
                uv_poll_start(h->poll, events, socket_ready);
        h->armed = events;
}

void hop_connected(struct ssh_hop *h, int fd, bool tcp)
{
        struct error err = { 0 };

        h->fd = fd;
        h->lent = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        h->tcp = tcp;
        h->armed = 0;
        if (h->lent < 0)
                err_set(&err, errno, "no descriptor for the connection: %s", strerror(errno));
        else
                h->session = ssh_trust_session(h->route, h->lent, &err);
        if (!h->session) {
                hop_failf(h, LINK_KEX, LINK_OTHER, "", "%s", err.text);
                return;
        }
        h->poll = xcalloc(1, sizeof(*h->poll));
        uv_poll_init(h->hops->loop, h->poll, fd);
        h->poll->data = h;
        h->greeting[0] = '\0';
        enter(h, HOP_BANNER, LINK_KEX, hop_timeout(h));
        hop_run(h);
}

/* The server closed before it knew anything about us: it is busy, so come back a little later. */
static void hop_retry(struct ssh_hop *h)
{
        unsigned ms = MIN(RETRY_MS << MIN(h->attempts, 8u), RETRY_MAX_MS);

        h->attempts++;
        hop_leave(h, turned_away(h) ? SERVER_TURNED_AWAY : SERVER_DROPPED);
        if (!patient(h)) {
                fail_dropped(h);
                return;
        }
        release_session(h);
        hop_pause(h, (int)(ms / 2 + randombytes_uniform(ms)));
}

static void fail_handshake(struct ssh_hop *h)
{
        int port = h->route->host.port;
        char text[160];

        snprintf(text, sizeof(text), "%s", ssh_get_error(h->session));
        if (strstr(text, "kex error") || strstr(text, "no match"))
                hop_failf(h, LINK_KEX, LINK_OTHER, "", "ssh handshake on port %d: %s", port, text);
        else if (*h->greeting && !turned_away(h) && !strstr(h->greeting, "MaxStartups"))
                hop_failf(h, LINK_KEX, LINK_OTHER, "", "no ssh server on port %d: it says '%s'",
                          port, h->greeting);
        else
                hop_retry(h);
}

/* sshd says in plain words why it takes no connection; libssh keeps that to itself. */
static void read_greeting(struct ssh_hop *h)
{
        char text[sizeof(h->greeting)];
        ssize_t n = recv(h->fd, text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT);

        if (n <= 0)
                return;
        text[n] = '\0';
        if (strncmp(text, "SSH-", MIN((size_t)n, 4)) != 0) {
                text[strcspn(text, "\r\n")] = '\0';
                snprintf(h->greeting, sizeof(h->greeting), "%s", text);
        }
        enter(h, HOP_CONNECT, LINK_KEX, hop_timeout(h));
}

static enum step step_connect(struct ssh_hop *h)
{
        int r;

        if (h->state == HOP_BANNER)
                read_greeting(h);
        r = ssh_connect(h->session);
        if (r == SSH_AGAIN)
                return STEP_AGAIN;
        if (r != SSH_OK) {
                fail_handshake(h);
                return STEP_AGAIN;
        }
        /* libssh made the socket blocking when it was connected. */
        fd_set_nonblock(h->fd);
        enter(h, HOP_HOSTKEY, LINK_HOSTKEY, 0);
        return STEP_NEXT;
}

static enum step step_hostkey(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_HOSTKEY };

        if (ssh_trust_check(h->hops->site, h->route, h->session, &why) < 0) {
                hop_fail(h, &why);
                return STEP_AGAIN;
        }
        h->auth = (struct ssh_auth){ .route = h->route };
        enter(h, HOP_AUTH, LINK_AUTH, 2 * hop_timeout(h));
        return STEP_NEXT;
}

static void exec_opened(void *ctx, int fd)
{
        struct ssh_hop *h = ctx;

        h->opened = true;
        enter(h, HOP_UP, LINK_OPEN, 0);
        h->ops->opened(h->ctx, fd);
}

static void exec_refused(void *ctx, const char *why)
{
        struct ssh_hop *h = ctx;

        snprintf(h->refused, sizeof(h->refused), "%s", why);
}

static void exec_noise(void *ctx, const char *text, size_t len)
{
        struct ssh_hop *h = ctx;
        size_t keep = MIN(len, sizeof(h->said)), drop;

        if (h->said_len + keep > sizeof(h->said)) {
                drop = h->said_len + keep - sizeof(h->said);
                memmove(h->said, h->said + drop, h->said_len - drop);
                h->said_len -= drop;
        }
        memcpy(h->said + h->said_len, text + len - keep, keep);
        h->said_len += keep;
        h->ops->noise(h->ctx, text, len);
}

static void exec_ready(void *ctx)
{
        hop_run(ctx);
}

static const struct ssh_stream_ops exec_ops = {
        .opened = exec_opened,
        .refused = exec_refused,
        .noise = exec_noise,
        .ready = exec_ready,
};

static enum step step_logged_in(struct ssh_hop *h)
{
        h->event = ssh_event_new();
        if (!h->event || ssh_event_add_session(h->event, h->session) != SSH_OK) {
                hop_failf(h, LINK_EXEC, LINK_OTHER, "", "libssh: out of memory");
                return STEP_AGAIN;
        }
        if (h->jump_name) {
                enter(h, HOP_UP, LINK_OPEN, 0);
                return STEP_NEXT;
        }
        h->exec = ssh_stream_create(h->hops->loop, h->session, &exec_ops, h,
                                    ssh_site_options(h->hops->site)->command, NULL, 0);
        if (!h->exec) {
                hop_failf(h, LINK_EXEC, LINK_OTHER, "", "no descriptor for the session: %s",
                          strerror(errno));
                return STEP_AGAIN;
        }
        enter(h, HOP_EXEC, LINK_EXEC, hop_timeout(h));
        return STEP_NEXT;
}

static enum step step_auth(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_AUTH };
        int r = ssh_auth_step(&h->auth, h->session);

        if (r == SSH_AUTH_AGAIN)
                return STEP_AGAIN;
        hop_leave(h, SERVER_LET_IN);
        if (r == SSH_AUTH_SUCCESS)
                return step_logged_in(h);
        ssh_auth_explain(&h->auth, &why);
        ssh_server_deny(h->route->server, h->route->host.user, &why, uv_now(h->hops->loop));
        hop_fail(h, &why);
        return STEP_AGAIN;
}

/* ---- copying ---- */

static void exec_ended(struct ssh_hop *h)
{
        int status;
        const char *signal;

        if (!h->opened)
                hop_failf(h, LINK_EXEC, LINK_OTHER, "", "the server refuses the command: %s",
                          h->refused);
        else if (!ssh_stream_exited(h->exec, &status, &signal))
                hop_failf(h, LINK_OPEN, LINK_ENDED, "", "the remote session was closed");
        else if (*signal)
                hop_failf(h, LINK_OPEN, LINK_ENDED, "", "the remote command was killed by SIG%s",
                          signal);
        else
                hop_failf(h, LINK_OPEN, LINK_ENDED, "",
                          "the remote command ended with exit code %d", status);
}

static void lost(struct ssh_hop *h)
{
        const char *text = ssh_get_error(h->session);

        if (strncmp(text, "Socket error: ", 14) == 0)
                text += 14;
        hop_failf(h, h->opened ? LINK_OPEN : LINK_EXEC, LINK_DROPPED, "",
                  "the connection was lost%s%s", *text ? ": " : "", text);
}

static enum step step_up(struct ssh_hop *h)
{
        bool active = true;

        if (ssh_event_dopoll(h->event, 0) == SSH_ERROR) {
                /* Bytes that came before the end are still delivered as far as possible. */
                if (h->exec)
                        ssh_stream_pump(h->exec);
                lost(h);
                return STEP_AGAIN;
        }
        for (int i = 0; active && i < PUMP_ROUNDS; i++) {
                active = false;
                if ((h->exec && ssh_stream_pump(h->exec) < 0) || jump_pump(h, &active) < 0) {
                        lost(h);
                        return STEP_AGAIN;
                }
                if (h->exec && ssh_stream_done(h->exec)) {
                        exec_ended(h);
                        return STEP_AGAIN;
                }
                active = active || (h->exec && ssh_stream_active(h->exec));
        }
        return STEP_AGAIN;
}

static enum step step_wait(struct ssh_hop *h UNUSED)
{
        return STEP_AGAIN;
}

static enum step (*const steps[HOP_STATES])(struct ssh_hop *) = {
        [HOP_TCP] = step_wait,        [HOP_PAUSE] = step_wait,      [HOP_BANNER] = step_connect,
        [HOP_CONNECT] = step_connect, [HOP_HOSTKEY] = step_hostkey, [HOP_AUTH] = step_auth,
        [HOP_EXEC] = step_up,         [HOP_UP] = step_up,           [HOP_CLOSED] = step_wait,
};

void hop_run(struct ssh_hop *h)
{
        if (h->running)
                return;
        h->running = true;
        while (steps[h->state](h) == STEP_NEXT)
                ;
        h->running = false;
        hop_arm(h);
}

/* ---- life ---- */

struct ssh_hop *hop_create(struct ssh_hops *hops, const struct ssh_route *route,
                           const struct ssh_hop_ops *ops, void *ctx)
{
        struct ssh_hop *h = xcalloc(1, sizeof(*h));

        h->hops = hops;
        h->route = route;
        h->ops = ops;
        h->ctx = ctx;
        h->fd = h->lent = -1;
        h->timer.data = h;
        uv_timer_init(hops->loop, &h->timer);
        return h;
}

void hop_begin(struct ssh_hop *h)
{
        h->begun = uv_now(h->hops->loop);
        if (h->route->via)
                h->via = jump_acquire(h);
        hop_dial(h);
}

struct ssh_hop *ssh_hop_open(struct ssh_hops *hops, const struct ssh_route *route,
                             const struct ssh_hop_ops *ops, void *ctx)
{
        struct ssh_hop *h = hop_create(hops, route, ops, ctx);

        hop_begin(h);
        return h;
}

static void hop_closed(uv_handle_t *handle)
{
        struct ssh_hop *h = handle->data;
        const struct ssh_hop_ops *ops = h->ops;
        void *ctx = h->ctx;

        free(h->jump_name);
        free(h);
        if (ops->closed)
                ops->closed(ctx);
}

void ssh_hop_close(struct ssh_hop *h)
{
        hop_stop(h);
        jump_release(h);
        uv_close((uv_handle_t *)&h->timer, hop_closed);
}
