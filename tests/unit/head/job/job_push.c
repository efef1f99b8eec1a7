/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to a push that has ended meet nodes that have been forgotten. */
#include "head/job/job_push.h"

#include "head/job/attempt.h"
#include "head/job/heartbeat.h"
#include "job_nodes.h"
#include "lib/frames.h"
#include "lib/unit.h"

enum { NODES = 3, STREAM = 1 }; /* the first is the parent of the others */

struct world {
        struct job_nodes on;
        struct plan_node plan_nodes[NODES];
        struct plan plan;
        struct cluster no_nodes; /* the heartbeat's */
        struct attempt attempt;
        struct heartbeat *heartbeat;
        struct job_push *push;
};

static int set_up(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));

        job_nodes_open(&w->on, NODES, NODE_READY);
        for (int i = 0; i < NODES; i++) {
                w->on.nodes[i].parent = i ? &w->on.nodes[0] : NULL;
                w->plan_nodes[i].n_ranks = 1;
        }
        w->plan = (struct plan){ .nodes = w->plan_nodes, .n_nodes = NODES };
        w->on.options.node_timeout_ms = 30000;
        w->no_nodes = w->on.cluster;
        w->no_nodes.n_nodes = 0;
        w->attempt.outcome = (struct outcome)OUTCOME_INIT;
        w->heartbeat = heartbeat_create(&w->no_nodes, &w->attempt, NULL, NULL);
        w->push = job_push_create(&w->on.cluster, &w->attempt, w->heartbeat, "run");
        *state = w;
        return 0;
}

static int tear_down(void **state)
{
        struct world *w = *state;

        job_push_close(w->push);
        heartbeat_close(w->heartbeat);
        job_nodes_close(&w->on);
        job_push_free(w->push);
        heartbeat_free(w->heartbeat);
        job_nodes_finish(&w->on);
        free(w);
        return 0;
}

#define TEST_WORLD(name) TEST_OF(set_up, tear_down, struct world *w, name)

TEST_WORLD(a_node_that_shares_with_a_forgotten_one_looks_again)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct manifest m = { .fd = -1 };
        struct frame want;
        struct error err;

        /* Offers to all nodes, and waits for no answer. */
        w->attempt.outcome.cause.kind = CAUSE_NODE;
        assert_int_equal(job_push_run(w->push, &w->plan, &m, &err), JOB_INTERRUPTED);
        job_push_forget(w->push, 1);
        assert_false(job_push_takes_part(w->push, 1));

        push_want_encode(&b, &(struct push_want){ .holder = 1 });
        want = only_frame(&b, MSG_WANT);
        buf_clear(&w->on.nodes[0].out);
        assert_int_equal(job_push_take(w->push, &w->on.nodes[0], &want, &err), 0);
        only_frame(&w->on.nodes[0].out, MSG_LOOK);
        assert_true(job_push_takes_part(w->push, 2));
}

/* Gives the head an answer of a node. */
static void answers(struct world *w, int node, struct buf *b, uint8_t type)
{
        struct frame f = only_frame(b, type);
        struct error err;

        assert_int_equal(job_push_take(w->push, &w->on.nodes[node], &f, &err), 0);
        buf_finish(b);
}

static void wants(struct world *w, int node, uint32_t entries)
{
        static uint32_t first = 0;
        struct buf b = BUF_INIT;

        push_want_encode(
                &b, &(struct push_want){ .holder = PUSH_NO_NODE, .entries = &first, .n = entries });
        answers(w, node, &b, MSG_WANT);
}

/* Takes the next frame for a node, which must be of a type. */
static void gets(struct world *w, int node, uint8_t type, struct frame *ret)
{
        assert_int_equal(frame_peek(&w->on.nodes[node].out, ret, NULL), 1);
        assert_int_equal(ret->type, type);
        frame_consume(&w->on.nodes[node].out, ret);
}

static uint32_t is_ordered(struct world *w, int node, enum chain_what what, uint32_t stream)
{
        struct chain_order m;
        uint32_t number;
        struct frame f;

        gets(w, node, MSG_CHAIN, &f);
        assert_int_equal(chain_order_decode(&m, &f, NULL), 0);
        assert_int_equal(m.what, what);
        assert_int_equal(m.stream, stream);
        number = m.number;
        chain_order_finish(&m);
        return number;
}

/* The row is made: each node listens for the one before it. */
static void all_listen(struct world *w, int nodes, uint32_t stream)
{
        for (int i = 1; i < nodes; i++) {
                struct buf b = BUF_INIT;

                chain_report_encode(&b, &(struct chain_report){
                                                .number = is_ordered(w, i, CHAIN_LISTEN, stream),
                                                .stream = stream,
                                                .what = CHAINED_LISTENS,
                                                .port = 4000 });
                answers(w, i, &b, MSG_CHAINED);
                is_ordered(w, i - 1, CHAIN_CONNECT, stream);
        }
}

/* Offers a list that is large for the nodes; no answer is waited for. */
static void offer_large_list(struct world *w, struct manifest *m)
{
        struct push_offer offer;
        struct error err;
        struct frame f;

        w->attempt.outcome.cause.kind = CAUSE_NODE;
        assert_int_equal(job_push_run(w->push, &w->plan, m, &err), JOB_INTERRUPTED);
        for (int i = 0; i < NODES; i++) {
                gets(w, i, MSG_OFFER, &f);
                assert_int_equal(push_offer_decode(&offer, &f, NULL), 0);
                assert_int_equal(offer.later, m->wire_bytes);
                assert_int_equal(offer.manifest.n, 0);
                push_offer_finish(&offer);
        }
}

static void fill_manifest(struct manifest *m, struct push_entry *e)
{
        static char path[] = "file";

        *e = (struct push_entry){ .kind = PUSH_FILE, .size = 16 << 20, .path = path };
        *m = (struct manifest){ .manifest = { e, 1 }, .wire_bytes = 1 << 20, .fd = -1 };
}

TEST_WORLD(a_large_list_is_sent_once)
{
        struct push_entry e;
        struct push_pack pack;
        struct manifest m;
        struct buf b = BUF_INIT;
        struct frame f;

        fill_manifest(&m, &e);
        offer_large_list(w, &m);
        for (int i = 0; i < NODES; i++) {
                assert_int_equal(buf_len(&w->on.nodes[i].out), 0); /* all are waited for */
                wants(w, i, 0);
        }
        all_listen(w, NODES, STREAM);
        gets(w, 0, MSG_PACK, &f);
        assert_int_equal(push_pack_decode(&pack, &f, NULL), 0);
        assert_int_equal(pack.pieces[0].entry, PUSH_LIST);
        push_pack_finish(&pack);

        /* The nodes have the list: one misses nothing, the others begin a row for the file. */
        wants(w, 0, 1);
        pushed_encode(&b, &(struct pushed){ .folder = "/copy" });
        answers(w, 2, &b, MSG_PUSHED);
        for (int i = 0; i < NODES; i++)
                assert_int_equal(buf_len(&w->on.nodes[i].out), 0); /* nothing more was sent */
        wants(w, 1, 1);
        for (int i = 0; i < NODES; i++)
                is_ordered(w, i, CHAIN_END, STREAM);
        is_ordered(w, 1, CHAIN_LISTEN, STREAM + 1);
        for (int i = 0; i < NODES; i++)
                assert_int_equal(buf_len(&w->on.nodes[i].out), 0);
}

TEST_WORLD(a_single_node_gets_the_list_at_once)
{
        CLEANUP(push_offer_finish) struct push_offer offer;
        struct push_entry e;
        struct manifest m;
        struct buf b = BUF_INIT;
        struct frame f;

        fill_manifest(&m, &e);
        offer_large_list(w, &m);
        for (int i = 0; i < NODES - 1; i++) {
                pushed_encode(&b, &(struct pushed){ .folder = "/copy" });
                answers(w, i, &b, MSG_PUSHED);
        }
        wants(w, NODES - 1, 0);
        gets(w, NODES - 1, MSG_OFFER, &f);
        assert_int_equal(push_offer_decode(&offer, &f, NULL), 0);
        assert_int_equal(offer.later, 0);
        assert_int_equal(offer.manifest.n, 1);
}
