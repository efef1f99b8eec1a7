/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh config: the settings of ~/.ssh/config and /etc/ssh/ssh_config for one host
 *
 * A reader of our own, because libssh's lacks half of the keywords deciding which key and which
 * known_hosts file count. Host, Match, Include and IgnoreUnknown work as in ssh_config(5): the
 * first value wins, identities and certificates add up. What happens with each keyword is in
 * ssh_keywords.h. StrictHostKeyChecking is ignored on purpose: host keys are always checked.
 *
 * The files are read once into an ssh_config; ssh_config_lookup() may then run in several threads
 * at once. A Match exec runs the command each time.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strv.h"
#include "head/ssh/files/algorithms.h"

struct ssh_config;

/* Algorithm lists as configured, with their "+", "-" or "^"; NULL = not configured. */
struct ssh_host_algorithms {
        char *lists[ALGORITHM_KINDS];
        int rsa_bits; /* RequiredRSASize, 0 = not configured */
        bool system_lists[ALGORITHM_KINDS], system_rsa_bits; /* of the file for all users */
};

/* The local end of connections, as configured; NULL = the kernel chooses. */
struct ssh_host_local {
        char *address, *interface; /* BindAddress, BindInterface */
};

/* The methods to try: PubkeyAuthentication, GSSAPIAuthentication and PreferredAuthentications. */
struct ssh_host_login {
        bool pubkey, gssapi;
        bool gssapi_first;
};

/* One host's settings, with % and ~ expanded. Strings are NULL if not configured. */
struct ssh_host {
        char *alias;    /* the requested name */
        char *hostname; /* never NULL */
        char *user;     /* never NULL */
        int port;       /* never 0 */
        int family;     /* AF_UNSPEC, AF_INET, AF_INET6 */
        char *host_key_alias;
        struct strv identities;   /* IdentityFile; else the standard names */
        bool identities_given;    /* from the config or the command line */
        bool identities_only;     /* offer no other keys of the agent */
        struct strv certificates; /* CertificateFile */
        struct strv known_hosts;  /* user files, then global files */
        size_t user_files;        /* the number of user files among them */
        struct strv revoked;      /* RevokedHostKeys */
        char *proxy_command;      /* NULL also for "none" */
        char *proxy_jump;
        char *identity_agent; /* a socket; NULL = SSH_AUTH_SOCK, "none" */
        struct ssh_host_local local;
        struct ssh_host_algorithms algorithms;
        struct ssh_host_login login;
        bool hash_names; /* HashKnownHosts: of accepted keys */
};

/* Settings of the command line, which win over the files. */
struct ssh_host_request {
        const char *alias;
        const char *user;              /* NULL = from the files, else the login name */
        int port;                      /* 0 = from the files, else 22 */
        const struct strv *identities; /* NULL or empty = from the files */
};

/* Reads the files. @file replaces the user's and the system's file; "none" reads no file, NULL the
 * usual two. A negative errno: @file cannot be read; HN_SSH_CONFIG_LINE: a line of a file is wrong,
 * an included file cannot be read, or Includes loop; HN_SSH_CONFIG_WRITABLE: other users can write
 * to the user's file or to an included file. */
int ssh_config_load(struct ssh_config **ret, const char *file, struct error *err);
/* Reads @len bytes instead of files. Such a config is sealed: Includes are skipped, and no Match
 * exec and no Match localnetwork holds. HN_SSH_CONFIG_LINE. */
int ssh_config_parse(struct ssh_config **ret, const char *text, size_t len, struct error *err);
void ssh_config_free(struct ssh_config *c);

/* Lines that are not obeyed, and change nothing about a login: "FILE: line N: KEYWORD is not
 * obeyed: REASON". @aside: only of interest with -v, or when a login fails. */
struct ssh_unobeyed {
        struct strv told, aside;
};

/* Fills @ret, which ssh_host_finish() frees. Fails for names with characters foreign to host names
 * (names reach commands); with HN_SSH_CONFIG_LINE for a line that ssh(1) would refuse, too, or that
 * hnlaunch does not obey although the login would change. Lines that
 * are not obeyed, and change nothing about the login, are appended to @unobeyed, which may be NULL.
 */
int ssh_config_lookup(const struct ssh_config *c, const struct ssh_host_request *request,
                      struct ssh_host *ret, struct ssh_unobeyed *unobeyed, struct error *err);
void ssh_host_finish(struct ssh_host *h);
