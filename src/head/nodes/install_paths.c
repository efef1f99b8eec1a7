/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/install_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static char *find_readable(const char *folder, const char *name)
{
        char *path = xasprintf("%s/%s", folder, name);

        if (access(path, R_OK) == 0)
                return path;
        free(path);
        return NULL;
}

char *install_path_find(const char *name, const char *other, struct error *err)
{
        char self[PATH_MAX], *beside, *path = NULL;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n < 0) {
                err_set(err, errno, "cannot locate the hnlaunch executable: %s", strerror(errno));
                return NULL;
        }
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        beside = xasprintf("%s/../libexec/hnlaunch", self);
        const char *const folders[] = { self, beside, HNLAUNCH_INSTALL_DIR };
        for (size_t i = 0; i < ARRAY_SIZE(folders) && !path; i++) {
                path = find_readable(folders[i], name);
                if (!path && other)
                        path = find_readable(folders[i], other);
        }
        free(beside);
        if (!path)
                err_set(err, ENOENT,
                        "%s is neither beside %s/hnlaunch nor in " HNLAUNCH_INSTALL_DIR
                        ": install hnlaunch again",
                        name, self);
        return path;
}
