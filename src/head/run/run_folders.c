/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets lie in XDG_RUNTIME_DIR, which ends with the login, or in /tmp, where the folder must be
 * proved to be the user's; records lie in XDG_STATE_HOME, often on a file system that all login
 * nodes share.
 */
#include "head/run/run_folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"

enum { RUN_NAME_ROOM = 32 }; /* "/RUN.sock", "/holds/KEY.sock" */

/* Finds @path, or makes the folder; follows no link, since anybody may write in /tmp. */
static int own_folder(const char *path, bool make, struct error *err)
{
        struct stat st;

        if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
                return err_set(err, errno, "cannot make %s: %s", path, strerror(errno));
        if (lstat(path, &st) < 0)
                return err_set(err, errno, "cannot look at %s: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return err_set(err, ENOTDIR, "%s is not a folder", path);
        if (st.st_uid != geteuid())
                return err_set(err, EPERM, "%s belongs to another user (uid %u)", path,
                               (unsigned)st.st_uid);
        if ((st.st_mode & 077) && chmod(path, 0700) < 0)
                return err_set(err, errno, "others may enter %s: %s", path, strerror(errno));
        return 0;
}

static bool is_usable_runtime(const char *path)
{
        return path && *path == '/' &&
               strlen(path) + sizeof("/hnlaunch") + RUN_NAME_ROOM <=
                       sizeof(((struct sockaddr_un *)NULL)->sun_path);
}

char *run_folders_sockets_path(void)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");

        return is_usable_runtime(runtime) ? xasprintf("%s/hnlaunch", runtime)
                                          : xasprintf("/tmp/hnlaunch-%u", (unsigned)geteuid());
}

int run_folders_own(const char *path, bool make, struct error *err)
{
        CLEANUP(free_textp) char *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
        int r = own_folder(parent, make, err);

        return r < 0 ? r : own_folder(path, make, err);
}

char *run_folders_sockets(bool make, struct error *err)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        char *path = NULL;
        struct stat st;

        /* XDG_RUNTIME_DIR may be too long for the path of a socket, missing from the file system in
         * a login without a session, or another user's (su). */
        if (is_usable_runtime(runtime) && stat(runtime, &st) == 0 && st.st_uid == geteuid())
                path = xasprintf("%s/hnlaunch", runtime);
        else
                path = xasprintf("/tmp/hnlaunch-%u", (unsigned)geteuid());
        if (own_folder(path, make, err) == 0)
                return path;
        free(path);
        return NULL;
}

char *run_folders_socket(const char *folder, const char *run)
{
        return xasprintf("%s/%s.sock", folder, run);
}

char *run_folders_records(void)
{
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        struct stat st;

        /* A relative path is invalid by the XDG base directory specification, and is ignored. */
        if (state && *state == '/')
                return xasprintf("%s/hnlaunch/runs", state);
        /* HOME may name a folder that is missing on this machine (containers, service users). */
        return home && *home == '/' && stat(home, &st) == 0 && S_ISDIR(st.st_mode)
                       ? xasprintf("%s/.local/state/hnlaunch/runs", home)
                       : NULL;
}

char *run_folders_dial_in(void)
{
        CLEANUP(free_textp) char *records = run_folders_records();
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        char *end = records ? strrchr(records, '/') : NULL;

        /* A home that may not be entered gives no place for a secret. */
        if (!end || ((!state || *state != '/') && access(home, X_OK) < 0))
                return NULL;
        return xasprintf("%.*s/dial-in", (int)(end - records), records);
}

char *run_folders_bad_hosts(void)
{
        CLEANUP(free_textp) char *records = run_folders_records();
        char *end = records ? strrchr(records, '/') : NULL;

        return end ? xasprintf("%.*s/hosts.bad", (int)(end - records), records) : NULL;
}

int run_folders_make(const char *path, struct error *err)
{
        CLEANUP(free_textp) char *part = xstrdup(path);

        for (char *p = part; *p;) {
                p += strcspn(p + 1, "/") + 1;
                char was = *p;

                *p = '\0';
                if (mkdir(part, 0700) < 0 && errno != EEXIST)
                        return err_set(err, errno, "cannot make %s: %s", part, strerror(errno));
                *p = was;
        }
        return 0;
}
