/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between clients that ask for anything and a head that answers anything: replies of every
 * kind and shape to the tags that are asked, and to others, in any order. The input is steps of a
 * byte with operands. Whatever comes: all that goes up decodes, and a client has one answer at most
 * for each request with a tag of its own.
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"
#include "store/relay/relay.h"
#include "wire/codec.h"
#include "wire/store_msg.h"

enum { CLIENTS = 4, BELOW = 3 /* a relay of another node */, TAGS = 16, SENT = 16 };

struct peer {
        struct relay_client *client; /* NULL = gone */
        unsigned owed[TAGS];         /* answers, at most */
        bool named[TAGS];            /* of a collective, which has an answer for each rank */
};

static struct {
        struct relay *relay;
        struct peer peers[CLIENTS];
        struct store_head sent[SENT]; /* the newest requests */
        unsigned n_sent;
        uint64_t now;
        struct reader in;
} all;

static void on_up(void *ctx UNUSED, const void *body, size_t len)
{
        CLEANUP(store_request_finish) struct store_request req;

        require(store_request_decode(&req, body, len, NULL) == 0);
        all.sent[all.n_sent++ % SENT] = store_body_head(body, len);
}

static uint64_t get_now(void *ctx UNUSED)
{
        return all.now;
}

static void on_reply(void *ctx, const struct store_reply *reply)
{
        struct peer *p = ctx;
        unsigned n = reply->tag < TAGS && p->named[reply->tag] ? MAX(reply->n_whom, 1U) : 1;
        struct buf b = BUF_INIT;

        store_reply_encode(&b, reply);
        buf_finish(&b);
        require(reply->tag < TAGS && p->owed[reply->tag] >= n);
        p->owed[reply->tag] -= n;
}

static void come(struct peer *p)
{
        struct relay_client_ops ops = { .reply = on_reply,
                                        .last_look = p == &all.peers[1],
                                        .is_relay = p == &all.peers[BELOW] };

        p->client = relay_client_create(all.relay, ops, p);
        memset(p->owed, 0, sizeof(p->owed));
        memset(p->named, 0, sizeof(p->named));
        require(p->client);
}

static void go(struct peer *p)
{
        relay_client_destroy(p->client);
        p->client = NULL;
}

static uint32_t take_number(void)
{
        static const uint32_t numbers[] = { 0, 1, 2, 3, 5, 1000, INT32_MAX, UINT32_MAX };

        return numbers[take_u8(&all.in) % ARRAY_SIZE(numbers)];
}

static int64_t take_signed(void)
{
        static const int64_t numbers[] = { 0, 1, -1, 2, 1000, INT64_MAX, INT64_MIN, -3 };

        return numbers[take_u8(&all.in) % ARRAY_SIZE(numbers)];
}

static void ask(struct peer *p)
{
        static const uint8_t ops[] = {
                STORE_HELLO,    STORE_SET,    STORE_ADD,       STORE_APPEND,    STORE_COMPARE_SET,
                STORE_CHECK,    STORE_DELETE, STORE_NUM_KEYS,  STORE_GET,       STORE_WAIT,
                STORE_BARRIER,  STORE_GATHER, STORE_BROADCAST, STORE_CANCEL,    STORE_FETCH,
                STORE_SET_MANY, STORE_PUSH,   STORE_POP,       STORE_QUEUE_LEN, STORE_LIST,
                STORE_COUNT,    STORE_JOIN,   STORE_LEAVE,     STORE_TOPOLOGY,  STORE_PROGRESS,
        };
        uint8_t how = take_u8(&all.in);
        uint32_t ranks[] = { how >> 6, how >> 5 & 3 }, members[] = { 0, 1, 2, 3 };
        struct bytes keys[] = { bytes_of("a"), bytes_of("b") };
        struct store_request r = { .op = ops[take_u8(&all.in) % ARRAY_SIZE(ops)],
                                   .tag = how % TAGS,
                                   .key = keys[how >> 7],
                                   .value = bytes_of(how & 16 ? "value" : ""),
                                   .keys = keys,
                                   .values = keys,
                                   .n_keys = 1 + (how >> 4 & 1),
                                   .number = take_signed(),
                                   .total = 1,
                                   .members = members,
                                   .n_members = how & 32 ? 4 : 0 };
        bool collective = r.op >= STORE_BARRIER && r.op <= STORE_BROADCAST;

        if (p == &all.peers[BELOW] && (collective || r.op == STORE_LEAVE)) {
                r.ranks = ranks;
                r.n_ranks = 1 + (how >> 4 & 1);
        }
        if (p == &all.peers[BELOW] && !relay_serves(r.op))
                return; /* such requests go beside it */
        if (store_op_has_answer(r.op) && !p->owed[r.tag])
                p->named[r.tag] = r.n_ranks;
        if (store_op_has_answer(r.op))
                p->owed[r.tag] += MAX(r.n_ranks, 1U);
        relay_request(p->client, &r);
}

static void deliver(const struct buf *b)
{
        struct error err;

        require(relay_deliver(all.relay, buf_data(b), buf_len(b), &err) == 0);
}

static void answer(bool asked)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct store_head h = all.sent[take_u8(&all.in) % SENT];
        uint8_t how = take_u8(&all.in);
        uint32_t ranks[] = { how & 3, take_number() }, whom[] = { how >> 2 & 3, take_number() };
        struct bytes parts[] = { bytes_of("one"), bytes_of("") };
        struct store_reply r = { .client = asked ? h.client : take_number(),
                                 .tag = asked ? h.tag : take_number(),
                                 .status = take_u8(&all.in) % STORE_STATUSES,
                                 .number = take_signed(),
                                 .value = bytes_of(how & 16 ? "some value" : ""),
                                 .text = bytes_of("it is said"),
                                 .ranks = ranks,
                                 .n_ranks = how >> 5 & 1,
                                 .whom = whom,
                                 .n_whom = how >> 6 };

        r.n_whom = MIN(r.n_whom, 2U);
        if (how & 32) {
                r.parts = parts;
                r.n_parts = 1 + (how & 1);
        }
        store_reply_encode(&b, &r);
        deliver(&b);
}

static void tell_event(void)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        store_event_encode(&b, &(struct store_event){ .client = take_number(),
                                                      .kind = 1 + take_u8(&all.in) % 3,
                                                      .rank = (int32_t)take_number(),
                                                      .node = -1,
                                                      .text = bytes_of("it failed") });
        deliver(&b);
}

static void take_step(void)
{
        uint8_t op = take_u8(&all.in);
        struct peer *p = &all.peers[op >> 4 & (CLIENTS - 1)];
        struct relay_pending pending;

        switch (op & 15) {
        case 0:
                tell_event();
                break;
        case 1:
                p->client ? go(p) : come(p);
                break;
        case 2:
                all.now += 1000000u * take_u8(&all.in);
                break;
        case 3:
        case 4:
        case 5:
                relay_turn(all.relay);
                relay_wait_ms(all.relay);
                break;
        case 6:
                answer(false);
                break;
        case 7:
        case 8:
        case 9:
                answer(true);
                break;
        default:
                if (!p->client)
                        come(p);
                ask(p);
                relay_client_pending(p->client, &pending);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        memset(&all, 0, sizeof(all));
        all.in = (struct reader)READER_INIT(data, size);
        all.relay = relay_create((struct relay_ops){ .up = on_up, .now = get_now }, NULL);
        require(all.relay);
        while (all.in.left && !all.in.failed)
                take_step();
        for (int i = 0; i < CLIENTS; i++)
                if (all.peers[i].client)
                        go(&all.peers[i]);
        relay_destroy(all.relay);
        return 0;
}
