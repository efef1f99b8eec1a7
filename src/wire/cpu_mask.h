/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cpu_mask: a set of processors, read and written as the kernel's lists: "0-3,8"
 *
 * Pure. The words have the layout of sched_setaffinity(2) on little-endian machines.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        CPU_MASK_BITS = 16384,
        CPU_MASK_WORDS = CPU_MASK_BITS / 64,
        CPU_NONE = UINT16_MAX, /* is no processor */
};

struct cpu_mask {
        uint64_t words[CPU_MASK_WORDS];
};

void cpu_mask_add(struct cpu_mask *m, uint32_t cpu);
bool cpu_mask_has(const struct cpu_mask *m, uint32_t cpu);
bool cpu_mask_is_empty(const struct cpu_mask *m);
bool cpu_mask_is_equal(const struct cpu_mask *a, const struct cpu_mask *b);
uint32_t cpu_mask_count(const struct cpu_mask *m);
/* Returns the first processor from @from on; CPU_NONE = there is none. */
uint32_t cpu_mask_next(const struct cpu_mask *m, uint32_t from);
void cpu_mask_and(struct cpu_mask *to, const struct cpu_mask *with);
void cpu_mask_or(struct cpu_mask *to, const struct cpu_mask *with);
void cpu_mask_without(struct cpu_mask *to, const struct cpu_mask *those);

/* Reads a list such as "0-3,8", of the first @len bytes; a newline may follow. 0, or -EINVAL. An
 * empty list is an empty set. */
int cpu_mask_parse(struct cpu_mask *to, const char *text, size_t len);
/* Returns such a list; malloc'ed, "" = an empty set. */
char *cpu_mask_format(const struct cpu_mask *m);
