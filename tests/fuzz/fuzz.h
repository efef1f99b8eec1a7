/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz: the entry point that every fuzz_*.c has, called by libFuzzer or by replay.c
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Feeds @size untrusted bytes to a parser; aborts when one of its promises is broken. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
