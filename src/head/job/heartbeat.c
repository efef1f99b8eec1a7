/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pulse of a job: pings to its nodes, while the endpoint is tried and while ranks run, and what
 * their silence means
 *
 * A node is lost after --node-timeout without a byte from it. Looks are taken often enough that
 * this holds, pings are sent often enough that a node which hangs for two thirds of that time has
 * not been silent for all of it. When it was us who hung (SIGSTOP, a laptop's lid, a busy machine)
 * nobody is blamed for what we did not hear. Agents measure the silence of the head in the same
 * way.
 *
 * Nodes that are reached through others (--tree) are pinged by these, whenever these are pinged,
 * and their silence is told by these; so the head pings K nodes, and who hangs is blamed rather
 * than those behind it, of whom nobody can tell.
 *
 * Who has nothing to do is not pinged unless it asks.
 */
#include "head/job/job_private.h"

#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "head/status/rank_table_text.h"

enum {
        BEATS = 12, /* pings in one --node-timeout */
        LOCAL_TIMES = 20,
        PUSH_TIMES = 10,   /* a node that stores files waits for its disk */
        FLUSH_MS = 100,    /* for the last word before we sleep */
        FLUSH_TRIES = 10,  /* on a machine that is busy with other things */
        NODES_PER_MS = 10, /* that we ping at most: ten thousand nodes once a second */
};

uint64_t heartbeat_ms(const struct job *j)
{
        return MAX((uint64_t)j->c.options->node_timeout_ms / BEATS,
                   MAX((j->n_nodes - j->n_carried) / NODES_PER_MS, (uint64_t)1));
}

/* Adds the time that we were not there to what was heard. */
static void forgive(struct job *j, int64_t ns)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                j->nodes[i].heard_ns += ns;
}

/* No cable and no power of its own: an agent of this machine that does not come to speak is one
 * that the machine is too busy for. */
uint32_t job_silence_ms(const struct job *j, const struct node *n)
{
        uint64_t ms = MAX((uint64_t)j->c.options->node_timeout_ms, 3 * heartbeat_ms(j));

        if (n->host->local)
                ms *= LOCAL_TIMES;
        else if (j->pushing)
                ms *= PUSH_TIMES;
        return (uint32_t)MIN(ms, (uint64_t)INT32_MAX);
}

static bool is_watched(const struct job *j, const struct node *n)
{
        size_t i = (size_t)n->index;

        return n->state == NODE_RUNNING ||
               (n->state == NODE_READY &&
                (job_endpoint_owes(j, i) || (j->pushing && job_push_takes_part(j, i))));
}

/* Who is watched, and who carries one that is, whatever its own ranks do. */
static void find_needed(struct job *j)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                j->nodes[i].needed = false;
        for (size_t i = 0; i < j->n_nodes; i++)
                if (is_watched(j, &j->nodes[i]))
                        for (struct node *n = &j->nodes[i]; n && !n->needed; n = n->parent)
                                n->needed = true;
}

/* The next look would come too late. */
static uint32_t limit_ms(const struct job *j, const struct node *n)
{
        return job_silence_ms(j, n) - (uint32_t)heartbeat_ms(j);
}

static bool is_on_network(const struct node *n)
{
        return !n->parent && !n->host->local && n->needed && n->state == NODE_RUNNING;
}

/* All nodes that we reach through the network, two or more, were heard for the last time within a
 * heartbeat: it is hardly theirs that broke. @n is silent for long enough. */
static bool is_our_network(const struct job *j, const struct node *n)
{
        int64_t until = n->heard_ns + 2 * (int64_t)heartbeat_ms(j) * 1000000;
        size_t silent = 0;

        for (size_t i = 0; i < j->n_nodes; i++) {
                if (!is_on_network(&j->nodes[i]))
                        continue;
                if (j->nodes[i].heard_ns > until)
                        return false;
                silent++;
        }
        return silent > 1 && is_on_network(n) && !job_state_stops(j->job_state);
}

static void break_silent(struct job *j, struct node *n, int64_t now)
{
        char limit[64] = "";

        if (job_silence_ms(j, n) == (uint64_t)j->c.options->node_timeout_ms)
                snprintf(limit, sizeof(limit), " (--node-timeout %s)",
                         rank_span((uint64_t)j->c.options->node_timeout_ms).text);
        node_break(n, LINK_TIMED_OUT, "no heartbeat for %.1f s%s",
                   (double)(now - n->heard_ns) / 1e9, limit);
}

/* One cause for all of them; see node_lost(). */
static void lose_network(struct job *j, int64_t now)
{
        struct cause c = { .kind = CAUSE_NETWORK, .rank = -1, .node = -1, .at_ns = now };

        for (size_t i = 0; i < j->n_nodes; i++)
                if (is_on_network(&j->nodes[i]))
                        c.at_ns = MIN(c.at_ns, j->nodes[i].heard_ns);
        c.after_ms = job_since_launch_ms(j);
        snprintf(c.text, sizeof(c.text), "no node answers: is this machine's network down?");
        job_failed(j, outcome_happened(&j->outcome, &c));
        for (size_t i = 0; i < j->n_nodes; i++)
                if (is_on_network(&j->nodes[i]))
                        break_silent(j, &j->nodes[i], now);
}

/* False: it is lost. */
static bool judge(struct job *j, struct node *n, int64_t now)
{
        if (now - n->heard_ns <= (int64_t)limit_ms(j, n) * 1000000)
                return true;
        if (is_our_network(j, n))
                lose_network(j, now);
        else
                break_silent(j, n, now);
        return false;
}

void heartbeat_heard(struct job *j, struct node *n, uint32_t silent_ms)
{
        int64_t now = clock_ns();

        n->heard_ns = MAX(n->heard_ns, now - (int64_t)silent_ms * 1000000);
        if (n->needed)
                judge(j, n, now);
}

static void ping(struct job *j, struct node *n, int64_t head_ns)
{
        ping_encode(node_out(n), MSG_PING, &(struct ping){ .head_ns = (uint64_t)head_ns });
        send_queue_add(&j->send_queue, n); /* with what goes to the nodes that it carries */
}

void heartbeat_requested(struct job *j, struct node *n)
{
        if (!n->parent) /* else its carrier answers, whose clock is another */
                ping(j, n, clock_ns());
}

/* Also when it has nothing to do; those that it carries hear of it from there. */
static bool is_reached(const struct node *n)
{
        return !n->parent && n->state >= NODE_READY && n->state <= NODE_GONE;
}

static void ping_all(struct job *j, int64_t head_ns)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                if (is_reached(&j->nodes[i]))
                        ping(j, &j->nodes[i], head_ns);
}

static void beat(uv_timer_t *t)
{
        struct job *j = t->data;
        int64_t now = clock_ns(), pulse = (int64_t)heartbeat_ms(j) * 1000000;

        if (now - j->beat_ns > 2 * pulse)
                forgive(j, now - j->beat_ns - pulse);
        j->beat_ns = now;
        find_needed(j);
        for (size_t i = 0; i < j->n_nodes; i++) {
                struct node *n = &j->nodes[i];

                if (n->parent)
                        job_tree_watch(j, n, n->needed ? limit_ms(j, n) : 0);
                else if (n->needed && judge(j, n, now))
                        ping(j, n, now);
        }
}

/* Who does not hear that we are about to sleep will take us for lost. */
static bool all_told(const struct job *j)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                if (is_reached(&j->nodes[i]) && node_unsent(&j->nodes[i]))
                        return false;
        return true;
}

static void fall_asleep(uv_timer_t *t)
{
        struct job *j = t->data;

        if (!all_told(j) && --j->sleepy_tries > 0) {
                uv_timer_start(t, fall_asleep, FLUSH_MS, 0);
                return;
        }
        raise(SIGSTOP);
        /* SIGCONT: here we are again. */
        beat(&j->heartbeat);
        ping_all(j, j->beat_ns);
        uv_timer_start(&j->heartbeat, beat, heartbeat_ms(j), heartbeat_ms(j));
}

void heartbeat_sleep(struct job *j)
{
        uv_timer_stop(&j->heartbeat); /* a ping would wake their doubts again */
        log_line(LOG_WARN,
                 "suspended; ranks keep running until output buffers fill (`fg` resumes)");
        ping_all(j, 0);
        j->sleepy_tries = FLUSH_TRIES;
        uv_timer_start(&j->sleepy, fall_asleep, FLUSH_MS, 0);
}

void heartbeat_start(struct job *j)
{
        uint64_t ms = heartbeat_ms(j);

        j->beat_ns = clock_ns();
        j->outcome.pulse_ns = (int64_t)ms * 1000000;
        for (size_t i = 0; i < j->n_nodes; i++)
                j->nodes[i].heard_ns = j->beat_ns;
        /* The first one at once: it is what makes agents listen for the next. */
        beat(&j->heartbeat);
        uv_timer_start(&j->heartbeat, beat, ms, ms);
}
