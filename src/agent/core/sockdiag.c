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
#include <linux/sock_diag.h>
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
        uid_t uid;
        uint64_t inode;
};

/* The end of a connection to look for. */
struct socket_query {
        unsigned char local[16], remote[16];
        uint16_t local_port, remote_port;
        bool any_local;
};

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

/* --- addresses -------------------------------------------------------------------------------- */

bool sockdiag_address(const struct sockaddr *sa, unsigned char ret[16])
{
        const struct sockaddr_in *four = (const void *)sa;
        const struct sockaddr_in6 *six = (const void *)sa;

        if (sa->sa_family == AF_INET) {
                memcpy(ret, mapped, sizeof(mapped));
                memcpy(ret + 12, &four->sin_addr, 4);
        } else if (sa->sa_family == AF_INET6) {
                memcpy(ret, &six->sin6_addr, 16);
        } else {
                return false;
        }
        return true;
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

static bool matches_query(const struct socket_query *w, const struct socket_entry *e)
{
        return e->remote_port == w->remote_port && !memcmp(e->remote, w->remote, 16) &&
               (w->any_local ||
                (e->local_port == w->local_port && !memcmp(e->local, w->local, 16)));
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

static void decode_address(unsigned char to[16], int family, const __be32 addr[4])
{
        if (family == AF_INET) {
                memcpy(to, mapped, sizeof(mapped));
                memcpy(to + 12, addr, 4);
        } else {
                memcpy(to, addr, 16);
        }
}

/* False for a listening socket and for a socket without a process. */
static bool decode_entry(struct socket_entry *e, const struct nlmsghdr *h)
{
        const struct inet_diag_msg *m = NLMSG_DATA(h);

        if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->idiag_state == TCP_LISTEN ||
            !m->idiag_inode)
                return false;
        decode_address(e->local, m->idiag_family, m->id.idiag_src);
        decode_address(e->remote, m->idiag_family, m->id.idiag_dst);
        e->local_port = ntohs(m->id.idiag_sport);
        e->remote_port = ntohs(m->id.idiag_dport);
        e->uid = m->idiag_uid;
        e->inode = m->idiag_inode;
        return true;
}

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

static int get_netlink_error(const struct nlmsghdr *h)
{
        const struct nlmsgerr *e = NLMSG_DATA(h);

        return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ? -EPROTO : e->error;
}

/* Discards a late answer to an earlier question. */
static void discard_answers(struct sockdiag *d)
{
        char old[256];

        while (recv(d->fd, old, sizeof(old), MSG_DONTWAIT) >= 0)
                ;
}

static int find_by_netlink(struct sockdiag *d, const struct socket_query *w,
                           struct socket_entry *ret)
{
        _Alignas(struct nlmsghdr) char answer[4096];
        const struct nlmsghdr *h = (const void *)answer;
        ssize_t n;
        int r;

        discard_answers(d);
        r = send_request(d, w, is_mapped(w->remote) ? AF_INET : AF_INET6, 0);
        if (r < 0)
                return r;
        n = recv(d->fd, answer, sizeof(answer), 0);
        if (n < 0)
                return -errno;
        if (!NLMSG_OK(h, (size_t)n))
                return -EPROTO;
        if (h->nlmsg_type == NLMSG_ERROR)
                return get_netlink_error(h);
        return decode_entry(ret, h) && matches_query(w, ret) ? 0 : -ENOENT;
}

static void add_conn(struct sockdiag_conns *c, const struct socket_entry *e)
{
        if (c->n == c->cap) {
                c->cap = MAX(c->cap * 2, (size_t)16);
                c->v = xrealloc(c->v, c->cap, sizeof(*c->v));
        }
        c->v[c->n++] = (struct sockdiag_conn){ e->local_port, e->inode };
}

/* Decodes one datagram of a dump. 1: the last one. */
static int decode_dump(const char *answer, size_t n, const struct socket_query *w,
                       struct sockdiag_conns *ret)
{
        struct socket_entry e;

        for (const struct nlmsghdr *h = (const void *)answer; NLMSG_OK(h, n);
             h = NLMSG_NEXT(h, n)) {
                if (h->nlmsg_type == NLMSG_DONE)
                        return 1;
                if (h->nlmsg_type == NLMSG_ERROR)
                        return get_netlink_error(h);
                if (decode_entry(&e, h) && matches_query(w, &e))
                        add_conn(ret, &e);
        }
        return 0;
}

static int dump_by_netlink(struct sockdiag *d, const struct socket_query *w, int family,
                           struct sockdiag_conns *ret)
{
        char *answer = xcalloc(1, ANSWER_SIZE);
        ssize_t n;
        int r;

        discard_answers(d);
        r = send_request(d, w, family, NLM_F_DUMP);
        while (r == 0) {
                n = recv(d->fd, answer, ANSWER_SIZE, 0);
                r = n < 0 ? -errno : decode_dump(answer, (size_t)n, w, ret);
        }
        free(answer);
        return MIN(r, 0);
}

/* --- /proc ------------------------------------------------------------------------------------ */

/* Parses "0100007F" or four of them: words of the address in the machine's byte order. */
static bool parse_hex_address(const char *text, size_t digits, unsigned char to[16])
{
        char word[9] = "";
        uint32_t v;

        if (digits != 8 && digits != 32)
                return false;
        memcpy(to, mapped, sizeof(mapped));
        for (size_t i = 0; i < digits / 8; i++) {
                memcpy(word, text + 8 * i, 8);
                v = (uint32_t)strtoul(word, NULL, 16);
                memcpy(to + (digits == 8 ? 12 : 4 * i), &v, 4);
        }
        return true;
}

/* "0100007F:1F90" */
static bool parse_end(const char *word, unsigned char to[16], uint16_t *port)
{
        size_t digits = strspn(word, "0123456789ABCDEF");

        if (word[digits] != ':' || !parse_hex_address(word, digits, to))
                return false;
        *port = (uint16_t)strtoul(word + digits + 1, NULL, 16);
        return true;
}

/* "sl local remote state queues timer retransmits uid timeout inode ...". */
static bool parse_table_line(struct socket_entry *e, const char *line)
{
        const char *state = proc_word(line, 3);
        uint64_t uid;

        if (!state || !parse_end(proc_word(line, 1), e->local, &e->local_port) ||
            !parse_end(proc_word(line, 2), e->remote, &e->remote_port) ||
            !proc_number(line, 7, &uid) || !proc_number(line, 9, &e->inode))
                return false;
        e->uid = (uint32_t)uid;
        return strtoul(state, NULL, 16) != TCP_LISTEN && e->inode;
}

/* Calls @fn for every matching entry of one table, until @fn returns false. */
static int read_table(const char *path, const struct socket_query *w,
                      bool (*fn)(void *ctx, const struct socket_entry *e), void *ctx)
{
        char *text = NULL, *line, *rest;
        struct socket_entry e;
        int r = fd_read_file(path, TABLE_MAX, &text, NULL);

        if (r < 0)
                return r;
        for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                if (parse_table_line(&e, line) && matches_query(w, &e) && !fn(ctx, &e))
                        break;
        free(text);
        return 0;
}

static int read_tables(const struct socket_query *w,
                       bool (*fn)(void *ctx, const struct socket_entry *e), void *ctx)
{
        int six = read_table("/proc/net/tcp6", w, fn, ctx),
            four = is_mapped(w->remote) ? read_table("/proc/net/tcp", w, fn, ctx) : six;

        /* A kernel without IPv6 has no table of it. */
        return four < 0 && six < 0 ? four : 0;
}

static bool keep_first(void *ctx, const struct socket_entry *e)
{
        *(struct socket_entry *)ctx = *e;
        return false;
}

/* The kernel tells of a socket twice when others go while the table is being read. */
static bool keep_all(void *ctx, const struct socket_entry *e)
{
        const struct sockdiag_conns *there = ctx;

        for (size_t i = 0; i < there->n; i++)
                if (there->v[i].inode == e->inode)
                        return true;
        add_conn(ctx, e);
        return true;
}

static int find_in_proc(const struct socket_query *w, struct socket_entry *ret)
{
        int r;

        ret->inode = 0;
        r = read_tables(w, keep_first, ret);
        return r < 0 ? r : ret->inode ? 0 : -ENOENT;
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
        struct socket_entry e;
        struct socket_query w;
        int r = -1;

        if (!make_query(&w, local, remote))
                return err_set(err, EAFNOSUPPORT, "not a TCP address");
        if (d->fd >= 0)
                r = find_by_netlink(d, &w, &e);
        if (d->fd < 0 || (r < 0 && r != -ENOENT))
                r = find_in_proc(&w, &e);
        if (r == -ENOENT)
                return err_set(err, ENOENT, "no process of this machine owns the other end");
        if (r < 0)
                return err_set(err, -r, "cannot find the owner of the other end: %s", strerror(-r));
        *ret = (struct sockdiag_owner){ e.uid, e.inode };
        return 0;
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
                r = dump_by_netlink(d, &w, AF_INET, ret);
                if (r == 0) /* sockets of IPv6 may speak IPv4; a kernel without IPv6 has none */
                        dump_by_netlink(d, &w, AF_INET6, ret);
        } else if (d->fd >= 0) {
                r = dump_by_netlink(d, &w, AF_INET6, ret);
        }
        if (d->fd < 0 || r < 0) {
                ret->n = before;
                r = read_tables(&w, keep_all, ret);
        }
        return r < 0 ? err_set(err, -r, "cannot list connections: %s", strerror(-r)) : 0;
}

void sockdiag_conns_finish(struct sockdiag_conns *c)
{
        free(c->v);
        *c = (struct sockdiag_conns)SOCKDIAG_CONNS_INIT;
}

/* --- processes -------------------------------------------------------------------------------- */

struct held_ports {
        const struct sockdiag_conns *conns;
        uint32_t *v;
        size_t n, max;
};

static void add_port(struct held_ports *p, uint64_t inode)
{
        for (size_t i = 0; i < p->conns->n; i++) {
                if (p->conns->v[i].inode != inode)
                        continue;
                for (size_t k = 0; k < p->n; k++)
                        if (p->v[k] == p->conns->v[i].port)
                                return; /* a child inherits the sockets of the parent */
                if (p->n < p->max)
                        p->v[p->n++] = p->conns->v[i].port;
                return;
        }
}

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
