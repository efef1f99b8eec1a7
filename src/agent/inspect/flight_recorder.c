/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch writes a dump with a single stream, and an incomplete dump has the final name. A dump is
 * complete when newer than the order, of the same size in two looks, and with the last byte of a
 * pickle at the end.
 */
#include "agent/inspect/flight_recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/nccl/dump_file.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/msg.h"

enum { DUMP_LOOK_MS = 100 };

#define PICKLE_STOP '.'

/* A flight recorder with a FIFO. */
struct flight {
        uint32_t rank;
        bool done;
        struct stat before; /* of the dump; .st_ino 0 = there was none */
        off_t size;         /* at the last look */
};

struct flights {
        const struct inspect_order *order;
        const struct inspector_paths *paths;
        int to;
        struct flight v[MSG_MAX_DUMPS];
        uint32_t n, left;
};

/* The agent may be gone: the write fails then, and the process ends with the agent. */
static void send_flight(struct flights *r, struct dump *m)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        m->number = r->order->number;
        m->left = r->left;
        dump_encode(&b, m);
        fd_write_all(r->to, buf_data(&b), buf_len(&b));
}

/* The last message of a recorder. */
static void end_recorder(struct flights *r, struct flight *f, struct dump *m)
{
        f->done = true;
        r->left--;
        send_flight(r, m);
}

static void tell_flight_problem(struct flights *r, struct flight *f, const char *text)
{
        struct dump m = { .rank = f->rank };

        snprintf(m.problem, sizeof(m.problem), "%s", text);
        end_recorder(r, f, &m);
}

/* --- the order -------------------------------------------------------------------------------- */

/* Lists the ranks with a FIFO, which PyTorch makes for dumps on request. */
static void find_recorders(struct flights *r)
{
        const char *slash = r->paths->pipes ? strrchr(r->paths->pipes, '/') : NULL;
        CLEANUP(free_textp)
        char *folder = slash ? xstrndup(r->paths->pipes, (size_t)(slash - r->paths->pipes)) : NULL;
        DIR *d = folder ? opendir(folder) : NULL;
        struct dirent *entry;

        while (d && r->n < MSG_MAX_DUMPS && (entry = readdir(d)))
                if (dump_file_parse_name(entry->d_name, slash + 1, ".pipe", &r->v[r->n].rank))
                        r->n++;
        if (d)
                closedir(d);
        r->left = r->n;
}

static char *name_live_dump(const struct flights *r, const struct flight *f)
{
        return xasprintf("%s%u", r->paths->dumps, f->rank);
}

/* Writes a byte into the FIFO of a recorder. False: the reason was told. */
static bool order_dump(struct flights *r, struct flight *f)
{
        CLEANUP(free_textp) char *pipe = xasprintf("%s%u.pipe", r->paths->pipes, f->rank);
        CLEANUP(free_textp) char *dump = name_live_dump(r, f);
        CLEANUP(fd_closep) int fd = open(pipe, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 && errno == ENXIO) {
                tell_flight_problem(r, f, "no thread of the rank reads its FIFO");
                return false;
        }
        /* Before the order: the new dump must not be taken for an older one. */
        if (lstat(dump, &f->before) < 0)
                f->before = (struct stat){ 0 };
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && write(fd, "1", 1) == 1)
                return true;
        tell_flight_problem(r, f, "its FIFO takes no order");
        return false;
}

/* --- the dump --------------------------------------------------------------------------------- */

/* Opens the dump if complete. */
static bool open_live_dump(struct flight *f, const char *path, struct dump_file *file)
{
        struct stat st;
        off_t before = f->size;
        char last;

        if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
                return false;
        if (st.st_ino == f->before.st_ino && st.st_size == f->before.st_size &&
            st.st_mtim.tv_sec == f->before.st_mtim.tv_sec &&
            st.st_mtim.tv_nsec == f->before.st_mtim.tv_nsec)
                return false; /* an older dump */
        f->size = st.st_size;
        if (st.st_size != before || !dump_file_open(file, path))
                return false;
        if (file->size == (uint64_t)f->size && pread(file->fd, &last, 1, f->size - 1) == 1 &&
            last == PICKLE_STOP)
                return true;
        dump_file_close(file);
        return false;
}

/* Sends an open dump and removes the file, or tells why sending failed. */
static void send_live_dump(struct flights *r, struct flight *f, const char *path,
                           struct dump_file *file)
{
        unsigned char part[MSG_DUMP_PART];
        struct dump m = { .rank = f->rank };

        if (file->size > MSG_MAX_DUMP) {
                tell_flight_problem(r, f, "its dump is larger than 32 MiB");
                return;
        }
        while (dump_file_read(file, part, &m)) {
                if (file->at == file->size) {
                        end_recorder(r, f, &m);
                        unlink(path);
                        return;
                }
                send_flight(r, &m);
        }
        tell_flight_problem(r, f, "its dump cannot be read");
}

/* Looks once at the dump of an ordered recorder; @late: for the last time. */
static void look_at_dump(struct flights *r, struct flight *f, bool late)
{
        CLEANUP(free_textp) char *path = name_live_dump(r, f);
        struct dump_file file = DUMP_FILE_INIT;

        if (open_live_dump(f, path, &file)) {
                send_live_dump(r, f, path, &file);
                dump_file_close(&file);
        } else if (late) {
                tell_flight_problem(r, f, "no dump came in time");
        }
}

void flight_recorder_run(const struct inspect_order *o, const struct inspector_paths *paths, int to)
{
        struct flights r = { .order = o, .paths = paths, .to = to };
        int64_t until = clock_ms() + o->limit_ms;
        bool late = false;

        signal(SIGTERM, SIG_DFL); /* there is no tool to kill */
        find_recorders(&r);
        /* The head counts on one answer at least. */
        if (!r.n)
                send_flight(&r, &(struct dump){ .rank = UINT32_MAX });
        for (uint32_t i = 0; i < r.n; i++)
                order_dump(&r, &r.v[i]);
        while (r.left) {
                poll(NULL, 0, DUMP_LOOK_MS);
                late = clock_ms() >= until;
                for (uint32_t i = 0; i < r.n; i++)
                        if (!r.v[i].done)
                                look_at_dump(&r, &r.v[i], late);
        }
}
