/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "head/alloc/alloc.h"

enum { HN_ALLOC_SHARED = 158 };

/* The claim is a bound socket without a file, which ends with the process, however that ends. */
void alloc_claim(const struct hosts *h, struct diags *d)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        socklen_t len;

        snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "hnlaunch/%u/%s", (unsigned)getuid(),
                 h->source);
        len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1));
        if (fd < 0 || bind(fd, (const struct sockaddr *)&a, len) == 0)
                return; /* held from now on */
        fd_close(fd);
        diag_help(diag_warn(d, HN_ALLOC_SHARED, "another hnlaunch runs on the nodes of %s",
                            h->source),
                  "give each a part of the nodes: --nodes, --include, --exclude or -w");
}
