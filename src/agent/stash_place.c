/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stash_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strv.h"

enum { TRIES = 100 };

void stash_place_freep(char **text)
{
        free(*text);
}

char *stash_place(int i)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        unsigned uid = geteuid();

        switch (i) {
        case 0:
                if (cache && *cache == '/')
                        return xasprintf("%s/hnlaunch", cache);
                return home && *home == '/' ? xasprintf("%s/.cache/hnlaunch", home) : NULL;
        case 1:
                return xasprintf("/var/tmp/hnlaunch-%u", uid);
        case 2:
                return runtime && *runtime == '/' ? xasprintf("%s/hnlaunch", runtime)
                                                  : xasprintf("/run/user/%u/hnlaunch", uid);
        default:
                return xasprintf("/dev/shm/hnlaunch-%u", uid);
        }
}

static int PRINTF(4, 5)
        failed(struct pushed *ret, const char *folder, int error, const char *fmt, ...)
{
        va_list ap;

        *ret = (struct pushed){ .error = (uint32_t)error };
        snprintf(ret->folder, sizeof(ret->folder), "%s", folder);
        va_start(ap, fmt);
        vsnprintf(ret->what, sizeof(ret->what), fmt, ap);
        va_end(ap);
        return -error;
}

/* As mkdir -p. */
static int make_folders(char *path)
{
        for (char *p = path + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                mkdir(path, 0700);
                *p = '/';
        }
        return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Everybody can make names in /var/tmp and /dev/shm. */
static int check_owner(const char *folder)
{
        struct stat st;

        if (lstat(folder, &st) < 0)
                return -errno;
        return S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? 0 : -EPERM;
}

/* @who is unique among all that may do so here; process numbers are not. */
static int try_link(const char *root, const char *who)
{
        char *one = xasprintf("%s/file/.%s-try", root, who);
        char *two = xasprintf("%s/file/.%s-too", root, who);
        int fd = open(one, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        int r = fd < 0 || link(one, two) < 0 ? -errno : 0;

        fd_close(fd);
        unlink(one);
        unlink(two);
        free(one);
        free(two);
        return r;
}

/* Whoever is done here removes empty folders. */
static int make_root(char *files, const char *root, const char *who)
{
        int r = -ENOENT;

        for (int i = 0; i < TRIES && r == -ENOENT; i++) {
                r = make_folders(files);
                if (!r)
                        r = try_link(root, who);
        }
        return r;
}

int stash_place_open(const char *folder, bool program, const char *who, char **ret_root,
                     struct pushed *ret)
{
        char *root = xasprintf("%s/push", folder), *files = xasprintf("%s/file", root);
        struct statvfs v;
        int r = make_root(files, root, who);

        if (!r)
                r = check_owner(folder);
        if (r)
                failed(ret, folder, -r, "cannot make files and hard links in %s: %s", files,
                       strerror(-r));
        else if (program && statvfs(root, &v) == 0 && v.f_flag & ST_NOEXEC)
                r = failed(ret, folder, EACCES, "programs in %s cannot be run: it is noexec", root);
        free(files);
        if (r)
                free(root);
        else
                *ret_root = root;
        return r;
}
