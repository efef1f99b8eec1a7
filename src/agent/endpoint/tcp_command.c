/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands become store requests by the table below; PING, WATCH_KEY, CANCEL_WAIT and lists of no
 * keys are answered here. A request with an answer gets the next even tag, and an answer with an
 * older tag belongs to a cancelled wait and is dropped. A write without an answer gets an odd tag;
 * its acknowledgement is only counted, or ends the connection when it failed.
 *
 * The relay gives every request exactly one reply, so @unfinished counts down to 0.
 */
#include <stdio.h>
#include <string.h>

#include "agent/endpoint/endpoint_tcp_private.h"

static const struct {
        uint8_t op; /* enum store_op; 0 = the endpoint's own business */
        bool answered;
} ops[TCPSTORE_OPS] = {
        [TCPSTORE_SET] = { STORE_SET, false },
        [TCPSTORE_COMPARE_SET] = { STORE_COMPARE_SET, true },
        [TCPSTORE_GET] = { STORE_FETCH, true },
        [TCPSTORE_ADD] = { STORE_ADD, true },
        [TCPSTORE_CHECK] = { STORE_CHECK, true },
        [TCPSTORE_WAIT] = { STORE_WAIT, true },
        [TCPSTORE_NUM_KEYS] = { STORE_NUM_KEYS, true },
        [TCPSTORE_DELETE] = { STORE_DELETE, true },
        [TCPSTORE_APPEND] = { STORE_APPEND, false },
        [TCPSTORE_MULTI_GET] = { STORE_FETCH, true },
        [TCPSTORE_MULTI_SET] = { STORE_SET_MANY, false },
        [TCPSTORE_QUEUE_PUSH] = { STORE_PUSH, false },
        [TCPSTORE_QUEUE_POP] = { STORE_POP, true },
        [TCPSTORE_QUEUE_LEN] = { STORE_QUEUE_LEN, true },
        [TCPSTORE_LIST_KEYS] = { STORE_LIST, true },
        [TCPSTORE_BARRIER] = { STORE_COUNT, true },
};

/* --- answers ---------------------------------------------------------------------------------- */

static void put_tcp_byte(struct tcp_conn *c, uint8_t v)
{
        tcp_conn_put(c, &v, 1);
}

/* Numbers are in the byte order of x86 and ARM: the protocol sends memory. */
static void put_tcp_number(struct tcp_conn *c, uint64_t v, size_t size)
{
        unsigned char bytes[8];

        for (size_t i = 0; i < size; i++)
                bytes[i] = (unsigned char)(v >> 8 * i);
        tcp_conn_put(c, bytes, size);
}

static void put_tcp_vector(struct tcp_conn *c, struct bytes v)
{
        put_tcp_number(c, v.len, 8);
        tcp_conn_put(c, v.p, v.len);
}

/* The keys as a client of a later generation knows them. */
static void send_own_list(struct tcp_conn *c, const struct store_reply *r)
{
        struct buf names = BUF_INIT;
        uint32_t n = generation_list(&c->group, r->value, &names);

        if (buf_failed(&names)) {
                tcp_conn_fail(c, "out of memory");
        } else {
                put_tcp_number(c, n, 8);
                tcp_conn_put(c, buf_data(&names), buf_len(&names));
        }
        buf_finish(&names);
}

/* Values come from the store in the format of this protocol. */
static void send_tcp_answer(struct tcp_conn *c, const struct store_reply *r)
{
        struct bytes expect = { buf_data(&c->request.expect), buf_len(&c->request.expect) };

        switch (c->request.op) {
        case TCPSTORE_GET:
        case TCPSTORE_MULTI_GET:
                tcp_conn_put(c, r->value.p, r->value.len);
                break;
        case TCPSTORE_LIST_KEYS:
                if (generation_renames(&c->group)) {
                        send_own_list(c, r);
                        break;
                }
                put_tcp_number(c, (uint64_t)r->number, 8);
                tcp_conn_put(c, r->value.p, r->value.len);
                break;
        case TCPSTORE_CHECK:
                put_tcp_byte(c, r->number == 1 ? TCPSTORE_READY : TCPSTORE_NOT_READY);
                break;
        case TCPSTORE_WAIT:
        case TCPSTORE_BARRIER:
                put_tcp_byte(c, TCPSTORE_STOP_WAITING);
                break;
        case TCPSTORE_COMPARE_SET:
                /* PyTorch's server repeats the expectation if there is no value. */
                put_tcp_vector(c, r->number < 0 ? expect : r->value);
                buf_finish(&c->request.expect);
                break;
        case TCPSTORE_QUEUE_POP:
                put_tcp_number(c, (uint64_t)r->number, 8);
                if (r->number > 0)
                        put_tcp_vector(c, r->value);
                break;
        default: /* ADD, NUM_KEYS, DELETE, QUEUE_LEN */
                put_tcp_number(c, (uint64_t)r->number, 8);
        }
}

/* Ends the connection with the reason: PyTorch's protocol has no answer for a failure. */
static void fail_command(struct tcp_conn *c, const char *what, const struct store_reply *r)
{
        static const char *const why[STORE_STATUSES] = {
                [STORE_TIMEOUT] = "cancelled",
                [STORE_PEER] = "a rank has failed",
                [STORE_INVALID] = "invalid request",
                [STORE_MISMATCH] = "arguments differ from those of other ranks",
                [STORE_TOO_BIG] = "value too large",
                [STORE_NOMEM] = "out of memory in the store",
                [STORE_FULL] = "the store is full",
        };
        const char *text = r->status < STORE_STATUSES && why[r->status] ? why[r->status] : "?";
        char line[256];

        if (r->text.len)
                snprintf(line, sizeof(line), "%s failed: %.*s", what, (int)MIN(r->text.len, 200U),
                         (const char *)r->text.p);
        else
                snprintf(line, sizeof(line), "%s failed: %s", what, text);
        tcp_conn_fail(c, line);
}

void tcp_command_reply(void *ctx, const struct store_reply *r)
{
        struct tcp_conn *c = ctx;

        if (c->closing)
                return;
        if (r->tag & 1) {
                c->request.unfinished--;
                if (r->status != STORE_OK)
                        fail_command(c, "a write", r);
        } else if (c->request.state == TCP_FREE || r->tag != c->request.tag) {
                return; /* of a cancelled wait */
        } else if (r->status == STORE_PEER && c->request.state == TCP_WAITING) {
                /* No answer: PyTorch would take a byte for the end of the wait. */
                c->request.pending = false;
                return;
        } else {
                c->request.pending = false;
                c->request.state = TCP_FREE;
                if (r->status == STORE_OK)
                        send_tcp_answer(c, r);
                else
                        fail_command(c, tcpstore_op_name(c->request.op), r);
        }
        tcp_conn_steer(c);
}

/* --- commands --------------------------------------------------------------------------------- */

/* Passes a command on as a request to the store. A write without an answer gets an odd tag, and the
 * reply is only counted. */
static void request_command(struct tcp_conn *c, const struct tcpstore_command *cmd)
{
        struct store_request req = {
                .op = ops[cmd->op].op,
                .key = cmd->key,
                .value = cmd->value,
                .expect = cmd->expect,
                .number = cmd->number,
                .keys = cmd->keys,
                .values = cmd->values,
                .n_keys = cmd->n_keys,
        };
        struct bytes key = cmd->key;

        if (cmd->op == TCPSTORE_GET) {
                /* A GET is a FETCH of one key: the client has waited before, and a missing key is
                 * empty. */
                req.keys = &key;
                req.n_keys = 1;
        }
        if (!ops[cmd->op].answered) {
                req.tag = c->request.unanswered += 2;
                c->request.unfinished++;
        } else {
                req.tag = c->request.tag += 2;
                c->request.op = (uint8_t)cmd->op;
                c->request.pending = true;
                c->request.state =
                        req.op == STORE_WAIT || req.op == STORE_COUNT ? TCP_WAITING : TCP_ASKED;
        }
        /* Kept for the answer, in case no value is there. */
        if (cmd->op == TCPSTORE_COMPARE_SET)
                buf_append(&c->request.expect, cmd->expect.p, cmd->expect.len);
        relay_request(c->relay, &req);
}

/* Lists of no keys need no store. */
static bool answer_empty_list(struct tcp_conn *c, const struct tcpstore_command *cmd)
{
        if (cmd->n_keys)
                return false;
        if (cmd->op == TCPSTORE_WAIT)
                put_tcp_byte(c, TCPSTORE_STOP_WAITING);
        else if (cmd->op == TCPSTORE_CHECK)
                put_tcp_byte(c, TCPSTORE_READY);
        else
                /* Nothing to be answered. */
                return cmd->op == TCPSTORE_MULTI_GET || cmd->op == TCPSTORE_MULTI_SET;
        return true;
}

void tcp_command_run(struct tcp_conn *c, const struct tcpstore_command *cmd)
{
        struct store_request cancel = { .op = STORE_CANCEL, .tag = c->request.tag };
        bool pending = c->request.pending;

        /* First: the names in @cmd may be changed here. */
        generation_command(c->endpoint->groups.generations, &c->group, c->peer.addr, cmd);
        if (c->request.state == TCP_WAITING) {
                c->request.state = TCP_FREE;
                c->request.pending = false;
                if (pending) /* an answer that still comes has an old tag */
                        relay_request(c->relay, &cancel);
        }
        if (cmd->op == TCPSTORE_CANCEL_WAIT)
                put_tcp_byte(c, TCPSTORE_WAIT_CANCELED);
        else if (cmd->op == TCPSTORE_PING)
                put_tcp_number(c, (uint64_t)cmd->number, 4);
        else if (cmd->op == TCPSTORE_WATCH_KEY)
                put_tcp_byte(c, TCPSTORE_WATCHING);
        else if (ops[cmd->op].op && !answer_empty_list(c, cmd))
                request_command(c, cmd);
}
