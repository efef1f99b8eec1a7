/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of this machine are offered in the order of use: first the source address of a
 * route to the node, found by connecting a datagram socket without sending, then the addresses of
 * all interfaces. The secret and the port go into the environment of the command. Only the tail of
 * the command's stderr is kept, for the message when the command ends too early.
 */
#include "head/dial_in/call_command.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/strv.h"
#include "base/token.h"
#include "wire/env/container_order.h"
#include "wire/noise/dial.h"

enum {
        SECRET_LEN = 52, /* characters of 5 random bits */
        COPY_LEN = 12,   /* in the name of the copy on the nodes */
        ADDRESSES = 8,   /* of this machine, tried by agents */
};

/* --- addresses of this machine ---------------------------------------------------------------- */

/* Appends the address, unless listed already or useless to other nodes. */
static void offer_address(struct strv *to, const struct sockaddr *a)
{
        char text[INET6_ADDRSTRLEN];

        if (to->n == ADDRESSES || uv_ip_name(a, text, sizeof(text)) < 0 || strv_has(to, text))
                return;
        /* A link-local address needs the number of an interface, which differs by machine. */
        if (a->sa_family == AF_INET6 &&
            IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)a)->sin6_addr))
                return;
        strv_push(to, text);
}

/* Adds the address from which packets to a node leave. */
static void offer_route_to(struct strv *to, const char *host)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
        struct sockaddr_storage own = { 0 };
        socklen_t len = sizeof(own);
        struct addrinfo *all;
        int fd;

        /* Any port will do: the connect() of a datagram socket sends nothing. */
        if (getaddrinfo(host, "9", &hints, &all) != 0)
                return;
        fd = socket(all->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, all->ai_addr, all->ai_addrlen) == 0 &&
            getsockname(fd, (struct sockaddr *)&own, &len) == 0)
                offer_address(to, (struct sockaddr *)&own);
        fd_close(fd);
        freeaddrinfo(all);
}

/* Lists addresses of this machine, the best for @host first. */
static void list_addresses(struct strv *to, const char *host)
{
        struct ifaddrs *all = NULL;

        offer_route_to(to, host);
        if (getifaddrs(&all) < 0)
                all = NULL;
        for (struct ifaddrs *a = all; a; a = a->ifa_next)
                if (a->ifa_addr && (a->ifa_flags & IFF_UP) && !(a->ifa_flags & IFF_LOOPBACK) &&
                    (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6))
                        offer_address(to, a->ifa_addr);
        freeifaddrs(all);
        if (to->n == 0) { /* no network: the nodes are this machine */
                strv_push(to, "127.0.0.1");
                strv_push(to, "::1");
        }
}

/* --- the process ------------------------------------------------------------------------------ */

void call_command_describe(const struct call_command *c, char *to, size_t size)
{
        if (c->signal)
                snprintf(to, size, "%s was killed by signal %d (%s)", c->name, c->signal,
                         strsignal(c->signal));
        else
                snprintf(to, size, "%s ended with exit code %d", c->name, c->status);
}

/* Reports the end, once the process has exited and stderr is read, in whichever order. */
static void end_command(struct call_command *c)
{
        char fact[160];

        if (!c->exited || !c->stderr_ended)
                return;
        call_command_describe(c, fact, sizeof(fact));
        c->ended(c, fact);
}

static void on_command_exit(uv_process_t *process, int64_t status, int signal)
{
        struct call_command *c = container_of(process, struct call_command, process);

        c->exited = true;
        c->status = (int)status;
        c->signal = signal;
        end_command(c);
}

static void on_command_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *buf)
{
        struct call_command *c = container_of((uv_pipe_t *)h, struct call_command, err);

        *buf = uv_buf_init(c->text, sizeof(c->text));
}

static void on_command_stderr(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
        struct call_command *c = container_of((uv_pipe_t *)stream, struct call_command, err);

        if (n > 0) {
                printable_keep_tail(c->words, sizeof(c->words), buf->base, (size_t)n);
                log_line(LOG_DEBUG, "%s says: %.*s", c->name,
                         (int)(buf->base[n - 1] == '\n' ? n - 1 : n), buf->base);
                c->said(c);
        } else if (n < 0) {
                uv_read_stop(stream);
                c->stderr_ended = true;
                end_command(c);
        }
}

/* Adds the shell that becomes the agent in the cache of its node. A crashed node may have left a
 * damaged file, which does not know its size. */
static void push_cached_agent(const struct call_agent *agent, struct strv *argv)
{
        strv_push(argv, "/bin/sh");
        strv_push(argv, "-c");
        strv_pushf(argv,
                   "a=\"${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch/%s\"; [ -x \"$a\" ] && "
                   "[ \"$(\"$a\" -s 2>/dev/null)\" = %zu ] && exec \"$a\" --call; "
                   "exit " CALL_NO_AGENT,
                   agent->name, agent->size);
}

/* Sets the variables of the agents. */
static void add_call_environment(const struct call_start *start, const char *copy,
                                 uint8_t ret_psk[NOISE_KEY], struct strv *env)
{
        CLEANUP(strv_finish) struct strv own = STRV_INIT;
        CLEANUP(buf_finish) struct buf place = BUF_INIT;
        char secret[SECRET_LEN + 1];

        token_make(secret, SECRET_LEN);
        dial_psk(ret_psk, secret);
        list_addresses(&own, start->first);
        buf_printf(&place, "HNLAUNCH_CALL=%d", start->port);
        for (size_t i = 0; i < own.n; i++)
                buf_printf(&place, " %s", own.v[i]);
        strv_push_mem(env, buf_data(&place), buf_len(&place));
        strv_pushf(env, "HNLAUNCH_CALL_SECRET=%s", secret);
        /* The agents move the copy to the cache: see agent/core/call_home.h. */
        if (start->copies)
                strv_pushf(env, "HNLAUNCH_CALL_REMOVE=%s", copy);
        if (start->copies && *start->cached->name)
                strv_pushf(env, "HNLAUNCH_CALL_KEEP=%s", start->cached->name);
        strv_push(env, "HNLAUNCH_MANAGED=1");
        if (start->container)
                strv_env_set(env, CONTAINER_ORDER, start->container);
        sodium_memzero(secret, sizeof(secret));
}

int call_command_start(struct call_command *c, uv_loop_t *loop, const struct call_start *start,
                       uint8_t ret_psk[NOISE_KEY])
{
        CLEANUP(strv_finish) struct strv argv = STRV_INIT, env = STRV_INIT;
        char token[COPY_LEN + 1];
        CLEANUP(free_textp) char *copy = NULL;
        uv_stdio_container_t stdio[3] = {
                { .flags = UV_IGNORE },
                { .flags = UV_IGNORE },
                { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                  .data.stream = (uv_stream_t *)&c->err },
        };
        uv_process_options_t options = { .flags = UV_PROCESS_DETACHED,
                                         .stdio_count = 3,
                                         .stdio = stdio,
                                         .exit_cb = on_command_exit };
        int r;

        c->name = start->program->name;
        /* For the callbacks of call_command_close(). */
        c->process.data = c->err.data = c->owner;
        token_make(token, COPY_LEN);
        copy = xasprintf("/tmp/hnlaunch-agent-%s", token);
        program_link_environment(start->program, &env);
        add_call_environment(start, copy, ret_psk, &env);
        program_link_arguments(start->program,
                               &(struct program_marks){ .hosts = start->hosts,
                                                        .count = start->count,
                                                        .copy = start->copies ? copy : NULL },
                               &argv);
        if (start->copies) {
                strv_push(&argv, start->agent);
                strv_push(&argv, "--call");
        } else {
                push_cached_agent(start->cached, &argv);
        }
        options.file = argv.v[0];
        options.args = argv.v;
        options.env = env.v;
        uv_pipe_init(loop, &c->err, 0);
        r = uv_spawn(loop, &c->process, &options);
        if (r == 0)
                r = uv_read_start((uv_stream_t *)&c->err, on_command_alloc, on_command_stderr);
        if (r < 0) {
                c->exited = c->stderr_ended = true;
                snprintf(c->words, sizeof(c->words), "%s: %s", argv.v[0], uv_strerror(r));
        }
        /* uv_spawn() initializes the handle before the start, which may still fail. */
        return c->process.type == UV_PROCESS ? 2 : 1;
}

void call_command_kill(struct call_command *c)
{
        if (!c->exited) /* leads a process group: UV_PROCESS_DETACHED */
                kill(-c->process.pid, c->killed ? SIGKILL : SIGTERM);
        c->killed = true;
}

void call_command_close(struct call_command *c, uv_close_cb closed)
{
        if (c->process.type == UV_PROCESS)
                uv_close((uv_handle_t *)&c->process, closed);
        /* 0 when call_command_start() was never called. */
        if (c->err.type == UV_NAMED_PIPE)
                uv_close((uv_handle_t *)&c->err, closed);
}
