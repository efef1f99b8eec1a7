/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version stands in the name of the file, libnccl.so.2.21.5, or else in the text that the
 * library prints at the start, which is searched for in the first megabytes.
 */
#include "agent/nccl/nccl_version.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum {
        SEARCHED = 8 << 20, /* bytes of a library */
        PIECE = 64 << 10,
};

static const char text_before[] = "NCCL version ";

/* Returns the number as NCCL_VERSION_CODE has it since 2.9; 0 = no version. Limits keep the parts
 * from running into each other. */
uint32_t nccl_version_parse(const char *text)
{
        unsigned part[3];
        int n = 0;

        if (sscanf(text, "%2u.%3u.%3u%n", &part[0], &part[1], &part[2], &n) != 3 || !n ||
            part[1] > 99 || part[2] > 99)
                return 0;
        return part[0] * 10000 + part[1] * 100 + part[2];
}

bool nccl_version_find_path(const char *maps, char *to, size_t size)
{
        static const char name[] = "/libnccl.so";
        const char *at, *line, *path;
        size_t len;

        for (at = maps; (at = strstr(at, name)); at += sizeof(name) - 1) {
                if (at[sizeof(name) - 1] != '\n' && at[sizeof(name) - 1] != '.')
                        continue; /* libnccl.sock */
                for (line = at; line > maps && line[-1] != '\n';)
                        line--;
                path = memchr(line, '/', (size_t)(at - line) + 1);
                len = strcspn(path, "\n");
                if (len >= size)
                        return false;
                memcpy(to, path, len);
                to[len] = '\0';
                return true;
        }
        return false;
}

/* Pieces overlap by as much as a version may be long. */
static uint32_t search_file(int fd)
{
        enum { OVERLAP = 64 };
        char *piece = xcalloc(PIECE + 1, 1), *found;
        uint32_t version = 0;
        ssize_t got;

        for (off_t at = 0; at < SEARCHED && !version; at += PIECE - OVERLAP) {
                got = pread(fd, piece, PIECE, at);
                /* The last bytes were part of the piece before. */
                if (got <= OVERLAP)
                        break;
                piece[got] = '\0';
                found = piece;
                while (!version && (found = memmem(found, (size_t)(piece + got - found),
                                                   text_before, sizeof(text_before) - 1))) {
                        found += sizeof(text_before) - 1;
                        version = nccl_version_parse(found);
                }
        }
        free(piece);
        return version;
}

uint32_t nccl_version_of_file(const char *path)
{
        const char *name = strstr(path, "/libnccl.so.");
        uint32_t version = name ? nccl_version_parse(name + strlen("/libnccl.so.")) : 0;
        int fd;

        if (version)
                return version;
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
                version = search_file(fd);
        fd_close(fd);
        return version;
}
