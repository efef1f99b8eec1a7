/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name is of this machine without a question to a name server where possible: numeric addresses,
 * loopback names, /etc/hosts and the own host name. Only a name with the same first label and
 * another domain is resolved, because a second machine may have that label elsewhere.
 */
#include "head/hosts/own_machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

enum { HOSTS_FILE_MAX = 16 << 20 };

/* An address of either family as IPv6, IPv4 in its mapped form. */
static bool parse_numeric(const char *text, struct in6_addr *to)
{
        CLEANUP(free_textp) char *mapped = xasprintf("::ffff:%s", text);

        return inet_pton(AF_INET6, strchr(text, ':') ? text : mapped, to) == 1;
}

/* Turns a socket address into the same form. False: neither IPv4 nor IPv6, or none. */
static bool map_address(const struct sockaddr *a, struct in6_addr *to)
{
        const struct sockaddr_in *v4 = (const void *)a;
        const struct sockaddr_in6 *v6 = (const void *)a;

        if (a && a->sa_family == AF_INET6) {
                *to = v6->sin6_addr;
                return true;
        }
        if (!a || a->sa_family != AF_INET)
                return false;
        *to = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
        memcpy(&to->s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
        return true;
}

/* Whether an address is of the loopback network or of an interface. */
static bool is_own_address(const struct own_machine *m, const struct in6_addr *a)
{
        struct in6_addr one;

        if (IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127))
                return true;
        for (const struct ifaddrs *i = m->interfaces; i; i = i->ifa_next)
                if (map_address(i->ifa_addr, &one) && !memcmp(&one, a, sizeof(one)))
                        return true;
        return false;
}

/* Asks the resolver, which may take seconds. */
static bool resolves_to_own(const struct own_machine *m, const char *name)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
        struct in6_addr a;
        bool own = false;

        if (getaddrinfo(name, NULL, &hints, &found))
                return false;
        for (const struct addrinfo *i = found; i && !own; i = i->ai_next)
                own = map_address(i->ai_addr, &a) && is_own_address(m, &a);
        freeaddrinfo(found);
        return own;
}

/* Adds the names behind own addresses in a file such as /etc/hosts. */
static void read_hosts_file(struct own_machine *m, char *text)
{
        for (char *line, *rest = text; (line = strsep(&rest, "\n"));) {
                struct in6_addr a;
                char *save = NULL, *word;

                line[strcspn(line, "#\r")] = '\0';
                word = strtok_r(line, " \t", &save);
                if (!word || !parse_numeric(word, &a) || !is_own_address(m, &a))
                        continue;
                while ((word = strtok_r(NULL, " \t", &save)))
                        strv_push(&m->names, word);
        }
}

void own_machine_read(struct own_machine *m)
{
        CLEANUP(free_textp) char *text = NULL;
        char name[256] = "";

        *m = (struct own_machine){ 0 };
        /* A name that was cut has no NUL; the last byte stays 0. */
        gethostname(name, sizeof(name) - 1);
        m->name = xstrdup(name);
        if (getifaddrs(&m->interfaces) < 0)
                m->interfaces = NULL;
        if (fd_read_file("/etc/hosts", HOSTS_FILE_MAX, &text, NULL) == 0)
                read_hosts_file(m, text);
}

void own_machine_finish(struct own_machine *m)
{
        free(m->name);
        strv_finish(&m->names);
        if (m->interfaces)
                freeifaddrs(m->interfaces);
        *m = (struct own_machine){ 0 };
}

bool own_machine_is(const struct own_machine *m, const char *name)
{
        static const char *const loopback[] = { "localhost",     "localhost.localdomain",
                                                "localhost4",    "localhost6",
                                                "ip6-localhost", "ip6-loopback" };
        size_t label = strcspn(name, ".");
        struct in6_addr a;

        if (parse_numeric(name, &a))
                return is_own_address(m, &a);
        for (size_t i = 0; i < ARRAY_SIZE(loopback); i++)
                if (!strcasecmp(name, loopback[i]))
                        return true;
        for (size_t i = 0; i < m->names.n; i++)
                if (!strcasecmp(name, m->names.v[i]))
                        return true;
        if (!label || label != strcspn(m->name, ".") || strncasecmp(name, m->name, label) != 0)
                return false;
        /* The same machine in its own domain, or another one of that name elsewhere. */
        return !name[label] || !strcasecmp(name, m->name) || resolves_to_own(m, name);
}
