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

static struct push_offer sample_offer(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
                entries[i].path = paths[i];
        entries[2].target = (char *)"x";
        return (struct push_offer){ .run_id = "k3f9a",
                                    .node = 7,
                                    .silence_ms = 30000,
                                    .keep = 1,
                                    .later = 1 << 20,
                                    .label = { PUSH_VENV,
                                               1ULL << 40,
                                               { 9, 8 },
                                               (char *)"/home/me/.venv",
                                               { (char *)"/usr/bin/python3", 7, { 6 } } },
                                    .manifest = { entries, ARRAY_SIZE(entries) } };
}

TEST(an_offer_comes_back_as_sent)
{
        const struct push_offer sent = sample_offer();
        CLEANUP(push_offer_finish) struct push_offer got;

        ASSERT_ONLY_WHOLE(push_offer, MSG_OFFER, &sent);
        ASSERT_COMES_BACK(push_offer, MSG_OFFER, &got, &sent);
        assert_string_equal(got.run_id, "k3f9a");
        assert_int_equal(got.node, 7);
        assert_int_equal(got.silence_ms, 30000);
        assert_int_equal(got.keep, 1);
        assert_int_equal(got.label.use, PUSH_VENV);
        assert_int_equal(got.later, 1 << 20);
        assert_true(got.label.limit == 1ULL << 40);
        assert_true(got.label.sha[0] == 9 && got.label.sha[1] == 8);
        assert_string_equal(got.label.name, "/home/me/.venv");
        assert_string_equal(got.label.python.path, "/usr/bin/python3");
        assert_true(got.label.python.size == 7 && got.label.python.sha[0] == 6);
        assert_int_equal(got.manifest.n, ARRAY_SIZE(entries));
        for (uint32_t i = 0; i < got.manifest.n; i++) {
                assert_int_equal(got.manifest.v[i].kind, entries[i].kind);
                assert_int_equal(got.manifest.v[i].mode, entries[i].mode);
                assert_int_equal(got.manifest.v[i].size, entries[i].size);
                assert_memory_equal(got.manifest.v[i].sha, entries[i].sha, PUSH_SHA);
                assert_string_equal(got.manifest.v[i].path, paths[i]);
        }
        assert_string_equal(got.manifest.v[2].target, "x");
}

TEST(an_offer_has_bounds)
{
        struct push_offer later = sample_offer(), use = sample_offer();

        later.later = PUSH_MANIFEST_MAX + 1;
        ASSERT_MALFORMED(push_offer, MSG_OFFER, &later);
        use.label.use = PUSH_USES;
        ASSERT_MALFORMED(push_offer, MSG_OFFER, &use);
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

TEST(a_manifest_alone_comes_back_as_sent)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct push_manifest got;
        struct frame f;

        entries[0].path = paths[0];
        push_manifest_put(&b, &(struct push_manifest){ entries, 1 });
        f = (struct frame){ .body = buf_data(&b), .len = buf_len(&b) };
        assert_int_equal(push_manifest_decode(&got, &f, NULL), 0);
        assert_int_equal(got.n, 1);
        assert_string_equal(got.v[0].path, paths[0]);
        push_manifest_finish(&got);
        f.len--;
        assert_int_equal(push_manifest_decode(&got, &f, NULL), -EPROTO);
}

static void refuse_entry(struct push_entry e, const char *run_id)
{
        struct push_offer m = { .manifest = { &e, 1 } };

        strcpy(m.run_id, run_id);
        ASSERT_MALFORMED(push_offer, MSG_OFFER, &m);
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

        ASSERT_COMES_BACK(push_want, MSG_WANT, &got, &m);
        assert_int_equal(got.holder, PUSH_NO_NODE);
        assert_int_equal(got.n, 3);
        assert_memory_equal(got.entries, list, sizeof(list));
        push_want_finish(&got);
        m.entries = wrong;
        ASSERT_MALFORMED(push_want, MSG_WANT, &m);
}

TEST(a_pack_comes_back)
{
        struct push_piece pieces[] = { { 3, 1ULL << 33, 4 }, { 4, 0, 0 }, { 9, 0, 1 } };
        struct push_pack m = { .stream = 2,
                               .position = 7,
                               .pieces = pieces,
                               .n = 3,
                               .data = (const unsigned char *)"abcde",
                               .len = 5 },
                         got;

        ASSERT_COMES_BACK(push_pack, MSG_PACK, &got, &m);
        assert_int_equal(got.stream, 2);
        assert_int_equal(got.position, 7);
        assert_false(got.deflated);
        assert_int_equal(got.n, 3);
        assert_int_equal(got.pieces[0].entry, 3);
        assert_int_equal(got.pieces[0].offset, 1ULL << 33);
        assert_int_equal(push_pack_bytes(&got), 5);
        assert_memory_equal(got.data, "abcde", 5);
        push_pack_finish(&got);
}

/* The receiver has room for PUSH_PACK_MAX bytes. */
TEST(a_pack_with_more_bytes_than_room_is_malformed)
{
        static const struct {
                bool deflated;
                uint32_t first, second;
                size_t len;
                bool good;
        } rows[] = {
                { false, 2, 3, 5, true },
                { false, 2, 3, 4, false },
                { false, 2, 3, 6, false },
                { true, 2, 3, 4, true },
                { true, PUSH_PACK_MAX, 0, 4, true },
                { true, PUSH_PACK_MAX, 1, 4, false },
                { true, PUSH_PACK_MAX + 1, 0, 4, false },
                { true, UINT32_MAX, 2, 4, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct push_piece pieces[] = { { 1, 0, rows[i].first }, { 2, 0, rows[i].second } };
                struct push_pack m = { .deflated = rows[i].deflated,
                                       .pieces = pieces,
                                       .n = 2,
                                       .data = (const unsigned char *)"abcdef",
                                       .len = rows[i].len },
                                 got;
                CLEANUP(buf_finish) struct buf b = BUF_INIT;
                struct frame f;
                int r;

                push_pack_encode(&b, &m);
                f = first_frame(&b);
                r = push_pack_decode(&got, &f, NULL);
                assert_int_equal(r, rows[i].good ? 0 : -EPROTO);
                if (r == 0)
                        push_pack_finish(&got);
        }
}

TEST(orders_and_reports_of_a_chain_come_back)
{
        struct chain_order m = { .number = 5,
                                 .stream = 2,
                                 .packs = 9,
                                 .what = CHAIN_CONNECT,
                                 .yields = true,
                                 .key = { 1, 2, 3 },
                                 .port = 65535 },
                           got;
        struct chain_report r = { 5, 2, CHAINED_BROKEN, 7, 0, ECONNRESET }, got_r;

        strv_push(&m.addrs, "10.0.0.1");
        ASSERT_COMES_BACK(chain_order, MSG_CHAIN, &got, &m);
        assert_int_equal(got.number, 5);
        assert_int_equal(got.what, CHAIN_CONNECT);
        assert_true(got.yields);
        assert_memory_equal(got.key, m.key, PUSH_CHAIN_KEY);
        assert_int_equal(got.port, 65535);
        assert_string_equal(got.addrs.v[0], "10.0.0.1");
        chain_order_finish(&got);
        for (int i = 0; i < PUSH_CHAIN_ADDRS; i++)
                strv_push(&m.addrs, "10.0.0.2");
        ASSERT_MALFORMED(chain_order, MSG_CHAIN, &m);
        strv_finish(&m.addrs);
        ASSERT_COMES_BACK(chain_report, MSG_CHAINED, &got_r, &r);
        assert_int_equal(got_r.number, 5);
        assert_int_equal(got_r.stream, 2);
        assert_int_equal(got_r.what, CHAINED_BROKEN);
        assert_int_equal(got_r.position, 7);
        assert_int_equal(got_r.error, ECONNRESET);
        r.port = 65536;
        ASSERT_MALFORMED(chain_report, MSG_CHAINED, &r);
}

TEST(orders_and_reports_of_a_chain_have_bounds)
{
        static const struct chain_order orders[] = {
                { .what = CHAIN_LISTEN - 1 },
                { .what = CHAIN_WHATS },
                { .what = CHAIN_LISTEN, .port = 65536 },
        };
        static const struct chain_report reports[] = { { .what = CHAINED_LISTENS - 1 },
                                                       { .what = CHAINED_WHATS } };

        for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
                ASSERT_MALFORMED(chain_order, MSG_CHAIN, &orders[i]);
        for (size_t i = 0; i < ARRAY_SIZE(reports); i++)
                ASSERT_MALFORMED(chain_report, MSG_CHAINED, &reports[i]);
}

TEST(short_messages_come_back)
{
        struct pushed p = { .error = ENOSPC, .free_bytes = 12, .folder = "/f", .what = "w" }, got_p;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct push_look look;
        struct frame f;
        uint32_t taken;

        ASSERT_COMES_BACK(pushed, MSG_PUSHED, &got_p, &p);
        assert_int_equal(got_p.error, ENOSPC);
        assert_int_equal(got_p.free_bytes, 12);
        assert_string_equal(got_p.folder, "/f");
        assert_string_equal(got_p.what, "w");
        number_encode(&b, MSG_TAKEN, 77);
        f = first_frame(&b);
        assert_int_equal(number_decode(&taken, &f, NULL), 0);
        assert_int_equal(taken, 77);
        ASSERT_COMES_BACK(push_look, MSG_LOOK, &look, &(struct push_look){ 1 });
        assert_int_equal(look.take_over, 1);
}

TEST(a_pull_comes_back)
{
        char *words[] = { (char *)"out", (char *)"/abs", (char *)"/home/pulled" };
        struct pull_order order = { { words, 2, 2 }, { words + 2, 1, 1 } }, got;

        ASSERT_COMES_BACK(pull_order, MSG_PULL, &got, &order);
        assert_int_equal(got.paths.n, 2);
        assert_string_equal(got.paths.v[1], "/abs");
        assert_string_equal(got.skip.v[0], "/home/pulled");
        pull_order_finish(&got);
}

TEST(a_part_of_a_pulled_file_has_a_limit)
{
        static const unsigned char data[PULL_PART_MAX + 1];
        struct pulled m = { .kind = PULL_FILE, .data = data, .len = PULL_PART_MAX }, got;

        ASSERT_COMES_BACK(pulled, MSG_PULLED, &got, &m);
        pulled_finish(&got);
        m.len++;
        ASSERT_MALFORMED(pulled, MSG_PULLED, &m);
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
                CLEANUP(buf_finish) struct buf b = BUF_INIT;
                struct pulled got;
                struct frame f;

                pulled_encode(&b, &in);
                f = first_frame(&b);
                assert_int_equal(pulled_decode(&got, &f, NULL), rows[i].good ? 0 : -EPROTO);
                if (rows[i].good) {
                        assert_string_equal(got.path, rows[i].path);
                        assert_int_equal(got.item, 7);
                        assert_int_equal(got.len, 3);
                        pulled_finish(&got);
                }
        }
}

TEST(an_order_to_stage_comes_back_as_sent)
{
        const struct stage_order sent = { .remove = 1, .limit = 20ULL << 30, .max_age_s = 604800 };
        struct stage_order m;

        ASSERT_COMES_BACK(stage_order, MSG_STAGE, &m, &sent);
        assert_int_equal(m.remove, 1);
        assert_true(m.limit == sent.limit && m.max_age_s == sent.max_age_s);
}

TEST(staged_folders_come_back_as_sent_and_only_whole)
{
        struct staged_copy copies[2] = { { .folder = (char *)"/tmp/f",
                                           .name = (char *)"/home/me/.venv",
                                           .use = PUSH_VENV,
                                           .bytes = 1ULL << 33,
                                           .files = 22806,
                                           .age_s = 3600,
                                           .in_use = 1 },
                                         { .removed = 1 } };
        const struct staged sent = { copies, 2 };
        struct staged m;

        ASSERT_ONLY_WHOLE(staged, MSG_STAGED, &sent);
        ASSERT_COMES_BACK(staged, MSG_STAGED, &m, &sent);
        assert_int_equal(m.n, 2);
        assert_string_equal(m.v[0].folder, "/tmp/f");
        assert_string_equal(m.v[0].name, "/home/me/.venv");
        assert_int_equal(m.v[0].use, PUSH_VENV);
        assert_true(m.v[0].bytes == 1ULL << 33 && m.v[0].files == 22806 && m.v[0].age_s == 3600);
        assert_true(m.v[0].in_use && !m.v[0].removed && m.v[1].removed);
        staged_finish(&m);
        copies[1].use = PUSH_USES;
        ASSERT_MALFORMED(staged, MSG_STAGED, &sent);
}
