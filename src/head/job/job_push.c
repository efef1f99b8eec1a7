/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a node: NOT -> QUEUED -> OFFERED -> SENDING -> DONE, or FAILED.
 *
 * An OFFER carries the manifest, or the manifest's hash: for files that may be on the node already
 * (manifest.use), and for a manifest that is large for so many nodes. An agent without this
 * manifest asks for the whole, which comes by a second OFFER, or, when large, as a stream in a row
 * (LISTLESS, then LISTING). The agent answers with the missing files (WANT, then SENDING),
 * with the node which already fetches into the same file system (WANT with a holder, then SHARED),
 * or with PUSHED when no file is missing. A SHARED node is told to look again when the holder is
 * DONE.
 *
 * When all OFFERs are answered, or no answer has come for BATCH_MS, the nodes in LISTLESS and
 * SENDING get a stream: a row of nodes that pass it on (push_chain.c), for all files that any of
 * them misses; or for few bytes, or a single node, each is served from here. A node leaves the row
 * of the manifest before it joins the row of the files. A node that is served gets PACKs while it
 * has credit, and returns the credit by TAKEN once it has stored them and passed them on.
 *
 * in[] counts the nodes in each state: the condition to wait on is checked in every turn of the
 * loop and must not look at every node.
 */
#include "head/job/job_push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/heartbeat.h"
#include "head/job/job_push_private.h"
#include "head/job/push_chain.h"
#include "head/job/push_slow.h"

enum {
        MEMORY = 256 << 20, /* for bytes under way to all nodes together */
        WINDOW_MIN = 256 << 10,
        WINDOW_MAX = 4 << 20, /* 80 MB/s over 50 ms */
        WAITING = 128 << 10,  /* bytes under way that tell that the network is the limit */
        CHAIN_MIN = 1 << 20,  /* bytes saved here for which nodes open ports */
        LIST_MIN = 256 << 10, /* the same for manifests: many bytes follow */
        OFFERS = 64 << 20,    /* bytes of manifests under way together */
        BATCH_MS = 1000,
        TICK_MS = 100,
};

static struct job_push_node *state_of(const struct job_push *p, const struct node *n)
{
        return &p->nodes[n->index];
}

static bool owes_answer(const struct job_push_node *s)
{
        return s->state == PUSH_OFFERED || s->state == PUSH_LISTING;
}

/* Whether the node may have a claim, for which others wait. */
static bool may_fetch(const struct job_push *p, size_t node)
{
        return node < p->cluster->n_nodes &&
               (owes_answer(&p->nodes[node]) || p->nodes[node].state == PUSH_SENDING);
}

static bool gets_files(const struct job_push_node *s)
{
        return s->stream && !s->stream->list;
}

/* Also a node with an ended push, until job_push_forget(). */
bool job_push_takes_part(const struct job_push *p, size_t node)
{
        return p->nodes[node].state != PUSH_NOT;
}

bool job_push_began(const struct job_push *p)
{
        for (int i = 0; i < PUSH_USES; i++)
                if (p->all[i]->manifest)
                        return true;
        return false;
}

struct job_push *job_push_of_use(const struct job_push *p, enum push_use use)
{
        return p->all[use];
}

enum push_use job_push_last_use(const struct job_push *p)
{
        enum push_use use = PUSH_RANKS;

        while (p->all[use] != p)
                use++;
        return use;
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
        struct push_offer m = { .keep = p->cluster->options->keep, .label = p->manifest->label };

        snprintf(m.run_id, sizeof(m.run_id), "%s", p->run_id);
        for (; p->in[PUSH_QUEUED]; p->queue++) {
                struct job_push_node *s = &p->nodes[p->queue];
                struct node *n = &p->cluster->nodes[p->queue];

                if (s->state != PUSH_QUEUED)
                        continue;
                s->full |= m.label.use == PUSH_RANKS && !p->row_of_list;
                if (s->full && p->in[PUSH_OFFERED] >= most)
                        break;
                m.node = (uint32_t)n->index;
                m.later = s->full ? 0 : (uint32_t)p->manifest->wire_bytes;
                m.manifest = s->full ? p->manifest->manifest : (struct push_manifest){ 0 };
                /* Without a ping for so long the agent takes the head for lost. */
                m.silence_ms = heartbeat_agent_ms(p->heartbeat, n);
                push_offer_encode(&n->out, &m);
                set_push_state(p, s, PUSH_OFFERED);
                node_flush(n);
        }
}

/* Has the manifest offered again, as a whole. */
static void queue_again(struct job_push *p, size_t node)
{
        set_push_state(p, &p->nodes[node], PUSH_QUEUED);
        p->queue = MIN(p->queue, node);
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

/* Sends the PACK at @at to @n. False: a file cannot be read. */
static bool send_pack(struct job_push *p, struct node *n, struct job_push_node *s,
                      struct pack_place *at)
{
        /* While bytes wait for the network there is time to make the next ones fewer. */
        bool deflate = s->window - s->credit >= WAITING;
        size_t before = buf_len(&n->out);
        int r = pack_stream_put(s->stream->packs, at, deflate, &n->out, &p->source);

        if (r < 0) {
                p->source_error = r;
                return false;
        }
        s->sent += s->stream->list ? 0 : (uint64_t)r;
        s->credit -= (int64_t)(buf_len(&n->out) - before);
        s->framed += buf_len(&n->out) - before;
        return true;
}

static void send_within_credit(struct job_push *p, struct node *n)
{
        struct job_push_node *s = state_of(p, n);

        while (s->served && s->credit > 0 && !p->source_error &&
               s->place.position < pack_stream_packs(s->stream->packs))
                if (!send_pack(p, n, s, &s->place))
                        break;
        node_flush(n);
}

/* Fits push_chain_ops. */
static void serve_node(void *ctx, size_t node, uint32_t position)
{
        struct job_push *p = ctx;
        struct job_push_node *s = &p->nodes[node];

        s->served = true;
        s->start = s->place = pack_stream_seek(s->stream->packs, position);
        s->framed = 0;
        send_within_credit(p, &p->cluster->nodes[node]);
}

/* Fits push_chain_ops. */
static uint64_t send_sample(void *ctx, size_t node, size_t first, uint64_t bytes, uint64_t least)
{
        struct job_push *p = ctx;
        struct job_push_node *s = &p->nodes[node], *f = &p->nodes[first];
        uint32_t to = f->place.position, sent = to - f->start.position;
        uint64_t left = pack_stream_packs(f->stream->packs) - count_taken_packs(f);
        struct pack_place at =
                pack_stream_seek(f->stream->packs, to - MIN(to, (uint32_t)PUSH_RING));
        uint64_t before = s->framed;

        if (!sent || left * f->framed / sent < least)
                return 0;
        while (at.position < to && s->credit > 0 && s->framed - before < bytes)
                if (!send_pack(p, &p->cluster->nodes[node], s, &at))
                        break;
        node_flush(&p->cluster->nodes[node]);
        return s->framed - before;
}

static void rest_node(void *ctx, size_t node)
{
        struct job_push *p = ctx;

        p->nodes[node].served = false;
}

/* The node gets nothing more. Also fits push_chain_ops. */
static void drop_stream(void *ctx, size_t node)
{
        struct job_push *p = ctx;
        struct sent_stream *t = STEAL(&p->nodes[node].stream);

        rest_node(p, node);
        if (!t || --t->nodes)
                return;
        pack_stream_free(t->packs);
        free(t);
}

/* --- streams --- */

static struct sent_stream *create_stream(struct job_push *p, size_t row, const uint32_t *entries,
                                         uint32_t n)
{
        struct sent_stream *t = xcalloc(1, sizeof(*t));

        t->packs = pack_stream_create(p->manifest, ++p->all[PUSH_RANKS]->streams, row, entries, n);
        t->list = *entries == PUSH_LIST;
        return t;
}

static void give_stream(struct job_push *p, size_t node, struct sent_stream *t)
{
        p->nodes[node].stream = t;
        t->nodes++;
}

/* Makes a stream of all that any of the nodes misses. */
static struct sent_stream *create_common_stream(struct job_push *p, const size_t *nodes, size_t n)
{
        uint32_t *entries = xcalloc(p->manifest->manifest.n, sizeof(*entries)), many = 0;
        bool *missing = xcalloc(p->manifest->manifest.n, sizeof(*missing));
        struct sent_stream *t;

        for (size_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < p->nodes[nodes[i]].want.n; k++)
                        missing[p->nodes[nodes[i]].want.entries[k]] = true;
        for (uint32_t k = 0; k < p->manifest->manifest.n; k++)
                if (missing[k])
                        entries[many++] = k;
        t = create_stream(p, n, entries, many);
        free(entries);
        free(missing);
        return t;
}

/* Serves each node from here. Nodes that miss the same share the work of making PACKs. */
static void serve_batch(struct job_push *p, const size_t *nodes, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct push_want *want = &p->nodes[nodes[i]].want;
                struct sent_stream *last = i ? p->nodes[nodes[i - 1]].stream : NULL;

                if (!last || !pack_stream_is_of(last->packs, want->entries, want->n))
                        last = create_stream(p, 1, want->entries, want->n);
                give_stream(p, nodes[i], last);
        }
        for (size_t i = 0; i < n; i++)
                serve_node(p, nodes[i], 0);
}

static void begin_common_stream(struct job_push *p, struct sent_stream *t, const size_t *nodes,
                                size_t n)
{
        for (size_t i = 0; i < n; i++)
                give_stream(p, nodes[i], t);
        push_chain_begin(p->chain, t->packs, nodes, n);
}

/* Sends the manifest. */
static void send_list(struct job_push *p, const size_t *nodes, size_t n)
{
        static const uint32_t list = PUSH_LIST;

        for (size_t i = 0; i < n; i++)
                if (n > 1)
                        set_push_state(p, &p->nodes[nodes[i]], PUSH_LISTING);
                else
                        queue_again(p, nodes[i]);
        if (n > 1)
                begin_common_stream(p, create_stream(p, n, &list, 1), nodes, n);
        offer_next(p);
}

/* Sends missing files. */
static void send_files(struct job_push *p, const size_t *nodes, size_t n)
{
        uint64_t wanted = 0, most = 0;

        for (size_t i = 0; i < n; i++) {
                wanted += p->nodes[nodes[i]].wanted;
                most = MAX(most, p->nodes[nodes[i]].wanted);
                push_chain_forget(p->chain, nodes[i]); /* the row of the manifest */
        }
        if (wanted - most < CHAIN_MIN)
                serve_batch(p, nodes, n);
        else
                begin_common_stream(p, create_common_stream(p, nodes, n), nodes, n);
}

/* Gives a stream to the nodes in a state that wait for one. */
static void begin_batch_of(struct job_push *p, enum push_state state,
                           void (*begin)(struct job_push *p, const size_t *nodes, size_t n))
{
        size_t *nodes = xcalloc(p->cluster->n_nodes, sizeof(*nodes)), n = 0;

        for (size_t i = 0; i < p->cluster->n_nodes && p->in[state]; i++)
                if (p->nodes[i].state == state && !gets_files(&p->nodes[i]) &&
                    p->cluster->nodes[i].state == NODE_READY)
                        nodes[n++] = i;
        begin(p, nodes, n);
        free(nodes);
}

/* One node more waits for a stream. */
static void await_batch(struct job_push *p)
{
        p->batch++;
        p->batch_ns = clock_ns();
}

/* Waits for answers of other nodes, but not long for the last ones. */
static void begin_batch_if_due(struct job_push *p)
{
        if (!p->batch || ((p->in[PUSH_OFFERED] || p->in[PUSH_QUEUED] || p->in[PUSH_LISTING]) &&
                          clock_ns() - p->batch_ns <= BATCH_MS * INT64_C(1000000)))
                return;
        p->batch = 0;
        begin_batch_of(p, PUSH_LISTLESS, send_list);
        begin_batch_of(p, PUSH_SENDING, send_files);
}

/* --- answers --- */

/* Lets SHARED nodes look again whose holder does not fetch any more. */
static void wake_sharing_nodes(struct job_push *p)
{
        for (size_t i = 0; i < p->cluster->n_nodes && p->in[PUSH_SHARED]; i++)
                if (p->nodes[i].state == PUSH_SHARED && !may_fetch(p, p->nodes[i].want.holder))
                        order_second_look(p, &p->cluster->nodes[i]);
}

/* Whether the node may still ask for the manifest. */
static bool may_ask_manifest(const struct job_push *p, const struct node *n)
{
        return !state_of(p, n)->full;
}

/* Whether the answer makes sense: some files of the manifest, or another node as the holder. */
static bool wants_files(const struct job_push *p, const struct node *n,
                        const struct push_want *want)
{
        const struct push_manifest *m = &p->manifest->manifest;

        if (want->holder == PUSH_NO_NODE && !want->n)
                return may_ask_manifest(p, n); /* else the answer would be PUSHED */
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

        log_line(LOG_INFO, "%s shares its file system with %s", n->host->name,
                 holder < p->cluster->n_nodes ? p->cluster->nodes[holder].host->name
                                              : "an unknown node");
        set_push_state(p, s, PUSH_SHARED);
        if (!may_fetch(p, holder))
                order_second_look(p, n);
}

static int take_want(struct job_push *p, struct node *n, const struct frame *f, struct error *err)
{
        struct job_push_node *s;
        struct push_want m;

        if (push_want_decode(&m, f, err) < 0)
                return -err->code;
        s = state_of(p, n);
        if (!owes_answer(s) || !wants_files(p, n, &m)) {
                push_want_finish(&m);
                return err_set(err, EPROTO, "message out of turn: WANT %s",
                               owes_answer(s) ? "of no files to be sent" : "without an OFFER");
        }
        push_want_finish(&s->want);
        s->want = m;
        if (m.holder == PUSH_NO_NODE && !m.n) {
                s->full = true;
                if (p->row_of_list) {
                        set_push_state(p, s, PUSH_LISTLESS);
                        await_batch(p);
                } else {
                        queue_again(p, (size_t)n->index);
                }
        } else if (m.holder != PUSH_NO_NODE) {
                begin_sharing(p, n);
        } else {
                set_push_state(p, s, PUSH_SENDING);
                s->wanted = 0;
                for (uint32_t i = 0; i < m.n; i++)
                        s->wanted += p->manifest->manifest.v[m.entries[i]].size;
                p->wanted += s->wanted;
                await_batch(p);
        }
        push_chain_done(p->chain, (size_t)n->index);
        offer_next(p);
        begin_batch_if_due(p);
        return 0;
}

/* Returns bytes to the credit of a node, at most the bytes under way, and their number. */
static uint32_t return_credit(struct job_push *p, struct node *n, uint32_t bytes)
{
        struct job_push_node *s = state_of(p, n);

        bytes = (uint32_t)MIN((int64_t)bytes, s->window - s->credit);
        s->credit += bytes;
        if (s->served)
                s->stream->taken = MAX(s->stream->taken, count_taken_packs(s));
        push_chain_taken(p->chain, (size_t)n->index, bytes);
        return bytes;
}

/* A node in a row may have stored all, and still pass on when the files of the next use are
 * offered: bytes of an earlier push come first. */
static int take_taken(struct job_push *p, struct node *n, const struct frame *f, struct error *err)
{
        uint32_t bytes;

        if (number_decode(&bytes, f, err) < 0)
                return -err->code;
        for (int i = 0; i < PUSH_USES; i++)
                if (p->all[i] != p)
                        bytes -= return_credit(p->all[i], n, bytes);
        if (bytes > return_credit(p, n, bytes))
                return err_set(err, EPROTO, "message out of turn: TAKEN for more than was sent");
        send_within_credit(p, n);
        return 0;
}

static int take_pushed(struct job_push *p, struct node *n, const struct frame *f, struct error *err)
{
        static const char *const what[PUSH_USES] = {
                [PUSH_RANKS] = "pushed files are",
                [PUSH_STAGE] = "staged files are",
                [PUSH_VENV] = "the environment is",
        };
        struct job_push_node *s = state_of(p, n);
        struct pushed m;
        int from;

        if (pushed_decode(&m, f, err) < 0)
                return -err->code;
        if (s->state == PUSH_FAILED && (m.error || s->result->error == ETIME))
                return 0; /* known already, or was too slow */
        if (!owes_answer(s) && s->state != PUSH_SENDING &&
            !((s->state == PUSH_DONE || s->state == PUSH_LISTLESS) && m.error))
                return err_set(err, EPROTO, "message out of turn: PUSHED without an OFFER");
        if (s->state == PUSH_SENDING && !gets_files(s) && !m.error)
                return err_set(err, EPROTO, "message out of turn: PUSHED before anything was sent");
        from = gets_files(s) ? push_chain_source(p->chain, (size_t)n->index) : -1;
        if (!s->result)
                s->result = xcalloc(1, sizeof(*s->result));
        *s->result = m;
        if (m.error) {
                set_push_state(p, s, PUSH_FAILED);
                /* After damaged content: tells a change of the file here from damage on the way. */
                for (uint32_t i = 0; m.error == EBADMSG && i < s->want.n && !p->source_error; i++)
                        p->source_error =
                                manifest_check(p->manifest, s->want.entries[i], &p->source);
                if (options_replace_nodes(p->cluster->options))
                        wake_sharing_nodes(p);
        } else {
                set_push_state(p, s, PUSH_DONE);
                log_line(LOG_INFO, "%s: %s in %s, %llu bytes were sent%s%s", n->host->name,
                         what[p->manifest->label.use], m.folder, (unsigned long long)s->sent,
                         from >= 0 ? ", the others come through " : "",
                         from >= 0 ? p->cluster->nodes[from].host->name : "");
                cluster_emit(p->cluster, EVENT_NODE_PUSHED, n->index, -1, (int64_t)s->sent,
                             m.folder);
                /* All files are in the file system of @n: wakes the nodes sharing the same one. */
                for (size_t i = 0; i < p->cluster->n_nodes && p->in[PUSH_SHARED]; i++)
                        if (p->nodes[i].state == PUSH_SHARED &&
                            p->nodes[i].want.holder == (uint32_t)n->index)
                                order_second_look(p, &p->cluster->nodes[i]);
        }
        /* In a row the nodes behind may need what this one has. */
        push_chain_done(p->chain, (size_t)n->index);
        if (!push_chain_has(p->chain, (size_t)n->index))
                drop_stream(p, (size_t)n->index);
        offer_next(p);
        begin_batch_if_due(p);
        return 0;
}

int job_push_take(struct job_push *p, struct node *n, const struct frame *f, struct error *err)
{
        switch (f->type) {
        case MSG_WANT:
                return take_want(p, n, f, err);
        case MSG_TAKEN:
                return take_taken(p, n, f, err);
        case MSG_CHAINED:
                return push_chain_report(p->chain, (size_t)n->index, f, err);
        default:
                return take_pushed(p, n, f, err);
        }
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

/* Returns how many bytes the nodes have: in a row about as many as the first node. */
static uint64_t count_taken(const struct job_push *p)
{
        uint64_t taken = p->wanted;

        for (size_t i = 0; i < p->cluster->n_nodes; i++) {
                const struct job_push_node *s = &p->nodes[i];

                if (s->state == PUSH_SENDING)
                        taken -= s->wanted;
                if (s->state == PUSH_SENDING && gets_files(s))
                        taken += (uint64_t)((double)s->wanted *
                                            (s->served ? count_taken_packs(s) : s->stream->taken) /
                                            pack_stream_packs(s->stream->packs));
        }
        return taken;
}

/* Lets spare hosts take the places of slow nodes. */
static void give_up_slow_nodes(struct job_push *p)
{
        char why[sizeof(p->nodes->result->what)];
        int i;

        while ((i = push_slow_find(p->slow, why, sizeof(why))) >= 0) {
                struct job_push_node *s = &p->nodes[i];

                free(s->result);
                s->result = xcalloc(1, sizeof(*s->result));
                s->result->error = ETIME;
                snprintf(s->result->what, sizeof(s->result->what), "%s", why);
                set_push_state(p, s, PUSH_FAILED);
                push_chain_forget(p->chain, (size_t)i);
                drop_stream(p, (size_t)i);
        }
}

static void tick(uv_timer_t *t)
{
        struct job_push *p = t->data;

        push_chain_check(p->chain);
        begin_batch_if_due(p);
        give_up_slow_nodes(p);
        events_emit(p->cluster->events, (struct event){ .kind = EVENT_PUSH_PROGRESS,
                                                        .node = -1,
                                                        .rank = -1,
                                                        .value = (int64_t)count_taken(p),
                                                        .count = (int64_t)p->wanted });
}

/* Another agent has none of the files, and may run on another machine. */
static void forget_node(struct job_push *p, size_t node)
{
        struct job_push_node *s = &p->nodes[node];

        push_chain_forget(p->chain, node);
        if (s->state == PUSH_SENDING)
                p->wanted -= s->wanted;
        drop_stream(p, node);
        push_want_finish(&s->want);
        free(s->result);
        set_push_state(p, s, PUSH_NOT);
        *s = (struct job_push_node){ 0 };
}

void job_push_forget(struct job_push *p, size_t node)
{
        for (int i = 0; i < PUSH_USES; i++)
                forget_node(p->all[i], node);
}

/* Queues nodes without the files, with a share of the memory as credit. Returns how many. */
static size_t queue_nodes(struct job_push *p, const struct plan *plan)
{
        size_t n = 0;

        p->queue = 0;
        for (size_t i = 0; i < p->cluster->n_nodes; i++) {
                /* With restarts a spare host gets the files, too: a later attempt may move ranks
                 * there. */
                bool used = !plan || plan->nodes[i].n_ranks || p->cluster->options->max_restarts;
                bool here = p->cluster->nodes[i].host->local && !p->manifest->here_too;

                if (p->cluster->nodes[i].state == NODE_FAILED)
                        forget_node(p, i);
                if (!used || here || p->cluster->nodes[i].state != NODE_READY ||
                    p->nodes[i].state != PUSH_NOT)
                        continue;
                set_push_state(p, &p->nodes[i], PUSH_QUEUED);
                n++;
        }
        for (size_t i = 0; i < p->cluster->n_nodes; i++)
                if (p->nodes[i].state == PUSH_QUEUED)
                        p->nodes[i].credit = p->nodes[i].window =
                                MIN(MAX(MEMORY / (int64_t)n, WINDOW_MIN), WINDOW_MAX);
        p->row_of_list = n && (n - 1) * p->manifest->wire_bytes >= LIST_MIN;
        return n;
}

enum job_step job_push_run(struct job_push *p, const struct plan *plan, struct manifest *m,
                           struct error *err)
{
        const size_t *in = p->in;
        bool replaces = options_replace_nodes(p->cluster->options);
        bool offered, busy, lost;
        size_t n, under_way = 0;

        p->manifest = m;
        n = queue_nodes(p, plan);
        for (int i = PUSH_OFFERED; i <= PUSH_SENDING; i++)
                under_way += in[i];
        if (!n && !under_way)
                return JOB_DONE;
        events_emit(p->cluster->events, (struct event){ .kind = EVENT_PUSH_START,
                                                        .node = -1,
                                                        .rank = -1,
                                                        .value = (int64_t)m->bytes,
                                                        .count = (int64_t)(n + under_way) });
        push_slow_begin(p->slow);
        heartbeat_start(p->heartbeat, true);
        uv_timer_start(&p->timer, tick, TICK_MS, TICK_MS);
        wake_sharing_nodes(p);
        offer_next(p);
        for (;;) {
                offered = in[PUSH_QUEUED] || in[PUSH_OFFERED] || in[PUSH_LISTLESS] ||
                          in[PUSH_LISTING];
                busy = in[PUSH_SENDING] || in[PUSH_SHARED];
                lost = has_lost_node(p);
                /* After a failure only nodes with an open offer are waited for: the same failure
                 * may be reported there. All are where other nodes may replace those. */
                if (lost || p->source_error || outcome_failed(&p->attempt->outcome) ||
                    (!offered && (!busy || (in[PUSH_FAILED] && !replaces))))
                        break;
                uv_run(p->cluster->loop, UV_RUN_ONCE);
        }
        push_chain_check(p->chain); /* nodes behind a lost one go on meanwhile */
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

static struct job_push *create_push(struct cluster *c, struct attempt *a, struct heartbeat *h,
                                    const char *run_id)
{
        static const struct push_chain_ops ops = {
                .serve = serve_node, .rest = rest_node, .sample = send_sample, .left = drop_stream
        };
        struct job_push *p = xcalloc(1, sizeof(*p));

        p->cluster = c;
        p->attempt = a;
        p->heartbeat = h;
        p->run_id = run_id;
        p->nodes = xcalloc(c->n_nodes, sizeof(*p->nodes));
        p->in[PUSH_NOT] = c->n_nodes;
        p->chain = push_chain_create(c, &ops, p);
        p->slow = push_slow_create(p);
        cluster_init_timer(c, &p->timer, p);
        return p;
}

struct job_push *job_push_create(struct cluster *c, struct attempt *a, struct heartbeat *h,
                                 const char *run_id)
{
        struct job_push **all = xcalloc(PUSH_USES, sizeof(*all));

        for (int i = 0; i < PUSH_USES; i++) {
                all[i] = create_push(c, a, h, run_id);
                all[i]->all = all;
        }
        return all[PUSH_RANKS];
}

void job_push_close(struct job_push *p)
{
        for (int i = 0; i < PUSH_USES; i++)
                uv_close((uv_handle_t *)&p->all[i]->timer, NULL);
}

void job_push_free(struct job_push *p)
{
        struct job_push **all = p->all;

        for (int use = 0; use < PUSH_USES; use++) {
                p = all[use];
                push_chain_free(p->chain);
                push_slow_free(p->slow);
                for (size_t i = 0; i < p->cluster->n_nodes; i++) {
                        drop_stream(p, i);
                        push_want_finish(&p->nodes[i].want);
                        free(p->nodes[i].result);
                }
                free(p->nodes);
                free(p);
        }
        free(all);
}
