/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locals: the ranks that a relay has seen and that may come again
 *
 * What it waits for before it sends on who comes to a meeting, never for long: so a rank that is
 * here wrongly costs time, and one that is not costs a message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct locals {
        struct local *all;
};

void locals_add(struct locals *l, uint32_t rank); /* again is fine */
void locals_remove(struct locals *l, uint32_t rank);
bool locals_has(const struct locals *l, uint32_t rank);
uint32_t locals_count(const struct locals *l);
/* Forgets those of whom @come says that they have not. */
void locals_sift(struct locals *l, bool (*come)(const void *ctx, uint32_t rank), const void *ctx);
void locals_finish(struct locals *l);
