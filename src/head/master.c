/* SPDX-License-Identifier: Apache-2.0 */
#include "head/master.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a numeric address; 4, 16, or 0 when it is none. */
static size_t numeric(const char *text, unsigned char to[16])
{
        if (inet_pton(AF_INET, text, to) == 1)
                return 4;
        return inet_pton(AF_INET6, text, to) == 1 ? 16 : 0;
}

static bool in_network(const char *addr, const char *cidr)
{
        unsigned char a[16], net[16];
        const char *slash = strchr(cidr, '/');
        char base[64];
        int bits;
        size_t n;

        if (!slash || (size_t)(slash - cidr) >= sizeof(base))
                return false;
        snprintf(base, sizeof(base), "%.*s", (int)(slash - cidr), cidr);
        bits = atoi(slash + 1);
        n = numeric(base, net);
        if (!n || numeric(addr, a) != n || bits < 0 || bits > (int)n * 8)
                return false;
        for (int i = 0; i < bits; i++)
                if ((a[i / 8] ^ net[i / 8]) & (0x80 >> (i % 8)))
                        return false;
        return true;
}

static const char *on_interface(const struct hello *node, const char *iface)
{
        for (uint32_t i = 0; i < node->n_addrs; i++)
                if (!strcmp(node->addrs[i].iface, iface) || in_network(node->addrs[i].addr, iface))
                        return node->addrs[i].addr;
        return NULL;
}

/* An addr= that is a name becomes numeric here, where the user's resolver is. */
static void resolve(const char *name, char *to, size_t size)
{
        struct addrinfo hint = { .ai_socktype = SOCK_STREAM }, *list;

        snprintf(to, size, "%s", name);
        if (getaddrinfo(name, NULL, &hint, &list) != 0)
                return;
        getnameinfo(list->ai_addr, list->ai_addrlen, to, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
        freeaddrinfo(list);
}

static bool is_loopback(const char *addr)
{
        return !strncmp(addr, "127.", 4) || !strcmp(addr, "::1");
}

static const char *first_address(const struct hello *node)
{
        unsigned char bytes[16];

        for (uint32_t i = 0; i < node->n_addrs; i++)
                if (numeric(node->addrs[i].addr, bytes) == 4)
                        return node->addrs[i].addr;
        return node->n_addrs ? node->addrs[0].addr : "127.0.0.1";
}

int master_choose(char *to, size_t size, const struct host *host, const struct hello *node,
                  const char *iface, bool one_node, struct error *err)
{
        const char *at = NULL;

        if (host->iface)
                iface = host->iface;
        if (host->addr) {
                resolve(host->addr, to, size);
                return 0;
        }
        if (iface) {
                at = on_interface(node, iface);
                if (!at)
                        return err_set(err, EADDRNOTAVAIL, "%s has no address on %s", host->name,
                                       iface);
        } else if (one_node) {
                at = "127.0.0.1";
        } else if (*node->ssh_addr && !is_loopback(node->ssh_addr)) {
                at = node->ssh_addr;
        } else {
                at = first_address(node);
        }
        snprintf(to, size, "%s", at);
        return 0;
}
