/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_dir() lists the candidates, cache_dir_open() tries a candidate: makes the folders, checks
 * the owner, then proves with real files that hard links and locks work, because mount options and
 * the type of a file system are no proof. Other jobs remove empty folders at the same time, so the
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
#include "base/log.h"
#include "base/memory.h"

enum { TRIES = 100 }; /* another job may remove an empty folder each time */

/* Returns @folder/hnlaunch-stage-UID; NULL if the folder is not absolute. */
static char *root_below(const char *folder)
{
        return folder && *folder == '/'
                       ? xasprintf("%s/hnlaunch-stage-%u", folder, (unsigned)geteuid())
                       : NULL;
}

void cache_dir_pass_over(const char *why)
{
        static bool told;

        if (!told)
                log_line(LOG_INFO, "HNLAUNCH_STAGE_DIR=%s is not used: %s",
                         getenv("HNLAUNCH_STAGE_DIR"), why);
        told = true;
}

/* Returns the root in the folder wanted by the user. A missing parent is not made: as a rule the
 * disk is not mounted, or the path is misspelled. */
static char *root_of_user(void)
{
        const char *folder = getenv("HNLAUNCH_STAGE_DIR");
        CLEANUP(free_textp) char *parent = xstrdup(folder ? folder : ""), *why = NULL;
        size_t len = strlen(parent);

        while (len && parent[len - 1] == '/')
                len--;
        while (len && parent[len - 1] != '/')
                len--;
        parent[len] = '\0';
        if (!folder || !*folder)
                return NULL;
        if (*folder != '/')
                why = xstrdup("it is no absolute path");
        else if (len && access(parent, F_OK) < 0)
                why = xasprintf("%s: %s", parent, strerror(errno));
        if (why)
                cache_dir_pass_over(why);
        return why ? NULL : root_below(folder);
}

char *cache_dir(int i)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        CLEANUP(free_textp) char *folder = NULL;
        struct stat st;

        switch (i) {
        case 0:
                return root_of_user();
        case 1:
                return root_below("/tmp");
        case 2:
                return root_below("/var/tmp");
        case 3:
                if (cache && *cache == '/')
                        folder = xasprintf("%s/hnlaunch", cache);
                /* An absent home belongs to another machine, or the user has none. */
                else if (home && *home == '/' && stat(home, &st) == 0 && S_ISDIR(st.st_mode))
                        folder = xasprintf("%s/.cache/hnlaunch", home);
                return root_below(folder);
        case 4:
                folder = runtime && *runtime == '/'
                                 ? xstrdup(runtime)
                                 : xasprintf("/run/user/%u", (unsigned)geteuid());
                return root_below(folder);
        default:
                return root_below("/dev/shm");
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

/* Makes @root as mkdir -p, and checks the owner: any user can create names in /tmp and /dev/shm. */
static int prepare_folder(const char *root)
{
        CLEANUP(free_textp) char *path = xstrdup(root);
        struct stat st;

        for (char *p = path + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                mkdir(path, 0700); /* an error shows with the last folder */
                *p = '/';
        }
        if ((mkdir(path, 0700) < 0 && errno != EEXIST) || lstat(path, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        if (st.st_uid != geteuid())
                return -EPERM;
        return st.st_mode & 0077 && chmod(path, 0700) < 0 ? -errno : 0;
}

/* Makes the folders of a candidate and proves that the file system has all functions used by the
 * cache. 0, or negative with @ret. */
static int prepare_root(const char *root, const char *who, struct pushed *ret)
{
        CLEANUP(free_textp) char *files = xasprintf("%s/file", root);
        int r = -ENOENT;

        /* Repeats, because other jobs remove empty folders at their end. */
        for (int i = 0; i < TRIES && r == -ENOENT; i++) {
                r = prepare_folder(root);
                if (r)
                        return fail_cache_dir(ret, root, -r, "no folder of ours: %s", strerror(-r));
                if (mkdir(files, 0700) < 0 && errno != EEXIST)
                        r = -errno;
                if (!r)
                        r = try_file_system(root, who);
        }
        if (r)
                fail_cache_dir(ret, root, -r, "cannot make files, hard links and locks in %s: %s",
                               files, strerror(-r));
        return r;
}

static bool is_noexec(const char *root)
{
        struct statvfs v;

        return statvfs(root, &v) == 0 && v.f_flag & ST_NOEXEC;
}

int cache_dir_open(const char *root, bool program, const char *who, struct pushed *ret)
{
        int r = prepare_root(root, who, ret);

        if (!r && program && is_noexec(root))
                r = fail_cache_dir(ret, root, EACCES, "programs in %s cannot be run: it is noexec",
                                   root);
        return r;
}

bool cache_dir_is_usable(const char *root, bool program)
{
        struct stat st;

        return lstat(root, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
               !(st.st_mode & 0077) && !(program && is_noexec(root));
}
