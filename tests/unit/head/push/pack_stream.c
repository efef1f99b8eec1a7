/* SPDX-License-Identifier: Apache-2.0 */
/* Files are cut into PACKs that are put together again. */
#include "head/push/pack_stream.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"
#include "lib/files.h"
#include "lib/frames.h"
#include "wire/msg.h"

enum { FILES = 5, LARGE = 3 * PUSH_PACK_MAX + 7 };

static const size_t sizes[FILES] = { 0, 5, LARGE, 0, 1 };
static struct push_entry entries[FILES];
static struct manifest_source sources[FILES];
static struct manifest manifest;

static char letter_at(uint32_t entry, size_t offset)
{
        return (char)('a' + entry + offset % 7);
}

static int set_up(void **state)
{
        assert_int_equal(make_scratch(state), 0);
        manifest =
                (struct manifest){ .manifest = { entries, FILES }, .sources = sources, .fd = -1 };
        for (uint32_t i = 0; i < FILES; i++) {
                char *path = xasprintf("%s/%u", scratch, i);
                FILE *f = fopen(path, "w");
                struct stat st;

                assert_non_null(f);
                for (size_t k = 0; k < sizes[i]; k++)
                        putc(letter_at(i, k), f);
                fclose(f);
                assert_int_equal(stat(path, &st), 0);
                entries[i] = (struct push_entry){ .kind = PUSH_FILE, .size = sizes[i] };
                sources[i] = (struct manifest_source){ .path = path, .key = hash_memory_key(&st) };
        }
        return 0;
}

static int tear_down(void **state)
{
        for (uint32_t i = 0; i < FILES; i++)
                free(sources[i].path);
        if (manifest.fd >= 0)
                close(manifest.fd);
        return remove_scratch(state);
}

/* Puts the bytes of a PACK behind those that came before: @got counts them by file. */
static void unpack(const struct buf *b, size_t got[FILES])
{
        unsigned char bytes[PUSH_PACK_MAX], *at = bytes;
        struct frame f = only_frame(b, MSG_PACK);
        z_stream z = { 0 };
        CLEANUP(push_pack_finish) struct push_pack m;

        assert_int_equal(push_pack_decode(&m, &f, NULL), 0);
        if (m.deflated) {
                assert_int_equal(inflateInit2(&z, -15), Z_OK);
                z.next_in = (unsigned char *)m.data;
                z.avail_in = (unsigned)m.len;
                z.next_out = bytes;
                z.avail_out = sizeof(bytes);
                assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
                assert_int_equal(z.total_out, push_pack_bytes(&m));
                inflateEnd(&z);
        } else {
                memcpy(bytes, m.data, m.len);
        }
        for (uint32_t i = 0; i < m.n; i++) {
                const struct push_piece *p = &m.pieces[i];

                assert_int_equal(p->offset, got[p->entry]);
                for (uint32_t k = 0; k < p->len; k++)
                        assert_int_equal(*at++, letter_at(p->entry, got[p->entry]++));
        }
}

static void send_all(bool deflate, size_t *ret_bytes)
{
        static const uint32_t all[] = { 0, 1, 2, 3, 4 };
        struct pack_stream *s = pack_stream_create(&manifest, 1, 1, all, FILES);
        struct pack_place at = { 0 };
        size_t got[FILES] = { 0 };
        struct error err;

        *ret_bytes = 0;
        assert_int_equal(pack_stream_packs(s), 4);
        while (at.position < pack_stream_packs(s)) {
                CLEANUP(buf_finish) struct buf b = BUF_INIT;

                assert_true(pack_stream_put(s, &at, deflate, &b, &err) > 0);
                *ret_bytes += buf_len(&b);
                unpack(&b, got);
        }
        assert_memory_equal(got, sizes, sizeof(got));
        pack_stream_free(s);
}

TEST_WITH(set_up, tear_down, all_files_arrive_whole)
{
        size_t plain, small;

        send_all(false, &plain);
        send_all(true, &small);
        assert_true(plain > LARGE);
        assert_true(small < LARGE / 10);
}

TEST_WITH(set_up, tear_down, a_place_has_the_same_pack_each_time)
{
        static const uint32_t some[] = { 1, 2, 4 };
        struct pack_stream *s = pack_stream_create(&manifest, 1, 1, some, 3);
        struct pack_place at = { 0 }, again;
        struct error err;

        assert_true(pack_stream_is_of(s, some, 3));
        assert_false(pack_stream_is_of(s, some, 2));
        while (at.position < pack_stream_packs(s)) {
                struct pack_stream *other = pack_stream_create(&manifest, 1, 1, some, 3);
                CLEANUP(buf_finish) struct buf a = BUF_INIT, b = BUF_INIT, c = BUF_INIT;

                again = pack_stream_seek(other, at.position);
                assert_memory_equal(&again, &at, sizeof(at));
                pack_stream_put(other, &again, false, &b, &err); /* read anew */
                again = at;
                pack_stream_put(s, &at, false, &a, &err);
                pack_stream_put(s, &again, false, &c, &err); /* kept */
                assert_int_equal(buf_len(&a), buf_len(&b));
                assert_memory_equal(buf_data(&a), buf_data(&b), buf_len(&a));
                assert_int_equal(buf_len(&a), buf_len(&c));
                assert_memory_equal(buf_data(&a), buf_data(&c), buf_len(&a));
                assert_memory_equal(&again, &at, sizeof(at));
                pack_stream_free(other);
        }
        pack_stream_free(s);
}

static uint32_t count_packs(size_t row)
{
        static const uint32_t large[] = { 2 };
        struct pack_stream *s = pack_stream_create(&manifest, 1, row, large, 1);
        uint32_t n = pack_stream_packs(s);

        pack_stream_free(s);
        return n;
}

/* The last node of a long row waits for each node before it to have a whole PACK. */
TEST_WITH(set_up, tear_down, a_long_row_gets_small_packs)
{
        assert_int_equal(count_packs(1), 4);
        assert_true(count_packs(64) > 16);
        assert_true(count_packs(1000) < 100);
}

TEST_WITH(set_up, tear_down, the_manifest_comes_as_bytes_of_its_own)
{
        static const uint32_t list = PUSH_LIST;
        CLEANUP(buf_finish) struct buf want = BUF_INIT, got = BUF_INIT, b = BUF_INIT;
        struct pack_stream *s = pack_stream_create(&manifest, 1, 1, &list, 1);
        struct pack_place at = { 0 };
        struct push_pack m;
        struct error err;
        struct frame f;

        push_manifest_put(&want, &manifest.manifest);
        while (at.position < pack_stream_packs(s)) {
                buf_clear(&b);
                assert_true(pack_stream_put(s, &at, false, &b, &err) > 0);
                f = only_frame(&b, MSG_PACK);
                assert_int_equal(push_pack_decode(&m, &f, NULL), 0);
                assert_int_equal(m.n, 1);
                assert_int_equal(m.pieces[0].entry, PUSH_LIST);
                assert_int_equal(m.pieces[0].offset, buf_len(&got));
                buf_append(&got, m.data, m.len);
                push_pack_finish(&m);
        }
        assert_int_equal(buf_len(&got), buf_len(&want));
        assert_memory_equal(buf_data(&got), buf_data(&want), buf_len(&want));
        pack_stream_free(s);
}

TEST_WITH(set_up, tear_down, a_file_that_is_gone_is_told)
{
        static const uint32_t large[] = { 2 };
        struct pack_stream *s = pack_stream_create(&manifest, 1, 1, large, 1);
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct pack_place at = { 0 };
        struct error err;

        unlink(sources[2].path);
        assert_true(pack_stream_put(s, &at, false, &b, &err) < 0);
        assert_int_equal(buf_len(&b), 0);
        pack_stream_free(s);
}
