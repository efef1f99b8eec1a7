/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of calls: file_cache_offer(), file_cache_look() until the answer is not FILE_CACHE_SHARED,
 * file_cache_put() for every chunk until file_cache_complete(), file_cache_finish(),
 * file_cache_close(). For a staged folder that is whole an offer without a manifest is enough; else
 * file_cache_offer() comes again, with the manifest.
 *
 * A look takes the shared lock of the tree, claims the right to fetch for this node, makes the
 * folders, links every present content (place_file) and lists each missing content once. A fetched
 * file is written under a name of this node. After the hash was verified the file is linked into
 * the tree first, and then renamed to the content name: a content without a link in a tree is
 * always garbage. finish() completes the links, then makes symbolic links.
 */
#include "agent/files/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/files/cache_dir.h"
#include "agent/files/stage_copies.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/memory.h"

enum { TRIES = 100, CONFIG_MAX = 1 << 20 };

/* --- failures --------------------------------------------------------------------------------- */

/* Fills in @ret with the error and the state of the folder. Returns -@error. */
static int PRINTF(4, 5)
        fail_push(const struct file_cache *s, struct pushed *ret, int error, const char *fmt, ...)
{
        struct statvfs v;
        va_list ap;

        *ret = (struct pushed){ .error = (uint32_t)error };
        snprintf(ret->folder, sizeof(ret->folder), "%s", s->root ? s->root : "");
        if (s->root && statvfs(s->root, &v) == 0)
                ret->free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
        va_start(ap, fmt);
        vsnprintf(ret->what, sizeof(ret->what), fmt, ap);
        va_end(ap);
        return -error;
}

/* --- names ------------------------------------------------------------------------------------ */

static void format_hex(char *to, const unsigned char *sha, int digits)
{
        for (int i = 0; i < digits / 2; i++)
                snprintf(to + 2 * i, 3, "%02x", sha[i]);
}

/* Returns the mode of a content: read-only because shared, readable and executable as before. */
static mode_t file_mode(const struct push_entry *e)
{
        return (e->mode & 0555) | 0400; /* no write bit: every tree links the same file */
}

static char *content_path(const struct file_cache *s, const struct push_entry *e)
{
        char sha[2 * PUSH_SHA + 1];

        format_hex(sha, e->sha, 2 * PUSH_SHA);
        return xasprintf("%s/file/%s.%o", s->root, sha, (unsigned)file_mode(e));
}

static char *tree_path(const struct file_cache *s, const struct push_entry *e)
{
        return xasprintf("%s/%s", s->tree, e->path);
}

static bool is_staged(const struct file_cache *s)
{
        return s->offer.label.use != PUSH_RANKS;
}

/* Writes the name of this node of the run, unique among all agents. */
static void name_owner(const struct file_cache *s, char who[96])
{
        snprintf(who, 96, "%s-%u", s->offer.run_id, s->offer.node);
}

void file_cache_offer(struct file_cache *s, struct push_offer *offer)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        push_offer_finish(&s->offer);
        s->offer = *offer;
        *offer = (struct push_offer){ 0 };
        /* The id is made of the hash of the whole manifest: equal offers share a folder, other
         * offers never meet. */
        if (!s->offer.later) {
                push_manifest_put(&b, &s->offer.manifest);
                crypto_hash_sha256(s->offer.label.sha, buf_data(&b), buf_len(&b));
        }
        format_hex(s->id, s->offer.label.sha, FILE_CACHE_ID);
}

/* --- files that are present ------------------------------------------------------------------- */

static bool is_content(const char *path, const struct push_entry *e)
{
        struct stat st;

        return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
               (uint64_t)st.st_size == e->size && (st.st_mode & 07777) == file_mode(e) &&
               st.st_mtime == FILE_CACHE_TIME;
}

/* Links @content to @path in place of any other entry but a folder. */
static int link_over(const char *content, const char *path)
{
        struct stat a, b;

        if (link(content, path) == 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        if (lstat(content, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
            a.st_ino == b.st_ino)
                return 0;
        return unlink(path) < 0 || link(content, path) < 0 ? -errno : 0;
}

/* Links a content into the tree. -ENOENT: the content is missing. */
static int place_file(const struct file_cache *s, const struct push_entry *e)
{
        CLEANUP(free_textp) char *content = content_path(s, e);
        CLEANUP(free_textp) char *path = tree_path(s, e);

        return is_content(content, e) ? link_over(content, path) : -ENOENT;
}

/* Links a content into the tree. If the tree's link is the only link left, restores the content's
 * name. */
static int complete_file(const struct file_cache *s, const struct push_entry *e)
{
        CLEANUP(free_textp) char *content = content_path(s, e);
        CLEANUP(free_textp) char *path = tree_path(s, e);
        int r = place_file(s, e);

        if (r == -ENOENT && is_content(path, e))
                r = link(path, content) < 0 && errno != EEXIST ? -errno : 0;
        return r;
}

static int place_folder(const struct file_cache *s, const struct push_entry *e)
{
        CLEANUP(free_textp) char *path = tree_path(s, e);

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        /* Ranks may write in the folder, and the agent must be able to remove files there. */
        return chmod(path, (e->mode & 0777) | 0700) < 0 ? -errno : 0;
}

/* Makes a symbolic link. A right link stays: other jobs may read through the link now. */
static int place_link(const struct file_cache *s, const struct push_entry *e)
{
        CLEANUP(free_textp) char *path = tree_path(s, e);
        char there[PUSH_PATH_MAX + 1];
        ssize_t n = readlink(path, there, sizeof(there) - 1);

        if (n >= 0 && (size_t)n == strlen(e->target) && !memcmp(there, e->target, (size_t)n))
                return 0;
        unlink(path); /* a rank may have put another entry there */
        return symlink(e->target, path) < 0 ? -errno : 0;
}

/* Calls @place for all entries of a kind, in the order of the manifest: a folder must stand before
 * the entries in the folder. */
static int place_kind(struct file_cache *s, enum push_kind kind,
                      int (*place)(const struct file_cache *, const struct push_entry *),
                      struct pushed *ret)
{
        for (uint32_t i = 0; i < s->offer.manifest.n; i++) {
                const struct push_entry *e = &s->offer.manifest.v[i];
                int r = e->kind == kind ? place(s, e) : 0;

                if (r < 0)
                        return fail_push(s, ret, -r, "cannot place %s: %s", e->path, strerror(-r));
        }
        return 0;
}

/* Entries sorted by content, to find duplicates. */
struct ref {
        const struct push_entry *e;
        uint32_t index;
};

static int compare_contents(const void *a, const void *b)
{
        const struct ref *x = a, *y = b;
        int r = memcmp(x->e->sha, y->e->sha, PUSH_SHA);

        return r ? r : (int)file_mode(x->e) - (int)file_mode(y->e);
}

static int compare_refs(const void *a, const void *b)
{
        const struct ref *x = a, *y = b;
        int r = compare_contents(a, b);

        return r ? r : (x->index > y->index) - (x->index < y->index);
}

static int compare_numbers(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Keeps one entry for each missing content; file_cache_finish() links the others. */
static void drop_duplicates(struct file_cache *s)
{
        struct ref *v = xcalloc(s->n_missing, sizeof(*v));
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n_missing; i++)
                v[i] = (struct ref){ &s->offer.manifest.v[s->missing[i]], s->missing[i] };
        qsort(v, s->n_missing, sizeof(*v), compare_refs);
        for (uint32_t i = 0; i < s->n_missing; i++)
                if (!i || compare_contents(&v[i - 1], &v[i]) != 0)
                        s->missing[n++] = v[i].index;
        s->n_missing = n;
        /* The order of the manifest again, as sent by the head. */
        qsort(s->missing, n, sizeof(*s->missing), compare_numbers);
        free(v);
}

/* Links all present contents and lists the others as missing. */
static int list_missing(struct file_cache *s, struct pushed *ret)
{
        const struct push_manifest *m = &s->offer.manifest;

        free(s->missing); /* of an earlier look */
        s->missing = xcalloc(m->n, sizeof(*s->missing));
        s->n_missing = s->at = 0;
        for (uint32_t i = 0; i < m->n; i++) {
                int r = m->v[i].kind == PUSH_FILE ? place_file(s, &m->v[i]) : 0;

                /* On EMLINK another copy takes over the name. */
                if (r == -ENOENT || r == -EMLINK)
                        s->missing[s->n_missing++] = i;
                else if (r < 0)
                        return fail_push(s, ret, -r, "cannot place %s: %s", m->v[i].path,
                                         strerror(-r));
        }
        drop_duplicates(s);
        return 0;
}

/* Fails now and not in the middle of a file, as far as the file system knows. */
static int check_free_space(struct file_cache *s, struct pushed *ret)
{
        uint64_t need = 0;
        struct statvfs v;
        char size[32];

        for (uint32_t i = 0; i < s->n_missing; i++)
                need += s->offer.manifest.v[s->missing[i]].size;
        if (is_staged(s) && need)
                stage_make_room(s->root, need, s->offer.label.limit);
        if (statvfs(s->root, &v) < 0 || (uint64_t)v.f_bavail * v.f_frsize >= need)
                return 0;
        format_size(size, sizeof(size), need);
        return fail_push(s, ret, ENOSPC, "%s are to be stored", size);
}

/* --- the place -------------------------------------------------------------------------------- */

/* Removes the file *@path, which may be NULL, and frees the name; 0, or errno: the file is left. */
static int drop_file(char **path)
{
        if (*path && unlink(*path) < 0 && errno != ENOENT)
                return errno;
        free(*path);
        *path = NULL;
        return 0;
}

/* Returns the name of a file written only by this node. */
static char *get_temp_path(const struct file_cache *s)
{
        char who[96];

        name_owner(s, who);
        return xasprintf("%s/file/.%s", s->root, who);
}

/* Opens ROOT/file: a descriptor or -errno. Other jobs remove ROOT/file when empty, but not ROOT,
 * which has our lock. */
static int open_temp(const struct file_cache *s, const char *path)
{
        CLEANUP(free_textp) char *folder = xasprintf("%s/file", s->root);
        int fd = -ENOENT;

        for (int i = 0; i < TRIES && fd == -ENOENT; i++) {
                fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                if (fd < 0)
                        fd = -errno;
                if (fd == -EEXIST && unlink(path) == 0)
                        fd = -ENOENT; /* the claim may be a link to the content: never write to the
                                         claim */
                else if (fd == -ENOENT && mkdir(folder, 0700) < 0 && errno != EEXIST)
                        fd = -errno;
        }
        return fd;
}

/* Creates a claim together with the content: 0, or -EEXIST if another claim exists. */
static int make_claim(const struct file_cache *s, const char *path)
{
        CLEANUP(free_textp) char *mine = get_temp_path(s);
        CLEANUP(fd_closep) int fd = open_temp(s, mine);
        char text[16];
        int n = snprintf(text, sizeof(text), "%u\n", s->offer.node);
        int r = fd < 0 ? fd : fd_write_all(fd, text, (size_t)n);

        /* A link appears together with the content; after an open with O_EXCL the file would be
         * empty for a moment. */
        if (!r && link(mine, path) < 0)
                r = -errno;
        unlink(mine);
        return r;
}

/* Claims the right to fetch. 0: this node fetches; FILE_CACHE_SHARED: another node of the run
 * does. */
static int claim_fetch(struct file_cache *s, uint32_t *ret_holder, struct pushed *ret)
{
        char *path = xasprintf("%s/%s.%s", s->root, s->id, s->offer.run_id), *text;
        int r = -EEXIST;

        for (int i = 0; i < TRIES && r == -EEXIST; i++) {
                r = make_claim(s, path);
                if (r != -EEXIST || fd_read_regular(AT_FDCWD, path, 16, &text, NULL) < 0)
                        continue; /* the other claim is gone again */
                *ret_holder = (uint32_t)strtoul(text, NULL, 10);
                free(text);
                r = FILE_CACHE_SHARED;
        }
        if (r < 0)
                fail_push(s, ret, -r, "cannot write %s: %s", path, strerror(-r));
        if (r)
                free(path);
        else
                s->claim = path;
        return r;
}

/* Takes lock and claim, makes the folders, and lists the missing contents. 0, FILE_CACHE_SHARED, or
 * negative with @ret. */
static int prepare_place(struct file_cache *s, bool take_over, uint32_t *ret_holder,
                         struct pushed *ret)
{
        int r = 0;

        if (s->lock < 0) {
                char who[96];

                name_owner(s, who);
                s->tree = is_staged(s) ? xasprintf("%s/.%s.%u", s->root, who, s->offer.label.use)
                                       : xasprintf("%s/%s", s->root, s->id);
                r = cache_lock_share(s->root, s->id, &s->lock);
                if (r == 0)
                        r = cache_owner_lock(s->root, who, &s->owner);
                if (r < 0)
                        return fail_push(s, ret, -r, "cannot lock %s: %s", s->tree, strerror(-r));
                cache_sweep_dead(s->root);
        }
        if (!s->claim && !take_over)
                r = claim_fetch(s, ret_holder, ret);
        if (r)
                return r;
        if (mkdir(s->tree, 0700) < 0 && errno != EEXIST)
                return fail_push(s, ret, errno, "cannot make %s: %s", s->tree, strerror(errno));
        r = place_kind(s, PUSH_FOLDER, place_folder, ret);
        if (r == 0)
                r = list_missing(s, ret);
        return r ? r : check_free_space(s, ret);
}

/* Removes the folder if no other job uses the folder. A staged folder stays once whole. */
static void release_place(struct file_cache *s)
{
        /* Without the lock nothing may be removed: other jobs may use the folder. */
        int r = s->lock < 0 || s->whole ? -EAGAIN : cache_lock_alone(s->lock, s->root, s->id);
        struct cache_left left = { .pulled = s->pulled };
        char *text, who[96];

        s->fd = fd_close(s->fd);
        name_owner(s, who);
        if (s->tree && is_staged(s) && !s->whole)
                cache_remove_unfinished(s->root, strrchr(s->tree, '/') + 1, &left);
        if (r == 0)
                cache_remove(s->root, s->id, s->offer.run_id, &left);
        else if (r != -EAGAIN)
                cache_left_add(&left, -r);
        /* Other jobs use the folder: only this node's own files are removed. */
        if (r != 0) {
                cache_left_add(&left, drop_file(&s->temp));
                cache_left_add(&left, drop_file(&s->claim));
        }
        cache_left_add(&left, cache_owner_unlock(s->root, who, &s->owner));
        s->lock = fd_close(s->lock);
        s->root_lock = fd_close(s->root_lock);
        text = s->root ? cache_left_text(&left, s->root, s->id) : NULL;
        if (!s->left)
                s->left = text;
        else
                free(text);
        free(s->temp);
        free(s->claim);
        free(s->root);
        free(s->tree);
        s->temp = s->claim = s->root = s->tree = NULL;
        s->whole = false;
}

/* Uses the whole folder of an earlier run, in any of the places. False: no place has the folder. */
static bool find_whole(struct file_cache *s)
{
        for (int i = 0; i < FILE_CACHE_PLACES && !s->whole; i++) {
                char *root = cache_dir(i);
                char *tree = root ? xasprintf("%s/%s", root, s->id) : NULL;

                if (tree && cache_dir_is_usable(root, s->offer.label.use == PUSH_VENV) &&
                    access(tree, F_OK) == 0 && cache_lock_share(root, s->id, &s->lock) == 0) {
                        /* Another job may have removed the folder before the lock. */
                        s->whole = access(tree, F_OK) == 0 && stage_is_whole(root, s->id, false);
                        if (!s->whole)
                                s->lock = fd_close(s->lock);
                }
                if (s->whole) {
                        s->root = root;
                        s->tree = tree;
                        s->root_lock = cache_root_lock(root);
                        stage_mark_used(root, s->id);
                } else {
                        free(root);
                        free(tree);
                }
        }
        return s->whole;
}

/* The same in a later look, after another node of the run has unpacked into the same place. */
static bool find_other_whole(struct file_cache *s)
{
        CLEANUP(free_textp) char *tree = s->root ? xasprintf("%s/%s", s->root, s->id) : NULL;

        if (tree && access(tree, F_OK) < 0)
                return false;
        release_place(s);
        return find_whole(s);
}

/* If every place fails, the reason of the first is reported: users know the first place. */
static int find_cache_place(struct file_cache *s, bool take_over, uint32_t *ret_holder,
                            struct pushed *ret)
{
        const struct push_manifest *m = &s->offer.manifest;
        bool program = false;
        int r = -ENOENT, first = 0;
        struct pushed why;
        char who[96];

        for (uint32_t i = 0; i < m->n; i++)
                program |= m->v[i].kind == PUSH_FILE && m->v[i].mode & 0111;
        name_owner(s, who);
        for (int i = 0; i < FILE_CACHE_PLACES; i++) {
                s->root = cache_dir(i);
                if (!s->root)
                        continue;
                r = cache_dir_open(s->root, program, who, &why);
                if (r == 0)
                        s->root_lock = cache_root_lock(s->root);
                if (r == 0)
                        r = prepare_place(s, take_over, ret_holder, &why);
                if (r >= 0)
                        return r;
                release_place(s);
                if (i == 0)
                        cache_dir_pass_over(why.error == ENOSPC ? "no room" : why.what);
                if (!first) {
                        first = r;
                        *ret = why;
                }
        }
        return first ? first : fail_push(s, ret, ENOENT, "no folder to try: HOME is not set");
}

int file_cache_look(struct file_cache *s, bool take_over, uint32_t *ret_holder, struct pushed *ret)
{
        if (is_staged(s) && !s->whole && find_other_whole(s))
                return 0;
        if (s->offer.later)
                return FILE_CACHE_UNKNOWN;
        if (s->root) /* a later look, at the place found before */
                return prepare_place(s, take_over, ret_holder, ret);
        return find_cache_place(s, take_over, ret_holder, ret);
}

/* --- fetching --------------------------------------------------------------------------------- */

bool file_cache_complete(const struct file_cache *s)
{
        return s->at == s->n_missing;
}

/* Syncs kept files: after a power cut a damaged content must not look intact. */
static int seal_file(struct file_cache *s, const struct push_entry *e)
{
        const struct timespec t[2] = { { .tv_sec = FILE_CACHE_TIME },
                                       { .tv_sec = FILE_CACHE_TIME } };
        int r = 0;

        if ((s->offer.keep && fsync(s->fd) < 0) || fchmod(s->fd, file_mode(e)) < 0 ||
            futimens(s->fd, t) < 0)
                r = -errno;
        if (close(s->fd) < 0 && !r)
                r = -errno; /* network file systems tell of a full disk only now */
        s->fd = -1;
        return r;
}

/* Verifies the fetched file and gives the content a name. 0, or negative with @ret. */
static int end_file(struct file_cache *s, const struct push_entry *e, struct pushed *ret)
{
        CLEANUP(free_textp) char *content = content_path(s, e);
        CLEANUP(free_textp) char *path = tree_path(s, e);
        unsigned char sha[PUSH_SHA];
        int r;

        crypto_hash_sha256_final(&s->hash, sha);
        if (memcmp(sha, e->sha, PUSH_SHA) != 0)
                return fail_push(s, ret, EBADMSG, "%s arrived with a wrong hash", e->path);
        r = seal_file(s, e);
        /* In this order: other jobs remove a content with a single link. */
        if (!r)
                r = link_over(s->temp, path);
        if (!r && rename(s->temp, content) < 0)
                r = -errno;
        if (r)
                return fail_push(s, ret, -r, "cannot store %s: %s", e->path, strerror(-r));
        free(s->temp);
        s->temp = NULL;
        s->at++;
        return 0;
}

int file_cache_put(struct file_cache *s, const struct push_chunk *c, struct pushed *ret)
{
        const struct push_entry *e;
        int r;

        /* Both lists have the order of the manifest. */
        if (file_cache_complete(s) || c->entry < s->missing[s->at])
                return 0;
        if (c->entry != s->missing[s->at] || c->offset != (s->temp ? s->got : 0))
                return fail_push(s, ret, EPROTO, "unexpected piece of a file");
        e = &s->offer.manifest.v[c->entry];
        /* An empty file is a single piece without bytes. */
        if (c->len > e->size - c->offset || (!c->len && e->size))
                return fail_push(s, ret, EPROTO, "a piece beyond the end of %s", e->path);
        if (!s->temp) {
                s->temp = get_temp_path(s);
                s->got = 0;
                crypto_hash_sha256_init(&s->hash);
                s->fd = open_temp(s, s->temp);
                if (s->fd < 0)
                        return fail_push(s, ret, -s->fd, "cannot write %s: %s", s->temp,
                                         strerror(-s->fd));
        }
        crypto_hash_sha256_update(&s->hash, c->data, c->len);
        r = fd_write_all(s->fd, c->data, c->len);
        if (r < 0)
                return fail_push(s, ret, -r, "cannot store %s: %s", e->path, strerror(-r));
        s->got += c->len;
        return s->got == e->size ? end_file(s, e, ret) : 0;
}

/* Writes all files to the disk: after a power cut a folder with the final name must be whole. */
static void sync_files(const struct file_cache *s)
{
        int fd = open(s->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0)
                syncfs(fd);
        fd_close(fd);
}

/* Renames a staged folder to the final name, and removes the rights to write. 0 or -errno. */
static int name_whole(struct file_cache *s)
{
        char *tree = xasprintf("%s/%s", s->root, s->id);
        struct cache_left left = { 0 };
        int r = 0;

        /* From the end: a folder comes after its contents. */
        for (uint32_t i = s->offer.manifest.n; i-- && !r;) {
                const struct push_entry *e = &s->offer.manifest.v[i];
                CLEANUP(free_textp) char *path = tree_path(s, e);

                if (e->kind == PUSH_FOLDER && chmod(path, (e->mode & 0555) | 0500) < 0)
                        r = -errno;
        }
        if (!r && chmod(s->tree, 0555) < 0)
                r = -errno;
        if (!r && s->n_missing)
                sync_files(s);
        if (!r && rename(s->tree, tree) < 0) {
                const char *name = strrchr(s->tree, '/') + 1;

                r = errno == EEXIST || errno == ENOTEMPTY ? 0 : -errno;
                /* Another run was faster: use the other run's folder, if no file is missing
                 * there. */
                if (!r && stage_is_whole(s->root, s->id, true))
                        cache_remove_unfinished(s->root, name, &left);
                else if (!r)
                        r = cache_replace_kept(s->root, s->id, name);
        }
        /* After the rename: a folder without a note is not taken for whole. */
        if (!r)
                r = stage_write_note(s->root, s->id, &s->offer);
        s->whole = r == 0;
        if (r) {
                free(tree);
                return r;
        }
        free(s->tree);
        s->tree = tree;
        return 0;
}

/* Adds the folder of a Python sent with the environment to pyvenv.cfg: only this node knows the
 * path of the copy. 0 or -errno. */
static int write_home(struct file_cache *s, const struct push_entry *e)
{
        const char *python = s->offer.label.python.path, *name = strrchr(python, '/');
        CLEANUP(free_textp) char *path = tree_path(s, e), *content = content_path(s, e);
        CLEANUP(free_textp) char *text = NULL, *whole = NULL;
        int r = fd_read_regular(AT_FDCWD, path, CONFIG_MAX, &text, NULL);

        if (r < 0 || !name)
                return r;
        whole = xasprintf("home = %s/%s/%.*s\n%s", s->root, s->id, (int)(name - python), python,
                          text);
        s->temp = get_temp_path(s);
        s->fd = open_temp(s, s->temp);
        r = s->fd < 0 ? s->fd : fd_write_all(s->fd, whole, strlen(whole));
        if (!r)
                r = seal_file(s, e);
        if (!r && rename(s->temp, path) < 0)
                r = -errno;
        if (r)
                return r;
        free(STEAL(&s->temp));
        unlink(content); /* has no link any more */
        return 0;
}

static int complete_config(struct file_cache *s, struct pushed *ret)
{
        const struct push_manifest *m = &s->offer.manifest;
        const char *python = s->offer.label.python.path;
        int r = 0;

        for (uint32_t i = 0; i < m->n && python && *python && *python != '/' && !r; i++)
                if (!strcmp(m->v[i].path, "pyvenv.cfg"))
                        r = write_home(s, &m->v[i]);
        return r ? fail_push(s, ret, -r, "cannot store pyvenv.cfg: %s", strerror(-r)) : 0;
}

/* Links all files, then makes the symbolic links: no file is ever written through a link. */
static int complete_tree(struct file_cache *s, struct pushed *ret)
{
        int r = place_kind(s, PUSH_FILE, complete_file, ret);

        if (r == 0)
                r = complete_config(s, ret);
        if (r == 0)
                r = place_kind(s, PUSH_LINK, place_link, ret);
        if (r < 0)
                return r;
        if (is_staged(s)) {
                r = name_whole(s);
                if (r < 0)
                        return fail_push(s, ret, -r, "cannot complete %s: %s", s->tree,
                                         strerror(-r));
        } else if (s->offer.keep) {
                stage_write_note(s->root, s->id, &s->offer);
        }
        return 0;
}

int file_cache_finish(struct file_cache *s, struct pushed *ret)
{
        int r = s->whole ? 0 : complete_tree(s, ret);

        if (r < 0)
                return r;
        drop_file(&s->claim); /* else when the cache is closed */
        *ret = (struct pushed){ 0 };
        snprintf(ret->folder, sizeof(ret->folder), "%s", s->tree);
        return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

void file_cache_close(struct file_cache *s, char **ret_left)
{
        release_place(s);
        if (ret_left)
                *ret_left = s->left;
        else
                free(s->left);
        push_offer_finish(&s->offer);
        free(s->missing);
        *s = (struct file_cache)FILE_CACHE_INIT;
}
