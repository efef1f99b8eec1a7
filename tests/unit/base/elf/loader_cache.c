/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elf/elf_closure.h"

#include "base/buf.h"
#include "base/memory.h"
#include "lib/unit.h"

/* As ldconfig writes: two libraries of one name, the first for a special processor. */
static void put_new_format(struct buf *b)
{
        static const char strings[] = "libx.so.1\0/fast/libx.so.1\0/a/libx.so.1\0/b/libx.so.1";
        enum { NAME = 48 + 3 * 24, FAST = NAME + 10, A = FAST + 16, B = A + 13 };
        const uint32_t head[7] = { 3, sizeof(strings) };
        const struct {
                uint32_t flags, name, path, os;
                uint64_t processor;
        } entries[3] = { { 0x303, NAME, FAST, 0, 1 },
                         { 0x303, NAME, A, 0, 0 },
                         { 3, NAME, B, 0, 0 } };

        buf_append(b, "glibc-ld.so.cache1.1", 20);
        buf_append(b, head, sizeof(head));
        buf_append(b, entries, sizeof(entries));
        buf_append(b, strings, sizeof(strings));
}

static void put_old_format(struct buf *b, uint32_t n)
{
        static const char entry[12];

        buf_append(b, "ld.so-1.7.0", 12);
        buf_append(b, &n, sizeof(n));
        for (uint32_t i = 0; i < n; i++)
                buf_append(b, entry, sizeof(entry));
        while (buf_len(b) % 8)
                buf_append(b, "", 1);
}

static void assert_two_are_found(const struct buf *b)
{
        const char *data = (const char *)buf_data(b);
        size_t at = 0;

        assert_string_equal(loader_cache_find(data, buf_len(b), "libx.so.1", &at), "/a/libx.so.1");
        assert_string_equal(loader_cache_find(data, buf_len(b), "libx.so.1", &at), "/b/libx.so.1");
        assert_null(loader_cache_find(data, buf_len(b), "libx.so.1", &at));
        at = 0;
        assert_null(loader_cache_find(data, buf_len(b), "libx.so", &at));
}

TEST(both_formats_are_read)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT, old = BUF_INIT;

        put_new_format(&b);
        assert_two_are_found(&b);
        for (uint32_t n = 0; n < 3; n++) {
                buf_clear(&old);
                put_old_format(&old, n);
                put_new_format(&old);
                assert_two_are_found(&old);
        }
        buf_finish(&old);
}

/* Each byte is changed, and each length tried: what is found lies within the file. */
TEST(damaged_files_do_no_harm_to_the_search)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t len, at;
        const char *path;
        char *copy;

        put_old_format(&b, 1);
        put_new_format(&b);
        len = buf_len(&b);
        for (size_t i = 0; i < 2 * len; i++) {
                size_t n = i < len ? len : i - len;

                copy = xcalloc(n + 1, 1);
                memcpy(copy, buf_data(&b), n);
                if (i < n)
                        copy[i] = (char)(copy[i] ^ 0xff);
                for (at = 0; (path = loader_cache_find(copy, n, "libx.so.1", &at));)
                        assert_true(path >= copy && path + strlen(path) <= copy + n);
                free(copy);
        }
        at = 0;
        assert_null(loader_cache_find("", 0, "libx.so.1", &at));
}
