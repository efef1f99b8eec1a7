/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh keys: the user's keys, read once and shared by all sessions
 *
 * A key without passphrase is loaded with all certificates; of another key only the public half is
 * kept, for messages and to find the key in the ssh-agent. The user is never asked for a
 * passphrase. Thread-safe; identities are borrowed until ssh_keys_free() and may be used for
 * signing by several threads at once.
 */
#pragma once

#include <libssh/libssh.h>

#include "base/strv.h"
#include "head/ssh/files/key_line.h"

enum ssh_identity_state {
        IDENTITY_GOOD,
        IDENTITY_MISSING,
        IDENTITY_UNREADABLE,
        IDENTITY_ENCRYPTED, /* needs a passphrase */
        IDENTITY_EXPOSED,   /* other users may access the file */
};

/* A public key as messages name it. */
struct ssh_key_name {
        char type[32];  /* "ED25519", "ED25519-CERT"; "" = unknown */
        char print[64]; /* "SHA256:..." */
};

struct ssh_identity {
        enum ssh_identity_state state;
        char *path;  /* of the key, or of the certificate */
        ssh_key key; /* private; NULL unless GOOD */
        struct ssh_key_name name;
        struct key_blob blob; /* the public half of a key that is not GOOD; empty = unknown */
        unsigned mode;        /* EXPOSED: the permissions of the file */
};

struct ssh_keys;

struct ssh_keys *ssh_keys_create(void);
void ssh_keys_free(struct ssh_keys *keys);

/* Returns the key in a file, in whatever state; never NULL. With @cert the key is joined with the
 * certificate in that file: MISSING if there is none, or of another key. */
const struct ssh_identity *ssh_keys_get(struct ssh_keys *keys, const char *path, const char *cert);

/* Names a key, public or private. */
void ssh_key_describe(ssh_key key, struct ssh_key_name *ret);
