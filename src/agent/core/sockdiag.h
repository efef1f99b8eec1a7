/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockdiag: finds the owners of TCP connections
 *
 * Asks the kernel about TCP connections of this network namespace: through NETLINK_SOCK_DIAG, which
 * finds a connection among thousands at once, or where netlink is not available (a sandbox, a
 * kernel without the family) by reading /proc/net/tcp and tcp6. Addresses may be IPv4, IPv6 or IPv4
 * in IPv6; both forms of an address are equal. Blocks, but only on the kernel. One object belongs
 * to one thread. Source: sock_diag(7), linux/inet_diag.h, net/ipv4/inet_diag.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"

struct sockdiag {
        int fd; /* of netlink, -1 = /proc is read */
};

#define SOCKDIAG_INIT                                                                              \
        {                                                                                          \
                .fd = -1                                                                           \
        }

void sockdiag_open(struct sockdiag *d); /* falls back to /proc without netlink */
void sockdiag_close(struct sockdiag *d);

/* The owner of one end of a connection. */
struct sockdiag_owner {
        uid_t uid;
        uint64_t inode; /* of the socket, never 0 */
};

/*
 * Finds the owner of the end with address @local and peer @remote. 0; -ENOENT: no such end on this
 * machine, or no process holds the end any more (the kernel then reports uid 0); another negative
 * errno when the kernel could not be asked.
 */
int sockdiag_find(struct sockdiag *d, const struct sockaddr *local, const struct sockaddr *remote,
                  struct sockdiag_owner *ret, struct error *err);

/* Connections from this machine to one address and port. */
struct sockdiag_conns {
        struct sockdiag_conn {
                unsigned char addr[16]; /* local, as of sockdiag_address() */
                uint32_t port;          /* local */
                struct sockdiag_owner owner;
        } * v;
        size_t n, cap;
};

#define SOCKDIAG_CONNS_INIT                                                                        \
        {                                                                                          \
                0                                                                                  \
        }

/* Appends all connections held by processes, of any user. 0 or -errno. */
int sockdiag_towards(struct sockdiag *d, const struct sockaddr *to, struct sockdiag_conns *ret,
                     struct error *err);
void sockdiag_conns_finish(struct sockdiag_conns *c);

/* Returns the number of local ports, at most @max and unordered, of connections held by @pid or
 * descendants. Processes that may not be inspected are left out. */
size_t sockdiag_ports_of(const struct sockdiag_conns *c, pid_t pid, uint32_t *ret_ports,
                         size_t max);

/* Writes the other end of the TCP socket @inode of a process, "10.0.0.2:4711" or "[fe80::1]:4711",
 * by the process's /proc/PID/net. False: no such connection. */
bool sockdiag_peer(pid_t pid, uint64_t inode, char *to, size_t size);

/* The inode of the other end of a unix socket of this network namespace. False: it has none, or the
 * kernel does not tell. Source: unix_diag in sock_diag(7). */
bool sockdiag_unix_peer(uint64_t inode, uint64_t *ret_peer);

/* The same address in one form: 16 bytes, IPv4 as ::ffff:a.b.c.d. False: of neither family. */
bool sockdiag_address(const struct sockaddr *sa, unsigned char ret[16]);
uint16_t sockdiag_port(const struct sockaddr *sa); /* 0 = of neither family */
