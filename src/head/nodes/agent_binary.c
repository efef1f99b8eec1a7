/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent is mapped. Its id names the agent in the nodes' caches, and only a node without the
 * agent gets the bytes, from the map. The id is the linker's build id, which saves reading the file
 * at each start: a hash of its two megabytes takes three milliseconds.
 */
#include "head/nodes/agent_binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/nodes/install_paths.h"

/* EM_PPC64 stands for both orders of bytes; agents exist for the little-endian order. */
static const struct {
        const char *name;
        Elf64_Half machine;
} archs[AGENT_BINARIES_MAX] = { { "x86_64", EM_X86_64 },
                                { "aarch64", EM_AARCH64 },
                                { "ppc64le", EM_PPC64 },
                                { "riscv64", EM_RISCV } };

char *agent_binary_path(struct error *err)
{
        struct utsname self = { 0 };
        char other[sizeof(self.machine) + 16];

        uname(&self);
        snprintf(other, sizeof(other), "hnlaunch-agent-%s", self.machine);
        return install_path_find("hnlaunch-agent", other, err);
}

/* Returns the architecture of a program, static. NULL: not ELF, or a machine without an agent. */
static const char *elf_arch(const unsigned char *data, size_t len)
{
        Elf64_Ehdr head;

        if (len < sizeof(head) || memcmp(data, ELFMAG, SELFMAG) != 0)
                return NULL;
        memcpy(&head, data, sizeof(head));
        for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
                if (archs[i].machine == head.e_machine)
                        return archs[i].name;
        return NULL;
}

/* Finds the build id, a hash that the linker has made of the program, among notes: lent by @notes.
 * NULL: there is none. */
static const unsigned char *find_build_id(const unsigned char *notes, size_t len, size_t align,
                                          size_t *ret_len)
{
        Elf64_Nhdr note;
        size_t name, desc;

        for (; len >= sizeof(note); notes += desc, len -= desc) {
                memcpy(&note, notes, sizeof(note));
                name = (sizeof(note) + note.n_namesz + align - 1) & ~(align - 1);
                desc = (name + note.n_descsz + align - 1) & ~(align - 1);
                if (name > len || desc > len)
                        return NULL;
                if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz &&
                    note.n_namesz == sizeof(ELF_NOTE_GNU) &&
                    memcmp(notes + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
                        *ret_len = note.n_descsz;
                        return notes + name;
                }
        }
        return NULL;
}

/* The same in the whole program. */
static const unsigned char *elf_build_id(const unsigned char *data, size_t len, size_t *ret_len)
{
        const unsigned char *found = NULL;
        Elf64_Ehdr head;
        Elf64_Phdr part;

        memcpy(&head, data, sizeof(head));
        for (size_t i = 0; !found && i < head.e_phnum; i++) {
                size_t at = head.e_phoff + i * sizeof(part);

                if (head.e_phoff > len || at + sizeof(part) > len)
                        return NULL;
                memcpy(&part, data + at, sizeof(part));
                if (part.p_type == PT_NOTE && part.p_offset <= len &&
                    part.p_filesz <= len - part.p_offset)
                        found = find_build_id(data + part.p_offset, part.p_filesz,
                                              part.p_align == 8 ? 8 : 4, ret_len);
        }
        return found;
}

/* Writes the id of a program of elf_arch(): a hash of its header, its build id and its size, which
 * tells a program from the same one without symbols; or of all of it if it has no build id. */
static void name_binary(struct agent_binary *b)
{
        crypto_generichash_state state;
        unsigned char hash[16];
        size_t len = 0;
        const unsigned char *id = elf_build_id(b->data, b->len, &len);

        crypto_generichash_init(&state, NULL, 0, sizeof(hash));
        crypto_generichash_update(&state, b->data, id ? sizeof(Elf64_Ehdr) : b->len);
        crypto_generichash_update(&state, id, len);
        crypto_generichash_update(&state, (unsigned char *)&b->len, sizeof(b->len));
        crypto_generichash_final(&state, hash, sizeof(hash));
        sodium_bin2hex(b->id, sizeof(b->id), hash, sizeof(hash));
}

/* Maps the agent @path. @arch: the architecture in the file's name, NULL = any. */
static int add_agent_binary(struct agent_binaries *set, const char *path, const char *arch,
                            struct error *err)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct agent_binary *binary = &set->v[set->n];
        struct stat st;
        void *map;

        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, errno, "cannot read the agent %s: %s", path, strerror(errno));
        /* The map stays valid after the descriptor is closed. */
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
                return err_set(err, errno, "cannot map the agent %s: %s", path, strerror(errno));
        binary->data = map;
        binary->len = (size_t)st.st_size;
        /* Counted before the checks, so agent_binaries_finish() always unmaps the file. */
        set->n++;
        binary->arch = elf_arch(binary->data, binary->len);
        if (!binary->arch)
                return err_set(err, ENOEXEC, "the agent %s is not a program of a known machine",
                               path);
        if (arch && strcmp(arch, binary->arch) != 0)
                return err_set(err, ENOEXEC, "the agent %s is for %s", path, binary->arch);
        name_binary(binary);
        return 0;
}

int agent_binaries_load(struct agent_binaries *set, const char *path, bool siblings,
                        struct error *err)
{
        const char *slash = strrchr(path, '/');
        int r;

        *set = (struct agent_binaries){ 0 };
        set->folder = slash ? xasprintf("%.*s", (int)(slash - path), path) : xstrdup(".");
        r = add_agent_binary(set, path, NULL, err);
        for (size_t i = 0; r == 0 && siblings && i < ARRAY_SIZE(archs); i++) {
                char *name;

                /* The agent @path is of this architecture, whatever the file's name. */
                if (agent_binary_for(set, archs[i].name))
                        continue;
                name = xasprintf("%s/hnlaunch-agent-%s", set->folder, archs[i].name);
                if (access(name, F_OK) == 0)
                        r = add_agent_binary(set, name, archs[i].name, err);
                free(name);
        }
        return r;
}

void agent_binaries_finish(struct agent_binaries *set)
{
        for (size_t i = 0; i < set->n; i++)
                munmap((void *)(uintptr_t)set->v[i].data, set->v[i].len);
        free(set->folder);
        *set = (struct agent_binaries){ 0 };
}

const struct agent_binary *agent_binary_for(const struct agent_binaries *set, const char *arch)
{
        for (size_t i = 0; i < set->n; i++)
                if (!strcmp(set->v[i].arch, arch))
                        return &set->v[i];
        return NULL;
}

void agent_binaries_names(const struct agent_binaries *set, char *to, size_t size)
{
        size_t n = 0;

        *to = '\0';
        for (size_t i = 0; i < set->n && n < size; i++)
                n += (size_t)snprintf(to + n, size - n, "%s%s", i ? ", " : "", set->v[i].arch);
}
