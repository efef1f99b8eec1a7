/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revoked keys: the host keys that RevokedHostKeys of ssh_config forbids
 *
 * A file is a list of public keys, one a line, or a key revocation list (KRL) of ssh-keygen -k.
 * As with ssh(1), a file that cannot be read or understood forbids every key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"

struct revoked_keys;

/* Reads @files. Never fails; NULL when there are none, which all functions below take. */
struct revoked_keys *revoked_keys_load(const struct strv *files);
void revoked_keys_free(struct revoked_keys *rk);

/* "FILE: reason" of the first file that cannot be used, or NULL. */
const char *revoked_keys_trouble(const struct revoked_keys *rk);

/* True when the key with this blob, in base64, is named; @ret_where then gets "file:line", or the
 * file alone for a KRL. */
bool revoked_keys_has(const struct revoked_keys *rk, const char *blob, char *ret_where,
                      size_t size);
