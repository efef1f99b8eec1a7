/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are read one start ahead: .next is the first start that the lines have not reached. With
 * the time of each line a caller sees the moves in their order (log_hosts_find_move()), and decides
 * what to print before a rank has its new host (log_hosts_move()). Hosts of the first attempt are
 * lent by the caller; later ones belong to .own.
 *
 * The recorder replaces a long file by a shorter one with the newest lines (event_file_shorten()).
 * The end of the old file shows this: reading goes on in the new file behind the last start.
 */
#include "head/commands/log_hosts.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/run/run_records.h"

static const char events_name[] = "events.ndjson";

void log_hosts_open(struct log_hosts *h, int dir, const char **now, int n_ranks)
{
        *h = (struct log_hosts){ .dir = dir,
                                 .events = run_records_file(dir, events_name),
                                 .now = now,
                                 .own = xcalloc((size_t)n_ranks, sizeof(*h->own)),
                                 .n_ranks = n_ranks };
}

void log_hosts_finish(struct log_hosts *h)
{
        for (int r = 0; r < h->n_ranks; r++)
                free(h->own[r]);
        free(h->own);
        free(h->next.host);
        free(h->last);
        if (h->events)
                fclose(h->events);
        *h = (struct log_hosts){ 0 };
}

/* Fills .next from a line, if it tells of the start of a rank. Nearly all lines tell of progress:
 * strstr() keeps these from the parser of JSON. */
static void parse_start(struct log_hosts *h, const char *line)
{
        json_t *j = strstr(line, "\"rank.started\"") ? json_loads(line, 0, NULL) : NULL;
        const char *host = json_member(j, "host");
        json_int_t rank = json_integer_value(json_object_get(j, "rank"));

        if (!strcmp(json_member(j, "ev"), "rank.started") && *host && rank >= 0 &&
            rank < h->n_ranks)
                h->next = (struct log_start){ json_integer_value(json_object_get(j, "us")),
                                              (int)rank, xstrdup(host) };
        json_decref(j);
}

/* Reads the open file until the next start. False: to the end, as it is now. */
static bool find_start(struct log_hosts *h)
{
        CLEANUP(free_textp) char *line = NULL;
        size_t size = 0;
        ssize_t n;

        while (!h->next.host && (n = getline(&line, &size, h->events)) > 0) {
                if (line[n - 1] != '\n') { /* being written */
                        fseeko(h->events, -n, SEEK_CUR);
                        break;
                }
                parse_start(h, line);
        }
        clearerr(h->events);
        if (!h->next.host)
                return false;
        free(h->last);
        h->last = STEAL(&line);
        return true;
}

/* Whether another file has the place of the open one. */
static bool has_new_file(const struct log_hosts *h)
{
        struct stat open, now;

        return fstat(fileno(h->events), &open) == 0 &&
               fstatat(h->dir, events_name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
               open.st_ino != now.st_ino;
}

/* Opens the new file behind the last start; a file without this line has later starts only. */
static void follow_new_file(struct log_hosts *h)
{
        FILE *f = run_records_file(h->dir, events_name);
        CLEANUP(free_textp) char *line = NULL;
        bool found = false;
        size_t size = 0;

        if (!f)
                return;
        while (h->last && !found && getline(&line, &size, f) > 0)
                found = !strcmp(line, h->last);
        if (!found)
                rewind(f);
        fclose(h->events);
        h->events = f;
}

bool log_hosts_read(struct log_hosts *h)
{
        free(h->next.host);
        h->next.host = NULL;
        if (!h->events)
                return false;
        if (find_start(h) || !has_new_file(h))
                return h->next.host;
        /* The old file may have got lines before it was replaced. */
        if (find_start(h))
                return true;
        follow_new_file(h);
        return find_start(h);
}

/* A start on the same host, as of each rank in the first attempt, is no move and is passed over. */
int log_hosts_find_move(struct log_hosts *h, int64_t us)
{
        while ((h->next.host || log_hosts_read(h)) && h->next.us <= us) {
                const char *now = h->now[h->next.rank];

                if (!now || strcmp(now, h->next.host) != 0)
                        return h->next.rank;
                free(h->next.host);
                h->next.host = NULL;
        }
        return -1;
}

void log_hosts_move(struct log_hosts *h)
{
        int rank = h->next.rank;

        free(h->own[rank]);
        h->now[rank] = h->own[rank] = h->next.host;
        h->next.host = NULL;
}
