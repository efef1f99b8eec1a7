/* SPDX-License-Identifier: Apache-2.0 */
#include "head/output/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/format.h"
#include "base/memory.h"
#include "head/nodes/transport.h"
#include "head/output/say.h"
#include "head/term/columns.h"

enum { LIVE_EVERY_US = 100000, LIVE_AFTER_US = 400000, PLAIN_EVERY_US = 5000000 };

struct waiting {
        const char *host; /* lent by the hosts */
        int phase;
        bool done;
};

struct progress {
        struct progress_options o;
        struct events *es;
        struct waiting *nodes;
        size_t connected, ready, failed, uploaded;
        const char *slowest;
        int64_t slowest_us, connect_us, ready_us, spawn_us, last_us;
        int64_t ranks, started, joined;
        int64_t to_push, pushed, sent, push_us, push_live_us; /* nodes, nodes, bytes */
};

/* " ✔ connect    64/64    slowest gpu031 0.9s    1.1s", or one plain line. */
static void phase_done(struct progress *p, const char *name, int64_t n, int64_t of,
                       const char *note, int64_t us)
{
        char took[32];

        format_duration(took, sizeof(took), us);
        if (p->o.tty)
                say(" %s%s%s %-9s %4" PRId64 "/%-4" PRId64 " %-40s %7s\n",
                    p->o.color ? "\033[32m" : "", p->o.utf8 ? "✔" : "ok",
                    p->o.color ? "\033[0m" : "", name, n, of, note, took);
        else
                say("hnlaunch: %s %" PRId64 "/%" PRId64 " in %s%s%s%s\n", name, n, of, took,
                    *note ? " (" : "", note, *note ? ")" : "");
}

static void all_connected(struct progress *p, int64_t us)
{
        char note[128] = "", took[32];

        p->connect_us = us;
        if (!p->o.remote || p->failed)
                return;
        if (p->slowest && p->o.n_hosts > 1) {
                format_duration(took, sizeof(took), p->slowest_us);
                snprintf(note, sizeof(note), "slowest %s %s", p->slowest, took);
        }
        phase_done(p, "connect", (int64_t)p->connected, (int64_t)p->o.n_hosts, note, us);
}

static void all_ready(struct progress *p, int64_t us)
{
        char note[128] = "";

        p->ready_us = us;
        if (!p->o.remote || p->failed)
                return;
        if (p->uploaded)
                snprintf(note, sizeof(note), "%zu uploaded, %zu already there", p->uploaded,
                         p->ready - p->uploaded);
        phase_done(p, "agents", (int64_t)p->ready, (int64_t)p->o.n_hosts, note, us - p->connect_us);
}

static void node_event(struct progress *p, const struct event *e)
{
        struct waiting *w = &p->nodes[e->node];

        w->host = e->host;
        switch (e->kind) {
        case EVENT_NODE_PHASE:
                w->phase = (int)e->value;
                break;
        case EVENT_NODE_CONNECTED:
                w->phase = LINK_OPEN;
                p->slowest = e->host;
                p->slowest_us = e->us;
                if (++p->connected + p->failed == p->o.n_hosts)
                        all_connected(p, e->us);
                break;
        case EVENT_NODE_UPLOAD:
                p->uploaded++;
                break;
        case EVENT_NODE_READY:
                w->done = true;
                if (++p->ready == p->o.n_hosts)
                        all_ready(p, e->us);
                break;
        default:
                w->done = true;
                p->failed++;
        }
}

static void hashing_goes_on(struct progress *p, const struct event *e)
{
        char done[32], line[80];

        if (!p->o.tty || e->us < LIVE_AFTER_US || e->us - p->push_live_us < LIVE_EVERY_US)
                return;
        p->push_live_us = e->us;
        format_size(done, sizeof(done), (uint64_t)e->value);
        snprintf(line, sizeof(line), "   hashing what is pushed: %s", done);
        say_live(line);
}

static void push_started(struct progress *p, const struct event *e)
{
        p->to_push = e->count;
        p->pushed = p->sent = 0;
        p->push_us = p->push_live_us = e->us;
}

/* Something goes on: the live line of a terminal, else a line of its own. */
static void say_wait(const struct progress *p, const char *what)
{
        char *line = xasprintf(p->o.tty ? "   %s" : "hnlaunch: %s\n", what);

        if (p->o.tty)
                say_live(line);
        else
                say("%s", line);
        free(line);
}

/* A person who waits wants to see that it goes on. */
static void push_goes_on(struct progress *p, const struct event *e)
{
        char done[32], all[32], line[200];

        if (e->us - p->push_us < LIVE_AFTER_US ||
            e->us - p->push_live_us < (p->o.tty ? LIVE_EVERY_US : PLAIN_EVERY_US))
                return;
        p->push_live_us = e->us;
        format_size(done, sizeof(done), (uint64_t)e->value);
        format_size(all, sizeof(all), (uint64_t)e->count);
        snprintf(line, sizeof(line), "pushing to %" PRId64 " node%s: %s of %s, %" PRId64 " %%",
                 p->to_push, p->to_push == 1 ? "" : "s", done, all,
                 e->count ? 100 * e->value / e->count : 100);
        say_wait(p, line);
}

static void node_pushed(struct progress *p, const struct event *e)
{
        char note[64], size[32];

        p->sent += e->value;
        if (++p->pushed < p->to_push)
                return;
        format_size(size, sizeof(size), (uint64_t)p->sent);
        snprintf(note, sizeof(note), p->sent ? "%s sent" : "all files already there", size);
        phase_done(p, "push", p->pushed, p->to_push, note, e->us - p->push_us);
}

static void run_started(struct progress *p, const struct event *e)
{
        p->ranks = e->value;
        p->spawn_us = e->us;
        say("hnlaunch: run %s: %" PRId64 " node%s, %" PRId64 " rank%s, %s\n", p->o.run_id, e->count,
            e->count == 1 ? "" : "s", e->value, e->value == 1 ? "" : "s", p->o.source);
}

static void on_event(void *ctx, const struct event *e)
{
        struct progress *p = ctx;

        switch (e->kind) {
        case EVENT_RUN_START:
                run_started(p, e);
                break;
        case EVENT_NODE_PHASE:
        case EVENT_NODE_CONNECTED:
        case EVENT_NODE_UPLOAD:
        case EVENT_NODE_READY:
        case EVENT_NODE_FAILED:
                node_event(p, e);
                break;
        case EVENT_PUSH_HASHING:
                hashing_goes_on(p, e);
                break;
        case EVENT_PUSH_START:
                push_started(p, e);
                break;
        case EVENT_PUSH_PROGRESS:
                push_goes_on(p, e);
                break;
        case EVENT_NODE_PUSHED:
                node_pushed(p, e);
                break;
        case EVENT_RANK_STARTED:
                if (++p->started == p->ranks && p->o.remote)
                        phase_done(p, "spawn", p->started, p->ranks, "", e->us - p->spawn_us);
                break;
        case EVENT_STOP:
                say("hnlaunch: stopping all ranks: %s\n", e->text);
                break;
        default:
                break;
        }
}

static const char *phase_name(int phase)
{
        static const char *const names[LINK_PHASES] = {
                "name look-up", "TCP connect", "key exchange", "host key",
                "login",        "command",     "agent",
        };

        return names[phase];
}

static const struct waiting *first_waiting(const struct progress *p)
{
        for (size_t i = 0; i < p->o.n_hosts; i++)
                if (!p->nodes[i].done && p->nodes[i].host)
                        return &p->nodes[i];
        return NULL;
}

/* "0/1 nodes ready, waiting for gpu001 (login), 1.2s". On a narrow terminal the name of the host
 * loses its middle; where little would be left of it, other words go first. malloc'ed. */
static char *waiting_text(const struct progress *p, const struct waiting *w, const char *took)
{
        enum { NAME_MIN = 16 };
        const char *host = w ? w->host : "?", *phase = w ? phase_name(w->phase) : "?";
        size_t name = columns_count(host, strlen(host)), room, rest;
        char before[64], after[64];
        struct buf b = BUF_INIT;

        /* Three blanks stand before it, and the last column stays free. */
        room = p->o.tty ? MAX(columns_of_terminal(STDERR_FILENO), (size_t)4) - 4 : SIZE_MAX;
        snprintf(before, sizeof(before), "%zu/%zu nodes ready, waiting for ", p->ready,
                 p->o.n_hosts);
        snprintf(after, sizeof(after), " (%s), %s", phase, took);
        rest = strlen(before) + strlen(after);
        if (rest + MIN(name, (size_t)NAME_MIN) > room) {
                snprintf(before, sizeof(before), "%zu/%zu ready, ", p->ready, p->o.n_hosts);
                snprintf(after, sizeof(after), " %s", took);
                rest = strlen(before) + strlen(after);
        }
        buf_appends(&b, before);
        columns_shorten(&b, host, room > rest ? room - rest : 1);
        buf_appends(&b, after);
        return buf_steal(&b);
}

void progress_tick(struct progress *p)
{
        int64_t now = p ? events_now_us(p->es) : 0;
        char took[32], *text;

        if (!p || !p->o.remote || p->ready + p->failed == p->o.n_hosts)
                return;
        if (now - p->last_us < (p->o.tty ? LIVE_EVERY_US : PLAIN_EVERY_US) || now < LIVE_AFTER_US)
                return;
        p->last_us = now;
        format_duration(took, sizeof(took), now);
        text = waiting_text(p, first_waiting(p), took);
        say_wait(p, text);
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

void progress_destroy(struct progress *p)
{
        if (!p)
                return;
        say_erase();
        free(p->nodes);
        free(p);
}
