/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous with its engine, two nodes and four ranks. The input is pieces of u8 what, u32
 * length and bytes: the lowest bit of "what" is the node, and the bytes are a body of MSG_STORE
 * from it. With the highest bit set something happens to a node or a rank instead. Whatever comes,
 * all that leaves must be a well-formed body, and nothing may leave for a node that is lost.
 */
#include "fuzz.h"

#include <stdbool.h>

#include "../lib/topology.h"
#include "base/buf.h"
#include "base/macros.h"
#include "head/job/store_server.h"
#include "wire/codec.h"
#include "wire/store_msg.h"

enum { RANKS = 4, NODES = 2, HAPPENS = 0x80 };

static bool lost[NODES];

static void sent(void *ctx UNUSED, int node, const void *head, size_t len, struct bytes rest)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct store_reply reply;
        struct store_event news;

        buf_append(&b, head, len);
        buf_append(&b, rest.p, rest.len);
        require(!lost[node]);
        if (store_body_head(buf_data(&b), buf_len(&b)).op == STORE_EVENT) {
                require(store_event_decode(&news, buf_data(&b), buf_len(&b), NULL) == 0);
                return;
        }
        require(store_reply_decode(&reply, buf_data(&b), buf_len(&b), NULL) == 0);
        store_reply_finish(&reply);
}

static void happen(struct store_server *r, uint8_t what)
{
        int rank = what >> 2 & (RANKS - 1);

        switch (what & 3) {
        case 0:
                store_server_rank_failed(r, rank, "it failed");
                break;
        case 1:
                store_server_rank_exited(r, rank);
                break;
        case 2:
                lost[rank & 1] = true;
                store_server_node_lost(r, rank & 1);
                break;
        default:
                store_server_stop_requested(r, "stop");
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct store_server_ops ops = { .send = sent };
        static const int node_of_rank[RANKS] = { 0, 0, 1, 1 };
        static const char *const hosts[NODES] = { "alpha", "beta" };
        struct store_server *r =
                store_server_create(&ops, NULL, make_topology(RANKS, NODES, node_of_rank, hosts));
        struct reader in = READER_INIT(data, size);

        lost[0] = lost[1] = false;
        while (in.left && !in.failed) {
                uint8_t what = take_u8(&in);
                struct error err;
                const void *body;
                size_t len;

                if (what & HAPPENS) {
                        happen(r, what);
                        continue;
                }
                body = take_bytes(&in, in.left, &len);
                if (body)
                        store_server_receive(r, what & 1, body, len, &err);
        }
        store_server_destroy(r);
        return 0;
}
