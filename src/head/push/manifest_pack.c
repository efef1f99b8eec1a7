/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium/crypto_hash_sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "head/push/manifest_private.h"

enum {
        HN_NO_FILE = 230,
        HN_UNREADABLE = 231,
        HN_SPECIAL = 232,
        HN_CLASH = 233,
        HN_CHANGED = 237,
        HN_TOO_MANY = 238,
        EX_NOFILE = 66,
        READ_SIZE = 1 << 20,
        ERRORS_MAX = 20, /* of a folder full of them */
};

struct item {
        struct push_entry entry;
        struct manifest_source source;
};

struct packing {
        struct item *v;
        size_t n, cap;
        struct diags *d;
        const struct manifest_watch *watch;
        char *top; /* where it lands, "" = the current directory itself */
        uint64_t hashed;
};

/* --- paths ------------------------------------------------------------------------------------ */

/* Drops ".", ".." and doubled slashes of an absolute path, in place. */
static void tidy(char *path)
{
        char *to = path, *from = path;

        while (*from) {
                size_t n = strcspn(from += strspn(from, "/"), "/");

                if (n == 2 && !memcmp(from, "..", 2)) {
                        while (to > path && *--to != '/')
                                ;
                } else if (n && !(n == 1 && *from == '.')) {
                        *to++ = '/';
                        memmove(to, from, n);
                        to += n;
                }
                from += n;
        }
        if (to == path)
                *to++ = '/';
        *to = '\0';
}

char *manifest_absolute(const char *cwd, const char *path)
{
        char *full = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", cwd, path);

        tidy(full);
        return full;
}

/* The part of @path behind @folder, "" = itself, NULL = outside. */
static const char *below(const char *folder, const char *path)
{
        size_t n = strlen(folder);

        if (n == 1)
                return path + 1;
        if (strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/'))
                return NULL;
        return path[n] ? path + n + 1 : "";
}

static const char *last_name(const char *path)
{
        return strrchr(path, '/') + 1;
}

/* $PWD may lead through links that the current directory's own name does not show. */
static char *landing(const char *cwd, const char *full)
{
        const char *inside = below(cwd, full), *name = last_name(full);
        char *folder, *real, *place;

        if (inside)
                return xstrdup(inside);
        folder = xasprintf("%.*s", (int)MAX(name - full, 1), full);
        real = realpath(folder, NULL);
        inside = real ? below(cwd, real) : NULL;
        place = inside && *inside ? xasprintf("%s/%s", inside, name) : xstrdup(name);
        free(folder);
        free(real);
        return place;
}

/* --- gathering -------------------------------------------------------------------------------- */

static bool enough_errors(const struct packing *k)
{
        return diags_errors(k->d) >= ERRORS_MAX;
}

static void refuse(struct packing *k, const char *path, int error)
{
        int id = error == ENOENT ? HN_NO_FILE : HN_UNREADABLE;
        struct diag *d;

        if (enough_errors(k))
                return;
        d = diag_add(k->d, id, EX_NOFILE, "--push: cannot read %s: %s", path, strerror(error));
        if (error == ENOENT)
                diag_help(d, "paths are relative to the current directory; options stand before "
                             "the program");
        else if (error == EACCES)
                diag_help(d, "what is pushed must be readable for you: ls -l %s", path);
}

static void refuse_kind(struct packing *k, const char *path, const char *what)
{
        if (!enough_errors(k))
                diag_help(diag_add(k->d, HN_SPECIAL, EX_NOFILE, "--push: %s is %s", path, what),
                          "only files, folders and links to files can be pushed: push a folder "
                          "without it");
}

static struct item *add(struct packing *k, enum push_kind kind, const char *place, const char *path,
                        const struct stat *st)
{
        struct item *it;

        if (k->n == k->cap) {
                k->cap = k->cap ? 2 * k->cap : 64;
                k->v = xrealloc(k->v, k->cap, sizeof(*k->v));
        }
        it = &k->v[k->n++];
        *it = (struct item){ .entry = { .kind = (uint8_t)kind,
                                        .mode = kind == PUSH_LINK ? 0777 : st->st_mode & 0777,
                                        .path = xstrdup(place) },
                             .source = { .path = xstrdup(path) } };
        if (kind == PUSH_FILE)
                it->entry.size = (uint64_t)st->st_size;
        manifest_note(&it->source, st);
        return it;
}

static void gather(struct packing *k, const char *path, const char *place, bool follow);

static void gather_folder(struct packing *k, const char *path, const char *place)
{
        DIR *dir = opendir(path);
        struct dirent *e;

        if (!dir) {
                refuse(k, path, errno);
                return;
        }
        while (k->n <= PUSH_ENTRIES_MAX && (e = readdir(dir))) {
                char *sub, *to;

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                sub = xasprintf("%s/%s", strcmp(path, "/") ? path : "", e->d_name);
                to = xasprintf("%s%s%s", place, *place ? "/" : "", e->d_name);
                gather(k, sub, to, false);
                free(sub);
                free(to);
        }
        closedir(dir);
}

/* A relative link that leads to a place which lands together with it. */
static bool stays_inside(const struct packing *k, const char *place, const char *target)
{
        /* The colon stands for the landing place's own folder: what climbs above it is outside. */
        char *top = xasprintf("/:%s%s", *k->top ? "/" : "", k->top);
        char *to = xasprintf("/:/%s/../%s", place, target);
        bool inside;

        tidy(to);
        inside = *target != '/' && below(top, to);
        free(top);
        free(to);
        return inside;
}

static void gather_link(struct packing *k, const char *path, const char *place,
                        const struct stat *link)
{
        char target[PUSH_PATH_MAX + 1];
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        struct stat st;

        if (n < 0) {
                refuse(k, path, errno);
                return;
        }
        target[n] = '\0';
        if (stays_inside(k, place, target))
                add(k, PUSH_LINK, place, path, link)->entry.target = xstrdup(target);
        else if (stat(path, &st) < 0)
                refuse_kind(k, path, "a link to nothing");
        else if (S_ISREG(st.st_mode))
                add(k, PUSH_FILE, place, path, &st);
        else
                refuse_kind(k, path, "a link to a folder outside of what is pushed");
}

static void gather(struct packing *k, const char *path, const char *place, bool follow)
{
        struct stat st;

        if ((follow ? stat(path, &st) : lstat(path, &st)) < 0) {
                refuse(k, path, errno);
        } else if (S_ISDIR(st.st_mode)) {
                if (*place)
                        add(k, PUSH_FOLDER, place, path, &st);
                gather_folder(k, path, place);
        } else if (S_ISREG(st.st_mode)) {
                add(k, PUSH_FILE, place, path, &st);
        } else if (S_ISLNK(st.st_mode)) {
                gather_link(k, path, place, &st);
        } else {
                refuse_kind(k, path,
                            S_ISFIFO(st.st_mode)   ? "a pipe"
                            : S_ISSOCK(st.st_mode) ? "a socket"
                                                   : "a device");
        }
}

/* The folders on the way to @place. */
static void gather_parents(struct packing *k, const char *cwd, const char *place)
{
        for (const char *p = strchr(place, '/'); p; p = strchr(p + 1, '/')) {
                char *part = xasprintf("%.*s", (int)(p - place), place);
                char *path = xasprintf("%s/%s", cwd, part);
                struct stat st;

                if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                        st = (struct stat){ .st_mode = S_IFDIR | 0755 };
                add(k, PUSH_FOLDER, part, path, &st);
                free(part);
                free(path);
        }
}

static void gather_argument(struct packing *k, const char *cwd, const char *arg)
{
        char *full = manifest_absolute(cwd, arg);

        k->top = landing(cwd, full);
        if (!*full || !strcmp(full, "/"))
                refuse_kind(k, arg, "the root of everything");
        else if (!*arg)
                refuse(k, arg, ENOENT);
        else {
                gather_parents(k, cwd, k->top);
                gather(k, full, k->top, true);
        }
        free(full);
        free(k->top);
        k->top = NULL;
}

/* --- order ------------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
        return strcmp(((const struct item *)a)->entry.path, ((const struct item *)b)->entry.path);
}

static void item_finish(struct item *it)
{
        free(it->entry.path);
        free(it->entry.target);
        free(it->source.path);
}

static bool same_thing(const struct item *a, const struct item *b)
{
        return a->entry.kind == b->entry.kind &&
               (a->entry.kind == PUSH_FOLDER ||
                (a->source.dev == b->source.dev && a->source.ino == b->source.ino));
}

/* Named twice is fine, as in --push . --push data; two things in one place are not. */
static void sort(struct packing *k)
{
        size_t n = 0;

        if (k->n)
                qsort(k->v, k->n, sizeof(*k->v), by_place);
        for (size_t i = 0; i < k->n; i++) {
                struct item *it = &k->v[i], *last = n ? &k->v[n - 1] : NULL;

                if (!last || strcmp(last->entry.path, it->entry.path) != 0) {
                        k->v[n++] = *it;
                        continue;
                }
                if (!same_thing(last, it) && !enough_errors(k))
                        diag_help(diag_add(k->d, HN_CLASH, EX_NOFILE,
                                           "--push: %s and %s would both be %s on the nodes",
                                           last->source.path, it->source.path, it->entry.path),
                                  "what is outside of the current directory lands under its last "
                                  "name: rename one, or start in a folder that holds both");
                item_finish(it);
        }
        k->n = n;
}

/* --- hashing ---------------------------------------------------------------------------------- */

static int digest(struct packing *k, struct item *it, int fd, unsigned char *room)
{
        uint64_t size = 0;
        crypto_hash_sha256_state sum;
        struct stat st;
        ssize_t n;

        crypto_hash_sha256_init(&sum);
        while ((n = read(fd, room, READ_SIZE)) > 0) {
                crypto_hash_sha256_update(&sum, room, (size_t)n);
                size += (uint64_t)n;
                k->hashed += (uint64_t)n;
                if (k->watch)
                        k->watch->tick(k->watch->ctx, k->hashed);
        }
        if (n < 0)
                return -errno;
        crypto_hash_sha256_final(&sum, it->entry.sha);
        if (fstat(fd, &st) < 0 || size != it->entry.size ||
            !manifest_is(&it->source, &it->entry, &st))
                return -ESTALE;
        return 0;
}

static void hash_file(struct packing *k, struct item *it, unsigned char *room)
{
        /* A pipe that took the file's place must not hold us up. */
        CLEANUP(fd_closep)
        int fd = open(it->source.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? -errno : digest(k, it, fd, room);

        if (r == -ESTALE && !enough_errors(k))
                diag_help(diag_add(k->d, HN_CHANGED, EX_NOFILE,
                                   "--push: %s changes while it is read", it->source.path),
                          "start again when whoever writes it is done");
        else if (r)
                refuse(k, it->source.path, -r);
}

static void hash_all(struct packing *k)
{
        unsigned char *room = xcalloc(1, READ_SIZE);

        for (size_t i = 0; i < k->n && !enough_errors(k); i++)
                if (k->v[i].entry.kind == PUSH_FILE)
                        hash_file(k, &k->v[i], room);
        free(room);
}

/* --- the parcel ------------------------------------------------------------------------------- */

static void check_size(struct packing *k, uint64_t wire_bytes)
{
        if (k->n > PUSH_ENTRIES_MAX || wire_bytes > PUSH_MANIFEST_MAX)
                diag_help(diag_add(k->d, HN_TOO_MANY, EX_NOFILE,
                                   "--push: more than %d files, or more than %d MB of names",
                                   PUSH_ENTRIES_MAX, PUSH_MANIFEST_MAX >> 20),
                          "pack them into one file (tar, WebDataset, HDF5) and push that");
}

/* Gives the items to the parcel. */
static void hand_over(struct packing *k, struct manifest *p)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        p->manifest.v = xcalloc(k->n, sizeof(*p->manifest.v));
        p->sources = xcalloc(k->n, sizeof(*p->sources));
        p->manifest.n = (uint32_t)k->n;
        for (size_t i = 0; i < k->n; i++) {
                p->manifest.v[i] = k->v[i].entry;
                p->sources[i] = k->v[i].source;
                p->files += k->v[i].entry.kind == PUSH_FILE;
                p->bytes += k->v[i].entry.size;
        }
        push_manifest_put(&b, &p->manifest);
        p->wire_bytes = buf_len(&b);
        check_size(k, p->wire_bytes);
}

int manifest_pack(struct manifest *p, const struct strv *paths, const char *cwd,
                  const struct manifest_watch *watch, struct diags *d)
{
        struct packing k = { .d = d, .watch = watch };

        for (size_t i = 0; i < paths->n && k.n <= PUSH_ENTRIES_MAX; i++)
                gather_argument(&k, cwd, paths->v[i]);
        sort(&k);
        if (!diags_errors(d) && k.n <= PUSH_ENTRIES_MAX)
                hash_all(&k);
        hand_over(&k, p);
        free(k.v);
        return diags_errors(d) ? -EINVAL : 0;
}
