/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is copied beside the old file and renamed over it: a reader sees the old or the new
 * file, never half of one. Events of progress are dropped first, since the newest of them tell the
 * state of a rank.
 */
#include "head/run/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/run/run_records.h"

enum { KEPT_MAX = EVENT_FILE_MAX / 4 * 3 };

/* The quotes of a text within a line are escaped, so a text is never taken for the name. */
static bool is_progress(const char *line)
{
        return strstr(line, "\"ev\":\"rank.progress\"") != NULL;
}

/* Copies the lines of @from that begin at @first or later, but lines of rank.progress only from
 * @progress on; @to NULL = only count. Returns the bytes, or -errno. */
static int64_t copy_events(FILE *from, FILE *to, int64_t first, int64_t progress)
{
        char *line = NULL;
        size_t room = 0;
        int64_t at = 0, bytes = 0;
        ssize_t n;

        errno = 0;
        rewind(from);
        for (; (n = getline(&line, &room, from)) > 0; at += n) {
                if (at < (is_progress(line) ? MAX(progress, first) : first))
                        continue;
                bytes += n;
                if (to && fwrite(line, 1, (size_t)n, to) != (size_t)n)
                        break;
        }
        free(line);
        return ferror(from) || (to && ferror(to)) ? -(errno ? errno : EIO) : bytes;
}

static int64_t copy_newest(FILE *from, FILE *to)
{
        int64_t size = fseeko(from, 0, SEEK_END) == 0 ? ftello(from) : -errno;
        int64_t progress = size - EVENT_FILE_MAX / 4, first = 0, bytes;

        if (size < 0)
                return size;
        /* Old progress alone is often enough. If not, the oldest lines go, so that the rest fits
         * even if all of it is kept. */
        bytes = copy_events(from, NULL, first, progress);
        if (bytes > KEPT_MAX)
                first = size - KEPT_MAX;
        return bytes < 0 ? bytes : copy_events(from, to, first, progress);
}

int event_file_shorten(int dir, const char *name, uint64_t *ret_bytes)
{
        CLEANUP(free_textp) char *new = xasprintf("%s.new", name);
        FILE *from = run_records_file(dir, name), *to = NULL;
        int64_t bytes = from ? 0 : -EIO;
        int fd = -1, copy;

        if (from)
                fd = openat(dir, new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (from && fd < 0)
                bytes = -errno;
        copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
        to = copy >= 0 ? fdopen(copy, "w") : NULL;
        if (fd >= 0 && !to) {
                bytes = -errno;
                fd_close(copy);
        }
        if (to)
                bytes = copy_newest(from, to);
        if (to && fclose(to) != 0 && bytes >= 0)
                bytes = -errno;
        if (from)
                fclose(from);
        if (bytes >= 0 && renameat(dir, new, dir, name) < 0)
                bytes = -errno;
        if (bytes < 0) {
                unlinkat(dir, new, 0);
                fd_close(fd);
                return (int)bytes;
        }
        *ret_bytes = (uint64_t)bytes;
        return fd;
}
