/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh target: all data needed to begin a session
 *
 * Host, addresses, keys to offer, host keys to accept, jump hosts. Finding them reads files, asks
 * name servers and may run the user's Match exec commands, so ssh_target_find() is for threads
 * allowed to block. A site is the common part of all targets: every file is read once. Thread-safe.
 */
#pragma once

#include <netdb.h>
#include <stdbool.h>

#include "base/macros.h"
#include "head/nodes/transport.h"
#include "head/ssh/files/known_hosts.h"
#include "head/ssh/files/revoked_keys.h"
#include "head/ssh/files/ssh_config.h"
#include "head/ssh/ssh_keys.h"
#include "head/ssh/ssh_server_limits.h"
#include "head/ssh/ssh_source.h"

struct ssh_site;

struct ssh_target {
        struct ssh_host host;
        struct addrinfo *addresses;   /* NULL: reached by @via, or by the host's proxy command */
        struct ssh_source *source;    /* the local address of connections, NULL = any */
        const struct ssh_target *via; /* the jump host; owned by the site */
        char *via_name;               /* the chain of jump hosts: equal names share a session */
        size_t via_number;            /* a number for the name */
        struct ssh_server *server;    /* the site's */
        struct known_set known;
        const struct revoked_keys *revoked; /* the site's; NULL = none */
        const char *known_name;             /* the name of the host in known_hosts */
        char *algorithms[ALGORITHM_KINDS];  /* names, host keys in the order of preference */
        const struct ssh_identity **offers; /* keys to offer, best first */
        size_t offers_n;
        const struct ssh_identity **unusable; /* configured, but encrypted, unreadable or missing */
        size_t unusable_n;
        char *agent; /* the ssh-agent's socket, NULL = none */
};

/* Creates a site; fails if the user's ssh config is unusable. @o is borrowed for the site's
 * life. */
int ssh_site_create(struct ssh_site **ret, const struct ssh_options *o, struct error *err);
void ssh_site_free(struct ssh_site *site);
const struct ssh_options *ssh_site_options(const struct ssh_site *site);
const struct ssh_config *ssh_site_config(const struct ssh_site *site);

/* Finds the known keys of a host in its files, each of which is read once. known_set_finish() frees
 * the set; @ret_revoked is the site's, NULL = none. */
void ssh_site_host_keys(struct ssh_site *site, const struct ssh_host *h, struct known_set *ret,
                        const struct revoked_keys **ret_revoked);

/* Finds the target for a host. 0 with @ret, to be freed by the caller before the site; or -1 with
 * @why filled in. */
int ssh_target_find(struct ssh_site *site, const char *host, const char *user, int port,
                    struct ssh_target **ret, struct link_failure *why);
void ssh_target_free(struct ssh_target *target);

/* Returns the next notice for link_callbacks.notice, each once; NULL = no more. For free(). */
char *ssh_site_notice(struct ssh_site *site, enum link_notice *ret_kind);

/* Appends an accepted key to the user's first known_hosts file, once per host. Returns the line's
 * number, 0 if the key was appended before, or a negative errno. */
int ssh_site_accept(struct ssh_site *site, const struct ssh_target *target, const char *type,
                    const char *blob, struct error *err);

/* Whether the ssh config has a way of its own to this machine: see ssh_loader_leads_elsewhere(),
 * which looks this symbol up by name. A config that cannot be read leads elsewhere: the login will
 * say what is wrong. */
PUBLIC bool own_login_leads_elsewhere(const struct ssh_options *o, const char *host,
                                      char **ret_name);
