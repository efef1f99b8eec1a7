/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading takes no lock, because a change renames a complete new file into place. A change locks
 * FILE.lock, reads the file again, drops ended entries and the entries of the same host, appends
 * the new entry, and keeps all other lines as written: a newer hnlaunch may have added them. The
 * lock is tried with pauses for LOCK_MS at most, so that one run cannot hang another.
 */
#include "head/run/bad_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/run/run_folders.h"

enum { FILE_MAX = 4 << 20, LOCK_MS = 5000, LOCK_STEP_MS = 20 };

/* ---- entries ---- */

static void finish_entry(struct bad_host *h)
{
        free(h->host);
        free(h->reason);
        free(h->evidence);
        free(h->run);
}

void bad_hosts_finish(struct bad_hosts *b)
{
        for (size_t i = 0; i < b->n; i++)
                finish_entry(&b->v[i]);
        free(b->v);
        *b = (struct bad_hosts)BAD_HOSTS_INIT;
}

/* False: the line is no entry. */
static bool read_entry(struct bad_host *ret, const char *line, size_t len)
{
        json_t *j = json_loadb(line, len, 0, NULL);
        bool valid = j && *json_member(j, "host") && json_is_integer(json_object_get(j, "until"));

        if (valid)
                *ret = (struct bad_host){
                        .host = xstrdup(json_member(j, "host")),
                        .reason = xstrdup(json_member(j, "reason")),
                        .evidence = xstrdup(json_member(j, "evidence")),
                        .run = xstrdup(json_member(j, "run")),
                        .since = json_integer_value(json_object_get(j, "since")),
                        .until = json_integer_value(json_object_get(j, "until")),
                };
        json_decref(j);
        return valid;
}

static void put_entry(struct buf *b, const struct bad_host *h)
{
        json_t *j = json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "host", json_text(h->host),
                              "reason", json_text(h->reason), "evidence", json_text(h->evidence),
                              "run", json_text(h->run), "since", (json_int_t)h->since, "until",
                              (json_int_t)h->until);
        CLEANUP(free_textp) char *text = json_dump_plain(j, JSON_COMPACT);

        buf_printf(b, "%s\n", text);
        json_decref(j);
}

const struct bad_host *bad_hosts_find(const struct bad_hosts *b, const char *host)
{
        for (size_t i = b->n; i > 0; i--)
                if (!strcasecmp(b->v[i - 1].host, host))
                        return &b->v[i - 1];
        return NULL;
}

/* ---- the file ---- */

char *bad_hosts_path(const char *given)
{
        return given ? xstrdup(given) : run_folders_bad_hosts();
}

/* Reads the whole file; a missing file is empty. */
static int read_bad_file(const char *path, char **ret_text, struct error *err)
{
        size_t len;
        int rc = fd_read_regular(AT_FDCWD, path, FILE_MAX, ret_text, &len);

        /* ENOTDIR: the folder is missing because a file has its name. */
        if (rc == -ENOENT || rc == -ENOTDIR) {
                *ret_text = xstrdup("");
                rc = 0;
        }
        return rc < 0 ? err_set(err, -rc, "cannot read %s: %s", path,
                                rc == -EINVAL ? "it is no regular file" : strerror(-rc))
                      : 0;
}

int bad_hosts_load(struct bad_hosts *b, const char *path, int64_t now, struct error *err)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t cap = 0;

        *b = (struct bad_hosts)BAD_HOSTS_INIT;
        if (read_bad_file(path, &text, err) < 0)
                return -err->code;
        for (char *line = text; *line;) {
                size_t len = strcspn(line, "\n");
                struct bad_host h;

                if (len && !read_entry(&h, line, len)) {
                        b->broken++;
                } else if (len && h.until <= now) {
                        finish_entry(&h);
                } else if (len) {
                        b->v = xgrow(b->v, b->n, &cap, sizeof(*b->v));
                        b->v[b->n++] = h;
                }
                line += len + (line[len] == '\n');
        }
        return 0;
}

/* Opens and locks FILE.lock; makes the folder if needed. Returns the descriptor, or -errno. */
static int lock_bad_file(const char *path, struct error *err)
{
        CLEANUP(free_textp) char *name = xasprintf("%s.lock", path);
        const char *slash = strrchr(path, '/');
        CLEANUP(free_textp)
        char *folder = slash && slash > path ? xstrndup(path, (size_t)(slash - path)) : NULL;
        int fd;

        if (folder && run_folders_make(folder, err) < 0)
                return -err->code;
        /* The lock is a file of its own: a lock on the list would go with the replaced file. */
        fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return err_set(err, errno, "cannot write %s: %s", name, strerror(errno));
        for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; ms += LOCK_STEP_MS) {
                if (errno != EWOULDBLOCK || ms >= LOCK_MS) {
                        err_set(err, errno, "cannot lock %s: %s", name, strerror(errno));
                        fd_close(fd);
                        return -err->code;
                }
                usleep(LOCK_STEP_MS * 1000);
        }
        return fd;
}

/* Replaces the file with @text, and keeps the mode. */
static int replace_bad_file(const char *path, const struct buf *text, struct error *err)
{
        CLEANUP(free_textp) char *name = xasprintf("%s.XXXXXX", path);
        struct stat st;
        int fd, rc;

        /* rename() would replace a read-only file, too: an admin's list stays as it is. */
        if (access(path, F_OK) == 0 && access(path, W_OK) < 0)
                return err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
        fd = mkostemp(name, O_CLOEXEC);
        if (fd < 0)
                return err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
        rc = fd_write_all(fd, buf_data(text), buf_len(text));
        /* mkostemp() makes a file for the owner alone, and a list for a group stays readable. */
        if (!rc && stat(path, &st) == 0 && fchmod(fd, st.st_mode & 0777) < 0)
                rc = -errno;
        if (!rc && rename(name, path) < 0)
                rc = -errno;
        if (rc)
                unlink(name);
        fd_close(fd);
        return rc ? err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

/* Writes the file without ended entries, without the entries of @host and @run (NULL = any run),
 * and with @add at the end. Returns the number of entries of @host left out, or -errno. */
static int change_bad_file(const char *path, const char *host, const char *run,
                           const struct bad_host *add, int64_t now, struct error *err)
{
        CLEANUP(fd_closep) int lock = lock_bad_file(path, err);
        CLEANUP(buf_finish) struct buf new = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;
        int left_out = 0;

        if (lock < 0 || read_bad_file(path, &text, err) < 0)
                return -err->code;
        for (char *line = text; *line;) {
                size_t len = strcspn(line, "\n");
                bool keep = len > 0;
                struct bad_host h;

                if (len && read_entry(&h, line, len)) {
                        bool is_it = !strcasecmp(h.host, host) && (!run || !strcmp(h.run, run));

                        left_out += is_it && h.until > now;
                        keep = !is_it && h.until > now;
                        finish_entry(&h);
                }
                if (keep) {
                        buf_append(&new, line, len);
                        buf_appends(&new, "\n");
                }
                line += len + (line[len] == '\n');
        }
        if (add)
                put_entry(&new, add);
        if (!add && !left_out)
                return 0;
        return replace_bad_file(path, &new, err) < 0 ? -err->code : left_out;
}

int bad_hosts_add(const char *path, const struct bad_host *h, int64_t now, struct error *err)
{
        return MIN(change_bad_file(path, h->host, NULL, h, now, err), 0);
}

int bad_hosts_remove(const char *path, const char *host, const char *run, int64_t now,
                     struct error *err)
{
        return change_bad_file(path, host, run, NULL, now, err);
}
