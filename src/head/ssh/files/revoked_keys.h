/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revoked keys: the host keys forbidden by RevokedHostKeys of ssh_config
 *
 * A file is a list of public keys, each on a line, or a key revocation list (KRL) of ssh-keygen -k.
 * As with ssh(1), an unreadable or malformed file forbids every key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"

struct revoked_keys;

/* Reads @files. Never fails. NULL if there are no files, which all functions below accept. */
struct revoked_keys *revoked_keys_load(const struct strv *files);
void revoked_keys_free(struct revoked_keys *rk);

/* Returns "FILE: reason" of the first unusable file, or NULL. */
const char *revoked_keys_trouble(const struct revoked_keys *rk);

/* Tells whether the key with this blob, in base64, is revoked; @ret_where then gets "file:line", or
 * the file alone for a KRL. */
bool revoked_keys_has(const struct revoked_keys *rk, const char *blob, char *ret_where,
                      size_t size);
