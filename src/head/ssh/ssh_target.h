/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh target: everything a session must know before it can begin
 *
 * Which host, which addresses, which keys to offer, which host keys to accept, over which jump
 * host. Finding that out reads files, asks name servers and may run the user's Match exec
 * commands, so ssh_target_find() belongs into a thread that may wait. A site is what all routes
 * share: it reads every file once. Thread-safe.
 */
#pragma once

#include <netdb.h>

#include "head/nodes/transport.h"
#include "head/ssh/files/known_hosts.h"
#include "head/ssh/files/revoked_keys.h"
#include "head/ssh/files/ssh_config.h"
#include "head/ssh/ssh_keys.h"
#include "head/ssh/ssh_server_limits.h"

struct ssh_site;

struct ssh_target {
        struct ssh_host host;
        struct addrinfo *addresses;   /* NULL: by @via, or by the host's proxy command */
        const struct ssh_target *via; /* the jump host's; belongs to the site */
        char *via_name;               /* the jump hosts so far: equal names share a session */
        size_t via_number;            /* of that name */
        struct ssh_server *server;    /* the site's */
        struct known_set known;
        const struct revoked_keys *revoked; /* the site's; NULL = none */
        const char *known_name;             /* the name that host keys are filed under */
        char *host_key_algorithms;
        const struct ssh_identity **offers; /* keys to offer, best first */
        size_t offers_n;
        const struct ssh_identity **unusable; /* wanted, but encrypted, unreadable or missing */
        size_t unusable_n;
        char *agent; /* the ssh-agent's socket, NULL = none */
};

/* Fails when the user's ssh config cannot be used. @o is borrowed for the site's life. */
int ssh_site_create(struct ssh_site **ret, const struct ssh_options *o, struct error *err);
void ssh_site_free(struct ssh_site *site);
const struct ssh_options *ssh_site_options(const struct ssh_site *site);

/* 0, or -1 with @why filled in. @ret is the caller's, the site must outlive it. */
int ssh_target_find(struct ssh_site *site, const char *host, const char *user, int port,
                    struct ssh_target **ret, struct link_failure *why);
void ssh_target_free(struct ssh_target *target);

/* Appends the accepted key to the user's first known_hosts file, once for each host. The number of
 * its line, 0 when it was appended before, or a negative errno. */
int ssh_site_accept(struct ssh_site *site, const struct ssh_target *target, const char *type,
                    const char *blob, struct error *err);
