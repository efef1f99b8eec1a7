/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports with processes of this machine as links, each with a socketpair as stdin and stdout:
 * the agent itself, the site's own ssh (--ssh-command), or another program of the site
 * (--start-with); with the last, the shell on the node reads the bootstrap line from stdin.
 *
 * The process gets a session of its own, out of reach of the terminal's Ctrl-C, and only the three
 * standard descriptors. Stderr goes to noise(), the last lines into the failure's evidence. The end
 * of stdin ends the agent, and a program that has reached an agent. Any other program is ended by
 * SIGTERM.
 *
 * A link has three handles: the process, a pipe for stderr, and a timer. The timer fires at once to
 * report opened() or failed() from the loop, and later ends the wait for stderr. ended() is called
 * when the process has exited and stderr is at the end, or DRAIN_MS later: a background process may
 * hold the pipe. The last closed handle frees the link.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/core/shell_words.h"
#include "head/nodes/program_link.h"
#include "head/nodes/ssh_program.h"
#include "head/nodes/transport.h"
#include "wire/env/container_order.h"

/* How long stderr may stay open after the exit: another process may hold the pipe. */
#define DRAIN_MS 200

extern char **environ;

struct process_transport {
        struct transport transport;
        uv_loop_t *loop;
        const struct ssh_options *options; /* of an ssh; else NULL */
        struct strv words;                 /* the agent, or the words of --ssh-command */
        struct program_link program;       /* of --start-with */
        char *bootstrap;                   /* ... the line for stdin; else NULL */
        struct strv env;                   /* empty = this process's */
};

enum process_state { PROCESS_STARTING, PROCESS_FAILED, PROCESS_RUNNING, PROCESS_ENDED };

struct process_link {
        struct link link;
        enum process_state state;
        const struct link_callbacks *cb;
        void *ctx;
        const struct process_transport *owner;
        uv_process_t process;
        uv_pipe_t err;
        uv_timer_t timer;
        int handles; /* not yet closed; the last frees the link */
        int fd;      /* our end of the pair, -1 once passed to opened() */
        bool exited, stderr_ended;
        int status, signal;
        struct link_failure why;
        char text[4096];
};

static void on_process_handle_closed(uv_handle_t *h)
{
        struct process_link *p = h->data;

        if (--p->handles == 0)
                free(p);
}

/* Reports the end of the process, once, when the process has exited and standard error is read to
 * the end. */
static void end_process_link(struct process_link *p)
{
        bool is_ssh = p->owner->options != NULL;
        const char *name = p->owner->bootstrap ? p->owner->program.name
                           : is_ssh            ? "the ssh command"
                                               : "the local agent";

        if (p->state != PROCESS_RUNNING)
                return;
        p->state = PROCESS_ENDED;
        uv_timer_stop(&p->timer);
        p->why.phase = LINK_OPEN;
        p->why.cause = LINK_ENDED;
        if (p->signal)
                snprintf(p->why.fact, sizeof(p->why.fact), "%s was killed by signal %d (%s)", name,
                         p->signal, strsignal(p->signal));
        else
                snprintf(p->why.fact, sizeof(p->why.fact), "%s ended with exit code %d", name,
                         p->status);
        if (is_ssh)
                ssh_program_classify(p->status, p->signal, &p->why);
        p->cb->ended(p->ctx, &p->why);
}

/* The timer reports from the loop: first the start or the failure of the start, later an exit while
 * standard error is open, since a background process may hold the descriptor. */
static void on_process_timer(uv_timer_t *timer)
{
        struct process_link *p = timer->data;

        if (p->state == PROCESS_FAILED) {
                p->cb->failed(p->ctx, &p->why);
        } else if (p->state == PROCESS_STARTING) {
                int fd = p->fd;

                p->state = PROCESS_RUNNING;
                p->fd = -1;
                /* The exit came before the report of the start. */
                if (p->exited)
                        uv_timer_start(timer, on_process_timer, DRAIN_MS, 0);
                p->cb->opened(p->ctx, fd);
        } else if (p->exited) {
                end_process_link(p);
        }
}

static void on_process_exit(uv_process_t *process, int64_t status, int signal)
{
        struct process_link *p = process->data;

        p->exited = true;
        p->status = (int)status;
        p->signal = signal;
        if (p->state != PROCESS_RUNNING)
                return;
        if (p->stderr_ended)
                end_process_link(p);
        else
                uv_timer_start(&p->timer, on_process_timer, DRAIN_MS, 0);
}

static void on_process_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *buf)
{
        struct process_link *p = h->data;

        *buf = uv_buf_init(p->text, sizeof(p->text));
}

/* Standard error of ssh or of the login: the tail is evidence for a failure. */
static void on_process_stderr(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
        struct process_link *p = stream->data;

        if (n == 0)
                return;
        if (n > 0) {
                printable_keep_tail(p->why.evidence, sizeof(p->why.evidence), buf->base, (size_t)n);
                p->cb->noise(p->ctx, buf->base, (size_t)n);
                return;
        }
        uv_read_stop(stream);
        p->stderr_ended = true;
        if (p->exited)
                end_process_link(p);
}

/* Starts the process; 0 or a negative errno. The bootstrap line fits into an empty socket. */
static int start_link_process(struct process_link *p, char *const argv[])
{
        const struct process_transport *t = p->owner;
        int fds[2], r = fd_pair(fds);
        uv_stdio_container_t stdio[3] = {
                { .flags = UV_INHERIT_FD },
                { .flags = UV_INHERIT_FD },
                { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                  .data.stream = (uv_stream_t *)&p->err },
        };
        uv_process_options_t options = {
                .file = argv[0],
                .args = (char **)argv,
                .env = t->env.n ? t->env.v : NULL,
                .flags = UV_PROCESS_DETACHED,
                .stdio_count = 3,
                .stdio = stdio,
                .exit_cb = on_process_exit,
        };

        if (r < 0)
                return r;
        stdio[0].data.fd = stdio[1].data.fd = fds[1];
        r = uv_spawn(t->loop, &p->process, &options);
        if (r == 0)
                r = uv_read_start((uv_stream_t *)&p->err, on_process_alloc, on_process_stderr);
        /* With a copy here, the end of the process would not be seen as EOF. */
        fd_close(fds[1]);
        p->fd = fds[0];
        /* The exit of the program reports an early end. */
        if (r == 0 && t->bootstrap)
                fd_write_all(p->fd, t->bootstrap, strlen(t->bootstrap));
        return r < 0 ? r : fd_set_nonblock(p->fd);
}

/* Appends the arguments of --ssh-command: only options set by the user, so ssh's own configuration
 * decides about the rest. */
static void add_ssh_arguments(const struct ssh_options *o, const struct link_target *to,
                              struct strv *argv)
{
        const char *user = to->user ? to->user : o->user;
        int port = to->port ? to->port : o->port;

        ssh_program_add_options(o, argv);
        if (o->forward_agent && to->has_children)
                strv_push(argv, "-A");
        if (o->config_file) {
                strv_push(argv, "-F");
                strv_push(argv, o->config_file);
        }
        if (port) {
                strv_push(argv, "-p");
                strv_pushf(argv, "%d", port);
        }
        if (user) {
                strv_push(argv, "-l");
                strv_push(argv, user);
        }
        for (size_t i = 0; o->identities && i < o->identities->n; i++) {
                strv_push(argv, "-i");
                strv_push(argv, o->identities->v[i]);
        }
        if (o->jump) {
                strv_push(argv, "-J");
                strv_push(argv, o->jump);
        }
        /* A host that begins with "-" is no option. */
        strv_push(argv, "--");
        strv_push(argv, to->host);
        strv_push(argv, o->command);
}

/* Starts the process. Success and failure are reported later, from the loop: a caller must not be
 * called back within the call. */
static struct link *open_process_link(struct transport *transport, const struct link_target *to,
                                      const struct link_callbacks *cb, void *ctx,
                                      struct error *err UNUSED)
{
        struct process_transport *t = container_of(transport, struct process_transport, transport);
        struct process_link *p = xcalloc(1, sizeof(*p));
        struct strv argv = STRV_INIT;
        int r;

        p->link.transport = transport;
        p->cb = cb;
        p->ctx = ctx;
        p->owner = t;
        p->fd = -1;
        p->process.data = p->err.data = p->timer.data = p;
        uv_pipe_init(t->loop, &p->err, 0);
        uv_timer_init(t->loop, &p->timer);
        p->handles = 3;
        strv_copy(&argv, &t->words);
        if (t->options)
                add_ssh_arguments(t->options, to, &argv);
        if (t->bootstrap) {
                program_link_arguments(&t->program, &(struct program_marks){ .host = to->host },
                                       &argv);
                strv_push(&argv, "/bin/sh");
        }
        r = start_link_process(p, argv.v);
        if (r < 0) {
                p->state = PROCESS_FAILED;
                p->why.phase = LINK_EXEC;
                p->why.cause = LINK_SPAWN;
                snprintf(p->why.fact, sizeof(p->why.fact), "cannot start %s: %s", argv.v[0],
                         strerror(-r));
        }
        strv_finish(&argv);
        uv_timer_start(&p->timer, on_process_timer, 0, 0);
        return &p->link;
}

/* Closes the handles; the last callback frees the link. */
static void close_process_link(struct link *l)
{
        struct process_link *p = container_of(l, struct process_link, link);

        p->state = PROCESS_ENDED;
        p->fd = fd_close(p->fd);
        /* uv_spawn() initializes the process handle even after a failure behind its checks; a
         * failed fd_pair leaves the handle untouched. */
        if (p->process.type == UV_PROCESS)
                uv_close((uv_handle_t *)&p->process, on_process_handle_closed);
        else
                p->handles--;
        uv_close((uv_handle_t *)&p->err, on_process_handle_closed);
        uv_close((uv_handle_t *)&p->timer, on_process_handle_closed);
}

/* Ends ssh and its children, such as a ProxyCommand: without an answer ssh would wait for the
 * network, for minutes after hnlaunch has ended. The same for a program of --start-with. */
static void abandon_process_link(struct link *l)
{
        struct process_link *p = container_of(l, struct process_link, link);

        if ((p->owner->options || p->owner->bootstrap) && p->state != PROCESS_FAILED && !p->exited)
                kill(-p->process.pid, SIGTERM); /* its group: UV_PROCESS_DETACHED */
        close_process_link(l);
}

static void destroy_process_transport(struct transport *transport)
{
        struct process_transport *t = container_of(transport, struct process_transport, transport);

        strv_finish(&t->words);
        strv_finish(&t->env);
        program_link_finish(&t->program);
        free(t->bootstrap);
        free(t);
}

static struct process_transport *create_process_transport(uv_loop_t *loop)
{
        static const struct transport_ops ops = { .open = open_process_link,
                                                  .close = close_process_link,
                                                  .abandon = abandon_process_link,
                                                  .destroy = destroy_process_transport };
        struct process_transport *t = xcalloc(1, sizeof(*t));

        t->transport.ops = &ops;
        t->loop = loop;
        return t;
}

struct transport *transport_local_create(uv_loop_t *loop, const char *program,
                                         const char *container)
{
        struct process_transport *t = create_process_transport(loop);

        strv_push(&t->words, program);
        for (char **e = environ; *e; e++)
                strv_push(&t->env, *e);
        strv_env_set(&t->env, "HNLAUNCH_MANAGED", "1");
        if (container)
                strv_env_set(&t->env, CONTAINER_ORDER, container);
        return &t->transport;
}

struct transport *transport_command_create(uv_loop_t *loop, const struct ssh_options *o,
                                           struct error *err)
{
        struct process_transport *t = create_process_transport(loop);

        t->options = o;
        if (shell_words_split(o->ssh_command ? o->ssh_command : "ssh", &t->words, err) < 0) {
                err_wrap(err, "ssh command");
                destroy_process_transport(&t->transport);
                return NULL;
        }
        return &t->transport;
}

struct transport *transport_program_create(uv_loop_t *loop, const char *via, const char *command,
                                           struct error *err)
{
        struct process_transport *t = create_process_transport(loop);

        if (program_link_parse(via, &t->program, err) < 0) {
                destroy_process_transport(&t->transport);
                return NULL;
        }
        t->bootstrap = xasprintf(
                "%s%s\n",
                program_link_is_managed(via) ? "HNLAUNCH_MANAGED=1; export HNLAUNCH_MANAGED; " : "",
                command);
        program_link_environment(&t->program, &t->env);
        return &t->transport;
}
