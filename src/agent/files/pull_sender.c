/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_step() sends one message: a part of the open file, the next entry of the innermost open
 * folder, the next path of the order, or the end. @levels has the open folders from the path of the
 * order down to the entry.
 */
#include "agent/files/pull_sender.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/msg.h"

enum {
        MODE_BITS = 0777,
        AGAIN_MS = 1,    /* no other event says that the uplink has room after a turn */
        PULL_DEPTH = 64, /* folders within folders */
};

struct pull_sender {
        struct pull_order order;
        const char *cwd;   /* of the ranks, borrowed; NULL = no rank was started */
        bool busy, inside; /* inside: of path number @item */
        uint32_t item, entries;
        struct {
                DIR *dir;
                size_t len; /* of @path at this folder */
        } levels[PULL_DEPTH];
        size_t n_levels;
        struct buf path; /* path of the entry, below the item's, without a NUL */
        int fd;          /* the file being sent, -1 = none */
        uint64_t left;   /* bytes of the file */
        unsigned char *part;
        uv_timer_t again; /* turns the loop while there is more to send */
};

struct pull_sender *pull_sender_create(uv_loop_t *loop)
{
        struct pull_sender *s = xcalloc(1, sizeof(*s));

        s->fd = -1;
        uv_timer_init(loop, &s->again);
        s->again.data = s;
        return s;
}

static void leave_level(struct pull_sender *s)
{
        closedir(s->levels[--s->n_levels].dir);
}

void pull_sender_stop(struct pull_sender *s)
{
        while (s->n_levels)
                leave_level(s);
        s->fd = fd_close(s->fd);
        buf_finish(&s->path);
        pull_order_finish(&s->order);
        free(s->part);
        s->part = NULL;
        s->busy = false;
        uv_timer_stop(&s->again);
}

void pull_sender_begin(struct pull_sender *s, struct pull_order *order, const char *cwd)
{
        pull_sender_stop(s); /* an order before is forgotten */
        s->cwd = cwd;
        s->order = *order;
        *order = (struct pull_order){ .paths = STRV_INIT };
        s->part = xcalloc(PULL_PART_MAX, 1);
        s->item = s->entries = 0;
        s->inside = false;
        s->busy = true;
}

static void free_pull_sender(uv_handle_t *h)
{
        free(h->data);
}

void pull_sender_destroy(struct pull_sender *s)
{
        pull_sender_stop(s);
        uv_close((uv_handle_t *)&s->again, free_pull_sender);
}

/* --- messages --------------------------------------------------------------------------------- */

/* Adds the number of the item, and the path to messages that begin an entry. */
static void send_pulled(struct pull_sender *s, struct uplink *up, struct pulled m)
{
        CLEANUP(free_textp)
        char *path = xstrndup((const char *)buf_data(&s->path), buf_len(&s->path));
        bool named = m.kind != PULL_BYTES && m.kind != PULL_FILE_END && m.kind != PULL_END;

        m.item = s->item;
        m.path = named ? path : (char *)"";
        pulled_encode(&up->out, &m);
}

/* Reports an entry that is not sent; @error 0: another kind of file. */
static void send_left(struct pull_sender *s, struct uplink *up, int error)
{
        send_pulled(s, up, (struct pulled){ .kind = PULL_LEFT, .error = (uint32_t)error });
}

/* Reports the end of a file: all bytes were sent, or with @error not all. */
static void end_sent_file(struct pull_sender *s, struct uplink *up, int error)
{
        s->fd = fd_close(s->fd);
        send_pulled(s, up, (struct pulled){ .kind = PULL_FILE_END, .error = (uint32_t)error });
}

/* Sends a part of the open file, up to the size at the time of opening: a growing log must not keep
 * the head for ever. */
static void send_bytes(struct pull_sender *s, struct uplink *up)
{
        ssize_t n = read(s->fd, s->part, MIN((uint64_t)PULL_PART_MAX, s->left));

        if (n <= 0) {
                /* ESTALE: the file has become shorter. */
                end_sent_file(s, up, n < 0 ? errno : ESTALE);
                return;
        }
        send_pulled(s, up,
                    (struct pulled){ .kind = PULL_BYTES, .data = s->part, .len = (size_t)n });
        s->left -= (uint64_t)n;
        if (!s->left)
                end_sent_file(s, up, 0);
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Whether the head writes into the folder, on a file system shared with this node. */
static bool is_skipped(const struct pull_sender *s, const struct stat *st)
{
        struct stat skip;

        for (size_t i = 0; i < s->order.skip.n; i++)
                if (stat(s->order.skip.v[i], &skip) == 0 && skip.st_dev == st->st_dev &&
                    skip.st_ino == st->st_ino)
                        return true;
        return false;
}

/* Begins to send a file or folder. Takes over @fd. */
static void begin_entry(struct pull_sender *s, struct uplink *up, int fd)
{
        struct pulled m = { 0 };
        struct stat st;
        DIR *dir;

        if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
                fd_close(fd);
                send_left(s, up, 0);
                return;
        }
        /* Leaves a folder out: without a message within the item, with a message for the item
         * itself. */
        if (S_ISDIR(st.st_mode) && is_skipped(s, &st)) {
                fd_close(fd);
                if (!s->n_levels)
                        send_left(s, up, EEXIST);
                return;
        }
        m.mode = st.st_mode & MODE_BITS;
        m.kind = S_ISREG(st.st_mode) ? PULL_FILE : PULL_FOLDER;
        if (m.kind == PULL_FILE) {
                send_pulled(s, up, m);
                s->fd = fd;
                /* Only the bytes of now: a growing log would have no end. */
                s->left = (uint64_t)st.st_size;
                if (!s->left)
                        end_sent_file(s, up, 0);
                return;
        }
        dir = s->n_levels < PULL_DEPTH ? fdopendir(fd) : NULL;
        if (!dir) {
                int error = s->n_levels < PULL_DEPTH ? errno : ELOOP; /* before fd_close() */

                fd_close(fd);
                send_left(s, up, error);
                return;
        }
        send_pulled(s, up, m);
        s->levels[s->n_levels].dir = dir;
        s->levels[s->n_levels++].len = buf_len(&s->path);
}

static void send_link(struct pull_sender *s, struct uplink *up, int dir, const char *name)
{
        unsigned char to[PUSH_PATH_MAX];
        ssize_t n = readlinkat(dir, name, (char *)to, sizeof(to));

        if (n < 0)
                send_left(s, up, errno);
        else
                send_pulled(s, up,
                            (struct pulled){ .kind = PULL_LINK, .data = to, .len = (size_t)n });
}

/* Opens a file or folder without waiting for the writer of a pipe. */
static void open_entry(struct pull_sender *s, struct uplink *up, int dir, const char *name,
                       int flags)
{
        int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);

        if (fd >= 0)
                begin_entry(s, up, fd);
        else
                send_left(s, up, errno);
}

/* Sends an entry of a folder. Of devices, pipes and sockets only the name is sent. */
static void send_dir_entry(struct pull_sender *s, struct uplink *up, int dir, const char *name)
{
        struct stat st;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                send_left(s, up, errno);
        else if (S_ISLNK(st.st_mode))
                send_link(s, up, dir, name);
        else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
                open_entry(s, up, dir, name, O_NOFOLLOW);
        else
                send_left(s, up, 0);
}

/* Sends the next entry of the innermost folder, or leaves the folder. */
static void read_level(struct pull_sender *s, struct uplink *up)
{
        DIR *dir = s->levels[s->n_levels - 1].dir;
        size_t len = s->levels[s->n_levels - 1].len;
        struct dirent *entry;
        int error;

        buf_truncate(&s->path, len);
        errno = 0;
        entry = readdir(dir);
        if (!entry) {
                if (errno)
                        send_left(s, up, errno);
                leave_level(s);
                return;
        }
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                return;
        if (len)
                buf_appends(&s->path, "/");
        buf_appends(&s->path, entry->d_name);
        /* Limits of the head: a longer path, or more entries than this, end the folder. */
        error = buf_len(&s->path) > PUSH_PATH_MAX  ? ENAMETOOLONG
                : ++s->entries >= PULL_ENTRIES_MAX ? E2BIG
                                                   : 0;
        if (!error) {
                send_dir_entry(s, up, dirfd(dir), entry->d_name);
                return;
        }
        buf_truncate(&s->path, len);
        send_left(s, up, error);
        leave_level(s);
}

static void begin_item(struct pull_sender *s, struct uplink *up)
{
        const char *path = s->order.paths.v[s->item];
        CLEANUP(fd_closep) int cwd = -1;

        buf_clear(&s->path);
        if (s->cwd && *path != '/')
                cwd = open(*s->cwd ? s->cwd : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cwd < 0 && *path != '/')
                send_left(s, up, s->cwd ? errno : ENOENT);
        else
                /* A path of the order may be a link; links below are sent as links. */
                open_entry(s, up, cwd, path, 0);
}

/* A single message per step, so that the caller can stop when the uplink is full. */
static void send_step(struct pull_sender *s, struct uplink *up)
{
        if (s->fd >= 0) {
                send_bytes(s, up);
        } else if (s->n_levels) {
                read_level(s, up);
        } else if (s->inside) {
                s->inside = false;
                s->item++;
        } else if (s->item < s->order.paths.n) {
                s->inside = true;
                begin_item(s, up);
        } else {
                s->item = 0;
                send_pulled(s, up, (struct pulled){ .kind = PULL_END });
                pull_sender_stop(s);
        }
}

static void on_again(uv_timer_t *t UNUSED)
{
}

void pull_sender_turn(struct pull_sender *s, struct uplink *up)
{
        if (s->busy && up->lost) /* the head is gone */
                pull_sender_stop(s);
        while (s->busy && !uplink_full(up))
                send_step(s, up);
        if (s->busy && !uv_is_active((uv_handle_t *)&s->again))
                uv_timer_start(&s->again, on_again, AGAIN_MS, 0);
}
