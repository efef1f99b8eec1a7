/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts are taken from the event stream: each phase (connect, agent, push, start) prints a line
 * when the count is complete, with the time since the phase before; on a terminal all of them are
 * one line above all output, printed when the ranks have started or one writes. A launch without
 * remote nodes has no lines for connecting. Between two lines, progress_tick() and
 * EVENT_PUSH_PROGRESS update the live line of a terminal ten times a second; elsewhere a plain line
 * appears every five seconds.
 */
#include "head/output/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/model/role_list.h"
#include "head/nodes/transport.h"
#include "head/output/live_line.h"
#include "head/output/say.h"
#include "head/term/columns.h"

/* A launch of less than LIVE_AFTER_US has no line about a wait, which would only flicker. PHASES:
 * connect, agent, push, start. */
enum { LIVE_EVERY_US = 100000, LIVE_AFTER_US = 400000, PLAIN_EVERY_US = 5000000, PHASES = 4 };

struct node_progress {
        const char *host; /* lent by the hosts */
        char *login; /* what the login has printed that runs no command; NULL = it is not told */
        int phase;   /* enum link_phase */
        bool done, ready; /* connected or failed for good; HELLO has come */
};

struct push_progress {
        int64_t nodes, done;        /* to be pushed to, and complete */
        int64_t sent;               /* bytes */
        int64_t began_us, shown_us; /* the start, and the last line about the push */
};

/* A phase of the start that is over. */
struct phase {
        const char *name;
        int64_t n, of, us;
        char note[128];
};

struct progress {
        struct progress_options o;
        struct events *es;
        struct node_progress *nodes;
        size_t connected, ready, failed, uploaded; /* nodes */
        struct {
                bool connect, agents;
        } told; /* phases of nodes that have ended */
        /* When the newest node was connected, and was ready; the order to start; the last line
         * about a wait. Times of the event stream. */
        int64_t connect_us, ready_us, start_us, last_us;
        int64_t ranks, started; /* ranks that start with the run; of these, started ones */
        struct push_progress push;
        struct phase phases[PHASES]; /* on a terminal: that are over, and not yet printed */
        int n_phases;
        bool on_hold;           /* progress_on_hold() */
        bool written;           /* a rank has: no line about the start has a place any more */
        struct live_line *live; /* while ranks run */
};

/* Returns " ✔ connect 64 1.1s (slowest gpu031)  ✔ agent 64 0.1s", malloc'ed. A line ends before a
 * phase that would reach @width; 0 = one line. */
static char *format_phases(const struct progress *p, bool notes, size_t width)
{
        struct buf b = BUF_INIT;
        size_t used = 0;

        for (int i = 0; i < p->n_phases; i++) {
                const struct phase *f = &p->phases[i];
                bool note = notes && *f->note;
                char took[32], of[32] = "";
                CLEANUP(free_textp) char *part = NULL;

                format_duration(took, sizeof(took), f->us);
                if (f->n != f->of)
                        snprintf(of, sizeof(of), "/%" PRId64, f->of);
                part = xasprintf(" %s%s%s %s %" PRId64 "%s %s%s%s%s", p->o.color ? "\033[32m" : "",
                                 p->o.utf8 ? "✔" : "ok", p->o.color ? "\033[0m" : "", f->name, f->n,
                                 of, took, note ? " (" : "", note ? f->note : "", note ? ")" : "");
                used += columns_count(part, strlen(part)) + 1;
                if (i && width && used >= width) {
                        buf_appends(&b, "\n");
                        used = columns_count(part, strlen(part));
                } else if (i) {
                        buf_appends(&b, " ");
                }
                buf_appends(&b, part);
        }
        return buf_steal(&b);
}

/* Prints the phases that are over as one line, on a narrow terminal without notes, and on lines
 * that do not wrap. */
static void print_phases(struct progress *p)
{
        size_t width = columns_of_terminal(STDERR_FILENO);
        /* The notes go first when the terminal is narrow, then the line is broken. */
        CLEANUP(free_textp) char *full = format_phases(p, true, 0);
        CLEANUP(free_textp) char *brief = format_phases(p, false, width);

        if (p->n_phases)
                say("%s\n", columns_count(full, strlen(full)) < width ? full : brief);
        p->n_phases = 0;
}

/* Ends a phase: a part of a line on a terminal, which is printed when the ranks have started or one
 * writes, else a line. */
static void end_phase(struct progress *p, const char *name, int64_t n, int64_t of, const char *note,
                      int64_t us)
{
        struct phase *f = &p->phases[MIN(p->n_phases, PHASES - 1)];
        char took[32];

        format_duration(took, sizeof(took), us);
        if (!p->o.tty) {
                say("hnlaunch: %s %" PRId64 "/%" PRId64 " in %s%s%s%s\n", name, n, of, took,
                    *note ? " (" : "", note, *note ? ")" : "");
                return;
        }
        if (p->written)
                return;
        p->n_phases = MIN(p->n_phases + 1, PHASES);
        *f = (struct phase){ .name = name, .n = n, .of = of, .us = us };
        snprintf(f->note, sizeof(f->note), "%s", note);
        CLEANUP(free_textp) char *line = format_phases(p, true, 0);

        say_live(line, NULL);
}

/* A hold may import modules before it gives its nodes away. */
static const char *connect_name(const struct progress *p)
{
        return p->on_hold ? "hold" : "connect";
}

/* Ends the phase with the last node to connect, the slowest. With a failed node the launch may end,
 * so finish_nodes() has the line if the launch goes on. */
static void finish_connect(struct progress *p, const struct event *e)
{
        char note[128] = "";

        p->connect_us = e->us;
        if (!p->o.remote || p->failed || p->told.connect)
                return;
        p->told.connect = true;
        if (p->o.n_hosts > 1)
                snprintf(note, sizeof(note), "slowest %s", e->host);
        end_phase(p, connect_name(p), (int64_t)p->connected, (int64_t)p->o.n_hosts, note, e->us);
}

/* Ends the phase of agents, whose time begins when the last node was connected. */
static void finish_agents(struct progress *p, int64_t us)
{
        char note[128] = "";

        if (!p->o.remote || p->failed || p->told.agents)
                return;
        p->told.agents = true;
        if (p->uploaded)
                snprintf(note, sizeof(note), "%zu uploaded, %zu already there", p->uploaded,
                         p->ready - p->uploaded);
        end_phase(p, "agent", (int64_t)p->ready, (int64_t)p->o.n_hosts, note, us - p->connect_us);
}

static void count_node_event(struct progress *p, const struct event *e)
{
        struct node_progress *w = &p->nodes[e->node];

        w->host = e->host;
        switch (e->kind) {
        case EVENT_NODE_PHASE:
                w->phase = (int)e->value;
                if (e->text && !w->login) {
                        w->login = xstrdup(e->text);
                        p->last_us = 0; /* to be shown at once */
                }
                break;
        case EVENT_NODE_CONNECTED:
                w->phase = LINK_OPEN;
                p->connect_us = e->us;
                if (++p->connected + p->failed == p->o.n_hosts)
                        finish_connect(p, e);
                break;
        case EVENT_NODE_UPLOAD:
                p->uploaded++;
                break;
        case EVENT_NODE_READY:
                w->done = w->ready = true;
                p->ready_us = e->us;
                if (++p->ready == p->o.n_hosts)
                        finish_agents(p, e->us);
                break;
        /* EVENT_NODE_FAILED */
        default:
                w->done = true;
                p->failed++;
        }
}

/* Another host is connected as the same node, whose counts are taken back: the node had failed, and
 * is connected and ready anew. */
static void count_stand_in(struct progress *p, const struct event *e)
{
        struct node_progress *w = &p->nodes[e->node];

        p->failed--;
        p->connected -= w->phase == LINK_OPEN;
        p->ready -= w->ready;
        free(w->login);
        *w = (struct node_progress){ .host = e->text };
}

/* Ends the phases of nodes of which some have failed, and the launch goes on without. */
static void finish_nodes(struct progress *p)
{
        int64_t all = (int64_t)p->o.n_hosts;

        if (!p->failed || !p->o.remote)
                return;
        if (!p->told.connect)
                end_phase(p, connect_name(p), (int64_t)p->connected, all, "", p->connect_us);
        if (!p->told.agents)
                end_phase(p, "agent", (int64_t)p->ready, all, "", p->ready_us - p->connect_us);
        p->told.connect = p->told.agents = true;
}

/* Shows the wait: in the live line of a terminal, else in a plain line. */
static void show_wait(const struct progress *p, const char *what)
{
        char *line = xasprintf(p->o.tty ? "   %s" : "hnlaunch: %s\n", what);

        if (p->o.tty)
                say_live(line, NULL);
        else
                say("%s", line);
        free(line);
}

/* Shows the progress of hashing on a terminal only: hashing comes before any node is reached, and
 * has no plain line. */
static void show_hashing(struct progress *p, const struct event *e)
{
        char done[32], line[80];

        if (!p->o.tty || e->us < LIVE_AFTER_US || e->us - p->push.shown_us < LIVE_EVERY_US)
                return;
        p->push.shown_us = e->us;
        format_size(done, sizeof(done), (uint64_t)e->value);
        snprintf(line, sizeof(line), "hashing what is pushed: %s", done);
        show_wait(p, line);
}

/* A push without bytes to be sent counts as complete, 100 %. */
static void show_push(struct progress *p, const struct event *e)
{
        char done[32], all[32], line[200];

        if (e->us - p->push.began_us < LIVE_AFTER_US ||
            e->us - p->push.shown_us < (p->o.tty ? LIVE_EVERY_US : PLAIN_EVERY_US))
                return;
        p->push.shown_us = e->us;
        format_size(done, sizeof(done), (uint64_t)e->value);
        format_size(all, sizeof(all), (uint64_t)e->count);
        snprintf(line, sizeof(line), "pushing to %" PRId64 " node%s: %s of %s, %" PRId64 " %%",
                 p->push.nodes, p->push.nodes == 1 ? "" : "s", done, all,
                 e->count ? 100 * e->value / e->count : 100);
        show_wait(p, line);
}

/* Ends the phase with the last node. Files that all nodes have already count as nothing sent. */
static void count_pushed_node(struct progress *p, const struct event *e)
{
        char note[64], size[32];

        p->push.sent += e->value;
        if (++p->push.done < p->push.nodes)
                return;
        format_size(size, sizeof(size), (uint64_t)p->push.sent);
        snprintf(note, sizeof(note), p->push.sent ? "%s sent" : "all files already there", size);
        end_phase(p, "push", p->push.done, p->push.nodes, note, e->us - p->push.began_us);
}

/* Counts the roles of the job in a line, which is short on a narrow terminal. */
static void tell_roles(const struct progress *p)
{
        static const char front[] = "hnlaunch: ";
        size_t width = p->o.tty ? columns_of_terminal(STDERR_FILENO) : SIZE_MAX;
        size_t room = MAX(width, sizeof(front)) - sizeof(front);
        CLEANUP(buf_finish) struct buf cut = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;
        struct role_list roles;

        role_list_from_plan(&roles, p->o.plan);
        if (roles.n)
                text = role_list_count(&roles, false);
        if (text && columns_count(text, strlen(text)) > room) {
                free(text);
                text = role_list_count(&roles, true);
        }
        role_list_finish(&roles);
        if (!text)
                return;
        columns_cut(&cut, text, room);
        say("%s%.*s\n", front, (int)buf_len(&cut), (const char *)buf_data(&cut));
}

static void on_event(void *ctx, const struct event *e)
{
        struct progress *p = ctx;

        switch (e->kind) {
        case EVENT_NODE_REPLACED:
                /* After EVENT_RUN_START a replacement belongs to a restart, and no phase counts
                 * nodes any more. */
                if (e->value && !p->ranks)
                        count_stand_in(p, e);
                break;
        case EVENT_RUN_START:
                finish_nodes(p);
                p->ranks = e->value;
                p->start_us = e->us;
                say("hnlaunch: run %s: %" PRId64 " node%s, %" PRId64 " rank%s, %s\n", p->o.run_id,
                    e->count, e->count == 1 ? "" : "s", e->value, e->value == 1 ? "" : "s",
                    p->o.source);
                if (p->o.plan)
                        tell_roles(p);
                break;
        case EVENT_RUN_SHRUNK:
        case EVENT_RESTART:
                /* Ranks that had started are started again with the others. */
                if (p->started < p->ranks) {
                        p->started = 0;
                        p->start_us = e->us;
                }
                if (e->kind == EVENT_RUN_SHRUNK)
                        p->ranks = e->value;
                break;
        case EVENT_NODE_PHASE:
        case EVENT_NODE_CONNECTED:
        case EVENT_NODE_UPLOAD:
        case EVENT_NODE_READY:
        case EVENT_NODE_FAILED:
                count_node_event(p, e);
                break;
        case EVENT_PUSH_HASHING:
                show_hashing(p, e);
                break;
        case EVENT_PUSH_START:
                finish_nodes(p);
                p->push = (struct push_progress){ .nodes = e->count,
                                                  .began_us = e->us,
                                                  .shown_us = e->us };
                break;
        case EVENT_PUSH_PROGRESS:
                show_push(p, e);
                break;
        case EVENT_NODE_PUSHED:
                count_pushed_node(p, e);
                break;
        case EVENT_ROLE_WAITS:
                /* Ranks of a waiting role start later, and must not hold up the line about the
                 * start. */
                p->ranks -= e->count;
                break;
        case EVENT_RANK_STARTED:
                if (++p->started == p->ranks && p->o.remote)
                        end_phase(p, "start", p->started, p->ranks, "", e->us - p->start_us);
                if (p->started == p->ranks)
                        print_phases(p);
                break;
        case EVENT_STOP:
                print_phases(p);
                if (e->brief)
                        say("hnlaunch: stopping all ranks: %s\n", e->brief);
                break;
        default:
                break;
        }
}

/* Returns the first node that is waited for because of its login, else the first one; NULL = none.
 */
static const struct node_progress *find_waited(const struct progress *p)
{
        /* A node without a host has had no event yet, so nothing is known to be told. */
        const struct node_progress *first = NULL;

        for (const struct node_progress *w = p->nodes; w < p->nodes + p->o.n_hosts; w++) {
                if (w->done || !w->host)
                        continue;
                if (w->login)
                        return w;
                if (!first)
                        first = w;
        }
        return first;
}

/* "waiting for gpu001: its login printed `Proceed? [y/N]`, 5.0s". On a narrow terminal the words
 * lose their end. malloc'ed. */
static char *format_login(const struct progress *p, const struct node_progress *w, const char *took,
                          size_t room)
{
        struct buf b = BUF_INIT;
        size_t rest = strlen(took) + 4; /* the quotes, comma and blank */

        /* The count of ready nodes is left out first: the words of the login are more use. */
        if (room > 120)
                buf_printf(&b, "%zu/%zu nodes ready, ", p->ready, p->o.n_hosts);
        buf_appends(&b, "waiting for ");
        columns_shorten(&b, w->host, room / 3);
        buf_appends(&b, *w->login ? ": its login printed " : ": its login runs no command");
        rest += columns_count((const char *)buf_data(&b), buf_len(&b));
        if (*w->login) {
                buf_appends(&b, "`");
                printable_cut(&b, w->login, strlen(w->login), room > rest ? room - rest : 1);
                buf_appends(&b, "`");
        }
        buf_printf(&b, ", %s", took);
        return buf_steal(&b);
}

/* "0/1 nodes ready, waiting for gpu001 (login), 1.2s". On a narrow terminal the middle of the
 * host's name is left out; before the name gets too short, other words are. malloc'ed. */
static char *format_waiting(const struct progress *p, const char *took)
{
        /* In the order of enum link_phase. */
        static const char *const phases[LINK_PHASES] = {
                "name look-up", "TCP connect", "key exchange", "host key",
                "login",        "command",     "agent",
        };
        /* Columns of a host's name that still tell hosts apart. */
        enum { NAME_MIN = 16 };
        const struct node_progress *w = find_waited(p);
        /* As long as nothing is known of any node, only the count is told. */
        const char *host = w ? w->host : p->on_hold ? "the hold" : "";
        char before[64], after[64];
        struct buf b = BUF_INIT;
        size_t name, room, rest;

        name = columns_count(host, strlen(host));
        /* Three blanks stand before the text, and the last column stays free. */
        room = p->o.tty ? MAX(columns_of_terminal(STDERR_FILENO), (size_t)4) - 4 : SIZE_MAX;
        if (w && w->login && room >= 60)
                return format_login(p, w, took, room);
        snprintf(before, sizeof(before), "%zu/%zu nodes ready, %s", p->ready, p->o.n_hosts,
                 name ? "waiting for " : "");
        if (w)
                snprintf(after, sizeof(after), " (%s), %s", phases[w->phase], took);
        else
                snprintf(after, sizeof(after), "%s%s", name ? ", " : "", took);
        rest = strlen(before) + strlen(after);
        if (rest + MIN(name, (size_t)NAME_MIN) > room) {
                snprintf(before, sizeof(before), "%zu/%zu ready, ", p->ready, p->o.n_hosts);
                snprintf(after, sizeof(after), "%s%s", name ? " " : "", took);
                rest = strlen(before) + strlen(after);
        }
        buf_appends(&b, before);
        columns_shorten(&b, host, room > rest ? room - rest : 1);
        buf_appends(&b, after);
        return buf_steal(&b);
}

void progress_on_hold(struct progress *p)
{
        if (p)
                p->on_hold = true;
}

void progress_tick(struct progress *p)
{
        int64_t now = p ? events_now_us(p->es) : 0;
        char took[32], *text;

        /* With local nodes only, nothing is waited for that a user could see. */
        if (!p || !p->o.remote || p->ready + p->failed == p->o.n_hosts)
                return;
        if (now - p->last_us < (p->o.tty ? LIVE_EVERY_US : PLAIN_EVERY_US) || now < LIVE_AFTER_US)
                return;
        p->last_us = now;
        format_duration(took, sizeof(took), now);
        text = format_waiting(p, took);
        show_wait(p, text);
        free(text);
}

struct progress *progress_create(struct events *es, const struct progress_options *o)
{
        struct progress *p;

        if (o->quiet)
                return NULL;
        p = xcalloc(1, sizeof(*p));
        p->o = *o;
        p->es = es;
        p->nodes = xcalloc(o->n_hosts, sizeof(*p->nodes));
        events_listen(es, on_event, p);
        return p;
}

void progress_run(struct progress *p, uv_loop_t *loop, struct rank_board *ranks,
                  const struct hosts *hosts)
{
        if (p && !p->live && !p->o.quiet)
                p->live = live_line_create(loop, p->es, ranks, hosts, p->o.tty);
}

bool progress_draws_live(const struct progress *p)
{
        return p && p->o.tty;
}

void progress_output(struct progress *p, int rank, uint8_t stream, const void *data, size_t len)
{
        if (!p)
                return;
        /* Ranks may write before all have started; the phases stand above their output. */
        if (!p->written)
                print_phases(p);
        p->written = true;
        live_line_output(p->live, rank, stream, data, len);
}

void progress_slow(struct progress *p, const char *text)
{
        if (p)
                live_line_slow(p->live, text);
}

void progress_rest(struct progress *p)
{
        if (!p)
                return;
        live_line_close(p->live);
        p->live = NULL;
}

void progress_destroy(struct progress *p)
{
        if (!p)
                return;
        say_erase();
        for (size_t i = 0; i < p->o.n_hosts; i++)
                free(p->nodes[i].login);
        free(p->nodes);
        free(p);
}
