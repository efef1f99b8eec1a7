/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/relays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/macros.h"
#include "head/job/store_server.h"
#include "lib/topology.h"

enum { MAX_NODES = 4, MAX_RANKS = 16, TAGS = 4096 };

struct message {
        struct message *next, *prev;
        size_t len;
        unsigned char body[];
};

struct node {
        struct relays *relays;
        struct relay *relay;
        bool cut_off;
        struct relay_client *above; /* what it is to the relay above; NULL = the head is there */
        struct message *up, *down;
        unsigned sent[256];
        uint8_t op_of[TAGS]; /* by tag, of the last ones */
};

struct relays {
        struct store_server *store_server;
        struct node nodes[MAX_NODES];
        int n;
        bool lies;
};

uint64_t relays_now;

static struct message *message_of(const void *body, size_t len)
{
        struct message *m = malloc(sizeof(*m) + len);

        if (!m)
                abort();
        m->len = len;
        memcpy(m->body, body, len);
        return m;
}

static void up(void *ctx, const void *body, size_t len)
{
        struct node *node = ctx;

        struct store_head h = store_body_head(body, len);
        struct message *m = message_of(body, len);

        node->sent[h.op]++;
        if (store_op_has_answer(h.op))
                node->op_of[h.tag % TAGS] = h.op;
        DL_APPEND(node->up, m);
}

static bool is_of_a_wait(const struct node *node, const void *body, size_t len)
{
        struct store_head h = store_body_head(body, len);
        uint8_t op = node->op_of[h.tag % TAGS];

        return h.op == STORE_REPLY && (op == STORE_GET || op == STORE_WAIT);
}

static struct message *lying(const void *body, size_t len)
{
        struct store_reply reply;
        struct buf b = BUF_INIT;
        struct message *m;

        if (store_reply_decode(&reply, body, len, NULL) < 0)
                abort();
        reply.number = 1000;
        store_reply_encode(&b, &reply);
        m = message_of(buf_data(&b), buf_len(&b));
        store_reply_finish(&reply);
        buf_finish(&b);
        return m;
}

static void down(void *ctx, int node, const void *head, size_t len, struct bytes rest)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct relays *rs = ctx;
        struct message *m;

        buf_append(&b, head, len);
        buf_append(&b, rest.p, rest.len);
        m = rs->lies && is_of_a_wait(&rs->nodes[node], buf_data(&b), buf_len(&b))
                    ? lying(buf_data(&b), buf_len(&b))
                    : message_of(buf_data(&b), buf_len(&b));
        DL_APPEND(rs->nodes[node].down, m);
}

/* Any node may: the tests make trees of all shapes. */
static bool hangs_above(void *ctx UNUSED, int node UNUSED, int other UNUSED)
{
        return true;
}

static uint64_t now(void *ctx UNUSED)
{
        return relays_now;
}

struct relays *relays_create(int n_nodes, int ranks_per_node)
{
        static const struct store_server_ops ops = { .send = down, .relays = hangs_above };
        static const char *const hosts[MAX_NODES] = { "node0", "node1", "node2", "node3" };
        struct relays *rs = calloc(1, sizeof(*rs));
        int node_of[MAX_RANKS];

        if (!rs || n_nodes > MAX_NODES || n_nodes * ranks_per_node > MAX_RANKS)
                abort();
        for (int i = 0; i < n_nodes * ranks_per_node; i++)
                node_of[i] = i / ranks_per_node;
        rs->n = n_nodes;
        rs->store_server = store_server_create(
                &ops, rs, make_topology(n_nodes * ranks_per_node, n_nodes, node_of, hosts));
        for (int i = 0; i < n_nodes; i++) {
                struct node *node = &rs->nodes[i];

                node->relays = rs;
                node->relay = relay_create((struct relay_ops){ .up = up, .now = now }, node);
                if (!node->relay)
                        abort();
        }
        return rs;
}

static void drop(struct message **queue)
{
        struct message *m, *next;

        DL_FOREACH_SAFE(*queue, m, next)
        {
                DL_DELETE(*queue, m);
                free(m);
        }
}

void relays_destroy(struct relays *rs)
{
        for (int i = 0; i < rs->n; i++)
                relay_client_destroy(rs->nodes[i].above);
        for (int i = 0; i < rs->n; i++) {
                relay_destroy(rs->nodes[i].relay);
                drop(&rs->nodes[i].up);
                drop(&rs->nodes[i].down);
        }
        store_server_destroy(rs->store_server);
        free(rs);
}

struct relay *relays_at(const struct relays *rs, int node)
{
        return rs->nodes[node].relay;
}

struct store_server *relays_store_server(const struct relays *rs)
{
        return rs->store_server;
}

void relays_turn(struct relays *rs, int node)
{
        relay_turn(rs->nodes[node].relay);
}

static void must(int ret, const struct error *err)
{
        if (ret == 0)
                return;
        fprintf(stderr, "relays: %s\n", err->text);
        abort();
}

static void answer_below(void *ctx, const struct store_reply *reply)
{
        struct node *node = ctx;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct message *m;

        store_reply_encode(&b, reply);
        m = message_of(buf_data(&b), buf_len(&b));
        DL_APPEND(node->down, m);
}

void relays_hang_below(struct relays *rs, int node, int above)
{
        const struct relay_client_ops ops = { .reply = answer_below, .is_relay = true };

        rs->nodes[node].above = relay_client_create(rs->nodes[above].relay, ops, &rs->nodes[node]);
        if (!rs->nodes[node].above)
                abort();
}

void relays_cut_off(struct relays *rs, int node)
{
        relay_client_destroy(rs->nodes[node].above);
        rs->nodes[node].above = NULL;
        rs->nodes[node].cut_off = true;
        drop(&rs->nodes[node].up);
        drop(&rs->nodes[node].down);
}

static int ask_above(struct node *node, const struct message *m, struct error *err)
{
        struct store_request req;
        int ret = store_request_decode(&req, m->body, m->len, err);

        if (ret < 0)
                return ret;
        relay_request(node->above, &req);
        store_request_finish(&req);
        return 0;
}

bool relays_up(struct relays *rs, int node)
{
        struct message *m = rs->nodes[node].up;
        struct error err;

        if (!m)
                return false;
        DL_DELETE(rs->nodes[node].up, m);
        if (rs->nodes[node].cut_off) {
                free(m);
                return true;
        }
        if (rs->nodes[node].above && store_body_head(m->body, m->len).client == STORE_NODE)
                must(ask_above(&rs->nodes[node], m, &err), &err);
        else
                must(store_server_receive(rs->store_server, node, m->body, m->len, &err), &err);
        free(m);
        return true;
}

bool relays_down(struct relays *rs, int node)
{
        struct message *m = rs->nodes[node].down;
        struct error err;

        if (!m)
                return false;
        DL_DELETE(rs->nodes[node].down, m);
        must(relay_deliver(rs->nodes[node].relay, m->body, m->len, &err), &err);
        free(m);
        return true;
}

void relays_settle(struct relays *rs)
{
        bool moved = true;

        while (moved) {
                moved = false;
                for (int i = 0; i < rs->n; i++) {
                        relays_turn(rs, i);
                        while (relays_up(rs, i))
                                moved = true;
                        while (relays_down(rs, i))
                                moved = true;
                }
                for (int i = 0; i < rs->n && !moved; i++) {
                        int wait = relay_wait_ms(rs->nodes[i].relay);

                        if (wait < 0)
                                continue;
                        relays_now += (uint64_t)wait * 1000000;
                        moved = true;
                }
        }
}

unsigned relays_sent(const struct relays *rs, int node, uint8_t op)
{
        return rs->nodes[node].sent[op];
}

void relays_lie(struct relays *rs)
{
        rs->lies = true;
}
