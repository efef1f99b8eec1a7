/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a hop gets to its server: when it may dial, what becomes of a connection that is dropped
 * during the handshake, and how both are told.
 */
#include "head/ssh/ssh_session_private.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/strv.h"

/* Until then a connection attempt counts for the fan-out window. */
#define SLOW_MS 500
/* The first pauses after a drop; ssh_server_limits.h knows of longer ones. */
#define RETRY_MS     60
#define RETRY_MAX_MS 1000

static void dialled(void *ctx, int fd, int error, const char *address)
{
        struct ssh_hop *h = ctx;

        h->dial = NULL;
        if (fd < 0)
                hop_fail_socket(h, error, address);
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
        else if (*h->dropped)
                snprintf(why.evidence, sizeof(why.evidence), "libssh: %s\n", h->dropped);
        hop_fail(h, &why);
}

/* Until the server was kind to nobody for so long. */
static bool patient(const struct ssh_hop *h)
{
        uint64_t since = MAX(h->begun, ssh_server_last_good(h->route->server));

        return uv_now(h->hops->loop) < since + 2 * (uint64_t)hop_timeout(h);
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

void hop_dial(struct ssh_hop *h)
{
        if (!hop_may_dial(h))
                return;
        hop_enter(h, HOP_TCP, LINK_CONNECTING,
                  h->slow_told ? hop_timeout(h) + DIAL_GRACE_MS : SLOW_MS);
        if (h->via)
                jump_dial(h);
        else if (h->route->host.proxy_command)
                dial_proxy(h);
        else
                h->dial = ssh_dial_start(h->hops->loop, h->route->addresses, hop_timeout(h),
                                         dialled, h);
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
        hop_release(h);
        hop_pause(h, (int)(ms / 2 + randombytes_uniform(ms)));
}

void hop_handshake_failed(struct ssh_hop *h)
{
        int port = h->route->host.port;
        char *text = h->dropped;

        /* No word at all: it was lost in a reset, or libssh was faster than we, and what the server
         * said before is still the reason. */
        if (ssh_get_serverbanner(h->session))
                h->greeting[0] = '\0';
        snprintf(text, sizeof(h->dropped), "%s", ssh_get_error(h->session));
        if (strstr(text, "kex error") || strstr(text, "no match"))
                hop_failf(h, LINK_KEX, LINK_OTHER, "", "ssh handshake on port %d: %s", port, text);
        else if (*h->greeting && !turned_away(h) && !strstr(h->greeting, "MaxStartups"))
                hop_failf(h, LINK_KEX, LINK_OTHER, "", "no ssh server on port %d: it says '%s'",
                          port, h->greeting);
        else
                hop_retry(h);
}

/* sshd says in plain words why it takes no connection; libssh keeps that to itself. */
void hop_read_greeting(struct ssh_hop *h)
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
        hop_enter(h, HOP_CONNECT, LINK_KEX, hop_timeout(h));
}
