/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_dir() lists the candidates, cache_dir_open() tries a candidate: makes the folders, checks
 * the owner, then proves with real files that hard links and locks work, because mount options and
 * file systems cannot be trusted to tell. Other jobs remove empty folders at the same time, so the
 * folders are made again while ENOENT is the answer.
 */
#include "agent/files/cache_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum { TRIES = 100 }; /* another job may remove an empty folder each time */

char *cache_dir(int i)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        unsigned uid = geteuid();
        struct stat st;

        switch (i) {
        case 0:
                if (cache && *cache == '/')
                        return xasprintf("%s/hnlaunch", cache);
                /* A home that is not there is of another machine, or of a user without any. */
                return home && *home == '/' && stat(home, &st) == 0 && S_ISDIR(st.st_mode)
                               ? xasprintf("%s/.cache/hnlaunch", home)
                               : NULL;
        case 1:
                return xasprintf("/var/tmp/hnlaunch-%u", uid);
        case 2:
                return runtime && *runtime == '/' ? xasprintf("%s/hnlaunch", runtime)
                                                  : xasprintf("/run/user/%u/hnlaunch", uid);
        default:
                return xasprintf("/dev/shm/hnlaunch-%u", uid);
        }
}

/* Fills in @ret for the head, and returns -@error. */
static int PRINTF(4, 5)
        fail_cache_dir(struct pushed *ret, const char *folder, int error, const char *fmt, ...)
{
        va_list ap;

        *ret = (struct pushed){ .error = (uint32_t)error };
        snprintf(ret->folder, sizeof(ret->folder), "%s", folder);
        va_start(ap, fmt);
        vsnprintf(ret->what, sizeof(ret->what), fmt, ap);
        va_end(ap);
        return -error;
}

/* @who is unique among all simultaneous callers; process numbers are not. */
static int try_file_system(const char *root, const char *who)
{
        CLEANUP(free_textp) char *one = xasprintf("%s/file/.%s-try", root, who);
        CLEANUP(free_textp) char *two = xasprintf("%s/file/.%s-too", root, who);
        int fd = open(one, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        int r = fd < 0 || link(one, two) < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;

        fd_close(fd);
        unlink(one);
        unlink(two);
        return r;
}

/* Makes @folder as mkdir -p, and checks the owner: any user can create names in /var/tmp and
 * /dev/shm. */
static int prepare_folder(const char *folder)
{
        CLEANUP(free_textp) char *path = xstrdup(folder);
        struct stat st;

        for (char *p = path + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                mkdir(path, 0700); /* an error shows in the last one */
                *p = '/';
        }
        if ((mkdir(path, 0700) < 0 && errno != EEXIST) || lstat(path, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        return st.st_uid == geteuid() ? 0 : -EPERM;
}

/* Makes the folders of a candidate and proves that the file system can do all that the cache needs.
 * 0, or negative with @ret. */
static int prepare_root(const char *folder, const char *root, const char *who, struct pushed *ret)
{
        CLEANUP(free_textp) char *files = xasprintf("%s/file", root);
        int r = prepare_folder(folder);

        if (r)
                return fail_cache_dir(ret, folder, -r, "no folder of ours: %s", strerror(-r));
        r = -ENOENT;
        /* Repeats, because other jobs remove empty folders when they end. */
        for (int i = 0; i < TRIES && r == -ENOENT; i++) {
                r = 0;
                if ((mkdir(root, 0700) < 0 && errno != EEXIST) ||
                    (mkdir(files, 0700) < 0 && errno != EEXIST))
                        r = -errno;
                if (!r)
                        r = try_file_system(root, who);
        }
        if (r)
                fail_cache_dir(ret, folder, -r, "cannot make files, hard links and locks in %s: %s",
                               files, strerror(-r));
        return r;
}

int cache_dir_open(const char *folder, bool program, const char *who, char **ret_root,
                   struct pushed *ret)
{
        char *root = xasprintf("%s/push", folder);
        int r = prepare_root(folder, root, who, ret);
        struct statvfs v;

        if (!r && program && statvfs(root, &v) == 0 && v.f_flag & ST_NOEXEC)
                r = fail_cache_dir(ret, folder, EACCES,
                                   "programs in %s cannot be run: it is noexec", root);
        if (r)
                free(root);
        else
                *ret_root = root;
        return r;
}
