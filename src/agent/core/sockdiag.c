/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both questions have two engines. Netlink: sockdiag_find() asks for one socket by its addresses,
 * sockdiag_towards() filters a dump. /proc: the tables tcp and tcp6 are read line by line. Any
 * failure of netlink but "no such socket" leads to /proc. Addresses are compared as 16 bytes, IPv4
 * mapped into IPv6, because a socket of IPv6 may speak IPv4 and is then found in the other table.
 * Owners of inodes are found by walking /proc/PID/fd of a rank and its descendants.
 */
#include "agent/core/sockdiag.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/memory.h"

enum {
        ANSWER_SIZE = 64 << 10,
        TABLE_MAX = 256 << 20, /* bytes of /proc/net/tcp */
        DEPTH_MAX = 64,        /* generations of processes */
};

/* A socket in a table, read by either engine. */
struct socket_entry {
        unsigned char local[16], remote[16];
        uint16_t local_port, remote_port;
        struct sockdiag_owner owner;
};

/* The end of a connection to look for. */
struct socket_query {
        unsigned char local[16], remote[16];
        uint16_t local_port, remote_port;
        /* A list of all connections to an endpoint: the local end may be any. */
        bool any_local;
};

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

/* --- addresses -------------------------------------------------------------------------------- */

/* Makes the 16 bytes of an address of 4 or 16 bytes. */
static void set_address(unsigned char to[16], const void *from, size_t len)
{
        memcpy(to, mapped, sizeof(mapped));
        memcpy(to + 16 - len, from, len);
}

bool sockdiag_address(const struct sockaddr *sa, unsigned char ret[16])
{
        const struct sockaddr_in *four = (const void *)sa;
        const struct sockaddr_in6 *six = (const void *)sa;

        if (sa->sa_family == AF_INET)
                set_address(ret, &four->sin_addr, 4);
        else if (sa->sa_family == AF_INET6)
                set_address(ret, &six->sin6_addr, 16);
        return sa->sa_family == AF_INET || sa->sa_family == AF_INET6;
}

uint16_t sockdiag_port(const struct sockaddr *sa)
{
        if (sa->sa_family == AF_INET)
                return ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
        if (sa->sa_family == AF_INET6)
                return ntohs(((const struct sockaddr_in6 *)(const void *)sa)->sin6_port);
        return 0;
}

static bool is_mapped(const unsigned char addr[16])
{
        return !memcmp(addr, mapped, sizeof(mapped));
}

/* Adds a wanted entry. */
static void add_match(struct sockdiag_conns *c, const struct socket_query *w,
                      const struct socket_entry *e)
{
        if (e->remote_port != w->remote_port || memcmp(e->remote, w->remote, 16) != 0)
                return;
        if (!w->any_local && (e->local_port != w->local_port || memcmp(e->local, w->local, 16)))
                return;
        c->v = xgrow(c->v, c->n, &c->cap, sizeof(*c->v));
        c->v[c->n] = (struct sockdiag_conn){ .port = e->local_port, .owner = e->owner };
        memcpy(c->v[c->n++].addr, e->local, sizeof(e->local));
}

static int compare_socket_inodes(const void *a, const void *b)
{
        uint64_t x = ((const struct sockdiag_conn *)a)->owner.inode,
                 y = ((const struct sockdiag_conn *)b)->owner.inode;

        return (x > y) - (x < y);
}

/* Leaves each socket from @begin on once: the kernel tells of a socket twice when others go while a
 * table is being read. */
static void drop_repeated(struct sockdiag_conns *c, size_t begin)
{
        size_t n = begin;

        if (c->n - begin < 2)
                return;
        qsort(c->v + begin, c->n - begin, sizeof(*c->v), compare_socket_inodes);
        for (size_t i = begin; i < c->n; i++)
                if (n == begin || c->v[i].owner.inode != c->v[n - 1].owner.inode)
                        c->v[n++] = c->v[i];
        c->n = n;
}

/* --- netlink ---------------------------------------------------------------------------------- */

struct netlink_request {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
};

/* The kernel answers at once, or never when a filter swallows the question. */
void sockdiag_open(struct sockdiag *d)
{
        struct timeval patience = { .tv_sec = 1 };

        d->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
        if (d->fd >= 0)
                setsockopt(d->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

void sockdiag_close(struct sockdiag *d)
{
        d->fd = fd_close(d->fd);
}

/* The kernel expects IPv4 addresses as such, also for IPv6 sockets that speak IPv4. */
static void encode_address(__be32 to[4], const unsigned char addr[16])
{
        memset(to, 0, 16);
        if (is_mapped(addr))
                memcpy(to, addr + 12, 4);
        else
                memcpy(to, addr, 16);
}

/* False for a listening socket and for a socket without a process. */
static bool decode_entry(struct socket_entry *e, const struct nlmsghdr *h)
{
        const struct inet_diag_msg *m = NLMSG_DATA(h);
        size_t len;

        /* A socket without an inode, such as one in TIME_WAIT, has no process. */
        if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->idiag_state == TCP_LISTEN ||
            !m->idiag_inode)
                return false;
        len = m->idiag_family == AF_INET ? 4 : 16;
        set_address(e->local, m->id.idiag_src, len);
        set_address(e->remote, m->id.idiag_dst, len);
        e->local_port = ntohs(m->id.idiag_sport);
        e->remote_port = ntohs(m->id.idiag_dport);
        e->owner = (struct sockdiag_owner){ m->idiag_uid, m->idiag_inode };
        return true;
}

/* Asks for connections in all states but listening. 0, or -errno. */
static int send_request(struct sockdiag *d, const struct socket_query *w, int family, int flags)
{
        struct netlink_request r = {
                .head = { .nlmsg_len = sizeof(r),
                          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = (__u16)(NLM_F_REQUEST | flags) },
                .body = { .sdiag_family = (__u8)family,
                          .sdiag_protocol = IPPROTO_TCP,
                          .idiag_states = ~(1U << TCP_LISTEN),
                          .id = { .idiag_sport = htons(w->local_port),
                                  .idiag_dport = htons(w->remote_port),
                                  .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
        };
        struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

        encode_address(r.body.id.idiag_src, w->local);
        encode_address(r.body.id.idiag_dst, w->remote);
        return sendto(d->fd, &r, sizeof(r), 0, (void *)&kernel, sizeof(kernel)) < 0 ? -errno : 0;
}

/* Decodes the answer for a single socket, or a datagram of a dump. 1: the last. */
static int decode_answer(const char *answer, size_t n, const struct socket_query *w,
                         struct sockdiag_conns *ret)
{
        const struct nlmsghdr *h = (const void *)answer;
        struct socket_entry e;

        if (!NLMSG_OK(h, n))
                return -EPROTO;
        for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
                const struct nlmsgerr *failure = NLMSG_DATA(h);

                if (h->nlmsg_type == NLMSG_DONE)
                        return 1;
                if (h->nlmsg_type == NLMSG_ERROR)
                        return h->nlmsg_len < NLMSG_LENGTH(sizeof(*failure)) ? -EPROTO
                                                                             : failure->error;
                if (decode_entry(&e, h))
                        add_match(ret, w, &e);
        }
        return 0;
}

/* Asks for a single socket, or with the flag NLM_F_DUMP for all matches. */
static int ask_netlink(struct sockdiag *d, const struct socket_query *w, int family, int flags,
                       struct sockdiag_conns *ret)
{
        char *answer = xcalloc(1, ANSWER_SIZE);
        ssize_t n;
        int r;

        while (recv(d->fd, answer, ANSWER_SIZE, MSG_DONTWAIT) >= 0)
                ; /* a late answer to an earlier question */
        r = send_request(d, w, family, flags);
        while (r == 0) {
                n = recv(d->fd, answer, ANSWER_SIZE, 0);
                /* A timeout of recv() is EAGAIN, and leads to /proc as any other failure. */
                r = n < 0 ? -errno : decode_answer(answer, (size_t)n, w, ret);
                /* The answer for one socket has no NLMSG_DONE behind. */
                if (flags != NLM_F_DUMP)
                        break;
        }
        free(answer);
        return MIN(r, 0);
}

/* --- /proc ------------------------------------------------------------------------------------ */

/* Parses "0100007F:1F90", or with four words of an address, which are in the machine's byte order.
 */
static bool parse_end(const char *text, unsigned char to[16], uint16_t *port)
{
        size_t digits = strspn(text, "0123456789ABCDEF");
        char word[9] = "";
        uint32_t words[4];

        if (text[digits] != ':' || (digits != 8 && digits != 32))
                return false;
        for (size_t i = 0; i < digits / 8; i++) {
                memcpy(word, text + 8 * i, 8);
                words[i] = (uint32_t)strtoul(word, NULL, 16);
        }
        set_address(to, words, digits / 2);
        *port = (uint16_t)strtoul(text + digits + 1, NULL, 16);
        return true;
}

/* "sl local remote state queues timer retransmits uid timeout inode ...". */
static bool parse_table_line(struct socket_entry *e, const char *line)
{
        const char *state = proc_word(line, 3);
        uint64_t uid;

        if (!state || !parse_end(proc_word(line, 1), e->local, &e->local_port) ||
            !parse_end(proc_word(line, 2), e->remote, &e->remote_port) ||
            !proc_number(line, 7, &uid) || !proc_number(line, 9, &e->owner.inode))
                return false;
        e->owner.uid = (uid_t)uid;
        return strtoul(state, NULL, 16) != TCP_LISTEN && e->owner.inode;
}

/* 0, or -errno: the table cannot be read. Lines of another form are passed over, such as the
 * heading. */
static int read_table(const char *path, const struct socket_query *w, struct sockdiag_conns *ret)
{
        char *text = NULL, *line, *rest;
        struct socket_entry e;
        int r = fd_read_file(path, TABLE_MAX, &text, NULL);

        if (r < 0)
                return r;
        for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                if (parse_table_line(&e, line))
                        add_match(ret, w, &e);
        free(text);
        return 0;
}

/* @ret is undefined unless the inode was found. */
static bool find_inode(const char *path, uint64_t inode, struct socket_entry *ret)
{
        char *text = NULL, *line, *rest;
        bool found = false;

        if (fd_read_file(path, TABLE_MAX, &text, NULL) < 0)
                return false;
        for (line = strtok_r(text, "\n", &rest); line && !found; line = strtok_r(NULL, "\n", &rest))
                found = parse_table_line(ret, line) && ret->owner.inode == inode;
        free(text);
        return found;
}

/* The tables are read through @pid, because the process may have another network namespace. */
bool sockdiag_peer(pid_t pid, uint64_t inode, char *to, size_t size)
{
        char four[64], six[64], addr[INET6_ADDRSTRLEN];
        struct socket_entry e;
        bool is_four;

        snprintf(four, sizeof(four), "/proc/%d/net/tcp", (int)pid);
        snprintf(six, sizeof(six), "/proc/%d/net/tcp6", (int)pid);
        if (!find_inode(four, inode, &e) && !find_inode(six, inode, &e))
                return false;
        is_four = is_mapped(e.remote);
        if (!inet_ntop(is_four ? AF_INET : AF_INET6, e.remote + (is_four ? 12 : 0), addr,
                       sizeof(addr)))
                return false;
        snprintf(to, size, is_four ? "%s:%u" : "[%s]:%u", addr, e.remote_port);
        return true;
}

/* Reads the attribute with the peer of an answer. */
static bool read_unix_peer(const struct nlmsghdr *h, size_t n, uint64_t *ret)
{
        const struct rtattr *a;
        size_t left;

        if (!NLMSG_OK(h, n) || h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            h->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
                return false;
        left = h->nlmsg_len - NLMSG_LENGTH(sizeof(struct unix_diag_msg));
        a = (const void *)((const char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct unix_diag_msg)));
        for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
                if (a->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(a) >= sizeof(__u32)) {
                        __u32 peer;

                        memcpy(&peer, RTA_DATA(a), sizeof(peer));
                        *ret = peer;
                        return peer != 0;
                }
        return false;
}

/* The kernel numbers Unix sockets by inode; only the lower 32 bits travel in a request. */
bool sockdiag_unix_peer(uint64_t inode, uint64_t *ret_peer)
{
        struct {
                struct nlmsghdr head;
                struct unix_diag_req body;
        } r = { .head = { .nlmsg_len = sizeof(r),
                          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = NLM_F_REQUEST },
                .body = { .sdiag_family = AF_UNIX,
                          .udiag_states = ~0U,
                          .udiag_ino = (__u32)inode,
                          .udiag_show = UDIAG_SHOW_PEER,
                          .udiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } };
        struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        struct sockdiag d = SOCKDIAG_INIT;
        char answer[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
        ssize_t n = -1;

        sockdiag_open(&d);
        if (d.fd >= 0 && sendto(d.fd, &r, sizeof(r), 0, (void *)&kernel, sizeof(kernel)) >= 0)
                n = recv(d.fd, answer, sizeof(answer), 0);
        sockdiag_close(&d);
        return n > 0 && read_unix_peer((const void *)answer, (size_t)n, ret_peer);
}

static int read_tables(const struct socket_query *w, struct sockdiag_conns *ret)
{
        int six = read_table("/proc/net/tcp6", w, ret),
            four = is_mapped(w->remote) ? read_table("/proc/net/tcp", w, ret) : six;

        /* A kernel without IPv6 has no table of it. */
        return four < 0 && six < 0 ? four : 0;
}

/* --- the questions ---------------------------------------------------------------------------- */

static bool make_query(struct socket_query *w, const struct sockaddr *local,
                       const struct sockaddr *remote)
{
        *w = (struct socket_query){ .any_local = !local, .remote_port = sockdiag_port(remote) };
        if (local)
                w->local_port = sockdiag_port(local);
        return sockdiag_address(remote, w->remote) && (!local || sockdiag_address(local, w->local));
}

int sockdiag_find(struct sockdiag *d, const struct sockaddr *local, const struct sockaddr *remote,
                  struct sockdiag_owner *ret, struct error *err)
{
        struct sockdiag_conns found = SOCKDIAG_CONNS_INIT;
        struct socket_query w;
        int r = -1;

        if (!make_query(&w, local, remote))
                return err_set(err, EAFNOSUPPORT, "not a TCP address");
        if (d->fd >= 0)
                r = ask_netlink(d, &w, is_mapped(w.remote) ? AF_INET : AF_INET6, 0, &found);
        if (d->fd < 0 || (r < 0 && r != -ENOENT))
                r = read_tables(&w, &found);
        if (r == 0 && found.n)
                *ret = found.v[0].owner;
        else if (r == 0 || r == -ENOENT)
                r = err_set(err, ENOENT, "no process of this machine owns the other end");
        else
                r = err_set(err, -r, "cannot find the owner of the other end: %s", strerror(-r));
        sockdiag_conns_finish(&found);
        return r;
}

int sockdiag_towards(struct sockdiag *d, const struct sockaddr *to, struct sockdiag_conns *ret,
                     struct error *err)
{
        size_t before = ret->n;
        struct socket_query w;
        int r = -1;

        if (!make_query(&w, NULL, to))
                return err_set(err, EAFNOSUPPORT, "not a TCP address");
        if (d->fd >= 0 && is_mapped(w.remote)) {
                r = ask_netlink(d, &w, AF_INET, NLM_F_DUMP, ret);
                if (r == 0) /* sockets of IPv6 may speak IPv4; a kernel without IPv6 has none */
                        ask_netlink(d, &w, AF_INET6, NLM_F_DUMP, ret);
        } else if (d->fd >= 0) {
                r = ask_netlink(d, &w, AF_INET6, NLM_F_DUMP, ret);
        }
        if (d->fd < 0 || r < 0) {
                /* A dump may fail half-way. */
                ret->n = before;
                r = read_tables(&w, ret);
        }
        drop_repeated(ret, before);
        return r < 0 ? err_set(err, -r, "cannot list connections: %s", strerror(-r)) : 0;
}

void sockdiag_conns_finish(struct sockdiag_conns *c)
{
        free(c->v);
        *c = (struct sockdiag_conns)SOCKDIAG_CONNS_INIT;
}

/* --- processes -------------------------------------------------------------------------------- */

/* Ports found so far, each once, at most @max. */
struct held_ports {
        const struct sockdiag_conns *conns;
        uint32_t *v;
        size_t n, max;
};

static void add_port(struct held_ports *p, uint64_t inode)
{
        for (size_t i = 0; i < p->conns->n; i++) {
                if (p->conns->v[i].owner.inode != inode)
                        continue;
                for (size_t k = 0; k < p->n; k++)
                        if (p->v[k] == p->conns->v[i].port)
                                return; /* a child inherits the sockets of the parent */
                if (p->n < p->max)
                        p->v[p->n++] = p->conns->v[i].port;
                return;
        }
}

/* Adds the ports of the sockets among the descriptors of a process. */
static void collect_fd_ports(struct held_ports *p, pid_t pid)
{
        char path[64], target[64];
        struct dirent *entry;
        uint64_t inode;
        ssize_t n;
        DIR *fds;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
        fds = opendir(path);
        while (fds && (entry = readdir(fds))) {
                n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
                if (n <= 0)
                        continue;
                target[n] = '\0';
                if (strncmp(target, "socket:[", 8) == 0 && proc_number(target + 8, 0, &inode))
                        add_port(p, inode);
        }
        if (fds)
                closedir(fds);
}

/* A child may hold the connection in place of the rank, such as one behind a shell. */
static void collect_ports(struct held_ports *p, pid_t pid, int depth)
{
        struct pids children = PIDS_INIT;

        if (depth > DEPTH_MAX || p->n == p->max)
                return;
        collect_fd_ports(p, pid);
        proc_children_of_threads(pid, &children);
        for (size_t i = 0; i < children.n; i++)
                collect_ports(p, children.v[i], depth + 1);
        pids_finish(&children);
}

size_t sockdiag_ports_of(const struct sockdiag_conns *c, pid_t pid, uint32_t *ret_ports, size_t max)
{
        struct held_ports p = { .conns = c, .v = ret_ports, .max = max };

        if (c->n)
                collect_ports(&p, pid, 0);
        return p.n;
}
