/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are the text of an ssh_config; behind a NUL may come the name of a host. The config is
 * sealed: no Include opens a file and no Match exec runs. Errors have a reason, hosts are complete,
 * and a second lookup finds the same.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "head/ssh/files/ssh_config.h"

static void check_error(int r, const struct error *err)
{
        require(err->code == -r && r == -EINVAL);
        require(*err->text && memchr(err->text, '\0', sizeof(err->text)));
}

static void check_host(const struct ssh_host *h)
{
        require(*h->alias && *h->hostname && h->user);
        require(!strpbrk(h->hostname, "'\"`$\\;&|<>(){}!#*? \t\r\n") && *h->hostname != '-');
        require(h->port >= 1 && h->port <= 65535);
        require(h->family == AF_UNSPEC || h->family == AF_INET || h->family == AF_INET6);
        require(h->user_files <= h->known_hosts.n);
        require(!h->proxy_jump || !h->proxy_command);
        require(h->identities_given || h->identities.n > 0);
}

static void look_up(const struct ssh_config *c, const char *name)
{
        const struct ssh_host_request request = { .alias = name };
        struct ssh_host first, second;
        struct ssh_unobeyed unobeyed = { 0 };
        struct error err = { 0 }, again = { 0 };
        int r = ssh_config_lookup(c, &request, &first, &unobeyed, &err);

        require(ssh_config_lookup(c, &request, &second, NULL, &again) == r);
        if (r < 0) {
                check_error(r, &err);
                require(!first.alias && !second.alias);
        } else {
                check_host(&first);
                require(!strcmp(first.hostname, second.hostname) && first.port == second.port);
        }
        ssh_host_finish(&first);
        ssh_host_finish(&second);
        strv_finish(&unobeyed.told);
        strv_finish(&unobeyed.aside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *copy = strndup((const char *)data, size);
        size_t len = strlen(copy);
        char *name = len < size ? strndup((const char *)data + len + 1, size - len - 1) : NULL;
        struct ssh_config *c;
        struct error err = { 0 };
        int r = ssh_config_parse(&c, (const char *)data, len, &err);

        if (r < 0) {
                check_error(r, &err);
        } else {
                look_up(c, "node1");
                look_up(c, "Node2.example.com");
                look_up(c, "::1");
                if (name)
                        look_up(c, name);
                ssh_config_free(c);
        }
        free(name);
        free(copy);
        return 0;
}
