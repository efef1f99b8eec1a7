/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only files are examined, before the start. Libraries loaded later are seen by the rank's agent
 * (agent/nccl/library_watch.h), and told when the rank has ended without the others.
 */
#include "head/launch/mpi_program.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf/elf_closure.h"
#include "base/fd.h"
#include "base/memory.h"

enum { SCRIPT_MAX = 1 << 20 }; /* bytes; larger files are no scripts */

/* Whether a line without indentation imports mpi4py: an import within a function may never run. */
static bool imports_mpi(const char *text)
{
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (!strncmp(line, "import mpi4py", 13) || !strncmp(line, "from mpi4py", 11))
                        return true;
        }
        return false;
}

/* Returns the script among the arguments of Python, or `-m`; NULL: neither. */
static char *const *find_python_script(char *const *argv)
{
        for (argv++; *argv && **argv == '-' && strcmp(*argv, "-m") != 0; argv++) {
                if (!strcmp(*argv, "-c"))
                        return NULL;
                /* Options with an argument of their own. */
                if ((!strcmp(*argv, "-W") || !strcmp(*argv, "-X")) && argv[1])
                        argv++;
        }
        return *argv ? argv : NULL;
}

bool mpi_is_python(const char *path)
{
        const char *slash = strrchr(path, '/');

        return !strncmp(slash ? slash + 1 : path, "python", 6);
}

char *mpi_script_of(const char *path, char *const *argv, const char *cwd)
{
        bool python = mpi_is_python(path);
        char *const *word = python ? find_python_script(argv) : argv;
        CLEANUP(free_textp) char *file = NULL, *real = NULL, *text = NULL;

        if (python && word && !strcmp(*word, "-m"))
                return word[1] && !strncmp(word[1], "mpi4py", 6) ? xstrdup("python -m mpi4py")
                                                                 : NULL;
        if (!word)
                return NULL;
        file = !python         ? xstrdup(path)
               : **word == '/' ? xstrdup(*word)
                               : xasprintf("%s/%s", cwd, *word);
        real = realpath(file, NULL);
        if (real && fd_read_regular(AT_FDCWD, real, SCRIPT_MAX, &text, NULL) == 0 &&
            (python || !strncmp(text, "#!", 2)) && imports_mpi(text))
                return xstrdup(*word);
        return NULL;
}

int mpi_libraries_find(struct mpi_libraries *ret, const char *path, const char *library_path)
{
        struct elf_closure c;
        int r;

        *ret = (struct mpi_libraries){ 0 };
        r = elf_closure_read(&c, path, library_path);
        for (size_t i = 0; i < c.n; i++) {
                enum mpi_family family = mpi_library_family(c.v[i].name);
                /* The closure is in the order of the loader: of two families the first binds
                 * MPI_Init(). */
                size_t k = family == MPI_FAMILY_MPICH;

                if (family != MPI_FAMILY_NONE && !ret->name)
                        ret->name = xstrdup(c.v[i].name);
                if (family <= MPI_FAMILY_ANY || ret->of[k])
                        continue;
                ret->of[k] = xstrdup(c.v[i].name);
                ret->by[k] = c.v[i].by ? xstrdup(c.v[i].by) : NULL;
                if (!ret->family)
                        ret->family = family;
        }
        if (ret->name && !ret->family)
                ret->family = MPI_FAMILY_MPICH;
        elf_closure_finish(&c);
        return r;
}

void mpi_libraries_finish(struct mpi_libraries *l)
{
        free(l->name);
        for (size_t i = 0; i < ARRAY_SIZE(l->of); i++) {
                free(l->of[i]);
                free(l->by[i]);
        }
        *l = (struct mpi_libraries){ 0 };
}
