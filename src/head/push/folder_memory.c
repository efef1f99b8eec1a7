/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file has a head, the entries, the texts of the entries, padding, and a sum of all bytes
 * before. The file is read as a whole, and used in place. The sum detects accidental damage and
 * must be quick: 25,000 entries take 5 MB.
 *
 * Threads share the comparison with the disk, since on a file system of the network each thread
 * waits for a server. A thread takes LOOKS entries at a time. All threads stop at the first
 * difference.
 */
#include "head/push/folder_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium/crypto_generichash.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/core/thread_pool.h"
#include "wire/msg.h"

enum {
        FILE_MOST = 64 << 20,
        FOLDERS_MAX = 8, /* remembered manifests */
        LOOKERS = 8,     /* threads */
        LOOKS = 256,     /* entries that a thread takes at once */
        NAME = 16,       /* bytes of a hash */
};

struct folder_head {
        char magic[8];
        uint64_t version; /* MSG_VERSION: the hash of the manifest may depend on the version */
        uint64_t n, text_bytes, whole;
        struct hash_key folder, python;
        unsigned char python_sha[PUSH_SHA];
        struct folder_sum sum;
};

struct folder_memory {
        char *path; /* NULL = no place for memories */
        int fd;     /* of the folder, -1 = cannot be opened */
        struct folder_head head;
        struct hash_key now; /* of the folder, when the memory was opened */
        char *file;          /* as read, NULL = nothing */
        size_t len;
        const struct folder_entry *v;
        const char *text;
        struct buf entries, texts; /* as added */
        int64_t young_ns;          /* later changes are not remembered */
        uint32_t top;              /* of the last entry */
        bool changed, unsure;
};

static const char folder_magic[8] = "HNFOLD2\n";

/* --- the file --------------------------------------------------------------------------------- */

static uint64_t add_words(uint64_t sum, const void *data, size_t len)
{
        const unsigned char *p = data;
        uint64_t word;

        for (; len; p += sizeof(word), len -= sizeof(word)) {
                memcpy(&word, p, sizeof(word));
                sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
                sum ^= sum >> 32;
        }
        return sum;
}

/* Returns the path for the folder, malloc'ed; @dev is a part of the name, since machines with the
 * same home may have other numbers for the file system. NULL = no place for memories. */
static char *name_folder_file(const char *dir, const char *what, uint64_t dev)
{
        CLEANUP(free_textp) char *folder = hash_memory_place("folders");
        CLEANUP(free_textp)
        char *text =
                xasprintf("%ju %s%s%s", (uintmax_t)dev, dir, what ? "\n" : "", what ? what : "");
        unsigned char sum[NAME];
        char name[2 * NAME + 1];

        if (!folder)
                return NULL;
        mkdir(folder, 0700);
        crypto_generichash(sum, sizeof(sum), (unsigned char *)text, strlen(text), NULL, 0);
        for (int i = 0; i < NAME; i++)
                snprintf(name + 2 * i, 3, "%02x", sum[i]);
        return xasprintf("%s/%s", folder, name);
}

static bool entries_are_sound(const struct folder_memory *m)
{
        for (uint64_t i = 0; i < m->head.n; i++)
                if (m->v[i].place >= m->head.text_bytes || m->v[i].target >= m->head.text_bytes ||
                    m->v[i].path >= m->head.text_bytes || m->v[i].top >= m->head.text_bytes)
                        return false;
        return !m->head.n || !m->text[m->head.text_bytes - 1];
}

/* Checks the head, and finds the parts behind the head. False: damaged, or of another version. */
static bool parse_folder_file(struct folder_memory *m, const char *file, size_t len)
{
        struct folder_head *h = &m->head;
        uint64_t sum;

        if (len < sizeof(*h) + sizeof(sum) || len % sizeof(sum))
                return false;
        memcpy(h, file, sizeof(*h));
        len -= sizeof(sum);
        memcpy(&sum, file + len, sizeof(sum));
        if (memcmp(h->magic, folder_magic, sizeof(folder_magic)) != 0 ||
            h->version != MSG_VERSION || h->n > PUSH_ENTRIES_MAX || h->text_bytes > FILE_MOST ||
            len != sizeof(*h) + h->n * sizeof(*m->v) + h->text_bytes ||
            sum != add_words(0, file, len))
                return false;
        m->v = (const struct folder_entry *)(file + sizeof(*h));
        m->text = file + sizeof(*h) + h->n * sizeof(*m->v);
        return entries_are_sound(m);
}

static void read_folder_file(struct folder_memory *m)
{
        if (fd_read_regular(AT_FDCWD, m->path, FILE_MOST, &m->file, &m->len) == 0 &&
            parse_folder_file(m, m->file, m->len))
                return;
        m->head = (struct folder_head){ 0 };
        free(STEAL(&m->file));
}

/* Removes the longest unused file if there are more than FOLDERS_MAX. Unfinished files count. */
static void remove_old_folder(const char *path)
{
        CLEANUP(free_textp)
        char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path)), *oldest = NULL;
        DIR *d = opendir(folder);
        struct timespec age = { 0 };
        struct dirent *e;
        struct stat st;
        int n = 0;

        while (d && (e = readdir(d))) {
                if (*e->d_name == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                n++;
                if (oldest &&
                    (st.st_mtim.tv_sec > age.tv_sec ||
                     (st.st_mtim.tv_sec == age.tv_sec && st.st_mtim.tv_nsec >= age.tv_nsec)))
                        continue;
                free(oldest);
                oldest = xstrdup(e->d_name);
                age = st.st_mtim;
        }
        if (n > FOLDERS_MAX)
                unlinkat(dirfd(d), oldest, 0);
        if (d)
                closedir(d);
}

static int write_folder_parts(const struct folder_memory *m, int fd)
{
        size_t n = m->head.n * sizeof(*m->v);
        uint64_t sum = add_words(0, &m->head, sizeof(m->head));
        int r = fd_write_all(fd, &m->head, sizeof(m->head));

        if (r == 0)
                r = fd_write_all(fd, m->v, n);
        if (r == 0)
                r = fd_write_all(fd, m->text, m->head.text_bytes);
        sum = add_words(add_words(sum, m->v, n), m->text, m->head.text_bytes);
        return r == 0 ? fd_write_all(fd, &sum, sizeof(sum)) : r;
}

static void write_folder_file(const struct folder_memory *m)
{
        CLEANUP(free_textp) char *temp = xasprintf("%s.%ld", m->path, (long)getpid());
        int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), r;

        if (fd < 0)
                return;
        r = write_folder_parts(m, fd);
        if (close(fd) < 0 || r < 0 || rename(temp, m->path) < 0)
                unlink(temp);
        else
                remove_old_folder(m->path);
}

struct folder_memory *folder_memory_open(const char *dir, const char *what)
{
        struct folder_memory *m = xcalloc(1, sizeof(*m));
        struct stat st;

        m->young_ns = hash_memory_young();
        m->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (m->fd < 0 || fstat(m->fd, &st) < 0)
                return m;
        m->now = hash_memory_key(&st);
        m->path = name_folder_file(dir, what, m->now.dev);
        if (m->path)
                read_folder_file(m);
        return m;
}

/* --- looking ---------------------------------------------------------------------------------- */

struct looking {
        const struct folder_memory *m;
        atomic_uint next; /* entry */
        atomic_bool differs;
};

static const char *find_entry_source(const struct folder_memory *m, uint32_t i)
{
        return m->text + (m->v[i].path ? m->v[i].path : m->v[i].place);
}

/* Returns the length of the path of the deepest folder that has all of these entries, with the last
 * slash. */
static size_t count_common(const struct folder_memory *m, uint32_t from, uint32_t end)
{
        const char *first = find_entry_source(m, from), *slash = strrchr(first, '/');
        size_t common = slash ? (size_t)(slash - first) + 1 : 0;

        for (uint32_t i = from + 1; i < end && common; i++) {
                const char *path = find_entry_source(m, i);
                size_t same = 0;

                while (same < common && path[same] == first[same])
                        same++;
                while (same && first[same - 1] != '/')
                        same--;
                common = same;
        }
        return common;
}

static bool entry_is_true(const struct folder_entry *e, int dir, const char *name)
{
        struct hash_key now;
        struct stat st;

        if (fstatat(dir, name, &st, e->look ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
                return false;
        if (S_ISLNK(e->mode))
                return S_ISLNK(st.st_mode);
        if (e->look == FOLDER_LOOK_RIGHTS)
                return st.st_mode == e->mode;
        now = hash_memory_key(&st);
        now.stamp = e->key.stamp;
        return st.st_mode == e->mode && hash_memory_same(&now, &e->key);
}

/* Compares some entries with the disk. Starts in the deepest folder with all of them, so the kernel
 * resolves only the rest of each path. */
static bool entries_are_true(const struct folder_memory *m, uint32_t from, uint32_t end)
{
        const char *first = find_entry_source(m, from);
        size_t common = count_common(m, from, end);
        char folder[PUSH_PATH_MAX + 1];
        CLEANUP(fd_closep) int dir = -1;

        if (common >= sizeof(folder))
                common = 0;
        snprintf(folder, sizeof(folder), "%.*s", (int)MAX(common, (size_t)1), common ? first : ".");
        dir = openat(m->fd, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (uint32_t i = from; i < end && dir >= 0; i++)
                if (!entry_is_true(&m->v[i], dir, find_entry_source(m, i) + common))
                        return false;
        return dir >= 0;
}

static void *compare_entries(void *arg)
{
        struct looking *l = arg;
        uint32_t n = (uint32_t)l->m->head.n, i;

        while (!atomic_load(&l->differs) && (i = atomic_fetch_add(&l->next, LOOKS)) < n)
                if (!entries_are_true(l->m, i, MIN(i + LOOKS, n)))
                        atomic_store(&l->differs, true);
        return NULL;
}

bool folder_memory_is_true(struct folder_memory *m)
{
        struct looking l = { .m = m };
        pthread_t threads[LOOKERS];
        int n = 0;

        if (!m->head.n || (m->head.whole && !hash_memory_same(&m->now, &m->head.folder)))
                return false;
        /* This thread compares, too, and alone if no other thread can be started. */
        while (n < LOOKERS - 1 && (uint64_t)(n + 1) * LOOKS < m->head.n &&
               thread_start(&threads[n], compare_entries, &l) == 0)
                n++;
        compare_entries(&l);
        while (n)
                pthread_join(threads[--n], NULL);
        if (atomic_load(&l.differs))
                return false;
        utimensat(AT_FDCWD, m->path, NULL, 0); /* the longest unused is removed first */
        return true;
}

/* --- entries ---------------------------------------------------------------------------------- */

uint32_t folder_memory_entries(const struct folder_memory *m)
{
        return (uint32_t)m->head.n;
}

const struct folder_entry *folder_memory_entry(const struct folder_memory *m, uint32_t i)
{
        return &m->v[i];
}

const char *folder_memory_text(const struct folder_memory *m, uint32_t at)
{
        return m->text + at;
}

bool folder_memory_has(const struct folder_memory *m, const char *text)
{
        return m && m->file && text >= m->file && text < m->file + m->len;
}

const struct folder_sum *folder_memory_sum(const struct folder_memory *m)
{
        return &m->head.sum;
}

void folder_memory_begin(struct folder_memory *m, const struct folder_sum *sum, bool whole)
{
        m->head.n = 0;
        m->head.sum = *sum;
        m->head.whole = whole;
        m->top = 0;
        buf_clear(&m->entries);
        buf_clear(&m->texts);
        buf_append(&m->texts, "", 1);
        m->changed = true;
        m->unsure = whole && (m->now.mtime_ns > m->young_ns || m->now.ctime_ns > m->young_ns);
}

static uint32_t add_folder_text(struct folder_memory *m, const char *text)
{
        size_t at = buf_len(&m->texts);

        buf_append(&m->texts, text, strlen(text) + 1);
        return (uint32_t)at;
}

void folder_memory_add(struct folder_memory *m, const struct folder_entry *e,
                       const struct push_entry *sent, const struct folder_source *from)
{
        struct folder_entry to = *e;

        if (strcmp((char *)buf_data(&m->texts) + m->top, from->top) != 0)
                m->top = add_folder_text(m, from->top);
        if (!S_ISLNK(e->mode) && e->look != FOLDER_LOOK_RIGHTS)
                m->unsure |= e->key.mtime_ns > m->young_ns || e->key.ctime_ns > m->young_ns;
        to.kind = sent->kind;
        to.rights = (uint16_t)sent->mode;
        to.size = sent->size;
        memcpy(to.sha, sent->sha, PUSH_SHA);
        to.place = add_folder_text(m, sent->path);
        to.target = sent->target ? add_folder_text(m, sent->target) : 0;
        to.path = from->path ? add_folder_text(m, from->path) : 0;
        to.top = m->top;
        buf_append(&m->entries, &to, sizeof(to));
        m->head.n++;
}

bool folder_memory_is_sent(const struct folder_memory *m, uint32_t i, const struct push_entry *now)
{
        const struct folder_entry *e = &m->v[i];

        return now->kind == e->kind && now->mode == e->rights && now->size == e->size &&
               memcmp(now->sha, e->sha, PUSH_SHA) == 0 &&
               strcmp(now->target ? now->target : "", m->text + e->target) == 0;
}

bool folder_memory_find_python(const struct folder_memory *m, const struct hash_key *key,
                               unsigned char sha[PUSH_SHA])
{
        if (!hash_memory_same(key, &m->head.python))
                return false;
        memcpy(sha, m->head.python_sha, PUSH_SHA);
        return true;
}

void folder_memory_set_python(struct folder_memory *m, const struct hash_key *key,
                              const unsigned char sha[PUSH_SHA])
{
        if (key->mtime_ns > m->young_ns || key->ctime_ns > m->young_ns)
                return;
        m->head.python = *key;
        memcpy(m->head.python_sha, sha, PUSH_SHA);
        m->changed = true;
}

/* Completes the head, and pads the texts to whole words. */
static void complete_folder(struct folder_memory *m)
{
        while (buf_len(&m->texts) % sizeof(uint64_t) && !buf_failed(&m->texts))
                buf_append(&m->texts, "", 1);
        memcpy(m->head.magic, folder_magic, sizeof(folder_magic));
        m->head.version = MSG_VERSION;
        m->head.folder = m->now;
        m->head.text_bytes = buf_len(&m->texts);
        m->v = (const struct folder_entry *)buf_data(&m->entries);
        m->text = (const char *)buf_data(&m->texts);
}

void folder_memory_save(struct folder_memory *m)
{
        if (!m)
                return;
        if (buf_len(&m->entries))
                complete_folder(m);
        if (m->changed && !m->unsure && m->path && m->head.n && !buf_failed(&m->entries) &&
            !buf_failed(&m->texts))
                write_folder_file(m);
        m->head.n = 0;
        m->fd = fd_close(m->fd);
        buf_finish(&m->entries);
        buf_finish(&m->texts);
}

void folder_memory_close(struct folder_memory *m)
{
        if (!m)
                return;
        fd_close(m->fd);
        buf_finish(&m->entries);
        buf_finish(&m->texts);
        free(m->file);
        free(m->path);
        free(m);
}
