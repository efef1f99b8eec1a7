/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Algorithms: the lists of ssh_config, with + - ^ and patterns, as plain names
 *
 * Lists are expanded as ssh(1) does against the algorithms that libssh may have; a name that only
 * OpenSSH has is left out, as is an unknown one. Pure.
 */
#pragma once

enum algorithm_kind {
        ALGORITHM_KEX,
        ALGORITHM_CIPHER,
        ALGORITHM_MAC,
        ALGORITHM_HOST_KEY,
        ALGORITHM_PUBKEY, /* for the user's keys */
        ALGORITHM_KINDS,
};

/* Returns the keyword of ssh_config(5), "Ciphers". */
const char *algorithms_keyword(enum algorithm_kind kind);

/* Expands a list: "a,b" is the list itself, "+a" adds to the defaults, "-a" removes from them, "^a"
 * goes in front of them; names may be patterns with * and ?. NULL @wish is the defaults. Returns
 * names with commas between, each once, to be freed; NULL = none is left. */
char *algorithms_expand(enum algorithm_kind kind, const char *wish);
