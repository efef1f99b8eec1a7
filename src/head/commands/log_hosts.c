/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are read one start ahead: .next is the first start that the lines have not reached. With
 * the time of each line a caller sees the moves in their order (log_hosts_find_move()), and decides
 * what to print before a rank has its new host (log_hosts_move()). Hosts of the first attempt are
 * lent by the caller; later ones belong to .own.
 */
#include "head/commands/log_hosts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/run/run_records.h"

void log_hosts_open(struct log_hosts *h, int dir, const char **now, int n_ranks)
{
        *h = (struct log_hosts){ .events = run_records_file(dir, "events.ndjson"),
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

bool log_hosts_read(struct log_hosts *h)
{
        CLEANUP(free_textp) char *line = NULL;
        size_t size = 0;
        ssize_t n;

        free(h->next.host);
        h->next.host = NULL;
        while (h->events && !h->next.host && (n = getline(&line, &size, h->events)) > 0) {
                if (line[n - 1] != '\n') { /* being written */
                        fseeko(h->events, -n, SEEK_CUR);
                        break;
                }
                parse_start(h, line);
        }
        if (h->events)
                clearerr(h->events);
        return h->next.host;
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
