/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/codec.h"

#include "lib/unit.h"

static struct reader reader_of(const struct buf *b)
{
        return (struct reader)READER_INIT(buf_data(b), buf_len(b));
}

TEST(numbers_are_little_endian)
{
        static const unsigned char want[] = {
                0x12, 0x78, 0x56, 0x34, 0x12, 8, 7, 6, 5, 4, 3, 2, 1
        };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        put_u8(&b, 0x12);
        put_u32(&b, 0x12345678);
        put_u64(&b, 0x0102030405060708);
        assert_int_equal(buf_len(&b), sizeof(want));
        assert_memory_equal(buf_data(&b), want, sizeof(want));
}

/* One field of each kind. */
struct sample {
        uint8_t u8;
        bool yes;
        uint32_t u32;
        uint64_t u64;
        char raw[3], text[6];
        char *string, *empty;
        struct strv list;
        uint32_t *numbers, n_numbers;
        const unsigned char *rest;
        size_t len;
};

static void code_sample(struct codec *c, struct sample *m)
{
        codec_u8(c, &m->u8);
        codec_bool(c, &m->yes);
        codec_u32(c, &m->u32);
        codec_u64(c, &m->u64);
        codec_raw(c, m->raw, sizeof(m->raw));
        codec_text(c, m->text, sizeof(m->text));
        codec_str(c, &m->string, 4);
        codec_str(c, &m->empty, 0);
        codec_strv(c, &m->list, 2, 9);
        codec_u32_array(c, &m->numbers, &m->n_numbers, 3);
        codec_rest(c, &m->rest, &m->len);
}

static struct codec codec_of(const struct buf *b)
{
        return CODEC_FROM(buf_data(b), buf_len(b));
}

TEST(what_was_encoded_is_decoded_and_freed)
{
        uint32_t numbers[] = { 1, UINT32_MAX, 3 };
        struct sample in = { .u8 = 255,
                             .yes = true,
                             .u32 = UINT32_MAX,
                             .u64 = UINT64_MAX,
                             .raw = { 'a', 0, 'b' },
                             .text = "12345",
                             .string = (char *)"text",
                             .numbers = numbers,
                             .n_numbers = 3,
                             .rest = (const unsigned char *)"rest",
                             .len = 4 };
        struct sample out = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct codec c;

        strv_push(&in.list, "");
        strv_push(&in.list, "two words");
        code_sample(&CODEC_TO(&b), &in);
        c = codec_of(&b);
        code_sample(&c, &out);
        assert_true(take_done(&c.in));
        assert_int_equal(out.u8, 255);
        assert_true(out.yes);
        assert_int_equal(out.u32, UINT32_MAX);
        assert_true(out.u64 == UINT64_MAX);
        assert_memory_equal(out.raw, "a\0b", 3);
        assert_string_equal(out.text, "12345");
        assert_string_equal(out.string, "text");
        assert_string_equal(out.empty, "");
        assert_int_equal(out.list.n, 2);
        assert_string_equal(out.list.v[1], "two words");
        assert_int_equal(out.n_numbers, 3);
        assert_memory_equal(out.numbers, numbers, sizeof(numbers));
        assert_int_equal(out.len, 4);
        assert_memory_equal(out.rest, "rest", 4);
        code_sample(&CODEC_FREEING, &out);
        assert_null(out.string);
        assert_null(out.numbers);
        assert_int_equal(out.n_numbers + out.list.n, 0);
        strv_finish(&in.list);
}

TEST(small_numbers_need_few_bytes)
{
        static const struct {
                uint64_t v;
                size_t len;
        } cases[] = { { 0, 1 }, { 127, 1 }, { 128, 2 }, { 16384, 3 }, { UINT64_MAX, 10 } };
        static const char long_one[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02";
        struct reader r;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(buf_finish) struct buf b = BUF_INIT;

                put_varint(&b, cases[i].v);
                assert_int_equal(buf_len(&b), cases[i].len);
                r = reader_of(&b);
                assert_true(take_varint(&r) == cases[i].v);
                assert_true(take_done(&r));
                r = reader_of(&b);
                r.left--;
                take_varint(&r);
                assert_true(r.failed);
        }
        r = (struct reader)READER_INIT((const unsigned char *)long_one, sizeof(long_one) - 1);
        assert_int_equal(take_varint(&r), 0);
        assert_true(r.failed);
}

TEST(a_reader_remembers_its_first_failure)
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

TEST(lengths_beyond_the_limit_or_the_input_are_refused)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct reader r;
        struct codec c;
        size_t len;
        char *s, fixed[4];

        put_str(&b, "12345");
        r = reader_of(&b);
        assert_null(take_bytes(&r, 4, &len));
        assert_true(r.failed);
        c = codec_of(&b);
        codec_str(&c, &s, 4);
        assert_null(s);
        assert_true(c.in.failed);
        c = codec_of(&b);
        codec_text(&c, fixed, sizeof(fixed));
        assert_true(c.in.failed);
        assert_string_equal(fixed, "");
        c = codec_of(&b);
        c.in.left--;
        codec_str(&c, &s, 100);
        assert_null(s);
        assert_true(c.in.failed);
}

TEST(strings_with_a_nul_inside_are_refused)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        CLEANUP(strv_finish) struct strv v = STRV_INIT;
        struct codec c;
        char *s, fixed[8];

        put_bytes(&b, "a\0b", 3);
        c = codec_of(&b);
        codec_str(&c, &s, 8);
        assert_null(s);
        c = codec_of(&b);
        codec_text(&c, fixed, sizeof(fixed));
        assert_true(c.in.failed);
        buf_clear(&b);
        put_u32(&b, 1);
        put_bytes(&b, "a\0b", 3);
        c = codec_of(&b);
        codec_strv(&c, &v, 8, 8);
        assert_true(c.in.failed);
}

TEST(a_huge_count_does_not_allocate)
{
        uint32_t *numbers, n;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        CLEANUP(strv_finish) struct strv v = STRV_INIT;
        struct codec c;

        put_u32(&b, UINT32_MAX);
        c = codec_of(&b);
        codec_strv(&c, &v, SIZE_MAX, 8);
        assert_true(c.in.failed);
        assert_int_equal(v.n, 0);
        c = codec_of(&b);
        codec_u32_array(&c, &numbers, &n, SIZE_MAX);
        assert_true(c.in.failed);
        assert_null(numbers);
        assert_int_equal(n, 0);
}
