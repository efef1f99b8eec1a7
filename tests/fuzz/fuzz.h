/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz: the entry point that every fuzz_*.c has, called by libFuzzer or by replay.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Feeds @size untrusted bytes to a parser; aborts when one of its promises is broken. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts, which is what libFuzzer and replay.c notice, when a promise is broken. */
static inline void require(bool promise)
{
        if (!promise)
                abort();
}
