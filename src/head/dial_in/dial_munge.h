/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_munge: munge credentials in place of a secret, in steps of Slurm
 *
 * The munged of each node tells the maker of a credential. Both sides of a connection make a
 * credential over the hash of the handshake, unique to the connection, with the side and the name
 * of the job; each side accepts only credentials of the own user. libmunge is loaded on need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "wire/noise/dial.h"

struct dial_peer;

enum dial_side { DIAL_SIDE_NODE, DIAL_SIDE_HEAD };

/* Whether libmunge and munged serve this process. */
bool dial_munge_works(void);

/* Makes a credential of a side, for malloc's free(). May wait for munged. 0, or -EIO with @err. */
int dial_munge_make(enum dial_side side, const char *job, const uint8_t hash[NOISE_HASH],
                    char **ret, struct error *err);
/* Checks a credential of the other side. May wait for munged. 0, or -EACCES with @err. */
int dial_munge_check(const char *credential, enum dial_side side, const char *job,
                     const uint8_t hash[NOISE_HASH], struct error *err);

/* --- node 0, without waiting --- */

struct dial_munge;

/* @job is borrowed. NULL with @err on failure. */
struct dial_munge *dial_munge_create(uv_loop_t *loop, const char *job, struct error *err);
/* Checks the credential of a PROVING peer in a thread, and ends in dial_peer_prove() or
 * dial_peer_refute(). */
void dial_munge_begin(struct dial_munge *m, struct dial_peer *p, const struct dial_record *r);
/* A peer was closed: the check is of no use. */
void dial_munge_forget(struct dial_peer *p);
/* Frees @m when the last check is done; the loop turns until then. NULL does nothing. */
void dial_munge_destroy(struct dial_munge *m);
