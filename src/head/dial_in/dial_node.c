/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another node than node 0: an agent of this machine, and bytes between it and node 0. Each side is
 * read no further while too many bytes wait for the other.
 *
 * The end of the input ends the agent. After the end of the agent and of all output node 0 is told
 * (EXIT), and may start another agent (WELCOME) or end this node (END). Without node 0 the agent's
 * input is closed, and this node ends after the agent.
 *
 * A platform ends a job with TERM to every node. Node 0 then stops all ranks in order, so this node
 * waits for the grace time and a little more; only then, or at the second signal, the agent is
 * ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/dial_in/dial_call.h"
#include "head/dial_in/dial_peer.h"
#include "head/model/stop_orders.h"
#include "head/output/say.h"

enum {
        NODE_SIGNALS = 3,
        WAITING_MAX = 1 << 20,  /* bytes waiting for a side; above, the other side is not read */
        ORDERLY_MORE_MS = 1000, /* beside the grace time: for node 0 to stop all ranks */
        PIPE_READ = 64 << 10,
};

struct dial_node {
        uv_loop_t loop;
        struct dial_in *d;
        struct dial_peer *peer; /* node 0; stays when closed, for the agent's last output */
        struct transport *local;
        struct link *agent;        /* NULL: none was started */
        uv_pipe_t pipe;            /* to the agent */
        bool piped;                /* @pipe is open */
        bool ended;                /* the agent's process has ended */
        struct buf out, in_flight; /* for the agent */
        uv_write_t write;
        bool writing;
        uv_timer_t orderly; /* ends the agent when node 0 takes too long */
        uv_signal_t signals[NODE_SIGNALS];
        struct {
                struct stop_orders orders;
                int signo; /* of the end of this node, 0 = none */
        } stop;
        bool over;    /* node 0 has said the end, or is lost */
        bool has_end; /* d->end has the verdict of node 0 */
        /* Of the agent; why node 0 is lost; bytes of @pipe. */
        char exit_text[160], lost[160], read[PIPE_READ];
};

static void start_node_agent(struct dial_node *n);

/* --- the end ---------------------------------------------------------------------------------- */

/* Closes the agent's input to end the agent, or ends this node if there is no agent. */
static void end_node(struct dial_node *n)
{
        n->over = true;
        if (!n->agent)
                uv_stop(&n->loop);
        else if (n->piped && !uv_is_closing((uv_handle_t *)&n->pipe))
                uv_close((uv_handle_t *)&n->pipe, NULL);
}

/* Tells node 0 of the agent's end, after the last byte of output. */
static void finish_node_agent(struct dial_node *n)
{
        /* The process may be gone before the last bytes are read. */
        bool drained = !n->piped || uv_is_closing((uv_handle_t *)&n->pipe);

        if (!n->agent || !n->ended || !drained)
                return;
        link_close(n->agent);
        n->agent = NULL;
        n->piped = false;
        buf_finish(&n->out);
        /* No other agent will be started here. */
        if (n->over || n->stop.signo) {
                uv_stop(&n->loop);
                return;
        }
        dial_peer_send(n->peer, DIAL_EXIT, n->exit_text, strlen(n->exit_text));
}

/* --- from node 0 to the agent ----------------------------------------------------------------- */

static void flush_node_pipe(struct dial_node *n);

static void on_pipe_written(uv_write_t *req, int status)
{
        struct dial_node *n = req->data;

        n->writing = false;
        buf_finish(&n->in_flight);
        if (status < 0)
                return; /* the agent has ended: the output is read to the end */
        flush_node_pipe(n);
        if (buf_len(&n->out) < WAITING_MAX)
                dial_peer_pause(n->peer, false);
}

static void flush_node_pipe(struct dial_node *n)
{
        uv_buf_t piece;

        if (n->writing || !n->piped || uv_is_closing((uv_handle_t *)&n->pipe) || !buf_len(&n->out))
                return;
        n->in_flight = n->out;
        n->out = (struct buf)BUF_INIT;
        piece = uv_buf_init((char *)n->in_flight.mem + n->in_flight.start,
                            (unsigned)buf_len(&n->in_flight));
        n->write.data = n;
        n->writing = uv_write(&n->write, (uv_stream_t *)&n->pipe, &piece, 1, on_pipe_written) == 0;
}

static void on_node_record(struct dial_peer *p, const struct dial_record *r)
{
        struct dial_node *n = p->owner;

        /* Bytes for an agent that has ended are dropped. */
        if (r->type == DIAL_DATA && n->agent && !n->over) {
                buf_append(&n->out, r->body, r->len);
                flush_node_pipe(n);
                if (buf_len(&n->out) >= WAITING_MAX)
                        dial_peer_pause(p, true);
        } else if (r->type == DIAL_WELCOME && !n->agent) {
                start_node_agent(n);
        } else if (r->type != DIAL_NOTICE && dial_end_decode(&n->d->end, r) == 0) {
                /* A NOTICE has the same form, but is no end. */
                n->has_end = true;
                end_node(n);
        }
}

static void on_head_broken(struct dial_peer *p, enum dial_peer_fault fault UNUSED, const char *text)
{
        struct dial_node *n = p->owner;

        if (!n->over)
                snprintf(n->lost, sizeof(n->lost), "%s", text);
        end_node(n);
}

/* --- from the agent to node 0 ----------------------------------------------------------------- */

static void on_pipe_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *ret)
{
        struct dial_node *n = h->data;

        *ret = uv_buf_init(n->read, sizeof(n->read));
}

static void on_pipe_read(uv_stream_t *s, ssize_t got, const uv_buf_t *buf)
{
        struct dial_node *n = s->data;

        if (got < 0) {
                uv_close((uv_handle_t *)s, NULL);
                finish_node_agent(n);
        } else if (got > 0) {
                dial_peer_send(n->peer, DIAL_DATA, buf->base, (size_t)got);
                if (dial_peer_waiting(n->peer) >= WAITING_MAX)
                        uv_read_stop(s);
        }
}

static void on_head_writable(struct dial_peer *p)
{
        struct dial_node *n = p->owner;

        if (n->piped && !uv_is_closing((uv_handle_t *)&n->pipe) &&
            dial_peer_waiting(p) < WAITING_MAX)
                uv_read_start((uv_stream_t *)&n->pipe, on_pipe_alloc, on_pipe_read);
}

/* --- the agent -------------------------------------------------------------------------------- */

/* The agent's process has ended, or could not be started. */
static void on_agent_ended(void *ctx, const struct link_failure *why)
{
        struct dial_node *n = ctx;

        n->ended = true;
        snprintf(n->exit_text, sizeof(n->exit_text), "%.150s", why->fact);
        finish_node_agent(n);
}

static void on_agent_opened(void *ctx, int fd)
{
        struct dial_node *n = ctx;

        /* The end came during the start: closing ends the agent. */
        if (n->over) {
                fd_close(fd);
                return;
        }
        uv_pipe_init(&n->loop, &n->pipe, 0);
        n->pipe.data = n;
        n->piped = true;
        if (uv_pipe_open(&n->pipe, fd) < 0)
                fd_close(fd);
        uv_read_start((uv_stream_t *)&n->pipe, on_pipe_alloc, on_pipe_read);
        flush_node_pipe(n);
}

static void on_agent_noise(void *ctx UNUSED, const char *text, size_t len)
{
        fwrite(text, 1, len, stderr);
}

static void start_node_agent(struct dial_node *n)
{
        static const struct link_callbacks cb = { .opened = on_agent_opened,
                                                  .failed = on_agent_ended,
                                                  .ended = on_agent_ended,
                                                  .noise = on_agent_noise };
        const struct link_target here = { .host = "localhost" };
        struct error err;

        n->ended = false;
        n->agent = link_open(n->local, &here, &cb, n, &err); /* of a process: never NULL */
}

/* --- signals ---------------------------------------------------------------------------------- */

/* Ends the agent, which tells node 0 why. */
static void on_orderly_over(uv_timer_t *t)
{
        struct dial_node *n = t->data;

        if (n->over || !n->agent)
                uv_stop(&n->loop);
        else
                end_node(n);
}

/* A signal to another node than node 0: managers send the same signal to all, so the first waits
 * for the orderly stop by node 0. */
static void on_node_signal(uv_signal_t *s, int signo)
{
        struct dial_node *n = s->data;
        enum stop_order order = stop_orders_take(&n->stop.orders, signo, clock_ms());

        if (order == STOP_ORDER_SAME)
                return;
        if (order == STOP_ORDER_FIRST && n->agent && !n->over) {
                n->stop.signo = signo;
                if (!n->d->quiet)
                        say("hnlaunch: node %d got SIG%s: waiting for node 0 to stop the ranks\n",
                            n->d->place.rank, sigabbrev_np(signo));
                uv_timer_start(&n->orderly, on_orderly_over,
                               (uint64_t)(n->d->grace_ms + ORDERLY_MORE_MS), 0);
                return;
        }
        n->stop.signo = signo;
        on_orderly_over(&n->orderly);
}

static void watch_signals(struct dial_node *n)
{
        static const int watched[NODE_SIGNALS] = { SIGTERM, SIGINT, SIGHUP };

        for (size_t i = 0; i < NODE_SIGNALS; i++) {
                uv_signal_init(&n->loop, &n->signals[i]);
                n->signals[i].data = n;
                uv_signal_start(&n->signals[i], on_node_signal, watched[i]);
                uv_unref((uv_handle_t *)&n->signals[i]);
        }
        signal(SIGUSR1, SIG_IGN); /* node 0 gets both, too, and passes both on to all ranks */
        signal(SIGUSR2, SIG_IGN);
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* Nothing to do: n->peer stays for the agent's last output, and close_dial_node() frees the
 * memory. */
static void on_head_closed(struct dial_peer *p UNUSED)
{
}

static void close_dial_node(struct dial_node *n)
{
        dial_peer_close(n->peer);
        for (size_t i = 0; i < NODE_SIGNALS; i++)
                uv_close((uv_handle_t *)&n->signals[i], NULL);
        uv_close((uv_handle_t *)&n->orderly, NULL);
        if (n->piped && !uv_is_closing((uv_handle_t *)&n->pipe))
                uv_close((uv_handle_t *)&n->pipe, NULL);
        link_close(n->agent);
        transport_destroy(n->local);
        /* Until all handles are closed. */
        uv_run(&n->loop, UV_RUN_DEFAULT);
        uv_loop_close(&n->loop);
        free(n->peer);
        buf_finish(&n->out);
        buf_finish(&n->in_flight);
}

/* Carries bytes until the end. Returns the exit code. */
static int carry_node(struct dial_node *n, struct dial_call *call, struct diags *diags)
{
        static const struct dial_peer_ops ops = { .record = on_node_record,
                                                  .writable = on_head_writable,
                                                  .broken = on_head_broken,
                                                  .closed = on_head_closed };
        const struct dial_place *p = &n->d->place;
        int code;

        n->peer = xcalloc(1, sizeof(*n->peer));
        n->peer->ops = &ops;
        n->peer->owner = n;
        uv_timer_init(&n->loop, &n->orderly);
        n->orderly.data = n;
        watch_signals(n);
        /* Before the adoption: records that came with WELCOME are for this agent. */
        start_node_agent(n);
        if (dial_peer_adopt(n->peer, &n->loop, call->c.fd, &call->c.stream, &call->c.in) == 0)
                uv_run(&n->loop, UV_RUN_DEFAULT);
        else
                snprintf(n->lost, sizeof(n->lost), "its connection cannot be used");
        call->c.fd = -1; /* the peer's */
        /* The code of the job, if told; else that of a shell for the signal. */
        code = n->has_end ? n->d->end.code : n->stop.signo ? EX_SIGNAL + n->stop.signo : EX_FAILED;
        if (!n->has_end && !n->stop.signo)
                diag_help(diag_add(diags, HN_HEAD_LOST, EX_FAILED, "lost node 0 at %s port %d: %s",
                                   p->host, p->port, n->lost),
                          "its own messages say why it ended; the ranks of this node were stopped");
        close_dial_node(n);
        return code;
}

/* Whether a name means every machine itself. */
static bool is_own_name(const char *host)
{
        return !strncmp(host, "127.", 4) || !strcmp(host, "::1") || !strcmp(host, "localhost");
}

/* Reports a call without success. Returns the exit code. */
static int report_call(const struct dial_in *d, int r, const struct error *err, struct diags *diags)
{
        const struct dial_place *p = &d->place;
        struct diag *di;

        if (r == 1)
                return d->end.code;
        if (r == -ECONNREFUSED) {
                diag_add(diags, HN_HEAD_REFUSED, d->end.code, "node 0 refused node %d: %s", p->rank,
                         d->end.text);
                return d->end.code;
        }
        if (r == -EPERM || err->code == ENOKEY) {
                diag_help(diag_add(diags, HN_SECRET_UNREAD, EX_NOPERM,
                                   "node %d cannot join node 0: %s", p->rank, err->text),
                          "do all nodes share this home? else give every node the same secret: "
                          "--dial-secret FILE, or HNLAUNCH_DIAL_SECRET");
                return EX_NOPERM;
        }
        di = diag_add(diags, HN_HEAD_UNREACHED, EX_NOHOST,
                      "node %d cannot join node 0 at %s port %d: %s", p->rank, p->host, p->port,
                      err->text);
        if (is_own_name(p->host))
                diag_help(di,
                          "%s is this machine itself: give the other nodes a name of node 0 that "
                          "they can reach",
                          p->host);
        else
                diag_help(di, "does hnlaunch run on node 0, and is the port open? net.dial_timeout "
                              "waits longer");
        return EX_NOHOST;
}

int dial_node_run(struct dial_in *d, const char *agent, const char *container, struct diags *diags)
{
        static struct dial_node n; /* with a buffer too large for a stack */
        struct dial_call call;
        struct error err = { 0 };
        int r = dial_call(&call, d, &err);

        if (r != 0)
                return report_call(d, r, &err, diags);
        n.d = d;
        r = uv_loop_init(&n.loop);
        if (r < 0) {
                diag_add(diags, HN_HEAD_UNREACHED, EX_FAILED, "cannot start the event loop: %s",
                         uv_strerror(r));
                caller_finish(&call.c);
                return EX_FAILED;
        }
        n.local = transport_local_create(&n.loop, agent, container);
        r = carry_node(&n, &call, diags);
        caller_finish(&call.c);
        return r;
}
