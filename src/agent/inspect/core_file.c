/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file belongs to the process if the notes have the pid: with the pattern "core" each process of
 * a folder overwrites the earlier file. The kernel writes the notes in front of the
 * memory, so the first bytes of a large file are enough. Other users may put files into the folder:
 * only regular files of our own user are read.
 */
#include "agent/inspect/core_file.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

/* The notes stand in one of the first headers, and have some KiB for each thread. */
enum { PATTERN_MAX = 4096, HEADERS_MAX = 16, NOTES_MAX = 1 << 20 };

/* --- the pattern ------------------------------------------------------------------------------ */

/* Appends the text of a letter of core_pattern(5); CORE_FILE_ANY for a letter whose text is unknown
 * here. */
static void append_part(struct buf *path, char part, pid_t pid)
{
        char host[256] = "";

        if (part == '%')
                buf_append(path, "%", 1);
        else if (part == 'p')
                buf_printf(path, "%d", (int)pid);
        else if (part == 'u')
                buf_printf(path, "%u", (unsigned)getuid());
        else if (part == 'g')
                buf_printf(path, "%u", (unsigned)getgid());
        else if (part == 'h' && gethostname(host, sizeof(host) - 1) == 0)
                buf_appends(path, host);
        else
                buf_append(path, (char[]){ CORE_FILE_ANY }, 1);
}

char *core_file_expand(const char *pattern, bool uses_pid, pid_t pid)
{
        struct buf path = BUF_INIT;

        for (const char *p = pattern; *p; p++) {
                if (*p != '%') {
                        buf_append(&path, p, 1);
                        continue;
                }
                if (!*++p)
                        break;
                /* The kernel appends no number to a name with %p. */
                uses_pid = uses_pid && *p != 'p';
                append_part(&path, *p, pid);
        }
        if (uses_pid)
                buf_printf(&path, ".%d", (int)pid);
        return buf_steal(&path);
}

/* CORE_FILE_ANY stands for any number of letters: each length is tried, the shortest first. */
bool core_file_match(const char *name, const char *expanded)
{
        for (; *expanded && *expanded != CORE_FILE_ANY; name++, expanded++)
                if (*name != *expanded)
                        return false;
        if (!*expanded)
                return !*name;
        for (;; name++) {
                if (core_file_match(name, expanded + 1))
                        return true;
                if (!*name)
                        return false;
        }
}

void core_file_describe_pipe(const char *pattern, pid_t pid, char *to, size_t size)
{
        size_t len = strcspn(++pattern, " \n");
        const char *base = memrchr(pattern, '/', len);
        char where[64] = "";

        base = base ? base + 1 : pattern;
        len -= (size_t)(base - pattern);
        if (!strncmp(base, "systemd-coredump", len) && len)
                snprintf(where, sizeof(where), ": coredumpctl info %d shows it", (int)pid);
        else if (!strncmp(base, "apport", len) && len)
                snprintf(where, sizeof(where), ", which keeps them in /var/crash");
        snprintf(to, size, "core_pattern gives cores to %.*s%s", (int)MIN(len, (size_t)64), base,
                 where);
}

/* --- the file --------------------------------------------------------------------------------- */

/* Takes the first of the mapped files, which is the program. Source: core(5), fs/binfmt_elf.c. */
static void read_program(const char *desc, size_t len, char *program, size_t size)
{
        uint64_t count;
        size_t names;

        if (len < 2 * sizeof(count))
                return;
        memcpy(&count, desc, sizeof(count));
        if (!count || count > len / (3 * sizeof(count)))
                return;
        names = (2 + 3 * (size_t)count) * sizeof(count);
        if (names < len)
                snprintf(program, size, "%.*s", (int)(len - names), desc + names);
}

bool core_file_read_notes(const void *notes, size_t len, pid_t *ret_pid, char *program, size_t size)
{
        const char *p = notes;
        struct elf_prpsinfo info;
        Elf64_Nhdr h;
        bool found = false;

        *program = '\0';
        /* The name and the contents of a note are padded to 4 bytes each. */
        while (len >= sizeof(h)) {
                size_t name, desc;

                memcpy(&h, p, sizeof(h));
                name = sizeof(h) + ((size_t)h.n_namesz + 3) / 4 * 4;
                desc = ((size_t)h.n_descsz + 3) / 4 * 4;
                if (name > len || desc > len - name)
                        break;
                if (h.n_type == NT_PRPSINFO && h.n_descsz >= sizeof(info)) {
                        memcpy(&info, p + name, sizeof(info));
                        *ret_pid = info.pr_pid;
                        found = true;
                } else if (h.n_type == NT_FILE) {
                        read_program(p + name, h.n_descsz, program, size);
                }
                p += name + desc;
                len -= name + desc;
        }
        return found;
}

/* Reads the notes of an open file, malloc'ed; NULL = no core file. */
static char *read_notes(int fd, size_t *ret_len)
{
        Elf64_Ehdr e;
        Elf64_Phdr p[HEADERS_MAX];
        ssize_t n = pread(fd, &e, sizeof(e), 0);
        char *notes;

        if (n != sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
            e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_type != ET_CORE)
                return NULL;
        n = pread(fd, p, sizeof(p), (off_t)e.e_phoff);
        for (size_t i = 0; n > 0 && i < MIN((size_t)n / sizeof(*p), (size_t)e.e_phnum); i++) {
                if (p[i].p_type != PT_NOTE)
                        continue;
                *ret_len = MIN(p[i].p_filesz, (uint64_t)NOTES_MAX);
                notes = xcalloc(1, *ret_len + 1);
                n = pread(fd, notes, *ret_len, (off_t)p[i].p_offset);
                *ret_len = (size_t)MAX(n, (ssize_t)0);
                return notes;
        }
        return NULL;
}

/* Reads the process of a core file, 0 = none, and the time of writing. */
static pid_t read_owner(int dir, const char *name, char *program, size_t size, int64_t *ret_written)
{
        CLEANUP(fd_closep)
        /* O_NONBLOCK: the open() of a FIFO would wait for a writer. */
        int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        CLEANUP(free_textp) char *notes = NULL;
        struct stat st;
        size_t len = 0;
        pid_t of = 0;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
                return 0;
        *ret_written = st.st_mtim.tv_sec;
        notes = read_notes(fd, &len);
        return notes && core_file_read_notes(notes, len, &of, program, size) ? of : 0;
}

/* Findings of a search. */
struct core_search {
        struct core_file *file;
        int64_t newest; /* when the found file was written; -1 = none is found */
        pid_t other;    /* another process with a file there; 0 = none */
};

/* Takes a file that is the core of the wanted process, and newer than the last found: process
 * numbers come again. */
static void take_file(struct core_search *s, int dir, const char *folder, const char *name)
{
        struct core_file *f = s->file;
        char program[sizeof(f->program)];
        int64_t written = 0;
        pid_t of = read_owner(dir, name, program, sizeof(program), &written);

        /* The core of another process explains why there is none of this one. */
        if (of && of != f->pid)
                s->other = of;
        if (of != f->pid || written < s->newest)
                return;
        s->newest = written;
        snprintf(f->path, sizeof(f->path), "%s/%s", folder, name);
        memcpy(f->program, program, sizeof(program));
}

/* Reads the folder only if a part of the name is not known. */
static void search_folder(struct core_search *s, const char *folder, const char *expanded)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        bool is_known = !strchr(expanded, CORE_FILE_ANY);

        if (dir && is_known)
                take_file(s, dirfd(dir), folder, expanded);
        while (dir && !is_known && (entry = readdir(dir)))
                if (core_file_match(entry->d_name, expanded))
                        take_file(s, dirfd(dir), folder, entry->d_name);
        if (dir)
                closedir(dir);
}

/* The kernel gives no reason for a missing file. */
static void explain_none(const struct core_file *f, const char *path, pid_t other, char *why,
                         size_t size)
{
        struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };

        getrlimit(RLIMIT_CORE, &l);
        if (!f->dumped && !l.rlim_cur)
                snprintf(why, size, "ulimit -c is 0%s",
                         l.rlim_max ? " (ulimit -c unlimited allows them)"
                                    : ", and so is its hard limit");
        else if (other && !strchr(path, '*'))
                snprintf(why, size, "%s is of process %d", path, (int)other);
        else
                snprintf(why, size, "there is none of process %d as %s", (int)f->pid, path);
}

static char *read_core_setting(const char *name)
{
        char *path = xasprintf("/proc/sys/kernel/%s", name), *text = NULL;

        if (fd_read_file(path, PATTERN_MAX, &text, NULL) < 0)
                text = xstrdup("");
        text[strcspn(text, "\n")] = '\0';
        free(path);
        return text;
}

bool core_file_find(struct core_file *f, char *why, size_t size)
{
        CLEANUP(free_textp) char *pattern = read_core_setting("core_pattern");
        CLEANUP(free_textp) char *uses_pid = read_core_setting("core_uses_pid");
        CLEANUP(free_textp) char *expanded = NULL;
        CLEANUP(free_textp) char *path = NULL;
        const char *cwd = f->cwd;
        char here[256], *name;
        struct core_search s = { f, -1, 0 };

        if (*pattern == '|') {
                core_file_describe_pipe(pattern, f->pid, why, size);
                return false;
        }
        expanded = core_file_expand(pattern, *uses_pid == '1', f->pid);
        /* An empty folder is the agent's own, where ranks without a folder start. */
        if (!*cwd)
                cwd = getcwd(here, sizeof(here)) ? here : ".";
        path = *expanded == '/' ? xstrdup(expanded) : xasprintf("%s/%s", cwd, expanded);
        name = strrchr(path, '/');
        *name++ = '\0';
        search_folder(&s, *path ? path : "/", name);
        if (s.newest >= 0)
                return true;
        name[-1] = '/';
        for (char *p = path; *p; p++)
                if (*p == CORE_FILE_ANY)
                        *p = '*';
        explain_none(f, path, s.other, why, size);
        return false;
}
