/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host key: the key offered by a host to a link that only requests the key
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/macros.h"
#include "head/nodes/transport.h"

/* With LINK_ENDED in the phase LINK_HOSTKEY the failure of such a link is the first member of the
 * key. */
struct link_host_key {
        struct link_failure end;
        bool known;                /* known_hosts has the key */
        char label[32], print[64]; /* for people: "ED25519", "SHA256:..." */
        /* The parts of the line for known_hosts. */
        char type[64]; /* "ssh-ed25519" */
        char name[256];
        int port;
        bool hashed;
        char file[PATH_MAX];
        char blob[]; /* base64 */
};

/* Appends the key to the known_hosts file. The number of the line, or a negative errno with @err.
 * In the module for ssh: ssh_loader_store_key() calls this function. */
PUBLIC int host_key_store(const struct link_host_key *key, struct error *err);
