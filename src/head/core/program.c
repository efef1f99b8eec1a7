/* SPDX-License-Identifier: Apache-2.0 */
#include "head/core/program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

char *program_find_in_path(const char *name)
{
        const char *path = getenv("PATH");

        while (path && *path) {
                size_t n = strcspn(path, ":");
                char *full = xasprintf("%.*s/%s", (int)n, path, name);

                if (access(full, X_OK) == 0)
                        return full;
                free(full);
                path += n + (path[n] == ':');
        }
        return NULL;
}

bool program_in_path(const char *name)
{
        char *full = program_find_in_path(name);

        free(full);
        return full != NULL;
}

bool program_exists(const char *name, const char *folder)
{
        char *full = xasprintf("%s/%s", folder ? folder : ".", name);
        struct stat st;
        bool here = stat(full, &st) == 0 && !S_ISDIR(st.st_mode);

        free(full);
        return here || program_in_path(name);
}
