/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh config: what ~/.ssh/config and /etc/ssh/ssh_config say about one host
 *
 * Our own reader, because libssh's lacks half of the keywords that decide which key and which
 * known_hosts file count. Host, Match (all, host, originalhost, user, localuser, exec, canonical,
 * final) and Include work as in ssh_config(5): the first value wins, lists of files add up.
 * StrictHostKeyChecking is read past on purpose: host keys are always checked. Keywords that we do
 * not know are ignored.
 *
 * The files are read once into an ssh_config; ssh_config_lookup() may then run in several threads
 * at once. A Match exec runs its command each time.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strv.h"

struct ssh_config;

/* One host's settings, with % and ~ expanded. Strings are NULL where nothing was said. */
struct ssh_host {
        char *alias;    /* the name asked for */
        char *hostname; /* never NULL */
        char *user;     /* never NULL */
        int port;       /* never 0 */
        int family;     /* AF_UNSPEC, AF_INET, AF_INET6 */
        char *host_key_alias;
        struct strv identities;   /* IdentityFile; the standard names when none was given */
        bool identities_given;    /* from the config or the command line */
        bool identities_only;     /* leave the agent's other keys alone */
        struct strv certificates; /* CertificateFile */
        struct strv known_hosts;  /* user files, then global files */
        size_t user_files;        /* how many of them are the user's */
        struct strv revoked;      /* RevokedHostKeys */
        char *proxy_command;      /* NULL or "none" was given */
        char *proxy_jump;
        char *identity_agent; /* a socket; NULL = SSH_AUTH_SOCK, "none" */
        char *bind_address;
        char *kex, *ciphers, *macs, *host_key_algorithms, *pubkey_algorithms;
        bool pubkey, gssapi;
};

/* What the command line adds; it wins over the files. */
struct ssh_host_request {
        const char *alias;
        const char *user;              /* NULL = from the files, else the login name */
        int port;                      /* 0 = from the files, else 22 */
        const struct strv *identities; /* NULL or empty = from the files */
};

/* @file replaces the user's and the system's file; "none" reads nothing, NULL the usual two.
 * A file that was named and cannot be read, or an Include that loops, is an error. So is -EPERM,
 * the user's file or an included one that others can write: ssh_file_owner_check(). */
int ssh_config_load(struct ssh_config **ret, const char *file, struct error *err);
void ssh_config_free(struct ssh_config *c);

/* Fills @ret, which ssh_host_finish() frees. Fails for names with characters that no host has
 * (they would reach commands), for a wrong port, and for lines of the files it cannot use. */
int ssh_config_lookup(const struct ssh_config *c, const struct ssh_host_request *request,
                      struct ssh_host *ret, struct error *err);
void ssh_host_finish(struct ssh_host *h);
