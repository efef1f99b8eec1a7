/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The full version of Python is a string of its own in the interpreter or in libpython ("3.11.2").
 * torch/version.py names the version of torch, and the CUDA of its build, whose libraries come with
 * torch; other programs name libcudart.so, and the file behind the name ends with the version.
 */
#include "agent/check/version_check.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/check/path_check.h"
#include "agent/nccl/nccl_version.h"
#include "agent/rank/python_path.h"
#include "base/elf/elf_closure.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strv.h"

/* A Python with libpython inside has some 10 MB, and more with debug symbols. torch/version.py is a
 * few lines long. */
enum { INTERPRETER_MAX = 64 << 20, VERSION_HEAD = 1024, VERSION_SIZE = 64 };

/* A program, during the search for versions. */
struct version_search {
        struct checked *to;
        const struct check_program *program;
        struct strv env;
        struct python_place python;
        bool has_python;
        struct strv folders; /* of packages, in order */
        char *torch;         /* the folder with torch; NULL = none */
};

/* Adds a fact of the program; further programs of an order have ".1" and so on behind the name. */
static void add_version(struct version_search *s, const char *what, const char *value,
                        const char *problem)
{
        char name[CHECK_NAME];

        if (s->program->number)
                snprintf(name, sizeof(name), "%s.%u", what, s->program->number);
        else
                snprintf(name, sizeof(name), "%s", what);
        checked_add(s->to, name, value, problem);
}

/* Adds a problem with a path. */
static void add_unknown(struct version_search *s, const char *what, const char *path)
{
        char why[CHECK_PROBLEM];

        snprintf(why, sizeof(why), "cannot read the version of %.100s", path);
        add_version(s, what, "", why);
}

/* --- Python ----------------------------------------------------------------------------------- */

/* Returns the first word of the command line that names Python: of "numactl -N0 python3 a.py" the
 * third. */
static const char *find_python_word(const struct strv *argv)
{
        for (size_t i = 0; i < argv->n; i++) {
                const char *slash = strrchr(argv->v[i], '/');

                if (!strncmp(slash ? slash + 1 : argv->v[i], "python", 6) &&
                    !strchr(slash ? slash : argv->v[i], '='))
                        return argv->v[i];
        }
        return NULL;
}

/* A shell starts Python from PATH, so the Python of PATH counts for a shell; for another program
 * without the word python, only if the program is a script. */
static bool is_shell_name(const char *program)
{
        static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh" };
        const char *slash = strrchr(program, '/');

        for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
                if (!strcmp(slash ? slash + 1 : program, shells[i]))
                        return true;
        return false;
}

/* Whether a file begins with "#!". */
static bool is_script(const char *path)
{
        char head[4];

        return path && python_read_head(path, head, sizeof(head)) && !strncmp(head, "#!", 2);
}

/* Finds the Python of the program; shells may start any. @file: of the program. */
static void find_ranks_python(struct version_search *s, const char *file)
{
        const struct check_program *p = s->program;
        const char *word = find_python_word(&p->argv);

        s->has_python = python_find(&s->python, p->argv.v[0], s->env.v, p->cwd);
        /* Not behind a program that starts containers. */
        if (s->has_python && s->python.by == PYTHON_OF_PATH && word)
                s->has_python = python_find(&s->python, word, s->env.v, p->cwd);
        if (s->has_python && s->python.by == PYTHON_OF_PATH)
                s->has_python = is_shell_name(p->argv.v[0]) || is_script(file);
}

/* Finds the string "3.11.2" in a file. */
static bool search_python_version(const char *path, const char *minor, char to[VERSION_SIZE])
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len = strlen(minor), n = 0;
        const char *at, *end;

        if (fd_read_file(path, INTERPRETER_MAX, &text, &n) < 0)
                return false;
        for (at = text, end = text + n; (at = memmem(at, (size_t)(end - at), minor, len)); at++) {
                size_t size = strspn(at + len, "0123456789abcr+") + len;

                /* A string of its own: "3.11.2", "3.13.0rc1", "3.12.1+". */
                if (at > text && !at[-1] && size < VERSION_SIZE && !at[size] &&
                    isdigit((unsigned char)at[len])) {
                        snprintf(to, VERSION_SIZE, "%s", at);
                        return true;
                }
        }
        return false;
}

/* The name of the interpreter, such as python3.11, has two of the three numbers, and must do if no
 * file has the full version. Debian links the library into the interpreter, other builds do not. */
static void add_python(struct version_search *s)
{
        const struct python_place *p = &s->python;
        CLEANUP(free_textp) char *minor = NULL, *library = NULL;
        char version[VERSION_SIZE];
        int major, number, folder;

        if (sscanf(p->name, "python%d.%d", &major, &number) != 2) {
                add_unknown(s, "python", p->real);
                return;
        }
        minor = xasprintf("%d.%d.", major, number);
        folder = (int)(strrchr(p->real, '/') - p->real);
        library = xasprintf("%.*s/../lib/libpython%d.%d.so.1.0", folder, p->real, major, number);
        if (!search_python_version(p->real, minor, version) &&
            !search_python_version(library, minor, version))
                snprintf(version, sizeof(version), "%d.%d", major, number);
        add_version(s, "python", version, "");
}

/* --- torch and CUDA --------------------------------------------------------------------------- */

/* Notes a folder of packages; ends at none. */
static bool note_folder(void *ctx, const char *folder)
{
        struct version_search *s = ctx;
        char head[VERSION_HEAD];
        CLEANUP(free_textp) char *file = xasprintf("%s/torch/version.py", folder);

        strv_push(&s->folders, folder);
        if (!s->torch && python_read_head(file, head, sizeof(head)))
                s->torch = xasprintf("%s/torch", folder);
        return false;
}

/* Reads the text between quotes on the line of torch/version.py beginning with @name. */
static bool read_quoted(const char *head, const char *name, char to[VERSION_SIZE])
{
        const char *at = head;
        size_t len;

        while (at && strncmp(at, name, strlen(name)) != 0)
                at = (at = strchr(at, '\n')) ? at + 1 : NULL;
        if (!at)
                return false;
        at += strcspn(at, "'\n");
        if (*at != '\'')
                return false;
        len = strcspn(at + 1, "'\n");
        snprintf(to, VERSION_SIZE, "%.*s", (int)len, at + 1);
        return len && at[1 + len] == '\'';
}

static void add_torch(struct version_search *s)
{
        CLEANUP(free_textp) char *file = xasprintf("%s/version.py", s->torch);
        char head[VERSION_HEAD] = "", version[VERSION_SIZE];

        python_read_head(file, head, sizeof(head));
        if (read_quoted(head, "__version__", version))
                add_version(s, "torch", version, "");
        else
                add_unknown(s, "torch", file);
        if (read_quoted(head, "cuda", version))
                add_version(s, "cuda", version, "");
        else
                add_version(s, "cuda", "none", "");
}

/* Adds the version in the name of the file behind libcudart.so.12: libcudart.so.12.4.127. */
static void add_cudart(struct version_search *s, const char *path)
{
        char real[PATH_MAX];
        const char *version;

        if (!realpath(path, real))
                snprintf(real, sizeof(real), "%s", path);
        version = strstr(real, ".so.");
        if (version)
                add_version(s, "cuda", version + strlen(".so."), "");
        else
                add_unknown(s, "cuda", path);
}

/* --- NCCL ------------------------------------------------------------------------------------- */

/* Returns the path of the first library with a name beginning with @name; NULL = none, or not
 * found. */
static const char *find_in_closure(const struct elf_closure *c, const char *name)
{
        for (size_t i = 0; i < c->n; i++)
                if (!strncmp(c->v[i].name, name, strlen(name)) && c->v[i].path)
                        return c->v[i].path;
        return NULL;
}

/* Returns the NCCL that the program's Python would load, malloc'ed; NULL = none. */
static char *find_pythons_nccl(struct version_search *s)
{
        struct elf_closure c;
        char *found = NULL;

        if (s->torch) {
                CLEANUP(free_textp) char *torch = xasprintf("%s/lib/libtorch_cuda.so", s->torch);
                const char *path;

                /* libtorch_cuda.so names NCCL in its dynamic section unless NCCL is linked
                 * statically. The wheel nvidia-nccl-cu12 puts the library into nvidia/nccl/lib of a
                 * folder of packages. */
                elf_closure_read(&c, torch, strv_env_get(&s->env, "LD_LIBRARY_PATH"));
                path = find_in_closure(&c, "libnccl.so");
                found = path ? xstrdup(path) : NULL;
                elf_closure_finish(&c);
        }
        for (size_t i = 0; i < s->folders.n && !found; i++) {
                found = xasprintf("%s/nvidia/nccl/lib/libnccl.so.2", s->folders.v[i]);
                if (access(found, R_OK) < 0) {
                        free(found);
                        found = NULL;
                }
        }
        return found;
}

/* The file behind the link is read. The number is NCCL's own: 22105 is 2.21.5. */
static void add_nccl_version(struct version_search *s, const char *path)
{
        char real[PATH_MAX], text[32];
        uint32_t version;

        version = nccl_version_of_file(realpath(path, real) ? real : path);
        snprintf(text, sizeof(text), "%u.%u.%u", version / 10000, version / 100 % 100,
                 version % 100);
        if (version)
                add_version(s, "nccl", text, "");
        else
                add_unknown(s, "nccl", path);
}

/* Returns the path of the net plug-in that NCCL would load, malloc'ed; NULL = there is none.
 * Source: NCCL's src/plugin/plugin_open.cc. */
static char *find_net_plugin(const struct version_search *s)
{
        const char *wanted = strv_env_get(&s->env, "NCCL_NET_PLUGIN");
        const char *search = strv_env_get(&s->env, "LD_LIBRARY_PATH");
        CLEANUP(free_textp) char *name = NULL;
        char *path;

        if (!wanted || !*wanted)
                return elf_closure_find("libnccl-net.so", search);
        if (strchr(wanted, '/'))
                return access(wanted, R_OK) == 0 ? xstrdup(wanted) : NULL;
        path = elf_closure_find(wanted, search);
        name = xasprintf("libnccl-net-%s.so", wanted);
        return path ? path : elf_closure_find(name, search);
}

/* The version of a plug-in stands nowhere, so size and hash of the file tell plug-ins apart. */
static void add_plugin(struct version_search *s)
{
        CLEANUP(free_textp) char *path = find_net_plugin(s);
        char real[PATH_MAX], text[CHECK_VALUE];
        size_t len;

        if (!path || !realpath(path, real)) {
                add_version(s, "nccl.plugin", "none", "");
                return;
        }
        len = (size_t)snprintf(text, sizeof(text), "%.60s, ", strrchr(real, '/') + 1);
        path_check_file(text + len, sizeof(text) - len, real);
        add_version(s, "nccl.plugin", text, "");
}

/* Adds where NCCL is, for --pairs. A path that does not fit is left out. */
static void add_nccl_library(struct checked *to, const char *path)
{
        if (path && strlen(path) < CHECK_VALUE)
                checked_add(to, "nccl.library", path, "");
}

/* @path is NULL for a program without NCCL, which loads no plug-in either. */
static void add_nccl(struct version_search *s, const char *path)
{
        if (path) {
                add_nccl_version(s, path);
                add_plugin(s);
                if (!s->program->number)
                        add_nccl_library(s->to, path);
        } else {
                add_version(s, "nccl", "none", "");
                add_version(s, "nccl.plugin", "none", "");
        }
}

/* --- programs --------------------------------------------------------------------------------- */

/* Adds the problem that a script, for example of pyenv, decides about the Python. */
static void add_script_for_python(struct version_search *s)
{
        static const char *const names[] = { "python", "torch", "cuda", "nccl", "nccl.plugin" };
        char why[CHECK_PROBLEM];

        snprintf(why, sizeof(why), "%.100s is a script that starts a Python", s->python.path);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                add_version(s, names[i], "", why);
}

static void check_python_program(struct version_search *s)
{
        CLEANUP(free_textp) char *nccl = NULL;

        if (is_script(s->python.real)) {
                add_script_for_python(s);
                return;
        }
        python_each_folder(&s->python, s->env.v, s->program->cwd, note_folder, s);
        add_python(s);
        if (s->torch) {
                add_torch(s);
        } else {
                add_version(s, "torch", "none", "");
                add_version(s, "cuda", "none", "");
        }
        nccl = find_pythons_nccl(s);
        add_nccl(s, nccl);
}

/* A program that was not found has an empty closure, and "none" for each fact. */
static void check_other_program(struct version_search *s, const char *file)
{
        struct elf_closure c;
        const char *cuda;

        elf_closure_read(&c, file ? file : "", strv_env_get(&s->env, "LD_LIBRARY_PATH"));
        add_version(s, "python", "none", "");
        add_version(s, "torch", "none", "");
        cuda = find_in_closure(&c, "libcudart.so");
        if (cuda)
                add_cudart(s, cuda);
        else
                add_version(s, "cuda", "none", "");
        add_nccl(s, find_in_closure(&c, "libnccl.so"));
        elf_closure_finish(&c);
}

/* The environment of the program is the agent's own with the changes of the order, as at the start
 * of a rank. */
static void check_program_versions(struct checked *m, const struct check_program *p)
{
        struct version_search s = { .to = m, .program = p };
        CLEANUP(free_textp) char *file = NULL;

        for (char **e = environ; *e; e++)
                strv_push(&s.env, *e);
        strv_env_merge(&s.env, &p->env);
        file = path_check_search(p->argv.v[0], p->cwd, strv_env_get(&s.env, "PATH"));
        find_ranks_python(&s, file);
        if (s.has_python)
                check_python_program(&s);
        else
                check_other_program(&s, file);
        strv_finish(&s.env);
        strv_finish(&s.folders);
        free(s.torch);
}

void version_check(struct checked *m, const struct check_order *o)
{
        CLEANUP(free_textp) char *nccl = NULL;

        if (!o->n_programs) {
                nccl = elf_closure_find("libnccl.so.2", getenv("LD_LIBRARY_PATH"));
                add_nccl_library(m, nccl);
        }
        for (uint32_t i = 0; i < o->n_programs; i++)
                if (o->programs[i].argv.n)
                        check_program_versions(m, &o->programs[i]);
}
