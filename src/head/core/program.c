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
                char *full = xasprintf("%.*s/%s", n ? (int)n : 1, n ? path : ".", name);
                struct stat st;

                if (access(full, X_OK) == 0 && stat(full, &st) == 0 && S_ISREG(st.st_mode))
                        return full;
                free(full);
                path += n + (path[n] == ':');
        }
        return NULL;
}

bool program_in_path(const char *name)
{
        CLEANUP(free_textp) char *full = program_find_in_path(name);

        return full;
}

bool program_exists(const char *name, const char *folder)
{
        CLEANUP(free_textp) char *full = xasprintf("%s/%s", folder ? folder : ".", name);
        struct stat st;

        return (stat(full, &st) == 0 && !S_ISDIR(st.st_mode)) || program_in_path(name);
}
