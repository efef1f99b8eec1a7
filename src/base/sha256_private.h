/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sha256, inside: ways to mix blocks into the state
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

extern const uint32_t sha256_k[64]; /* the standard's constants */

/* Has this processor SHA instructions? Asked once per hash, since it is cheap. */
bool sha256_can_x86(void);
/* @n blocks of 64 bytes; only where the processor can. */
void sha256_mix_x86(uint32_t h[8], const unsigned char *p, size_t n);
/* The same on any machine. */
void sha256_mix_any(uint32_t h[8], const unsigned char *p, size_t n);
