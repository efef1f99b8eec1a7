/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a node: NOT -> QUEUED -> OFFERED -> SENDING -> DONE, or FAILED.
 *
 * An OFFER carries the manifest. The agent answers with the missing files (WANT, then SENDING),
 * with the node which already fetches into the same file system (WANT with a holder, then SHARED),
 * or with PUSHED when no file is missing. A SHARED node is told to look again when the holder is
 * DONE.
 *
 * In SENDING, files are sent piece by piece while the node has credit; each CHUNK is acknowledged
 * by TAKEN. With --tree a parent gives bytes to a child from the parent's own copy (supply_of());
 * bytes which the parent will have soon are waited for. Both lists of missing files have the order
 * of the manifest, so "has the bytes" is a single comparison.
 *
 * in[] counts the nodes in each state: the condition to wait on is checked in every turn of the
 * loop and must not look at every node.
 */
#include "head/job/job_push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/heartbeat.h"
#include "head/nodes/transport_tree.h"

enum {
        MEMORY = 256 << 20, /* for bytes under way to all nodes together */
        /* Two CHUNKs: a second may be under way while the first is written. */
        WINDOW_MIN = 2 * (PUSH_CHUNK_MAX + PUSH_CHUNK_COST),
        WINDOW_MAX = 4 << 20, /* 80 MB/s over 50 ms */
        OFFERS = 64 << 20,    /* bytes of manifests under way together */
        TICK_MS = 100,
        GIVE_MAX = 64 << 10, /* several fit in the window of a tunnel */
};

enum push_state {
        PUSH_NOT,     /* takes no part */
        PUSH_QUEUED,  /* to be offered */
        PUSH_OFFERED, /* owes an answer */
        PUSH_SHARED,  /* another node fetches into the same file system */
        PUSH_SENDING,
        PUSH_DONE,
        PUSH_FAILED,
        PUSH_STATES,
};

struct job_push_node {
        enum push_state state;
        struct push_want want;
        uint32_t at;                  /* of want: the file being sent */
        uint64_t offset, sent, given; /* bytes, sent by the head and given by the parent */
        uint32_t got;                 /* of want: the first file not yet complete there */
        uint64_t got_offset;
        int first_child, next_sibling; /* in the tree, -1 = none */
        int64_t credit, window;        /* bytes that may be sent now, and with nothing under way */
        bool taking_over;              /* was told to fetch, whatever other nodes do */
        struct pushed *result;         /* NULL = not yet */
};

struct job_push {
        struct cluster *cluster;
        struct attempt *attempt;
        struct heartbeat *heartbeat;
        const char *run_id;
        uv_timer_t timer;
        struct manifest *manifest;   /* NULL = nothing was pushed yet */
        struct job_push_node *nodes; /* one per host */
        size_t in[PUSH_STATES];      /* nodes, by state */
        size_t queue;                /* no earlier node is queued */
        uint64_t wanted, taken;      /* bytes, of all nodes */
        struct error source;         /* why a file cannot be read any more */
        int source_error;            /* -errno, 0 = all can be read */
};

static struct job_push_node *state_of(const struct job_push *p, const struct node *n)
{
        return &p->nodes[n->index];
}

/* All changes of a state go this way: in[] has to stay right. */
static void set_push_state(struct job_push *p, struct job_push_node *s, enum push_state state)
{
        p->in[s->state]--;
        p->in[state]++;
        s->state = state;
}

/* Also a node whose push has ended, until job_push_forget(). */
bool job_push_takes_part(const struct job_push *p, size_t node)
{
        return p->nodes[node].state != PUSH_NOT;
}

bool job_push_began(const struct job_push *p)
{
        return p->manifest != NULL;
}

const struct pushed *job_push_result(const struct job_push *p, size_t node)
{
        return p->nodes[node].result;
}

/* --- offering --- */

/* Offers to queued nodes, within a limit: manifests may be large, and nodes many. */
static void offer_next(struct job_push *p)
{
        uint64_t most = MAX(OFFERS / (p->manifest->wire_bytes + 1), (uint64_t)1);
        struct push_offer m = { .keep = p->cluster->options->keep,
                                .manifest = p->manifest->manifest };

        snprintf(m.run_id, sizeof(m.run_id), "%s", p->run_id);
        for (; p->in[PUSH_QUEUED] && p->in[PUSH_OFFERED] < most; p->queue++) {
                struct node *n = &p->cluster->nodes[p->queue];

                if (p->nodes[p->queue].state != PUSH_QUEUED)
                        continue;
                m.node = (uint32_t)n->index;
                /* Without a ping for so long the agent takes the head for lost. */
                m.silence_ms = heartbeat_agent_ms(p->heartbeat, n);
                push_offer_encode(&n->out, &m);
                set_push_state(p, state_of(p, n), PUSH_OFFERED);
                node_flush(n);
        }
}

/* Lets a SHARED node look for the files, and fetch after a failure of the holder. */
static void order_second_look(struct job_push *p, struct node *n)
{
        push_look_encode(&n->out, &(struct push_look){ .take_over = 1 });
        state_of(p, n)->taking_over = true;
        set_push_state(p, state_of(p, n), PUSH_OFFERED);
        node_flush(n);
}

/* --- sending --- */

enum supply { FROM_HEAD, FROM_PARENT, NOT_YET };

/* Tells where node @n gets the bytes up to @end of @entry from. */
static enum supply supply_of(const struct job_push *p, const struct node *n, uint32_t entry,
                             uint64_t end)
{
        const struct job_push_node *s = n->parent ? state_of(p, n->parent) : NULL;
        uint32_t at;

        if (!s || s->state == PUSH_NOT || s->state == PUSH_SHARED)
                return FROM_HEAD; /* the parent may even be waiting for this node */
        if (s->state == PUSH_DONE)
                return FROM_PARENT;
        if (s->state != PUSH_SENDING)
                return NOT_YET;
        at = s->got < s->want.n ? s->want.entries[s->got] : UINT32_MAX;
        return entry < at || (entry == at && end <= s->got_offset) ? FROM_PARENT : NOT_YET;
}

/* Sends the next piece for @n, from here or from the parent. False: not now, or never. */
static bool send_next_chunk(struct job_push *p, struct node *n, struct job_push_node *s)
{
        uint32_t entry = s->want.entries[s->at];
        uint64_t left = p->manifest->manifest.v[entry].size - s->offset;
        uint32_t len = (uint32_t)MIN(left, (uint64_t)GIVE_MAX);
        enum supply from = supply_of(p, n, entry, s->offset + len);

        if (from == FROM_PARENT) {
                /* tick() tries again after a refusal. */
                if (!transport_tree_give(p->cluster->tree, n, entry, s->offset, len))
                        return false;
                s->given += len;
        } else if (from == FROM_HEAD) {
                size_t before = buf_len(&n->out);
                void *to;

                len = (uint32_t)MIN(left, (uint64_t)PUSH_CHUNK_MAX);
                to = push_chunk_begin(&n->out, entry, s->offset, len);
                if (to)
                        p->source_error =
                                manifest_read(p->manifest, entry, s->offset, to, len, &p->source);
                if (p->source_error) {
                        buf_truncate(&n->out, before);
                        return false;
                }
                s->sent += len;
        } else {
                return false;
        }
        s->credit -= (int64_t)len + PUSH_CHUNK_COST;
        s->offset += len;
        if (len == left) {
                s->offset = 0;
                s->at++;
        }
        return true;
}

static void send_within_credit(struct job_push *p, struct node *n)
{
        struct job_push_node *s = state_of(p, n);

        while (s->credit > 0 && s->at < s->want.n && !p->source_error)
                if (!send_next_chunk(p, n, s))
                        break;
        node_flush(n);
}

/* The parent has more bytes, or another state: waiting children may get some now. */
static void send_to_children(struct job_push *p, const struct node *n)
{
        for (int i = state_of(p, n)->first_child; i >= 0; i = p->nodes[i].next_sibling)
                if (p->nodes[i].state == PUSH_SENDING)
                        send_within_credit(p, &p->cluster->nodes[i]);
}

/* --- answers --- */

/* Lets SHARED nodes look again whose holder does not fetch any more. */
static void wake_sharing_nodes(struct job_push *p)
{
        for (size_t i = 0; i < p->cluster->n_nodes && p->in[PUSH_SHARED]; i++) {
                uint32_t holder = p->nodes[i].want.holder;

                if (p->nodes[i].state == PUSH_SHARED &&
                    (holder >= p->cluster->n_nodes || (p->nodes[holder].state != PUSH_OFFERED &&
                                                       p->nodes[holder].state != PUSH_SENDING)))
                        order_second_look(p, &p->cluster->nodes[i]);
        }
}

/* Whether the answer makes sense: some files of the manifest, or another node as the holder. */
static bool wants_files(const struct job_push *p, const struct node *n,
                        const struct push_want *want)
{
        const struct push_manifest *m = &p->manifest->manifest;

        if (want->holder == PUSH_NO_NODE && !want->n)
                return false; /* the answer would be PUSHED */
        if (want->holder != PUSH_NO_NODE &&
            (want->holder == (uint32_t)n->index || p->nodes[n->index].taking_over))
                return false; /* it would wait for itself, or for ever */
        for (uint32_t i = 0; i < want->n; i++)
                if (want->entries[i] >= m->n || m->v[want->entries[i]].kind != PUSH_FILE)
                        return false;
        return true;
}

/* Another node fetches into the file system of @n. */
static void begin_sharing(struct job_push *p, struct node *n)
{
        struct job_push_node *s = state_of(p, n);
        uint32_t holder = s->want.holder;
        enum push_state other = holder < p->cluster->n_nodes ? p->nodes[holder].state : PUSH_NOT;

        log_line(LOG_INFO, "%s shares its file system with %s", n->host->name,
                 holder < p->cluster->n_nodes ? p->cluster->nodes[holder].host->name
                                              : "an unknown node");
        set_push_state(p, s, PUSH_SHARED);
        send_to_children(p, n);
        if (other != PUSH_OFFERED && other != PUSH_SENDING)
                order_second_look(p, n);
}

int job_push_want(struct job_push *p, struct node *n, const struct frame *f, struct error *err)
{
        struct job_push_node *s;
        struct push_want m;

        if (push_want_decode(&m, f, err) < 0)
                return -err->code;
        s = state_of(p, n);
        if (s->state != PUSH_OFFERED || !wants_files(p, n, &m)) {
                push_want_finish(&m);
                return err_set(err, EPROTO, "message out of turn: WANT %s",
                               s->state == PUSH_OFFERED ? "of no files to be sent"
                                                        : "without an OFFER");
        }
        push_want_finish(&s->want);
        s->want = m;
        s->at = s->got = 0;
        if (m.holder != PUSH_NO_NODE) {
                begin_sharing(p, n);
        } else {
                set_push_state(p, s, PUSH_SENDING);
                for (uint32_t i = 0; i < m.n; i++)
                        p->wanted += p->manifest->manifest.v[m.entries[i]].size;
                send_within_credit(p, n);
        }
        offer_next(p);
        return 0;
}

/* A TAKEN counts a single CHUNK: its bytes and PUSH_CHUNK_COST. */
int job_push_taken(struct job_push *p, struct node *n, const struct frame *f, struct error *err)
{
        struct job_push_node *s = state_of(p, n);
        uint32_t bytes, len;

        if (number_decode(&bytes, f, err) < 0)
                return -err->code;
        if (s->state != PUSH_SENDING || (int64_t)bytes > s->window - s->credit)
                return err_set(err, EPROTO, "message out of turn: TAKEN for more than was sent");
        /* Each CHUNK is acknowledged, in order. */
        len = bytes - MIN(bytes, PUSH_CHUNK_COST);
        p->taken += len;
        s->got_offset += len;
        if (s->got < s->want.n &&
            s->got_offset >= p->manifest->manifest.v[s->want.entries[s->got]].size) {
                s->got_offset = 0;
                s->got++;
        }
        s->credit += bytes;
        send_within_credit(p, n);
        send_to_children(p, n);
        return 0;
}

int job_push_pushed(struct job_push *p, struct node *n, const struct frame *f, struct error *err)
{
        struct job_push_node *s = state_of(p, n);
        struct pushed m;
        uint32_t checked;

        if (pushed_decode(&m, f, err) < 0)
                return -err->code;
        /* A parent may fail to read for its children, several times, when its own files are done.
         */
        if (s->state == PUSH_FAILED && m.error)
                return 0;
        if (s->state != PUSH_OFFERED && s->state != PUSH_SENDING &&
            !(s->state == PUSH_DONE && m.error))
                return err_set(err, EPROTO, "message out of turn: PUSHED without an OFFER");
        if (s->state == PUSH_SENDING && !m.error && s->at < s->want.n)
                return err_set(err, EPROTO, "message out of turn: PUSHED before all was sent");
        if (!s->result)
                s->result = xcalloc(1, sizeof(*s->result));
        *s->result = m;
        if (m.error) {
                set_push_state(p, s, PUSH_FAILED);
                /* After damaged content: tells a change of the file here from damage on the way. */
                checked = m.error == EBADMSG ? MIN(s->want.n, s->at + 1) : 0;
                for (uint32_t i = 0; i < checked && !p->source_error; i++)
                        p->source_error =
                                manifest_check(p->manifest, s->want.entries[i], &p->source);
                if (options_replace_nodes(p->cluster->options))
                        wake_sharing_nodes(p);
        } else {
                set_push_state(p, s, PUSH_DONE);
                log_line(LOG_INFO, "%s: pushed files are in %s, %llu bytes were sent%s%s",
                         n->host->name, m.folder, (unsigned long long)(s->sent + s->given),
                         s->given ? " by " : "", s->given ? n->parent->host->name : "");
                cluster_emit(p->cluster, EVENT_NODE_PUSHED, n->index, -1, (int64_t)s->sent,
                             m.folder);
                /* All files are in the file system of @n: wakes the nodes sharing the same one. */
                for (size_t i = 0; i < p->cluster->n_nodes && p->in[PUSH_SHARED]; i++)
                        if (p->nodes[i].state == PUSH_SHARED &&
                            p->nodes[i].want.holder == (uint32_t)n->index)
                                order_second_look(p, &p->cluster->nodes[i]);
                send_to_children(p, n);
        }
        offer_next(p);
        return 0;
}

/* --- the whole --- */

/* Looks at the nodes only if any node has failed at all. */
static bool has_lost_node(const struct job_push *p)
{
        for (size_t i = 0; i < p->cluster->n_nodes && p->cluster->failed; i++)
                if (job_push_takes_part(p, i) && p->cluster->nodes[i].state != NODE_READY)
                        return true;
        return false;
}

static void tick(uv_timer_t *t)
{
        struct job_push *p = t->data;

        /* Asks parents again after a refusal for lack of credit, or within a frame. */
        for (size_t i = 0; i < p->cluster->n_nodes && p->cluster->tree; i++)
                if (p->nodes[i].state == PUSH_SENDING)
                        send_within_credit(p, &p->cluster->nodes[i]);
        events_emit(p->cluster->events, (struct event){ .kind = EVENT_PUSH_PROGRESS,
                                                        .node = -1,
                                                        .rank = -1,
                                                        .value = (int64_t)p->taken,
                                                        .count = (int64_t)p->wanted });
}

/* Another agent has none of the files, and may run on another machine. The node stays in the list
 * of the parent until the next push makes all lists anew: other nodes of the last push still
 * answer, and have their lists walked. */
void job_push_forget(struct job_push *p, size_t node)
{
        struct job_push_node *s = &p->nodes[node];

        push_want_finish(&s->want);
        free(s->result);
        set_push_state(p, s, PUSH_NOT);
        *s = (struct job_push_node){ .first_child = s->first_child,
                                     .next_sibling = s->next_sibling };
}

/* Queues nodes without the files, with a share of the memory as credit, and links the children of
 * the tree. Returns how many nodes are queued. */
static size_t queue_nodes(struct job_push *p, const struct plan *plan)
{
        size_t n = 0;

        p->queue = 0;
        for (size_t i = 0; i < p->cluster->n_nodes; i++) {
                /* With restarts a spare host gets the files, too: a later attempt may move ranks
                 * there. */
                bool used = plan->nodes[i].n_ranks || p->cluster->options->max_restarts;

                if (p->cluster->nodes[i].state == NODE_FAILED)
                        job_push_forget(p, i);
                p->nodes[i].first_child = -1;
                if (!used || p->cluster->nodes[i].host->local ||
                    p->cluster->nodes[i].state != NODE_READY || p->nodes[i].state != PUSH_NOT)
                        continue;
                set_push_state(p, &p->nodes[i], PUSH_QUEUED);
                n++;
        }
        for (size_t i = 0; i < p->cluster->n_nodes; i++) {
                struct job_push_node *s = &p->nodes[i];
                const struct node *parent = p->cluster->nodes[i].parent;

                if (s->state == PUSH_QUEUED)
                        s->credit = s->window =
                                MIN(MAX(MEMORY / (int64_t)n, WINDOW_MIN), WINDOW_MAX);
                if (parent) {
                        s->next_sibling = state_of(p, parent)->first_child;
                        state_of(p, parent)->first_child = (int)i;
                }
        }
        return n;
}

enum job_step job_push_run(struct job_push *p, const struct plan *plan, struct manifest *m,
                           struct error *err)
{
        const size_t *in = p->in;
        bool replaces = options_replace_nodes(p->cluster->options);
        bool offered, busy, lost;
        size_t n;

        p->manifest = m;
        n = queue_nodes(p, plan);
        if (!n && !in[PUSH_OFFERED] && !in[PUSH_SENDING] && !in[PUSH_SHARED])
                return JOB_DONE;
        events_emit(p->cluster->events, (struct event){ .kind = EVENT_PUSH_START,
                                                        .node = -1,
                                                        .rank = -1,
                                                        .value = (int64_t)m->bytes,
                                                        .count = (int64_t)n });
        heartbeat_start(p->heartbeat, true);
        uv_timer_start(&p->timer, tick, TICK_MS, TICK_MS);
        wake_sharing_nodes(p);
        offer_next(p);
        for (;;) {
                offered = in[PUSH_QUEUED] || in[PUSH_OFFERED];
                busy = in[PUSH_SENDING] || in[PUSH_SHARED];
                lost = has_lost_node(p);
                /* After a failure only nodes with an open offer are waited for: the same failure
                 * may be reported there. All are where other nodes may replace those. */
                if (lost || p->source_error || outcome_failed(&p->attempt->outcome) ||
                    (!offered && (!busy || (in[PUSH_FAILED] && !replaces))))
                        break;
                uv_run(p->cluster->loop, UV_RUN_ONCE);
        }
        uv_timer_stop(&p->timer);
        heartbeat_stop(p->heartbeat);
        if (outcome_failed(&p->attempt->outcome))
                return JOB_INTERRUPTED;
        if (p->source_error) {
                *err = p->source;
                return JOB_IMPOSSIBLE;
        }
        if (in[PUSH_FAILED])
                return JOB_NODES_UNFIT;
        return lost ? JOB_NODES_LOST : JOB_DONE;
}

struct job_push *job_push_create(struct cluster *c, struct attempt *a, struct heartbeat *h,
                                 const char *run_id)
{
        struct job_push *p = xcalloc(1, sizeof(*p));

        p->cluster = c;
        p->attempt = a;
        p->heartbeat = h;
        p->run_id = run_id;
        p->nodes = xcalloc(c->n_nodes, sizeof(*p->nodes));
        p->in[PUSH_NOT] = c->n_nodes;
        cluster_init_timer(c, &p->timer, p);
        return p;
}

void job_push_close(struct job_push *p)
{
        uv_close((uv_handle_t *)&p->timer, NULL);
}

void job_push_free(struct job_push *p)
{
        for (size_t i = 0; i < p->cluster->n_nodes; i++)
                job_push_forget(p, i);
        free(p->nodes);
        free(p);
}
