/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/job_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum {
        PATH_LIMIT = 64, /* of the folder: a socket's whole path has 107 bytes */
};

int job_dir_create(struct job_dir *d, struct error *err)
{
        const char *tried[] = { getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp" };
        char *path;

        for (size_t i = 0; i < ARRAY_SIZE(tried); i++) {
                if (!tried[i] || tried[i][0] != '/' || strlen(tried[i]) > PATH_LIMIT)
                        continue;
                path = xasprintf("%s/hnlaunch-XXXXXX", tried[i]);
                if (mkdtemp(path)) {
                        d->path = path;
                        d->store = xasprintf("%s/store", path);
                        return 0;
                }
                err_set(err, errno, "cannot make a folder in %s: %s", tried[i], strerror(errno));
                free(path);
        }
        return -err->code;
}

void job_dir_sweep(const struct job_dir *d, const char *prefix)
{
        int fd = d->path ? open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (!strncmp(entry->d_name, prefix, strlen(prefix)) &&
                    unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno == EISDIR)
                        unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        if (dir)
                closedir(dir);
}

void job_dir_remove(struct job_dir *d)
{
        if (!d->path)
                return;
        job_dir_sweep(d, "");
        rmdir(d->path);
        free(d->path);
        free(d->store);
        *d = (struct job_dir){ 0 };
}
