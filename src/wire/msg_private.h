/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: what the message codecs share
 */
#pragma once

#include "wire/codec.h"
#include "wire/msg.h"

/* The end of every decoder: 0, or -EPROTO when something failed or is left over. */
int msg_done(const struct reader *r, const struct frame *f, struct error *err);

/* An array of @size-byte elements for a count that came over the wire. NULL marks the failure in
 * @r; the caller frees. */
void *msg_take_array(struct reader *r, size_t max, size_t size, uint32_t *ret_n);
