/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing: every FILE or DIR of the command line is gathered into a list of items (landing place,
 * kind, source), folders recursively; the list is sorted by place, equal items are merged, two
 * different items in a place are an error; then all files are hashed, and the items become the
 * manifest. Errors do not stop the gathering until there are ERRORS_MAX errors.
 */
#include "head/push/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium/crypto_hash_sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "head/push/folder_memory.h"
#include "head/push/hash_memory.h"
#include "head/push/manifest_private.h"

enum {
        READ_SIZE = 1 << 20,
        ERRORS_MAX = 20,    /* then gathering stops */
        REMEMBER_MIN = 256, /* entries; few files are walked and looked up as fast */
        PYC_HEAD = 16,      /* of a .pyc: version, flags, then time and size of the source */
};

static uint32_t get_little(const unsigned char *p)
{
        return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_little(unsigned char *p, uint32_t v)
{
        for (int i = 0; i < 4; i++)
                p[i] = (unsigned char)(v >> (8 * i));
}

struct manifest_item {
        struct push_entry entry;
        struct manifest_source source;
        const char *top; /* place of the argument; lent */
        uint32_t mode;   /* of the found path, with its type, even where a link is followed */
        bool hashed;     /* entry.sha is set */
};

/* State of manifest_pack(). */
struct packing {
        struct manifest_item *v;
        size_t n, cap;
        struct diags *d;
        const struct manifest_watch *watch;
        const struct manifest_edit *edit; /* NULL = none */
        bool stamps;                      /* of .pyc files, see manifest.h */
        const char *option;               /* the beginning of messages: "--push: ", or "" */
        const char *dir;                  /* manifest.dir */
        struct strv tops;
        const char *top; /* landing place of the present argument, "" = @dir itself */
        uint64_t hashed;
};

/* --- paths ------------------------------------------------------------------------------------ */

/* Removes ".", ".." and doubled slashes from an absolute path, in place. */
static void normalize_path(char *path)
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

/* Returns an absolute path without ".", ".." and doubled slashes, malloc'ed. */
static char *absolute_path(const char *cwd, const char *path)
{
        char *full = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", cwd, path);

        normalize_path(full);
        return full;
}

/* Returns the part of @path behind @folder, "" = the folder itself, NULL = outside. */
static const char *path_below(const char *folder, const char *path)
{
        size_t n = strlen(folder);

        if (n == 1)
                return path + 1;
        if (strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/'))
                return NULL;
        return path[n] ? path + n + 1 : "";
}

/* Returns the place on the nodes, malloc'ed. Resolves links, since $PWD may lead through some. */
static char *landing_place(const char *cwd, const char *full)
{
        /* First by name, then by the real folder. */
        const char *inside = path_below(cwd, full), *name = strrchr(full, '/') + 1;
        CLEANUP(free_textp) char *folder = xstrndup(full, (size_t)MAX(name - full, 1));
        CLEANUP(free_textp) char *real = inside ? NULL : realpath(folder, NULL);

        if (inside)
                return xstrdup(inside);
        inside = real ? path_below(cwd, real) : NULL;
        return inside && *inside ? xasprintf("%s/%s", inside, name) : xstrdup(name);
}

/* --- gathering -------------------------------------------------------------------------------- */

/* Whether no more errors are added: a folder of a million unreadable files must not give a million
 * messages. */
static bool enough_errors(const struct packing *k)
{
        return diags_errors(k->d) >= ERRORS_MAX;
}

/* Adds an error on a path that cannot be read. */
static void refuse_source(struct packing *k, const char *path, int error)
{
        int id = error == ENOENT ? HN_PUSH_MISSING : HN_PUSH_UNREADABLE;
        struct diag *d;

        if (enough_errors(k))
                return;
        d = diag_add(k->d, id, EX_NOINPUT, "%scannot read %s: %s", k->option, path,
                     strerror(error));
        if (error == ENOENT)
                diag_help(d, "paths are relative to the current directory%s",
                          *k->option ? "; options stand before the program" : "");
        else if (error == EACCES)
                diag_help(d, "pushed files must be readable for you: ls -l %s", path);
}

/* Adds an error: @path is @what, of a kind that cannot be sent. */
static void refuse_source_kind(struct packing *k, const char *path, const char *what)
{
        if (!enough_errors(k))
                diag_help(diag_add(k->d, HN_PUSH_SPECIAL, EX_NOINPUT, "%scannot send %s: it is %s",
                                   k->option, path, what),
                          "remove it, or name the files one by one: only files, folders and links "
                          "to files can be sent");
}

/* Takes @place and @path over. */
static struct manifest_item *add_item_of_key(struct packing *k, enum push_kind kind, char *place,
                                             char *path, mode_t mode, const struct hash_key *key)
{
        struct manifest_item *it;

        k->v = xgrow(k->v, k->n, &k->cap, sizeof(*k->v));
        it = &k->v[k->n++];
        *it = (struct manifest_item){ .entry = { .kind = (uint8_t)kind,
                                                 .mode = kind == PUSH_LINK ? 0777 : mode & 0777,
                                                 .path = place },
                                      .source = { .path = path, .key = *key },
                                      .top = k->top,
                                      .mode = mode };
        if (kind == PUSH_FILE)
                it->entry.size = key->size;
        return it;
}

/* Tells whether @path is @place below @dir. */
static bool is_usual_source(const char *dir, const char *place, const char *path)
{
        size_t n = strcmp(dir, "/") ? strlen(dir) : 0;

        return !strncmp(path, dir, n) && path[n] == '/' && !strcmp(path + n + 1, place);
}

/* Adds an item, with the rights of the source within 0777; links have none of their own. */
static struct manifest_item *add_manifest_item(struct packing *k, enum push_kind kind,
                                               const char *place, const char *path,
                                               const struct stat *st)
{
        const struct hash_key key = hash_memory_key(st);

        return add_item_of_key(k, kind, xstrdup(place),
                               is_usual_source(k->dir, place, path) ? NULL : xstrdup(path),
                               st->st_mode, &key);
}

/* A source. Messages name @path; @name in the folder @dir saves the kernel the whole path. */
struct found {
        int dir;
        const char *name, *path;
};

static void gather_source(struct packing *k, const struct found *f, const char *place, bool follow);

/* Adds the entries of a folder, with limits on their number. */
static void gather_folder(struct packing *k, const struct found *f, const char *place)
{
        int fd = openat(f->dir, f->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const char *path = f->path;
        struct dirent *e;

        if (!dir) {
                refuse_source(k, path, errno);
                fd_close(fd);
                return;
        }
        /* A single entry above the limit is enough for fill_manifest() to refuse. */
        while (k->n <= PUSH_ENTRIES_MAX && (e = readdir(dir))) {
                CLEANUP(free_textp) char *sub = NULL, *to = NULL;

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                sub = manifest_append_name(path, e->d_name);
                to = *place ? manifest_append_name(place, e->d_name) : xstrdup(e->d_name);
                gather_source(k, &(struct found){ dirfd(dir), e->d_name, sub }, to, false);
        }
        closedir(dir);
}

/* Tells whether a relative link leads to a place inside the same argument. */
static bool link_stays_inside(const struct packing *k, const char *place, const char *target)
{
        /* The colon stands for the folder of all places: a path above is outside. */
        CLEANUP(free_textp) char *top = xasprintf("/:%s%s", *k->top ? "/" : "", k->top);
        CLEANUP(free_textp) char *to = xasprintf("/:/%s/../%s", place, target);

        normalize_path(to);
        return *target != '/' && path_below(top, to);
}

/* Adds a link as a link when the target is pushed as well, else the file behind the link. */
static void gather_link(struct packing *k, const char *path, const char *place,
                        const struct stat *link)
{
        char target[PUSH_PATH_MAX + 1];
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        char *other = NULL;
        struct stat st;

        if (n < 0) {
                refuse_source(k, path, errno);
                return;
        }
        target[n] = '\0';
        if (k->edit && (other = k->edit->link(k->edit->ctx, place, target)))
                add_manifest_item(k, PUSH_LINK, place, path, link)->entry.target = other;
        else if (link_stays_inside(k, place, target))
                add_manifest_item(k, PUSH_LINK, place, path, link)->entry.target = xstrdup(target);
        else if (stat(path, &st) < 0)
                refuse_source_kind(k, path, "a link to nothing");
        else if (S_ISREG(st.st_mode))
                add_manifest_item(k, PUSH_FILE, place, path, &st)->mode = S_IFLNK;
        else
                refuse_source_kind(k, path, "a link to a folder outside of the sent folder");
}

/* Adds a path by kind. Follows a link only if the user has named the link (@follow). */
static void gather_source(struct packing *k, const struct found *f, const char *place, bool follow)
{
        const char *path = f->path;
        struct stat st;

        if (fstatat(f->dir, f->name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
                refuse_source(k, path, errno);
        } else if (S_ISDIR(st.st_mode)) {
                if (*place)
                        add_manifest_item(k, PUSH_FOLDER, place, path, &st);
                gather_folder(k, f, place);
        } else if (S_ISREG(st.st_mode)) {
                add_manifest_item(k, PUSH_FILE, place, path, &st);
                if (k->edit)
                        k->edit->file(k->edit->ctx, place, st.st_mode);
        } else if (S_ISLNK(st.st_mode)) {
                gather_link(k, path, place, &st);
        } else {
                refuse_source_kind(k, path,
                                   S_ISFIFO(st.st_mode)   ? "a pipe"
                                   : S_ISSOCK(st.st_mode) ? "a socket"
                                                          : "a device");
        }
}

/* Adds the folders above @place. */
static void gather_parents(struct packing *k, const char *cwd, const char *place)
{
        for (const char *p = strchr(place, '/'); p; p = strchr(p + 1, '/')) {
                CLEANUP(free_textp) char *part = xstrndup(place, (size_t)(p - place));
                CLEANUP(free_textp) char *path = xasprintf("%s/%s", cwd, part);
                struct stat st;

                if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                        /* The place has a folder that does not exist here: use the rights of a
                         * usual folder. */
                        st = (struct stat){ .st_mode = S_IFDIR | 0755 };
                add_manifest_item(k, PUSH_FOLDER, part, path, &st);
        }
}

/* Gathers a FILE or DIR of the command line, with the folders above its place. */
static void gather_argument(struct packing *k, const char *cwd, const char *arg)
{
        CLEANUP(free_textp) char *full = absolute_path(cwd, arg);

        CLEANUP(free_textp) char *top = landing_place(cwd, full);

        strv_push(&k->tops, top);
        k->top = k->tops.v[k->tops.n - 1];
        if (!*full || !strcmp(full, "/"))
                refuse_source_kind(k, arg, "the root folder");
        else if (!*arg)
                refuse_source(k, arg, ENOENT);
        else {
                gather_parents(k, cwd, k->top);
                gather_source(k, &(struct found){ AT_FDCWD, full, full }, k->top, true);
        }
}

/* --- order ------------------------------------------------------------------------------------ */

/* Compares by place. A folder sorts in front of its contents, so a node can make them in order. */
static int compare_places(const void *a, const void *b)
{
        return strcmp(((const struct manifest_item *)a)->entry.path,
                      ((const struct manifest_item *)b)->entry.path);
}

static void refuse_clash(struct packing *k, const struct manifest_item *a,
                         const struct manifest_item *b)
{
        const char *place = a->entry.path;
        CLEANUP(free_textp) char *one = manifest_source_path(k->dir, &a->source, place);
        CLEANUP(free_textp) char *other = manifest_source_path(k->dir, &b->source, place);

        diag_help(diag_add(k->d, HN_PUSH_CLASH, EX_NOINPUT,
                           "%scannot send %s and %s: both would be %s on the nodes", k->option, one,
                           other, place),
                  "files outside of the current directory land under their last name: rename one, "
                  "or start in a folder that holds both");
}

/* Sorts by place and merges equal items, as of --push . --push data; refuses different items. */
static void sort_items(struct packing *k)
{
        size_t n = 0;

        if (k->n)
                qsort(k->v, k->n, sizeof(*k->v), compare_places);
        for (size_t i = 0; i < k->n; i++) {
                struct manifest_item *it = &k->v[i], *last = n ? &k->v[n - 1] : NULL;
                bool is_same;

                if (!last || strcmp(last->entry.path, it->entry.path) != 0) {
                        k->v[n++] = *it;
                        continue;
                }
                /* Folders merge by name alone: their contents are items of their own. */
                is_same = last->entry.kind == it->entry.kind &&
                          (it->entry.kind == PUSH_FOLDER ||
                           (last->source.key.dev == it->source.key.dev &&
                            last->source.key.ino == it->source.key.ino));
                if (!is_same && !enough_errors(k))
                        refuse_clash(k, last, it);
                /* Keep the larger argument: more is compared with the memory then. */
                if (strlen(it->top) < strlen(last->top)) {
                        last->top = it->top;
                        last->mode = it->mode;
                }
                free(it->entry.path);
                free(it->entry.target);
                free(it->source.path);
        }
        k->n = n;
}

/* --- hashing ---------------------------------------------------------------------------------- */

/* Replaces the time of the source in the head of a .pyc, if the head has the expected time: the
 * copies have another time. A .pyc with a hash of the source has no time. */
static void stamp_compiled(const struct manifest_source *s, unsigned char *head, size_t len)
{
        if (len < PYC_HEAD || memcmp(head + 4, "\0\0\0", 4) != 0 ||
            get_little(head + PYC_TIME) != s->key.stamp)
                return;
        put_little(head + PYC_TIME, PUSH_FILE_TIME);
}

/* Hashes the file. 0, -ESTALE when the file has changed while it was read, or -errno. */
static int hash_contents(struct packing *k, struct manifest_item *it, int fd, void *buffer)
{
        uint64_t size = 0;
        crypto_hash_sha256_state sum;
        struct stat st;
        ssize_t n;

        crypto_hash_sha256_init(&sum);
        while ((n = read(fd, buffer, READ_SIZE)) > 0) {
                unsigned char *head = buffer;

                if (k->edit)
                        k->edit->read(k->edit->ctx, it->entry.path, buffer, (size_t)n);
                if (!size && it->source.key.stamp) {
                        stamp_compiled(&it->source, buffer, (size_t)n);
                        it->source.stamped = (size_t)n >= PYC_HEAD &&
                                             get_little(head + PYC_TIME) == PUSH_FILE_TIME;
                }
                crypto_hash_sha256_update(&sum, buffer, (size_t)n);
                size += (uint64_t)n;
                k->hashed += (uint64_t)n;
                if (k->watch)
                        k->watch->tick(k->watch->ctx, k->hashed);
        }
        if (n < 0)
                return -errno;
        crypto_hash_sha256_final(&sum, it->entry.sha);
        if (fstat(fd, &st) < 0)
                return -errno;
        return size == it->entry.size && manifest_source_is_same(&it->source, &st) ? 0 : -ESTALE;
}

static void hash_file(struct packing *k, struct manifest_item *it, void *buffer)
{
        /* Non-blocking: a pipe may have taken the file's place. */
        CLEANUP(free_textp) char *path = manifest_source_path(k->dir, &it->source, it->entry.path);
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? -errno : hash_contents(k, it, fd, buffer);

        if (r == 0 && k->watch && k->watch->memory)
                hash_memory_add(k->watch->memory, &it->source.key, it->entry.sha,
                                it->source.stamped);
        if (r == -ESTALE && !enough_errors(k))
                diag_help(diag_add(k->d, HN_PUSH_CHANGED, EX_NOINPUT,
                                   "%scannot read %s: the file is being changed", k->option, path),
                          "start again when the file is complete");
        else if (r)
                refuse_source(k, path, -r);
}

/* Returns the time of the source of a .pyc in seconds, 0 = another file, or no source here. */
static uint32_t find_source_time(const struct packing *k, const char *place)
{
        const char *cache = strstr(place, "__pycache__/");
        size_t n = strlen(place);
        const struct manifest_item *source;
        struct manifest_item wanted = { 0 };

        if (!cache || n < 4 || strcmp(place + n - 4, ".pyc") != 0)
                return 0;
        while (strstr(cache + 1, "__pycache__/"))
                cache = strstr(cache + 1, "__pycache__/");
        place = xasprintf("%.*s%.*s.py", (int)(cache - place), place,
                          (int)strcspn(cache + strlen("__pycache__/"), "."),
                          cache + strlen("__pycache__/"));
        wanted.entry.path = (char *)place;
        source = bsearch(&wanted, k->v, k->n, sizeof(*k->v), compare_places);
        free(wanted.entry.path);
        return source && source->entry.kind == PUSH_FILE
                       ? (uint32_t)(source->source.key.mtime_ns / 1000000000)
                       : 0;
}

/* Sets the contents if the edit changes the file. False: unchanged. */
static bool edit_file(const struct packing *k, struct manifest_item *it)
{
        size_t len;

        it->source.content = k->edit->content(k->edit->ctx, it->entry.path, it->entry.size, &len);
        if (!it->source.content)
                return false;
        it->entry.size = len;
        crypto_hash_sha256(it->entry.sha, (unsigned char *)it->source.content, len);
        return true;
}

/* Takes a hash from the memory. */
static bool recall_hash(const struct packing *k, struct manifest_item *it)
{
        return k->watch && k->watch->memory &&
               hash_memory_find(k->watch->memory, &it->source.key, it->entry.sha,
                                &it->source.stamped);
}

/* Hashes all files without a remembered hash. */
static void hash_items(struct packing *k)
{
        CLEANUP(free_textp) char *buffer = xcalloc(1, READ_SIZE);

        for (size_t i = 0; i < k->n && !enough_errors(k); i++) {
                struct manifest_item *it = &k->v[i];

                if (it->entry.kind != PUSH_FILE || (k->edit && edit_file(k, it)) || it->hashed)
                        continue;
                if (k->stamps)
                        it->source.key.stamp = find_source_time(k, it->entry.path);
                if (!recall_hash(k, it))
                        hash_file(k, it, buffer);
        }
}

/* --- items of an earlier launch --------------------------------------------------------------- */

/* Adds the items of the memory, as gather_source() would; the manifest borrows the places. */
static void recall_items(struct packing *k, const struct folder_memory *memory)
{
        for (uint32_t i = 0; i < folder_memory_entries(memory); i++) {
                const struct folder_entry *e = folder_memory_entry(memory, i);
                const char *place = folder_memory_text(memory, e->place);
                char *path = e->path ? xstrdup(folder_memory_text(memory, e->path)) : NULL;
                struct manifest_item *it;

                k->top = folder_memory_text(memory, e->top);
                if (S_ISLNK(e->mode)) {
                        CLEANUP(free_textp)
                        char *link = path ? path : manifest_append_name(k->dir, place);

                        gather_link(k, link, place, &(struct stat){ .st_mode = e->mode });
                        continue;
                }
                it = add_item_of_key(k, e->kind, (char *)place, path, e->mode, &e->key);
                it->source.stamped = e->stamped;
                it->hashed = e->kind == PUSH_FILE && !e->edited;
                memcpy(it->entry.sha, e->sha, PUSH_SHA);
                if (k->edit && e->kind == PUSH_FILE)
                        k->edit->file(k->edit->ctx, place, e->mode);
        }
}

/* Whether the items make the remembered manifest: links and edited files may have changed. */
static bool items_are_same(const struct packing *k, const struct folder_memory *memory)
{
        if (k->n != folder_memory_entries(memory))
                return false;
        for (uint32_t i = 0; i < k->n; i++)
                if (!folder_memory_is_sent(memory, i, &k->v[i].entry))
                        return false;
        return true;
}

static enum folder_look choose_look(const struct manifest_item *it)
{
        size_t place = strlen(it->entry.path), top = strlen(it->top);

        return place > top ? FOLDER_LOOK : place == top ? FOLDER_LOOK_BEHIND : FOLDER_LOOK_RIGHTS;
}

static void remember_items(const struct packing *k, struct folder_memory *memory,
                           const struct manifest *p)
{
        struct folder_sum sum = { .wire_bytes = p->wire_bytes };
        bool whole = false;

        for (size_t i = 0; i < k->n; i++)
                whole |= !*k->v[i].top;
        memcpy(sum.sha, p->label.sha, PUSH_SHA);
        folder_memory_begin(memory, &sum, whole);
        for (size_t i = 0; i < k->n; i++) {
                const struct manifest_item *it = &k->v[i];
                const struct folder_source from = { it->source.path, it->top };
                const struct folder_entry e = { .key = it->source.key,
                                                .mode = it->mode,
                                                .look = (uint8_t)choose_look(it),
                                                .stamped = it->source.stamped,
                                                .edited = it->source.content != NULL };

                folder_memory_add(memory, &e, &it->entry, &from);
        }
}

/* --- the manifest ----------------------------------------------------------------------------- */

static void hash_manifest(struct manifest *p)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        push_manifest_put(&b, &p->manifest);
        p->wire_bytes = buf_len(&b);
        crypto_hash_sha256(p->label.sha, buf_data(&b), buf_len(&b));
}

/* Moves the items into the manifest. @sum: the hash of the manifest; NULL = not known. */
static void fill_manifest(struct packing *k, const struct folder_sum *sum, struct manifest *p)
{
        p->manifest.v = xcalloc(k->n, sizeof(*p->manifest.v));
        p->sources = xcalloc(k->n, sizeof(*p->sources));
        p->manifest.n = (uint32_t)k->n;
        for (size_t i = 0; i < k->n; i++) {
                p->manifest.v[i] = k->v[i].entry;
                p->sources[i] = k->v[i].source;
                p->files += k->v[i].entry.kind == PUSH_FILE;
                p->bytes += k->v[i].entry.size;
        }
        if (sum) {
                p->wire_bytes = sum->wire_bytes;
                memcpy(p->label.sha, sum->sha, PUSH_SHA);
        } else {
                hash_manifest(p);
        }
        if (k->n > PUSH_ENTRIES_MAX || p->wire_bytes > PUSH_MANIFEST_MAX)
                diag_help(diag_add(k->d, HN_PUSH_TOO_MANY, EX_NOINPUT,
                                   "%scannot send more than %d files, or more than %d MB of names",
                                   k->option, PUSH_ENTRIES_MAX, PUSH_MANIFEST_MAX >> 20),
                          "pack the files into one (tar, WebDataset, HDF5) and push that");
}

/* Returns the beginning of messages. */
static const char *name_option(const struct manifest *p)
{
        static const char *const names[PUSH_USES] = { "--push: ", "--stage: ", "--venv: " };

        return p->by_command ? "" : names[p->label.use];
}

/* Hashes the sorted items and moves them into the manifest. */
static int finish_packing(struct packing *k, bool recalled, struct manifest *p)
{
        bool is_same;

        /* Hashing takes longest: skip a refused manifest. */
        if (!diags_errors(k->d) && k->n <= PUSH_ENTRIES_MAX)
                hash_items(k);
        is_same = recalled && items_are_same(k, p->memory);
        fill_manifest(k, is_same ? folder_memory_sum(p->memory) : NULL, p);
        if (p->memory && !is_same && !diags_errors(k->d))
                remember_items(k, p->memory, p);
        p->dir = xstrdup(k->dir);
        free(k->v);
        strv_finish(&k->tops);
        return diags_errors(k->d) ? -EINVAL : 0;
}

/* Opens the memory of these paths. The paths identify the memory, since the sent places depend on
 * them. */
static struct folder_memory *open_memory(const struct strv *paths, const char *cwd, bool stamps)
{
        CLEANUP(free_textp) char *what = NULL;
        struct buf b = BUF_INIT;

        buf_printf(&b, "%d\n", stamps);
        for (size_t i = 0; i < paths->n; i++)
                buf_printf(&b, "%s\n", paths->v[i]);
        what = buf_steal(&b);
        return folder_memory_open(cwd, what);
}

int manifest_pack(struct manifest *p, const struct strv *paths, const char *cwd,
                  const struct manifest_watch *watch, struct diags *d)
{
        struct packing k = { .d = d,
                             .watch = watch,
                             .stamps = p->label.use == PUSH_STAGE,
                             .option = name_option(p),
                             .dir = cwd,
                             .tops = STRV_INIT };
        struct buf name = BUF_INIT;
        bool recalled;
        int r;

        p->memory = watch && watch->memory ? open_memory(paths, cwd, k.stamps) : NULL;
        recalled = p->memory && folder_memory_is_true(p->memory);
        for (size_t i = 0; i < paths->n && k.n <= PUSH_ENTRIES_MAX; i++) {
                CLEANUP(free_textp) char *full = absolute_path(cwd, paths->v[i]);

                if (!recalled)
                        gather_argument(&k, cwd, paths->v[i]);
                if (buf_len(&name) + strlen(full) < PUSH_PATH_MAX)
                        buf_printf(&name, "%s%s", i ? " " : "", full);
        }
        p->label.name = buf_steal(&name);
        if (recalled)
                recall_items(&k, p->memory);
        else
                sort_items(&k);
        r = finish_packing(&k, recalled, p);
        if (r == 0 && p->manifest.n >= REMEMBER_MIN)
                folder_memory_save(p->memory);
        return r;
}

int manifest_pack_folder(struct manifest *p, const char *dir, const struct manifest_edit *edit,
                         const struct manifest_watch *watch, struct diags *d)
{
        bool recalled = p->memory && folder_memory_is_true(p->memory);
        struct packing k = { .d = d,
                             .watch = watch,
                             .edit = edit,
                             .stamps = true,
                             .option = name_option(p),
                             .dir = dir,
                             .tops = STRV_INIT,
                             .top = "" };

        p->label.name = xstrdup(dir);
        if (recalled) {
                recall_items(&k, p->memory);
        } else {
                gather_source(&k, &(struct found){ AT_FDCWD, dir, dir }, "", true);
                k.top = edit->base_place;
                if (edit->base)
                        gather_source(&k, &(struct found){ AT_FDCWD, edit->base, edit->base },
                                      edit->base_place, true);
                sort_items(&k);
        }
        return finish_packing(&k, recalled, p);
}

const char *manifest_place(const struct manifest *p, const char *cwd, const char *path)
{
        CLEANUP(free_textp) char *full = absolute_path(cwd, path);

        for (uint32_t i = 0; i < p->manifest.n; i++)
                if (p->sources[i].path ? !strcmp(p->sources[i].path, full)
                                       : is_usual_source(p->dir, p->manifest.v[i].path, full))
                        return p->manifest.v[i].path;
        return NULL;
}

void manifest_finish(struct manifest *p)
{
        for (uint32_t i = 0; i < p->manifest.n; i++) {
                free(p->sources[i].path);
                free(p->sources[i].content);
                if (folder_memory_has(p->memory, p->manifest.v[i].path))
                        p->manifest.v[i].path = NULL;
        }
        free(p->sources);
        free(p->dir);
        free(p->label.name);
        free(p->label.python.path);
        push_manifest_finish(&p->manifest);
        folder_memory_close(p->memory);
        fd_close(p->fd);
        *p = (struct manifest)MANIFEST_INIT;
}
