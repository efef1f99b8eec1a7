/* SPDX-License-Identifier: Apache-2.0 */
#include "head/ssh/files/ssh_file_owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"

/* Users with a group of their own and umask 002 are common; their files are safe. */
static bool is_group_of_one(gid_t gid, uid_t uid)
{
        const struct group *g = getgrgid(gid);
        const struct passwd *pw = getpwuid(uid);
        bool found = false, others = !g || !pw;

        for (char **name = others ? NULL : g->gr_mem; name && *name; name++) {
                found = found || strcmp(*name, pw->pw_name) == 0;
                others = others || strcmp(*name, pw->pw_name) != 0;
        }
        setpwent();
        while (!others && (pw = getpwent())) {
                found = found || (pw->pw_gid == gid && pw->pw_uid == uid);
                others = pw->pw_gid == gid && pw->pw_uid != uid;
        }
        endpwent();
        return found && !others;
}

int ssh_file_owner_check(int fd, const char *path, struct error *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return err_set(err, errno, "%s: %s", path, strerror(errno));
        if (st.st_uid != 0 && st.st_uid != getuid())
                return err_set(err, EPERM, "%s belongs to user %u\nas root: chown %u %s", path,
                               (unsigned)st.st_uid, (unsigned)getuid(), path);
        if (st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && !is_group_of_one(st.st_gid, getuid())))
                return err_set(err, EPERM, "%s can be written by others (mode %04o)\nchmod go-w %s",
                               path, (unsigned)st.st_mode & 07777, path);
        return 0;
}
