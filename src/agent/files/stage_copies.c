/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders are found by their notes, ROOT/ID.keep, in all places of cache_dir(). A folder is in use
 * while the folder's lock is shared. The size of a root is the sum of its contents, each counted
 * once, whatever number of folders link the content.
 */
#include "agent/files/stage_copies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium/crypto_hash_sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "agent/files/cache_dir.h"
#include "base/fd.h"
#include "base/memory.h"

enum {
        NOTE_MAX = PUSH_PATH_MAX + 150,
        LOOK_AGAIN_S = 86400,
        READ_SIZE = 64 << 10,
        LOOKS = 3,
        LOOK_US = 1000
};

/* --- notes ------------------------------------------------------------------------------------ */

/* The line in ROOT/ID.keep: use, bytes, files, links, second of the last count, name. */
struct note {
        unsigned use;
        uint64_t bytes, files, links;
        int64_t seen; /* last time without a missing file; seconds since 1970 */
        const char *name;
};

static int write_note(const char *root, const char *id, const struct note *n)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.keep", root, id);
        CLEANUP(fd_closep)
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                      0600);
        CLEANUP(free_textp)
        char *text = xasprintf("%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %s", n->use,
                               n->bytes, n->files, n->links, n->seen, n->name);

        return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

int stage_write_note(const char *root, const char *id, const struct push_offer *o)
{
        struct note n = { .use = o->label.use,
                          .seen = time(NULL),
                          .name = o->label.name ? o->label.name : "" };

        for (uint32_t i = 0; i < o->manifest.n; i++) {
                n.bytes += o->manifest.v[i].kind == PUSH_FILE ? o->manifest.v[i].size : 0;
                n.files += o->manifest.v[i].kind == PUSH_FILE;
                n.links += o->manifest.v[i].kind == PUSH_LINK;
        }
        return write_note(root, id, &n);
}

/* Reads the note @name of the folder @dir; *@ret_text owns the name. False: no note. */
static bool read_note(int dir, const char *name, struct note *ret, char **ret_text)
{
        int at = 0;

        if (fd_read_regular(dir, name, NOTE_MAX, ret_text, NULL) < 0)
                return false;
        *ret = (struct note){ .use = PUSH_RANKS };
        /* Notes of earlier versions are empty. */
        if (sscanf(*ret_text, "%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %n", &ret->use,
                   &ret->bytes, &ret->files, &ret->links, &ret->seen, &at) < 5 ||
            ret->use >= PUSH_USES)
                ret->use = PUSH_RANKS;
        ret->name = *ret_text + at;
        return true;
}

bool stage_is_whole(const char *root, const char *id, bool look)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.keep", root, id), *text = NULL;
        int64_t now = time(NULL);
        uint64_t files, links;
        struct note n;

        if (!read_note(AT_FDCWD, path, &n, &text))
                return false;
        if (!look && now >= n.seen && now - n.seen < LOOK_AGAIN_S)
                return true;
        cache_count(root, id, &files, &links);
        if (files != n.files || links < n.links)
                return false;
        n.seen = now;
        write_note(root, id, &n);
        return true;
}

void stage_mark_used(const char *root, const char *id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.keep", root, id);

        utimensat(AT_FDCWD, path, NULL, 0);
}

/* Tries again, because another node that reads a shared folder holds the lock for a moment. */
static bool is_in_use(const char *root, const char *id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root, id);
        CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
        bool in_use = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;

        for (int i = 0; i < LOOKS && in_use; i++) {
                usleep(LOOK_US);
                in_use = flock(fd, LOCK_EX | LOCK_NB) < 0;
        }
        return in_use;
}

/* Fills in @to from the note @name of the folder @dir. False: no note, or the folder is gone. */
static bool read_copy(const char *root, int dir, const char *name, struct staged_copy *to)
{
        size_t n = strlen(name), tail = strlen(".keep");
        CLEANUP(free_textp) char *id = n > tail ? xstrndup(name, n - tail) : NULL;
        CLEANUP(free_textp) char *text = NULL;
        struct stat st;
        struct note note;

        if (!id || strcmp(name + n - tail, ".keep") != 0 || faccessat(dir, id, F_OK, 0) < 0 ||
            fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !read_note(dir, name, &note, &text))
                return false;
        to->use = (uint8_t)note.use;
        to->bytes = note.bytes;
        to->files = note.files;
        to->folder = xasprintf("%s/%s", root, id);
        to->name = xstrdup(note.name);
        to->age_s = (uint64_t)MAX(time(NULL) - st.st_mtime, (time_t)0);
        to->in_use = is_in_use(root, id);
        return true;
}

/* Adds the folders of a root. */
static void list_root(const char *root, struct staged *to)
{
        DIR *d = cache_dir_is_usable(root, false) ? opendir(root) : NULL;
        struct dirent *e;

        while (d && to->n < STAGED_MAX && (e = readdir(d))) {
                struct staged_copy c = { 0 };

                if (*e->d_name == '.' || !read_copy(root, dirfd(d), e->d_name, &c))
                        continue;
                to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));
                to->v[to->n++] = c;
        }
        if (d)
                closedir(d);
}

/* --- removing --------------------------------------------------------------------------------- */

/* Returns the bytes of all contents of a root. */
static uint64_t count_bytes(const char *root)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/file", root);
        DIR *d = opendir(path);
        struct dirent *e;
        uint64_t sum = 0;
        struct stat st;

        while (d && (e = readdir(d)))
                if (*e->d_name != '.' &&
                    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                        sum += (uint64_t)st.st_size;
        if (d)
                closedir(d);
        return sum;
}

static bool remove_staged_copy(const char *root, struct staged_copy *c)
{
        c->removed =
                !c->in_use && !c->removed && cache_remove_kept(root, strrchr(c->folder, '/') + 1);
        return c->removed;
}

/* Returns the removable folder with the oldest use; NULL = none. */
static struct staged_copy *find_oldest_copy(const struct staged *all, const bool *tried,
                                            bool pushed)
{
        struct staged_copy *oldest = NULL;

        for (uint32_t i = 0; i < all->n; i++)
                if (!tried[i] && !all->v[i].in_use && !all->v[i].removed &&
                    (pushed || all->v[i].use != PUSH_RANKS) &&
                    (!oldest || all->v[i].age_s > oldest->age_s))
                        oldest = &all->v[i];
        return oldest;
}

/* @pushed: also folders of --push-keep. */
static void remove_oldest_copies(const char *root, struct staged *all, uint64_t need,
                                 uint64_t limit, bool pushed)
{
        bool *tried = xcalloc(all->n + 1, sizeof(*tried));
        uint64_t have = limit ? count_bytes(root) : 0;
        struct staged_copy *c;
        struct statvfs v;

        for (;;) {
                bool is_full = statvfs(root, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize < need;

                if (!is_full && (!limit || have + need <= limit))
                        break;
                c = find_oldest_copy(all, tried, pushed);
                if (!c)
                        break;
                tried[c - all->v] = true;
                if (remove_staged_copy(root, c) && limit)
                        have = count_bytes(root);
        }
        free(tried);
}

void stage_make_room(const char *root, uint64_t need, uint64_t limit)
{
        struct staged all = { 0 };

        list_root(root, &all);
        remove_oldest_copies(root, &all, need, limit, false);
        staged_finish(&all);
}

void stage_copies_run(const struct stage_order *o, struct staged *ret)
{
        *ret = (struct staged){ 0 };
        for (int i = 0; i < FILE_CACHE_PLACES; i++) {
                CLEANUP(free_textp) char *root = cache_dir(i);
                struct staged here = { 0 };

                if (!root)
                        continue;
                if (o->remove)
                        cache_sweep_dead(root);
                list_root(root, &here);
                for (uint32_t k = 0; k < here.n && o->remove && o->max_age_s; k++)
                        if (here.v[k].age_s >= o->max_age_s)
                                remove_staged_copy(root, &here.v[k]);
                if (o->remove)
                        remove_oldest_copies(root, &here, 0, o->limit, true);
                ret->v = xrealloc(ret->v, ret->n + here.n + 1, sizeof(*ret->v));
                if (here.n)
                        memcpy(ret->v + ret->n, here.v, here.n * sizeof(*here.v));
                ret->n += here.n;
                free(here.v);
        }
}

/* --- the Python of an environment ------------------------------------------------------------- */

static int hash_python(int fd, unsigned char sha[PUSH_SHA])
{
        CLEANUP(free_textp) char *buffer = xcalloc(1, READ_SIZE);
        crypto_hash_sha256_state sum;
        ssize_t n;

        crypto_hash_sha256_init(&sum);
        while ((n = read(fd, buffer, READ_SIZE)) > 0)
                crypto_hash_sha256_update(&sum, (unsigned char *)buffer, (size_t)n);
        crypto_hash_sha256_final(&sum, sha);
        return n < 0 ? -errno : 0;
}

static int fail_python(struct pushed *ret, int error, const char *path, const char *why)
{
        *ret = (struct pushed){ .error = (uint32_t)error };
        snprintf(ret->folder, sizeof(ret->folder), "%s", path);
        snprintf(ret->what, sizeof(ret->what), "%s", why);
        return -error;
}

int stage_check_python(const struct push_python *python, const char *root, const char *id,
                       struct pushed *ret)
{
        CLEANUP(free_textp) char *path = root ? xasprintf("%s/%s.python", root, id) : NULL;
        CLEANUP(free_textp) char *now = NULL, *before = NULL;
        CLEANUP(fd_closep) int fd = -1, note = -1;
        unsigned char sha[PUSH_SHA];
        struct stat st;

        if (!python->path || *python->path != '/')
                return 0;
        fd = open(python->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
                return fail_python(ret, ENOPKG, python->path, strerror(errno));
        if ((uint64_t)st.st_size != python->size)
                return fail_python(ret, ELIBBAD, python->path, "its size is another one");
        now = xasprintf("%s %ju %ju %ju %jd.%09ld %jd.%09ld\n", python->path, (uintmax_t)st.st_dev,
                        (uintmax_t)st.st_ino, (uintmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
                        st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        if (path && fd_read_regular(AT_FDCWD, path, NOTE_MAX, &before, NULL) == 0 &&
            !strcmp(now, before))
                return 0;
        if (hash_python(fd, sha) < 0)
                return fail_python(ret, ENOPKG, python->path, strerror(errno));
        if (memcmp(sha, python->sha, PUSH_SHA) != 0)
                return fail_python(ret, ELIBBAD, python->path, "its contents are others");
        if (path)
                note = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (note >= 0)
                fd_write_all(note, now, strlen(now));
        return 0;
}
