/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal trusts no entry: ranks may have put anything into the folder. clear_folder() stays on the
 * mount, follows no link, goes DEPTH_MAX deep and looks at ENTRIES_MAX entries, so that a rank
 * cannot keep the agent from the head; entries left behind are counted with the first reason.
 * Between two attempts the agent's own files stay.
 */
#include "agent/core/job_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "wire/env/nccl_env.h"

#define PIPES "/tmp"

enum {
        PATH_LIMIT = 64, /* of the folder: a socket's whole path has 107 bytes */
};

/* PyTorch ends a process when the FIFO cannot be made. A rank may run in a container without the
 * folder, but every container has a /tmp; and no other user may guess the name and take the
 * place. */
static char *name_pipes(void)
{
        uint64_t token[2];

        if (access(PIPES, W_OK | X_OK) < 0 ||
            getrandom(token, sizeof(token), GRND_NONBLOCK) != sizeof(token))
                return NULL;
        return xasprintf(PIPES "/hnlaunch-%016" PRIx64 "%016" PRIx64 ".rank_", token[0], token[1]);
}

int job_dir_create(struct job_dir *d, struct error *err)
{
        /* XDG_RUNTIME_DIR is private to the user. The first two folders are in memory. */
        const char *tried[] = { getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp" };
        char *path;

        for (size_t i = 0; i < ARRAY_SIZE(tried); i++) {
                if (!tried[i] || tried[i][0] != '/' || strlen(tried[i]) > PATH_LIMIT)
                        continue;
                path = xasprintf("%s/hnlaunch-XXXXXX", tried[i]);
                if (mkdtemp(path)) {
                        d->path = path;
                        d->store = xasprintf("%s/store", path);
                        d->dumps = xasprintf("%s/" NCCL_DUMP_NAME, path);
                        d->pipes = name_pipes();
                        return 0;
                }
                err_set(err, errno, "cannot make a folder in %s: %s", tried[i], strerror(errno));
                free(path);
        }
        return -err->code;
}

/* --- removal: ranks may have put anything there --- */

enum { DEPTH_MAX = 32, ENTRIES_MAX = 10000 }; /* more is left: the agent has to answer the head */

struct clearing {
        bool all; /* the agent's own files, too */
        size_t seen, removed, left;
        int error; /* errno of the first entry that is left */
};

/* Sockets of the stores, and lists of keys of ssh for child agents. */
static bool is_own_file(const char *name)
{
        return !strcmp(name, "store") || !strncmp(name, "store-", 6) || !strncmp(name, "known-", 6);
}

/* Entries that are no surprise: error files, dumps, and files of libpmix and Open MPI. */
static bool is_expected_file(const char *name)
{
        return !strncmp(name, "error-", 6) || !strcmp(name, "pmix") ||
               !strncmp(name, "world-", 6) || !strcmp(name, "pmi") ||
               !strncmp(name, NCCL_DUMP_NAME, sizeof(NCCL_DUMP_NAME) - 1);
}

static void count_left(struct clearing *c, int error)
{
        c->error = c->left++ ? c->error : error;
}

/* Opens a folder on the same mount: behind another one may be a home directory. Links are not
 * followed. -1 with errno. */
static int open_below(int dir, const char *name)
{
        struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS };
        long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
        struct stat above, st;

        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
                return (int)fd;
        /* Before Linux 5.6, or in a sandbox: mounts of other file systems only. */
        fd = openat(dir, name, (int)how.flags);
        if (fd >= 0 &&
            (fstat(dir, &above) < 0 || fstat((int)fd, &st) < 0 || st.st_dev != above.st_dev)) {
                fd = fd_close((int)fd);
                errno = EXDEV;
        }
        return (int)fd;
}

static void clear_folder(struct clearing *c, int fd, int depth);

/* Removes an entry. Tries to unlink first, so that no test of the kind can be outrun by a rank. */
static void clear_entry(struct clearing *c, int dir, const char *name, int depth)
{
        size_t left = c->left;
        int fd;

        if (unlinkat(dir, name, 0) == 0) {
                c->removed++;
                return;
        }
        /* A folder: EISDIR on Linux, EPERM by POSIX. */
        if (errno != EISDIR && errno != EPERM) {
                count_left(c, errno);
                return;
        }
        fd = depth < DEPTH_MAX ? open_below(dir, name) : -1;
        if (fd < 0) {
                count_left(c, depth < DEPTH_MAX ? errno : ELOOP);
                return;
        }
        clear_folder(c, fd, depth + 1);
        if (c->left > left)
                return; /* counted below */
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
                c->removed++;
        else
                count_left(c, errno);
}

/* Takes @fd. */
static void clear_folder(struct clearing *c, int fd, int depth)
{
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;
        size_t removed;

        if (!dir) {
                count_left(c, errno);
                fd_close(fd);
                return;
        }
        while ((entry = readdir(dir))) {
                if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
                    (!depth && !c->all && is_own_file(entry->d_name)))
                        continue;
                if (c->seen++ >= ENTRIES_MAX) {
                        count_left(c, E2BIG);
                        break;
                }
                removed = c->removed;
                clear_entry(c, dirfd(dir), entry->d_name, depth);
                if (!depth && is_expected_file(entry->d_name))
                        c->removed = removed;
        }
        closedir(dir);
}

/* The folder itself may have been replaced by a link: O_NOFOLLOW refuses it. */
static struct clearing clear_job_dir(const struct job_dir *d, bool all)
{
        struct clearing c = { .all = all };

        if (d->path)
                clear_folder(&c, open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 0);
        return c;
}

size_t job_dir_clear(struct job_dir *d, size_t *ret_removed, int *ret_error)
{
        struct clearing c = clear_job_dir(d, false);

        d->stays = c.left > 0;
        *ret_removed = c.removed;
        *ret_error = c.error;
        return c.left;
}

/* Ranks may have other numbers in PyTorch than here, so the names are looked for. */
static void remove_pipes(const struct job_dir *d)
{
        const char *name = d->pipes ? strrchr(d->pipes, '/') + 1 : NULL;
        DIR *dir = d->pipes ? opendir(PIPES) : NULL;
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (!strncmp(entry->d_name, name, strlen(name)))
                        unlinkat(dirfd(dir), entry->d_name, 0);
        if (dir)
                closedir(dir);
}

int job_dir_remove(struct job_dir *d)
{
        int r;

        if (!d->path)
                return 0;
        /* The entries left were reported once; a second try would only take time. */
        if (d->stays)
                unlink(d->store);
        else
                clear_job_dir(d, true);
        r = rmdir(d->path) < 0 && errno != ENOENT && !d->stays ? -errno : 0;
        remove_pipes(d);
        free(d->path);
        free(d->store);
        free(d->dumps);
        free(d->pipes);
        *d = (struct job_dir){ 0 };
        return r;
}
