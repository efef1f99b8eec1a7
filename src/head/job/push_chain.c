/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a node says where the bytes come from. A connection is made in two steps: the node
 * LISTENs (ASKED), the node before CONNECTs (CONNECTING), and then the node is LINKED. If either
 * fails, the node LEAVEs: closes the connection and reports the position, from which the head
 * serves the node (SERVED). Each order has a number, which reports repeat: late reports are known.
 *
 * Nodes keep the last PACKs of the stream (PUSH_RING). A node with a new node before reports the
 * position there, and the stream goes on without a gap: after the loss of a node, and after a slow
 * node has moved.
 *
 * A node that reports the next one as slow may be the cause: the second report of the same node
 * moves that node. The last node of a row may yield: the node before never waits, and breaks the
 * connection once the PACKs are no longer kept. The last node is LATE then, as further slow nodes
 * are at once: the head serves late nodes when all others are done.
 *
 * The first node has no node before to compare: the own link may be slow, or the link of the head.
 * So the head sends another node a sample, of PACKs already there or ignored, while the first is
 * served. A node taking the sample at several times the rate shows the first node to be slow.
 */
#include "head/job/push_chain.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/job/cluster.h"
#include "head/model/master_addr.h"
#include "head/push/pack_stream.h"
#include "wire/push_msg.h"

enum {
        STEP_MS = 5000,   /* for an answer to LISTEN and CONNECT; the agent's limit is less */
        BROKEN_MS = 1000, /* for the loss of the node to be noticed */
        ASK_MS = 1000,    /* for ports, before the first byte is sent */
        SLOW_MS = 3000,   /* a node that waits for another one seems slow for so long */
        LAST_MS = 3000,   /* for slow nodes to catch up when all others are done */
};

/* Samples are an eighth of a second long, and few beside what is left. */
enum {
        SAMPLE_MS =
                3000, /* until the first; four times longer until each further one, to a limit */
        SAMPLE_STEPS = 3,
        SAMPLE_MIN = 128 << 10, /* bytes: more than networks let pass at once */
        SAMPLE_PART = 8,        /* of a second */
        SAMPLES_LEFT = 16,      /* bytes that are left, in samples */
        SLOW_FACTOR = 3,
};

enum chain_state {
        CHAIN_OUT,        /* not in a row */
        CHAIN_SERVED,     /* by the head, or will be when all ports are known */
        CHAIN_ASKED,      /* for a port */
        CHAIN_CONNECTING, /* the node before connects */
        CHAIN_LINKED,
        CHAIN_SEVERED, /* the connection broke: is the node lost? */
        CHAIN_LEAVING, /* asked for its position; then served, or late */
        CHAIN_LATE,    /* served when the others are done */
};

/* The row of a stream. */
struct chain_row {
        const struct pack_stream *packs;
        size_t nodes, asked; /* in the row; ASKED */
        bool began;          /* bytes are sent */
        int64_t changed_ns;  /* when a node has changed its state, or was slow */
        int64_t rest_ns;     /* since when only slow nodes miss anything; 0 = others do */
};

/* Bytes that a node takes from the head. */
struct chain_intake {
        int64_t since_ns, taken_ns;
        uint64_t taken, rate;  /* bytes since then; bytes per second before the sample */
        unsigned samples;      /* that other nodes have got */
        int other;             /* the last of them, -1 = none */
        uint64_t sample, left; /* bytes of the own sample; without a TAKEN */
        int64_t sample_ns;
};

struct chain_node {
        enum chain_state state;
        struct chain_row *row;  /* NULL = none */
        int before, behind;     /* -1 = none */
        uint32_t asked, number; /* the last LISTEN or LEAVE; the last CONNECT to the node behind */
        uint32_t port, position;
        unsigned char key[PUSH_CHAIN_KEY];
        int64_t since_ns, slow_ns; /* of the state; of its last CHAINED_SLOW */
        unsigned slow_reports;
        int blamed; /* by the first report, -1 = none */
        struct chain_intake pace;
        bool yields, late, done;
};

struct push_chain {
        struct cluster *cluster;
        struct push_chain_ops ops;
        void *ctx;
        struct chain_node *v; /* one per host */
        uint32_t orders;
        size_t rows;
};

static struct node *chain_host(const struct push_chain *c, size_t i)
{
        return &c->cluster->nodes[i];
}

static void set_chain_state(struct chain_node *s, enum chain_state state)
{
        s->row->asked -= s->state == CHAIN_ASKED;
        s->row->asked += state == CHAIN_ASKED;
        s->state = state;
        s->row->changed_ns = s->since_ns = clock_ns();
}

static void reset_chain_node(struct chain_node *s, struct chain_row *row)
{
        *s = (struct chain_node){ .row = row, .before = -1, .behind = -1, .blamed = -1 };
        s->pace.other = -1;
}

/* --- orders ----------------------------------------------------------------------------------- */

/* Sends an order, whose other fields the caller has filled in. Returns its number. */
static uint32_t send_chain_order(struct push_chain *c, size_t i, struct chain_order m)
{
        struct node *n = chain_host(c, i);

        m.stream = pack_stream_number(c->v[i].row->packs);
        m.packs = pack_stream_packs(c->v[i].row->packs);
        m.number = ++c->orders;
        if (!n->ended && n->state == NODE_READY) {
                chain_order_encode(&n->out, &m);
                node_flush(n);
        }
        return m.number;
}

static void order_chain(struct push_chain *c, size_t i, enum chain_what what)
{
        send_chain_order(c, i, (struct chain_order){ .what = (uint8_t)what });
}

/* Asks @i for a port for the node before. */
static void ask_chain_port(struct push_chain *c, size_t i)
{
        struct chain_order m = { .what = CHAIN_LISTEN };
        struct chain_node *s = &c->v[i];

        randombytes_buf(s->key, sizeof(s->key));
        memcpy(m.key, s->key, sizeof(m.key));
        s->asked = send_chain_order(c, i, m);
        set_chain_state(s, CHAIN_ASKED);
}

/* Orders the node before @i to connect. False: there is no address to try. */
static bool order_chain_connection(struct push_chain *c, size_t i)
{
        struct chain_node *s = &c->v[i];
        const struct node *to = chain_host(c, i);
        const struct hello *hellos[] = { &to->hello, &chain_host(c, (size_t)s->before)->hello };
        struct chain_order m = { .what = CHAIN_CONNECT, .yields = s->yields, .port = s->port };
        struct master_addr_list list;
        struct error err;

        if (master_addr_candidates(&list, to->host, hellos, 2, c->cluster->options->iface, &err) <
            0)
                return false;
        memcpy(m.key, s->key, sizeof(m.key));
        for (size_t k = 0; k < MIN(list.n, (size_t)PUSH_CHAIN_ADDRS); k++)
                strv_push(&m.addrs, list.v[k].addr);
        c->v[s->before].number = send_chain_order(c, (size_t)s->before, m);
        strv_finish(&m.addrs);
        return true;
}

/* --- the row ---------------------------------------------------------------------------------- */

/* Takes @i out of its place and joins its neighbours, without orders. */
static void unlink_chain_node(struct push_chain *c, size_t i)
{
        struct chain_node *s = &c->v[i];

        if (s->before >= 0)
                c->v[s->before].behind = s->behind;
        if (s->behind >= 0)
                c->v[s->behind].before = s->before;
        s->before = s->behind = -1;
}

/* Begins to serve the nodes of a row for which the head does it. */
static void begin_row(struct push_chain *c, struct chain_row *row)
{
        row->began = true;
        for (size_t i = 0; i < c->cluster->n_nodes; i++)
                if (c->v[i].row == row && c->v[i].state == CHAIN_SERVED)
                        c->ops.serve(c->ctx, i, c->v[i].position);
}

static void serve_chain_node(struct push_chain *c, size_t i)
{
        set_chain_state(&c->v[i], CHAIN_SERVED);
        if (c->v[i].row->began)
                c->ops.serve(c->ctx, i, c->v[i].position);
}

/* Has the head serve @i once the position is known: slow nodes later. The node behind stays. */
static void leave_chain_place(struct push_chain *c, size_t i)
{
        struct chain_node *s = &c->v[i];

        if (s->before >= 0) {
                order_chain(c, (size_t)s->before, CHAIN_LAST);
                c->v[s->before].behind = -1;
                s->before = -1;
        }
        if (s->state == CHAIN_SERVED)
                c->ops.rest(c->ctx, i);
        s->late |= s->yields;
        s->asked = send_chain_order(c, i, (struct chain_order){ .what = CHAIN_LEAVE });
        set_chain_state(s, CHAIN_LEAVING);
}

/* Connects @i, whose node before has gone, to the node there now; or to the head. */
static void replace_chain_source(struct push_chain *c, size_t i)
{
        if (c->v[i].before >= 0)
                ask_chain_port(c, i);
        else
                leave_chain_place(c, i);
}

/* Serves nodes that are late once no other node, but for slow ones, misses anything. */
static void serve_late_nodes(struct push_chain *c, struct chain_row *row)
{
        for (size_t i = 0; i < c->cluster->n_nodes; i++)
                if (c->v[i].row == row && !c->v[i].done && !c->v[i].yields)
                        return;
        if (!row->rest_ns)
                row->rest_ns = clock_ns();
        for (size_t i = 0; i < c->cluster->n_nodes; i++)
                if (c->v[i].row == row && c->v[i].state == CHAIN_LATE)
                        serve_chain_node(c, i);
}

/* Takes a node out for good. The row goes with the last one. */
static void remove_chain_node(struct push_chain *c, size_t i)
{
        struct chain_node *s = &c->v[i];
        struct chain_row *row = s->row;
        int before = s->before, behind = s->behind;

        if (!row)
                return;
        unlink_chain_node(c, i);
        set_chain_state(s, CHAIN_OUT);
        reset_chain_node(s, NULL);
        c->ops.left(c->ctx, i);
        if (--row->nodes == 0) {
                free(row);
                c->rows--;
                return;
        }
        if (behind >= 0)
                replace_chain_source(c, (size_t)behind);
        else if (before >= 0)
                order_chain(c, (size_t)before, CHAIN_LAST);
        serve_late_nodes(c, row);
}

/* Ends the row when all its nodes have what they miss. */
static void end_row_if_done(struct push_chain *c, const struct chain_row *row)
{
        size_t left = row->nodes;

        for (size_t i = 0; i < c->cluster->n_nodes; i++)
                if (c->v[i].row == row && !c->v[i].done)
                        return;
        for (size_t i = 0; i < c->cluster->n_nodes && left; i++) {
                if (c->v[i].row != row)
                        continue;
                left--;
                order_chain(c, i, CHAIN_END);
                c->v[i].before = c->v[i].behind = -1;
                remove_chain_node(c, i);
        }
}

/* --- slow nodes ------------------------------------------------------------------------------- */

/* Returns the last node of the row in which @i stands. */
static size_t find_chain_end(const struct push_chain *c, size_t i)
{
        while (c->v[i].behind >= 0)
                i = (size_t)c->v[i].behind;
        return i;
}

/* Moves a node behind all others of its row, where no node waits for it. */
static void move_slow_node(struct push_chain *c, size_t i)
{
        struct chain_node *s = &c->v[i];
        int before = s->before, behind = s->behind;
        size_t end = find_chain_end(c, i);

        s->yields = true;
        if (end == i) { /* nothing to move, but the node before must not wait */
                order_chain(c, (size_t)before, CHAIN_YIELD);
                return;
        }
        unlink_chain_node(c, i);
        order_chain(c, i, CHAIN_LAST);
        s->late = c->v[end].yields; /* one place is enough */
        if (s->late) {
                leave_chain_place(c, i);
        } else {
                if (s->state == CHAIN_SERVED)
                        c->ops.rest(c->ctx, i);
                s->before = (int)end;
                c->v[end].behind = (int)i;
                ask_chain_port(c, i);
        }
        replace_chain_source(c, (size_t)behind);
}

/* Handles the report of @i that the node behind takes too little. A node that waits for another one
 * seems slow to the node before, so the last report in a row of waiting nodes counts. */
static void handle_slow_report(struct push_chain *c, size_t i)
{
        struct chain_node *s = &c->v[i];
        struct chain_node *behind = &c->v[s->behind];
        size_t slow = (size_t)s->behind;
        int64_t now = clock_ns();

        s->row->changed_ns = s->slow_ns = now;
        if (behind->state != CHAIN_LINKED || behind->yields ||
            (behind->slow_ns && now - behind->slow_ns < SLOW_MS * INT64_C(1000000)) ||
            (behind->behind >= 0 && c->v[behind->behind].state != CHAIN_LINKED))
                return;
        s->slow_ns = 0; /* what it waited for goes */
        if (s->slow_reports++) {
                slow = i;
                if (s->blamed >= 0 && !c->v[s->blamed].late)
                        c->v[s->blamed].yields = false;
        } else {
                s->blamed = s->behind;
        }
        log_line(LOG_INFO, "%s passes files on slowly: the nodes behind go on without it",
                 chain_host(c, slow)->host->name);
        move_slow_node(c, slow);
}

/* Begins to measure @i, which the head serves. */
static void measure_first_node(struct push_chain *c, size_t i, int64_t now)
{
        struct chain_intake *p = &c->v[i].pace;

        p->since_ns = p->taken_ns = now;
        p->taken = 0;
}

/* Chooses the node behind @i that gets the next sample. -1: not now. */
static int choose_sampled_node(struct push_chain *c, size_t i)
{
        struct chain_node *s = &c->v[i];
        int to = s->pace.other >= 0 ? c->v[s->pace.other].behind : -1;
        const struct chain_node *other;

        s->pace.other = to >= 0 ? to : s->behind;
        other = &c->v[s->pace.other];
        return other->state == CHAIN_LINKED && !other->yields && !other->done && !other->pace.left
                       ? s->pace.other
                       : -1;
}

/* Sends a sample to a node behind @i, which the head serves, when it is time. */
static void compare_first_node(struct push_chain *c, size_t i, int64_t now)
{
        struct chain_node *s = &c->v[i];
        struct chain_intake *p = &s->pace;
        int64_t ms = (now - p->since_ns) / 1000000;
        bool stalls = now - p->taken_ns >= SAMPLE_MS * INT64_C(1000000);
        uint64_t bytes;
        int to;

        if (p->since_ns <= s->row->changed_ns) {
                measure_first_node(c, i, now);
                return;
        }
        if (!stalls && ms < SAMPLE_MS << 2 * MIN(p->samples, (unsigned)SAMPLE_STEPS))
                return;
        to = choose_sampled_node(c, i);
        if (to < 0)
                return;
        p->rate = stalls ? 0 : p->taken * 1000 / (uint64_t)ms;
        bytes = MAX(p->rate / SAMPLE_PART, (uint64_t)SAMPLE_MIN);
        bytes = c->ops.sample(c->ctx, (size_t)to, i, bytes, stalls ? 0 : bytes * SAMPLES_LEFT);
        if (!bytes)
                return;
        p->samples++;
        c->v[to].pace.sample = c->v[to].pace.left = bytes;
        c->v[to].pace.sample_ns = now;
        measure_first_node(c, i, now);
}

/* Compares a node that has taken a sample with the first one of the row. */
static void end_chain_sample(struct push_chain *c, size_t i)
{
        const struct chain_node *s = &c->v[i];
        size_t first = i;
        int64_t ns = clock_ns() - s->pace.sample_ns;
        double rate = (double)s->pace.sample * 1e9 / (double)MAX(ns, INT64_C(1));

        while (c->v[first].before >= 0)
                first = (size_t)c->v[first].before;
        if (c->v[first].state != CHAIN_SERVED || first == i || s->state != CHAIN_LINKED ||
            s->row->changed_ns > s->pace.sample_ns ||
            rate <= SLOW_FACTOR * (double)c->v[first].pace.rate)
                return;
        log_line(LOG_INFO, "%s takes files slowly: the nodes behind go on without it",
                 chain_host(c, first)->host->name);
        move_slow_node(c, first);
}

void push_chain_taken(struct push_chain *c, size_t node, uint32_t bytes)
{
        struct chain_intake *p = &c->v[node].pace;

        if (!c->v[node].row || !bytes)
                return;
        p->taken += bytes;
        p->taken_ns = clock_ns();
        if (!p->left)
                return;
        p->left -= MIN(p->left, (uint64_t)bytes);
        if (!p->left)
                end_chain_sample(c, node);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void handle_listens(struct push_chain *c, size_t i, const struct chain_report *m)
{
        struct chain_node *s = &c->v[i];

        if (m->number != s->asked)
                return;
        s->position = m->position;
        if (s->state == CHAIN_ASKED) {
                s->port = m->port;
                set_chain_state(s, CHAIN_CONNECTING);
                if (!m->port || !order_chain_connection(c, i))
                        leave_chain_place(c, i);
        } else if (s->state == CHAIN_LEAVING && s->late) {
                set_chain_state(s, CHAIN_LATE);
                serve_late_nodes(c, s->row);
        } else if (s->state == CHAIN_LEAVING) {
                serve_chain_node(c, i);
        }
}

/* The connection of @i to the node behind could not be made, or broke. */
static void handle_broken(struct push_chain *c, size_t i, const struct chain_report *m)
{
        size_t to = (size_t)c->v[i].behind;
        struct chain_node *s = &c->v[to];

        if (s->state == CHAIN_CONNECTING || m->error == ERANGE) {
                log_line(LOG_INFO, "%s gets files from here: %s does not reach it: %s",
                         chain_host(c, to)->host->name, chain_host(c, i)->host->name,
                         strerror((int)m->error));
                leave_chain_place(c, to);
        } else if (s->state == CHAIN_LINKED) {
                set_chain_state(s, CHAIN_SEVERED);
        }
}

int push_chain_report(struct push_chain *c, size_t node, const struct frame *f, struct error *err)
{
        struct chain_node *s = &c->v[node];
        struct chain_report m;

        if (chain_report_decode(&m, f, err) < 0)
                return -err->code;
        if (!s->row || m.stream != pack_stream_number(s->row->packs))
                return 0; /* of a row that is over */
        if (m.position > pack_stream_packs(s->row->packs))
                return err_set(err, EPROTO, "message out of turn: CHAINED beyond the end");
        if (m.what == CHAINED_LISTENS) {
                handle_listens(c, node, &m);
        } else if (s->behind >= 0 && m.number == s->number) {
                if (m.what == CHAINED_BROKEN)
                        handle_broken(c, node, &m);
                else if (m.what == CHAINED_SLOW)
                        handle_slow_report(c, node);
                else if (c->v[s->behind].state == CHAIN_CONNECTING)
                        set_chain_state(&c->v[s->behind], CHAIN_LINKED);
        }
        if (s->row && !s->row->began && !s->row->asked)
                begin_row(c, s->row);
        return 0;
}

/* --- time ------------------------------------------------------------------------------------- */

static void check_chain_node(struct push_chain *c, size_t i, int64_t now)
{
        struct chain_node *s = &c->v[i];
        int64_t ms = (now - s->since_ns) / 1000000;

        if (chain_host(c, i)->state != NODE_READY) {
                remove_chain_node(c, i);
                return;
        }
        if (!s->row->began && ms > ASK_MS)
                begin_row(c, s->row);
        if ((s->state == CHAIN_ASKED || s->state == CHAIN_CONNECTING) && ms > STEP_MS)
                leave_chain_place(c, i);
        else if (s->state == CHAIN_SEVERED && ms > BROKEN_MS)
                replace_chain_source(c, i);
        else if (s->state == CHAIN_LINKED && s->yields && !s->done && s->row->rest_ns &&
                 now - s->row->rest_ns > LAST_MS * INT64_C(1000000))
                leave_chain_place(c, i);
        else if (s->state == CHAIN_SERVED && s->row->began && s->behind >= 0 && !s->done)
                compare_first_node(c, i, now);
}

void push_chain_check(struct push_chain *c)
{
        int64_t now = clock_ns();

        for (size_t i = 0; i < c->cluster->n_nodes && c->rows; i++)
                if (c->v[i].row)
                        check_chain_node(c, i, now);
}

/* --- the whole -------------------------------------------------------------------------------- */

void push_chain_begin(struct push_chain *c, const struct pack_stream *s, const size_t *nodes,
                      size_t n)
{
        struct chain_row *row = xcalloc(1, sizeof(*row));

        *row = (struct chain_row){ .packs = s, .nodes = n };
        c->rows++;
        for (size_t i = 0; i < n; i++) {
                reset_chain_node(&c->v[nodes[i]], row);
                c->v[nodes[i]].before = i ? (int)nodes[i - 1] : -1;
                c->v[nodes[i]].behind = i + 1 < n ? (int)nodes[i + 1] : -1;
                if (i)
                        ask_chain_port(c, nodes[i]);
                else
                        set_chain_state(&c->v[nodes[i]], CHAIN_SERVED);
        }
}

void push_chain_done(struct push_chain *c, size_t node)
{
        struct chain_row *row = c->v[node].row;

        if (!row)
                return;
        c->v[node].done = true;
        serve_late_nodes(c, row);
        end_row_if_done(c, row);
}

void push_chain_forget(struct push_chain *c, size_t node)
{
        remove_chain_node(c, node);
}

bool push_chain_has(const struct push_chain *c, size_t node)
{
        return c->v[node].row;
}

int push_chain_source(const struct push_chain *c, size_t node)
{
        return c->v[node].before;
}

struct push_chain *push_chain_create(struct cluster *cluster, const struct push_chain_ops *ops,
                                     void *ctx)
{
        struct push_chain *c = xcalloc(1, sizeof(*c));

        c->cluster = cluster;
        c->ops = *ops;
        c->ctx = ctx;
        c->v = xcalloc(cluster->n_nodes, sizeof(*c->v));
        for (size_t i = 0; i < cluster->n_nodes; i++)
                reset_chain_node(&c->v[i], NULL);
        return c;
}

void push_chain_free(struct push_chain *c)
{
        for (size_t i = 0; i < c->cluster->n_nodes; i++)
                if (c->v[i].row && --c->v[i].row->nodes == 0)
                        free(c->v[i].row);
        free(c->v);
        free(c);
}
