/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wish of the configuration (a list, or +, - or ^ with patterns) is expanded against all
 * algorithms known here, in the order of the wish. libssh drops the names that the installed
 * release lacks.
 */
#include "head/ssh/files/algorithms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory.h"
#include "head/ssh/files/ssh_pattern.h"

#define ECDSA "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521"
#define RSA   "rsa-sha2-512,rsa-sha2-256"
#define SK    "sk-ssh-ed25519@openssh.com,sk-ecdsa-sha2-nistp256@openssh.com"
#define KEX                                                                                        \
        "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"    \
        "ecdh-sha2-nistp521,diffie-hellman-group16-sha512,diffie-hellman-group14-sha256"
#define CIPHERS                                                                                    \
        "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,"             \
        "aes256-ctr,aes128-ctr"
#define MACS                                                                                       \
        "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512"
#define CERTS                                                                                      \
        "ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256-cert-v01@openssh.com,"               \
        "ecdsa-sha2-nistp384-cert-v01@openssh.com,ecdsa-sha2-nistp521-cert-v01@openssh.com,"       \
        "rsa-sha2-512-cert-v01@openssh.com,rsa-sha2-256-cert-v01@openssh.com"

/* "more": algorithms on request only, of any version of libssh; libssh drops what it has not. The
 * defaults lack sntrup761 and mlkem768, defaults of newer libraries, which cost a hundred times the
 * processor time, and host certificates. Host keys: Ed25519 first, as smallest and fastest. */
static const struct {
        const char *keyword, *defaults, *more;
} lists[] = {
        [ALGORITHM_KEX] = { "KexAlgorithms", KEX,
                            "diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha256,"
                            "diffie-hellman-group14-sha1,diffie-hellman-group-exchange-sha1,"
                            "diffie-hellman-group1-sha1,sntrup761x25519-sha512,"
                            "sntrup761x25519-sha512@openssh.com,mlkem768x25519-sha256" },
        [ALGORITHM_CIPHER] = { "Ciphers", CIPHERS,
                               "aes192-ctr,aes256-cbc,aes192-cbc,aes128-cbc,3des-cbc" },
        [ALGORITHM_MAC] = { "MACs", MACS, "hmac-sha1-etm@openssh.com,hmac-sha1" },
        [ALGORITHM_HOST_KEY] = { "HostKeyAlgorithms", "ssh-ed25519," ECDSA "," RSA,
                                 SK ",ssh-rsa,ssh-dss" },
        [ALGORITHM_PUBKEY] = { "PubkeyAcceptedAlgorithms",
                               CERTS ",ssh-ed25519," ECDSA "," SK "," RSA,
                               "ssh-rsa,ssh-dss,ssh-rsa-cert-v01@openssh.com" },
};

/* Tells whether a list, of names or of patterns, matches a name. */
static bool algorithm_listed(const char *list, const char *name, size_t len)
{
        for (size_t n; *list; list += n + (list[n] == ',')) {
                n = strcspn(list, ",");
                if (ssh_pattern_matches(list, n, name, len))
                        return true;
        }
        return false;
}

/* Appends the names of @list that @pattern matches (or does not match) and that are not in @out,
 * which has space for all names. A name of a pattern that is in @out already stays where it is: the
 * first place counts. */
static void add_algorithms(char *out, const char *list, const char *pattern, bool matching)
{
        for (size_t n; *list; list += n + (list[n] == ',')) {
                n = strcspn(list, ",");
                if (!n || algorithm_listed(pattern, list, n) != matching ||
                    algorithm_listed(out, list, n))
                        continue;
                if (*out)
                        strcat(out, ",");
                strncat(out, list, n);
        }
}

const char *algorithms_keyword(enum algorithm_kind kind)
{
        return lists[kind].keyword;
}

char *algorithms_expand(enum algorithm_kind kind, const char *wish)
{
        const char *defaults = lists[kind].defaults;
        char *all = xasprintf("%s,%s", defaults, lists[kind].more);
        /* All names with commas fit: each is appended once at most. */
        char *out = xcalloc(1, strlen(all) + 1), *patterns = NULL, *at;

        if (!wish)
                strcpy(out, defaults);
        else if (*wish == '-')
                add_algorithms(out, defaults, wish + 1, false);
        else if (*wish == '+')
                patterns = xasprintf("%s,%s", defaults, wish + 1);
        else if (*wish == '^')
                patterns = xasprintf("%s,%s", wish + 1, defaults);
        else
                patterns = xstrdup(wish);
        for (at = patterns; at;)
                /* One pattern at a time, to keep the order of the wish. */
                add_algorithms(out, all, strsep(&at, ","), true);
        free(patterns);
        free(all);
        /* An empty list for libssh would mean its defaults. */
        if (!*out)
                free(STEAL(&out));
        return out;
}
