/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/dump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"

/* A leading 0 is refused, so each rank has one name only. errno tells a number beyond a long. */
bool dump_file_parse_name(const char *name, const char *start, const char *end, uint32_t *ret_rank)
{
        size_t n = strlen(start);
        const char *digits = name + n;
        unsigned long rank;
        char *after;

        if (strncmp(name, start, n) != 0 || *digits < '0' || *digits > '9')
                return false;
        errno = 0;
        rank = strtoul(digits, &after, 10);
        *ret_rank = (uint32_t)rank;
        return !strcmp(after, end) && !errno && rank <= INT32_MAX &&
               (*digits != '0' || after == digits + 1);
}

/* The file belongs to a rank, which could have put a link or a FIFO there: neither is followed nor
 * waited for. An empty file is a dump that has only begun. */
bool dump_file_open(struct dump_file *f, const char *path)
{
        struct stat st;

        f->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (f->fd < 0 || fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size) {
                f->fd = fd_close(f->fd);
                return false;
        }
        f->size = (uint64_t)st.st_size;
        f->at = 0;
        return true;
}

/* False: the file became shorter. The parts follow each other without a gap. */
bool dump_file_read(struct dump_file *f, unsigned char part[MSG_DUMP_PART], struct dump *m)
{
        size_t len = MIN((uint64_t)MSG_DUMP_PART, f->size - f->at);

        if (pread(f->fd, part, len, (off_t)f->at) != (ssize_t)len)
                return false;
        m->size = f->size;
        m->at = f->at;
        m->data = part;
        m->len = len;
        f->at += len;
        return true;
}

void dump_file_close(struct dump_file *f)
{
        f->fd = fd_close(f->fd);
}
