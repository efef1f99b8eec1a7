/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_sender_find() lists the dumps once, after the end of all ranks; dump_sender_run() sends part
 * by part while the uplink has room, and is called again in the next turn of the loop.
 */
#include "agent/nccl/dump_sender.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/nccl/dump_file.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/env/nccl_env.h"
#include "wire/msg.h"

struct dump_sender {
        bool keep;  /* send the content, too */
        char *path; /* of the folder; NULL = nothing was found */
        uint32_t *ranks;
        size_t n, next; /* of ranks; the dump under way */
        struct dump_file file;
};

struct dump_sender *dump_sender_create(void)
{
        struct dump_sender *s = xcalloc(1, sizeof(*s));

        s->file = (struct dump_file)DUMP_FILE_INIT;
        return s;
}

void dump_sender_begin(struct dump_sender *s, bool keep)
{
        s->keep = keep;
}

/* Names alone are noted here: a dump is opened when its turn comes. */
void dump_sender_find(struct dump_sender *s, const char *dir)
{
        DIR *d = dir ? opendir(dir) : NULL;
        struct dirent *entry;
        size_t cap = 0;
        uint32_t rank;

        while (d && (entry = readdir(d))) {
                if (!dump_file_parse_name(entry->d_name, NCCL_DUMP_NAME, "", &rank))
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

static void end_dump(struct dump_sender *s)
{
        dump_file_close(&s->file);
        s->next++;
}

/* Opens the next dump. False: passed over. */
static bool open_dump(struct dump_sender *s)
{
        CLEANUP(free_textp)
        char *path = xasprintf("%s/" NCCL_DUMP_NAME "%u", s->path, s->ranks[s->next]);

        if (dump_file_open(&s->file, path))
                return true;
        log_line(LOG_WARN, "ignoring %s: not a regular file, or empty", path);
        return false;
}

/* A file shorter than told is left incomplete; the head drops such a dump. */
static void send_part(struct dump_sender *s, struct uplink *up)
{
        unsigned char part[MSG_DUMP_PART];
        struct dump m = { .rank = s->ranks[s->next], .size = s->file.size };

        if (s->keep && s->file.size <= MSG_MAX_DUMP && !dump_file_read(&s->file, part, &m)) {
                end_dump(s);
                return;
        }
        dump_encode(&up->out, &m);
        /* A dump without content has one message. */
        if (!m.len || s->file.at == s->file.size)
                end_dump(s);
}

/* True: all dumps are sent. False: the uplink is full, and the caller comes again. */
bool dump_sender_run(struct dump_sender *s, struct uplink *up)
{
        while (s->next < s->n && !uplink_full(up)) {
                if (s->file.fd >= 0 || open_dump(s))
                        send_part(s, up);
                else
                        end_dump(s);
        }
        return s->next == s->n;
}

void dump_sender_close(struct dump_sender *s)
{
        dump_file_close(&s->file);
        free(s->path);
        free(s->ranks);
        *s = (struct dump_sender){ .file = DUMP_FILE_INIT };
}

void dump_sender_destroy(struct dump_sender *s)
{
        dump_sender_close(s);
        free(s);
}
