/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/carried_image.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/core/inflate.h"
#include "base/fd.h"
#include "base/memory.h"

int carried_image_write(const struct carried_image *i, int fd)
{
        unsigned char *bytes = xcalloc(1, i->size);
        int r = -EIO;

        if (inflate_bytes(bytes, i->size, i->deflated, i->n_deflated))
                r = fd_write_all(fd, bytes, i->size);
        free(bytes);
        return r;
}
