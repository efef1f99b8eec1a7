/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/peer_owners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/sockdiag.h"
#include "base/memory.h"
#include "lib/unit.h"

enum { NOBODY = 65534, CONNS = OWNERS_MAX + 100 };

/* What was asked last, and how often. */
static struct {
        unsigned n_asked;
        struct owners_request last;
        uint32_t ports[OWNERS_MAX];
        unsigned judged[OWNER_VERDICTS];
        struct peer_wait *forget; /* by the next verdict */
} seen;

static const struct owner_ends one = { { 1 }, { 9 } }, other = { { 2 }, { 9 } };

static void on_ask(void *ctx UNUSED, const struct owners_request *m)
{
        seen.n_asked++;
        seen.last = *m;
        memcpy(seen.ports, m->ports, m->n * sizeof(*m->ports));
}

static void on_judged(struct peer_wait *w UNUSED, const struct owner *o, const char *nodes)
{
        assert_string_equal(nodes, "n");
        seen.judged[o->verdict]++;
        if (seen.forget)
                peer_owners_forget(seen.forget);
        seen.forget = NULL;
}

static int set_up(void **state)
{
        memset(&seen, 0, sizeof(seen));
        *state = peer_owners_create(on_ask, NULL);
        return 0;
}

static int tear_down(void **state)
{
        peer_owners_destroy(*state);
        return 0;
}

static void add(struct peer_owners *o, struct peer_wait *w, const struct owner_ends *ends,
                uint32_t port)
{
        *w = (struct peer_wait){ .judged = on_judged };
        peer_owners_add(o, w, ends, port, 29400);
}

/* Answers the question @number about @n connections in the same way for all. */
static void answer(struct peer_owners *o, uint32_t number, uint32_t n, uint8_t verdict)
{
        struct owners m = { .number = number, .nodes = "n", .n = n };

        m.owners = xcalloc(n, sizeof(*m.owners));
        for (uint32_t i = 0; i < n; i++)
                m.owners[i].verdict = verdict;
        peer_owners_take(o, &m);
        free(m.owners);
}

#define TEST_OWNERS(name) TEST_OF(set_up, tear_down, struct peer_owners *o, name)

TEST_OWNERS(newcomers_of_a_turn_share_a_question)
{
        struct peer_wait w[3];

        for (uint32_t i = 0; i < 3; i++)
                add(o, &w[i], &one, 100 + i);
        assert_int_equal(seen.n_asked, 0);
        peer_owners_turn(o);
        peer_owners_turn(o);
        assert_int_equal(seen.n_asked, 1);
        assert_int_equal(seen.last.n, 3);
        assert_int_equal(seen.last.port, 29400);
        assert_memory_equal(&seen.last.ends, &one, sizeof(one));
        assert_int_equal(seen.ports[2], 102);
        answer(o, seen.last.number, 3, OWNER_USER);
        assert_int_equal(seen.judged[OWNER_USER], 3);
        assert_null(w[0].group);
}

TEST_OWNERS(who_comes_later_waits_for_the_next_question)
{
        struct peer_wait w[3];
        uint32_t first;

        add(o, &w[0], &one, 100);
        peer_owners_turn(o);
        first = seen.last.number;
        add(o, &w[1], &one, 101);
        add(o, &w[2], &other, 102);
        peer_owners_turn(o); /* asks about the other address only */
        assert_int_equal(seen.n_asked, 2);
        assert_memory_equal(&seen.last.ends, &other, sizeof(other));
        answer(o, first, 1, OWNER_OTHER);
        assert_int_equal(seen.judged[OWNER_OTHER], 1);
        peer_owners_turn(o);
        assert_int_equal(seen.n_asked, 3);
        assert_int_equal(seen.ports[0], 101);
        answer(o, first, 1, OWNER_USER); /* was answered before */
        assert_int_equal(seen.judged[OWNER_USER], 0);
        peer_owners_forget(&w[1]);
        peer_owners_forget(&w[2]);
}

TEST_OWNERS(a_connection_may_go_at_any_time)
{
        struct peer_wait w[4];

        for (uint32_t i = 0; i < 4; i++)
                add(o, &w[i], &one, 100 + i);
        peer_owners_forget(&w[0]);
        peer_owners_forget(&w[0]);
        peer_owners_turn(o);
        assert_int_equal(seen.last.n, 3);
        peer_owners_forget(&w[1]);
        seen.forget = &w[3]; /* while the answer is handed out */
        answer(o, seen.last.number, 3, OWNER_NONE);
        assert_int_equal(seen.judged[OWNER_NONE], 1);
        add(o, &w[0], &one, 100);
        peer_owners_forget(&w[0]);
        peer_owners_turn(o);
        assert_int_equal(seen.n_asked, 1); /* nothing is left to be asked */
}

TEST_OWNERS(a_question_has_a_limit)
{
        struct peer_wait *w = xcalloc(CONNS, sizeof(*w));

        for (uint32_t i = 0; i < CONNS; i++)
                add(o, &w[i], &one, i);
        peer_owners_turn(o);
        assert_int_equal(seen.last.n, OWNERS_MAX);
        peer_owners_forget(&w[CONNS - 1]);
        answer(o, seen.last.number, OWNERS_MAX, OWNER_USER);
        peer_owners_turn(o);
        assert_int_equal(seen.last.n, CONNS - OWNERS_MAX - 1);
        assert_int_equal(seen.ports[0], OWNERS_MAX);
        answer(o, seen.last.number, seen.last.n, OWNER_USER);
        assert_int_equal(seen.judged[OWNER_USER], CONNS - 1);
        free(w);
}

/* The hostile case: more addresses than may be asked about at once. */
TEST_OWNERS(open_questions_have_a_limit)
{
        enum { GROUPS = OWNERS_OPEN_MAX / OWNERS_MAX + 1 };
        struct peer_wait *w = xcalloc((size_t)GROUPS * OWNERS_MAX, sizeof(*w));
        size_t n = 0;

        for (unsigned g = 0; g < GROUPS; g++)
                for (uint32_t i = 0; i < OWNERS_MAX; i++)
                        add(o, &w[n++], &(struct owner_ends){ { (unsigned char)g }, { 9 } }, i);
        peer_owners_turn(o);
        assert_int_equal(seen.n_asked, GROUPS - 1);
        answer(o, seen.last.number, OWNERS_MAX, OWNER_USER);
        peer_owners_turn(o);
        assert_int_equal(seen.n_asked, GROUPS);
        while (n)
                peer_owners_forget(&w[--n]);
        free(w);
}

/* --- sockets of this machine ------------------------------------------------------------------ */

/* Connects to @listener as another user, or as ours if @uid is 0. Returns the socket. */
static int connect_as(uid_t uid, struct sockaddr_in6 *to, uint32_t *ret_port)
{
        struct sockaddr_in6 own;
        socklen_t len = sizeof(own);
        int fd;

        if (uid)
                assert_int_equal(seteuid(uid), 0);
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (uid)
                assert_int_equal(seteuid(0), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)to, sizeof(*to)), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
        *ret_port = ntohs(own.sin6_port);
        return fd;
}

/* With few and with many connections the kernel is asked in two ways. */
static void look_up_beside(const char *addr, unsigned more)
{
        struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
        bool root = geteuid() == 0;
        socklen_t len = sizeof(to);
        uint32_t ports[64];
        struct owners_request m = { .number = 5, .ports = ports, .n = 3 + more };
        struct owners found;
        int fds[64], listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(inet_pton(AF_INET6, addr, &to.sin6_addr), 1);
        assert_int_equal(bind(listener, (struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(listen(listener, 64), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &len), 0);
        fds[0] = connect_as(0, &to, &ports[0]);
        fds[1] = connect_as(root ? NOBODY : 0, &to, &ports[1]);
        fds[2] = connect_as(0, &to, &ports[2]);
        for (unsigned i = 0; i < more; i++)
                fds[3 + i] = connect_as(0, &to, &ports[3 + i]);
        close(fds[2]);
        memcpy(m.ends.from, &to.sin6_addr, 16);
        memcpy(m.ends.to, &to.sin6_addr, 16);
        m.port = ntohs(to.sin6_port);
        owners_look_up(&m, &found);
        assert_int_equal(found.number, 5);
        assert_int_equal(found.n, m.n);
        assert_int_equal(found.owners[0].verdict, OWNER_USER);
        assert_int_equal(found.owners[1].verdict, root ? OWNER_OTHER : OWNER_USER);
        assert_int_equal(found.owners[1].uid, root ? NOBODY : 0);
        assert_int_equal(found.owners[2].verdict, OWNER_NONE);
        for (unsigned i = 0; i < more; i++)
                assert_int_equal(found.owners[3 + i].verdict, OWNER_USER);
        owners_finish(&found);
        m.ends.from[15] ^= 2; /* the same ports of another address */
        owners_look_up(&m, &found);
        for (unsigned i = 0; i < m.n; i++)
                assert_int_equal(found.owners[i].verdict, OWNER_NONE);
        owners_finish(&found);
        for (unsigned i = 0; i < m.n; i++)
                if (i != 2)
                        close(fds[i]);
        close(listener);
}

TEST(owners_of_sockets_are_looked_up)
{
        static const char *const addrs[] = { "::1", "::ffff:127.0.0.1" };

        for (size_t i = 0; i < ARRAY_SIZE(addrs); i++) {
                look_up_beside(addrs[i], 0);
                look_up_beside(addrs[i], 50);
        }
}
