/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link waits in the transport until the settle timer makes a round of all waiting links. A round
 * has the handles of a listener and a command, and a timer, which ticks while the port is open or a
 * connection is ending. Joined connections belong to the round, too; the last closed handle frees
 * the round.
 *
 * Where a command copies the agent to the nodes, they keep it in their caches, and the next command
 * starts it from there, if this machine has it, too. A node that has lost it says so by its exit
 * code: its link waits for another round, with a copy.
 *
 * To close a link, END is sent, and the agent leaves. The command ends after the last agent.
 * SIGTERM ends a command without calls of agents, and a command still there DIAL_LINGER_MS after
 * the destruction of the transport.
 *
 * The command's stderr tells why an agent failed or was ended by the manager, often a moment after
 * the agent's end. So the loss is held back until the command has told the reason or
 * ended, LOSS_MS at most.
 */
#include "head/dial_in/transport_call.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/dial_in/call_command.h"
#include "head/dial_in/dial_listener.h"
#include "head/nodes/agent_binary.h"
#include "wire/msg.h"

enum {
        CALL_TICK_MS = 250,
        CALL_LOSS_MS = 500, /* how long a loss waits for the reason */
};

struct call_transport;
struct call_round;

struct call_link {
        struct link link;
        struct call_transport *t;
        struct call_round *round; /* NULL: waits for the settle timer */
        const struct link_callbacks *cb;
        void *ctx;
        char *host;
        size_t number;
        struct dial_peer *peer; /* NULL: has not called */
        bool open, over;        /* opened() was called; the last callback was */
        int64_t lost_ns;        /* 0: not lost; else the loss waits for the command's reason */
        char loss[200];
        UT_hash_handle hh; /* by @host */
};

struct call_round {
        struct call_transport *t;
        struct dial_listener listener;
        bool listening;
        uint8_t psk[NOISE_KEY];
        struct dial_rejects rejects;
        struct call_command command;
        bool copies; /* else nodes may lack the agent */
        bool missed; /* ... and some do */
        uv_timer_t timer;
        size_t absent; /* links without a call of the node */
        /* Of the round; after the destruction, of the last signal to the command. */
        int64_t since_ns;
        int handles; /* and links, and joined connections; the last frees the round */
        LIST_ENTRY(call_round) entry;
};

struct call_transport {
        struct transport transport;
        uv_loop_t *loop;
        const struct call_options *o;
        struct program_link program;
        struct call_agent cached;
        bool missed;              /* by a node: from now on the command copies the agent */
        struct call_link **links; /* by number; NULL = none */
        struct call_link *by_host;
        uv_timer_t settle;
        LIST_HEAD(, call_round) rounds;
        bool destroying, settle_closed;
};

/* --- the end of a round ----------------------------------------------------------------------- */

/* Frees a destroyed transport, when the timer is closed and the last round is freed. */
static void free_call_transport(struct call_transport *t)
{
        if (!t->destroying || !t->settle_closed || !LIST_EMPTY(&t->rounds))
                return;
        program_link_finish(&t->program);
        free(t->links);
        free(t);
}

/* Drops one of r->handles. The last frees the round. */
static void release_round(struct call_round *r)
{
        struct call_transport *t = r->t;

        if (--r->handles > 0)
                return;
        LIST_REMOVE(r, entry);
        free(r);
        free_call_transport(t);
}

static void on_round_handle_closed(uv_handle_t *h)
{
        release_round(h->data);
}

static void on_round_listener_closed(uv_handle_t *h)
{
        struct dial_listener *l = h->data;

        release_round(l->owner);
}

/* Closes the port: all nodes have called, or none is waited for any more. */
static void close_round_port(struct call_round *r)
{
        size_t n = r->rejects.foreign + r->rejects.silent + r->rejects.replayed;

        if (!r->listening)
                return;
        r->listening = false;
        if (n)
                log_line(LOG_WARN,
                         "%zu connection%s to the port for the agents %s not from this job, the "
                         "newest from %s",
                         n, n == 1 ? "" : "s", n == 1 ? "was" : "were", r->rejects.last);
        sodium_memzero(r->psk, sizeof(r->psk));
        dial_listener_close(&r->listener, on_round_listener_closed);
}

static void on_call_settle(uv_timer_t *timer);

/* Has links made to rounds, and opened, from the loop. */
static void schedule_settle(struct call_transport *t)
{
        if (!t->destroying)
                uv_timer_start(&t->settle, on_call_settle, 0, 0);
}

/* Closes idle handles. The timer is the last, for the timer watches the others. */
static void settle_round(struct call_round *r)
{
        if (r->absent == 0) {
                close_round_port(r);
                /* All nodes have called or failed: the links open. */
                schedule_settle(r->t);
        }
        if (r->listening || !dial_listener_idle(&r->listener) || !r->command.exited ||
            !r->command.stderr_ended || uv_is_closing((uv_handle_t *)&r->timer))
                return;
        call_command_close(&r->command, on_round_handle_closed);
        uv_close((uv_handle_t *)&r->timer, on_round_handle_closed);
}

/* --- links ------------------------------------------------------------------------------------ */

/* The next link of a round behind @number - 1, or NULL. */
static struct call_link *find_round_link(const struct call_round *r, size_t number)
{
        for (size_t i = number; i < r->t->o->hosts; i++)
                if (r->t->links[i] && r->t->links[i]->round == r)
                        return r->t->links[i];
        return NULL;
}

/* Fails the links without a call of the node. */
static void fail_absent_links(struct call_round *r, const char *fact)
{
        struct link_failure why = { .phase = LINK_EXEC, .cause = LINK_SPAWN };
        struct call_link *l;

        snprintf(why.fact, sizeof(why.fact), "%s", fact);
        snprintf(why.evidence, sizeof(why.evidence), "%s", r->command.words);
        for (size_t i = 0; (l = find_round_link(r, i));) {
                i = l->number + 1; /* failed() may close the link */
                if (l->peer || l->open || l->over)
                        continue;
                l->over = true;
                r->absent--;
                l->cb->failed(l->ctx, &why);
        }
        settle_round(r);
}

/* Adds a note on a killed command: the manager may then end the agents. */
static void blame_command(const struct call_command *c, struct link_failure *why)
{
        size_t n = strlen(why->fact);

        /* A command killed by hnlaunch itself explains nothing. */
        if (!c->exited || !c->signal || c->killed)
                return;
        n += (size_t)snprintf(why->fact + n, sizeof(why->fact) - n, ", after ");
        call_command_describe(c, why->fact + n, sizeof(why->fact) - n);
        snprintf(why->help, sizeof(why->help),
                 "%s must live as long as the job; `dmesg` here tells of a lack of memory",
                 c->name);
}

static void end_call_link(struct call_link *l, const char *text)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_ENDED };

        if (!l || l->over)
                return;
        l->over = true;
        snprintf(why.fact, sizeof(why.fact), "%s", text);
        snprintf(why.evidence, sizeof(why.evidence), "%s", l->round->command.words);
        blame_command(&l->round->command, &why);
        /* The manager's own reason, if told, replaces the text. */
        program_link_classify(&l->t->program, &why);
        if (l->open)
                l->cb->ended(l->ctx, &why);
        else
                l->cb->failed(l->ctx, &why);
}

static void start_ticking(struct call_round *r);

/* Whether the command has said why agents end. */
static bool has_told_reason(const struct call_round *r)
{
        struct link_failure why = { .phase = LINK_OPEN };

        snprintf(why.evidence, sizeof(why.evidence), "%s", r->command.words);
        return program_link_classify(&r->t->program, &why);
}

/* Ends the link of a lost agent, now or after the command has told the reason. */
static void lose_call_link(struct call_link *l, const char *text)
{
        struct call_round *r = l->round;

        /* Only an open link waits, and only while the reason may still come. */
        if (!l->open || l->over || r->command.exited || has_told_reason(r)) {
                end_call_link(l, text);
                return;
        }
        if (l->lost_ns)
                return;
        l->lost_ns = clock_ns();
        snprintf(l->loss, sizeof(l->loss), "%s", text);
        start_ticking(r);
}

/* Ends the links lost @ms ago or earlier. Returns whether a loss is still held back. */
static bool end_lost_links(struct call_round *r, int64_t ms)
{
        int64_t last_ns = clock_ns() - ms * 1000000;
        struct call_link *l;
        bool held = false;

        for (size_t i = 0; (l = find_round_link(r, i));) {
                i = l->number + 1; /* ended() may close the link */
                if (!l->lost_ns || l->over)
                        continue;
                if (l->lost_ns <= last_ns)
                        end_call_link(l, l->loss);
                else
                        held = true;
        }
        return held;
}

/* Has the nodes without the agent wait for another round, which copies it to them. */
static void retry_missing_links(struct call_round *r)
{
        struct call_link *l;

        if (!r->missed)
                return;
        r->missed = false;
        r->t->missed = true;
        r->command.words[0] = '\0';
        for (size_t i = 0; (l = find_round_link(r, i));) {
                i = l->number + 1;
                if (l->peer || l->open || l->over)
                        continue;
                l->round = NULL;
                r->absent--;
                r->handles--; /* the timer stays */
        }
        schedule_settle(r->t);
        settle_round(r);
}

static void on_command_said(struct call_command *c)
{
        struct call_round *r = c->owner;

        r->missed |= !r->copies && strstr(c->words, "exit code " CALL_NO_AGENT);
        if (has_told_reason(r))
                end_lost_links(r, 0);
}

/* Fails links whose agents do not call in time, ends links that stay lost, and kills a start
 * command that does not end. */
static void on_round_tick(uv_timer_t *timer)
{
        struct call_round *r = timer->data;
        int64_t now = clock_ns();
        char limit[32], fact[96];
        bool ending = end_lost_links(r, CALL_LOSS_MS);

        retry_missing_links(r);
        ending |= dial_listener_linger(&r->listener);
        if (r->listening) {
                dial_listener_tick(&r->listener);
                if (r->t->o->deadline_ms >= 0 &&
                    now - r->since_ns >= r->t->o->deadline_ms * 1000000) {
                        format_duration(limit, sizeof(limit), r->t->o->deadline_ms * 1000);
                        snprintf(fact, sizeof(fact), "its agent did not call within %s", limit);
                        fail_absent_links(r, fact);
                }
        }
        /* SIGTERM the first time, SIGKILL the second. */
        if (r->t->destroying && now - r->since_ns >= (int64_t)DIAL_LINGER_MS * 1000000) {
                call_command_kill(&r->command);
                r->since_ns = now;
        }
        if (!r->listening && !ending && !r->t->destroying)
                uv_timer_stop(timer);
        settle_round(r);
}

static void start_ticking(struct call_round *r)
{
        if (!uv_is_closing((uv_handle_t *)&r->timer) && !uv_is_active((uv_handle_t *)&r->timer))
                uv_timer_start(&r->timer, on_round_tick, CALL_TICK_MS, CALL_TICK_MS);
}

static void send_call_link(struct link *link, struct buf *out)
{
        struct call_link *l = container_of(link, struct call_link, link);

        /* The end of the link is told in another way. */
        if (!l->open || l->over || !l->peer) {
                buf_clear(out);
                return;
        }
        dial_peer_send_bytes(l->peer, out);
}

/* Ends the link; the agent learns of the end by a record. The round is freed with the last link. */
static void close_call_link(struct link *link)
{
        static const struct dial_end end = { .text = "the head has ended the link" };
        struct call_link *l = container_of(link, struct call_link, link);
        struct call_round *r = l->round;

        if (r && !l->peer && !l->open && !l->over)
                r->absent--;
        if (l->peer) {
                dial_peer_end(l->peer, DIAL_END, &end);
                start_ticking(r);
        }
        l->t->links[l->number] = NULL;
        HASH_DEL(l->t->by_host, l);
        free(l->host);
        free(l);
        if (!r)
                return;
        settle_round(r);
        release_round(r);
}

/* The command serves all links of the round, and ends with the last waiting link. */
static void abandon_call_link(struct link *link)
{
        struct call_link *l = container_of(link, struct call_link, link);
        struct call_round *r = l->round;
        bool shared = false;

        for (struct call_link *other = r ? find_round_link(r, 0) : NULL; other && !shared;
             other = find_round_link(r, other->number + 1))
                shared |= other != l;
        /* Joined agents get END, and the command ends after the last agent. */
        if (r && !shared && LIST_EMPTY(&r->listener.joined))
                call_command_kill(&r->command);
        close_call_link(link);
}

/* --- connections ------------------------------------------------------------------------------ */

/* The link for the name of a node: as in the host list, or without the domain. */
static struct call_link *find_called_link(const struct call_round *r, const char *name)
{
        size_t bare = strcspn(name, ".");
        struct call_link *l;

        HASH_FIND_STR(r->t->by_host, name, l);
        if (l)
                return l->round == r ? l : NULL;
        for (size_t i = 0; (l = find_round_link(r, i)); i = l->number + 1)
                if (strcspn(l->host, ".") == bare && !strncmp(l->host, name, bare))
                        return l;
        return NULL;
}

/* A proved peer names a node: accepted if the round waits for the node, else refused with the
 * reason. */
static void on_call_joined(struct dial_peer *p, const struct dial_join *m)
{
        struct call_round *r = p->owner;
        struct call_link *l = find_called_link(r, m->name);

        dial_listener_join(&r->listener, p);
        r->handles++;
        /* find_peer_link() then finds no link for a refused agent. */
        p->join.rank = (uint32_t)r->t->o->hosts; /* of no link */
        if (m->version != MSG_VERSION)
                dial_peer_refuse(p, EX_PROTOCOL, "the agent has another version than hnlaunch");
        else if (!l || l->peer || l->open || l->over)
                dial_peer_refuse(p, EX_PROTOCOL, "%s",
                                 l ? "another agent of this node is there"
                                   : "this node is none of those that are waited for");
        if (p->ended) /* refused */
                return;
        p->join.rank = (uint32_t)l->number;
        l->peer = p;
        r->absent--;
        settle_round(r);
}

/* The link of a connection; NULL = none any more. */
static struct call_link *find_peer_link(const struct dial_peer *p)
{
        const struct call_round *r = p->owner;
        struct call_link *l = p->join.rank < r->t->o->hosts ? r->t->links[p->join.rank] : NULL;

        return l && l->peer == p ? l : NULL;
}

/* Bytes of the agent, or the words about the agent's end. */
static void on_call_record(struct dial_peer *p, const struct dial_record *rec)
{
        struct call_link *l = find_peer_link(p);
        char text[200];

        if (!l || l->over)
                return;
        if (rec->type == DIAL_DATA) {
                l->cb->received(l->ctx, rec->body, rec->len);
        } else if (rec->type == DIAL_EXIT) {
                snprintf(text, sizeof(text), "%.*s", (int)MIN(rec->len, sizeof(text) - 1),
                         (const char *)rec->body);
                /* The agent has left in order, so the command has no reason to tell. */
                if (!strcmp(text, "the agent ended with exit code 0"))
                        end_call_link(l, text);
                else
                        lose_call_link(l, text);
        }
}

static void on_call_writable(struct dial_peer *p)
{
        struct call_link *l = find_peer_link(p);

        if (l && !l->over)
                l->cb->writable(l->ctx);
}

/* The connection is gone: of an unknown peer another rejected connection, of a node the loss of the
 * link. */
static void on_call_broken(struct dial_peer *p, enum dial_peer_fault fault, const char *text)
{
        struct call_round *r = p->owner;
        struct call_link *l;
        char why[200];

        if (p->state != PEER_JOINED) {
                dial_listener_reject(&r->listener, p, fault);
                return;
        }
        l = find_peer_link(p);
        if (!l)
                return;
        l->peer = NULL;
        snprintf(why, sizeof(why), "connection lost (%s)", text);
        lose_call_link(l, why);
}

static void on_call_closed(struct dial_peer *p)
{
        struct call_round *r = p->owner;
        struct call_link *l = find_peer_link(p);
        bool joined = dial_listener_closed(&r->listener, p);

        if (l)
                l->peer = NULL;
        /* Before the release, which may free the round. */
        settle_round(r);
        if (joined)
                release_round(r);
}

static const struct dial_peer_ops call_peer_ops = {
        .joined = on_call_joined,
        .record = on_call_record,
        .writable = on_call_writable,
        .broken = on_call_broken,
        .closed = on_call_closed,
};

/* --- starting a round ------------------------------------------------------------------------- */

/* Listens for the agents of the round. Returns the port, or negative with @err. */
static int open_round_port(struct call_round *r, struct error *err)
{
        struct sockaddr_storage own;
        int len = sizeof(own), ret;

        r->listener.psk = r->psk;
        r->listener.rejects = &r->rejects;
        r->listener.ops = &call_peer_ops;
        r->listener.owner = r;
        /* At all addresses, on a port chosen by the kernel. */
        ret = dial_listener_open(&r->listener, r->t->loop, NULL, 0, on_round_listener_closed, err);
        /* Also a handle that is being closed after a failure keeps the round. */
        r->handles += r->listener.tcp.type == UV_TCP;
        if (ret < 0)
                return ret;
        r->listening = true;
        if (uv_tcp_getsockname(&r->listener.tcp, (struct sockaddr *)&own, &len) < 0)
                return err_set(err, EADDRNOTAVAIL, "the port for the agents has no number");
        return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                               : ((struct sockaddr_in *)&own)->sin_port);
}

static void on_command_ended(struct call_command *c, const char *fact)
{
        struct call_round *r = c->owner;

        log_line(LOG_INFO, "%s", fact);
        /* No reason will come any more. */
        end_lost_links(r, 0);
        r->missed |= !r->copies && c->status == atoi(CALL_NO_AGENT);
        retry_missing_links(r);
        fail_absent_links(r, fact);
}

/* Names the agent as in the caches of the nodes. */
static void name_cached_agent(struct call_transport *t)
{
        struct agent_binaries set;
        struct error err = { 0 };

        if (agent_binaries_load(&set, t->o->agent, false, &err) == 0) {
                snprintf(t->cached.name, sizeof(t->cached.name), "agent-%s", set.v[0].id);
                t->cached.size = set.v[0].len;
        }
        agent_binaries_finish(&set);
}

/* Whether the nodes probably have the agent: so does this machine. */
static bool nodes_have_agent(const struct call_transport *t)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        CLEANUP(free_textp)
        char *path = xasprintf("%s%s/hnlaunch/%s",
                               cache && *cache ? cache
                               : home          ? home
                                               : "",
                               cache && *cache ? "" : "/.cache", t->cached.name);

        return *t->cached.name && access(path, X_OK) == 0;
}

/* Opens the port, and starts the command for the round's links. */
static void start_round(struct call_round *r)
{
        CLEANUP(buf_finish) struct buf hosts = BUF_INIT;
        struct call_start start = { .program = &r->t->program,
                                    .agent = r->t->o->agent,
                                    .cached = &r->t->cached,
                                    .container = r->t->o->container,
                                    .first = find_round_link(r, 0)->host };
        struct error err = { 0 };
        struct call_link *l;
        char fact[300];

        start.port = open_round_port(r, &err);
        if (start.port < 0) {
                /* No process is waited for. */
                r->command.exited = r->command.stderr_ended = true;
                start_ticking(r);
                fail_absent_links(r, err.text);
                return;
        }
        for (size_t i = 0; (l = find_round_link(r, i)); i = l->number + 1)
                buf_printf(&hosts, "%s%s", start.count++ ? "," : "", l->host);
        buf_append(&hosts, "", 1);
        start.hosts = (const char *)buf_data(&hosts);
        start.copies = r->copies = r->t->missed || !nodes_have_agent(r->t);
        r->handles += call_command_start(&r->command, r->t->loop, &start, r->psk);
        start_ticking(r);
        if (r->command.exited) {
                snprintf(fact, sizeof(fact), "cannot start %.250s", r->command.words);
                /* Or the same words would be evidence as well. */
                r->command.words[0] = '\0';
                fail_absent_links(r, fact);
        }
}

/* Makes a round of all waiting links. */
static void make_round(struct call_transport *t)
{
        struct call_round *r = xcalloc(1, sizeof(*r));

        r->t = t;
        LIST_INSERT_HEAD(&t->rounds, r, entry);
        r->since_ns = clock_ns();
        r->command.owner = r;
        r->command.said = on_command_said;
        r->command.ended = on_command_ended;
        uv_timer_init(t->loop, &r->timer);
        r->timer.data = r;
        r->handles = 1; /* the timer */
        for (size_t i = 0; i < t->o->hosts; i++) {
                if (!t->links[i] || t->links[i]->round)
                        continue;
                t->links[i]->round = r;
                r->absent++;
                r->handles++;
                t->links[i]->cb->phase(t->links[i]->ctx, LINK_EXEC);
        }
        start_round(r);
}

/* Opens the links of a round, of which every node has called or failed. Until then no agent goes
 * on: all have been started from the same copy, and the first agent removes the copy. */
static void open_round_links(struct call_round *r)
{
        struct call_link *l;

        for (size_t i = 0; (l = find_round_link(r, i));) {
                i = l->number + 1;
                if (l->open || l->over || !l->peer)
                        continue;
                l->open = true;
                dial_peer_send(l->peer, DIAL_WELCOME, NULL, 0);
                l->cb->opened(l->ctx, -1);
        }
}

static void on_call_settle(uv_timer_t *timer)
{
        struct call_transport *t = timer->data;
        struct call_round *r;
        bool waiting = false;

        for (size_t i = 0; i < t->o->hosts; i++)
                waiting |= t->links[i] && !t->links[i]->round;
        if (waiting)
                make_round(t);
        for (r = LIST_FIRST(&t->rounds); r; r = LIST_NEXT(r, entry))
                if (r->absent == 0)
                        open_round_links(r);
}

static struct link *open_call_link(struct transport *transport, const struct link_target *to,
                                   const struct link_callbacks *cb, void *ctx,
                                   struct error *err UNUSED)
{
        struct call_transport *t = container_of(transport, struct call_transport, transport);
        struct call_link *l = xcalloc(1, sizeof(*l));

        *l = (struct call_link){ .link = { transport },
                                 .t = t,
                                 .cb = cb,
                                 .ctx = ctx,
                                 .host = xstrdup(to->host),
                                 .number = to->number };
        t->links[to->number] = l;
        HASH_ADD_KEYPTR(hh, t->by_host, l->host, strlen(l->host), l);
        schedule_settle(t);
        return &l->link;
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void on_settle_closed(uv_handle_t *h)
{
        struct call_transport *t = h->data;

        t->settle_closed = true;
        free_call_transport(t);
}

static void destroy_call_transport(struct transport *transport)
{
        struct call_transport *t = container_of(transport, struct call_transport, transport);
        struct call_round *r, *next;

        t->destroying = true;
        for (r = LIST_FIRST(&t->rounds); r; r = next) {
                next = LIST_NEXT(r, entry);
                r->since_ns = clock_ns();
                start_ticking(r);
                settle_round(r);
        }
        uv_close((uv_handle_t *)&t->settle, on_settle_closed);
}

struct transport *transport_call_create(uv_loop_t *loop, const struct call_options *o,
                                        struct error *err)
{
        static const struct transport_ops ops = { .open = open_call_link,
                                                  .close = close_call_link,
                                                  .abandon = abandon_call_link,
                                                  .destroy = destroy_call_transport,
                                                  .send = send_call_link };
        struct call_transport *t = xcalloc(1, sizeof(*t));

        if (program_link_parse(o->via, &t->program, err) < 0) {
                free(t);
                return NULL;
        }
        t->transport.ops = &ops;
        t->loop = loop;
        t->o = o;
        t->links = xcalloc(o->hosts, sizeof(struct call_link *));
        /* In a container the copy is mounted, or copied once more. */
        if (!o->container && program_link_copies(&t->program))
                name_cached_agent(t);
        LIST_INIT(&t->rounds);
        uv_timer_init(loop, &t->settle);
        t->settle.data = t;
        return &t->transport;
}
