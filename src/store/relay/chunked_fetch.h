/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull: the answer to a FETCH that is larger than one reply, asked for in parts
 *
 * A reply with STORE_TOO_BIG halves the part that is asked for, down to one key; the values are put
 * together as one reply would have them, up to 256 MiB. Each part is of its own moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/store_msg.h"

struct pull;

/*
 * Takes the reply to the FETCH whose encoded body is @body, or to a part of it. @pull is NULL at
 * first and made when it is needed; @body is borrowed until pull_destroy(). True: pull_part() is
 * still to be asked for. False: *reply is the whole answer, its value lent until pull_destroy().
 */
bool pull_take(struct pull **pull, const void *body, size_t len, struct store_reply *reply);

/* What to ask for next, lent; client and tag are the caller's. */
struct store_request pull_part(const struct pull *p);

void pull_destroy(struct pull *p); /* NULL is fine */
