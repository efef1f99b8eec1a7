/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the reader of ssh_config finds for a host, in the words of ssh -G: what tests compare
 * with ssh(1)
 *
 *   ssh_config_probe FILE HOST
 *
 * One line for each setting; "unobeyed TEXT" for a line that is told. Ends with 1 and "error TEXT"
 * when the file or the lookup is refused.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "head/ssh/files/ssh_config.h"

static void print_word(const char *keyword, const char *value)
{
        if (value)
                printf("%s %s\n", keyword, value);
}

static void print_list(const char *keyword, const struct strv *values)
{
        for (size_t i = 0; i < values->n; i++)
                printf("%s %s\n", keyword, values->v[i]);
}

static void print_host(const struct ssh_host *h)
{
        print_word("hostname", h->hostname);
        print_word("user", h->user);
        printf("port %d\n", h->port);
        print_word("addressfamily", h->family == AF_INET    ? "inet"
                                    : h->family == AF_INET6 ? "inet6"
                                                            : "any");
        print_word("hostkeyalias", h->host_key_alias);
        print_word("bindaddress", h->local.address);
        print_word("bindinterface", h->local.interface);
        print_word("proxycommand", h->proxy_command);
        print_word("proxyjump", h->proxy_jump);
        print_word("identityagent", h->identity_agent);
        print_word("identitiesonly", h->identities_only ? "yes" : "no");
        print_word("gssapiauthentication", h->login.gssapi ? "yes" : "no");
        print_word("pubkeyauthentication", h->login.pubkey ? "true" : "false");
        if (h->identities_given)
                print_list("identityfile", &h->identities);
        print_list("certificatefile", &h->certificates);
        print_list("knownhosts", &h->known_hosts);
        print_list("revokedhostkeys", &h->revoked);
}

int main(int argc, char **argv)
{
        struct ssh_host_request request = { .alias = argc == 3 ? argv[2] : "" };
        struct ssh_unobeyed unobeyed = { 0 };
        struct ssh_config *config = NULL;
        struct ssh_host host = { 0 };
        struct error err;
        int r;

        if (argc != 3)
                return 64;
        r = ssh_config_load(&config, argv[1], &err);
        if (r == 0)
                r = ssh_config_lookup(config, &request, &host, &unobeyed, &err);
        if (r == 0) {
                print_host(&host);
                print_list("unobeyed", &unobeyed.told);
                print_list("unobeyed", &unobeyed.aside);
        } else {
                printf("error %.*s\n", (int)strcspn(err.text, "\n"), err.text);
        }
        ssh_host_finish(&host);
        strv_finish(&unobeyed.told);
        strv_finish(&unobeyed.aside);
        ssh_config_free(config);
        return r < 0;
}
