/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known hosts: the host keys that the user and the site trust
 *
 * An index over known_hosts files, parsed once and read-only afterwards: a lookup among thousands
 * of hashed names costs microseconds. Supports plain and hashed names, patterns with * ? and !,
 * [host]:port, lists and @revoked; skips @cert-authority and malformed lines. Keys are
 * compared as the base64 text of the public key blob, in which every key has a single spelling.
 *
 * Lookups may run in several threads at once. A set is the result of a lookup and borrows from the
 * index, which must outlive the set.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "head/ssh/files/revoked_keys.h"

struct known_hosts;
struct known_key;

enum known_verdict { KNOWN_OK, KNOWN_UNKNOWN, KNOWN_CHANGED, KNOWN_REVOKED };

/* The keys of a host. */
struct known_set {
        const struct known_key **v;
        size_t n;
        size_t strict; /* number of keys, at the front, found under the exact name, port included */
        const char *unread; /* a file of the index that exists and cannot be read, or NULL */
        int error;          /* errno of that file */
};

/* Reads @files in that order; a missing file counts as empty, as does an unreadable one, which
 * every set names. Never fails. */
struct known_hosts *known_hosts_load(const struct strv *files);
void known_hosts_free(struct known_hosts *kh);

/* Finds the keys of @name (any case) for @port. Without a valid key of [name]:port, the keys of
 * the bare name are added, which can only confirm or revoke a key. */
void known_hosts_find(const struct known_hosts *kh, const char *name, int port,
                      struct known_set *ret);
void known_set_finish(struct known_set *set);

/*
 * Classifies the offered key, @type such as "ssh-ed25519" and @blob in base64. A host known only
 * with keys of other types is KNOWN_CHANGED, since those types were requested first. @ret_where
 * gets "file:line" and @ret_blob (unless NULL) the base64 of the deciding line, "" if there is
 * none.
 */
enum known_verdict known_set_check(const struct known_set *set, const char *type, const char *blob,
                                   char *ret_where, size_t size, const char **ret_blob);

/* Appends the keys to @to as known_hosts lines under @name; keys in @revoked are marked
 * @revoked. */
void known_set_lines(const struct known_set *set, const struct revoked_keys *revoked,
                     const char *name, struct buf *to);

/* Returns the host key algorithms to request, comma-separated: first the algorithms of known
 * keys. */
char *known_set_algorithms(const struct known_set *set, const char *defaults);

/* Appends a line for the key to @path, which is created with mode 0600 (the folder with 0700) if
 * missing. @hashed: the name is stored as its HMAC-SHA1 with a new salt, so that the file does not
 * tell the name. Returns the line's number or a negative errno. */
int known_hosts_append(const char *path, const char *name, int port, bool hashed, const char *type,
                       const char *blob, struct error *err);
