/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushed files are removed without a list: a file with the time FILE_CACHE_TIME and no write bit
 * was pushed, every other file in the folder belongs to the ranks. Only empty folders are removed.
 * A content in ROOT/file is removed with the last folder that linked it. In staged folders,
 * read-only but for root, compiled Python of the ranks is removed, too.
 *
 * The folder is walked twice: the first walk finds files of ranks, the second removes.
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

#define GONE ".gone." /* a kept folder during removal */

enum { HIDDEN_MAX = 100 };

/* Files beside a kept folder, the lock last. */
static const char *const suffixes[] = { "keep", "python", "lock" };

struct removal {
        bool all;      /* the ranks have no files there */
        bool bytecode; /* .pyc files of the ranks may go */
        struct cache_left left;
        uint64_t files, links; /* pushed files and links seen */
        ino_t *gone;           /* contents with a removed link */
        size_t n_gone, cap;
};

static bool is_pushed(const struct stat *st)
{
        return S_ISREG(st->st_mode) && st->st_mtime == FILE_CACHE_TIME && !(st->st_mode & 0222);
}

/* Whether Python would make the file anew. */
static bool is_bytecode(const struct removal *r, const char *name, const struct stat *st)
{
        size_t n = strlen(name), tail = strlen(".pyc");

        return r->bytecode && S_ISREG(st->st_mode) && n > tail && !strcmp(name + n - tail, ".pyc");
}

static void note_entry(struct removal *r, int dir UNUSED, const char *name, const struct stat *st)
{
        r->left.foreign |= !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode) && !is_pushed(st) &&
                           !is_bytecode(r, name, st);
        r->files += is_pushed(st);
        r->links += S_ISLNK(st->st_mode);
}

/* Removes a pushed file, an empty folder or, in a tree without files of ranks, a link; notes the
 * content of a pushed file, which may have lost the last link. */
static void remove_entry(struct removal *r, int dir, const char *name, const struct stat *st)
{
        bool pushed = is_pushed(st), folder = S_ISDIR(st->st_mode);

        if (!folder && !pushed && !is_bytecode(r, name, st) && !(S_ISLNK(st->st_mode) && r->all)) {
                r->left.foreign = true;
                return;
        }
        if (unlinkat(dir, name, folder ? AT_REMOVEDIR : 0) < 0) {
                if (errno != ENOTEMPTY && errno != EEXIST)
                        cache_left_add(&r->left, errno);
                return;
        }
        if (!pushed)
                return;
        if (r->n_gone == r->cap) {
                r->cap = r->cap ? 2 * r->cap : 64;
                r->gone = xrealloc(r->gone, r->cap, sizeof(*r->gone));
        }
        r->gone[r->n_gone++] = st->st_ino; /* the content has the same inode, being another link */
}

/* Returns the next entry but "." and ".."; NULL at the end, or after an error, noted in @left. */
static struct dirent *next_entry(DIR *d, struct cache_left *left)
{
        struct dirent *e;

        do {
                errno = 0;
                e = readdir(d);
        } while (e && (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")));
        if (!e && errno)
                cache_left_add(left, errno);
        return e;
}

/* Calls @visit for every entry in @dir, folders after their contents, and closes @dir, which may be
 * -1 with errno. */
static void walk_folder(struct removal *r, int dir,
                        void (*visit)(struct removal *, int, const char *, const struct stat *))
{
        static const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        DIR *d = dir < 0 ? NULL : fdopendir(dir);
        struct dirent *e;
        struct stat st;

        if (!d) {
                cache_left_add(&r->left, errno);
                fd_close(dir);
                return;
        }
        /* Folders of a staged copy are read-only. */
        if (visit == remove_entry && fstat(dir, &st) == 0 && !(st.st_mode & 0200))
                fchmod(dir, 0700);
        while ((e = next_entry(d, &r->left))) {
                if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        cache_left_add(&r->left, errno);
                        continue;
                }
                if (S_ISDIR(st.st_mode))
                        /* Visits also a folder that cannot be opened: an empty folder can be
                         * removed. */
                        walk_folder(r, openat(dir, e->d_name, how), visit);
                visit(r, dir, e->d_name, &st);
        }
        closedir(d);
}

/* Removes the tree in two walks: links of the push may be removed only if no file of a rank stays,
 * since a rank's file may need a link. */
static void remove_tree(struct removal *r, const char *tree)
{
        static const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

        walk_folder(r, open(tree, how), note_entry);
        /* An error may hide files of ranks. */
        r->all = !r->left.foreign && !r->left.error;
        /* The second walk notes the remaining entries anew. */
        r->left = (struct cache_left){ 0 };
        walk_folder(r, open(tree, how), remove_entry);
        /* No entry is left, whatever failed on the way. */
        if (rmdir(tree) == 0)
                r->left = (struct cache_left){ 0 };
        else if (errno != ENOTEMPTY && errno != EEXIST)
                cache_left_add(&r->left, errno);
        else if (!r->left.error)
                r->left.foreign = true;
}

static int compare_inodes(const void *a, const void *b)
{
        ino_t x = *(const ino_t *)a, y = *(const ino_t *)b;

        return (x > y) - (x < y);
}

/* Whether an entry of ROOT/file is a content without a link in a folder. */
static bool is_unused(const struct removal *r, int dir, const struct dirent *e,
                      struct cache_left *left)
{
        struct stat st;

        /* Names with a dot are half-fetched files and tries of other nodes. */
        if (*e->d_name == '.' || !r->n_gone ||
            !bsearch(&e->d_ino, r->gone, r->n_gone, sizeof(*r->gone), compare_inodes))
                return false;
        if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return st.st_nlink == 1;
        cache_left_add(left, errno);
        return false;
}

/* Removes contents without another link, and half-fetched files of the run. */
static void sweep_contents(struct removal *r, const char *root, const char *run_id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/file", root);
        CLEANUP(free_textp) char *temp = xasprintf(".%s-", run_id);
        struct cache_left left = { 0 };
        DIR *d = opendir(path);
        struct dirent *e;

        if (!d)
                cache_left_add(&left, errno);
        if (r->n_gone)
                qsort(r->gone, r->n_gone, sizeof(*r->gone), compare_inodes);
        while (d && (e = next_entry(d, &left)))
                if ((!strncmp(e->d_name, temp, strlen(temp)) || is_unused(r, dirfd(d), e, &left)) &&
                    unlinkat(dirfd(d), e->d_name, 0) < 0)
                        cache_left_add(&left, errno);
        if (d)
                closedir(d);
        if (rmdir(path) == 0)
                return; /* all are gone, whatever failed */
        cache_left_add(&r->left, left.error);
}

static void remove_name(struct removal *r, const char *root, const char *id, const char *suffix)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.%s", root, id, suffix);

        if (unlink(path) < 0)
                cache_left_add(&r->left, errno);
}

void cache_remove(const char *root, const char *id, const char *run_id, struct cache_left *left)
{
        CLEANUP(free_textp) char *tree = xasprintf("%s/%s", root, id);
        CLEANUP(free_textp) char *keep = xasprintf("%s/%s.keep", root, id);
        struct removal r = { 0 };
        int error = access(keep, F_OK) < 0 ? errno : 0;
        bool kept = error != ENOENT;

        cache_left_add(&r.left, error);
        if (!kept)
                remove_tree(&r, tree);
        sweep_contents(&r, root, run_id);
        remove_name(&r, root, id, run_id); /* the claim */
        /* The lock goes last: until then no other job uses the folder. */
        if (!kept)
                remove_name(&r, root, id, "lock");
        rmdir(root); /* if empty */
        free(r.gone);
        left->foreign |= r.left.foreign;
        cache_left_add(left, r.left.error);
}

void cache_remove_unfinished(const char *root, const char *name, struct cache_left *left)
{
        CLEANUP(free_textp) char *tree = xasprintf("%s/%s", root, name);
        struct removal r = { .bytecode = true };

        if (access(tree, F_OK) == 0) {
                remove_tree(&r, tree);
                sweep_contents(&r, root, "");
        }
        free(r.gone);
        left->foreign |= r.left.foreign;
        cache_left_add(left, r.left.error);
}

/* Renames ROOT/@id, since a folder with the final name must be whole. Returns the new name below
 * ROOT, malloc'ed; NULL with errno. */
static char *hide_kept(const char *root, const char *id)
{
        CLEANUP(free_textp) char *tree = xasprintf("%s/%s", root, id);

        /* Names of earlier removals may still have files of ranks. */
        for (unsigned i = 0; i < HIDDEN_MAX; i++) {
                CLEANUP(free_textp) char *name = xasprintf(GONE "%s.%u", id, i);
                CLEANUP(free_textp) char *path = xasprintf("%s/%s", root, name);

                if (rename(tree, path) == 0)
                        return xstrdup(name);
                if (errno != ENOTEMPTY && errno != EEXIST)
                        break;
        }
        return NULL;
}

/* Whether the folder has files of ranks, or cannot be read. */
static bool has_files_of_ranks(const char *root, const char *id)
{
        static const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        CLEANUP(free_textp) char *tree = xasprintf("%s/%s", root, id);
        struct removal r = { .bytecode = true };

        walk_folder(&r, open(tree, how), note_entry);
        return r.left.foreign || (r.left.error && access(tree, F_OK) == 0);
}

bool cache_remove_kept(const char *root, const char *id)
{
        CLEANUP(free_textp) char *lock = xasprintf("%s/%s.lock", root, id);
        CLEANUP(free_textp) char *hidden = NULL;
        CLEANUP(fd_closep) int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct cache_left left = { 0 };

        /* Asked before the first removal: a folder without some of its files is of no use. */
        if (fd < 0 || cache_lock_alone(fd, root, id) < 0 || has_files_of_ranks(root, id))
                return false;
        hidden = hide_kept(root, id);
        if (!hidden && errno != ENOENT)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
                CLEANUP(free_textp) char *path = xasprintf("%s/%s.%s", root, id, suffixes[i]);

                unlink(path);
        }
        if (hidden)
                cache_remove_unfinished(root, hidden, &left);
        rmdir(root);
        return true;
}

int cache_replace_kept(const char *root, const char *id, const char *name)
{
        CLEANUP(free_textp) char *tree = xasprintf("%s/%s", root, id);
        CLEANUP(free_textp) char *fresh = xasprintf("%s/%s", root, name);
        CLEANUP(free_textp) char *hidden = hide_kept(root, id);
        struct cache_left left = { 0 };
        int r;

        if (!hidden)
                return -errno;
        r = rename(fresh, tree) < 0 ? -errno : 0;
        cache_remove_unfinished(root, hidden, &left);
        return r;
}

void cache_count(const char *root, const char *id, uint64_t *ret_files, uint64_t *ret_links)
{
        static const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        CLEANUP(free_textp) char *tree = xasprintf("%s/%s", root, id);
        struct removal r = { 0 };

        walk_folder(&r, open(tree, how), note_entry);
        *ret_files = r.files;
        *ret_links = r.links;
}

/* --- after the death of agent and guard ------------------------------------------------------- */

/* Removes the claim of the dead node @who, named RUN-NODE. */
static void remove_claim(int dir, const char *name, const char *who)
{
        const char *node = strrchr(who, '-'), *dot = strchr(name, '.');
        char *text;

        if (!node || !dot || dot == name || strlen(dot + 1) != (size_t)(node - who) ||
            strncmp(dot + 1, who, (size_t)(node - who)) != 0 ||
            fd_read_regular(dir, name, 16, &text, NULL) < 0)
                return;
        if (strtoul(text, NULL, 10) == strtoul(node + 1, NULL, 10))
                unlinkat(dir, name, 0);
        free(text);
}

/* Removes all unfinished files of the dead node @who. The caller holds the node's lock. */
static void sweep_owner(const char *root, const char *who)
{
        CLEANUP(free_textp) char *own = xasprintf(".%s.", who);
        CLEANUP(free_textp) char *lock = xasprintf(".%s.lock", who);
        CLEANUP(free_textp) char *temp = xasprintf("%s/file/.%s", root, who);
        struct cache_left left = { 0 };
        DIR *d = opendir(root);
        struct dirent *e;

        while (d && (e = next_entry(d, &left))) {
                if (!strcmp(e->d_name, lock))
                        continue;
                if (!strncmp(e->d_name, own, strlen(own)))
                        cache_remove_unfinished(root, e->d_name, &left);
                else if (*e->d_name != '.')
                        remove_claim(dirfd(d), e->d_name, who);
        }
        unlink(temp);
        if (d)
                unlinkat(dirfd(d), lock, 0);
        if (d)
                closedir(d);
}

void cache_sweep_dead(const char *root)
{
        struct cache_left left = { 0 };
        DIR *d = opendir(root);
        struct dirent *e;

        while (d && (e = next_entry(d, &left))) {
                size_t n = strlen(e->d_name), tail = strlen(".lock");
                CLEANUP(free_textp) char *id = NULL;
                int fd;

                if (!strncmp(e->d_name, GONE, strlen(GONE)))
                        cache_remove_unfinished(root, e->d_name, &left);
                if (*e->d_name != '.' || n <= tail + 1 || strcmp(e->d_name + n - tail, ".lock"))
                        continue;
                id = xstrndup(e->d_name, n - tail);
                fd = openat(dirfd(d), e->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
                if (fd >= 0 && cache_lock_alone(fd, root, id) == 0)
                        sweep_owner(root, id + 1);
                fd_close(fd);
        }
        if (d)
                closedir(d);
}

/* --- remaining entries ------------------------------------------------------------------------ */

void cache_left_add(struct cache_left *left, int error)
{
        if (!left->error && error != ENOENT)
                left->error = error;
}

char *cache_left_text(const struct cache_left *left, const char *root, const char *id)
{
        if (left->error)
                return xasprintf("cannot remove all pushed files in %s: %s", root,
                                 strerror(left->error));
        return left->foreign ? xasprintf("files that ranks wrote beside pushed ones are left in "
                                         "%s/%s%s",
                                         root, id, left->pulled ? ", those of --pull, too" : "")
                             : NULL;
}

char *file_cache_abandoned(const char *root, const char *id, const char *run_id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root, id);
        CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
        int r = fd < 0 ? -errno : cache_lock_alone(fd, root, id);
        struct cache_left left = { 0 };

        cache_sweep_dead(root);
        if (r == 0)
                cache_remove(root, id, run_id, &left);
        else if (r != -EAGAIN)
                cache_left_add(&left, -r);
        return cache_left_text(&left, root, id);
}
