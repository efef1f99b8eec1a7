/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hop is a state machine: ssh_hop_run() runs the step of the state until a step leaves the state
 * as it is. Three kinds of events run the steps again: the socket (uv_poll), the timer, and the
 * local side of a stream. libssh is called from steps only, never from libssh's callbacks. Order of
 * the states: TCP (or PAUSE before another attempt), BANNER, CONNECT (key exchange), HOSTKEY, AUTH,
 * EXEC, UP, CLOSED.
 *
 * Every hop has a libssh session with a separate ssh_event: sessions in one event fail together.
 * libssh gets a duplicate of the socket, since it closes the descriptor after some errors only.
 * ssh_hop_fail() is the only way to a failure: this function fails the hops behind a jump host,
 * releases everything, and reports DID_FAIL or DID_END.
 */
#include "head/ssh/ssh_hop_private.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/printable.h"
#include "head/ssh/ssh_hostkey.h"

#define PUMP_ROUNDS 8 /* of step_up(), before other sessions of the thread */

int ssh_hop_timeout(const struct ssh_hop *h)
{
        int ms = ssh_site_options(h->hops->site)->connect_timeout_ms;

        return ms > 0 ? ms : 10000;
}

/* ---- ends ---- */

static void free_hop_handle(uv_handle_t *handle)
{
        free(handle);
}

/* Closes libssh's descriptor unless libssh has. After a close the number may belong to another
 * thread: hence the comparison with our own descriptor of the same socket. */
static void close_libssh_socket(struct ssh_hop *h)
{
        struct stat ours, theirs;

        if (h->session.libssh_fd >= 0 && fstat(h->session.fd, &ours) == 0 &&
            fstat(h->session.libssh_fd, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
            ours.st_dev == theirs.st_dev)
                fd_close(h->session.libssh_fd);
        h->session.libssh_fd = -1;
}

void ssh_hop_leave(struct ssh_hop *h, enum ssh_server_answer answer)
{
        if (h->connect.counted)
                ssh_server_leave(h->target->server, answer, uv_now(h->hops->loop));
        h->connect.counted = false;
}

void ssh_hop_release(struct ssh_hop *h)
{
        /* Without effect if the result was reported before. */
        ssh_hop_leave(h, SERVER_SILENT);
        ssh_agent_forward_end(h);
        if (h->session.exec)
                ssh_stream_close(h->session.exec);
        h->session.exec = NULL;
        if (h->session.event) {
                ssh_event_remove_session(h->session.event, h->session.ssh);
                ssh_event_free(h->session.event);
                h->session.event = NULL;
        }
        if (h->session.ssh) {
                ssh_disconnect(h->session.ssh);
                ssh_free(h->session.ssh);
                h->session.ssh = NULL;
        }
        if (h->session.poll)
                /* Before the descriptor: libuv removes its number from the kernel's set. */
                uv_close((uv_handle_t *)h->session.poll, free_hop_handle);
        h->session.poll = NULL;
        ssh_dial_cancel(h->connect.dial);
        h->connect.dial = NULL;
        close_libssh_socket(h);
        h->session.fd = fd_close(h->session.fd);
        if (h->connect.proxy) {
                uv_process_kill(h->connect.proxy, SIGTERM);
                uv_close((uv_handle_t *)h->connect.proxy, free_hop_handle);
                h->connect.proxy = NULL;
        }
        ssh_jump_hang_up(h);
}

static void stop_hop(struct ssh_hop *h, const struct link_failure *why)
{
        h->state = HOP_CLOSED;
        uv_timer_stop(&h->timer);
        ssh_jump_end_forwards(h, why);
        ssh_hop_release(h);
}

void ssh_hop_tell(struct ssh_hop *h, struct ssh_hop_event event)
{
        if (h->report)
                h->report(h->ctx, &event);
}

/* @len: of the failure, and of what may follow it. */
static void end_hop(struct ssh_hop *h, struct link_failure *why, size_t len)
{
        if (h->state == HOP_CLOSED) /* reported before */
                return;
        why->port = h->target->host.port;
        snprintf(why->user, sizeof(why->user), "%s", h->target->host.user);
        /* Kept for hops that ask for this jump host later: see ssh_jump_dial(). */
        snprintf(h->refused, sizeof(h->refused), "%.199s", why->fact);
        h->refused_cause = why->cause;
        stop_hop(h, why);
        ssh_hop_tell(h, (struct ssh_hop_event){
                                .kind = h->opened ? DID_END : DID_FAIL, .data = why, .len = len });
}

void ssh_hop_fail(struct ssh_hop *h, struct link_failure *why)
{
        end_hop(h, why, sizeof(*why));
}

void ssh_hop_failf(struct ssh_hop *h, enum link_phase phase, enum link_cause cause,
                   const char *detail, const char *fmt, ...)
{
        struct link_failure why = { .phase = phase, .cause = cause };
        va_list args;

        va_start(args, fmt);
        vsnprintf(why.fact, sizeof(why.fact), fmt, args);
        va_end(args);
        printable_one_line(why.fact);
        snprintf(why.detail, sizeof(why.detail), "%s", detail);
        snprintf(why.evidence, sizeof(why.evidence), "%s", h->session.stderr_tail);
        ssh_hop_fail(h, &why);
}

void ssh_hop_fail_socket(struct ssh_hop *h, int error, const char *address)
{
        int port = h->target->host.port;
        double s = ssh_hop_timeout(h) / 1000.0;

        if (error == ETIMEDOUT)
                ssh_hop_failf(h, LINK_CONNECTING, LINK_TIMED_OUT, address,
                              "no answer on port %d in %gs", port, s);
        else if (error == ECONNREFUSED)
                ssh_hop_failf(h, LINK_CONNECTING, LINK_REFUSED, address,
                              "connection refused on port %d", port);
        else if (error == EHOSTUNREACH || error == ENETUNREACH || error == EADDRNOTAVAIL)
                ssh_hop_failf(h, LINK_CONNECTING, LINK_UNREACHABLE, address, "no route to host");
        else
                ssh_hop_failf(h, LINK_CONNECTING, LINK_OTHER, address,
                              "cannot connect to port %d: %s", port, strerror(error));
}

/* ---- time ---- */

static void on_hop_timer(uv_timer_t *timer);

void ssh_hop_enter(struct ssh_hop *h, enum ssh_hop_state state, enum link_phase phase, int ms)
{
        /* DID_OPEN tells the last phase. */
        if (phase != h->phase && state != HOP_UP)
                ssh_hop_tell(h, (struct ssh_hop_event){ .kind = DID_PHASE, .phase = phase });
        h->phase = phase;
        h->state = state;
        if (ms)
                uv_timer_start(&h->timer, on_hop_timer, (uint64_t)ms, 0);
        else
                uv_timer_stop(&h->timer);
}

/* Explains a timeout by the phase in which the time ran out. */
static void fail_timed_out(struct ssh_hop *h)
{
        int port = h->target->host.port;
        double s = ssh_hop_timeout(h) / 1000.0;

        switch (h->state) {
        case HOP_TCP:
                ssh_hop_fail_socket(h, ETIMEDOUT, h->target->via ? "over the jump host" : "");
                break;
        case HOP_BANNER:
        case HOP_CONNECT:
                ssh_hop_failf(h, LINK_KEX, LINK_TIMED_OUT, "", "no ssh handshake on port %d in %gs",
                              port, s);
                break;
        case HOP_AUTH:
                ssh_hop_failf(h, LINK_AUTH, LINK_TIMED_OUT, "", "no answer to the ssh login in %gs",
                              2 * s);
                break;
        default:
                ssh_hop_failf(h, LINK_EXEC, LINK_TIMED_OUT, "",
                              "the remote command was not started in %gs", s);
        }
}

static void report_slow(struct ssh_hop *h)
{
        if (!h->connect.slow_told)
                ssh_hop_tell(h, (struct ssh_hop_event){ .kind = DID_SLOW });
        h->connect.slow_told = true;
}

static void on_hop_timer(uv_timer_t *timer)
{
        struct ssh_hop *h = timer->data;

        if (h->state == HOP_PAUSE) {
                ssh_connect_dial(h);
        } else if (h->state == HOP_TCP && !h->connect.slow_told) {
                report_slow(h);
                uv_timer_start(timer, on_hop_timer, (uint64_t)ssh_hop_timeout(h) + DIAL_GRACE_MS,
                               0);
        } else {
                fail_timed_out(h);
        }
}

void ssh_hop_pause(struct ssh_hop *h, int ms)
{
        report_slow(h);
        h->state = HOP_PAUSE;
        uv_timer_start(&h->timer, on_hop_timer, (uint64_t)ms, 0);
}

/* ---- handshake ---- */

static void on_hop_socket(uv_poll_t *poll, int status, int events UNUSED)
{
        struct ssh_hop *h = poll->data;

        /* libuv has stopped the poll; libssh finds the error with the next read. */
        if (status < 0)
                h->session.armed = 0;
        ssh_hop_run(h);
}

/* Polls the socket for the events that libssh needs next. */
static void arm_hop_poll(struct ssh_hop *h)
{
        int events = UV_READABLE, pending, on = 1;

        if (!h->session.poll || !h->session.ssh)
                return;
        /* Only the bytes that wait for the reader are left. */
        if (ssh_session_is_dead(h->session.ssh)) {
                uv_poll_stop(h->session.poll);
                h->session.armed = 0;
                return;
        }
        /* The poll flags ask for a write after every sent packet. A login does not need this write,
         * since the server answers each packet; a stream would stall after a rekey without it. */
        pending = h->state < HOP_UP ? ssh_get_status(h->session.ssh)
                                    : ssh_get_poll_flags(h->session.ssh);
        /* The event comes at once, and the rest has its turn behind other sessions. */
        if (pending & SSH_WRITE_PENDING || h->session.unfinished)
                events |= UV_WRITABLE;
        /* Asks the kernel to acknowledge at once: a delayed acknowledgement costs 40 ms. */
        if (h->session.tcp && h->state < HOP_UP)
                setsockopt(h->session.fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
        if (events != h->session.armed)
                uv_poll_start(h->session.poll, events, on_hop_socket);
        h->session.armed = events;
}

/* Watches the socket of the session, still for nothing. 0 or -errno with @err. */
static int watch_session(struct ssh_hop *h, struct error *err)
{
        uv_poll_t *poll = xcalloc(1, sizeof(*poll));
        int r = uv_poll_init(h->hops->loop, poll, h->session.fd);

        if (r < 0) {
                free(poll);
                return err_set(err, -r, "cannot watch the connection: %s", strerror(-r));
        }
        h->session.poll = poll;
        h->session.poll->data = h;
        return 0;
}

void ssh_hop_connected(struct ssh_hop *h, int fd, bool tcp)
{
        struct error err = { 0 };

        h->session.fd = fd;
        h->session.libssh_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        h->session.tcp = tcp;
        h->session.armed = 0;
        if (h->session.libssh_fd < 0)
                err_set(&err, errno, "no descriptor for the connection: %s", strerror(errno));
        else
                h->session.ssh = ssh_hostkey_session(h->target, h->session.libssh_fd, &err);
        if (!h->session.ssh || watch_session(h, &err) < 0) {
                ssh_hop_failf(h, LINK_KEX, LINK_OTHER, "", "%s", err.text);
                return;
        }
        ssh_misuse_watch(&h->session.misuse, h->session.ssh);
        ssh_hop_enter(h, HOP_BANNER, LINK_KEX, ssh_hop_timeout(h));
        ssh_hop_run(h);
}

static void step_connect(struct ssh_hop *h)
{
        int r;

        if (h->state == HOP_BANNER)
                ssh_connect_read_greeting(h);
        r = ssh_connect(h->session.ssh);
        if (r == SSH_OK) {
                /* libssh made the socket blocking when it was connected. */
                fd_set_nonblock(h->session.fd);
                ssh_hop_enter(h, HOP_HOSTKEY, LINK_HOSTKEY, 0);
        } else if (r != SSH_AGAIN) {
                ssh_connect_handshake_failed(h);
        }
}

/* Reports a new host key to the hop's owner, or for a jump host to the first hop behind. */
static void report_stored_key(struct ssh_hop *h, const char *text)
{
        const struct jump_forward *f = h->jump.forwards;

        ssh_hop_tell(h, (struct ssh_hop_event){ .kind = DID_NOTICE,
                                                .notice = NOTICE_NEW_KEY,
                                                .data = text,
                                                .len = strlen(text) + 1 });
        /* The jump host has no owner to tell: any hop behind will do. */
        while (f && !f->inner)
                f = f->next;
        if (f)
                report_stored_key(f->inner, text);
}

/* Ends a hop that only asks for the key. */
static void report_host_key(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_HOSTKEY };
        struct link_host_key *key = ssh_hostkey_fetch(h->target, h->session.ssh, &why);

        if (key)
                /* The key is the event's data, and begins with a struct link_failure. */
                end_hop(h, &key->end, sizeof(*key) + strlen(key->blob) + 1);
        else
                ssh_hop_fail(h, &why);
        free(key);
}

static void step_hostkey(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_HOSTKEY };
        char stored[600];

        /* Without a command the hop was opened for the host key alone. */
        if (!ssh_site_options(h->hops->site)->command && !h->jump.name) {
                report_host_key(h);
                return;
        }
        if (ssh_hostkey_check(h->hops->site, h->target, h->session.ssh, stored, sizeof(stored),
                              &why) < 0) {
                ssh_hop_fail(h, &why);
                return;
        }
        if (*stored)
                report_stored_key(h, stored);
        h->session.auth = (struct ssh_auth){ .target = h->target };
        /* Twice the time: several keys may be tried, and servers delay each refusal. */
        ssh_hop_enter(h, HOP_AUTH, LINK_AUTH, 2 * ssh_hop_timeout(h));
}

static void on_exec_noise(void *ctx, const char *text, size_t len)
{
        struct ssh_hop *h = ctx;

        printable_keep_tail(h->session.stderr_tail, sizeof(h->session.stderr_tail), text, len);
        ssh_hop_tell(h, (struct ssh_hop_event){ .kind = DID_SAY, .data = text, .len = len });
}

static void on_stream_ready(void *ctx)
{
        ssh_hop_run(ctx);
}

static const struct ssh_stream_ops exec_ops = { .noise = on_exec_noise, .ready = on_stream_ready };
const struct ssh_stream_ops ssh_hop_stream_ops = { .ready = on_stream_ready };

/* After the login: a jump host is up, any other host gets the command. */
static void start_exec(struct ssh_hop *h)
{
        struct ssh_stream_order order = { .command = ssh_site_options(h->hops->site)->command,
                                          .wants_agent = h->agent_forward.wanted };

        h->session.event = ssh_event_new();
        if (!h->session.event ||
            ssh_event_add_session(h->session.event, h->session.ssh) != SSH_OK) {
                ssh_hop_failf(h, LINK_EXEC, LINK_OTHER, "", "libssh: out of memory");
                return;
        }
        if (h->jump.name) {
                ssh_hop_enter(h, HOP_UP, LINK_OPEN, 0);
                return;
        }
        h->session.exec = ssh_stream_create(h->hops->loop, h->session.ssh, &exec_ops, h, &order);
        if (!h->session.exec) {
                ssh_hop_failf(h, LINK_EXEC, LINK_OTHER, "", "no descriptor for the session: %s",
                              strerror(errno));
                return;
        }
        if (h->agent_forward.wanted)
                ssh_agent_forward_begin(h);
        ssh_hop_enter(h, HOP_EXEC, LINK_EXEC, ssh_hop_timeout(h));
}

/* Goes on with the login. A refusal is remembered for the server, so other hops do not repeat the
 * attempt. */
static void step_auth(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_AUTH };
        int r = ssh_auth_step(&h->session.auth, h->session.ssh);

        if (r == SSH_AUTH_AGAIN)
                return;
        /* The login is decided, so the server counts it no longer (MaxStartups). */
        ssh_hop_leave(h, SERVER_DECIDED);
        if (r == SSH_AUTH_SUCCESS) {
                start_exec(h);
                return;
        }
        ssh_auth_explain(&h->session.auth, &why);
        ssh_server_deny(h->target->server, h->target->host.user, &why, uv_now(h->hops->loop));
        ssh_hop_fail(h, &why);
}

/* ---- copying ---- */

static void fail_exec_ended(struct ssh_hop *h, const struct ssh_stream_end *end)
{
        if (!h->opened)
                ssh_hop_failf(h, LINK_EXEC, LINK_OTHER, "", "the server refuses the command: %s",
                              end->refused);
        else if (!end->exited)
                ssh_hop_failf(h, LINK_OPEN, LINK_ENDED, "", "the remote session was closed");
        else if (*end->exit_signal)
                ssh_hop_failf(h, LINK_OPEN, LINK_ENDED, "",
                              "the remote command was killed by SIG%s", end->exit_signal);
        else
                ssh_hop_failf(h, LINK_OPEN, LINK_ENDED, "",
                              "the remote command ended with exit code %d", end->exit_status);
}

/* @reason: -EPROTO, or negative: libssh knows. */
static void fail_connection_lost(struct ssh_hop *h, int reason)
{
        const char *text = reason == -EPROTO ? "the ssh server sends more than the window allows"
                                             : ssh_get_error(h->session.ssh);
        struct link_failure why = { .phase = h->opened ? LINK_OPEN : LINK_EXEC,
                                    .cause = LINK_DROPPED };

        if (strncmp(text, "Socket error: ", 14) == 0)
                text += 14;
        /* Without an end of file from the server the agent there may live on. */
        why.one_sided = strcmp(text, "disconnected") != 0; /* libssh's word for the end of file */
        snprintf(why.fact, sizeof(why.fact), "the connection was lost%s%.200s", *text ? ": " : "",
                 text);
        printable_one_line(why.fact);
        snprintf(why.evidence, sizeof(why.evidence), "%s", h->session.stderr_tail);
        ssh_hop_fail(h, &why);
}

/* Moves bytes of the remote command, and reports the start. Returns as ssh_stream_pump(). */
static int pump_exec(struct ssh_hop *h)
{
        int fd, r;

        if (!h->session.exec)
                return 0;
        r = ssh_stream_pump(h->session.exec);
        if (r < 0)
                return r;
        fd = ssh_stream_take_fd(h->session.exec);
        if (fd >= 0) {
                h->opened = true;
                ssh_hop_enter(h, HOP_UP, LINK_OPEN, 0);
                ssh_hop_tell(h, (struct ssh_hop_event){ .kind = DID_OPEN, .fd = fd });
        }
        return 0;
}

/* Moves bytes of the command, of jumps and of the forwarded agent, PUMP_ROUNDS at most, so that a
 * flood on one session does not starve the others of the thread. */
static void step_up(struct ssh_hop *h)
{
        const uint64_t *received = &h->session.misuse.sent.in_packets;
        struct ssh_stream *exec = h->session.exec;
        bool active = true;
        int r;

        if (!ssh_session_is_dead(h->session.ssh) &&
            ssh_event_dopoll(h->session.event, 0) == SSH_ERROR) {
                /* Deliver the bytes received before the end, as far as possible. */
                pump_exec(h);
                fail_connection_lost(h, -1);
                return;
        }
        for (int i = 0; active && i < PUMP_ROUNDS; i++) {
                uint64_t before = *received;

                active = false;
                r = pump_exec(h);
                r = r < 0 ? r : ssh_jump_pump(h, &active);
                r = r < 0 ? r : ssh_agent_forward_pump(h, &active);
                if (r < 0) {
                        fail_connection_lost(h, r);
                        return;
                }
                if (exec && ssh_stream_done(exec)) {
                        fail_exec_ended(h, ssh_stream_done(exec));
                        return;
                }
                /* A packet that came with the pump of one stream may be for another one. */
                active = active || (exec && ssh_stream_active(exec)) || *received != before;
        }
        h->session.unfinished = active;
        /* Bytes that wait for our own process come before the report of the end. */
        if (ssh_session_is_dead(h->session.ssh) && !(exec && ssh_stream_blocked(exec)))
                fail_connection_lost(h, -1);
}

void ssh_hop_run(struct ssh_hop *h)
{
        enum ssh_hop_state before;

        /* A callback inside a step may lead back here. */
        if (h->running)
                return;
        h->running = true;
        do {
                before = h->state;
                if (before == HOP_BANNER || before == HOP_CONNECT)
                        step_connect(h);
                else if (before == HOP_HOSTKEY)
                        step_hostkey(h);
                else if (before == HOP_AUTH)
                        step_auth(h);
                else if (before == HOP_EXEC || before == HOP_UP)
                        step_up(h);
                if (h->session.ssh && ssh_misuse_found(&h->session.misuse, h->session.ssh))
                        ssh_hop_failf(
                                h, h->phase, LINK_OTHER, "",
                                "the ssh server sends request after request and reads no answer");
        } while (h->state != before);
        h->running = false;
        arm_hop_poll(h);
}

/* ---- life ---- */

struct ssh_hop *ssh_hop_open(struct ssh_hops *hops, const struct ssh_target *target,
                             const char *jump_name, bool forward_agent, ssh_hop_report report,
                             void *ctx)
{
        struct ssh_hop *h = xcalloc(1, sizeof(*h));

        h->hops = hops;
        h->target = target;
        h->jump.name = jump_name ? xstrdup(jump_name) : NULL;
        h->agent_forward.wanted = forward_agent;
        h->report = report;
        h->ctx = ctx;
        h->session.fd = h->session.libssh_fd = -1;
        h->timer.data = h;
        uv_timer_init(hops->loop, &h->timer);
        h->connect.begun = uv_now(hops->loop);
        if (target->via)
                h->jump.via = ssh_jump_acquire(h);
        ssh_connect_dial(h);
        return h;
}

static void on_hop_closed(uv_handle_t *handle)
{
        struct ssh_hop *h = handle->data;

        ssh_hop_tell(h, (struct ssh_hop_event){ .kind = DID_CLOSE });
        free(h->jump.name);
        free(h);
}

void ssh_hop_close(struct ssh_hop *h)
{
        /* Hops behind this one are closed by their users, so there is no failure to tell. */
        stop_hop(h, NULL);
        ssh_jump_release(h);
        uv_close((uv_handle_t *)&h->timer, on_hop_closed);
}
