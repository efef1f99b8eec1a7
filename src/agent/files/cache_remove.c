/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushed files are removed without a list: a file with the time FILE_CACHE_TIME and no write bit
 * was pushed, every other file in the folder belongs to the ranks. Folders go only when empty. A
 * content in ROOT/file goes with the last folder that linked it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files/cache_dir.h"
#include "agent/files/file_cache.h"
#include "base/fd.h"
#include "base/memory.h"

struct removal {
        bool all; /* nothing of the ranks is in there */
        size_t foreign;
        ino_t *gone; /* contents that have lost a link */
        size_t n_gone, cap;
};

static bool is_pushed(const struct stat *st)
{
        return S_ISREG(st->st_mode) && st->st_mtime == FILE_CACHE_TIME && !(st->st_mode & 0222);
}

static void count_foreign(struct removal *r, int dir UNUSED, const char *name UNUSED,
                          const struct stat *st)
{
        r->foreign += !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode) && !is_pushed(st);
}

static void remove_entry(struct removal *r, int dir, const char *name, const struct stat *st)
{
        bool pushed = is_pushed(st);

        if (S_ISDIR(st->st_mode)) {
                unlinkat(dir, name, AT_REMOVEDIR); /* fails unless empty */
                return;
        }
        if (!pushed && !r->all)
                return;
        if (unlinkat(dir, name, 0) < 0 || !pushed)
                return;
        if (r->n_gone == r->cap) {
                r->cap = r->cap ? 2 * r->cap : 64;
                r->gone = xrealloc(r->gone, r->cap, sizeof(*r->gone));
        }
        r->gone[r->n_gone++] = st->st_ino;
}

/* Calls @visit for every entry in @dir, folders after their contents, and closes @dir. */
static void walk_folder(struct removal *r, int dir,
                        void (*visit)(struct removal *, int, const char *, const struct stat *))
{
        DIR *d = dir < 0 ? NULL : fdopendir(dir);
        struct dirent *e;
        struct stat st;

        while (d && (e = readdir(d))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
                    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (S_ISDIR(st.st_mode))
                        walk_folder(r,
                                    openat(dir, e->d_name,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                                    visit);
                visit(r, dir, e->d_name, &st);
        }
        if (d)
                closedir(d);
        else
                fd_close(dir);
}

static int compare_inodes(const void *a, const void *b)
{
        ino_t x = *(const ino_t *)a, y = *(const ino_t *)b;

        return (x > y) - (x < y);
}

/* Removes contents without another link, and half-fetched files of the run. */
static void sweep_contents(struct removal *r, const char *root, const char *run_id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/file", root);
        CLEANUP(free_textp) char *temp = xasprintf(".%s-", run_id);
        DIR *d = opendir(path);
        struct dirent *e;
        struct stat st;

        if (r->n_gone)
                qsort(r->gone, r->n_gone, sizeof(*r->gone), compare_inodes);
        while (d && (e = readdir(d)))
                if (!strncmp(e->d_name, temp, strlen(temp)) ||
                    (*e->d_name != '.' && r->n_gone &&
                     bsearch(&e->d_ino, r->gone, r->n_gone, sizeof(*r->gone), compare_inodes) &&
                     fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                     st.st_nlink == 1))
                        unlinkat(dirfd(d), e->d_name, 0);
        if (d)
                closedir(d);
}

static void remove_name(const char *root, const char *id, const char *suffix)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.%s", root, id, suffix);

        unlink(path);
}

bool cache_remove(const char *root, const char *id, const char *run_id)
{
        static const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        CLEANUP(free_textp) char *tree = xasprintf("%s/%s", root, id);
        CLEANUP(free_textp) char *keep = xasprintf("%s/%s.keep", root, id);
        CLEANUP(free_textp) char *files = xasprintf("%s/file", root);
        bool kept = access(keep, F_OK) == 0, gone;
        struct removal r = { 0 };

        if (!kept) {
                walk_folder(&r, open(tree, how), count_foreign);
                r.all = !r.foreign;
                walk_folder(&r, open(tree, how), remove_entry);
        }
        gone = !kept && (rmdir(tree) == 0 || errno == ENOENT);
        sweep_contents(&r, root, run_id);
        remove_name(root, id, run_id);
        if (!kept)
                remove_name(root, id, "lock");
        if (rmdir(files) == 0)
                rmdir(root); /* if empty */
        free(r.gone);
        return gone || kept;
}

void file_cache_abandoned(const char *root, const char *id, const char *run_id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root, id);
        CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);

        if (fd >= 0 && cache_lock_alone(fd, root, id))
                cache_remove(root, id, run_id);
}
