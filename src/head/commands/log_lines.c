/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line passes three stages: the fold, which holds a line back until the same line of other ranks
 * may have come; the form, text or JSON; and the place, standard output or a ring of the last N
 * lines for --tail. Text for a terminal is made harmless as by the printer, text for a pipe stays
 * as recorded.
 */
#include "head/commands/log_lines.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/intlist.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/output/stream_line.h"
#include "head/term/escapes.h"

/* Bytes of lines that --fold may hold back; beyond, the oldest line goes out before its time. */
enum { FOLD_BYTES = 1 << 20 };

/* A line to be printed. */
struct shown_line {
        int64_t us;
        const struct intlist *ranks; /* one or, folded, several */
        int stream;
        const char *text;
        size_t len;
};

/* Appends a line as the printer shows it on a terminal: without bytes that could harm the terminal
 * or forge the line of another rank. */
static void add_terminal_line(const struct log_lines *l, struct buf *to, char *label,
                              const char *text, size_t len)
{
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        struct escapes e = ESCAPES_INIT;
        /* Without a label nothing can be overwritten, so a lone rank may move the cursor. */
        bool alone = l->n_ranks == 1 && !*label;
        struct stream_line s = { .prefix = label,
                                 .prefix_len = strlen(label),
                                 .fd = STDOUT_FILENO,
                                 .escapes = &e,
                                 .redraws = !alone };

        escapes_filter(&e, &clean, text, len, alone);
        /* The newline ends a sequence left open by the line, and switches the colour off. */
        escapes_filter(&e, &clean, "\n", 1, alone);
        stream_line_add(&s, to, buf_data(&clean), buf_len(&clean));
}

/* Returns the text in front of a line; malloc'ed: the ranks of a folded line, role and rank, host
 * and rank of several nodes, the rank, or "" of a lone rank. */
static char *line_label(const struct log_lines *l, const struct intlist *ranks)
{
        CLEANUP(free_textp) char *host = NULL, *list = NULL;
        char name[PLAN_RANK_NAME_MAX];

        if (ranks->n > 1) {
                list = intlist_fold(ranks);
                return xasprintf("%s | ", list);
        }
        if (l->roles.n && l->n_ranks > 1)
                return xasprintf("%s | ", role_list_label(&l->roles, ranks->v[0], name));
        if (l->n_nodes > 1) {
                host = printable_text(l->hosts[ranks->v[0]] ? l->hosts[ranks->v[0]] : "",
                                      PRINTABLE_QUOTE);
                return xasprintf("%s:%d | ", host, ranks->v[0]);
        }
        return l->n_ranks > 1 ? xasprintf("%d | ", ranks->v[0]) : xstrdup("");
}

/* Appends a line. What stands in front is repeated behind a carriage return, as the printer does:
 * the text there would else be shown in its place. */
static void add_piped_line(struct buf *to, const char *front, const char *text, size_t len)
{
        const char *end = text + len, *next;

        buf_appends(to, front);
        for (const char *p = text; p < end; p = next) {
                next = memchr(p, '\r', (size_t)(end - p));
                next = next ? next + 1 : end;
                buf_append(to, p, (size_t)(next - p));
                if (next < end && *next != '\r')
                        buf_appends(to, front);
        }
        buf_append(to, "\n", 1);
}

static void add_line_text(const struct log_lines *l, struct buf *to, const struct shown_line *line)
{
        CLEANUP(free_textp) char *label = line_label(l, line->ranks), *front = NULL;
        char time[32] = "";

        if (l->timestamps)
                format_time_of_day(time, sizeof(time), l->started_us + line->us);
        front = xasprintf("%s%s%s", time, *time ? " " : "", label);
        if (l->filtered) {
                add_terminal_line(l, to, front, line->text, line->len);
                return;
        }
        /* A pipe to less or grep gets labels behind each CR, but escape sequences as recorded. */
        if (!l->raw) {
                add_piped_line(to, front, line->text, line->len);
                return;
        }
        buf_appends(to, front);
        buf_append(to, line->text, line->len);
        buf_append(to, "\n", 1);
}

/* Appends a line as an object. Unknown fields, such as the time of lines in files of ranks, are
 * left out rather than null. A folded line has "ranks" and no host. */
static void add_line_object(const struct log_lines *l, struct buf *to,
                            const struct shown_line *line)
{
        CLEANUP(free_textp) char *text = xstrndup(line->text, line->len), *dumped = NULL;
        int first = line->ranks->v[0];
        json_t *object = json_pack("{s:i}", "v", 1);

        if (!l->untimed)
                json_object_set_new(object, "us", json_integer(line->us));
        if (line->ranks->n > 1)
                json_object_set_new(object, "ranks", json_numbers(line->ranks->v, line->ranks->n));
        else
                json_object_set_new(object, "rank", json_integer(first));
        if (line->ranks->n == 1)
                role_list_put(&l->roles, object, first);
        if (line->ranks->n == 1 && l->hosts[first])
                json_object_set_new(object, "host", json_text(l->hosts[first]));
        json_object_set_new(object, "stream", json_string(line->stream ? "stderr" : "stdout"));
        json_object_set_new(object, "text", json_text(text));
        dumped = json_dump_plain(object, JSON_COMPACT);
        json_decref(object);
        buf_appends(to, dumped);
        buf_append(to, "\n", 1);
}

/* Returns where the next line goes: to @out, or to a place among the last lines, of which the
 * oldest is overwritten. */
static struct buf *place_line(struct log_lines *l, struct buf *out)
{
        struct buf *to = l->tail ? &l->tail[l->tail_at] : out;

        if (l->tail) {
                l->tail_at = (l->tail_at + 1) % l->tail_size;
                l->tail_n += l->tail_n < l->tail_size;
        }
        buf_clear(to);
        return to;
}

static void print_line(const struct buf *b)
{
        fwrite(buf_data(b), 1, buf_len(b), stdout);
}

/* Formats and places a line. A line of --tail is formatted although it may never be shown: the
 * label belongs to the time of the line, and ranks may move to other hosts. */
static void pass_line(struct log_lines *l, const struct shown_line *line)
{
        CLEANUP(buf_finish) struct buf out = BUF_INIT;
        struct buf *to = place_line(l, &out);

        if (l->json)
                add_line_object(l, to, line);
        else
                add_line_text(l, to, line);
        print_line(&out);
}

/* Called by the fold for a line whose ranks are complete. */
static void pass_folded(void *ctx, const struct folded_line *line)
{
        pass_line(ctx, &(struct shown_line){ line->us, &line->ranks, line->kind, line->text,
                                             line->len });
}

void log_lines_fold(struct log_lines *l, int n_wanted)
{
        l->fold = line_fold_create(l->n_ranks, n_wanted, FOLD_BYTES, pass_folded, l);
}

void log_lines_keep(struct log_lines *l, size_t n)
{
        l->tail_size = n;
        l->tail = xcalloc(n, sizeof(*l->tail));
}

void log_lines_add(struct log_lines *l, int64_t us, int rank, int stream, const char *text,
                   size_t len)
{
        if (l->fold)
                line_fold_add(l->fold, us, rank, (uint8_t)stream, text, len);
        else
                pass_line(l, &(struct shown_line){ us, &(struct intlist){ .v = &rank, .n = 1 },
                                                   stream, text, len });
}

void log_lines_gap(struct log_lines *l, uint64_t bytes)
{
        CLEANUP(buf_finish) struct buf out = BUF_INIT;
        struct buf *to = place_line(l, &out);

        l->has_gap = true;
        /* A reader of JSON sees a gap as an object, null = an unknown number of bytes. */
        if (l->json && bytes)
                buf_printf(to, "{\"v\":1,\"lost\":%llu}\n", (unsigned long long)bytes);
        else if (l->json)
                buf_appends(to, "{\"v\":1,\"lost\":null}\n");
        else if (bytes)
                buf_printf(to, "(%llu bytes of output were not kept here)\n",
                           (unsigned long long)bytes);
        else
                buf_appends(to, "(the output behind this was not kept here)\n");
        print_line(&out);
}

void log_lines_end_until(struct log_lines *l, int64_t us)
{
        if (l->fold)
                line_fold_end_until(l->fold, us);
}

void log_lines_end_all(struct log_lines *l)
{
        if (l->fold)
                line_fold_end_all(l->fold);
}

/* The ring is freed, so that --follow prints each further line at once. */
void log_lines_release(struct log_lines *l)
{
        if (!l->tail)
                return;
        for (size_t i = 0; i < l->tail_n; i++)
                print_line(&l->tail[(l->tail_at + l->tail_size - l->tail_n + i) % l->tail_size]);
        for (size_t i = 0; i < l->tail_size; i++)
                buf_finish(&l->tail[i]);
        free(l->tail);
        l->tail = NULL;
        l->tail_n = l->tail_at = 0;
}

void log_lines_finish(struct log_lines *l)
{
        for (size_t i = 0; l->tail && i < l->tail_size; i++)
                buf_finish(&l->tail[i]);
        free(l->tail);
        line_fold_destroy(l->fold);
        role_list_finish(&l->roles);
}
