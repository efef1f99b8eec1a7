/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh source: the local address of connections, from BindAddress or BindInterface
 *
 * Chosen as ssh(1) chooses: BindAddress wins over BindInterface, and of an interface the first
 * address that is neither loopback nor link-local, else any. Read-only once found; thread-safe.
 */
#pragma once

#include <sys/socket.h>

#include "base/error.h"
#include "head/ssh/files/ssh_config.h"

struct ssh_source {
        const char *keyword;            /* of ssh_config, for messages */
        char name[256];                 /* the address or the interface as configured */
        struct sockaddr_storage v4, v6; /* AF_UNSPEC = there is none of this family */
};

/* Finds the addresses for a host's settings; may ask name servers. 0 with @ret, which the caller
 * frees and which is NULL without such a setting; or a negative errno with @err: the name does not
 * resolve, or the interface has no address. */
int ssh_source_find(const struct ssh_host_local *local, struct ssh_source **ret, struct error *err);

/* Binds a socket of @family; NULL binds nothing. 0, or a negative errno, -EADDRNOTAVAIL also for a
 * family without an address. */
int ssh_source_bind(const struct ssh_source *source, int fd, int family);
