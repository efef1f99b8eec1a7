/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elf/loader_cache.h"

#include <stdint.h>
#include <string.h>

#include "base/macros.h"

static const char old_magic[] = "ld.so-1.7.0", new_magic[] = "glibc-ld.so.cache1.1";

struct cache_header {
        char magic[20];
        uint32_t n_entries;
        uint32_t unused[6];
};

struct cache_entry {
        int32_t flags;
        uint32_t name, path; /* offsets from the header */
        uint32_t os;
        uint64_t processor; /* 0 = any */
};

/* Returns the offset of the new format, which may stand behind the old one. */
static size_t find_cache_header(const char *data, size_t len)
{
        enum { OLD_HEADER = 16, OLD_ENTRY = 12, ALIGNMENT = 8 };
        uint32_t n;

        if (len < OLD_HEADER || memcmp(data, old_magic, sizeof(old_magic) - 1) != 0)
                return 0;
        memcpy(&n, data + OLD_HEADER - sizeof(n), sizeof(n));
        return (OLD_HEADER + (size_t)n * OLD_ENTRY + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

const char *loader_cache_find(const char *data, size_t len, const char *name, size_t *at)
{
        size_t begin = find_cache_header(data, len);
        struct cache_header head;
        struct cache_entry e;

        if (begin > len || len - begin < sizeof(head))
                return NULL;
        data += begin;
        len -= begin;
        memcpy(&head, data, sizeof(head));
        if (memcmp(head.magic, new_magic, sizeof(head.magic)) != 0)
                return NULL;
        while (*at < MIN((size_t)head.n_entries, (len - sizeof(head)) / sizeof(e))) {
                memcpy(&e, data + sizeof(head) + (*at)++ * sizeof(e), sizeof(e));
                if (!e.processor && e.name < len && e.path < len && !strcmp(data + e.name, name))
                        return data + e.path;
        }
        return NULL;
}
