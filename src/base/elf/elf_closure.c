/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects are the program and the libraries found, in the order in which the loader meets them, so
 * a single pass over the growing list visits all. Each object knows the parent, which asked for the
 * object first: DT_RPATH of the parents counts, too. A file of another word size counts as missing.
 * ld.so.cache is read at the first need.
 */
#include "base/elf/elf_closure.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf/elf_libs.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

/* Limits against damaged files and deep chains of folders: a launch waits for the result.
 * ld.so.cache has some hundred kB. */
enum { LIBRARIES_MAX = 512, TRIES_MAX = 20000, CACHE_MAX = 16 << 20 };

struct elf_object {
        const char *name; /* NULL = the program */
        struct elf_libs libs;
        size_t parent; /* of the program: itself */
};

struct elf_found {
        char *path;
        struct elf_libs libs;
};

struct elf_walk {
        struct elf_closure *out;
        struct elf_object *objects;
        size_t n, cap;       /* objects visited or to be visited */
        struct strv folders; /* of LD_LIBRARY_PATH */
        char *cache;
        size_t cache_len;
        bool cache_is_read;
        unsigned tries; /* files opened, found or not */
};

/* Whether a library is a part of glibc. The prefix covers the loaders of all machines. */
static bool is_of_glibc(const char *name)
{
        static const char *const names[] = { "libc.so.6",   "libm.so.6",  "libpthread.so.0",
                                             "libdl.so.2",  "librt.so.1", "libresolv.so.2",
                                             "libmvec.so.1" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strcmp(names[i], name))
                        return true;
        return !strncmp(name, "ld-linux", strlen("ld-linux"));
}

/* Reads @path, which is freed unless it is a library. */
static bool try_library(struct elf_walk *w, char *path, struct elf_found *to)
{
        if (w->tries < TRIES_MAX) {
                w->tries++;
                if (elf_libs_read(&to->libs, path) == 0) {
                        to->path = path;
                        return true;
                }
                elf_libs_finish(&to->libs);
        }
        free(path);
        return false;
}

/* Tries the folders in order. True: @to owns path and libraries. */
static bool try_folders(struct elf_walk *w, const struct strv *folders, const char *name,
                        struct elf_found *to)
{
        for (size_t i = 0; i < folders->n; i++)
                if (try_library(w, xasprintf("%s/%s", folders->v[i], name), to))
                        return true;
        return false;
}

/* Tries DT_RPATH of the object and of the parents up to the program. */
static bool try_parents(struct elf_walk *w, size_t by, const char *name, struct elf_found *to)
{
        const struct elf_object *o = &w->objects[by];

        if (o->libs.folders.n && !o->libs.inherited)
                return false; /* DT_RUNPATH puts DT_RPATH out of force */
        for (;; by = o->parent) {
                o = &w->objects[by];
                if (o->libs.inherited && try_folders(w, &o->libs.folders, name, to))
                        return true;
                if (o->parent == by)
                        return false;
        }
}

/* The cache may name a library several times, once for each word size. */
static bool try_cache(struct elf_walk *w, const char *name, struct elf_found *to)
{
        const char *path;
        size_t at = 0;

        if (!w->cache_is_read &&
            fd_read_file("/etc/ld.so.cache", CACHE_MAX, &w->cache, &w->cache_len) < 0)
                w->cache = NULL;
        w->cache_is_read = true; /* also after a failure: one try is enough */
        while (w->cache && (path = loader_cache_find(w->cache, w->cache_len, name, &at)))
                if (try_library(w, xstrdup(path), to))
                        return true;
        return false;
}

static bool try_system(struct elf_walk *w, const char *name, struct elf_found *to)
{
        static const char *const folders[] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib" };

        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                if (try_library(w, xasprintf("%s/%s", folders[i], name), to))
                        return true;
        return false;
}

/* Looks for @name, which the object @by needs. */
static bool find_library(struct elf_walk *w, size_t by, const char *name, struct elf_found *to)
{
        const struct elf_libs *libs = &w->objects[by].libs;

        /* A name with a slash is a path, without a search. */
        if (strchr(name, '/'))
                return try_library(w, xstrdup(name), to);
        /* The order of ld.so(8). DT_RUNPATH comes behind LD_LIBRARY_PATH, DT_RPATH before. */
        return try_parents(w, by, name, to) || try_folders(w, &w->folders, name, to) ||
               (!libs->inherited && try_folders(w, &libs->folders, name, to)) ||
               try_cache(w, name, to) || try_system(w, name, to);
}

static bool is_listed(const struct elf_closure *c, const char *name)
{
        for (size_t i = 0; i < c->n; i++)
                if (!strcmp(c->v[i].name, name))
                        return true;
        return false;
}

static void add_object(struct elf_walk *w, struct elf_object o)
{
        w->objects = xgrow(w->objects, w->n, &w->cap, sizeof(o));
        w->objects[w->n++] = o;
}

/* Lists a library once, and queues the file, if found, for the walk. */
static void add_library(struct elf_walk *w, size_t by, const char *name)
{
        struct elf_closure *c = w->out;
        struct elf_found found = { 0 };
        struct elf_library l;

        if (is_of_glibc(name) || is_listed(c, name) || c->n == LIBRARIES_MAX)
                return;
        l = (struct elf_library){ .name = xstrdup(name), .by = w->objects[by].name };
        if (find_library(w, by, name, &found)) {
                l.path = found.path;
                add_object(w, (struct elf_object){ l.name, found.libs, by });
        }
        c->v = xgrow(c->v, c->n, &c->cap, sizeof(l));
        c->v[c->n++] = l;
}

static void read_library_path(struct strv *folders, const char *text)
{
        CLEANUP(free_textp) char *copy = xstrdup(text ? text : "");
        char *rest = copy;

        for (char *word; (word = strsep(&rest, ":;"));) /* ld.so takes both */
                /* An empty or relative folder depends on the folder of the rank, which is not known
                 * here. */
                if (*word == '/')
                        strv_push(folders, word);
}

int elf_closure_read(struct elf_closure *ret, const char *program, const char *library_path)
{
        struct elf_walk w = { .out = ret };
        struct elf_libs libs;
        int r = elf_libs_read(&libs, program);

        *ret = (struct elf_closure){ 0 };
        add_object(&w, (struct elf_object){ .libs = libs });
        read_library_path(&w.folders, library_path);
        /* The list grows inside of the loop, and the walk is breadth-first like the loader's. */
        for (size_t i = 0; i < w.n; i++)
                for (size_t k = 0; k < w.objects[i].libs.needed.n; k++)
                        add_library(&w, i, w.objects[i].libs.needed.v[k]);
        for (size_t i = 0; i < w.n; i++)
                elf_libs_finish(&w.objects[i].libs);
        free(w.objects);
        strv_finish(&w.folders);
        free(w.cache);
        return r;
}

char *elf_closure_find(const char *name, const char *library_path)
{
        struct elf_walk w = { 0 };
        struct elf_found found = { 0 };

        read_library_path(&w.folders, library_path);
        if (try_folders(&w, &w.folders, name, &found) || try_cache(&w, name, &found) ||
            try_system(&w, name, &found))
                elf_libs_finish(&found.libs);
        strv_finish(&w.folders);
        free(w.cache);
        return found.path;
}

void elf_closure_finish(struct elf_closure *c)
{
        for (size_t i = 0; i < c->n; i++) {
                free(c->v[i].name);
                free(c->v[i].path);
        }
        free(c->v);
        *c = (struct elf_closure){ 0 };
}

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
        /* The new header is aligned. */
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
