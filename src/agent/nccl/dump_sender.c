/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/dump_sender.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/env/nccl_env.h"
#include "wire/msg.h"

/* Reads the rank in the name of a file; false = no dump. */
static bool parse_dump_name(const char *name, uint32_t *ret_rank)
{
        size_t n = sizeof(NCCL_DUMP_NAME) - 1;
        unsigned long rank;
        char *end;

        if (strncmp(name, NCCL_DUMP_NAME, n) != 0 || name[n] < '0' || name[n] > '9')
                return false;
        errno = 0;
        rank = strtoul(name + n, &end, 10);
        *ret_rank = (uint32_t)rank;
        return !*end && !errno && rank <= INT32_MAX && (name[n] != '0' || !name[n + 1]);
}

void dump_sender_find(struct dump_sender *s, const char *dir)
{
        DIR *d = dir ? opendir(dir) : NULL;
        struct dirent *entry;
        size_t cap = 0;
        uint32_t rank;

        while (d && (entry = readdir(d))) {
                if (!parse_dump_name(entry->d_name, &rank))
                        continue;
                if (s->n == MSG_MAX_DUMPS) {
                        log_line(LOG_WARN,
                                 "there are more than %d dumps of the flight recorder: "
                                 "the others are dropped",
                                 MSG_MAX_DUMPS);
                        break;
                }
                s->ranks = xgrow(s->ranks, s->n, &cap, sizeof(*s->ranks));
                s->ranks[s->n++] = rank;
        }
        if (d)
                closedir(d);
        else if (dir)
                log_line(LOG_WARN, "cannot look for dumps of the flight recorder in %s: %s", dir,
                         strerror(errno));
        if (s->n)
                s->path = xstrdup(dir);
}

static void close_dump(struct dump_sender *s)
{
        s->fd = fd_close(s->fd);
        s->next++;
}

/* Opens the next dump; one that is not a regular file is passed over. */
static bool open_dump(struct dump_sender *s)
{
        char *path = xasprintf("%s/" NCCL_DUMP_NAME "%u", s->path, s->ranks[s->next]);
        struct stat st;
        bool good;

        s->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        good = s->fd >= 0 && fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
        s->size = good ? (uint64_t)st.st_size : 0;
        s->at = 0;
        if (!good)
                log_line(LOG_WARN, "ignoring %s: not a regular file, or empty", path);
        free(path);
        return good;
}

/* A file that is shorter than it was said to be is left incomplete; the head drops it. */
static void send_part(struct dump_sender *s, struct uplink *up)
{
        unsigned char part[MSG_DUMP_PART];
        struct dump m = { .rank = s->ranks[s->next], .size = s->size, .at = s->at };
        ssize_t got = 0;

        if (s->keep && s->size <= MSG_MAX_DUMP) {
                got = pread(s->fd, part, MIN(sizeof(part), s->size - s->at), (off_t)s->at);
                if (got <= 0) {
                        close_dump(s);
                        return;
                }
        }
        m.data = part;
        m.len = (size_t)got;
        dump_encode(&up->out, &m);
        s->at += (uint64_t)got;
        if (!got || s->at == s->size)
                close_dump(s);
}

bool dump_sender_run(struct dump_sender *s, struct uplink *up)
{
        while (s->next < s->n && !uplink_full(up)) {
                if (s->fd >= 0 || open_dump(s))
                        send_part(s, up);
                else
                        close_dump(s);
        }
        return s->next == s->n;
}

void dump_sender_close(struct dump_sender *s)
{
        fd_close(s->fd);
        free(s->path);
        free(s->ranks);
        *s = (struct dump_sender){ .fd = -1 };
}
