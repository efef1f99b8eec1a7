/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only files are examined, before the start, never processes: a library mapped by a rank is not
 * always used (PyTorch may ship an MPI), and reading a rank's memory map can block for as long as a
 * file server hangs.
 *
 * The program headers of an ELF file lead to its dynamic section. Each DT_NEEDED entry there is an
 * offset into a table of strings. Only these pieces are read.
 */
#include "head/mpi_program.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum { SEGMENTS_MAX = 64, DYNAMIC_MAX = 1024, NAME_SIZE = 64, SCRIPT_MAX = 1 << 20 };

struct elf {
        int fd;
        ElfW(Phdr) segments[SEGMENTS_MAX];
        size_t n_segments;
        ElfW(Dyn) dynamic[DYNAMIC_MAX];
        size_t n_dynamic;
};

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
        return pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

/* Reads the program headers and the dynamic section. */
static bool read_headers(struct elf *e)
{
        const unsigned char kind = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
        const ElfW(Phdr) *s = e->segments;
        ElfW(Ehdr) head;

        if (!read_at(e->fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
            head.e_ident[EI_CLASS] != kind || head.e_phentsize != sizeof(*e->segments) ||
            head.e_phnum > SEGMENTS_MAX)
                return false;
        e->n_segments = head.e_phnum;
        if (!read_at(e->fd, e->segments, e->n_segments * sizeof(*e->segments), head.e_phoff))
                return false;
        while (s < e->segments + e->n_segments && s->p_type != PT_DYNAMIC)
                s++;
        if (s == e->segments + e->n_segments)
                return false;
        e->n_dynamic = s->p_filesz / sizeof(*e->dynamic);
        return e->n_dynamic <= DYNAMIC_MAX &&
               read_at(e->fd, e->dynamic, e->n_dynamic * sizeof(*e->dynamic), s->p_offset);
}

/* Returns the offset in the file of the table of strings; 0 = there is none. */
static uint64_t find_strings(const struct elf *e)
{
        uint64_t address = 0;

        for (size_t i = 0; i < e->n_dynamic; i++)
                if (e->dynamic[i].d_tag == DT_STRTAB)
                        address = e->dynamic[i].d_un.d_ptr;
        for (size_t i = 0; i < e->n_segments; i++) {
                const ElfW(Phdr) *s = &e->segments[i];

                if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
                    address - s->p_vaddr < s->p_filesz)
                        return address - s->p_vaddr + s->p_offset;
        }
        return 0;
}

static bool is_mpi(const char *name)
{
        static const char *const patterns[] = { "libmpi.so*",    "libmpi_*.so*",   "libmpich*.so*",
                                                "libmpicxx.so*", "libmpifort.so*", "libpmpi.so*" };

        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
                if (fnmatch(patterns[i], name, 0) == 0)
                        return true;
        return false;
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
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct elf e = { .fd = fd };
        char name[NAME_SIZE + 1];
        uint64_t strings;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_headers(&e))
                return NULL;
        strings = find_strings(&e);
        for (size_t i = 0; strings && i < e.n_dynamic; i++) {
                if (e.dynamic[i].d_tag != DT_NEEDED)
                        continue;
                memset(name, 0, sizeof(name));
                if (pread(fd, name, NAME_SIZE, (off_t)(strings + e.dynamic[i].d_un.d_val)) > 0 &&
                    is_mpi(name))
                        return xstrdup(name);
        }
        return NULL;
}
