/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_interpreter() finds the path of Python: the program itself, the interpreter of a script, or
 * python3 in PATH. Folders are then tried in the order of sys.path, until one has torch/version.py:
 * PYTHONPATH, the virtual environment with a pyvenv.cfg beside or above the interpreter, the user's
 * own packages, and the installation, which is where the link leads that the interpreter may be.
 * The name of the file behind that link, python3.11, names the folder lib/python3.11.
 *
 * Everything is in fixed buffers: a longer path is not looked at.
 */
#include "agent/rank/torch_version.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "wire/env/nccl_env.h"

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

/* Reads the beginning of a regular file, as a string. False: there is none. */
static bool read_head(const char *path, char to[HEAD_BYTES])
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        n = read(fd, to, HEAD_BYTES - 1);
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

        if (!read_head(script, head) || strncmp(head, "#!", 2) != 0)
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

static bool find_interpreter(const struct lookup *k, const char *program, char to[PATH_MAX])
{
        char path[PATH_MAX];

        if (is_python(program))
                return locate_program(k, program, to);
        if (starts_containers(program))
                return false;
        if (locate_program(k, program, path) && find_shebang_python(k, path, to))
                return true;
        return locate_program(k, "python3", to);
}

/* --- its packages ----------------------------------------------------------------------------- */

/* The version in DIR/torch/version.py, 0 = there is none. */
static unsigned read_version(const struct lookup *k, const char *dir, size_t len)
{
        char path[PATH_MAX], head[HEAD_BYTES], *p, *minor;
        unsigned long n;

        if (!join_path(k, path, dir, len, "torch/version.py") || !read_head(path, head))
                return 0;
        p = strstr(head, "__version__ = '");
        if (!p)
                return 0;
        n = strtoul(p + strlen("__version__ = '"), &minor, 10);
        if (!n || n > 99 || *minor != '.' || !isdigit((unsigned char)minor[1]))
                return 0;
        return TORCH_VERSION((unsigned)n, (unsigned)MIN(strtoul(minor + 1, NULL, 10), 99ul));
}

static unsigned read_python_path(const struct lookup *k)
{
        const char *dir = find_variable(k, "PYTHONPATH"), *end;
        unsigned version = 0;

        for (int i = 0; dir && !version && i < FOLDERS_MAX; i++, dir = *end ? end + 1 : NULL) {
                end = strchrnul(dir, ':');
                version = end > dir ? read_version(k, dir, (size_t)(end - dir)) : 0;
        }
        return version;
}

/* The version in the folders of packages below @prefix. @python: "python3.11". */
static unsigned read_prefix(const struct lookup *k, const char *prefix, const char *python)
{
        static const struct {
                const char *lib, *python, *packages;
        } folders[] = {
                { "lib", NULL, "site-packages" },
                { "lib64", NULL, "site-packages" }, /* Red Hat */
                { "lib", NULL, "dist-packages" },   /* Debian */
                { "lib", "python3", "dist-packages" },
        };
        unsigned version = 0;

        for (size_t i = 0; i < ARRAY_SIZE(folders) && !version; i++) {
                char dir[PATH_MAX];
                int n;

                if (folders[i].python && !strcmp(folders[i].python, python))
                        continue; /* as the one before */
                n = snprintf(dir, sizeof(dir), "%s/%s/%s/%s", prefix, folders[i].lib,
                             folders[i].python ? folders[i].python : python, folders[i].packages);
                version = n < PATH_MAX ? read_version(k, dir, (size_t)n) : 0;
        }
        return version;
}

/* Whether @prefix is a virtual environment; @alone: without the packages of the installation. */
static bool read_venv(const char *prefix, bool *alone)
{
        char path[PATH_MAX], head[HEAD_BYTES];

        if (snprintf(path, sizeof(path), "%s/pyvenv.cfg", prefix) >= PATH_MAX ||
            !read_head(path, head))
                return false;
        *alone = !strstr(head, "include-system-site-packages = true");
        return true;
}

/* The version among the user's own packages and those of the installation in @prefix. */
static unsigned read_installation(const struct lookup *k, const char *prefix, const char *python)
{
        const char *home = find_variable(k, "HOME");
        unsigned version = 0;
        char own[PATH_MAX];

        if (home && !find_variable(k, "PYTHONNOUSERSITE") &&
            snprintf(own, sizeof(own), "%s/.local", home) < PATH_MAX)
                version = read_prefix(k, own, python);
        if (!version && !strcmp(prefix, "/usr"))
                version = read_prefix(k, "/usr/local", python);
        return version ? version : read_prefix(k, prefix, python);
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

unsigned torch_version_find(char *const *argv, char *const *env, const char *cwd)
{
        const struct lookup k = { env, cwd };
        char path[PATH_MAX], real[PATH_MAX], python[32];
        bool alone = false;
        unsigned version;

        if (!find_interpreter(&k, argv[0], path) || !follow_links(path, real))
                return 0;
        snprintf(python, sizeof(python), "%.31s", last_name(real));
        if (!cut_to_prefix(path) || !cut_to_prefix(real))
                return 0;
        version = read_python_path(&k);
        if (!version && read_venv(path, &alone))
                version = read_prefix(&k, path, python);
        return version || alone ? version : read_installation(&k, real, python);
}

/* --- the note --------------------------------------------------------------------------------- */

struct torch_note *torch_note_map(void)
{
        void *n = mmap(NULL, sizeof(struct torch_note), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return n == MAP_FAILED ? NULL : n;
}

void torch_note_wait(const struct torch_note *n, int ms)
{
        struct timespec limit = { ms / 1000, ms % 1000 * 1000000L };

        /* Once: a spurious wakeup costs the next ranks a look of their own. */
        if (n && !__atomic_load_n(&n->state, __ATOMIC_ACQUIRE))
                syscall(SYS_futex, &n->state, FUTEX_WAIT, 0, &limit, NULL, 0);
}

void torch_note_unmap(struct torch_note *n)
{
        if (n)
                munmap(n, sizeof(*n));
}

unsigned torch_note_find(struct torch_note *n, char *const *argv, char *const *env, const char *cwd)
{
        uint32_t state = n ? __atomic_load_n(&n->state, __ATOMIC_ACQUIRE) : 0;
        unsigned version;

        if (state)
                return state - 1;
        version = torch_version_find(argv, env, cwd);
        if (n) {
                __atomic_store_n(&n->state, version + 1, __ATOMIC_RELEASE);
                syscall(SYS_futex, &n->state, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
        return version;
}
