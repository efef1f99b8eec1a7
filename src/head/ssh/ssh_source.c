/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BindAddress is resolved like any name, and BindInterface is looked up among the interfaces of
 * this machine. An address of each family is kept; ssh_source_bind() takes the one of the family
 * of the connection.
 */
#include "head/ssh/ssh_source.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory.h"

/* Keeps the first address of each family. */
static void keep_source(struct ssh_source *s, const struct sockaddr *a)
{
        struct sockaddr_storage *to = a->sa_family == AF_INET    ? &s->v4
                                      : a->sa_family == AF_INET6 ? &s->v6
                                                                 : NULL;
        size_t size =
                a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

        if (to && to->ss_family == AF_UNSPEC)
                memcpy(to, a, size);
}

static int find_source_address(struct ssh_source *s, struct error *err)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
        int e = getaddrinfo(s->name, NULL, &hints, &found);

        if (e)
                return err_set(err, ENOENT, "cannot use BindAddress %s: %s", s->name,
                               gai_strerror(e));
        for (const struct addrinfo *a = found; a; a = a->ai_next)
                keep_source(s, a->ai_addr);
        freeaddrinfo(found);
        return 0;
}

/* Tells whether an address reaches this machine or this link only. IPv6 and IPv4 only. */
static bool is_local_address(const struct sockaddr *a)
{
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

        if (a->sa_family == AF_INET)
                return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
                       htonl(INADDR_LOOPBACK);
        return IN6_IS_ADDR_LINKLOCAL(v6) || IN6_IS_ADDR_LOOPBACK(v6);
}

/* Finds the addresses for BindInterface. 0, or negative with @err. */
static int find_source_interface(struct ssh_source *s, struct error *err)
{
        struct ifaddrs *all;

        if (getifaddrs(&all) < 0)
                return err_set(err, errno, "cannot use BindInterface %s: %s", s->name,
                               strerror(errno));
        /* First addresses that lead beyond this link, then the others, as in ssh(1). */
        for (int local = 0; local < 2; local++)
                for (const struct ifaddrs *i = all; i; i = i->ifa_next)
                        if (i->ifa_addr && i->ifa_flags & IFF_UP &&
                            strcmp(i->ifa_name, s->name) == 0 &&
                            (i->ifa_addr->sa_family == AF_INET ||
                             i->ifa_addr->sa_family == AF_INET6) &&
                            (local || !is_local_address(i->ifa_addr)))
                                keep_source(s, i->ifa_addr);
        freeifaddrs(all);
        if (s->v4.ss_family == AF_UNSPEC && s->v6.ss_family == AF_UNSPEC)
                return err_set(err, EADDRNOTAVAIL,
                               "cannot use BindInterface %s: no such interface is up with an "
                               "address",
                               s->name);
        return 0;
}

int ssh_source_find(const struct ssh_host_local *local, struct ssh_source **ret, struct error *err)
{
        const char *name = local->address ? local->address : local->interface;
        struct ssh_source *s;
        int r;

        *ret = NULL;
        if (!name)
                return 0;
        s = xcalloc(1, sizeof(*s));
        s->keyword = local->address ? "BindAddress" : "BindInterface";
        snprintf(s->name, sizeof(s->name), "%s", name);
        r = local->address ? find_source_address(s, err) : find_source_interface(s, err);
        if (r < 0)
                free(s);
        else
                *ret = s;
        return r;
}

int ssh_source_bind(const struct ssh_source *source, int fd, int family)
{
        const struct sockaddr_storage *a;

        if (!source)
                return 0;
        a = family == AF_INET ? &source->v4 : &source->v6;
        if (a->ss_family == AF_UNSPEC)
                return -EADDRNOTAVAIL;
        if (bind(fd, (const struct sockaddr *)a,
                 family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) < 0)
                return -errno;
        return 0;
}
