/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only files are examined, before the start, never processes: a library mapped by a rank is not
 * always used (PyTorch may ship an MPI), and reading a rank's memory map can block for as long as a
 * file server hangs.
 */
#include "head/mpi_program.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_libs.h"
#include "base/fd.h"
#include "base/memory.h"

enum { SCRIPT_MAX = 1 << 20 };

static bool is_mpi(const char *name)
{
        static const char *const patterns[] = { "libmpi.so*",    "libmpi_*.so*",   "libmpich*.so*",
                                                "libmpicxx.so*", "libmpifort.so*", "libpmpi.so*" };

        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
                if (fnmatch(patterns[i], name, 0) == 0)
                        return true;
        return false;
}

bool mpi_library_is_open_mpi(const char *library)
{
        const char *number = strncmp(library, "libmpi", 6) ? NULL : strstr(library, ".so.");

        return number && atoi(number + 4) >= 20;
}

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
                if ((!strcmp(*argv, "-W") || !strcmp(*argv, "-X")) && argv[1])
                        argv++;
        }
        return *argv ? argv : NULL;
}

char *mpi_script_of(const char *path, char *const *argv, const char *cwd)
{
        const char *slash = strrchr(path, '/');
        bool python = !strncmp(slash ? slash + 1 : path, "python", 6);
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
        if (real && fd_read_regular(real, SCRIPT_MAX, &text, NULL) == 0 &&
            (python || !strncmp(text, "#!", 2)) && imports_mpi(text))
                return xstrdup(*word);
        return NULL;
}

char *mpi_library_of(const char *path)
{
        struct elf_libs libs;
        char *found = NULL;

        elf_libs_read(&libs, path);
        for (size_t i = 0; i < libs.needed.n && !found; i++)
                if (is_mpi(libs.needed.v[i]))
                        found = xstrdup(libs.needed.v[i]);
        elf_libs_finish(&libs);
        return found;
}
