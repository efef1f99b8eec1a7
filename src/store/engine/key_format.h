/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key_format: a key for a message to people. A key has up to 8 KiB of any bytes; in a sentence long
 * keys are cut, and bytes other than printable ASCII become \xNN.
 */
#pragma once

#include "wire/store_msg.h"

enum { KEY_FORMAT_SIZE = 128 };

/* Writes at most KEY_FORMAT_SIZE bytes with NUL and returns @to. A cut key ends with
 * "...". */
const char *key_format(char *to, struct bytes key);

/* The same in a buffer living to the end of the block. */
#define KEY_FORMAT(key) key_format((char[KEY_FORMAT_SIZE]){ 0 }, (key))

/* Returns "barrier", "all_gather" or "broadcast", the name of a collective's op. */
const char *store_call_name(uint8_t op);
