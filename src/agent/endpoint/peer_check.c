/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses are compared as 16 bytes, IPv4 mapped into IPv6, in two sorted sets: nodes of the job,
 * and interfaces of this machine. A connection from an own address or loopback is local: the kernel
 * is asked for the uid of the socket at the other end. An end that has closed meanwhile has no
 * owner and is not counted as unauthorized. The owner of a connection from another node is asked
 * for by tcp_conn.c (peer_owners.h).
 */
#include "agent/endpoint/peer_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/sockdiag.h"
#include "base/log.h"

enum { TOLD_MAX = 64 }; /* addresses whose rejections are logged */

struct addresses {
        unsigned char (*v)[16]; /* sorted */
        size_t n, cap;
};

struct peer_check {
        struct sockdiag diag;
        struct addresses peers, own;
        struct strv told;
        uint32_t rejected;
        bool ask_owners;
        bool own_read; /* @own is filled at the first need */
};

/* --- sets of addresses ------------------------------------------------------------------------ */

static int compare_addresses(const void *a, const void *b)
{
        return memcmp(a, b, 16);
}

static void add_address(struct addresses *s, const unsigned char addr[16])
{
        s->v = xgrow(s->v, s->n, &s->cap, sizeof(*s->v));
        memcpy(s->v[s->n++], addr, 16);
}

static void sort_addresses(struct addresses *s)
{
        if (s->n)
                qsort(s->v, s->n, sizeof(*s->v), compare_addresses);
}

static bool has_address(const struct addresses *s, const unsigned char addr[16])
{
        return s->n && bsearch(addr, s->v, s->n, sizeof(*s->v), compare_addresses);
}

/* --- checks ---------------------------------------------------------------------------------- */

struct peer_check *peer_check_create(const struct strv *peers, bool ask_owners)
{
        struct peer_check *c = xcalloc(1, sizeof(*c));
        unsigned char addr[16];

        c->ask_owners = ask_owners;
        sockdiag_open(&c->diag);
        for (size_t i = 0; i < peers->n; i++)
                if (owner_ends_address(peers->v[i], addr))
                        add_address(&c->peers, addr);
        sort_addresses(&c->peers);
        return c;
}

void peer_check_destroy(struct peer_check *c)
{
        if (!c)
                return;
        sockdiag_close(&c->diag);
        strv_finish(&c->told);
        free(c->peers.v);
        free(c->own.v);
        free(c);
}

bool peer_check_disconnected(int fd)
{
        /* TCP_ESTABLISHED alone has an open other end; CLOSE_WAIT is an end of file. */
        struct tcp_info info = { 0 };
        socklen_t len = sizeof(info);

        return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
               info.tcpi_state != TCP_ESTABLISHED;
}

/* 0: a process of the same user. -EPERM with @why, or -ENOTCONN: the other end is closed. */
static int admit_local_peer(struct peer_check *c, int fd, const struct sockaddr *theirs,
                            const struct sockaddr *ours, struct error *why)
{
        struct sockdiag_owner owner;

        /* No owner: as a rule the client has closed meanwhile, which is no fault. */
        if (sockdiag_find(&c->diag, theirs, ours, &owner, why) < 0)
                return peer_check_disconnected(fd) ? -ENOTCONN : -EPERM;
        if (owner.uid != geteuid())
                return err_set(why, EPERM, "the process belongs to uid %u", (unsigned)owner.uid);
        return 0;
}

/* Reads the addresses with the first connection that may come from one of them. */
static bool has_own_address(struct peer_check *c, const unsigned char addr[16])
{
        struct ifaddrs *all;
        unsigned char own[16];

        if (!c->own_read && getifaddrs(&all) == 0) {
                c->own_read = true;
                for (struct ifaddrs *i = all; i; i = i->ifa_next)
                        if (i->ifa_addr && sockdiag_address(i->ifa_addr, own))
                                add_address(&c->own, own);
                freeifaddrs(all);
                sort_addresses(&c->own);
        }
        return has_address(&c->own, addr);
}

int peer_check_admit(struct peer_check *c, int fd, struct tcp_peer *ret, struct error *why)
{
        struct sockaddr_storage theirs, ours;
        struct sockaddr *peer = (struct sockaddr *)&theirs, *self = (struct sockaddr *)&ours;
        socklen_t peer_len = sizeof(theirs), self_len = sizeof(ours);
        struct in6_addr from, to;
        const unsigned char *addr = from.s6_addr;
        bool four, loopback;

        *ret = (struct tcp_peer){ .addr = "?" };
        if (getpeername(fd, peer, &peer_len) < 0 || getsockname(fd, self, &self_len) < 0 ||
            !sockdiag_address(peer, ret->ends.from) || !sockdiag_address(self, ret->ends.to))
                return err_set(why, ENOTCONN, "already closed");
        memcpy(&from, ret->ends.from, sizeof(from));
        memcpy(&to, ret->ends.to, sizeof(to));
        four = IN6_IS_ADDR_V4MAPPED(&from);
        inet_ntop(four ? AF_INET : AF_INET6, four ? addr + 12 : addr, ret->addr, sizeof(ret->addr));
        ret->port = sockdiag_port(peer);
        ret->own_port = sockdiag_port(self);
        loopback = IN6_IS_ADDR_LOOPBACK(&from) || (four && addr[12] == 127);
        /* A connection of this machine to an own address comes from the same address. */
        if (loopback || IN6_ARE_ADDR_EQUAL(&from, &to) || has_own_address(c, addr))
                return admit_local_peer(c, fd, peer, self, why);
        if (!has_address(&c->peers, addr))
                return err_set(why, EPERM, "not a node of this job");
        return c->ask_owners ? 1 : 0;
}

void peer_check_reject(struct peer_check *c, const struct tcp_peer *peer, int id, const char *why)
{
        c->rejected++;
        /* One line for each address, for a limited number of addresses: a scan must not fill the
         * log. */
        if (c->told.n >= TOLD_MAX || strv_has(&c->told, peer->addr))
                return;
        strv_push(&c->told, peer->addr);
        log_warning(id,
                    strchr(peer->addr, ':') ? "rejected connection to the store from [%s]:%u: %s"
                                            : "rejected connection to the store from %s:%u: %s",
                    peer->addr, peer->port, why);
}

uint32_t peer_check_rejected(const struct peer_check *c)
{
        return c->rejected;
}
