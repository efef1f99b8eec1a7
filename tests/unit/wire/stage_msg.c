/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/stage_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/push_msg.h"

TEST(an_order_to_stage_comes_back_as_sent)
{
        const struct stage_order sent = { .remove = 1, .limit = 20ULL << 30, .max_age_s = 604800 };
        struct stage_order m;
        struct buf b = BUF_INIT;
        struct frame f;

        stage_order_encode(&b, &sent);
        f = first_frame(&b);
        assert_int_equal(stage_order_decode(&m, &f, NULL), 0);
        assert_int_equal(m.remove, 1);
        assert_true(m.limit == sent.limit && m.max_age_s == sent.max_age_s);
        buf_finish(&b);
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
        struct buf b = BUF_INIT;
        struct error err;
        struct staged m;
        struct frame f;
        size_t len;

        staged_encode(&b, &sent);
        f = first_frame(&b);
        assert_int_equal(staged_decode(&m, &f, &err), 0);
        assert_int_equal(m.n, 2);
        assert_string_equal(m.v[0].folder, "/tmp/f");
        assert_string_equal(m.v[0].name, "/home/me/.venv");
        assert_int_equal(m.v[0].use, PUSH_VENV);
        assert_true(m.v[0].bytes == 1ULL << 33 && m.v[0].files == 22806 && m.v[0].age_s == 3600);
        assert_true(m.v[0].in_use && !m.v[0].removed && m.v[1].removed);
        staged_finish(&m);
        len = f.len;
        for (f.len = 0; f.len < len; f.len++)
                assert_int_equal(staged_decode(&m, &f, &err), -EPROTO);
        buf_clear(&b);
        copies[1].use = PUSH_USES;
        staged_encode(&b, &sent);
        f = first_frame(&b);
        assert_int_equal(staged_decode(&m, &f, &err), -EPROTO);
        buf_finish(&b);
}
