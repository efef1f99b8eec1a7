/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunked_fetch: the answer to a FETCH larger than one reply, asked for in parts
 *
 * A reply STORE_TOO_BIG halves the number of keys to ask for, down to a single key; the values are
 * put together as in one reply, up to 256 MiB. Each part shows the store at another moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/store_msg.h"

struct chunked_fetch;

/*
 * Takes the reply to the FETCH with the encoded body @body, or to a part of this FETCH. @fetch is
 * NULL at first and made on demand; @body is borrowed until chunked_fetch_destroy(). True:
 * chunked_fetch_part() is still to be sent. False: *reply is the whole answer, its value lent until
 * chunked_fetch_destroy().
 */
bool chunked_fetch_take(struct chunked_fetch **fetch, const void *body, size_t len,
                        struct store_reply *reply);

/* Returns the next part to ask for, lent; client and tag are the caller's. */
struct store_request chunked_fetch_part(const struct chunked_fetch *p);

void chunked_fetch_destroy(struct chunked_fetch *p); /* NULL is fine */
