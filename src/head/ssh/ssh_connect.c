/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a hop reaches the server. ssh_connect_dial() first asks the server's limits
 * (ssh_server_limits.h), which may impose a pause; then the connection is made by TCP, over a jump
 * host, or by a ProxyCommand. If the handshake fails, the server's text in place of a banner
 * decides: a permanent refusal fails the hop, a drop (MaxStartups) or a penalty
 * (PerSourcePenalties) leads to another attempt after a random, doubling pause, for as long as some
 * login to this server succeeds within twice the timeout.
 */
#include "head/ssh/ssh_hop_private.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/printable.h"

/* A connection attempt counts for the fan-out window for this time. */
#define SLOW_MS 500
/* The first pauses after a drop; ssh_server_limits.h imposes longer pauses. */
#define RETRY_MS     60
#define RETRY_MAX_MS 1000

static void on_dial_done(void *ctx, int fd, const struct ssh_dial_failure *why)
{
        struct ssh_hop *h = ctx;
        const struct ssh_source *source = h->target->source;

        h->connect.dial = NULL;
        if (fd >= 0)
                ssh_hop_connected(h, fd, true);
        else if (why->binding)
                ssh_hop_failf(h, LINK_CONNECTING, LINK_OTHER, why->address,
                              "cannot connect from %s %s: %s", source->keyword, source->name,
                              strerror(why->error));
        else
                ssh_hop_fail_socket(h, why->error, why->address);
}

static void on_proxy_exit(uv_process_t *proxy UNUSED, int64_t status UNUSED, int signal UNUSED)
{
        /* Nothing to do: the end of the socket is reported with a reason. */
}

/* Starts ProxyCommand, whose standard input and output are the connection. */
static void start_proxy_command(struct ssh_hop *h)
{
        char shell[] = "/bin/sh", flag[] = "-c";
        /* exec as in ssh(1): SIGTERM must reach the command, not a shell around it. */
        char *command = xasprintf("exec %s", h->target->host.proxy_command);
        char *argv[] = { shell, flag, command, NULL };
        int fds[2], r = fd_pair(fds);
        uv_stdio_container_t stdio[3] = {
                { .flags = UV_INHERIT_FD, .data.fd = r == 0 ? fds[1] : -1 },
                { .flags = UV_INHERIT_FD, .data.fd = r == 0 ? fds[1] : -1 },
                /* Messages of the command are the user's to see. */
                { .flags = UV_INHERIT_FD, .data.fd = 2 },
        };
        uv_process_options_t options = {
                .file = shell,
                .args = argv,
                /* Ctrl-C at the terminal must not end the connection before hnlaunch does. */
                .flags = UV_PROCESS_DETACHED,
                .stdio_count = 3,
                .stdio = stdio,
                .exit_cb = on_proxy_exit,
        };

        if (r == 0) {
                h->connect.proxy = xcalloc(1, sizeof(*h->connect.proxy));
                r = uv_spawn(h->hops->loop, h->connect.proxy, &options);
                fd_close(fds[1]);
                if (r < 0)
                        fd_close(fds[0]);
        }
        free(command);
        if (r < 0) {
                ssh_hop_failf(h, LINK_CONNECTING, LINK_SPAWN, "",
                              "cannot start the ProxyCommand: %s", strerror(-r));
                return;
        }
        fd_set_nonblock(fds[0]);
        ssh_hop_connected(h, fds[0], false);
}

/* sshd's text before it closes, since OpenSSH 9.8; there is no code for it. */
static bool is_penalized(const struct ssh_hop *h)
{
        return strstr(h->connect.greeting, "Not allowed at this time") != NULL;
}

/* Explains a connection that the server has closed before the login: a penalty after failed logins,
 * or MaxStartups. */
static void fail_dropped_handshake(struct ssh_hop *h)
{
        struct link_failure why = { .phase = LINK_KEX, .cause = LINK_DROPPED };
        int port = h->target->host.port;

        if (is_penalized(h)) {
                snprintf(why.fact, sizeof(why.fact),
                         "the server on port %d takes no connections from here for now", port);
                snprintf(why.help, sizeof(why.help), "%s",
                         "failed or unfinished logins came from this machine, and sshd "
                         "(PerSourcePenalties) waits some seconds to minutes for each: try later");
        } else {
                snprintf(why.fact, sizeof(why.fact),
                         "the server closes the connection during the handshake on port %d", port);
                if (strstr(h->connect.greeting, "MaxStartups"))
                        snprintf(why.help, sizeof(why.help), "%s",
                                 "more logins are under way there than its MaxStartups allows: try "
                                 "a smaller -o ssh.fanout=N, or ask for a larger MaxStartups");
        }
        if (*h->connect.greeting)
                snprintf(why.evidence, sizeof(why.evidence), "server: %s\n", h->connect.greeting);
        else if (*h->connect.error)
                snprintf(why.evidence, sizeof(why.evidence), "libssh: %s\n", h->connect.error);
        ssh_hop_fail(h, &why);
}

/* Tells whether a login to this server succeeded recently enough to try again. */
static bool may_retry(const struct ssh_hop *h)
{
        uint64_t since = MAX(h->connect.begun, ssh_server_last_good(h->target->server));

        return uv_now(h->hops->loop) < since + 2 * (uint64_t)ssh_hop_timeout(h);
}

void ssh_connect_dial(struct ssh_hop *h)
{
        struct ssh_server *server = h->target->server;
        uint64_t now = uv_now(h->hops->loop);
        struct link_failure why;
        int wait;

        if (ssh_server_denied(server, h->target->host.user, now, &why)) {
                ssh_hop_fail(h, &why);
                return;
        }
        wait = ssh_server_enter(server, now);
        h->connect.counted = !wait;
        if (wait && may_retry(h))
                ssh_hop_pause(h, wait);
        else if (wait)
                fail_dropped_handshake(h);
        if (wait)
                return;
        /* First the time until DID_SLOW; on_hop_timer() then sets the rest. */
        ssh_hop_enter(h, HOP_TCP, LINK_CONNECTING,
                      h->connect.slow_told ? ssh_hop_timeout(h) + DIAL_GRACE_MS : SLOW_MS);
        if (h->jump.via)
                ssh_jump_dial(h);
        else if (h->target->host.proxy_command)
                start_proxy_command(h);
        else
                h->connect.dial = ssh_dial_start(
                        h->hops->loop, h->target->addresses, h->target->source, ssh_hop_timeout(h),
                        ssh_site_options(h->hops->site)->silence_ms, on_dial_done, h);
}

/* Tells whether libssh ended the handshake because of what the server sent; else the server did.
 * The texts are those of libssh 0.10 to 0.12. */
static bool breaks_protocol(const char *text)
{
        static const char *const errors[] = { "kex error", "no match", "Receiving banner",
                                              "No version of SSH", "Packet len" };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                if (strstr(text, errors[i]) && !strstr(text, "SSH_MSG_DISCONNECT") &&
                    strncmp(text, "Socket error", 12) != 0)
                        return true;
        return false;
}

void ssh_connect_handshake_failed(struct ssh_hop *h)
{
        /* 60 ms << 8 is above the most, and no shift overflows. */
        unsigned ms = MIN(RETRY_MS << MIN(h->connect.attempts, 8u), RETRY_MAX_MS);
        int port = h->target->host.port;
        char *text = h->connect.error;

        /* Without a banner the greeting of an earlier attempt is still the reason: this attempt's
         * text was lost in a reset, or read by libssh. */
        if (ssh_get_serverbanner(h->session.ssh))
                h->connect.greeting[0] = '\0';
        snprintf(text, sizeof(h->connect.error), "%s", ssh_get_error(h->session.ssh));
        printable_one_line(text);
        if (*h->connect.greeting && !is_penalized(h) &&
            !strstr(h->connect.greeting, "MaxStartups")) {
                ssh_hop_failf(h, LINK_KEX, LINK_OTHER, "", "no ssh server on port %d: it sent '%s'",
                              port, h->connect.greeting);
                return;
        }
        if (breaks_protocol(text)) {
                ssh_hop_failf(h, LINK_KEX, LINK_OTHER, "", "ssh handshake on port %d: %s", port,
                              text);
                return;
        }
        /* A close before the key exchange means a busy server. */
        h->connect.attempts++;
        ssh_hop_leave(h, is_penalized(h) ? SERVER_PENALIZED : SERVER_DROPPED);
        if (!may_retry(h)) {
                fail_dropped_handshake(h);
                return;
        }
        ssh_hop_release(h);
        /* A random part keeps the dropped hops from coming back together. */
        ssh_hop_pause(h, (int)(ms / 2 + randombytes_uniform(ms)));
}

/* Peeks at the socket: sshd sends the reason for a refusal as text, which libssh drops. */
void ssh_connect_read_greeting(struct ssh_hop *h)
{
        char text[sizeof(h->connect.greeting)];
        /* The bytes stay for libssh, which reads the banner itself. */
        ssize_t n = recv(h->session.fd, text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT);

        if (n <= 0)
                return;
        text[n] = '\0';
        /* A piece shorter than "SSH-" may still become the banner. */
        if (strncmp(text, "SSH-", MIN((size_t)n, 4)) != 0) {
                text[strcspn(text, "\r\n")] = '\0';
                snprintf(h->connect.greeting, sizeof(h->connect.greeting), "%s", text);
        }
        ssh_hop_enter(h, HOP_CONNECT, LINK_KEX, ssh_hop_timeout(h));
}
