/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records lie in a folder that other programs and users may reach, so a folder of another user or
 * open to others is refused, and files are opened without following links and without blocking at a
 * pipe. A run that was killed has no summary.json: then the last event stands in.
 */
#include "head/run/run_records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/run/run_folders.h"

enum {
        JSON_FILE_MAX = 64 << 20,
        LAST_LINE_MAX = 64 << 10, /* a verdict is a sentence */
};

int run_records_open_at(int dir, const char *name, struct error *err)
{
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return err_set(err, errno, "cannot open %s: %s", name, strerror(errno));
        if (fstat(fd, &st) < 0)
                err_set(err, errno, "cannot open %s: %s", name, strerror(errno));
        else if (st.st_uid != geteuid())
                err_set(err, EPERM, "%s belongs to another user (uid %u)", name,
                        (unsigned)st.st_uid);
        else if (st.st_mode & (S_IWGRP | S_IWOTH))
                err_set(err, EPERM, "others may write in %s (mode %04o)", name,
                        (unsigned)st.st_mode & 07777);
        else
                return fd;
        fd_close(fd);
        return -err->code;
}

int run_records_open(const char *id, struct error *err)
{
        CLEANUP(free_textp) char *records = run_folders_records();
        CLEANUP(free_textp) char *path = records ? xasprintf("%s/%s", records, id) : NULL;

        return path ? run_records_open_at(AT_FDCWD, path, err)
                    : err_set(err, ENOENT, "there is no home for records");
}

FILE *run_records_file(int dir, const char *name)
{
        int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;
        FILE *f = NULL;

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                f = fdopen(fd, "r");
        if (!f)
                fd_close(fd);
        return f;
}

json_t *run_records_load(int dir, const char *name)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len = 0;
        json_t *j = NULL;

        if (fd_read_regular(dir, name, JSON_FILE_MAX, &text, &len) == 0)
                j = json_loadb(text, len, 0, NULL);
        if (json_is_object(j))
                return j;
        json_decref(j);
        return NULL;
}

/* Returns the last line of a file, malloc'ed; NULL: there is none. */
static char *read_last_line(FILE *f)
{
        CLEANUP(free_textp) char *text = xrealloc(NULL, LAST_LINE_MAX + 1, 1);
        char *line;
        size_t n;

        if (fseeko(f, -LAST_LINE_MAX, SEEK_END) < 0)
                rewind(f);
        n = fread(text, 1, LAST_LINE_MAX, f);
        if (!n || text[n - 1] != '\n')
                return NULL;
        text[n - 1] = '\0';
        line = strrchr(text, '\n');
        return xstrdup(line ? line + 1 : text);
}

json_t *run_records_summary(int dir)
{
        static const char *const same[] = { "v", "us", "code", "hn", "rank" };
        json_t *summary = run_records_load(dir, "summary.json"), *end;
        CLEANUP(free_textp) char *line = NULL;
        const char *ev;
        FILE *f;

        if (summary || !(f = run_records_file(dir, "events.ndjson")))
                return summary;
        line = read_last_line(f);
        fclose(f);
        end = line ? json_loads(line, 0, NULL) : NULL;
        ev = json_string_value(json_object_get(end, "ev"));
        if (ev && !strcmp(ev, "run.end")) {
                summary = json_object();
                for (size_t i = 0; i < ARRAY_SIZE(same); i++)
                        json_object_set(summary, same[i], json_object_get(end, same[i]));
                json_object_set(summary, "verdict", json_object_get(end, "text"));
        }
        json_decref(end);
        return summary;
}
