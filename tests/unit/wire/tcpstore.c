/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tcpstore.h"

#include <errno.h>

#include "lib/unit.h"

/* The reader of a connection and its input. */
struct peer {
        struct tcpstore_parser *parser;
        struct buf in;
        size_t first_segment;
        struct error err;
};

static struct peer peer_limited(struct tcpstore_limits limits)
{
        struct peer p = { .parser = tcpstore_parser_create(limits) };

        assert_non_null(p.parser);
        return p;
}

static struct peer peer_make(void)
{
        return peer_limited((struct tcpstore_limits)TCPSTORE_LIMITS);
}

static void peer_finish(struct peer *p)
{
        tcpstore_parser_destroy(p->parser);
        buf_finish(&p->in);
}

static void feed(struct peer *p, const void *bytes, size_t n)
{
        if (!p->first_segment)
                p->first_segment = n;
        buf_append(&p->in, bytes, n);
}

static int next(struct peer *p, struct tcpstore_command *c)
{
        return tcpstore_parser_next(p->parser, &p->in, p->first_segment, c, &p->err);
}

/* Expects one whole command next, and consumes it. */
static struct tcpstore_command take(struct peer *p)
{
        struct tcpstore_command c;

        assert_int_equal(next(p, &c), 1);
        tcpstore_parser_consume(p->parser, &p->in);
        return c;
}

#define FEED(p, text) feed(p, text, sizeof(text) - 1)

/* Sends the greeting of C, so that the rest is read in the numbers of C. */
static void greet(struct peer *p)
{
        FEED(p, "\0\xCE\xF7\x85\x3C");
        assert_int_equal(take(p).op, TCPSTORE_VALIDATE);
        assert_int_equal(tcpstore_parser_dialect(p->parser), TCPSTORE_C);
}

static bool same(struct bytes a, struct bytes b)
{
        return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static void assert_same(const struct tcpstore_command *a, const struct tcpstore_command *b)
{
        assert_string_equal(tcpstore_op_name(a->op), tcpstore_op_name(b->op));
        assert_int_equal(a->number, b->number);
        assert_true(same(a->key, b->key) && same(a->value, b->value));
        assert_true(same(a->expect, b->expect));
        assert_int_equal(a->n_keys, b->n_keys);
        for (uint32_t i = 0; i < a->n_keys; i++) {
                assert_true(same(a->keys[i], b->keys[i]));
                if (a->op == TCPSTORE_MULTI_SET)
                        assert_true(same(a->values[i], b->values[i]));
        }
}

static struct bytes some_keys[] = { { "/one", 4 }, { "/t\0o", 4 }, { "", 0 } };
static struct bytes some_values[] = { { "1", 1 }, { "", 0 }, { "\0\xff", 2 } };

static const struct tcpstore_command commands[] = {
        { .op = TCPSTORE_ADD, .key = { "init/", 5 }, .number = 1 },
        { .op = TCPSTORE_VALIDATE, .number = TCPSTORE_MAGIC },
        { .op = TCPSTORE_SET, .key = { "/k", 2 }, .value = { "v\0w", 3 } },
        { .op = TCPSTORE_SET, .key = { "/k", 2 } },
        { .op = TCPSTORE_COMPARE_SET,
          .key = { "/k", 2 },
          .expect = { "a", 1 },
          .value = { "bc", 2 } },
        { .op = TCPSTORE_GET, .key = { "/k", 2 } },
        { .op = TCPSTORE_ADD, .key = { "/n", 2 }, .number = -3 },
        { .op = TCPSTORE_CHECK, .keys = some_keys, .n_keys = 3 },
        { .op = TCPSTORE_CHECK },
        { .op = TCPSTORE_WAIT, .keys = some_keys, .n_keys = 1 },
        { .op = TCPSTORE_NUM_KEYS },
        { .op = TCPSTORE_APPEND, .key = { "/k", 2 }, .value = { "x", 1 } },
        { .op = TCPSTORE_DELETE, .key = { "/k", 2 } },
        { .op = TCPSTORE_MULTI_GET, .keys = some_keys, .n_keys = 3 },
        { .op = TCPSTORE_MULTI_SET, .keys = some_keys, .values = some_values, .n_keys = 3 },
        { .op = TCPSTORE_CANCEL_WAIT },
        { .op = TCPSTORE_PING, .number = 0xfffffffe },
        { .op = TCPSTORE_QUEUE_PUSH, .key = { "/q", 2 }, .value = { "item", 4 } },
        { .op = TCPSTORE_QUEUE_POP, .key = { "/q", 2 } },
        { .op = TCPSTORE_QUEUE_LEN, .key = { "/q", 2 } },
        { .op = TCPSTORE_LIST_KEYS },
        { .op = TCPSTORE_BARRIER, .key = { "/b", 2 }, .number = 16384 },
};

/* Every command of @dialect, in the order of the table. C begins with VALIDATE. */
static size_t encode_all(struct buf *b, enum tcpstore_dialect dialect,
                         const struct tcpstore_command **order)
{
        size_t n = 0;

        for (size_t i = dialect == TCPSTORE_C; i < ARRAY_SIZE(commands); i++) {
                if (tcpstore_command_encode(b, dialect, &commands[i]))
                        order[n++] = &commands[i];
        }
        return n;
}

/* Sends all of them in pieces of @step bytes. */
static void check_pieces(enum tcpstore_dialect dialect, size_t step, size_t first_segment,
                         size_t want)
{
        const struct tcpstore_command *order[ARRAY_SIZE(commands)];
        CLEANUP(peer_finish) struct peer p = peer_make();
        struct tcpstore_command got;
        CLEANUP(buf_finish) struct buf all = BUF_INIT;
        size_t n = encode_all(&all, dialect, order), seen = 0;

        assert_int_equal(n, want);
        p.first_segment = first_segment;
        for (size_t at = 0; at < buf_len(&all); at += step) {
                feed(&p, buf_data(&all) + at, MIN(step, buf_len(&all) - at));
                while (next(&p, &got) == 1) {
                        assert_true(seen < n);
                        assert_same(&got, order[seen++]);
                        tcpstore_parser_consume(p.parser, &p.in);
                }
                assert_int_equal(p.err.code, 0);
        }
        assert_int_equal(seen, n);
        assert_int_equal(buf_len(&p.in), 0);
        assert_int_equal(tcpstore_parser_dialect(p.parser), dialect);
}

TEST(every_command_of_every_dialect)
{
        check_pieces(TCPSTORE_A, 1, 1, 11);
        check_pieces(TCPSTORE_A, 1 << 20, 1, 11);
        check_pieces(TCPSTORE_B, 1 << 20, 22, 15);
        check_pieces(TCPSTORE_C, 1, 1, 21);
        check_pieces(TCPSTORE_C, 1 << 20, 5, 21);
        for (size_t step = 2; step < 60; step++) {
                check_pieces(TCPSTORE_A, step, 1, 11);
                check_pieces(TCPSTORE_C, step, step, 21);
        }
}

TEST(bytes_are_those_of_pytorch)
{
        static const char init[] = "\x03\x05\0\0\0\0\0\0\0init/\x01\0\0\0\0\0\0\0";
        static const char validate[] = "\0\xCE\xF7\x85\x3C";
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        assert_true(tcpstore_command_encode(&b, TCPSTORE_A, &commands[0]));
        assert_int_equal(buf_len(&b), sizeof(init) - 1);
        assert_memory_equal(buf_data(&b), init, sizeof(init) - 1);
        buf_clear(&b);
        assert_true(tcpstore_command_encode(&b, TCPSTORE_C, &commands[1]));
        assert_int_equal(buf_len(&b), 5);
        assert_memory_equal(buf_data(&b), validate, 5);
}

TEST(numbers_of_the_dialects)
{
        static const struct {
                enum tcpstore_op op;
                int a, b, c;
        } table[] = {
                { TCPSTORE_VALIDATE, -1, -1, 0 },
                { TCPSTORE_SET, 0, 0, 1 },
                { TCPSTORE_COMPARE_SET, 1, 1, 2 },
                { TCPSTORE_GET, 2, 2, 3 },
                { TCPSTORE_ADD, 3, 3, 4 },
                { TCPSTORE_CHECK, 4, 4, 5 },
                { TCPSTORE_WAIT, 5, 5, 6 },
                { TCPSTORE_NUM_KEYS, 6, 6, 7 },
                { TCPSTORE_DELETE, 8, 7, 8 },
                { TCPSTORE_APPEND, -1, 8, 9 },
                { TCPSTORE_MULTI_GET, -1, 9, 10 },
                { TCPSTORE_MULTI_SET, -1, 10, 11 },
                { TCPSTORE_CANCEL_WAIT, -1, 11, 12 },
                { TCPSTORE_PING, -1, -1, 13 },
                { TCPSTORE_QUEUE_PUSH, -1, -1, 14 },
                { TCPSTORE_QUEUE_POP, -1, -1, 15 },
                { TCPSTORE_QUEUE_LEN, -1, -1, 16 },
                { TCPSTORE_LIST_KEYS, -1, -1, 17 },
                { TCPSTORE_BARRIER, -1, -1, 18 },
                { TCPSTORE_WATCH_KEY, 7, -1, -1 },
        };

        assert_int_equal(ARRAY_SIZE(table), TCPSTORE_OPS);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const int want[] = { table[i].a, table[i].b, table[i].c };

                for (int d = 0; d < 3; d++) {
                        struct tcpstore_command c = { .op = table[i].op };
                        CLEANUP(buf_finish) struct buf b = BUF_INIT;
                        bool had = tcpstore_command_encode(&b, TCPSTORE_A + d, &c);

                        assert_int_equal(had ? *buf_data(&b) : -1, want[d]);
                }
        }
}

/* --- A or B ----------------------------------------------------------------------------------- */

#define KEY_K "\x01\0\0\0\0\0\0\0k"

TEST(one_byte_first_means_a)
{
        CLEANUP(peer_finish) struct peer p = peer_make();

        FEED(&p, "\x03");
        FEED(&p, "\x05\0\0\0\0\0\0\0init/\x01\0\0\0\0\0\0\0");
        assert_int_equal(take(&p).op, TCPSTORE_ADD);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_A);
        FEED(&p, "\x08" KEY_K);
        assert_int_equal(take(&p).op, TCPSTORE_DELETE);
}

/* NUM_KEYS is one byte in B too. */
TEST(num_keys_first_proves_nothing)
{
        CLEANUP(peer_finish) struct peer p = peer_make();

        FEED(&p, "\x06");
        assert_int_equal(take(&p).op, TCPSTORE_NUM_KEYS);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_A_OR_B);
        FEED(&p, "\x03" KEY_K "\x01\0\0\0\0\0\0\0");
        assert_int_equal(take(&p).op, TCPSTORE_ADD);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_A_OR_B);
        FEED(&p, "\x03");
        assert_int_equal(next(&p, &(struct tcpstore_command){ 0 }), 0);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_A);
        FEED(&p, KEY_K "\x01\0\0\0\0\0\0\0");
        assert_int_equal(take(&p).op, TCPSTORE_ADD);
}

TEST(a_byte_after_a_command_proves_nothing)
{
        CLEANUP(peer_finish) struct peer p = peer_make();

        FEED(&p, "\0" KEY_K KEY_K "\x02");
        assert_int_equal(take(&p).op, TCPSTORE_SET);
        FEED(&p, KEY_K);
        assert_int_equal(take(&p).op, TCPSTORE_GET);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_A_OR_B);
}

TEST(eight_goes_on_or_not)
{
        CLEANUP(peer_finish) struct peer p = peer_make();

        FEED(&p, "\0" KEY_K KEY_K);
        assert_int_equal(take(&p).op, TCPSTORE_SET);
        FEED(&p, "\x08" KEY_K);
        assert_int_equal(take(&p).op, TCPSTORE_DELETE);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_A_OR_B);
        FEED(&p, "\x08" KEY_K "\x02\0\0\0\0\0\0\0vv");
        assert_int_equal(take(&p).op, TCPSTORE_APPEND);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_B);
        FEED(&p, "\x08" KEY_K);
        assert_int_equal(next(&p, &(struct tcpstore_command){ 0 }), 0);
}

TEST(seven_watches_only_as_the_first)
{
        struct peer a = peer_make(), b = peer_make(), first = peer_make();

        FEED(&a, "\x07");
        FEED(&a, KEY_K "\x07" KEY_K);
        assert_int_equal(take(&a).op, TCPSTORE_WATCH_KEY);
        assert_int_equal(take(&a).op, TCPSTORE_WATCH_KEY);
        assert_int_equal(tcpstore_parser_dialect(a.parser), TCPSTORE_A);
        FEED(&b, "\x03" KEY_K "\x01\0\0\0\0\0\0\0\x07" KEY_K);
        assert_int_equal(take(&b).op, TCPSTORE_ADD);
        assert_int_equal(take(&b).op, TCPSTORE_DELETE);
        assert_int_equal(tcpstore_parser_dialect(b.parser), TCPSTORE_B);
        FEED(&first, "\x07" KEY_K);
        assert_int_equal(take(&first).op, TCPSTORE_DELETE);
        peer_finish(&a);
        peer_finish(&b);
        peer_finish(&first);
}

/* The network may deliver B's first byte alone: a command of B only corrects the guess. */
TEST(a_wrong_guess_is_corrected)
{
        static const char only_b[][18] = { "\x09\0\0\0\0\0\0\0\0", "\x0A\0\0\0\0\0\0\0\0", "\x0B" };
        static const size_t sizes[] = { 9, 9, 1 };

        for (size_t i = 0; i < 3; i++) {
                CLEANUP(peer_finish) struct peer p = peer_make();

                FEED(&p, "\x03");
                FEED(&p, KEY_K "\x01\0\0\0\0\0\0\0");
                assert_int_equal(take(&p).op, TCPSTORE_ADD);
                assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_A);
                feed(&p, only_b[i], sizes[i]);
                take(&p);
                assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_B);
                FEED(&p, "\x08" KEY_K "\0\0\0\0\0\0\0\0");
                assert_int_equal(take(&p).op, TCPSTORE_APPEND);
        }
}

/* A SET whose length begins like the magic is no VALIDATE. */
TEST(set_is_no_greeting)
{
        CLEANUP(peer_finish) struct peer p = peer_make();
        struct tcpstore_command c;
        char key[0xCE] = { 0 };

        FEED(&p, "\0\xCE");
        assert_int_equal(next(&p, &c), 0);
        assert_int_equal(tcpstore_parser_dialect(p.parser), TCPSTORE_UNKNOWN);
        FEED(&p, "\0\0\0\0\0\0\0");
        feed(&p, key, sizeof(key));
        FEED(&p, "\0\0\0\0\0\0\0\0");
        c = take(&p);
        assert_int_equal(c.op, TCPSTORE_SET);
        assert_int_equal(c.key.len, 0xCE);
}

/* --- limits and bad bytes --------------------------------------------------------------------- */

static void assert_refused(struct peer *p, const char *why)
{
        struct tcpstore_command c;

        assert_int_equal(next(p, &c), -EPROTO);
        assert_int_equal(p->err.code, EPROTO);
        if (!strstr(p->err.text, why))
                fail_msg("`%s` does not say `%s`", p->err.text, why);
        peer_finish(p);
}

#define REFUSED(bytes, why)                                                                        \
        {                                                                                          \
                bytes, sizeof(bytes) - 1, why                                                      \
        }

TEST(other_protocols_are_refused_at_once)
{
        static const struct {
                const char *bytes;
                size_t n;
                const char *why;
        } others[] = {
                REFUSED("GET / HTTP/1.1\r\n", "not a TCPStore client: first byte `G`"),
                REFUSED("G", "not a TCPStore client"),
                REFUSED("SSH-2.0-x\r\n", "not a TCPStore client"),
                REFUSED("\x16\x03\x01\x02", "unknown TCPStore command 22"),
                REFUSED("\r\n\r\n", "unknown TCPStore command 13"),
                REFUSED("\0\xCE\xF7\x85\x3D\0\0\0\0", "SET: a length of 1032189902"),
                REFUSED("\0\0\0\0\xa4\xff\x53\x4d\x42", "SET: a length of"),
                REFUSED("\x05\xff\xff\xff\xff\xff\xff\xff\xff", "WAIT: a count of"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                struct peer p = peer_make();

                feed(&p, others[i].bytes, others[i].n);
                assert_refused(&p, others[i].why);
        }
}

TEST(validate_is_checked_again)
{
        struct peer p = peer_make();

        greet(&p);
        FEED(&p, "\0\xCE\xF7\x85\x3C");
        assert_int_equal(take(&p).op, TCPSTORE_VALIDATE);
        FEED(&p, "\0\xCE\xF7\x85\x3D");
        assert_refused(&p, "wrong magic");
        p = peer_make();
        greet(&p);
        FEED(&p, "\x13");
        assert_refused(&p, "unknown TCPStore command 19");
}

static const struct tcpstore_limits tight = { .key = 8, .value = 16, .command = 64, .keys = 5 };

TEST(limits_count_as_soon_as_they_are_read)
{
        static const struct {
                const char *bytes;
                size_t n;
                const char *why;
        } greedy[] = {
                REFUSED("\x02\x09\0\0\0\0\0\0\0", "GET: a length of 9, more than 8"),
                REFUSED("\0" KEY_K "\x11\0\0\0\0\0\0\0", "SET: a length of 17, more than 16"),
                REFUSED("\x01" KEY_K "\x11\0\0\0\0\0\0\0", "COMPARE_SET: a length of 17"),
                REFUSED("\x05\x06\0\0\0\0\0\0\0", "WAIT: a count of 6, more than 5"),
                REFUSED("\x09\x01\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0", "MULTI_GET: a length of 9"),
                REFUSED("\x0A\x01\0\0\0\0\0\0\0" KEY_K "\x11\0\0\0\0\0\0\0", "MULTI_SET: a length"),
                REFUSED("\x0A\xff\xff\xff\xff\xff\xff\xff\xff", "MULTI_SET: a count of"),
                REFUSED("\x0A\x02\0\0\0\0\0\0\0" KEY_K "\x10\0\0\0\0\0\0\0"
                        "0123456789abcdef" KEY_K "\x0a\0\0\0\0\0\0\0",
                        "MULTI_SET: a size of 69, more than 64"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(greedy); i++) {
                struct peer p = peer_limited(tight);

                feed(&p, greedy[i].bytes, greedy[i].n);
                assert_refused(&p, greedy[i].why);
        }
}

TEST(what_is_allowed_passes)
{
        CLEANUP(peer_finish) struct peer p = peer_limited(tight);
        struct tcpstore_command c;

        FEED(&p, "\0\x08\0\0\0\0\0\0\0"
                 "12345678\x10\0\0\0\0\0\0\0"
                 "0123456789abcdef");
        c = take(&p);
        assert_int_equal(c.key.len, 8);
        assert_int_equal(c.value.len, 16);
        FEED(&p, "\x05\x05\0\0\0\0\0\0\0" KEY_K KEY_K KEY_K KEY_K KEY_K);
        assert_int_equal(take(&p).n_keys, 5);
}

TEST(largest_list_in_small_pieces)
{
        CLEANUP(peer_finish) struct peer p = peer_make();
        struct tcpstore_command want = { .op = TCPSTORE_WAIT, .n_keys = TCPSTORE_KEYS_MAX }, got;
        CLEANUP(buf_finish) struct buf all = BUF_INIT;
        int r = 0;

        want.keys = calloc(want.n_keys, sizeof(*want.keys));
        for (uint32_t i = 0; i < want.n_keys; i++)
                want.keys[i] = (struct bytes){ "/key", i % 5 };
        assert_true(tcpstore_command_encode(&all, TCPSTORE_B, &want));
        for (size_t at = 0; at < buf_len(&all); at += 7) {
                assert_int_equal(r, 0);
                feed(&p, buf_data(&all) + at, MIN((size_t)7, buf_len(&all) - at));
                r = next(&p, &got);
        }
        assert_int_equal(r, 1);
        assert_same(&got, &want);
        tcpstore_parser_consume(p.parser, &p.in);
        FEED(&p, "\x05\x01\0\0\0\0\0\0\0" KEY_K);
        assert_int_equal(take(&p).n_keys, 1);
        free(want.keys);
}

/* More input may move the buffer before the command is taken out. */
TEST(asking_twice_gives_the_same)
{
        CLEANUP(peer_finish) struct peer p = peer_make();
        struct tcpstore_command c;
        char more[4096] = { 0 };

        FEED(&p, "\x02" KEY_K);
        assert_int_equal(next(&p, &c), 1);
        feed(&p, more, sizeof(more));
        assert_int_equal(next(&p, &c), 1);
        assert_int_equal(c.op, TCPSTORE_GET);
        assert_memory_equal(c.key.p, "k", 1);
        assert_ptr_equal(c.key.p, buf_data(&p.in) + 9);
}
