/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read with the first search for a hash: a launch with an unchanged environment needs
 * no hash. The file has a head, records of a fixed size in any order, and a hash of all bytes
 * before. In memory, a table of places (open addressing) leads to the records. A record notes the
 * day of the last use; if there are too many records, the longest unused are left out.
 */
#include "head/push/hash_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium/crypto_generichash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum {
        RECORDS_MAX = 400000,
        FILE_MAX = 64 << 20,
        CHECK = 32,     /* bytes of the hash at the end */
        KEEP_DAYS = 60, /* of records without a use */
        YOUNG_S = 2,    /* a file changed within this time is not remembered */
};

/* As in the file. The byte order is the machine's, since only this machine reads the file. */
struct record {
        struct hash_key key;
        uint32_t day; /* of the last use */
        unsigned char sha[PUSH_SHA];
        uint8_t stamped;
};

struct head {
        char magic[8];
        uint64_t size, n; /* of a record; records */
};

struct hash_memory {
        char *path;
        struct record *v;
        size_t n, cap;
        uint32_t *table; /* place in v and 1; 0 = free */
        size_t mask;
        uint32_t today;
        int64_t young_ns;
        bool loaded, changed;
};

static const char magic[8] = "HNHASH1\n";

static size_t hash_of_key(const struct hash_key *k)
{
        uint64_t h =
                k->ino * UINT64_C(0x9e3779b97f4a7c15) ^ k->dev ^ (uint64_t)k->mtime_ns ^ k->stamp;

        h ^= h >> 29;
        h *= UINT64_C(0xbf58476d1ce4e5b9);
        return (size_t)(h ^ h >> 32);
}

struct hash_key hash_memory_key(const struct stat *st)
{
        return (struct hash_key){
                .dev = st->st_dev,
                .ino = st->st_ino,
                .size = (uint64_t)st->st_size,
                .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                .ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec
        };
}

bool hash_memory_same(const struct hash_key *a, const struct hash_key *b)
{
        return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
               a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns && a->stamp == b->stamp;
}

/* Returns the place of the key in the table, or the free place for the key. */
static uint32_t *find_table_place(const struct hash_memory *m, const struct hash_key *key)
{
        size_t i = hash_of_key(key) & m->mask;

        while (m->table[i] && !hash_memory_same(&m->v[m->table[i] - 1].key, key))
                i = (i + 1) & m->mask;
        return &m->table[i];
}

/* Makes the table, large enough until the number of records has doubled. */
static void build_table(struct hash_memory *m)
{
        size_t size = 1024;

        while (size < 4 * m->n)
                size *= 2;
        free(m->table);
        m->table = xcalloc(size, sizeof(*m->table));
        m->mask = size - 1;
        for (size_t i = 0; i < m->n; i++)
                *find_table_place(m, &m->v[i].key) = (uint32_t)i + 1;
}

int64_t hash_memory_young(void)
{
        return ((int64_t)time(NULL) - YOUNG_S) * 1000000000;
}

char *hash_memory_place(const char *name)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        CLEANUP(free_textp) char *folder = NULL;
        char *path;

        if (cache && *cache == '/')
                folder = xstrdup(cache);
        else if (home && *home == '/' && access(home, W_OK) == 0)
                folder = xasprintf("%s/.cache", home);
        else
                return NULL;
        mkdir(folder, 0700);
        path = xasprintf("%s/hnlaunch", folder);
        mkdir(path, 0700);
        free(folder);
        folder = path;
        return xasprintf("%s/%s", folder, name);
}

/* Reads the file. A damaged file leaves the memory empty. */
static void read_hashes(struct hash_memory *m)
{
        CLEANUP(free_textp) char *text = NULL;
        unsigned char sum[CHECK];
        struct head head;
        size_t len = 0, bytes;

        if (fd_read_regular(AT_FDCWD, m->path, FILE_MAX, &text, &len) < 0 ||
            len < sizeof(head) + CHECK)
                return;
        memcpy(&head, text, sizeof(head));
        bytes = len - CHECK;
        crypto_generichash(sum, sizeof(sum), (unsigned char *)text, bytes, NULL, 0);
        if (memcmp(head.magic, magic, sizeof(magic)) != 0 || head.size != sizeof(struct record) ||
            head.n > RECORDS_MAX || bytes != sizeof(head) + head.n * sizeof(struct record) ||
            memcmp(sum, text + bytes, CHECK) != 0)
                return;
        m->n = m->cap = (size_t)head.n;
        m->v = xcalloc(m->cap + 1, sizeof(*m->v));
        memcpy(m->v, text + sizeof(head), m->n * sizeof(*m->v));
}

struct hash_memory *hash_memory_open(void)
{
        struct hash_memory *m = xcalloc(1, sizeof(*m));

        m->today = (uint32_t)(time(NULL) / 86400);
        m->young_ns = hash_memory_young();
        return m;
}

static void load_hashes(struct hash_memory *m)
{
        if (m->loaded)
                return;
        m->path = hash_memory_place("hashes");
        if (m->path)
                read_hashes(m);
        build_table(m);
        m->loaded = true;
}

bool hash_memory_find(struct hash_memory *m, const struct hash_key *key,
                      unsigned char sha[PUSH_SHA], bool *ret_stamped)
{
        struct record *r;
        uint32_t at;

        load_hashes(m);
        at = *find_table_place(m, key);
        if (!at)
                return false;
        r = &m->v[at - 1];
        memcpy(sha, r->sha, PUSH_SHA);
        *ret_stamped = r->stamped;
        /* The day may be up to a week old, or the file would be written each day. */
        if (r->day + 7 < m->today) {
                r->day = m->today;
                m->changed = true;
        }
        return true;
}

void hash_memory_add(struct hash_memory *m, const struct hash_key *key,
                     const unsigned char sha[PUSH_SHA], bool stamped)
{
        struct record *r;

        load_hashes(m);
        if (m->n >= RECORDS_MAX || key->mtime_ns > m->young_ns || key->ctime_ns > m->young_ns ||
            *find_table_place(m, key))
                return;
        if (m->n == m->cap) {
                m->cap = m->cap ? 2 * m->cap : 1024;
                m->v = xrealloc(m->v, m->cap, sizeof(*m->v));
        }
        r = &m->v[m->n++];
        memset(r, 0, sizeof(*r));
        r->key = *key;
        r->day = m->today;
        r->stamped = stamped;
        memcpy(r->sha, sha, PUSH_SHA);
        m->changed = true;
        if (2 * m->n > m->mask)
                build_table(m);
        else
                *find_table_place(m, key) = (uint32_t)m->n;
}

/* Leaves out records without a use for KEEP_DAYS, or for a week if there is little room. */
static void drop_old(struct hash_memory *m)
{
        uint32_t days = m->n > RECORDS_MAX / 2 ? 7 : KEEP_DAYS;
        size_t n = 0;

        for (size_t i = 0; i < m->n; i++)
                if (m->v[i].day + days >= m->today)
                        m->v[n++] = m->v[i];
        m->n = n;
}

static int write_records(const struct hash_memory *m, int fd)
{
        struct head head = { .size = sizeof(*m->v), .n = m->n };
        crypto_generichash_state state;
        unsigned char sum[CHECK];
        int r;

        memcpy(head.magic, magic, sizeof(magic));
        crypto_generichash_init(&state, NULL, 0, CHECK);
        crypto_generichash_update(&state, (unsigned char *)&head, sizeof(head));
        crypto_generichash_update(&state, (unsigned char *)m->v, m->n * sizeof(*m->v));
        crypto_generichash_final(&state, sum, CHECK);
        r = fd_write_all(fd, &head, sizeof(head));
        if (r == 0)
                r = fd_write_all(fd, m->v, m->n * sizeof(*m->v));
        return r == 0 ? fd_write_all(fd, sum, CHECK) : r;
}

/* A failed write is no error: the next launch reads the files again. */
static void write_hashes(struct hash_memory *m)
{
        CLEANUP(free_textp) char *temp = xasprintf("%s.%ld", m->path, (long)getpid());
        int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), r;

        if (fd < 0)
                return;
        drop_old(m);
        r = write_records(m, fd);
        if (close(fd) < 0 || r < 0 || rename(temp, m->path) < 0)
                unlink(temp);
}

void hash_memory_close(struct hash_memory *m)
{
        if (!m)
                return;
        if (m->changed && m->path)
                write_hashes(m);
        free(m->path);
        free(m->v);
        free(m->table);
        free(m);
}
