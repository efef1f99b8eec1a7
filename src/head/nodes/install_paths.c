/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of the program is read from /proc/self/exe, since argv[0] may be a name from PATH or
 * a link. Each place is tried for both names before the next place: beside the program, libexec
 * relative to the program, and the folder of the installation.
 */
#include "head/nodes/install_paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

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
        for (size_t i = 0; i < 2 * ARRAY_SIZE(folders) && !path; i++) {
                const char *file = i % 2 ? other : name;

                if (!file)
                        continue;
                path = xasprintf("%s/%s", folders[i / 2], file);
                if (access(path, R_OK) != 0) {
                        free(path);
                        path = NULL;
                }
        }
        free(beside);
        if (!path)
                err_set(err, ENOENT,
                        "%s is neither beside %s/hnlaunch nor in " HNLAUNCH_INSTALL_DIR
                        ": install hnlaunch again",
                        name, self);
        return path;
}

void *install_path_load(const char *name, const char *what, const char *symbol, struct error *err)
{
        CLEANUP(free_textp) char *path = install_path_find(name, NULL, err);
        void *module, *found;

        if (!path) {
                err->code = ELIBACC;
                return NULL;
        }
        /* RTLD_NOW: a missing symbol is reported here, and not in the middle of a launch. */
        module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        found = module ? dlsym(module, symbol) : NULL;
        if (!found)
                err_set(err, ELIBACC, "cannot load %s: %s", what, dlerror());
        return found;
}
