/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe_file() looks at a single file and writes the fault: a link without a target, a folder,
 * no permission, another machine, no content. A script or a dynamic program is described by the
 * file that the kernel starts in its place, interpreter or loader, with the same function and a
 * longer noun: "its interpreter '/x'", "the loader '/y' of its interpreter '/x'". A searched
 * program is looked for in PATH once more, because execve() goes on after an existing file with a
 * missing interpreter.
 */
#include "base/exec_failure.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

/* LINKS_MAX and INTERPRETERS_MAX are limits of the kernel (MAXSYMLINKS, interpreters of scripts). A
 * loader is looked for in the first SEGMENTS_MAX segments. */
enum { LINKS_MAX = 40, INTERPRETERS_MAX = 5, SEGMENTS_MAX = 128 };

/* The fault of a file: an errno, and the words. */
struct fault {
        int code; /* 0 = nothing was found */
        char text[1024];
};

static int set_fault(struct fault *f, int code, const char *fmt, ...) PRINTF(3, 4);

static int set_fault(struct fault *f, int code, const char *fmt, ...)
{
        va_list ap;

        f->code = code;
        va_start(ap, fmt);
        vsnprintf(f->text, sizeof(f->text), fmt, ap);
        va_end(ap);
        return code;
}

/* Returns @name below @folder, or @name if it is absolute or there is no folder; malloc'ed. @len is
 * the length of @folder. */
static char *join_names(const char *folder, size_t len, const char *name)
{
        return *name == '/' || !len ? xstrdup(name) : xasprintf("%.*s/%s", (int)len, folder, name);
}

/* ---- links ---- */

/* Finds the link on the way to @path without a target: the last of a chain. */
static bool find_dangling(const char *path, int depth, char **ret_link, char **ret_target)
{
        size_t len = strlen(path);

        for (size_t n = 1; n <= len; n++) {
                CLEANUP(free_textp) char *link = NULL, *full = NULL;
                const char *slash;
                char target[PATH_MAX];
                struct stat st;
                ssize_t r;

                if (path[n] && path[n] != '/') /* only whole components */
                        continue;
                link = xstrndup(path, n);
                if (lstat(link, &st) < 0)
                        return false;
                /* Other errors than ENOENT, such as ELOOP, are no missing target. */
                if (!S_ISLNK(st.st_mode) || stat(link, &st) == 0 || errno != ENOENT)
                        continue;
                r = readlink(link, target, sizeof(target) - 1);
                if (r < 0)
                        return false;
                target[r] = '\0';
                slash = strrchr(link, '/');
                full = join_names(link, slash ? (size_t)(slash - link) : 0, target);
                /* The target may itself lead over a link: the last missing one is the reason. */
                if (depth < LINKS_MAX && find_dangling(full, depth + 1, ret_link, ret_target))
                        return true;
                *ret_link = xstrdup(link);
                *ret_target = xstrdup(full);
                return true;
        }
        return false;
}

/* Returns 0 for a program that is simply not there: the errno of execve() says all. */
static int describe_absent(struct fault *f, const char *path, const char *noun, bool is_program)
{
        CLEANUP(free_textp) char *link = NULL, *target = NULL;

        if (find_dangling(path, 0, &link, &target))
                return strcmp(link, path) == 0
                               ? set_fault(f, ELIBACC, "%s is a link to '%s', which does not exist",
                                           noun, target)
                               : set_fault(f, ELIBACC,
                                           "%s leads to the link '%s', whose target '%s' does not "
                                           "exist",
                                           noun, link, target);
        return is_program ? 0 : set_fault(f, ELIBACC, "%s does not exist", noun);
}

/* ---- the first bytes, as the kernel reads them ---- */

/* Returns the word after "#!" in the first line of @fd, malloc'ed; NULL = none. */
static char *read_interpreter(int fd)
{
        char line[256] = "", *word; /* as much as the kernel reads (BINPRM_BUF_SIZE) */

        if (pread(fd, line, sizeof(line) - 1, 0) < 2 || strncmp(line, "#!", 2) != 0)
                return NULL;
        word = line + 2 + strspn(line + 2, " \t");
        word[strcspn(word, " \t\n")] = '\0';
        return *word ? xstrdup(word) : NULL;
}

union elf_header {
        unsigned char ident[EI_NIDENT];
        Elf64_Ehdr wide;
        Elf32_Ehdr narrow;
};

/* A 32-bit file may be shorter than the larger header, so the smaller one suffices. */
static bool read_elf(int fd, union elf_header *to)
{
        return pread(fd, to, sizeof(*to), 0) >= (ssize_t)sizeof(to->narrow) &&
               memcmp(to->ident, ELFMAG, SELFMAG) == 0;
}

/* Returns the loader that a dynamic program names, malloc'ed; NULL = none. */
static char *read_loader(int fd, const union elf_header *elf)
{
        bool wide = elf->ident[EI_CLASS] == ELFCLASS64;
        int n = MIN(wide ? elf->wide.e_phnum : elf->narrow.e_phnum, SEGMENTS_MAX);
        off_t at = (off_t)(wide ? elf->wide.e_phoff : elf->narrow.e_phoff);
        char loader[PATH_MAX] = "";

        for (int i = 0; i < n; i++) {
                Elf64_Phdr w = { 0 };
                Elf32_Phdr s = { 0 };
                ssize_t r = wide ? pread(fd, &w, sizeof(w), at + i * (off_t)sizeof(w))
                                 : pread(fd, &s, sizeof(s), at + i * (off_t)sizeof(s));

                if (r <= 0)
                        return NULL;
                if ((wide ? w.p_type : s.p_type) != PT_INTERP)
                        continue;
                at = (off_t)(wide ? w.p_offset : s.p_offset);
                r = pread(fd, loader, MIN(wide ? w.p_filesz : s.p_filesz, sizeof(loader) - 1), at);
                return r > 0 && *loader ? xstrdup(loader) : NULL;
        }
        return NULL;
}

static const char *machine_name(unsigned machine)
{
        static const struct {
                unsigned machine;
                const char *name;
        } names[] = {
                { EM_X86_64, "x86_64" }, { EM_AARCH64, "aarch64" }, { EM_386, "i386" },
                { EM_ARM, "arm" },       { EM_PPC64, "ppc64" },     { EM_RISCV, "riscv" },
                { EM_S390, "s390" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (names[i].machine == machine)
                        return names[i].name;
        return "another machine";
}

/* ---- a single file ---- */

static int describe_file(struct fault *f, const char *path, const char *noun, int depth, int error);

/* Describes the file started by the kernel in place of another, whose noun is @of. @kind:
 * interpreter, loader. */
static int describe_helper(struct fault *f, const char *path, const char *kind, const char *of,
                           int depth, int error)
{
        size_t len = strlen(path);
        /* A script with DOS line ends names an interpreter that ends in a CR, which looks like the
         * right one in a message. */
        bool cr = path[len - 1] == '\r';
        CLEANUP(free_textp) char *plain = xstrndup(path, len - cr);
        CLEANUP(free_textp)
        char *noun = depth ? xasprintf("the %s '%s%s' of %s", kind, plain, cr ? "\\r" : "", of)
                           : xasprintf("its %s '%s%s'", kind, plain, cr ? "\\r" : "");

        if (cr)
                return set_fault(f, ELIBACC, "%s does not exist (its lines end in CR)", noun);
        return depth < INTERPRETERS_MAX ? describe_file(f, path, noun, depth + 1, error) : 0;
}

/* Describes a file without the right to execute it. */
static int describe_denied(struct fault *f, const char *path, const char *noun, mode_t mode,
                           bool is_program)
{
        struct statvfs fs;

        /* No execute bit at all: for root, too. */
        if (!(mode & 0111))
                return is_program ? set_fault(f, EACCES, "%s (mode %04o)", strerror(EACCES),
                                              mode & 07777)
                                  : set_fault(f, EACCES, "%s may not be executed (mode %04o)", noun,
                                              mode & 07777);
        if (statvfs(path, &fs) == 0 && fs.f_flag & ST_NOEXEC)
                return set_fault(f, EACCES, "%s lies in a file system that is mounted noexec",
                                 noun);
        return 0;
}

/* Describes a file by the first bytes: interpreter of a script, or machine and loader of a program.
 * Returns the errno, 0 = no fault found. */
static int describe_content(struct fault *f, int fd, const char *noun, int depth, int error)
{
        CLEANUP(free_textp) char *helper = read_interpreter(fd);
        union elf_header elf = { 0 };
        struct utsname here;
        const char *machine;

        if (helper)
                return describe_helper(f, helper, "interpreter", noun, depth, error);
        if (!read_elf(fd, &elf))
                return 0;
        machine = machine_name(elf.wide.e_machine); /* at the same place in both */
        /* Emulators (binfmt_misc) execute programs for other machines, so only a refusal counts. */
        if (error == ENOEXEC && uname(&here) == 0 &&
            strncmp(machine, here.machine, strlen(machine)) != 0)
                return set_fault(f, ENOEXEC, "%s is a program for %s, and this machine is %s", noun,
                                 machine, here.machine);
        helper = read_loader(fd, &elf);
        return helper ? describe_helper(f, helper, "loader", noun, depth, error) : 0;
}

/* Describes a file, or the file that the kernel starts in place of the file. Returns the errno, 0 =
 * no fault found. */
static int describe_file(struct fault *f, const char *path, const char *noun, int depth, int error)
{
        CLEANUP(fd_closep) int fd = -1;
        struct stat st;

        if (stat(path, &st) < 0)
                return errno == ENOENT ? describe_absent(f, path, noun, !depth) : 0;
        /* The kernel answers EACCES to a folder; EISDIR says more of the program itself. */
        if (S_ISDIR(st.st_mode))
                return set_fault(f, depth ? EACCES : EISDIR, "%s is a directory", noun);
        if (!S_ISREG(st.st_mode))
                return set_fault(f, EACCES, "%s is no regular file", noun);
        if (error == EACCES && describe_denied(f, path, noun, st.st_mode, !depth))
                return f->code;
        if (!st.st_size)
                return set_fault(f, ENOEXEC, "%s is empty", noun);
        /* O_NONBLOCK: the file may have been replaced by a FIFO since stat(). */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? 0 : describe_content(f, fd, noun, depth, error);
}

/* ---- the program ---- */

/* @shown is the name in the message, @path the file that was executed. Without a fault the sentence
 * is that of the errno. */
static int explain_path(const char *shown, const char *path, int error, struct error *err)
{
        struct fault f = { 0 };

        if (*shown && describe_file(&f, path, "it", 0, error))
                return err_set(err, f.code, "cannot execute '%s': %s", shown, f.text);
        return err_set(err, error, "cannot execute '%s': %s", shown, strerror(error));
}

/* Returns the next candidate for @program in @path, malloc'ed, and moves @at on; NULL = none is
 * left. */
static char *next_candidate(const char *program, const char *cwd, const char **at)
{
        CLEANUP(free_textp) char *folder = NULL, *in = NULL;
        const char *from = *at;
        size_t len;

        if (!from)
                return NULL;
        len = strcspn(from, ":");
        *at = from[len] ? from + len + 1 : NULL;
        folder = xstrndup(from, len);
        /* An empty entry of PATH is the current folder. */
        in = cwd && *cwd ? join_names(cwd, strlen(cwd), len ? folder : ".") : xstrdup(folder);
        return join_names(in, strlen(in), program);
}

/* Finds the first file of that name in @path, links without a target too; malloc'ed. */
static char *find_candidate(const char *program, const char *cwd, const char *path)
{
        struct stat st;

        for (char *one; (one = next_candidate(program, cwd, &path)); free(one))
                if (lstat(one, &st) == 0)
                        return one;
        return NULL;
}

int exec_failure_explain(const char *program, const char *cwd, const char *path, int error,
                         struct error *err)
{
        CLEANUP(free_textp) char *full = NULL;

        if (path) {
                full = find_candidate(program, cwd, path);
                if (!full)
                        return err_set(err, error, "cannot find '%s' in PATH", program);
                return explain_path(full, full, error, err);
        }
        full = join_names(cwd ? cwd : "", cwd ? strlen(cwd) : 0, program);
        return explain_path(program, full, error, err);
}

char *exec_failure_find_skipped(const char *program, const char *cwd, const char *path)
{
        CLEANUP(free_textp) char *first = find_candidate(program, cwd, path);
        CLEANUP(free_textp) char *link = NULL, *target = NULL;

        if (!first || !find_dangling(first, 0, &link, &target))
                return NULL;
        return xasprintf("'%s' in PATH is a link to '%s', which does not exist: the next '%s' is "
                         "started",
                         first, target, program);
}
