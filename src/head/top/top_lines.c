/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes are collected until a whole line is there. A slow reader wants only the newest state: of
 * several whole lines all but the last are dropped unread, and the beginning of an unfinished line
 * stays.
 */
#include "head/top/top_lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A line of ten thousand hosts has megabytes. */
enum { READ_SIZE = 64 << 10, LINE_MAX_SIZE = 64 << 20 };

ssize_t top_lines_read(struct top_lines *l, int fd)
{
        void *to = buf_reserve(&l->bytes, READ_SIZE);
        ssize_t n = to ? read(fd, to, READ_SIZE) : -1;

        if (n < 0)
                return to ? -errno : -ENOMEM;
        buf_advance(&l->bytes, (size_t)n);
        return buf_len(&l->bytes) > LINE_MAX_SIZE ? -EMSGSIZE : n;
}

json_t *top_lines_take(struct top_lines *l)
{
        const char *data = (const char *)buf_data(&l->bytes), *start, *end;
        json_t *j;

        end = memrchr(data, '\n', buf_len(&l->bytes));
        if (!end)
                return NULL;
        /* The newline before, if the buffer has an earlier line. */
        start = memrchr(data, '\n', (size_t)(end - data));
        start = start ? start + 1 : data;
        j = json_loadb(start, (size_t)(end - start), 0, NULL);
        buf_consume(&l->bytes, (size_t)(end - data) + 1);
        if (json_is_object(j))
                return j;
        json_decref(j);
        return NULL;
}

void top_lines_finish(struct top_lines *l)
{
        buf_finish(&l->bytes);
}
