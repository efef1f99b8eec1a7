/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node is silent after min(3 s, half of --node-timeout) without a byte received, which is told
 * once, and lost after --node-timeout; the end of its connection is a loss at once (node.c).
 * beat_nodes() pings six times before a node is silent, and more often while files are pushed.
 *
 * A ping is a lease: the agent keeps its ranks for agent_limit_ms() after the newest ping, by the
 * time at which it was sent, then ends them (TERM, MSG_LOST_GRACE_MS, KILL). A silent node gets no
 * pings, although it might hear them. So with T the timeout, S the silence, P the period:
 *
 *     last byte heard  h        last ping sent   <= h + S + P      node given up  >= h + T - P
 *     ranks are dead   <= h + S + P + L + G + K, the lease L, the grace G and K for the kill
 *
 * L = T - S - 2 P - G - K makes this equal to h + T - P. A small T would leave the ranks too little
 * time: L is 2/3 of T at least, and job_restart() waits for heartbeat_dead_ns(). With the default
 * of 30 s: S = 3, P = 0.5, G = 2, K = 1 and L = 23 s.
 *
 * When hnlaunch itself did not run (SIGSTOP, a laptop's lid, a busy machine), the missed time is
 * added to the last sign of life of every node, and agents that have left meanwhile, for want of a
 * ping, are no lost nodes: the pause is the cause (heartbeat_explains()). When all nodes on the
 * network fall silent within three beats, the network of this machine is the cause, not a node.
 *
 * Below --tree the head pings only its children. Every parent passes pings on to the children and
 * reports their silence and its end (heartbeat_heard()). So a hung parent is lost, not the healthy
 * nodes behind.
 */
#include "head/job/heartbeat.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/nodes/transport_tree.h"

enum {
        BEATS = 6,      /* until a node is silent */
        PUSH_BEATS = 3, /* so many times longer between two pings while files are pushed */
        SILENT_MS = 3000,
        LOCAL_TIMES = 20,
        PATIENCE_MS = 60000, /* with busy machines, and with disks */
        KILL_MS = 1000,      /* for an agent to kill its ranks */
        /* After a pause: ranks that ignore TERM keep their agent for a while. */
        AFTERMATH_MS = 2 * (MSG_LOST_GRACE_MS + KILL_MS),
        FLUSH_MS = 100,    /* for the last pings before a suspend */
        FLUSH_TRIES = 10,  /* on a busy machine */
        NODES_PER_MS = 10, /* pinged at most: ten thousand nodes once a second */
};

/* Nodes that have fallen silent in one beat, or that are heard again. */
struct silence_news {
        size_t n;
        char first[208]; /* the name of one */
        int64_t ms;      /* the longest silence */
        uint64_t limit_ms;
};

struct heartbeat {
        struct cluster *cluster;
        struct attempt *attempt;
        bool (*owes)(void *ctx, const struct node *n); /* a READY node is to answer */
        void *ctx;
        uv_timer_t timer, suspend;
        int suspend_tries;
        int64_t beat_ns; /* the last; 0 = stopped. @timer also rests for a suspend */
        struct {
                int64_t ns, end_ns; /* for how long hnlaunch did not run, and until when */
        } pause;                    /* the longest of the last AFTERMATH_MS */
        bool pushing;               /* nodes store files: more patience */
        struct silence_news fell_silent, spoke_again;
};

uint64_t heartbeat_interval_ms(const struct heartbeat *h)
{
        size_t pinged = h->cluster->n_nodes - h->cluster->n_carried;
        uint64_t silent =
                MIN((uint64_t)h->cluster->options->node_timeout_ms / 2, (uint64_t)SILENT_MS);

        /* With more patience fewer pings do, and files need the network. */
        if (h->pushing)
                silent *= PUSH_BEATS;
        return MAX(silent / BEATS, MAX(pinged / NODES_PER_MS, (uint64_t)1));
}

/* An agent of this machine has neither cable nor power supply: silence means a busy machine. */
uint32_t heartbeat_silence_ms(const struct heartbeat *h, const struct node *n)
{
        uint64_t ms =
                MAX((uint64_t)h->cluster->options->node_timeout_ms, 3 * heartbeat_interval_ms(h));
        uint64_t most = MAX(ms, (uint64_t)PATIENCE_MS);

        if (n->host->local)
                ms = MIN(ms * LOCAL_TIMES, most);
        else if (h->pushing)
                ms = MIN(ms * HEARTBEAT_PUSH_TIMES, most);
        return (uint32_t)MIN(ms, (uint64_t)INT32_MAX);
}

/* Returns the silence at which a node is given up: the next beat would be too late. */
static uint32_t silence_limit_ms(const struct heartbeat *h, const struct node *n)
{
        return heartbeat_silence_ms(h, n) - (uint32_t)heartbeat_interval_ms(h);
}

/* Returns the silence that is told. */
static uint32_t told_silence_ms(const struct heartbeat *h, const struct node *n)
{
        uint32_t half = heartbeat_silence_ms(h, n) / 2;

        return n->host->local || h->pushing ? half : MIN(half, (uint32_t)SILENT_MS);
}

uint32_t heartbeat_agent_ms(const struct heartbeat *h, const struct node *n)
{
        int64_t timeout = heartbeat_silence_ms(h, n), beat = (int64_t)heartbeat_interval_ms(h);
        int64_t lease = timeout - told_silence_ms(h, n) - 2 * beat - MSG_LOST_GRACE_MS - KILL_MS;

        return (uint32_t)(n->host->local ? timeout : MAX(lease, timeout * 2 / 3));
}

int64_t heartbeat_dead_ns(const struct heartbeat *h, const struct node *n, bool may_live)
{
        int64_t ms = MSG_LOST_GRACE_MS + KILL_MS;

        if (!may_live)
                return clock_ns() + INT64_C(1000000) * ms;
        ms += told_silence_ms(h, n) + (int64_t)heartbeat_interval_ms(h) + heartbeat_agent_ms(h, n);
        return n->heard_ns + INT64_C(1000000) * ms;
}

static bool is_on_network(const struct node *n)
{
        return !n->parent && !n->host->local && n->needed && !n->ended &&
               (n->state == NODE_RUNNING || n->state == NODE_GONE);
}

/* Whether all nodes on the network, two or more, fell silent together with @n, which is silent for
 * too long: then this machine's network is down, hardly theirs. */
static bool is_network_down(const struct heartbeat *h, const struct node *n)
{
        int64_t until = n->heard_ns + INT64_C(1000000) * (told_silence_ms(h, n) / 2);
        size_t silent = 0;

        for (size_t i = 0; i < h->cluster->n_nodes; i++) {
                const struct node *other = &h->cluster->nodes[i];

                if (!is_on_network(other))
                        continue;
                if (other->heard_ns > until)
                        return false;
                silent++;
        }
        return silent > 1 && is_on_network(n) && !job_state_stops(h->attempt->state);
}

static void break_silent(struct heartbeat *h, struct node *n, int64_t now)
{
        uint64_t timeout_ms = (uint64_t)h->cluster->options->node_timeout_ms;
        uint64_t silent_ms = (uint64_t)(now - n->heard_ns) / 1000000;
        bool limit = heartbeat_silence_ms(h, n) == timeout_ms;

        /* The limit comes a heartbeat early: one that is late then would not come in time. */
        node_break(n, LINK_TIMED_OUT, "silent for %s%s",
                   format_span(limit ? MAX(silent_ms, timeout_ms) : silent_ms).text,
                   limit ? " (--node-timeout)" : "");
}

/* Breaks a node after too long a silence, or all nodes on the network, with a single cause. False:
 * the node is lost. */
static bool check_silence(struct heartbeat *h, struct node *n, int64_t now)
{
        struct cause cause = { .kind = CAUSE_NETWORK, .rank = -1, .node = -1, .at_ns = now };
        struct cluster *c = h->cluster;

        if (now - n->heard_ns <= (int64_t)silence_limit_ms(h, n) * 1000000)
                return true;
        if (!is_network_down(h, n)) {
                break_silent(h, n, now);
                return false;
        }
        for (size_t i = 0; i < c->n_nodes; i++)
                if (is_on_network(&c->nodes[i]))
                        cause.at_ns = MIN(cause.at_ns, c->nodes[i].heard_ns);
        cause.after_ms = attempt_age_ms(h->attempt);
        snprintf(cause.text, sizeof(cause.text),
                 "no node answers: is this machine's network down?");
        attempt_fail(h->attempt, &cause);
        for (size_t i = 0; i < c->n_nodes; i++)
                if (is_on_network(&c->nodes[i]))
                        break_silent(h, &c->nodes[i], now);
        return false;
}

/* --- silence ---------------------------------------------------------------------------------- */

/* Only the first name of a beat is kept, and the longest silence. */
static void add_news(struct silence_news *news, const struct node *n, int64_t ms)
{
        if (!news->n++)
                snprintf(news->first, sizeof(news->first), "%.200s", n->host->name);
        news->ms = MAX(news->ms, ms);
}

/* One line for all nodes of a beat. */
static void tell_news(struct silence_news *news, const char *one, const char *many,
                      const char *more)
{
        struct format_span span = format_span((uint64_t)news->ms);

        if (news->n == 1)
                log_line(LOG_WARN, "%s %s %s%s", news->first, one, span.text, more);
        else if (news->n)
                log_line(LOG_WARN, "%s and %zu more %s %s%s", news->first, news->n - 1, many,
                         span.text, more);
        *news = (struct silence_news){ 0 };
}

static void tell_silence(struct heartbeat *h)
{
        uint64_t limit_ms = h->fell_silent.limit_ms;
        char more[80];

        snprintf(more, sizeof(more), "; the limit is %s%s", format_span(limit_ms).text,
                 limit_ms == (uint64_t)h->cluster->options->node_timeout_ms ? " (--node-timeout)"
                                                                            : "");
        tell_news(&h->fell_silent, "has been silent for", "have been silent for", more);
        tell_news(&h->spoke_again, "answers again after", "answer again after", "");
}

/* Finds the change of @n between silent and not. */
static void notice_silence(struct heartbeat *h, struct node *n, int64_t now)
{
        int64_t ms = (now - n->heard_ns) / 1000000;
        char text[64];

        if (!n->silent_ns && ms > told_silence_ms(h, n)) {
                n->silent_ns = n->heard_ns;
                add_news(&h->fell_silent, n, ms);
                h->fell_silent.limit_ms = heartbeat_silence_ms(h, n);
                snprintf(text, sizeof(text), "silent for %s", format_span((uint64_t)ms).text);
                cluster_emit(h->cluster, EVENT_NODE_SILENT, n->index, -1, ms, text);
        } else if (n->silent_ns && ms <= told_silence_ms(h, n)) {
                ms = (n->heard_ns - n->silent_ns) / 1000000;
                n->silent_ns = 0;
                add_news(&h->spoke_again, n, ms);
                snprintf(text, sizeof(text), "heard again after %s",
                         format_span((uint64_t)ms).text);
                cluster_emit(h->cluster, EVENT_NODE_HEARD, n->index, -1, ms, text);
        }
}

void heartbeat_heard(struct heartbeat *h, struct node *n, uint32_t silent_ms)
{
        int64_t now = clock_ns();

        n->heard_ns = MAX(n->heard_ns, now - (int64_t)silent_ms * 1000000);
        if (n->needed && check_silence(h, n, now))
                notice_silence(h, n, now);
}

/* --- pings ------------------------------------------------------------------------------------ */

/* Pings leave with the frames for the node's descendants. @head_ns 0: hnlaunch will be suspended.
 */
static void send_ping(struct heartbeat *h, struct node *n, int64_t head_ns)
{
        ping_encode(&n->out, MSG_PING, &(struct ping){ .head_ns = (uint64_t)head_ns });
        send_queue_add(&h->cluster->send_queue, n);
}

void heartbeat_requested(struct heartbeat *h, struct node *n)
{
        /* The parent answers for its children, by its own clock. Bytes under way are an answer,
         * too: requests without an end fill no memory. */
        if (!n->parent && !n->queued.yes && !node_unsent(n))
                send_ping(h, n, clock_ns());
}

/* Whether a ping from here reaches the agent directly; parents pass pings on to their children. */
static bool is_pinged(const struct node *n)
{
        return !n->parent && n->state >= NODE_READY && n->state <= NODE_GONE;
}

static void ping_everyone(struct heartbeat *h, int64_t head_ns)
{
        for (size_t i = 0; i < h->cluster->n_nodes; i++)
                if (is_pinged(&h->cluster->nodes[i]))
                        send_ping(h, &h->cluster->nodes[i], head_ns);
}

/* Finds silent nodes that have been heard and are not watched any longer. */
static void notice_end(struct heartbeat *h)
{
        for (size_t i = 0; i < h->cluster->n_nodes; i++) {
                struct node *n = &h->cluster->nodes[i];

                if (n->silent_ns && n->state == NODE_GONE)
                        notice_silence(h, n, clock_ns());
        }
}

static void forgive_pause(struct cluster *c, int64_t pause_ns)
{
        for (size_t i = 0; i < c->n_nodes; i++) {
                c->nodes[i].heard_ns += pause_ns;
                if (c->nodes[i].silent_ns)
                        c->nodes[i].silent_ns += pause_ns;
        }
}

/* Returns for how long hnlaunch did not run until now or a moment ago. The loop may find the end of
 * a connection before the beat that is late. */
static int64_t find_pause_ns(const struct heartbeat *h, int64_t now)
{
        int64_t late = h->beat_ns ? now - h->beat_ns : 0;
        bool recent = now - h->pause.end_ns <= AFTERMATH_MS * INT64_C(1000000);

        return recent ? MAX(late, h->pause.ns) : late;
}

/* A beat: finds the nodes to be watched, checks how long each has been silent, and sends the next
 * pings. Nodes behind a parent in the tree are watched by the parent, which only learns here
 * whether to watch. */
static void beat_nodes(uv_timer_t *t)
{
        struct heartbeat *h = t->data;
        struct cluster *c = h->cluster;
        int64_t now = clock_ns(), interval = (int64_t)heartbeat_interval_ms(h) * 1000000;
        int64_t late = now - h->beat_ns;

        if (late > 2 * interval) {
                if (late == find_pause_ns(h, now)) {
                        h->pause.ns = late;
                        h->pause.end_ns = now;
                }
                forgive_pause(c, late - interval);
        }
        h->beat_ns = now;
        for (size_t i = 0; i < c->n_nodes; i++)
                c->nodes[i].needed = false;
        for (size_t i = 0; i < c->n_nodes; i++) {
                struct node *n = &c->nodes[i];

                bool idle = n->state == NODE_READY || (n->state == NODE_GONE && !n->ended);

                /* A watched node needs its ancestors in the tree. */
                if (n->state == NODE_RUNNING || (idle && h->owes(h->ctx, n)))
                        for (; n && !n->needed; n = n->parent)
                                n->needed = true;
        }
        for (size_t i = 0; i < c->n_nodes; i++) {
                struct node *n = &c->nodes[i];

                if (n->parent) {
                        transport_tree_watch(c->tree, n, n->needed ? silence_limit_ms(h, n) : 0);
                } else if (n->needed && check_silence(h, n, now)) {
                        notice_silence(h, n, now);
                        if (!n->silent_ns)
                                send_ping(h, n, now);
                }
        }
        notice_end(h);
        tell_silence(h);
}

bool heartbeat_explains(const struct heartbeat *h, const struct node *lost, struct cause *c)
{
        enum link_cause why = lost->failure ? lost->failure->cause : LINK_OTHER;
        int64_t ms = find_pause_ns(h, clock_ns()) / 1000000;

        if ((why != LINK_ENDED && why != LINK_DROPPED) || ms < heartbeat_agent_ms(h, lost))
                return false;
        c->kind = CAUSE_PAUSE;
        c->node = -1;
        snprintf(c->text, sizeof(c->text),
                 "hnlaunch did not run for %s, and its nodes ended their ranks",
                 format_span((uint64_t)ms).text);
        return true;
}

/* Ctrl-Z: stops hnlaunch once the pings that ask the agents for patience are written, or after some
 * tries. */
static void suspend_process(uv_timer_t *t)
{
        struct heartbeat *h = t->data;
        struct cluster *c = h->cluster;
        bool unsent = false;

        for (size_t i = 0; i < c->n_nodes && !unsent; i++)
                unsent = is_pinged(&c->nodes[i]) && node_unsent(&c->nodes[i]);
        /* An agent without this ping would take the head for lost. */
        if (unsent && --h->suspend_tries > 0) {
                uv_timer_start(t, suspend_process, FLUSH_MS, 0);
                return;
        }
        raise(SIGSTOP);
        /* SIGCONT has come. Idle agents, too, wait for a ping that ends their patience. */
        if (h->beat_ns) {
                beat_nodes(&h->timer);
                h->pause.ns = 0; /* the agents knew of it */
                uv_timer_start(&h->timer, beat_nodes, heartbeat_interval_ms(h),
                               heartbeat_interval_ms(h));
        }
        ping_everyone(h, clock_ns());
}

void heartbeat_suspend(struct heartbeat *h)
{
        uv_timer_stop(&h->timer); /* a ping would rearm the agents' timeouts */
        log_line(LOG_WARN,
                 "suspended; ranks keep running until output buffers fill (`fg` resumes)");
        ping_everyone(h, 0);
        h->suspend_tries = FLUSH_TRIES;
        uv_timer_start(&h->suspend, suspend_process, FLUSH_MS, 0);
}

void heartbeat_start(struct heartbeat *h, bool pushing)
{
        uint64_t ms;

        h->pushing = pushing;
        ms = heartbeat_interval_ms(h);
        h->beat_ns = clock_ns();
        h->pause.ns = 0; /* of an earlier attempt */
        h->attempt->outcome.pulse_ns = (int64_t)ms * 1000000;
        for (size_t i = 0; i < h->cluster->n_nodes; i++) {
                h->cluster->nodes[i].heard_ns = h->beat_ns;
                h->cluster->nodes[i].silent_ns = 0;
        }
        /* The first ping, at once, makes agents expect more. */
        beat_nodes(&h->timer);
        uv_timer_start(&h->timer, beat_nodes, ms, ms);
}

void heartbeat_stop(struct heartbeat *h)
{
        notice_end(h);
        tell_silence(h);
        uv_timer_stop(&h->timer);
        h->beat_ns = 0;
        h->pushing = false;
}

void heartbeat_keep_loop(struct heartbeat *h)
{
        uv_ref((uv_handle_t *)&h->timer);
}

bool heartbeat_pushes(const struct heartbeat *h)
{
        return h->pushing;
}

struct heartbeat *heartbeat_create(struct cluster *c, struct attempt *a,
                                   bool (*owes)(void *ctx, const struct node *n), void *ctx)
{
        struct heartbeat *h = xcalloc(1, sizeof(*h));

        h->cluster = c;
        h->attempt = a;
        h->owes = owes;
        h->ctx = ctx;
        cluster_init_timer(c, &h->timer, h);
        cluster_init_timer(c, &h->suspend, h);
        c->heartbeat = h;
        return h;
}

void heartbeat_close(struct heartbeat *h)
{
        uv_close((uv_handle_t *)&h->timer, NULL);
        uv_close((uv_handle_t *)&h->suspend, NULL);
}

void heartbeat_free(struct heartbeat *h)
{
        free(h);
}
