/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every hop has a libssh session with an event of its own: sessions that share one fail together.
 * libssh is called from steps only, one step function per state, and never from its callbacks; a
 * step runs when the socket, the timer or the local side of a stream has news.
 */
#include "head/ssh/ssh_session_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/strv.h"
#include "head/ssh/ssh_hostkey.h"

#define PUMP_ROUNDS 8

enum step { STEP_AGAIN, STEP_NEXT };

int hop_timeout(const struct ssh_hop *h)
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
void hop_leave(struct ssh_hop *h, enum ssh_server_answer answer)
{
        if (h->inside)
                ssh_server_leave(h->route->server, answer, uv_now(h->hops->loop));
        h->inside = false;
}

/* Back to before the dial. */
void hop_release(struct ssh_hop *h)
{
        hop_leave(h, SERVER_SILENT);
        lend_end(h);
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
        hop_release(h);
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

void hop_fail_socket(struct ssh_hop *h, int error, const char *address)
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

void hop_enter(struct ssh_hop *h, enum hop_state state, enum link_phase phase, int ms)
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
                hop_fail_socket(h, ETIMEDOUT, h->route->via ? "over the jump host" : "");
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

void hop_tell_slow(struct ssh_hop *h)
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
                hop_tell_slow(h);
                uv_timer_start(timer, timer_fired, (uint64_t)hop_timeout(h) + DIAL_GRACE_MS, 0);
        } else {
                timed_out(h);
        }
}

/* Others may use the time. */
void hop_pause(struct ssh_hop *h, int ms)
{
        hop_tell_slow(h);
        h->state = HOP_PAUSE;
        uv_timer_start(&h->timer, timer_fired, (uint64_t)ms, 0);
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
        int events = UV_READABLE, pending;

        if (!h->poll || !h->session)
                return;
        /* The flags are set after every packet that was sent, which a login can do without: it asks
         * and is answered. Of a stream they are the only sign to go on once new keys are there. */
        pending = h->state < HOP_UP ? ssh_get_status(h->session) : ssh_get_poll_flags(h->session);
        if (pending & SSH_WRITE_PENDING)
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
                h->session = ssh_hostkey_session(h->route, h->lent, &err);
        if (!h->session) {
                hop_failf(h, LINK_KEX, LINK_OTHER, "", "%s", err.text);
                return;
        }
        h->poll = xcalloc(1, sizeof(*h->poll));
        uv_poll_init(h->hops->loop, h->poll, fd);
        h->poll->data = h;
        hop_enter(h, HOP_BANNER, LINK_KEX, hop_timeout(h));
        hop_run(h);
}

static enum step step_connect(struct ssh_hop *h)
{
        int r;

        if (h->state == HOP_BANNER)
                hop_read_greeting(h);
        r = ssh_connect(h->session);
        if (r == SSH_AGAIN)
                return STEP_AGAIN;
        if (r != SSH_OK) {
                hop_handshake_failed(h);
                return STEP_AGAIN;
        }
        /* libssh made the socket blocking when it was connected. */
        fd_set_nonblock(h->fd);
        hop_enter(h, HOP_HOSTKEY, LINK_HOSTKEY, 0);
        return STEP_NEXT;
}

/* Tells the owner of the hop; of a jump host that of the first session behind it. */
static void hop_tell_stored(const struct ssh_hop *h, const char *text)
{
        const struct forward *f = h->forwards;

        while (f && !f->inner)
                f = f->next;
        if (h->ops->stored)
                h->ops->stored(h->ctx, text);
        else if (f)
                hop_tell_stored(f->inner, text);
}

static enum step step_hostkey(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_HOSTKEY };
        char stored[600];

        if (ssh_hostkey_check(h->hops->site, h->route, h->session, stored, sizeof(stored), &why) <
            0) {
                hop_fail(h, &why);
                return STEP_AGAIN;
        }
        if (*stored)
                hop_tell_stored(h, stored);
        h->auth = (struct ssh_auth){ .route = h->route };
        hop_enter(h, HOP_AUTH, LINK_AUTH, 2 * hop_timeout(h));
        return STEP_NEXT;
}

static void exec_opened(void *ctx, int fd)
{
        struct ssh_hop *h = ctx;

        h->opened = true;
        hop_enter(h, HOP_UP, LINK_OPEN, 0);
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
                hop_enter(h, HOP_UP, LINK_OPEN, 0);
                return STEP_NEXT;
        }
        h->exec = ssh_stream_create(h->hops->loop, h->session, &exec_ops, h,
                                    ssh_site_options(h->hops->site)->command, NULL, 0);
        if (!h->exec) {
                hop_failf(h, LINK_EXEC, LINK_OTHER, "", "no descriptor for the session: %s",
                          strerror(errno));
                return STEP_AGAIN;
        }
        if (h->lends)
                lend_begin(h);
        hop_enter(h, HOP_EXEC, LINK_EXEC, hop_timeout(h));
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
                if ((h->exec && ssh_stream_pump(h->exec) < 0) || jump_pump(h, &active) < 0 ||
                    lend_pump(h, &active) < 0) {
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

struct ssh_hop *hop_create(struct ssh_hops *hops, const struct ssh_target *route,
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

struct ssh_hop *ssh_hop_open(struct ssh_hops *hops, const struct ssh_target *route, bool lend,
                             const struct ssh_hop_ops *ops, void *ctx)
{
        struct ssh_hop *h = hop_create(hops, route, ops, ctx);

        h->lends = lend;
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
