/* SPDX-License-Identifier: Apache-2.0 */
/*
 * venv_pack() reads pyvenv.cfg, finds the Python outside, and packs the folder with an edit: links
 * and the few texts with paths into the environment are changed on the way, everything else is sent
 * unchanged. The Python outside comes along, as a folder of the copy, if --stage names it. Paths in
 * texts are compared with the real path of the environment and with the path at creation, which
 * bin/activate names.
 */
#include "head/push/venv.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium/crypto_hash_sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/elf/elf_libs.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/push/folder_memory.h"

#define BASE ".base-python" /* place of the installation in the copy */

enum {
        TEXT_MAX = 1 << 20, /* larger files are no texts to be changed */
        OUTSIDE_MAX = 20,   /* paths in the warning */
        READ_SIZE = 1 << 20,
};

struct venv {
        char *dir, *made;  /* real path; path at creation, may be equal */
        char *python;      /* the Python outside */
        char *base;        /* installation of the Python, if sent, too; NULL = not sent */
        char *base_python; /* with base: place of the Python in the copy */
        struct strv outside, set_user_id, rpaths;
        struct diags *d;
};

/* --- paths ------------------------------------------------------------------------------------ */

/* Returns the part of @path inside of @dir, without a slash at the beginning; NULL = outside. */
static const char *find_inside(const char *dir, const char *path)
{
        size_t n = strlen(dir);

        if (strncmp(path, dir, n) != 0 || (path[n] && path[n] != '/'))
                return NULL;
        return path + n + strspn(path + n, "/");
}

static const char *find_inside_any(const struct venv *v, const char *path)
{
        const char *inside = find_inside(v->dir, path);

        return inside ? inside : find_inside(v->made, path);
}

/* Returns the way from the folder of @place to @inside, both relative to the environment. */
static char *relative_way(const char *place, const char *inside)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        for (const char *p = strchr(place, '/'); p; p = strchr(p + 1, '/'))
                buf_printf(&b, "../");
        buf_printf(&b, "%s", *inside ? inside : ".");
        return buf_steal(&b);
}

static void note_path(struct strv *to, const char *fmt, const char *place, const char *path)
{
        if (to->n < OUTSIDE_MAX)
                strv_pushf(to, fmt, place, path);
}

/* --- scripts ---------------------------------------------------------------------------------- */

/* Whether @path is a Python in the folder bin of the environment: returns the name, with *@ret_len;
 * NULL = another program. */
static const char *find_own_python(const char *dir, const char *path, size_t len, size_t *ret_len)
{
        CLEANUP(free_textp) char *text = xstrndup(path, len);
        char *slash = strrchr(text, '/');
        CLEANUP(free_textp) char *folder = slash ? xstrndup(text, (size_t)(slash - text)) : NULL;
        CLEANUP(free_textp) char *bin = xasprintf("%s/bin", dir);
        CLEANUP(free_textp) char *real = folder ? realpath(folder, NULL) : NULL;
        CLEANUP(free_textp) char *real_bin = realpath(bin, NULL);

        if (!slash || strncmp(slash + 1, "py", 2) != 0 ||
            (strcmp(folder, bin) != 0 && (!real || !real_bin || strcmp(real, real_bin) != 0)))
                return NULL;
        *ret_len = strlen(slash + 1);
        return path + (slash + 1 - text);
}

/* Finds interpreter and arguments of a first line, or of the two lines by which pip and uv start a
 * Python with a long path, or blanks in the path. Returns the rest of the text; NULL = neither. */
static const char *read_first_line(const char *text, const char **path, size_t *path_len,
                                   const char **args, size_t *args_len)
{
        static const char exec[] = "#!/bin/sh\n'''exec' ", end[] = "\n' '''\n";
        const char *rest, *tail;

        if (!strncmp(text, exec, strlen(exec))) {
                const char *p = text + strlen(exec);
                bool quoted = *p == '"' || *p == '\'';

                *path = p + quoted;
                *path_len = quoted ? strcspn(*path, "\"'\n") : strcspn(*path, " \n");
                *args = *path + *path_len + quoted;
                tail = strstr(*args, " \"$0\"");
                rest = strstr(*args, end);
                if (!tail || !rest || tail > rest)
                        return NULL;
                *args_len = (size_t)(tail - *args);
                return rest + strlen(end);
        }
        if (strncmp(text, "#!", 2) != 0)
                return NULL;
        *path = text + 2 + strspn(text + 2, " ");
        rest = strchr(*path, '\n');
        if (!rest)
                return NULL;
        *path_len = strcspn(*path, " \t\n");
        *args = *path + *path_len;
        *args_len = (size_t)(rest - *args);
        return rest + 1;
}

char *venv_move_script(const char *dir, const char *text, size_t len, size_t *ret_len)
{
        const char *path, *args, *name, *rest;
        size_t path_len, args_len, name_len;
        struct buf b = BUF_INIT;

        rest = read_first_line(text, &path, &path_len, &args, &args_len);
        name = rest ? find_own_python(dir, path, path_len, &name_len) : NULL;
        if (!name)
                return NULL;
        while (args_len && isspace((unsigned char)args[args_len - 1]))
                args_len--;
        /* For sh the quotes before and behind are empty, for Python all up to the second line is a
         * text: the form of uv and virtualenv. */
        buf_printf(&b,
                   "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'%.*s'%.*s "
                   "\"$0\" \"$@\"\n' '''\n",
                   (int)name_len, name, (int)args_len, args);
        buf_append(&b, rest, len - (size_t)(rest - text));
        *ret_len = buf_len(&b);
        return buf_steal(&b);
}

/* Replaces the environment's path by @with in all places, with or without quotes. NULL =
 * nowhere. */
static char *replace_paths(const char *text, const char *const paths[2], const char *with,
                           size_t *ret_len)
{
        struct buf b = BUF_INIT;
        bool any = false;

        while (*text) {
                size_t n = 0, quotes = *text == '"' || *text == '\'';

                for (int i = 0; i < 2 && !n; i++) {
                        size_t len = strlen(paths[i]);

                        if (!strncmp(text + quotes, paths[i], len) &&
                            !strchr("/._-", text[quotes + len]) &&
                            !isalnum((unsigned char)text[quotes + len]))
                                n = quotes + len;
                }
                if (n && quotes && text[n] == *text)
                        n++;
                else if (quotes)
                        n = 0;
                if (n)
                        buf_printf(&b, "%s", with);
                else
                        buf_append(&b, text, 1);
                any |= n > 0;
                text += n ? n : 1;
        }
        *ret_len = buf_len(&b);
        if (any)
                return buf_steal(&b);
        buf_finish(&b);
        return NULL;
}

/* Lets `activate` find the environment by the script's own place. Ranks do not need this. */
static char *move_activate(const struct venv *v, const char *name, const char *text, size_t *len)
{
        static const struct {
                const char *name, *with;
        } kinds[] = {
                { "activate", "\"$(cd \"$(dirname \"${BASH_SOURCE:-$0}\")/..\" && pwd)\"" },
                { "activate.fish", "(dirname (dirname (realpath (status filename))))" },
                { "activate.csh", "\"$VIRTUAL_ENV\"" },
        };
        const char *const paths[2] = { v->made, v->dir };

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (!strcmp(name, kinds[i].name))
                        return replace_paths(text, paths, kinds[i].with, len);
        return NULL;
}

/* --- other texts ------------------------------------------------------------------------------ */

/* Whether a line of pyvenv.cfg is left out because nodes lack its path. If the Python is sent, too,
 * the agent adds `home`. */
static bool is_left_out(const struct venv *v, const char *line)
{
        static const char *const keys[] = { "command",          "home",
                                            "executable",       "base-prefix",
                                            "base-exec-prefix", "base-executable" };
        size_t n = strcspn(line, " =\n");

        for (size_t i = 0; i < (v->base ? ARRAY_SIZE(keys) : 1); i++)
                if (strlen(keys[i]) == n && !strncmp(line, keys[i], n))
                        return true;
        return false;
}

/* Leaves out lines with paths of this machine: at least the command that made the environment. */
static char *move_config(const struct venv *v, const char *text, size_t *ret_len)
{
        struct buf b = BUF_INIT;

        while (*text) {
                size_t n = strcspn(text, "\n"), line = n + (text[n] == '\n');

                if (!is_left_out(v, text))
                        buf_append(&b, text, line);
                text += line;
        }
        *ret_len = buf_len(&b);
        return buf_steal(&b);
}

/* Makes paths into the environment relative, and notes others. NULL = nothing changes. */
static char *move_pth(struct venv *v, const char *place, const char *text, size_t *ret_len)
{
        struct buf b = BUF_INIT;
        bool any = false;

        while (*text) {
                size_t n = strcspn(text, "\n"), line = n + (text[n] == '\n');
                CLEANUP(free_textp) char *path = xstrndup(text, n);
                const char *inside = *path == '/' ? find_inside_any(v, path) : NULL;

                if (inside) {
                        CLEANUP(free_textp) char *way = relative_way(place, inside);

                        buf_printf(&b, "%s%s", way, line > n ? "\n" : "");
                        any = true;
                } else {
                        buf_append(&b, text, line);
                }
                if (*path == '/' && !inside)
                        note_path(&v->outside, "%s names %s", place, path);
                text += line;
        }
        *ret_len = buf_len(&b);
        if (any)
                return buf_steal(&b);
        buf_finish(&b);
        return NULL;
}

/* Notes the folder of an editable install with a finder of setuptools: MAPPING = {'pkg':
 * '/path'}. */
static void note_finder(struct venv *v, const char *place, const char *text)
{
        const char *map = strstr(text, "MAPPING"), *path = map ? strstr(map, ": '/") : NULL;
        CLEANUP(free_textp) char *outside = NULL;

        if (!path)
                return;
        outside = xstrndup(path + 3, strcspn(path + 3, "'"));
        if (!find_inside_any(v, outside))
                note_path(&v->outside, "%s names %s", place, outside);
}

static bool ends_with(const char *text, const char *end)
{
        size_t n = strlen(text), k = strlen(end);

        return n >= k && !strcmp(text + n - k, end);
}

/* --- the Python that is sent, too ------------------------------------------------------------- */

/* Puts @with in place of the folder @from in run paths, which end at the next NUL. */
static bool replace_run_path(char *text, size_t len, const char *from, const char *with)
{
        size_t n = strlen(from), k = strlen(with);
        bool any = false;

        for (char *p = text; (p = memmem(p, (size_t)(text + len - p), from, n)); p++) {
                size_t rest = strnlen(p + n, (size_t)(text + len - p) - n);

                if (p == text || (p[-1] && p[-1] != ':') || (rest && p[n] != ':'))
                        continue;
                memcpy(p, with, k);
                memmove(p + k, p + n, rest);
                memset(p + k + rest, 0, n - k);
                any = true;
        }
        return any;
}

/* Makes run paths into the installation relative, in a program with its libpython beside. NULL =
 * nothing changes. */
static char *move_program(struct venv *v, const char *place, char **text, size_t len)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", v->base, place);
        struct elf_libs libs;
        bool any = false;

        if (elf_libs_read(&libs, path) == 0)
                for (size_t i = 0; i < libs.folders.n; i++) {
                        const char *folder = libs.folders.v[i];
                        const char *inside = find_inside(v->base, folder);
                        CLEANUP(free_textp)
                        char *way = inside ? relative_way(place, inside) : NULL;
                        CLEANUP(free_textp) char *with = way ? xasprintf("$ORIGIN/%s", way) : NULL;

                        /* The file may have $ORIGIN already. */
                        if (!with || !memmem(*text, len, folder, strlen(folder)))
                                continue;
                        if (strlen(with) <= strlen(folder))
                                any |= replace_run_path(*text, len, folder, with);
                        else
                                note_path(&v->rpaths, "%s has the run path %s", path, folder);
                }
        elf_libs_finish(&libs);
        return any ? STEAL(text) : NULL;
}

/* Edits a file of the installation: only programs have to be changed. */
static char *edit_base_content(struct venv *v, const char *place, size_t *ret_len)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", v->base, place), *text = NULL;
        size_t len;

        if (strncmp(place, "bin/", 4) != 0 ||
            fd_read_regular(AT_FDCWD, path, TEXT_MAX, &text, &len) < 0)
                return NULL;
        if (!memchr(text, '\0', len))
                return venv_move_script(v->base, text, len, ret_len);
        *ret_len = len;
        return move_program(v, place, &text, len);
}

/* Makes a link into the installation relative; NULL = any other link, sent as in a plain folder. */
static char *edit_base_link(const struct venv *v, const char *place, const char *target)
{
        const char *inside = *target == '/' ? find_inside(v->base, target) : NULL;

        return inside ? relative_way(place, inside) : NULL;
}

/* Returns the place in the installation; NULL = a place of the environment. */
static const char *find_base_place(const struct venv *v, const char *place)
{
        return v->base ? find_inside(BASE, place) : NULL;
}

/* --- the edit of the manifest ----------------------------------------------------------------- */

/* Keeps the environment's Python a link, to the Python outside or to the Python in the copy. Makes
 * links with whole paths relative. */
static char *edit_link(void *ctx, const char *place, const char *target)
{
        struct venv *v = ctx;
        const char *name = strrchr(place, '/');
        CLEANUP(free_textp) char *path = NULL, *real = NULL;
        const char *inside = *target == '/' ? find_inside_any(v, target) : NULL;
        const char *of_base = find_base_place(v, place);
        struct stat st;

        if (of_base)
                return edit_base_link(v, of_base, target);
        if (inside)
                return relative_way(place, inside);
        if (*target != '/' && !strstr(target, "../.."))
                return NULL;
        path = xasprintf("%s/%s", v->dir, place);
        real = realpath(path, NULL);
        if (name && !strncmp(place, "bin/py", 6) && real && v->python && !find_inside(v->dir, real))
                return v->base ? relative_way(place, v->base_python) : xstrdup(v->python);
        if (*target != '/' || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return NULL;
        note_path(&v->outside, "%s leads to %s", place, target);
        return xstrdup(target);
}

static bool is_edited(const char *place)
{
        const char *name = strrchr(place, '/') ? strrchr(place, '/') + 1 : place;

        return !strncmp(place, "bin/", 4) || !strcmp(place, "pyvenv.cfg") ||
               ends_with(name, ".pth") || ends_with(name, ".egg-link") ||
               !strncmp(name, "__editable___", 13);
}

static char *edit_content(void *ctx, const char *place, uint64_t size, size_t *ret_len)
{
        CLEANUP(free_textp) char *path = NULL, *text = NULL;
        struct venv *v = ctx;
        const char *of_base = find_base_place(v, place);
        size_t len;

        if (size > TEXT_MAX)
                return NULL;
        if (of_base)
                return edit_base_content(v, of_base, ret_len);
        if (!is_edited(place))
                return NULL;
        path = xasprintf("%s/%s", v->dir, place);
        if (fd_read_regular(AT_FDCWD, path, TEXT_MAX, &text, &len) < 0 || memchr(text, '\0', len))
                return NULL;
        if (!strcmp(place, "pyvenv.cfg"))
                return move_config(v, text, ret_len);
        if (!strncmp(place, "bin/activate", 12))
                return move_activate(v, place + 4, text, ret_len);
        if (!strncmp(place, "bin/", 4))
                return venv_move_script(strncmp(text, "#!", 2) || !strstr(text, v->made) ? v->dir
                                                                                         : v->made,
                                        text, len, ret_len);
        if (ends_with(place, ".py")) {
                note_finder(v, place, text);
                return NULL;
        }
        return move_pth(v, place, text, ret_len);
}

/* Notes libraries with the path of the environment: a run path, as a rule. */
static void note_rpath(void *ctx, const char *place, const void *data, size_t len)
{
        struct venv *v = ctx;
        size_t n = v->rpaths.n;

        if (!strstr(place, ".so") || find_base_place(v, place) ||
            (n && !strcmp(v->rpaths.v[n - 1], place)))
                return;
        if (memmem(data, len, v->dir, strlen(v->dir)) ||
            memmem(data, len, v->made, strlen(v->made)))
                note_path(&v->rpaths, "%s%s", place, "");
}

static void note_rights(void *ctx, const char *place, unsigned mode)
{
        struct venv *v = ctx;

        if (mode & (S_ISUID | S_ISGID))
                note_path(&v->set_user_id, "%s%s", place, "");
}

/* --- the Python ------------------------------------------------------------------------------- */

/* Returns the value of a line of pyvenv.cfg, malloc'ed; NULL = none. */
static char *read_config_line(const char *text, const char *key)
{
        size_t n = strlen(key);

        for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
                const char *p = text + n + strspn(text + n, " ");

                if (strncmp(text, key, n) != 0 || *p != '=')
                        continue;
                p += 1 + strspn(p + 1, " ");
                return xstrndup(p, strcspn(p, "\r\n"));
        }
        return NULL;
}

/* Returns the Python outside: the target of bin/python by the name in `home`, where Python looks
 * for the standard library. NULL = not found. */
static char *find_python(const struct venv *v, const char *config)
{
        CLEANUP(free_textp) char *home = read_config_line(config, "home");
        CLEANUP(free_textp) char *own = xasprintf("%s/bin/python", v->dir);
        CLEANUP(free_textp) char *real = realpath(own, NULL);
        CLEANUP(free_textp) char *named = NULL, *named_real = NULL;

        /* A copy (venv --copies): pyvenv.cfg names the original. */
        if (real && find_inside(v->dir, real)) {
                free(real);
                real = read_config_line(config, "executable");
                if (!real)
                        real = home ? xasprintf("%s/python3", home) : NULL;
        }
        if (!real)
                return NULL;
        named = home ? xasprintf("%s/%s", home, strrchr(real, '/') + 1) : NULL;
        named_real = named ? realpath(named, NULL) : NULL;
        return xstrdup(named_real && !strcmp(named_real, real) ? named : real);
}

char *venv_find_prefix(const char *python)
{
        const char *bin = strrchr(python, '/');
        size_t n = bin ? (size_t)(bin - python) : 0;

        return n > 4 && !strncmp(bin - 4, "/bin", 4) ? xstrndup(python, n - 4) : NULL;
}

/* Finds the installation of the Python, if inside one of @paths, relative to @cwd. */
static void find_base(struct venv *v, const struct strv *paths, const char *cwd)
{
        CLEANUP(free_textp) char *real = realpath(v->python, NULL);
        CLEANUP(free_textp) char *prefix = real ? venv_find_prefix(real) : NULL;

        for (size_t i = 0; i < paths->n && prefix && !v->base; i++) {
                const char *path = paths->v[i];
                CLEANUP(free_textp)
                char *full = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", cwd, path);
                CLEANUP(free_textp) char *folder = realpath(full, NULL);

                if (folder && find_inside(folder, prefix))
                        v->base = xstrdup(prefix);
        }
        if (v->base)
                v->base_python = xasprintf(BASE "%s", real + strlen(prefix));
}

/* Hashes the Python, or takes the hash from a memory (NULL = none). 0 or -errno. */
static int hash_base_python(struct push_python *python, int fd, const struct hash_key *key,
                            struct hash_memory *memory)
{
        CLEANUP(free_textp) char *buffer = NULL;
        crypto_hash_sha256_state sum;
        bool stamped;
        ssize_t n;

        if (memory && hash_memory_find(memory, key, python->sha, &stamped))
                return 0;
        buffer = xcalloc(1, READ_SIZE);
        crypto_hash_sha256_init(&sum);
        while ((n = read(fd, buffer, READ_SIZE)) > 0)
                crypto_hash_sha256_update(&sum, (unsigned char *)buffer, (size_t)n);
        crypto_hash_sha256_final(&sum, python->sha);
        if (n == 0 && memory)
                hash_memory_add(memory, key, python->sha, false);
        return n < 0 ? -errno : 0;
}

static int describe_python(struct manifest *p, const struct venv *v, struct hash_memory *memory)
{
        const char *path = v->python;
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct push_python *python = &p->label.python;
        struct hash_key key;
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        python->path = xstrdup(v->base ? v->base_python : path);
        if (v->base)
                return 0;
        python->size = (uint64_t)st.st_size;
        key = hash_memory_key(&st);
        if (p->memory && folder_memory_find_python(p->memory, &key, python->sha))
                return 0;
        r = hash_base_python(python, fd, &key, memory);
        if (r == 0 && p->memory)
                folder_memory_set_python(p->memory, &key, python->sha);
        return r;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Finds the path of the environment at creation, in bin/activate. */
static char *find_made(const char *dir)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/bin/activate", dir);
        CLEANUP(free_textp) char *text = NULL;
        const char *set = NULL;

        if (fd_read_regular(AT_FDCWD, path, TEXT_MAX, &text, NULL) == 0)
                for (set = strstr(text, "VIRTUAL_ENV="); set;
                     set = strstr(set + 1, "VIRTUAL_ENV=")) {
                        const char *p = set + strlen("VIRTUAL_ENV=");
                        const char *end = *p == '"' ? "\"\n" : *p == '\'' ? "'\n" : "; \n";

                        /* Within quotes the path may have blanks. */
                        p += *p == '"' || *p == '\'';
                        if (*p == '/')
                                return xstrndup(p, strcspn(p, end));
                }
        return xstrdup(dir);
}

static int refuse_folder(struct diags *d, int id, const char *dir, const char *what,
                         const char *help)
{
        diag_help(diag_add(d, id, EX_NOINPUT, "--venv: %s %s", dir, what), "%s", help);
        return -EINVAL;
}

/* Reads pyvenv.cfg; malloc'ed. NULL: an error is in @d. */
static char *read_config(const char *dir, struct diags *d)
{
        CLEANUP(free_textp) char *conda = xasprintf("%s/conda-meta", dir);
        CLEANUP(free_textp) char *path = xasprintf("%s/pyvenv.cfg", dir);
        char *text = NULL;

        if (access(conda, F_OK) == 0) {
                refuse_folder(
                        d, HN_VENV_CONDA, dir, "is an environment of conda",
                        "its files have the place of the environment in them, so it cannot "
                        "be moved: make a virtual environment with its Python (python -m venv "
                        "DIR), or unpack it with conda-pack on the nodes");
                return NULL;
        }
        if (fd_read_regular(AT_FDCWD, path, TEXT_MAX, &text, NULL) < 0)
                refuse_folder(
                        d, HN_VENV_NOT_ONE, dir, "is not a virtual environment: no pyvenv.cfg",
                        "name the folder that `python -m venv DIR` or `uv venv DIR` has made");
        return text;
}

static void warn_of_list(struct diags *d, int id, const struct strv *rows, const char *text,
                         const char *help)
{
        struct diag *w = rows->n ? diag_warn(d, id, "%s", text) : NULL;

        for (size_t i = 0; i < rows->n; i++)
                diag_row(w, "%s", rows->v[i]);
        if (w)
                diag_help(w, "%s", help);
}

static void warn_of_findings(struct venv *v)
{
        warn_of_list(v->d, HN_VENV_LEADS_OUT, &v->outside,
                     "--venv: the environment leads to files outside of it",
                     "they are not sent: ranks find them only where a node has them; install the "
                     "package without -e, or bring it with --push");
        warn_of_list(v->d, HN_VENV_LEADS_OUT, &v->rpaths,
                     "--venv: libraries name the folder of the environment",
                     "their run path may lead to files that a node lacks: bring these files with "
                     "--push, or install them there");
        warn_of_list(v->d, HN_VENV_SET_USER_ID, &v->set_user_id,
                     "--venv: set-user-ID and set-group-ID files are sent without these rights",
                     "a program that needs them has to be installed on the nodes");
}

static void finish_venv(struct venv *v)
{
        free(v->dir);
        free(v->made);
        free(v->python);
        free(v->base);
        free(v->base_python);
        strv_finish(&v->outside);
        strv_finish(&v->set_user_id);
        strv_finish(&v->rpaths);
}

int venv_pack(struct manifest *p, const char *dir, const struct strv *staged, const char *cwd,
              const struct manifest_watch *watch, struct diags *d)
{
        struct venv v = {
                .outside = STRV_INIT, .set_user_id = STRV_INIT, .rpaths = STRV_INIT, .d = d
        };
        struct manifest_edit edit = { .link = edit_link,
                                      .content = edit_content,
                                      .read = note_rpath,
                                      .file = note_rights,
                                      .ctx = &v };
        struct hash_memory *memory = watch ? watch->memory : NULL;
        CLEANUP(free_textp) char *full = *dir == '/' ? xstrdup(dir) : xasprintf("%s/%s", cwd, dir);
        CLEANUP(free_textp) char *config = NULL;
        int r = -EINVAL;

        p->label.use = PUSH_VENV;
        v.dir = realpath(full, NULL);
        if (!v.dir)
                return refuse_folder(d, HN_VENV_NOT_ONE, full, "does not exist",
                                     "name the folder of a virtual environment");
        config = read_config(v.dir, d);
        if (config) {
                v.made = find_made(v.dir);
                v.python = find_python(&v, config);
                if (v.python && staged)
                        find_base(&v, staged, cwd);
                edit.base = v.base;
                edit.base_place = BASE;
                p->memory = memory ? folder_memory_open(v.dir, v.base) : NULL;
                r = v.python && describe_python(p, &v, memory) == 0
                            ? manifest_pack_folder(p, v.dir, &edit, watch, d)
                            : refuse_folder(d, HN_VENV_NOT_ONE, v.dir,
                                            "has no Python: bin/python leads nowhere",
                                            "make the environment anew with a Python that this "
                                            "machine has");
        }
        if (r == 0) {
                warn_of_findings(&v);
                folder_memory_save(p->memory);
        }
        finish_venv(&v);
        return r;
}
