/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates come from the addresses in the HELLO of rank 0's node, rated by rate_address() and
 * kept sorted, equal ratings in the kernel's order. The HELLOs of the other nodes tell which
 * networks all nodes share, and which addresses exist twice, as on bridges for containers. Then
 * every node probes all candidates (head/job/job_endpoint.c), and master_addr_pick() takes the
 * first candidate reached by all nodes.
 */
#include "head/model/master_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE_ADDRESS = 1024 }; /* bits to compare, of either family */

/* --- addresses -------------------------------------------------------------------------------- */

/* Parses a numeric address into 4 or 16 bytes; 0 = not numeric. */
static size_t parse_address(const char *text, unsigned char to[16])
{
        if (inet_pton(AF_INET, text, to) == 1)
                return 4;
        return inet_pton(AF_INET6, text, to) == 1 ? 16 : 0;
}

bool master_addr_is_numeric(const char *addr)
{
        unsigned char bytes[16];

        return parse_address(addr, bytes) != 0;
}

/* Compares the first @bits of an address of @n bytes, 0 = none, with another one. An IPv6 address
 * may be written in many ways. */
static bool is_in_network(const unsigned char *a, size_t n, const char *other, uint32_t bits)
{
        unsigned char b[16];

        /* All bits of the family; addresses of different families are never equal. */
        if (bits == WHOLE_ADDRESS)
                bits = (uint32_t)n * 8;
        if (!n || parse_address(other, b) != n || bits > n * 8 || memcmp(a, b, bits / 8) != 0)
                return false;
        return !(bits % 8) || !((a[bits / 8] ^ b[bits / 8]) & (0xff00 >> bits % 8 & 0xff));
}

static bool is_same_network(const char *one, const char *other, uint32_t bits)
{
        unsigned char a[16];
        size_t n = parse_address(one, a);

        return is_in_network(a, n, other, bits);
}

/* Whether the address is in a network "10.8.0.0/16"; false also where @cidr is a name of an
 * interface. */
static bool is_in_cidr(const char *addr, const char *cidr)
{
        const char *slash = strchr(cidr, '/');
        char base[64], *end;
        unsigned long bits;

        if (!slash || (size_t)(slash - cidr) >= sizeof(base))
                return false;
        snprintf(base, sizeof(base), "%.*s", (int)(slash - cidr), cidr);
        bits = strtoul(slash + 1, &end, 10);
        return end > slash + 1 && !*end && bits <= 128 &&
               is_same_network(addr, base, (uint32_t)bits);
}

/* Loopback and link-local addresses, which mean another machine on each node. */
static bool is_unroutable(const char *addr)
{
        static const unsigned char loopback[16] = { [15] = 1 };
        unsigned char bytes[16];

        switch (parse_address(addr, bytes)) {
        case 4:
                return bytes[0] == 127 || (bytes[0] == 169 && bytes[1] == 254);
        case 16:
                return !memcmp(bytes, loopback, sizeof(loopback)) ||
                       (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80);
        }
        return false;
}

/* Interfaces that container runtimes and virtual machines make: their networks exist on each node
 * anew, with the same addresses. */
static bool is_for_containers(const char *iface)
{
        static const char *const names[] = { "docker", "br-",     "virbr", "veth",
                                             "cni",    "flannel", "cali",  "podman",
                                             "lxcbr",  "lxdbr",   "cilium" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strncmp(iface, names[i], strlen(names[i])))
                        return true;
        return false;
}

/* Finds the first address of the node that is equal to @addr in the first @bits. */
static const struct msg_addr *find_address(const struct hello *node, const char *addr,
                                           uint32_t bits)
{
        unsigned char bytes[16];
        size_t n = parse_address(addr, bytes);

        for (uint32_t i = 0; i < node->n_addrs; i++)
                if (is_in_network(bytes, n, node->addrs[i].addr, bits))
                        return &node->addrs[i];
        return NULL;
}

/* --- candidates ------------------------------------------------------------------------------- */

/* Rates an address of nodes[0]; smaller is better. */
static int rate_address(const struct msg_addr *a, const struct hello *const *nodes, size_t n_nodes)
{
        unsigned char bytes[16];
        bool shared = true, twice = false;
        int rate;

        for (size_t i = 1; i < n_nodes; i++) {
                shared &= find_address(nodes[i], a->addr, a->prefix) != NULL;
                twice |= find_address(nodes[i], a->addr, WHOLE_ADDRESS) != NULL;
        }
        if (twice || is_for_containers(a->iface))
                rate = 3;
        else if (is_same_network(a->addr, nodes[0]->ssh_addr, WHOLE_ADDRESS))
                return 0;
        else
                rate = shared ? 1 : 2;
        return rate * 2 + (parse_address(a->addr, bytes) == 16);
}

/* Inserts behind all candidates of the same or a better rating. In a full list the worst goes. */
static void insert_candidate(struct master_addr_list *to, int *rates, const struct msg_addr *a,
                             int rate)
{
        size_t at = to->n;

        while (at && rates[at - 1] > rate)
                at--;
        if (at == MASTER_ADDR_MAX)
                return;
        if (to->n < MASTER_ADDR_MAX)
                to->n++;
        memmove(&to->v[at + 1], &to->v[at], (to->n - at - 1) * sizeof(*to->v));
        memmove(&rates[at + 1], &rates[at], (to->n - at - 1) * sizeof(*rates));
        to->v[at] = (struct master_addr){ .prefix = a->prefix };
        memcpy(to->v[at].addr, a->addr, sizeof(to->v[at].addr));
        memcpy(to->v[at].iface, a->iface, sizeof(to->v[at].iface));
        rates[at] = rate;
}

/* Makes addr= the only candidate. A name that does not resolve here stays a name: the nodes may
 * resolve it. */
static void add_given_address(struct master_addr_list *to, const char *name,
                              const struct hello *node)
{
        struct addrinfo hint = { .ai_socktype = SOCK_STREAM }, *list;
        struct master_addr *m = &to->v[0];
        const struct msg_addr *own;

        *m = (struct master_addr){ .addr = "" };
        to->n = 1;
        snprintf(m->addr, sizeof(m->addr), "%s", name);
        if (getaddrinfo(name, NULL, &hint, &list) == 0) {
                getnameinfo(list->ai_addr, list->ai_addrlen, m->addr, sizeof(m->addr), NULL, 0,
                            NI_NUMERICHOST);
                freeaddrinfo(list);
        }
        own = find_address(node, m->addr, WHOLE_ADDRESS);
        if (own) {
                memcpy(m->iface, own->iface, sizeof(m->iface));
                m->prefix = own->prefix;
        }
}

/* Returns -EADDRNOTAVAIL with the addresses that the node has. */
static int complain_no_address(const struct host *host, const struct hello *node, const char *iface,
                               struct error *err)
{
        CLEANUP(buf_finish) struct buf has = BUF_INIT;

        for (uint32_t i = 0; i < node->n_addrs; i++)
                buf_printf(&has, "%s%s %s", i ? ", " : "", node->addrs[i].iface,
                           node->addrs[i].addr);
        buf_append(&has, "", 1);
        return err_set(err, EADDRNOTAVAIL, "%s has no address on %s; it has %s", host->name, iface,
                       node->n_addrs ? (const char *)buf_data(&has) : "none but loopback");
}

int master_addr_candidates(struct master_addr_list *to, const struct host *host,
                           const struct hello *const *nodes, size_t n_nodes, const char *iface,
                           struct error *err)
{
        const struct hello *node = nodes[0];
        int rates[MASTER_ADDR_MAX];

        if (host->iface)
                iface = host->iface;
        *to = (struct master_addr_list){ .given = host->addr || iface };
        if (host->addr) {
                add_given_address(to, host->addr, node);
                return 0;
        }
        for (uint32_t i = 0; i < node->n_addrs; i++) {
                const struct msg_addr *a = &node->addrs[i];

                if (!is_unroutable(a->addr) &&
                    (!iface || !strcmp(a->iface, iface) || is_in_cidr(a->addr, iface)))
                        insert_candidate(to, rates, a, rate_address(a, nodes, n_nodes));
        }
        /* Of an ssh through a translated address the node does not know the address. */
        if (!iface && *node->ssh_addr && !is_unroutable(node->ssh_addr) &&
            !find_address(node, node->ssh_addr, WHOLE_ADDRESS)) {
                struct msg_addr ssh = { .prefix = 0 };

                memcpy(ssh.addr, node->ssh_addr, sizeof(ssh.addr));
                /* Better than all others: connections to the address are known to work. */
                insert_candidate(to, rates, &ssh, -1);
        }
        if (!to->n && iface)
                return complain_no_address(host, node, iface, err);
        /* Nodes without a network must be names of the same machine. */
        if (!to->n)
                to->v[to->n++] = (struct master_addr){ .addr = "127.0.0.1", .iface = "lo" };
        return 0;
}

/* --- choosing --------------------------------------------------------------------------------- */

/* Counts the nodes that reached the candidate. A node without an answer counts as not reached. */
static size_t count_reached(const struct probed *const *v, size_t n, size_t candidate)
{
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += v[i] && candidate < v[i]->n && v[i]->results[candidate].error == 0;
        return count;
}

int master_addr_pick(const struct probed *const *v, size_t n, size_t n_candidates)
{
        int best = master_addr_nearest(v, n, n_candidates);

        return n_candidates && count_reached(v, n, (size_t)best) == n ? best : -1;
}

int master_addr_nearest(const struct probed *const *v, size_t n, size_t n_candidates)
{
        size_t best = 0, most = 0;

        for (size_t c = 0; c < n_candidates; c++) {
                size_t count = count_reached(v, n, c);

                /* Of equal counts the earlier candidate, which has the better rating. */
                if (count > most) {
                        most = count;
                        best = c;
                }
        }
        return (int)best;
}

const char *master_addr_iface(const struct hello *node, const struct master_addr *to)
{
        const struct msg_addr *a = to->prefix ? find_address(node, to->addr, to->prefix) : NULL;

        if (!a)
                a = find_address(node, node->ssh_addr, WHOLE_ADDRESS);
        return a ? a->iface : "";
}

bool master_addr_is_own(const struct hello *node, const char *addr)
{
        return find_address(node, addr, WHOLE_ADDRESS) ||
               is_same_network(addr, node->ssh_addr, WHOLE_ADDRESS);
}

void master_addr_other_network(char *to, size_t size, const struct hello *a, const struct hello *b,
                               const struct master_addr *but)
{
        unsigned char bytes[16] = { 0 };
        char text[64];
        size_t n;

        *to = '\0';
        for (uint32_t i = 0; i < a->n_addrs && !*to; i++) {
                const struct msg_addr *x = &a->addrs[i];

                if (is_unroutable(x->addr) || is_for_containers(x->iface) ||
                    find_address(b, x->addr, WHOLE_ADDRESS) ||
                    is_same_network(x->addr, but->addr, x->prefix) ||
                    !find_address(b, x->addr, x->prefix))
                        continue;
                n = parse_address(x->addr, bytes);
                /* Clears the bits of the host, so that the text names the network. */
                for (size_t bit = x->prefix; bit < n * 8; bit++)
                        bytes[bit / 8] &= (unsigned char)~(0x80 >> (bit % 8));
                inet_ntop(n == 4 ? AF_INET : AF_INET6, bytes, text, sizeof(text));
                snprintf(to, size, "%s/%u", text, x->prefix);
        }
}
