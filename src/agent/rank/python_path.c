/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders are visited in the order of sys.path: PYTHONPATH, the virtual environment with a
 * pyvenv.cfg beside or above the interpreter, the user's own packages, and the installation, which
 * is where the link leads that the interpreter may be. The name of the file behind that link,
 * python3.11, names the folder lib/python3.11.
 *
 * Everything is in fixed buffers: a longer path is not looked at.
 */
#include "agent/rank/python_path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"

enum {
        FOLDERS_MAX = 64, /* of PATH and of PYTHONPATH */
        HEAD_BYTES = 1024,
};

struct lookup {
        char *const *env;
        const char *cwd;
};

static const char *find_variable(const struct lookup *k, const char *name)
{
        size_t n = strlen(name);

        for (char *const *e = k->env; *e; e++)
                if (!strncmp(*e, name, n) && (*e)[n] == '=')
                        return *e + n + 1;
        return NULL;
}

static const char *last_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static bool is_python(const char *path)
{
        return !strncmp(last_name(path), "python", 6);
}

/* Joins a folder, which may be relative, and a name. False: too long. */
static bool join_path(const struct lookup *k, char to[PATH_MAX], const char *dir, size_t len,
                      const char *name)
{
        bool relative = (len ? *dir : *name) != '/' && k->cwd && *k->cwd;
        int n = snprintf(to, PATH_MAX, "%s%s%.*s%s%s", relative ? k->cwd : "", relative ? "/" : "",
                         (int)MIN(len, (size_t)PATH_MAX), dir, len ? "/" : "", name);

        return n > 0 && n < PATH_MAX;
}

bool python_read_head(const char *path, char *to, size_t size)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        n = read(fd, to, size - 1);
        to[MAX(n, 0)] = '\0';
        return n > 0;
}

/* --- the interpreter -------------------------------------------------------------------------- */

/* As execvp() finds a program; without a slash in PATH. */
static bool locate_program(const struct lookup *k, const char *program, char to[PATH_MAX])
{
        const char *dir = find_variable(k, "PATH"), *end;

        if (strchr(program, '/'))
                return join_path(k, to, "", 0, program);
        for (int i = 0; dir && i < FOLDERS_MAX; i++, dir = *end ? end + 1 : NULL) {
                end = strchrnul(dir, ':');
                if (join_path(k, to, dir, (size_t)(end - dir), program) && access(to, X_OK) == 0)
                        return true;
        }
        return false;
}

/* Finds Python in the first line of a script: "#!/opt/venv/bin/python3 -u", "#!/usr/bin/env
 * python3". */
static bool find_shebang_python(const struct lookup *k, const char *script, char to[PATH_MAX])
{
        char head[HEAD_BYTES], *word, *rest;

        if (!python_read_head(script, head, sizeof(head)) || strncmp(head, "#!", 2) != 0)
                return false;
        head[strcspn(head, "\n")] = '\0';
        for (word = strtok_r(head + 2, " \t\r", &rest); word && !is_python(word);)
                word = strtok_r(NULL, " \t\r", &rest);
        return word && locate_program(k, word, to);
}

static bool starts_containers(const char *program)
{
        static const char *const names[] = { "apptainer", "ch-run", "docker",
                                             "enroot",    "podman", "singularity" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strcmp(last_name(program), names[i]))
                        return true;
        return false;
}

static enum python_by find_interpreter(const struct lookup *k, const char *program,
                                       char to[PATH_MAX])
{
        char path[PATH_MAX];

        if (is_python(program))
                return locate_program(k, program, to) ? PYTHON_NAMED : PYTHON_NONE;
        if (starts_containers(program))
                return PYTHON_NONE;
        if (locate_program(k, program, path) && find_shebang_python(k, path, to))
                return PYTHON_OF_SCRIPT;
        return locate_program(k, "python3", to) ? PYTHON_OF_PATH : PYTHON_NONE;
}

/* --- its packages ----------------------------------------------------------------------------- */

struct visitor {
        python_visit *visit;
        void *ctx;
};

static bool visit_python_path(const struct lookup *k, const struct visitor *v)
{
        const char *dir = find_variable(k, "PYTHONPATH"), *end;
        char path[PATH_MAX];

        for (int i = 0; dir && i < FOLDERS_MAX; i++, dir = *end ? end + 1 : NULL) {
                end = strchrnul(dir, ':');
                if (end > dir && join_path(k, path, dir, (size_t)(end - dir), "") &&
                    v->visit(v->ctx, path))
                        return true;
        }
        return false;
}

/* Visits the folders of packages below @prefix. @python: "python3.11". */
static bool visit_prefix(const struct visitor *v, const char *prefix, const char *python)
{
        static const struct {
                const char *lib, *python, *packages;
        } folders[] = {
                { "lib", NULL, "site-packages" },
                { "lib64", NULL, "site-packages" }, /* Red Hat */
                { "lib", NULL, "dist-packages" },   /* Debian */
                { "lib", "python3", "dist-packages" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                char dir[PATH_MAX];

                if (folders[i].python && !strcmp(folders[i].python, python))
                        continue; /* as the one before */
                if (snprintf(dir, sizeof(dir), "%s/%s/%s/%s", prefix, folders[i].lib,
                             folders[i].python ? folders[i].python : python,
                             folders[i].packages) < PATH_MAX &&
                    v->visit(v->ctx, dir))
                        return true;
        }
        return false;
}

/* Whether @prefix is a virtual environment; @alone: without the packages of the installation. */
static bool read_venv(const char *prefix, bool *alone)
{
        char path[PATH_MAX], head[HEAD_BYTES];

        if (snprintf(path, sizeof(path), "%s/pyvenv.cfg", prefix) >= PATH_MAX ||
            !python_read_head(path, head, sizeof(head)))
                return false;
        *alone = !strstr(head, "include-system-site-packages = true");
        return true;
}

/* Visits the user's own packages and those of the installation in @prefix. */
static bool visit_installation(const struct lookup *k, const struct visitor *v, const char *prefix,
                               const char *python)
{
        const char *home = find_variable(k, "HOME");
        char own[PATH_MAX];

        if (home && !find_variable(k, "PYTHONNOUSERSITE") &&
            snprintf(own, sizeof(own), "%s/.local", home) < PATH_MAX &&
            visit_prefix(v, own, python))
                return true;
        if (!strcmp(prefix, "/usr") && visit_prefix(v, "/usr/local", python))
                return true;
        return visit_prefix(v, prefix, python);
}

/* Cuts the program and its folder off a path, which leaves the prefix; false: it has none. */
static bool cut_to_prefix(char *path)
{
        for (int i = 0; i < 2; i++) {
                char *slash = strrchr(path, '/');

                if (!slash)
                        return false;
                *slash = '\0';
        }
        return true;
}

/* Writes where the links of @path lead. */
static bool follow_links(const char *path, char to[PATH_MAX])
{
        CLEANUP(fd_closep) int fd = open(path, O_PATH | O_CLOEXEC);
        char link[64];
        ssize_t n;

        if (fd < 0)
                return false;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, to, PATH_MAX - 1);
        to[MAX(n, 0)] = '\0';
        return n > 0;
}

bool python_find(struct python_place *ret, const char *program, char *const *env, const char *cwd)
{
        const struct lookup k = { env, cwd };

        ret->by = find_interpreter(&k, program, ret->path);
        if (ret->by == PYTHON_NONE || !follow_links(ret->path, ret->real))
                return false;
        snprintf(ret->name, sizeof(ret->name), "%.31s", last_name(ret->real));
        return true;
}

bool python_each_folder(const struct python_place *p, char *const *env, const char *cwd,
                        python_visit *visit, void *ctx)
{
        const struct lookup k = { env, cwd };
        const struct visitor v = { visit, ctx };
        char prefix[PATH_MAX], base[PATH_MAX];
        bool alone = false;

        memcpy(prefix, p->path, sizeof(prefix));
        memcpy(base, p->real, sizeof(base));
        if (!cut_to_prefix(prefix) || !cut_to_prefix(base))
                return false;
        if (visit_python_path(&k, &v) ||
            (read_venv(prefix, &alone) && visit_prefix(&v, prefix, p->name)))
                return true;
        return !alone && visit_installation(&k, &v, base, p->name);
}
