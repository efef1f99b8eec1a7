/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/cpu_mask.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

/* Processors beyond the mask are dropped. */
void cpu_mask_add(struct cpu_mask *m, uint32_t cpu)
{
        if (cpu < CPU_MASK_BITS)
                m->words[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

bool cpu_mask_has(const struct cpu_mask *m, uint32_t cpu)
{
        return cpu < CPU_MASK_BITS && m->words[cpu / 64] >> cpu % 64 & 1;
}

bool cpu_mask_is_empty(const struct cpu_mask *m)
{
        return cpu_mask_next(m, 0) == CPU_NONE;
}

bool cpu_mask_is_equal(const struct cpu_mask *a, const struct cpu_mask *b)
{
        return !memcmp(a, b, sizeof(*a));
}

uint32_t cpu_mask_count(const struct cpu_mask *m)
{
        uint32_t n = 0;

        for (size_t i = 0; i < CPU_MASK_WORDS; i++)
                n += (uint32_t)__builtin_popcountll(m->words[i]);
        return n;
}

/* Whole words are passed over at once: a mask has 256 words, of which few are not 0. */
uint32_t cpu_mask_next(const struct cpu_mask *m, uint32_t from)
{
        for (uint32_t i = from / 64; i < CPU_MASK_WORDS; i++) {
                uint64_t word = m->words[i];

                if (i == from / 64)
                        word &= UINT64_MAX << from % 64;
                if (word)
                        return i * 64 + (uint32_t)__builtin_ctzll(word);
        }
        return CPU_NONE;
}

void cpu_mask_and(struct cpu_mask *to, const struct cpu_mask *with)
{
        for (size_t i = 0; i < CPU_MASK_WORDS; i++)
                to->words[i] &= with->words[i];
}

void cpu_mask_or(struct cpu_mask *to, const struct cpu_mask *with)
{
        for (size_t i = 0; i < CPU_MASK_WORDS; i++)
                to->words[i] |= with->words[i];
}

void cpu_mask_without(struct cpu_mask *to, const struct cpu_mask *those)
{
        for (size_t i = 0; i < CPU_MASK_WORDS; i++)
                to->words[i] &= ~those->words[i];
}

/* Reads a number below CPU_MASK_BITS. */
static bool read_processor(const char **text, const char *end, uint32_t *ret)
{
        const char *p = *text;
        uint32_t n = 0;

        for (; p < end && isdigit((unsigned char)*p); p++) {
                n = n * 10 + (uint32_t)(*p - '0');
                if (n >= CPU_MASK_BITS)
                        return false;
        }
        if (p == *text)
                return false;
        *text = p;
        *ret = n;
        return true;
}

/* @to has the processors read so far after a failure. */
int cpu_mask_parse(struct cpu_mask *to, const char *text, size_t len)
{
        const char *end = text + len;
        uint32_t first, last;

        memset(to, 0, sizeof(*to));
        if (end > text && end[-1] == '\n')
                end--;
        while (text < end) {
                if (!read_processor(&text, end, &first))
                        return -EINVAL;
                last = first;
                if (text < end && *text == '-') {
                        text++;
                        if (!read_processor(&text, end, &last) || last < first)
                                return -EINVAL;
                }
                for (uint32_t cpu = first; cpu <= last; cpu++)
                        cpu_mask_add(to, cpu);
                if (text == end)
                        return 0;
                /* A comma is between two. */
                if (*text++ != ',' || text == end)
                        return -EINVAL;
        }
        return 0;
}

/* A range of two is written with a dash as well, as the kernel writes it. */
char *cpu_mask_format(const struct cpu_mask *m)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        uint32_t first = cpu_mask_next(m, 0), last;

        for (; first != CPU_NONE; first = cpu_mask_next(m, last + 1)) {
                for (last = first; cpu_mask_has(m, last + 1);)
                        last++;
                buf_printf(&b, "%s%u", buf_len(&b) ? "," : "", first);
                if (last > first)
                        buf_printf(&b, "-%u", last);
        }
        return xstrndup((const char *)buf_data(&b), buf_len(&b));
}
