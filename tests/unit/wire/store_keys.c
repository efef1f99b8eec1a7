/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/store_keys.h"

#include <errno.h>
#include <stdio.h>

#include "lib/unit.h"

enum { MANY = 40 };

static struct store_keys lists = STORE_KEYS_INIT;

/* MANY keys, different for each @family, in a message of their own. */
static struct buf message(uint8_t op, uint32_t tag, uint32_t n, char family)
{
        static char text[MANY][24];
        struct bytes keys[MANY];
        struct buf b = BUF_INIT;

        for (uint32_t i = 0; i < n; i++) {
                snprintf(text[i], sizeof(text[i]), "a key with number %02u %c", i % 100, family);
                keys[i] = bytes_of(text[i]);
        }
        store_request_encode(&b, &(struct store_request){ .client = 7,
                                                          .tag = tag,
                                                          .op = op,
                                                          .key = keys[0],
                                                          .keys = keys,
                                                          .n_keys = n });
        return b;
}

/* The id of the list found for the message. */
static uint64_t decode(uint8_t op, uint32_t tag, uint32_t n, char family)
{
        CLEANUP(buf_finish) struct buf b = message(op, tag, n, family);
        struct store_request m;
        uint64_t id;

        assert_int_equal(store_keys_decode(&lists, &m, buf_data(&b), buf_len(&b), NULL), 0);
        assert_int_equal(m.op, op);
        assert_int_equal(m.client, 7);
        assert_int_equal(m.tag, tag);
        if (op != STORE_GET) {
                assert_int_equal(m.n_keys, n);
                assert_int_equal(((const char *)m.keys[n - 1].p)[m.keys[n - 1].len - 1], family);
        }
        id = m.keys_id;
        store_request_finish(&m);
        return id;
}

TEST(equal_lists_have_one_id)
{
        uint64_t id = decode(STORE_WAIT, 1, MANY, 'a');

        assert_int_not_equal(id, 0);
        assert_int_equal(decode(STORE_WAIT, 2, MANY, 'a'), id);
        assert_int_equal(decode(STORE_FETCH, 3, MANY, 'a'), id);
        assert_int_not_equal(decode(STORE_WAIT, 4, MANY, 'b'), id);
        assert_int_not_equal(decode(STORE_WAIT, 5, MANY - 1, 'a'), id);
        assert_int_equal(decode(STORE_WAIT, 6, MANY, 'a'), id);
        store_keys_finish(&lists);
}

TEST(other_requests_are_not_kept)
{
        assert_int_equal(decode(STORE_WAIT, 1, 2, 'a'), 0); /* too short for a list */
        assert_int_equal(decode(STORE_CHECK, 1, MANY, 'a'), 0);
        assert_int_equal(decode(STORE_GET, 1, 1, 'a'), 0);
}

TEST(a_list_that_was_forgotten_has_another_id)
{
        uint64_t id = decode(STORE_WAIT, 1, MANY, 'a');

        for (char other = 'b'; other < 'b' + STORE_LISTS_KEPT; other++)
                decode(STORE_WAIT, 1, MANY, other);
        assert_true(decode(STORE_WAIT, 1, MANY, 'a') > id);
        store_keys_finish(&lists);
}

TEST(what_is_malformed_is_not_kept)
{
        CLEANUP(buf_finish) struct buf b = message(STORE_WAIT, 1, MANY, 'a');
        struct store_request m;
        struct error err;

        assert_int_equal(store_keys_decode(&lists, &m, buf_data(&b), buf_len(&b) - 1, &err),
                         -EPROTO);
        assert_string_equal(err.text, "malformed store request WAIT");
        assert_int_equal(store_keys_decode(&lists, &m, "", 0, &err), -EPROTO);
        store_keys_finish(&lists);
}
