/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/sockdiag.h"
#include "base/fd.h"
#include "lib/unit.h"

enum { NOBODY = 65534 };

/* A listener and one connection to it; the far end is ours or a child's. */
struct line {
        int listener, near, far;
        struct sockaddr_storage at, theirs, ours; /* the listener's, and as the near end sees it */
        pid_t child;
};

static socklen_t size_of(const struct sockaddr_storage *sa)
{
        return sa->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static struct sockaddr *sa(struct sockaddr_storage *s)
{
        return (struct sockaddr *)s;
}

static void address(struct sockaddr_storage *to, int family, const char *text, uint16_t port)
{
        struct sockaddr_in *four = (struct sockaddr_in *)to;
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;

        memset(to, 0, sizeof(*to));
        to->ss_family = (sa_family_t)family;
        if (family == AF_INET) {
                four->sin_port = htons(port);
                assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
        } else {
                six->sin6_port = htons(port);
                assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
        }
}

static void line_listen(struct line *l, int family, const char *text)
{
        socklen_t len = sizeof(l->at);
        int off = 0;

        *l = (struct line){ .near = -1, .far = -1 };
        address(&l->at, family, text, 0);
        l->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(l->listener >= 0);
        if (family == AF_INET6)
                setsockopt(l->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        assert_int_equal(bind(l->listener, sa(&l->at), size_of(&l->at)), 0);
        assert_int_equal(listen(l->listener, 8), 0);
        assert_int_equal(getsockname(l->listener, sa(&l->at), &len), 0);
}

static void line_accept(struct line *l)
{
        socklen_t len = sizeof(l->theirs);

        l->near = accept4(l->listener, sa(&l->theirs), &len, SOCK_CLOEXEC);
        assert_true(l->near >= 0);
        len = sizeof(l->ours);
        assert_int_equal(getsockname(l->near, sa(&l->ours), &len), 0);
}

static int dial(struct line *l, int family, const char *text)
{
        struct sockaddr_storage to;
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        address(&to, family, text, sockdiag_port(sa(&l->at)));
        assert_true(fd >= 0);
        assert_int_equal(connect(fd, sa(&to), size_of(&to)), 0);
        return fd;
}

/* A child with another user's rights connects; it keeps the socket until it is killed, or sends
 * something and closes it at once. */
static void line_by_child(struct line *l, uid_t uid, bool leaves)
{
        int ready[2];
        char byte;

        assert_int_equal(pipe(ready), 0);
        l->child = fork();
        assert_true(l->child >= 0);
        if (!l->child) {
                int fd;

                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (setresuid(uid, uid, uid) < 0)
                        _exit(1);
                fd = dial(l, AF_INET, "127.0.0.1");
                if (leaves && (write(fd, "x", 1) != 1 || close(fd) < 0))
                        _exit(2);
                if (write(ready[1], "", 1) != 1)
                        _exit(3);
                pause();
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        line_accept(l);
}

static void line_close(struct line *l)
{
        if (l->child > 0) {
                kill(l->child, SIGKILL);
                assert_int_equal(waitpid(l->child, NULL, 0), l->child);
        }
        fd_close(l->far);
        fd_close(l->near);
        fd_close(l->listener);
}

/* Each way to ask. */
static void open_diag(struct sockdiag *d, bool netlink)
{
        *d = (struct sockdiag)SOCKDIAG_INIT;
        if (netlink) {
                sockdiag_open(d);
                assert_true(d->fd >= 0);
        }
}

static int find(struct line *l, bool netlink, struct sockdiag_owner *ret)
{
        struct sockdiag d;
        struct error err;
        int r;

        open_diag(&d, netlink);
        r = sockdiag_find(&d, sa(&l->theirs), sa(&l->ours), ret, &err);
        sockdiag_close(&d);
        return r;
}

static void finds_us(int listening, const char *at, int dialling, const char *to)
{
        struct sockdiag_owner owner;
        CLEANUP(line_close) struct line l;

        line_listen(&l, listening, at);
        l.far = dial(&l, dialling, to);
        line_accept(&l);
        for (int netlink = 0; netlink < 2; netlink++) {
                owner = (struct sockdiag_owner){ 0 };
                assert_int_equal(find(&l, netlink, &owner), 0);
                assert_int_equal(owner.uid, geteuid());
                assert_true(owner.inode > 0);
        }
}

TEST(finds_the_owner_of_ipv4)
{
        finds_us(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
}

TEST(finds_the_owner_of_ipv6)
{
        finds_us(AF_INET6, "::1", AF_INET6, "::1");
}

/* A listener on :: sees IPv4 clients as ::ffff:a.b.c.d, and so may the client see the server. */
TEST(finds_the_owner_of_mapped_addresses)
{
        finds_us(AF_INET6, "::", AF_INET, "127.0.0.1");
        finds_us(AF_INET6, "::", AF_INET6, "::ffff:127.0.0.1");
        finds_us(AF_INET, "127.0.0.1", AF_INET6, "::ffff:127.0.0.1");
}

TEST(tells_another_user)
{
        struct sockdiag_owner owner;
        CLEANUP(line_close) struct line l;

        if (geteuid() != 0)
                skip();
        line_listen(&l, AF_INET6, "::");
        line_by_child(&l, NOBODY, false);
        for (int netlink = 0; netlink < 2; netlink++) {
                assert_int_equal(find(&l, netlink, &owner), 0);
                assert_int_equal(owner.uid, NOBODY);
        }
}

/* The kernel says uid 0 of a socket that no process holds any more: for an agent of root's that
 * would be itself. */
TEST(one_who_has_left_is_nobody)
{
        struct sockdiag_owner owner;
        CLEANUP(line_close) struct line l;

        line_listen(&l, AF_INET, "127.0.0.1");
        line_by_child(&l, geteuid() ? geteuid() : NOBODY, true);
        for (int netlink = 0; netlink < 2; netlink++)
                assert_int_equal(find(&l, netlink, &owner), -ENOENT);
}

/* Behind another machine's address there is no socket of ours, whatever listens on that port. */
TEST(an_end_elsewhere_is_not_found)
{
        struct sockdiag_owner owner;
        CLEANUP(line_close) struct line l;

        line_listen(&l, AF_INET, "127.0.0.1");
        l.far = dial(&l, AF_INET, "127.0.0.1");
        line_accept(&l);
        address(&l.ours, AF_INET, "192.0.2.1", 4711);
        l.theirs = l.at;
        for (int netlink = 0; netlink < 2; netlink++)
                assert_int_equal(find(&l, netlink, &owner), -ENOENT);
}

TEST(what_is_no_address_is_refused)
{
        struct sockaddr_storage none = { .ss_family = AF_UNIX };
        struct sockdiag_conns conns = SOCKDIAG_CONNS_INIT;
        struct sockdiag d = SOCKDIAG_INIT;
        struct sockdiag_owner owner;
        struct error err;

        assert_int_equal(sockdiag_find(&d, sa(&none), sa(&none), &owner, &err), -EAFNOSUPPORT);
        assert_int_equal(sockdiag_towards(&d, sa(&none), &conns, &err), -EAFNOSUPPORT);
        assert_int_equal(sockdiag_port(sa(&none)), 0);
}

static void lists_ports_of(struct line *l, int dialling, const char *to, bool netlink)
{
        CLEANUP(sockdiag_conns_finish) struct sockdiag_conns conns = SOCKDIAG_CONNS_INIT;
        struct sockaddr_storage target;
        uint32_t ports[4];
        CLEANUP(sockdiag_close) struct sockdiag d;
        struct error err;

        address(&target, dialling, to, sockdiag_port(sa(&l->at)));
        open_diag(&d, netlink);
        assert_int_equal(sockdiag_towards(&d, sa(&target), &conns, &err), 0);
        assert_int_equal(conns.n, 1);
        assert_int_equal(conns.v[0].port, sockdiag_port(sa(&l->theirs)));
        assert_int_equal(sockdiag_ports_of(&conns, getpid(), ports, 4), 1);
        assert_int_equal(ports[0], conns.v[0].port);
        assert_int_equal(sockdiag_ports_of(&conns, getpid(), ports, 0), 0);
}

TEST(lists_ports_of_processes)
{
        struct line l;

        for (int netlink = 0; netlink < 2; netlink++) {
                line_listen(&l, AF_INET6, "::");
                l.far = dial(&l, AF_INET, "127.0.0.1");
                line_accept(&l);
                lists_ports_of(&l, AF_INET, "127.0.0.1", netlink);
                line_close(&l);

                line_listen(&l, AF_INET6, "::1");
                l.far = dial(&l, AF_INET6, "::1");
                line_accept(&l);
                lists_ports_of(&l, AF_INET6, "::1", netlink);
                line_close(&l);

                /* What PyTorch does: an IPv4 address, spoken to through a socket of IPv6. */
                line_listen(&l, AF_INET6, "::");
                l.far = dial(&l, AF_INET6, "::ffff:127.0.0.1");
                line_accept(&l);
                lists_ports_of(&l, AF_INET, "127.0.0.1", netlink);
                line_close(&l);
        }
}

/* A rank's connection may belong to a process that the rank has started. */
TEST(a_childs_port_is_its_parents_too)
{
        struct sockdiag_conns conns;
        struct sockdiag d;
        struct error err;
        uint32_t ports[4];
        CLEANUP(line_close) struct line l;

        line_listen(&l, AF_INET, "127.0.0.1");
        line_by_child(&l, geteuid(), false);
        for (int netlink = 0; netlink < 2; netlink++) {
                conns = (struct sockdiag_conns)SOCKDIAG_CONNS_INIT;
                open_diag(&d, netlink);
                assert_int_equal(sockdiag_towards(&d, sa(&l.at), &conns, &err), 0);
                assert_int_equal(sockdiag_ports_of(&conns, l.child, ports, 4), 1);
                assert_int_equal(sockdiag_ports_of(&conns, getpid(), ports, 4), 1);
                assert_int_equal(ports[0], sockdiag_port(sa(&l.theirs)));
                assert_int_equal(sockdiag_ports_of(&conns, 1 << 30, ports, 4), 0);
                sockdiag_conns_finish(&conns);
                sockdiag_close(&d);
        }
}

/* Netlink is there but fails, as in a sandbox that filters it: /proc is read after all. */
TEST(a_failing_netlink_is_replaced_by_proc)
{
        CLEANUP(sockdiag_conns_finish) struct sockdiag_conns conns = SOCKDIAG_CONNS_INIT;
        struct sockdiag_owner owner = { 0 };
        CLEANUP(sockdiag_close) struct sockdiag d = SOCKDIAG_INIT;
        struct error err;
        CLEANUP(line_close) struct line l;

        line_listen(&l, AF_INET6, "::");
        l.far = dial(&l, AF_INET, "127.0.0.1");
        line_accept(&l);
        d.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        assert_int_equal(sockdiag_find(&d, sa(&l.theirs), sa(&l.ours), &owner, &err), 0);
        assert_int_equal(owner.uid, geteuid());
        assert_int_equal(sockdiag_towards(&d, sa(&l.ours), &conns, &err), 0);
        assert_int_equal(conns.n, 1);
        assert_int_equal(conns.v[0].port, sockdiag_port(sa(&l.theirs)));
        assert_int_equal(conns.v[0].owner.inode, owner.inode);
}

/* Each connection is listed once, and others of the same address are not. */
TEST(proc_lists_what_netlink_lists)
{
        enum { CONNS = 8 };
        struct line l, other;
        int fds[CONNS];

        line_listen(&l, AF_INET, "127.0.0.1");
        line_listen(&other, AF_INET, "127.0.0.1");
        other.far = dial(&other, AF_INET, "127.0.0.1");
        for (int i = 0; i < CONNS; i++)
                fds[i] = dial(&l, AF_INET, "127.0.0.1");
        for (int netlink = 0; netlink < 2; netlink++) {
                struct sockdiag_conns conns = SOCKDIAG_CONNS_INIT;
                struct sockdiag d;
                struct error err;

                open_diag(&d, netlink);
                assert_int_equal(sockdiag_towards(&d, sa(&l.at), &conns, &err), 0);
                assert_int_equal(conns.n, CONNS);
                sockdiag_conns_finish(&conns);
                sockdiag_close(&d);
        }
        for (int i = 0; i < CONNS; i++)
                fd_close(fds[i]);
        line_close(&l);
        line_close(&other);
}

TEST(the_other_end_of_a_socket_is_named)
{
        char want[64], got[64];
        struct stat st;
        CLEANUP(line_close) struct line l;

        line_listen(&l, AF_INET, "127.0.0.1");
        l.far = dial(&l, AF_INET, "127.0.0.1");
        line_accept(&l);
        snprintf(want, sizeof(want), "127.0.0.1:%u", sockdiag_port(sa(&l.theirs)));
        assert_int_equal(fstat(l.near, &st), 0);
        assert_true(sockdiag_peer(getpid(), st.st_ino, got, sizeof(got)));
        assert_string_equal(got, want);
        assert_int_equal(fstat(l.listener, &st), 0);
        assert_false(sockdiag_peer(getpid(), st.st_ino, got, sizeof(got)));
}
