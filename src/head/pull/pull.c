/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a node: asked (pull_ask()), waits for the end of its answer, then done; pull_lost(),
 * pull_look() and pull_cancel() end the wait early. The parts of an answer are entries, each
 * followed by the bytes of a file and their end; take_part() checks the order. A node sends files
 * one after the other, so there is at most one open file per node. A failure of every file (a full
 * disk) ends the transfer of all nodes; any other failure costs one file. Missing files are kept as
 * lines for the report, at most ROWS.
 */
#include "head/pull/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/pull/pull_write.h"
#include "wire/push_msg.h"

enum {
        ROWS = 8, /* of each kind in the report */
        SILENT_S = 60,
        NODE_ENTRIES = 2 * PULL_ENTRIES_MAX, /* with files of earlier runs */
};

/* A node must not fill the disk of this machine without end. */
#define PULL_BYTES_MAX (UINT64_C(1) << 40) /* of a job */

struct pull_item {
        char *path, *dest;
        char *skip;        /* in which files brought home are; not brought home again */
        const char *place; /* in DEST/HOST; part of @path, "" = DEST/HOST itself */
        bool found;        /* on a node */
};

/* What did not come. */
struct pull_rows {
        struct strv v; /* the first ones */
        size_t n;
};

/* The answer of a node so far. */
struct pull_node {
        const char *host; /* lent */
        bool asked, waits;
        int *roots; /* by item, -1 = not made yet; NULL = none */
        struct pull_file file;
        bool skips; /* the rest of a file after a failed write */
        bool came;  /* a folder was made here for what comes */
        uint32_t item, entries;
        char *path; /* of the file */
        int64_t heard_ns;
};

struct pull {
        struct pull_item *items;
        size_t n_items, n_nodes, n_waiting;
        struct pull_node *nodes;
        bool cancelled;
        bool unknown;       /* the list of a node is incomplete */
        size_t files, came; /* came: nodes of which something came */
        uint64_t bytes;
        struct pull_rows missing, left;
};

/* --- PATH[:DEST] ------------------------------------------------------------------------------ */

/* Finds the place of a path in DEST/HOST: a relative path stays, an absolute path becomes the last
 * name. Removes slashes at the end of @path. NULL: no name is left. */
static const char *find_place(char *path)
{
        const char *last;
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                path[--n] = '\0';
        while (!strncmp(path, "./", 2))
                memmove(path, path + 2, strlen(path + 2) + 1);
        if (!strcmp(path, "."))
                return path + 1;
        if (push_path_is_safe(path))
                return path;
        last = strrchr(path, '/');
        return last && push_path_is_safe(last + 1) ? last + 1 : NULL;
}

/* Whether the folder, or the nearest folder above that exists, can be written to. */
static int check_dest(const char *dest)
{
        CLEANUP(free_textp) char *path = xstrdup(dest);
        char *slash;

        while (access(path, F_OK) < 0 && errno == ENOENT && (slash = strrchr(path, '/')) &&
               slash > path)
                *slash = '\0';
        return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

static void free_item(struct pull_item *item)
{
        free(item->path);
        free(item->dest);
        free(item->skip);
}

/* Whether PATH leads to DEST if ranks and hnlaunch share the working directory. */
static bool is_same_folder(const struct pull_item *item, const char *here)
{
        CLEANUP(free_textp)
        char *path =
                *item->path == '/' ? xstrdup(item->path) : xasprintf("%s/%s", here, item->path);
        struct stat a, b;

        return !strcmp(path, item->dest) || (stat(path, &a) == 0 && stat(item->dest, &b) == 0 &&
                                             a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* Whether an earlier item would be written to the same place. */
static bool is_taken(const struct pull *p, const struct pull_item *item)
{
        for (size_t i = 0; i < p->n_items; i++)
                if (!strcmp(p->items[i].dest, item->dest) &&
                    !strcmp(p->items[i].place, item->place))
                        return true;
        return false;
}

/* Checks and adds a PATH[:DEST] of --pull, before anything starts: hours later a wrong folder would
 * cost the files. 0, or -EINVAL with an error in @d. */
static int add_item(struct pull *p, const char *word, const char *here, const char *run_id,
                    struct diags *d)
{
        struct pull_item *item = &p->items[p->n_items];
        const char *colon = strrchr(word, ':');
        const char *dest = colon && colon[1] ? colon + 1 : NULL;
        int r;

        item->path = xstrndup(word, colon ? (size_t)(colon - word) : strlen(word));
        item->dest = dest && *dest == '/' ? xstrdup(dest)
                     : dest               ? xasprintf("%s/%s", here, dest)
                                          : xasprintf("%s/pulled/%s", here, run_id);
        /* Files of earlier runs lie below "pulled", too. */
        item->skip = dest ? xstrdup(item->dest) : xasprintf("%s/pulled", here);
        item->place = *item->path ? find_place(item->path) : NULL;
        if (!item->place || strlen(item->path) > PUSH_PATH_MAX) {
                diag_help(diag_add(d, HN_PULL_PATH, EX_USAGE, "--pull %s: the path has no name",
                                   word),
                          "give a file or folder, such as out/log.txt, or `.` for all of the "
                          "ranks' working directory");
        } else if (is_same_folder(item, here)) {
                diag_help(diag_add(d, HN_PULL_PATH, EX_USAGE,
                                   "--pull %s: PATH and DEST are the same folder", word),
                          "files of nodes that share it would be copied into it: choose another "
                          "DEST");
        } else if (is_taken(p, item)) {
                diag_help(diag_add(d, HN_PULL_PATH, EX_USAGE,
                                   "--pull %s: another --pull has the same place", word),
                          "give one of them another DEST: --pull PATH:DEST");
        } else if ((r = check_dest(item->dest)) < 0) {
                diag_help(diag_add(d, HN_PULL_DEST, EX_CANTCREAT, "--pull: cannot write to %s: %s",
                                   item->dest, strerror(-r)),
                          "choose another folder: --pull PATH:DEST");
        } else {
                p->n_items++;
                return 0;
        }
        free_item(item);
        return -EINVAL;
}

struct pull *pull_create(const struct strv *words, const char *here, const char *run_id,
                         size_t n_nodes, struct diags *d)
{
        struct pull *p = xcalloc(1, sizeof(*p));
        bool good = true;

        p->items = xcalloc(words->n, sizeof(*p->items));
        p->nodes = xcalloc(n_nodes, sizeof(*p->nodes));
        p->n_nodes = n_nodes;
        for (size_t i = 0; i < n_nodes; i++)
                p->nodes[i].file = (struct pull_file)PULL_FILE_INIT;
        for (size_t i = 0; i < words->n; i++)
                good &= add_item(p, words->v[i], here, run_id, d) == 0;
        if (good)
                return p;
        pull_destroy(p);
        return NULL;
}

/* Drops an unfinished file, and closes the folders. */
static void finish_pull_node(const struct pull *p, struct pull_node *n)
{
        pull_write_end(&n->file, false);
        for (size_t i = 0; n->roots && i < p->n_items; i++)
                fd_close(n->roots[i]);
        free(n->roots);
        free(n->path);
        n->roots = NULL;
        n->path = NULL;
}

void pull_destroy(struct pull *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < p->n_nodes; i++)
                finish_pull_node(p, &p->nodes[i]);
        for (size_t i = 0; i < p->n_items; i++)
                free_item(&p->items[i]);
        strv_finish(&p->missing.v);
        strv_finish(&p->left.v);
        free(p->items);
        free(p->nodes);
        free(p);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Keeps a line, or only counts it beyond ROWS. */
static void add_pull_row(struct pull_rows *rows, const char *fmt, ...) PRINTF(2, 3);

static void add_pull_row(struct pull_rows *rows, const char *fmt, ...)
{
        va_list ap;

        if (rows->n++ >= ROWS)
                return;
        va_start(ap, fmt);
        strv_push_take(&rows->v, xvasprintf(fmt, ap));
        va_end(ap);
}

/* Ends the answer of a node; an unfinished file is removed. */
static void stop_waiting(struct pull *p, struct pull_node *n)
{
        n->waits = false;
        p->n_waiting--;
        finish_pull_node(p, n);
}

void pull_ask(struct pull *p, struct node *n)
{
        struct pull_node *m = &p->nodes[n->index];
        struct pull_order order = { .paths = STRV_INIT };

        for (size_t i = 0; i < p->n_items; i++) {
                /* All items in one order: the answer names an item by number. */
                strv_push(&order.paths, p->items[i].path);
                if (!strv_has(&order.skip, p->items[i].skip))
                        strv_push(&order.skip, p->items[i].skip);
        }
        pull_order_encode(&n->out, &order);
        strv_finish(&order.paths);
        strv_finish(&order.skip);
        m->host = n->host->name;
        m->asked = m->waits = true;
        m->heard_ns = clock_ns();
        p->n_waiting++;
}

void pull_lost(struct pull *p, const struct node *n, const char *why)
{
        struct pull_node *m = &p->nodes[n->index];

        /* The answer was complete before the node was lost. */
        if (m->asked && !m->waits)
                return;
        p->unknown = true;
        add_pull_row(&p->missing, "%s: %s", n->host->name, why);
        if (m->waits)
                stop_waiting(p, m);
        /* Also a node that was never asked: a second loss adds no second line. */
        m->asked = true;
}

void pull_look(struct pull *p)
{
        int64_t since = clock_ns() - SILENT_S * INT64_C(1000000000);

        for (size_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].waits && p->nodes[i].heard_ns < since) {
                        p->unknown = true;
                        add_pull_row(&p->missing, "%s: has sent nothing for %d s", p->nodes[i].host,
                                     SILENT_S);
                        stop_waiting(p, &p->nodes[i]);
                }
}

bool pull_waits(const struct pull *p)
{
        return p && p->n_waiting;
}

void pull_cancel(struct pull *p, const char *why)
{
        size_t n = p->n_waiting;

        p->cancelled = true;
        for (size_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].waits)
                        stop_waiting(p, &p->nodes[i]);
        if (n)
                add_pull_row(&p->missing, "of %zu node%s: %s", n, n == 1 ? "" : "s", why);
}

/* --- PULLED ----------------------------------------------------------------------------------- */

/* Whether every other file would fail, too. */
static bool ends_all(int error)
{
        return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO ||
               error == EFBIG || error == ENFILE || error == EMFILE;
}

/* Returns the path below DEST/HOST, malloc'ed. */
static char *name_place(const struct pull_item *item, const char *path)
{
        return xasprintf("%s%s%s", item->place, *item->place && *path ? "/" : "", path);
}

/* Notes a failed write. */
static void fail_write(struct pull *p, const struct node *n, const char *path, int error)
{
        const struct pull_item *item = &p->items[p->nodes[n->index].item];
        CLEANUP(free_textp) char *place = name_place(item, path);

        add_pull_row(&p->missing, "cannot write %s/%s/%s: %s", item->dest, n->host->name, place,
                     error == EFBIG ? "more than 1 TiB came" : strerror(error));
        /* The disk of this machine, not the file: other nodes would only repeat the failure. */
        if (ends_all(error))
                pull_cancel(p, "not asked for after this");
}

/* Returns the folder of the node for its present item, or -errno. */
static int open_root(struct pull *p, const struct node *n)
{
        struct pull_node *m = &p->nodes[n->index];
        CLEANUP(free_textp) char *host = xstrdup(n->host->name), *path = NULL;
        int *root;

        if (!m->roots) {
                m->roots = xcalloc(p->n_items, sizeof(*m->roots));
                for (size_t i = 0; i < p->n_items; i++)
                        m->roots[i] = -1;
        }
        root = &m->roots[m->item];
        if (*root >= 0)
                return *root;
        /* The name of a host becomes that of a folder, and may be anything. */
        for (char *c = host; (c = strchr(c, '/'));)
                *c = '_';
        path = xasprintf("%s/%s", p->items[m->item].dest, push_path_is_safe(host) ? host : "_");
        *root = pull_write_root(path);
        p->came += *root >= 0 && !m->came;
        m->came |= *root >= 0;
        return *root;
}

/* Writes a folder or a link, or begins a file, below the folder of the node. */
static void write_entry(struct pull *p, const struct node *n, const struct pulled *in)
{
        struct pull_node *m = &p->nodes[n->index];
        CLEANUP(free_textp) char *place = name_place(&p->items[m->item], in->path);
        CLEANUP(free_textp) char *target = xstrndup((const char *)in->data, in->len);
        int root = open_root(p, n), r = root;

        if (r >= 0 && in->kind == PULL_FOLDER)
                r = pull_write_folder(root, place, in->mode);
        else if (r >= 0 && in->kind == PULL_LINK)
                r = pull_write_link(root, place, target);
        else if (r >= 0)
                r = pull_write_begin(&m->file, root, place, in->mode);
        /* The node sends the bytes all the same, as no message tells it of the failure. */
        m->skips = r < 0;
        /* Files are counted when complete. */
        p->files += r >= 0 && in->kind == PULL_LINK;
        if (r < 0)
                fail_write(p, n, in->path, -r);
}

/* Takes an entry of a node. Links out of the folder are not written: a later file could be written
 * through such a link. */
static void take_entry(struct pull *p, const struct node *n, const struct pulled *in)
{
        struct pull_node *m = &p->nodes[n->index];
        struct pull_item *item = &p->items[in->item];
        CLEANUP(free_textp) char *place = name_place(item, in->path);
        CLEANUP(free_textp) char *target = xstrndup((const char *)in->data, in->len);

        m->item = in->item;
        if (in->kind == PULL_LEFT && in->error == ENOENT && !*in->path)
                return; /* a path may be missing on some nodes */
        item->found = true;
        if (in->kind == PULL_LINK && (!*in->path || !pull_link_is_safe(in->path, target)))
                add_pull_row(&p->left, "%s:%s, a link to %s", n->host->name, place, target);
        else if (in->kind == PULL_LEFT && !in->error)
                add_pull_row(&p->left, "%s:%s, neither a file nor a folder", n->host->name, place);
        else if (in->kind == PULL_LEFT)
                add_pull_row(&p->missing, "%s:%s: %s", n->host->name, place,
                             in->error == E2BIG    ? "more than a million files"
                             : in->error == EEXIST ? "files are brought to this folder"
                                                   : strerror((int)in->error));
        else
                write_entry(p, n, in);
        if (in->kind == PULL_FILE && m->waits) {
                free(m->path);
                m->path = xstrdup(in->path);
        }
}

/* Writes bytes of the open file. After an error the rest of the file is dropped, and the node goes
 * on with the next. */
static void take_file_bytes(struct pull *p, const struct node *n, const struct pulled *in)
{
        struct pull_node *m = &p->nodes[n->index];
        int r;

        if (m->skips)
                return;
        p->bytes += in->len;
        r = p->bytes > PULL_BYTES_MAX ? -EFBIG : pull_write_bytes(&m->file, in->data, in->len);
        if (r == 0)
                return;
        m->skips = true;
        pull_write_end(&m->file, false);
        fail_write(p, n, m->path, -r);
}

/* Completes a file, or removes an incomplete one; a file that became shorter is kept. */
static void end_pulled_file(struct pull *p, const struct node *n, const struct pulled *in)
{
        struct pull_node *m = &p->nodes[n->index];
        CLEANUP(free_textp) char *path = m->path;
        bool keep = !m->skips && (!in->error || in->error == ESTALE);
        int r = m->skips ? 0 : pull_write_end(&m->file, keep);

        m->path = NULL;
        p->files += keep && !r;
        if (in->error) {
                CLEANUP(free_textp) char *place = name_place(&p->items[m->item], path);

                add_pull_row(&p->missing, "%s:%s: %s", n->host->name, place,
                             in->error == ESTALE ? "it became shorter while it was read"
                                                 : strerror((int)in->error));
        }
        if (r < 0)
                fail_write(p, n, path, -r);
}

/* Returns -EPROTO: the node breaks the protocol, and is lost for it. */
static int refuse_part(struct error *err, const char *why)
{
        return err_set(err, EPROTO, "message out of turn: PULLED, %s", why);
}

/* Checks the order of the parts, since a node may send anything. 0, or negative with @err. */
static int take_part(struct pull *p, const struct node *n, const struct pulled *in,
                     struct error *err)
{
        struct pull_node *m = &p->nodes[n->index];
        bool of_file = in->kind == PULL_BYTES || in->kind == PULL_FILE_END;

        if (!m->asked || (!m->waits && !p->cancelled))
                return refuse_part(err, "which was not asked for");
        /* After pull_cancel() nodes go on sending what was asked for. */
        if (!m->waits)
                return 0;
        m->heard_ns = clock_ns();
        if (of_file != (m->path != NULL))
                return refuse_part(err, of_file ? "without a file" : "within a file");
        m->entries += !of_file;
        if (in->item >= p->n_items || m->entries > NODE_ENTRIES)
                return refuse_part(err, "beyond what was asked for");
        if (in->kind == PULL_BYTES)
                take_file_bytes(p, n, in);
        else if (in->kind == PULL_FILE_END)
                end_pulled_file(p, n, in);
        else if (in->kind == PULL_END)
                stop_waiting(p, m);
        else
                take_entry(p, n, in);
        return 0;
}

int pull_take(struct pull *p, const struct node *n, const struct frame *f, struct error *err)
{
        struct pulled in;
        int r;

        if (pulled_decode(&in, f, err) < 0)
                return -EPROTO;
        r = p ? take_part(p, n, &in, err) : refuse_part(err, "without --pull");
        pulled_finish(&in);
        return r;
}

/* --- the report ------------------------------------------------------------------------------- */

/* Adds the kept lines and the number of the others. */
static void add_rows(struct diag *di, const struct pull_rows *rows)
{
        for (size_t i = 0; i < rows->v.n; i++)
                diag_row(di, "%s", rows->v.v[i]);
        if (rows->n > rows->v.n)
                diag_row(di, "and %zu more", rows->n - rows->v.n);
}

/* Tells how much came, and the folder. */
static void tell_came(const struct pull *p, struct diags *d)
{
        const char *dest = p->items[0].dest;
        char size[32];
        bool one = true;

        for (size_t i = 1; i < p->n_items; i++)
                one &= !strcmp(p->items[i].dest, dest);
        format_size(size, sizeof(size), p->bytes);
        if (p->files || p->came)
                diag_tell(d, "--pull brought %zu file%s (%s) of %zu node%s to %s%s", p->files,
                          p->files == 1 ? "" : "s", size, p->came, p->came == 1 ? "" : "s", dest,
                          one ? "" : " and other folders");
}

bool pull_report(const struct pull *p, struct diags *d, int code)
{
        struct pull_rows none = { .v = STRV_INIT };
        size_t n = p ? p->missing.n : 0;
        struct diag *di;

        for (size_t i = 0; p && i < p->n_items; i++)
                /* "On no node" needs the whole answer of every node. */
                if (!p->items[i].found && !p->cancelled && !p->unknown)
                        add_pull_row(&none, "%s: on no node", p->items[i].path);
        n += none.n;
        if (p)
                tell_came(p, d);
        if (n) {
                di = code ? diag_add(d, HN_NOT_PULLED, code,
                                     "--pull: files could not be brought home")
                          : diag_warn(d, HN_NOT_PULLED, "--pull: files could not be brought home");
                add_rows(di, &none);
                add_rows(di, &p->missing);
                diag_help(di, "what is still there can be copied from the nodes by hand");
        }
        if (p && p->left.n) {
                di = diag_warn(d, HN_PULL_LEFT, "--pull: %zu thing%s stayed on the nodes",
                               p->left.n, p->left.n == 1 ? "" : "s");
                add_rows(di, &p->left);
                diag_note(di, "files, folders, and links that stay within the PATH are brought "
                              "home");
        }
        strv_finish(&none.v);
        return n;
}
