/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/load_dialect.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/store_msg.h"

static const char value[LOAD_VALUE];

/* --- libhnlaunch ------------------------------------------------------------------------------ */

enum { HN_REPLY = FRAME_HEADER + STORE_BODY_HEADER + 1 + 8 + 4 + 4 + 4 + 4, HN_STATUS = 14 };

static void hn_frame(struct buf *b, const struct store_request *req)
{
        size_t mark = frame_begin(b, MSG_STORE);

        store_request_encode(b, req);
        frame_end(b, mark);
}

static void hn_greet(struct buf *b)
{
        const char *rank = getenv("RANK");

        hn_frame(b, &(struct store_request){
                            .op = STORE_HELLO, .tag = 1, .number = rank ? atoi(rank) : 0 });
}

/* A connection has one request under way, so one tag will do. */
static void hn_request(struct buf *b, enum load_op op, const char *key)
{
        static const uint8_t ops[] = { STORE_SET, STORE_GET, STORE_ADD, STORE_WAIT };
        struct bytes k = bytes_of(key);
        struct store_request req = { .op = ops[op], .tag = 2, .key = k, .number = 1 };

        if (op == LOAD_SET)
                req.value = (struct bytes){ value, sizeof(value) };
        if (op == LOAD_WAIT) {
                req.keys = &k;
                req.n_keys = 1;
        }
        hn_frame(b, &req);
}

static size_t hn_answer_size(enum load_op op)
{
        return HN_REPLY + (op == LOAD_GET ? LOAD_VALUE : 0);
}

static ssize_t hn_answer(enum load_op op, const unsigned char *p, size_t n)
{
        size_t want = hn_answer_size(op);

        if (n < want)
                return 0;
        return p[0] == want - 4 && p[HN_STATUS] == STORE_OK ? (ssize_t)want : -1;
}

/* --- TCPStore --------------------------------------------------------------------------------- */

enum { C_CHECK = 5, A_CHECK = 4 };

static void put_long_bytes(struct buf *b, const void *p, size_t n)
{
        put_u64(b, n);
        buf_append(b, p, n);
}

/* Every command of A has the number of C's less one. */
static void tcp_request(struct buf *b, enum load_op op, const char *key, uint8_t less)
{
        static const uint8_t ops[] = { 1, 3, 4, 6 };

        put_u8(b, (uint8_t)(ops[op] - less));
        if (op == LOAD_WAIT)
                put_u64(b, 1);
        put_long_bytes(b, key, strlen(key));
        if (op == LOAD_ADD)
                put_u64(b, 1);
        if (op != LOAD_SET)
                return;
        put_long_bytes(b, value, sizeof(value));
        put_u8(b, (uint8_t)(C_CHECK - less));
        put_u64(b, 1);
        put_long_bytes(b, key, strlen(key));
}

static void c_greet(struct buf *b)
{
        put_u8(b, 0);
        put_u32(b, 0x3C85F7CE);
        put_u8(b, 13);
        put_u32(b, 4711);
}

static void c_request(struct buf *b, enum load_op op, const char *key)
{
        tcp_request(b, op, key, 0);
}

static void a_request(struct buf *b, enum load_op op, const char *key)
{
        tcp_request(b, op, key, 1);
}

static size_t tcp_answer_size(enum load_op op)
{
        static const size_t sizes[] = { 1, 8 + LOAD_VALUE, 8, 1 };

        return sizes[op];
}

static ssize_t tcp_answer(enum load_op op, const unsigned char *p, size_t n)
{
        size_t want = tcp_answer_size(op);
        bool good = true;

        if (n < want)
                return 0;
        if (op == LOAD_GET)
                good = p[0] == LOAD_VALUE;
        else if (op != LOAD_ADD)
                good = p[0] == 0;
        return good ? (ssize_t)want : -1;
}

/* --- Redis ------------------------------------------------------------------------------------ */

static void resp_word(struct buf *b, const void *p, size_t n)
{
        buf_printf(b, "$%zu\r\n", n);
        buf_append(b, p, n);
        buf_append(b, "\r\n", 2);
}

static void resp_request(struct buf *b, enum load_op op, const char *key)
{
        static const char *const words[] = { "SET", "GET", "INCR", "EXISTS" };

        buf_printf(b, "*%d\r\n", op == LOAD_SET ? 3 : 2);
        resp_word(b, words[op], strlen(words[op]));
        resp_word(b, key, strlen(key));
        if (op == LOAD_SET)
                resp_word(b, value, sizeof(value));
}

static size_t resp_answer_size(enum load_op op)
{
        static const size_t sizes[] = { 5, 6 + LOAD_VALUE + 2, 4, 4 };

        return sizes[op];
}

static ssize_t resp_answer(enum load_op op, const unsigned char *p, size_t n)
{
        static const char first[] = { '+', '$', ':', ':' };
        const unsigned char *end = memchr(p, '\n', n);

        if (n && p[0] != first[op])
                return -1;
        if (op == LOAD_GET)
                return n < resp_answer_size(op) ? 0 : (ssize_t)resp_answer_size(op);
        return end ? end + 1 - p : 0;
}

/* --- echo ------------------------------------------------------------------------------------- */

static const struct load_dialect *like;

/* u32 length of all, u32 length of the answer, and bytes. */
static void echo_request(struct buf *b, enum load_op op, const char *key)
{
        struct buf model = BUF_INIT;
        char *room;
        size_t n;

        like->request(&model, op, key);
        n = MAX(buf_len(&model), (size_t)8);
        put_u32(b, (uint32_t)n);
        put_u32(b, (uint32_t)like->answer_size(op));
        room = buf_reserve(b, n);
        if (room) {
                memset(room, 'x', n - 8);
                buf_advance(b, n - 8);
        }
        buf_finish(&model);
}

static size_t echo_answer_size(enum load_op op)
{
        return like->answer_size(op);
}

static ssize_t echo_answer(enum load_op op, const unsigned char *p, size_t n)
{
        size_t want = like->answer_size(op);

        if (n < want)
                return 0;
        return p[0] == 'e' ? (ssize_t)want : -1;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct load_dialect dialects[] = {
        { "hn", hn_greet, HN_REPLY, hn_request, hn_answer, hn_answer_size },
        { "a", NULL, 0, a_request, tcp_answer, tcp_answer_size },
        { "c", c_greet, 4, c_request, tcp_answer, tcp_answer_size },
        { "resp", NULL, 0, resp_request, resp_answer, resp_answer_size },
        { "echo", NULL, 0, echo_request, echo_answer, echo_answer_size },
};

static const struct load_dialect *find(const char *name, size_t len)
{
        for (size_t i = 0; i < ARRAY_SIZE(dialects); i++)
                if (strlen(dialects[i].name) == len && memcmp(dialects[i].name, name, len) == 0)
                        return &dialects[i];
        return NULL;
}

const struct load_dialect *load_dialect_find(const char *name)
{
        const char *colon = strchr(name, ':');

        if (!colon)
                return strcmp(name, "echo") == 0 ? NULL : find(name, strlen(name));
        like = find(colon + 1, strlen(colon + 1));
        if (!like || like->request == echo_request)
                return NULL;
        return strncmp(name, "echo:", 5) == 0 ? find("echo", 4) : NULL;
}

static const char *const op_names[] = { "set", "get", "add", "wait" };

const char *load_op_name(enum load_op op)
{
        return op_names[op];
}

enum load_op load_op_find(const char *name)
{
        for (int i = 0; i < LOAD_OPS; i++)
                if (strcmp(op_names[i], name) == 0)
                        return (enum load_op)i;
        return LOAD_OPS;
}
