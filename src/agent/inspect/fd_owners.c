/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of pipes and sockets have a link text with the inode, such as pipe:[123], which is
 * compared first; the mode tells the two ends of a pipe apart.
 */
#include "agent/inspect/fd_owners.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/macros.h"

struct fd_search {
        struct fd_owners *owners;
        pid_t self;
        const char *link;
        mode_t mode;
        const char *lock; /* looked for instead of a link, if not NULL */
        size_t lock_len;
};

/* Whether an open file has the wanted lock: "lock:\t1: FLOCK  ADVISORY  WRITE 9 fe:00:8 0 EOF". */
static bool file_has_lock(const struct fd_search *s, pid_t pid, const char *name)
{
        char file[32], text[4096];

        snprintf(file, sizeof(file), "fdinfo/%.16s", name);
        if (!proc_read(pid, file, text, sizeof(text)))
                return false;
        for (const char *at = text; (at = strstr(at, "lock:\t"));) {
                at = strstr(at, ": ");
                if (!at)
                        return false;
                at += 2;
                if (!strncmp(at, s->lock, s->lock_len) && at[s->lock_len] == '\n')
                        return true;
        }
        return false;
}

/* Whether an entry of /proc/PID/fd, opened as @folder, is the wanted file. */
static bool entry_matches(const struct fd_search *s, pid_t pid, int folder, const char *name)
{
        char target[64];
        ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);
        struct stat st;

        if (n <= 0)
                return false;
        target[n] = '\0';
        if (s->lock) /* pipes and sockets have none */
                return *target == '/' && file_has_lock(s, pid, name);
        if (strcmp(target, s->link) != 0)
                return false;
        return !s->mode ||
               (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mode & s->mode);
}

/* Counts the process if a descriptor leads to the file that is searched. */
static void look_into_process(void *ctx, pid_t pid)
{
        const struct fd_search *s = ctx;
        struct fd_owners *o = s->owners;
        char path[32];
        struct dirent *e;
        bool has = false;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
        d = opendir(path);
        if (!d)
                return;
        while (!has && (e = readdir(d)))
                has = entry_matches(s, pid, dirfd(d), e->d_name);
        closedir(d);
        if (!has)
                return;
        if (pid == s->self) {
                o->self = true;
                return;
        }
        o->other = o->n_others ? MIN(o->other, pid) : pid;
        o->n_others++;
}

void fd_owners_find(struct fd_owners *o, pid_t self, const char *link, mode_t mode)
{
        struct fd_search s = { .owners = o, .self = self, .link = link, .mode = mode };

        *o = (struct fd_owners){ 0 };
        look_into_process(&s, proc_self());
        if (!o->n_others)
                proc_each(look_into_process, &s);
}

void fd_owners_find_lock(struct fd_owners *o, pid_t pid, const char *lock)
{
        struct fd_search s = { .owners = o, .lock = lock, .lock_len = strcspn(lock, "\n") };

        *o = (struct fd_owners){ 0 };
        if (pid)
                look_into_process(&s, pid);
        else
                proc_each(look_into_process, &s);
}
