/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dice: numbers of chance that are the same in every run
 */
#pragma once

#include <stdint.h>

/* Each test sets it. */
static uint64_t seed;

/* Returns a number below @sides. */
static inline uint32_t dice(uint32_t sides)
{
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(seed >> 33) % sides;
}
