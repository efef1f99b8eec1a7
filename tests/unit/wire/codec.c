/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/codec.h"

static struct reader reader_of(const struct buf *b)
{
        return (struct reader)READER_INIT(buf_data(b), buf_len(b));
}

static void test_numbers_are_little_endian(void **state UNUSED)
{
        static const unsigned char want[] = {
                0x12, 0x78, 0x56, 0x34, 0x12, 8, 7, 6, 5, 4, 3, 2, 1
        };
        struct buf b = BUF_INIT;

        put_u8(&b, 0x12);
        put_u32(&b, 0x12345678);
        put_u64(&b, 0x0102030405060708);
        assert_int_equal(buf_len(&b), sizeof(want));
        assert_memory_equal(buf_data(&b), want, sizeof(want));
        buf_finish(&b);
}

static void test_what_was_put_is_taken(void **state UNUSED)
{
        struct buf b = BUF_INIT;
        struct strv v = STRV_INIT, got = STRV_INIT;
        struct reader r;
        size_t len;
        char *s, fixed[6];

        strv_push(&v, "");
        strv_push(&v, "two words");
        put_u8(&b, 255);
        put_u32(&b, UINT32_MAX);
        put_u64(&b, UINT64_MAX);
        put_bytes(&b, "a\0b", 3);
        put_str(&b, "text");
        put_str(&b, NULL);
        put_str(&b, "12345");
        put_strv(&b, &v);
        buf_appends(&b, "rest");

        r = reader_of(&b);
        assert_int_equal(take_u8(&r), 255);
        assert_int_equal(take_u32(&r), UINT32_MAX);
        assert_true(take_u64(&r) == UINT64_MAX);
        assert_memory_equal(take_bytes(&r, 3, &len), "a\0b", 3);
        assert_int_equal(len, 3);
        s = take_str(&r, 4);
        assert_string_equal(s, "text");
        free(s);
        s = take_str(&r, 0);
        assert_string_equal(s, "");
        free(s);
        take_str_into(&r, fixed, sizeof(fixed));
        assert_string_equal(fixed, "12345");
        take_strv(&r, 2, 9, &got);
        assert_int_equal(got.n, 2);
        assert_string_equal(got.v[1], "two words");
        assert_false(take_done(&r));
        assert_memory_equal(take_rest(&r, &len), "rest", 4);
        assert_int_equal(len, 4);
        assert_true(take_done(&r));
        strv_finish(&v);
        strv_finish(&got);
        buf_finish(&b);
}

static void test_a_reader_remembers_its_first_failure(void **state UNUSED)
{
        struct reader r = READER_INIT((const unsigned char *)"\1\2\3", 3);
        size_t len;

        assert_int_equal(take_u32(&r), 0);
        assert_true(r.failed);
        assert_int_equal(take_u8(&r), 0);
        assert_null(take_rest(&r, &len));
        assert_int_equal(len, 0);
        assert_false(take_done(&r));
}

static void test_lengths_beyond_the_limit_or_the_input_are_refused(void **state UNUSED)
{
        struct buf b = BUF_INIT;
        struct reader r;
        size_t len;
        char fixed[4];

        put_str(&b, "12345");
        r = reader_of(&b);
        assert_null(take_bytes(&r, 4, &len));
        assert_true(r.failed);
        r = reader_of(&b);
        assert_null(take_str(&r, 4));
        r = reader_of(&b);
        take_str_into(&r, fixed, sizeof(fixed));
        assert_true(r.failed);
        assert_string_equal(fixed, "");
        r = (struct reader)READER_INIT(buf_data(&b), buf_len(&b) - 1);
        assert_null(take_str(&r, 100));
        assert_true(r.failed);
        buf_finish(&b);
}

static void test_strings_with_a_nul_inside_are_refused(void **state UNUSED)
{
        struct buf b = BUF_INIT;
        struct strv v = STRV_INIT;
        struct reader r;
        char fixed[8];

        put_bytes(&b, "a\0b", 3);
        r = reader_of(&b);
        assert_null(take_str(&r, 8));
        r = reader_of(&b);
        take_str_into(&r, fixed, sizeof(fixed));
        assert_true(r.failed);
        buf_clear(&b);
        put_u32(&b, 1);
        put_bytes(&b, "a\0b", 3);
        r = reader_of(&b);
        take_strv(&r, 8, 8, &v);
        assert_true(r.failed);
        strv_finish(&v);
        buf_finish(&b);
}

static void test_a_huge_count_does_not_allocate(void **state UNUSED)
{
        struct buf b = BUF_INIT;
        struct strv v = STRV_INIT;
        struct reader r;

        put_u32(&b, UINT32_MAX);
        r = reader_of(&b);
        take_strv(&r, SIZE_MAX, 8, &v);
        assert_true(r.failed);
        assert_int_equal(v.n, 0);
        strv_finish(&v);
        buf_finish(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers_are_little_endian),
                cmocka_unit_test(test_what_was_put_is_taken),
                cmocka_unit_test(test_a_reader_remembers_its_first_failure),
                cmocka_unit_test(test_lengths_beyond_the_limit_or_the_input_are_refused),
                cmocka_unit_test(test_strings_with_a_nul_inside_are_refused),
                cmocka_unit_test(test_a_huge_count_does_not_allocate),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
