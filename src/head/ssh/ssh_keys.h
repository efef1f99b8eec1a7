/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh keys: the user's keys, read once and shared by all sessions
 *
 * A key without passphrase is loaded with all certificates; of an encrypted key only the public
 * half is kept, for messages. The user is never asked for a passphrase. Thread-safe; identities are
 * borrowed until ssh_keys_free() and may be used for signing by several threads at once.
 */
#pragma once

#include <libssh/libssh.h>

#include "base/strv.h"

enum ssh_identity_state {
        IDENTITY_GOOD,
        IDENTITY_MISSING,
        IDENTITY_UNREADABLE,
        IDENTITY_ENCRYPTED, /* needs a passphrase */
};

struct ssh_identity {
        enum ssh_identity_state state;
        char *path;     /* of the key, or of the certificate */
        ssh_key key;    /* private; NULL unless GOOD */
        char type[32];  /* "ED25519", "ED25519-CERT"; "" = unknown */
        char print[64]; /* "SHA256:..." of the public key */
};

struct ssh_keys;

struct ssh_keys *ssh_keys_create(void);
void ssh_keys_free(struct ssh_keys *keys);

/* Returns the key in a file, in whatever state; never NULL. */
const struct ssh_identity *ssh_keys_get(struct ssh_keys *keys, const char *path);

/* Returns the key at @path joined with the certificate at @cert. NULL: there is no such
 * certificate, or of another key. */
const struct ssh_identity *ssh_keys_get_cert(struct ssh_keys *keys, const char *path,
                                             const char *cert);

/* Describes a public key or the public half: "ED25519" and "SHA256:...". */
void ssh_key_describe(ssh_key key, char *ret_type, size_t type_size, char *ret_print,
                      size_t print_size);

/* Asks the agent at @socket for a list of keys: lines "ED25519 SHA256:... comment". Waits 3 s at
 * most. 0 or a negative errno. */
int ssh_keys_agent_list(const char *socket, struct strv *ret);
