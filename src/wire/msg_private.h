/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Msg_private: helpers shared by the message codecs
 */
#pragma once

#include "wire/codec.h"
#include "wire/msg.h"

/* The end of every decoder: 0, or -EPROTO when something failed or is left over. */
int msg_done(const struct reader *r, const struct frame *f, struct error *err);

/* Messages of a single number. */
void msg_encode_u32(struct buf *b, uint8_t type, uint32_t v);
int msg_decode_u32(uint32_t *ret, const struct frame *f, struct error *err);

/* Allocates an array of @size-byte elements for a count read from @r. NULL marks the failure in @r;
 * the caller frees. */
void *msg_take_array(struct reader *r, size_t max, size_t size, uint32_t *ret_n);
