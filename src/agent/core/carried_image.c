/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/carried_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/core/inflate.h"
#include "base/fd.h"
#include "base/memory.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U /* Linux 6.3; before that, every memory file may be executed */
#endif

int carried_image_write(const struct carried_image *i, int fd)
{
        unsigned char *bytes = xcalloc(1, i->size);
        int r = -EIO;

        if (inflate_bytes(bytes, i->size, i->deflated, i->n_deflated))
                r = fd_write_all(fd, bytes, i->size);
        free(bytes);
        return r;
}

/* Returns a file in memory with the program, or a negative errno. */
static int make_program(const char *name, const struct carried_image *image)
{
        int fd = memfd_create(name, MFD_CLOEXEC | MFD_EXEC), r;

        /* A kernel with vm.memfd_noexec wants the flag; kernels before 6.3 refuse the unknown
         * flag. */
        if (fd < 0 && errno == EINVAL)
                fd = memfd_create(name, MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = carried_image_write(image, fd);
        if (r < 0)
                fd_close(fd);
        return r < 0 ? r : fd;
}

int carried_image_spawn(pid_t *ret_pid, const char *name, const struct carried_image *image,
                        struct spawn s, struct error *err)
{
        CLEANUP(fd_closep) int program = make_program(name, image);
        char path[32];
        char *argv[] = { path, s.argv ? *s.argv : NULL, NULL };

        if (program < 0)
                return err_set(err, -program, "cannot make a file in memory: %s",
                               strerror(-program));
        /* The file has close-on-exec, which is fine for a program, though not for a script. */
        snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
        s.argv = argv;
        return spawn_process(ret_pid, &s, NULL, err);
}
