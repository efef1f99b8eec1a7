/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program headers of an ELF file lead to its dynamic section. Each DT_NEEDED, DT_RUNPATH and
 * DT_RPATH entry there is an offset into a table of strings, whose address is an entry as well and
 * is translated to an offset in the file by the program headers. Only these pieces are read, with
 * limits on each, because the file may be anything.
 */
#include "base/elf/elf_libs.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"

/* More than any linker writes. NAME_SIZE and FOLDERS_SIZE: the limits in the header, with the
 * NUL. */
enum { SEGMENTS_MAX = 64, DYNAMIC_MAX = 1024, NAME_SIZE = 256, FOLDERS_SIZE = 4096 };

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

                /* The address is one of the memory image; a segment to be loaded maps addresses to
                 * the file. */
                if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
                    address - s->p_vaddr < s->p_filesz)
                        return address - s->p_vaddr + s->p_offset;
        }
        return 0;
}

/* Reads a string of less than @size bytes. */
static bool read_string(const struct elf *e, uint64_t at, char *to, size_t size)
{
        ssize_t n = pread(e->fd, to, size, (off_t)at);

        return n > 0 && memchr(to, '\0', (size_t)n);
}

/* Adds the folders of the colon list @text, with $ORIGIN replaced at the front. */
static void split_folders(struct strv *folders, char *text, const char *path)
{
        const char *slash = strrchr(path, '/');
        int origin = slash ? (int)(slash - path) : 0;
        char *rest = text;

        for (char *word; (word = strsep(&rest, ":"));) {
                /* Both spellings are allowed. */
                size_t skip = !strncmp(word, "$ORIGIN", 7)     ? 7
                              : !strncmp(word, "${ORIGIN}", 9) ? 9
                                                               : 0;

                if (skip)
                        strv_pushf(folders, "%.*s%s", origin, path, word + skip);
                else if (*word == '/')
                        strv_push(folders, word);
        }
}

/* Fills in names and folders. DT_RUNPATH replaces DT_RPATH, as in ld.so(8). */
static void read_entries(struct elf_libs *ret, const struct elf *e, const char *path)
{
        uint64_t strings = find_strings(e), folders = 0;
        char text[FOLDERS_SIZE];
        bool runpath = false;

        for (size_t i = 0; strings && i < e->n_dynamic && e->dynamic[i].d_tag != DT_NULL; i++) {
                const ElfW(Dyn) *d = &e->dynamic[i];

                if (d->d_tag == DT_NEEDED &&
                    read_string(e, strings + d->d_un.d_val, text, NAME_SIZE))
                        strv_push(&ret->needed, text);
                if (d->d_tag == DT_RUNPATH || (d->d_tag == DT_RPATH && !runpath))
                        folders = strings + d->d_un.d_val;
                /* Whichever of the two comes first in the section. */
                runpath |= d->d_tag == DT_RUNPATH;
        }
        if (folders && read_string(e, folders, text, sizeof(text)))
                split_folders(&ret->folders, text, path);
        ret->inherited = !runpath && ret->folders.n;
}

int elf_libs_read(struct elf_libs *ret, const char *path)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct elf *e;
        bool good;

        *ret = (struct elf_libs){ .needed = STRV_INIT };
        if (fd < 0)
                return -errno;
        /* Too large for a stack, and fully written before each use: no need for zeroes. */
        e = xrealloc(NULL, 1, sizeof(*e));
        e->fd = fd;
        good = read_headers(e);
        if (good)
                read_entries(ret, e, path);
        free(e);
        return good ? 0 : -ENOEXEC;
}

void elf_libs_finish(struct elf_libs *l)
{
        strv_finish(&l->needed);
        strv_finish(&l->folders);
}

/* Without fnmatch(), which is large in a static agent. */
enum mpi_family mpi_library_family(const char *name)
{
        static const char *const beginnings[] = { "libmpi.so",    "libmpi_",       "libmpich",
                                                  "libmpicxx.so", "libmpifort.so", "libpmpi.so" };
        const char *slash = strrchr(name, '/'), *number;

        name = slash ? slash + 1 : name;
        if (!strncmp(name, "libmpi_abi.so", 13))
                return MPI_FAMILY_ANY;
        for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
                if (strncmp(name, beginnings[i], strlen(beginnings[i])) != 0 ||
                    !strstr(name, ".so"))
                        continue;
                number = strstr(name, ".so.");
                return number && atoi(number + 4) >= 20 ? MPI_FAMILY_OPEN_MPI : MPI_FAMILY_MPICH;
        }
        return MPI_FAMILY_NONE;
}

const char *mpi_family_name(enum mpi_family family)
{
        static const char *const names[] = { "", "MPI", "Open MPI", "MPICH's ABI" };

        return names[family];
}

bool mpi_is_launcher(const char *name)
{
        static const char *const names[] = {
                "mpirun", "mpiexec", "mpiexec.hydra", "mpirun_rsh", "orterun",         "orted",
                "prun",   "prterun", "prte",          "prted",      "hydra_pmi_proxy", "srun",
                "aprun",  "jsrun",   "flux",          "hnlaunch",   "hnlaunch-agent",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strcmp(name, names[i]))
                        return true;
        return false;
}
