/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "head/dial_in/dial_peer.h"
#include "lib/unit.h"

struct seen {
        int records;
        enum dial_type last;
        bool broken;
};

static void note_record(struct dial_peer *p, const struct dial_record *r)
{
        struct seen *s = p->owner;

        s->records++;
        s->last = r->type;
}

static void note_broken(struct dial_peer *p, enum dial_peer_fault fault UNUSED,
                        const char *text UNUSED)
{
        struct seen *s = p->owner;

        s->broken = true;
}

static void do_nothing(struct dial_peer *p UNUSED)
{
}

static const struct dial_peer_ops seen_ops = {
        .record = note_record, .writable = do_nothing, .broken = note_broken, .closed = do_nothing
};

/* Makes both ends of a connection of TCP. */
static void connect_pair(int fds[2])
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t len = sizeof(a);

        assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
        fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[0], (struct sockaddr *)&a, sizeof(a)), 0);
        fds[1] = accept(listener, NULL, NULL);
        assert_true(fds[1] >= 0);
        close(listener);
}

/* Greets: the streams of a node and of its head. */
static void greet_pair(struct dial_stream *node, struct dial_stream *head)
{
        uint8_t psk[NOISE_KEY], greeting[DIAL_GREETING], answer[DIAL_GREETING];

        assert_true(sodium_init() >= 0);
        dial_psk(psk, "0123456789abcdef");
        dial_greet(node, psk, greeting);
        assert_int_equal(dial_answer(head, psk, greeting, answer), 0);
        assert_int_equal(dial_take_answer(node, answer), 0);
}

TEST(records_that_came_with_the_welcome_are_taken_though_the_head_is_gone)
{
        struct dial_stream node, head;
        struct seen seen = { 0 };
        struct dial_peer p = { .ops = &seen_ops, .owner = &seen };
        struct buf in = BUF_INIT;
        uv_loop_t loop;
        int fds[2];

        connect_pair(fds);
        greet_pair(&node, &head);
        dial_put(&head, DIAL_DATA, "launch", 6, &in);
        dial_end_put(&head, DIAL_END, &(struct dial_end){ .code = 3, .text = "job ended" }, &in);
        close(fds[1]);

        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(dial_peer_adopt(&p, &loop, fds[0], &node, &in), 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(seen.records, 2);
        assert_int_equal(seen.last, DIAL_END);
        assert_true(seen.broken);
        assert_int_equal(p.state, PEER_FREE);
        assert_int_equal(uv_loop_close(&loop), 0);
}
