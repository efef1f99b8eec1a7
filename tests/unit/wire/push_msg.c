/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/push_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/msg.h"

static char *const paths[] = { (char *)"data", (char *)"data/x", (char *)"data/y" };

static struct push_entry entries[] = {
        { .kind = PUSH_FOLDER, .mode = 0755 },
        { .kind = PUSH_FILE, .mode = 0644, .size = 1ULL << 40, .sha = { 1, 2, 3 } },
        { .kind = PUSH_LINK, .mode = 0777 },
};

static struct frame encode_offer(struct buf *b)
{
        struct push_offer m = { .run_id = "k3f9a",
                                .node = 7,
                                .silence_ms = 30000,
                                .keep = 1,
                                .manifest = { entries, ARRAY_SIZE(entries) } };

        for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
                entries[i].path = paths[i];
        entries[2].target = (char *)"x";
        push_offer_encode(b, &m);
        return first_frame(b);
}

TEST(an_offer_comes_back_as_sent)
{
        struct buf b = BUF_INIT;
        struct frame f = encode_offer(&b);
        struct push_offer got;

        assert_int_equal(push_offer_decode(&got, &f, NULL), 0);
        assert_string_equal(got.run_id, "k3f9a");
        assert_int_equal(got.node, 7);
        assert_int_equal(got.silence_ms, 30000);
        assert_int_equal(got.keep, 1);
        assert_int_equal(got.manifest.n, ARRAY_SIZE(entries));
        for (uint32_t i = 0; i < got.manifest.n; i++) {
                assert_int_equal(got.manifest.v[i].kind, entries[i].kind);
                assert_int_equal(got.manifest.v[i].mode, entries[i].mode);
                assert_int_equal(got.manifest.v[i].size, entries[i].size);
                assert_memory_equal(got.manifest.v[i].sha, entries[i].sha, PUSH_SHA);
                assert_string_equal(got.manifest.v[i].path, paths[i]);
        }
        assert_string_equal(got.manifest.v[2].target, "x");
        push_offer_finish(&got);
        buf_finish(&b);
}

TEST(every_shorter_or_longer_offer_is_malformed)
{
        struct buf b = BUF_INIT;
        struct frame f = encode_offer(&b);
        size_t len = f.len;
        struct push_offer got;
        struct error err;

        for (f.len = 0; f.len < len; f.len++)
                assert_int_equal(push_offer_decode(&got, &f, &err), -EPROTO);
        buf_append(&b, "x", 1);
        f.body = buf_data(&b) + FRAME_HEADER;
        f.len = len + 1;
        assert_int_equal(push_offer_decode(&got, &f, &err), -EPROTO);
        buf_finish(&b);
}

TEST(paths_that_lead_out_are_refused)
{
        static const char *const bad[] = { "",     "/",  "/etc", "..",  "../x",  "a/..",
                                           "a//b", "a/", ".",    "./a", "a/./b", "a/../../b" };
        static const char *const good[] = { "a", "a/b", "...", "a/..b", ".a", "a b", "a\\b" };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(push_path_is_safe(bad[i]));
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_true(push_path_is_safe(good[i]));
}

static void refuse_entry(struct push_entry e, const char *run_id)
{
        struct push_offer m = { .manifest = { &e, 1 } }, got;
        struct buf b = BUF_INIT;
        struct error err;
        struct frame f;

        strcpy(m.run_id, run_id);
        push_offer_encode(&b, &m);
        f = first_frame(&b);
        assert_int_equal(push_offer_decode(&got, &f, &err), -EPROTO);
        buf_finish(&b);
}

TEST(an_offer_with_a_bad_entry_is_malformed)
{
        refuse_entry((struct push_entry){ .kind = PUSH_FILE, .path = (char *)"../x" }, "r");
        refuse_entry((struct push_entry){ .kind = 9, .path = (char *)"x" }, "r");
        refuse_entry((struct push_entry){ .kind = PUSH_FILE, .mode = 0100755, .path = (char *)"x" },
                     "r");
        refuse_entry((struct push_entry){ .kind = PUSH_FOLDER, .path = (char *)"x" }, "../r");
}

TEST(a_want_comes_back_in_order)
{
        uint32_t list[] = { 1, 5, 9 }, wrong[] = { 1, 5, 5 };
        struct push_want m = { .holder = PUSH_NO_NODE, .entries = list, .n = 3 }, got;
        struct buf b = BUF_INIT;
        struct error err;
        struct frame f;

        push_want_encode(&b, &m);
        f = first_frame(&b);
        assert_int_equal(push_want_decode(&got, &f, NULL), 0);
        assert_int_equal(got.holder, PUSH_NO_NODE);
        assert_int_equal(got.n, 3);
        assert_memory_equal(got.entries, list, sizeof(list));
        push_want_finish(&got);
        buf_clear(&b);
        m.entries = wrong;
        push_want_encode(&b, &m);
        f = first_frame(&b);
        assert_int_equal(push_want_decode(&got, &f, &err), -EPROTO);
        buf_finish(&b);
}

TEST(a_chunk_is_filled_in_place)
{
        struct buf b = BUF_INIT;
        struct push_chunk got;
        struct frame f;

        memcpy(push_chunk_begin(&b, 3, 1ULL << 33, 4), "abcd", 4);
        f = first_frame(&b);
        assert_int_equal(f.type, MSG_CHUNK);
        assert_int_equal(push_chunk_decode(&got, &f, NULL), 0);
        assert_int_equal(got.entry, 3);
        assert_int_equal(got.offset, 1ULL << 33);
        assert_int_equal(got.len, 4);
        assert_memory_equal(got.data, "abcd", 4);
        buf_clear(&b);
        assert_non_null(push_chunk_begin(&b, 3, 0, 0));
        f = first_frame(&b);
        assert_int_equal(push_chunk_decode(&got, &f, NULL), 0);
        assert_int_equal(got.len, 0);
        buf_finish(&b);
}

TEST(short_messages_come_back)
{
        struct pushed p = { .error = ENOSPC, .free_bytes = 12, .folder = "/f", .what = "w" }, got_p;
        uint32_t taken;
        struct push_look look;
        struct buf b = BUF_INIT;
        struct frame f;

        pushed_encode(&b, &p);
        f = first_frame(&b);
        assert_int_equal(pushed_decode(&got_p, &f, NULL), 0);
        assert_int_equal(got_p.error, ENOSPC);
        assert_int_equal(got_p.free_bytes, 12);
        assert_string_equal(got_p.folder, "/f");
        assert_string_equal(got_p.what, "w");
        buf_clear(&b);
        number_encode(&b, MSG_TAKEN, 77);
        f = first_frame(&b);
        assert_int_equal(number_decode(&taken, &f, NULL), 0);
        assert_int_equal(taken, 77);
        buf_clear(&b);
        push_look_encode(&b, &(struct push_look){ 1 });
        f = first_frame(&b);
        assert_int_equal(push_look_decode(&look, &f, NULL), 0);
        assert_int_equal(look.take_over, 1);
        buf_finish(&b);
}

TEST(a_pull_comes_back)
{
        char *words[] = { (char *)"out", (char *)"/abs", (char *)"/home/pulled" };
        struct pull_order order = { { words, 2, 2 }, { words + 2, 1, 1 } }, got;
        struct buf b = BUF_INIT;
        struct frame f;

        pull_order_encode(&b, &order);
        f = first_frame(&b);
        assert_int_equal(f.type, MSG_PULL);
        assert_int_equal(pull_order_decode(&got, &f, NULL), 0);
        assert_int_equal(got.paths.n, 2);
        assert_string_equal(got.paths.v[1], "/abs");
        assert_string_equal(got.skip.v[0], "/home/pulled");
        pull_order_finish(&got);
        buf_finish(&b);
}

TEST(pulled_paths_stay_below)
{
        static const struct {
                uint8_t kind;
                uint32_t mode;
                const char *path;
                bool good;
        } rows[] = {
                { PULL_FILE, 0644, "a/b", true },   { PULL_FILE, 0644, "", true },
                { PULL_FILE, 0644, "..", false },   { PULL_FILE, 0644, "a/../b", false },
                { PULL_FILE, 0644, "/etc", false }, { PULL_FILE, 0644, "a//b", false },
                { PULL_FILE, 0644, "a/", false },   { PULL_FILE, 0644, ".", false },
                { PULL_FILE, 010000, "a", false },  { 0, 0, "a", false },
                { PULL_KINDS, 0, "a", false },      { PULL_END, 0, "", true },
                { PULL_FILE, 0644, "a\nb", true },  { PULL_FILE, 04755, "a", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct pulled in = { .kind = rows[i].kind,
                                     .item = 7,
                                     .mode = rows[i].mode,
                                     .path = (char *)rows[i].path,
                                     .data = (const unsigned char *)"xyz",
                                     .len = 3 };
                struct buf b = BUF_INIT;
                struct pulled got;
                struct frame f;
                struct error err;

                pulled_encode(&b, &in);
                f = first_frame(&b);
                assert_int_equal(pulled_decode(&got, &f, &err), rows[i].good ? 0 : -EPROTO);
                if (rows[i].good) {
                        assert_string_equal(got.path, rows[i].path);
                        assert_int_equal(got.item, 7);
                        assert_int_equal(got.len, 3);
                        pulled_finish(&got);
                }
                buf_finish(&b);
        }
}
