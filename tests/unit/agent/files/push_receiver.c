/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest that comes with PACKs; the test is the sender. */
#include "agent/files/push_receiver.h"

#include <errno.h>
#include <sodium.h>
#include <unistd.h>

#include "agent/core/uplink.h"
#include "agent/files/cache_dir.h"
#include "base/memory.h"
#include "lib/frames.h"
#include "wire/msg.h"

static struct uplink up;
static struct push_receiver *receiver;
static struct buf list;
static char *home;

static void ignore_change(void *ctx UNUSED)
{
}

static int set_up(void **state UNUSED)
{
        static char path[] = "a";
        struct push_entry e = { .kind = PUSH_FILE, .mode = 0644, .size = 5, .path = path };

        assert_true(sodium_init() >= 0);
        home = xasprintf("%s/hnlist.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        assert_non_null(mkdtemp(home));
        setenv("HNLAUNCH_STAGE_DIR", home, 1);
        up = (struct uplink){ 0 };
        receiver = push_receiver_create(&up, ignore_change, NULL);
        list = (struct buf)BUF_INIT;
        push_manifest_put(&list, &(struct push_manifest){ &e, 1 });
        return 0;
}

/* Fails when something of the push is left. */
static int tear_down(void **state UNUSED)
{
        char *folder = cache_dir(0);
        int r;

        push_receiver_close(receiver);
        push_receiver_destroy(receiver);
        buf_finish(&up.out);
        buf_finish(&list);
        rmdir(folder);
        free(folder);
        r = rmdir(home);
        free(home);
        return r;
}

/* Offers the list by its hash. */
static void offer_list(void)
{
        struct push_offer m = { .run_id = "run", .later = (uint32_t)buf_len(&list) };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        crypto_hash_sha256(m.label.sha, buf_data(&list), buf_len(&list));
        push_offer_encode(&b, &m);
        f = only_frame(&b, MSG_OFFER);
        push_receiver_on_offer(receiver, &f);
}

/* Sends bytes of an entry. */
static void send_piece(uint32_t entry, const unsigned char *data, size_t from, size_t to)
{
        struct push_piece piece = { entry, from, (uint32_t)(to - from) };
        struct push_pack m = { .pieces = &piece, .n = 1, .data = data + from, .len = to - from };

        push_receiver_take(receiver, &m);
}

static void send_list(size_t from, size_t to)
{
        send_piece(PUSH_LIST, buf_data(&list), from, to);
}

/* Takes the only answer, which names @n missing files. */
static void wants(uint32_t n)
{
        struct frame f = only_frame(&up.out, MSG_WANT);
        struct push_want m;

        assert_int_equal(push_want_decode(&m, &f, NULL), 0);
        assert_int_equal(m.holder, PUSH_NO_NODE);
        assert_int_equal(m.n, n);
        push_want_finish(&m);
        buf_clear(&up.out);
}

TEST_WITH(set_up, tear_down, the_files_are_looked_for_when_the_list_is_whole)
{
        size_t half = buf_len(&list) / 2;

        offer_list();
        wants(0);
        send_piece(0, (const unsigned char *)"bytes", 0, 5); /* of a file not known yet */
        send_list(0, half);
        send_list(0, half); /* was there before */
        assert_int_equal(buf_len(&up.out), 0);
        send_list(half, buf_len(&list));
        wants(1);
        send_list(0, half);
        assert_int_equal(buf_len(&up.out), 0);
        assert_true(push_receiver_is_fetching(receiver));
}

TEST_WITH(set_up, tear_down, a_damaged_list_is_refused)
{
        unsigned char *bytes = (unsigned char *)buf_data(&list);
        struct frame f;
        struct pushed m;

        offer_list();
        wants(0);
        bytes[buf_len(&list) - 1] ^= 1;
        send_list(0, buf_len(&list));
        f = only_frame(&up.out, MSG_PUSHED);
        assert_int_equal(pushed_decode(&m, &f, NULL), 0);
        assert_int_equal(m.error, EPROTO);
        assert_string_equal(m.what, "a damaged list of files");
        assert_false(push_receiver_is_fetching(receiver));
}
