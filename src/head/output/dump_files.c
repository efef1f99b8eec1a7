/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node sends dumps in turn, so at most one file per node is open: the first part creates the
 * file, the last part closes the file. After the first error of this machine nothing more is
 * written, and parts are only followed. All dumps of a job together are bounded, as the number of
 * dumps of each node and the size of each dump.
 */
#include "head/output/dump_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "wire/env/nccl_env.h"

/* Each node may send MSG_MAX_DUMPS files of MSG_MAX_DUMP bytes, 4 GiB in an attempt, so a large job
 * could fill the disk of this machine. */
#define DUMPS_TOTAL_MAX (UINT64_C(16) << 30)

/* Answers of dump_files_arrive() in an attempt. The job looks every half second, so arriving dumps
 * delay the end of late nodes by a minute at most. */
enum { ARRIVE_MAX = 120 };

/* The dump that a node is sending. */
struct node_dumps {
        int fd; /* -1 = no file */
        /* Further parts are due. Stays set without a file, after an error of this machine. */
        bool open;
        uint32_t rank, count; /* @count: dumps begun in the attempt */
        uint64_t size, at;    /* bytes of the whole dump; of those, bytes that have come */
};

struct dump_files {
        char *path; /* NULL = dumps are not kept */
        struct node_dumps *nodes;
        size_t n_nodes;
        /* Ranks whose dumps are complete here; too large to be sent; not sent for lack of a
         * folder. */
        struct intlist kept, large, dropped;
        /* Bytes of all dumps, also of those removed later; and the limit. */
        uint64_t total, max;
        char error[256]; /* "" = none */
        bool arrived;
        int arrivals; /* told by dump_files_arrive() */
};

struct dump_files *dump_files_create(const char *folder, int attempt, size_t n_nodes)
{
        CLEANUP(free_textp) char *path = NULL;

        if (folder && attempt)
                path = xasprintf("%s/flight-recorder-%d", folder, attempt);
        else if (folder)
                path = xasprintf("%s/flight-recorder", folder);
        return dump_files_create_at(path, n_nodes, DUMPS_TOTAL_MAX);
}

struct dump_files *dump_files_create_at(const char *path, size_t n_nodes, uint64_t max)
{
        struct dump_files *d = xcalloc(1, sizeof(*d));

        d->path = path ? xstrdup(path) : NULL;
        d->max = max;
        d->nodes = xcalloc(n_nodes, sizeof(*d->nodes));
        d->n_nodes = n_nodes;
        for (size_t i = 0; i < n_nodes; i++)
                d->nodes[i].fd = -1;
        return d;
}

void dump_files_destroy(struct dump_files *d)
{
        if (!d)
                return;
        for (size_t i = 0; i < d->n_nodes; i++)
                dump_files_end(d, (int)i);
        intlist_finish(&d->kept);
        intlist_finish(&d->large);
        intlist_finish(&d->dropped);
        free(d->nodes);
        free(d->path);
        free(d);
}

static char *dump_path(const struct dump_files *d, uint32_t rank)
{
        return xasprintf("%s/" NCCL_DUMP_NAME "%" PRIu32, d->path, rank);
}

/* Keeps the first error only: later dumps fail for the same reason, such as a full disk. */
static void remember_error(struct dump_files *d, const char *path, int error)
{
        if (!*d->error)
                snprintf(d->error, sizeof(d->error), "cannot write %s: %s", path, strerror(error));
}

/* Creates the file. A file that is there is of another node, and stays. */
static void create_dump(struct dump_files *d, struct node_dumps *n)
{
        char *path;

        if (*d->error)
                return;
        if (mkdir(d->path, 0700) < 0 && errno != EEXIST) {
                remember_error(d, d->path, errno);
                return;
        }
        path = dump_path(d, n->rank);
        n->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (n->fd < 0)
                remember_error(d, path, errno);
        free(path);
}

/* Closes the file; @good: it is complete. */
static void close_dump_file(struct dump_files *d, struct node_dumps *n, bool good)
{
        char *path;

        n->open = false;
        if (n->fd < 0)
                return;
        path = dump_path(d, n->rank);
        if (close(n->fd) < 0 && good) {
                remember_error(d, path, errno);
                good = false;
        }
        n->fd = -1;
        if (good)
                intlist_add(&d->kept, (int)n->rank);
        else
                unlink(path);
        free(path);
}

/* Writes a part at the end of the open file. After a failure the file is removed, but the dump
 * stays open: the remaining parts come all the same and must be in order. */
static void write_part(struct dump_files *d, struct node_dumps *n, const struct dump *m)
{
        char *path;
        int r;

        if (n->fd < 0)
                return;
        d->total += m->len;
        r = d->total > d->max ? -EFBIG : fd_write_all(n->fd, m->data, m->len);
        if (r == 0)
                return;
        path = dump_path(d, n->rank);
        remember_error(d, path, -r);
        close_dump_file(d, n, false);
        n->open = true;
        free(path);
}

/* Begins a dump; an incomplete earlier dump is dropped. */
static int begin_dump(struct dump_files *d, struct node_dumps *n, const struct dump *m,
                      struct error *err)
{
        if (n->open)
                close_dump_file(d, n, false);
        if (++n->count > MSG_MAX_DUMPS || m->rank > INT32_MAX)
                return err_set(err, EPROTO, "message out of turn: DUMP, after %d dumps",
                               MSG_MAX_DUMPS);
        /* A dump without content: the node tells its size only, and no part follows. */
        if (!m->len) {
                intlist_add(m->size > MSG_MAX_DUMP ? &d->large : &d->dropped, (int)m->rank);
                return 0;
        }
        if (!d->path)
                return err_set(err, EPROTO, "message out of turn: DUMP with content");
        n->open = true;
        n->rank = m->rank;
        n->size = m->size;
        n->at = 0;
        create_dump(d, n);
        return 0;
}

int dump_files_take(struct dump_files *d, int node, const struct dump *m, struct error *err)
{
        struct node_dumps *n = &d->nodes[node];

        if (!m->at && begin_dump(d, n, m, err) < 0)
                return -EPROTO;
        if (!m->len)
                return 0;
        if (!n->open || m->rank != n->rank || m->size != n->size || m->at != n->at ||
            m->len != MIN(MSG_DUMP_PART, n->size - n->at))
                return err_set(err, EPROTO, "message out of turn: DUMP, another part was due");
        d->arrived = true;
        write_part(d, n, m);
        n->at += m->len;
        if (n->at == n->size)
                close_dump_file(d, n, true);
        return 0;
}

void dump_files_end(struct dump_files *d, int node)
{
        if (d->nodes[node].open)
                close_dump_file(d, &d->nodes[node], false);
}

bool dump_files_arrive(struct dump_files *d)
{
        /* @arrived is left as is once all answers are used up. */
        bool arrived = d && d->arrived && d->arrivals < ARRIVE_MAX;

        if (!arrived)
                return false;
        d->arrived = false;
        d->arrivals++;
        return true;
}

const char *dump_files_path(const struct dump_files *d)
{
        return d ? d->path : NULL;
}

/* The result for NULL: no attempt has begun. */
static const struct intlist no_ranks;

const struct intlist *dump_files_kept(const struct dump_files *d)
{
        return d ? &d->kept : &no_ranks;
}

const struct intlist *dump_files_large(const struct dump_files *d)
{
        return d ? &d->large : &no_ranks;
}

const struct intlist *dump_files_dropped(const struct dump_files *d)
{
        return d ? &d->dropped : &no_ranks;
}

const char *dump_files_error(const struct dump_files *d)
{
        return d && *d->error ? d->error : NULL;
}
