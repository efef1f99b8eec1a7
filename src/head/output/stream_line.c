/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_line_add() has three ways: as they come, for a stream without a label; behind labels,
 * where lines are not drawn again; and by states, on a terminal where lines are drawn again: of the
 * states in the bytes only the last is written, over the state before.
 *
 * @mid_line and @columns tell where the stream's own bytes ended. The owner resets @mid_line when
 * others have written behind an unfinished line, so the rest gets a new label.
 */
#include "head/output/stream_line.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/format.h"
#include "head/term/columns.h"
#include "head/term/redraw.h"

/* Turns a time of the monotonic clock into one since 1970, by the present difference of both
 * clocks. */
static int64_t date_of(int64_t us)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - (clock_ns() / 1000 - us);
}

/* Appends what stands in front of the text: the time, the same for all lines that came at once, and
 * the prefix. */
static void add_label(struct stream_line *l, struct buf *to)
{
        if (l->timed) {
                if (l->time_us != l->us)
                        format_time_of_day(l->time, sizeof(l->time), date_of(l->us));
                l->time_us = l->us;
                buf_append(to, l->time, strlen(l->time));
                buf_append(to, " ", 1);
        }
        buf_append(to, l->prefix, l->prefix_len);
}

size_t stream_line_find_label(const struct stream_line *l, const unsigned char *p, size_t n)
{
        size_t time = l->timed ? MIN(strlen(l->time) + 1, n) : 0;
        size_t prefix = MIN(l->prefix_len, n - time);

        if ((time > 2 && p[2] != ':') || memcmp(p + time, l->prefix, prefix) != 0)
                return 0; /* it goes on with a line */
        return time + prefix;
}

/* Appends a part of a line. The label is repeated behind a carriage return: the text there would
 * else be shown in its place. */
static void add_returning_text(struct stream_line *l, struct buf *lines, const unsigned char *p,
                               const unsigned char *end)
{
        const unsigned char *next;

        for (; p < end; p = next) {
                next = memchr(p, '\r', (size_t)(end - p));
                next = next ? next + 1 : end;
                if (l->returned && *p != '\r' && *p != '\n')
                        add_label(l, lines);
                buf_append(lines, p, (size_t)(next - p));
                l->returned = next[-1] == '\r';
        }
}

/* Appends each line behind the label. */
static void add_prefixed_lines(struct stream_line *l, struct buf *lines, const unsigned char *p,
                               size_t n)
{
        const unsigned char *end = p + n, *nl;
        bool returns = !l->raw && (l->returned || memchr(p, '\r', n));

        buf_reserve(lines, n + n / 4);
        for (; p < end; p = nl) {
                nl = memchr(p, '\n', (size_t)(end - p));
                nl = nl ? nl + 1 : end;
                if (!l->mid_line) {
                        add_label(l, lines);
                        l->returned = false;
                }
                if (returns)
                        add_returning_text(l, lines, p, nl);
                else
                        buf_append(lines, p, (size_t)(nl - p));
                l->mid_line = nl[-1] != '\n';
        }
}

/* Draws only the last of the states in these bytes. @ends: a newline follows. */
static void draw_line(struct stream_line *l, struct buf *to, const unsigned char *p, size_t n,
                      bool ends)
{
        ssize_t cr;

        n = redraw_body(p, n);
        cr = redraw_last(p, n);
        if (cr >= 0) {
                p += cr + 1;
                n -= (size_t)cr + 1;
                n = redraw_is_blank(p, n) ? 0 : n;
                /* The state before is erased; where the terminal cannot erase, its line ends. */
                if (l->mid_line && l->erase && l->columns < columns_of_terminal(l->fd))
                        buf_appends(to, "\r\033[K");
                else if (l->mid_line)
                        buf_appends(to, "\n");
                l->mid_line = false;
                l->drawn = true;
        }
        if (!l->mid_line && (n || ends)) {
                size_t before = buf_len(to);

                add_label(l, to);
                l->columns =
                        columns_count((const char *)buf_data(to) + before, buf_len(to) - before);
        }
        buf_append(to, p, n);
        l->columns += columns_count((const char *)p, n);
        l->mid_line = (l->mid_line || n) && !ends;
        if (ends)
                buf_append(to, "\n", 1);
        l->drawn = l->drawn && l->mid_line;
}

/* Draws each line, and switches a colour off at the end of an unfinished one, because lines of
 * others may follow. */
static void draw_lines(struct stream_line *l, struct buf *to, const unsigned char *p, size_t n)
{
        const unsigned char *end = p + n, *nl;

        for (; p < end; p = nl + 1) {
                nl = memchr(p, '\n', (size_t)(end - p));
                draw_line(l, to, p, (size_t)((nl ? nl : end) - p), nl != NULL);
                if (!nl)
                        break;
        }
        if (l->mid_line)
                escapes_pause(l->escapes, to);
}

void stream_line_add(struct stream_line *l, struct buf *to, const unsigned char *p, size_t n)
{
        if (l->redraws) {
                draw_lines(l, to, p, n);
        } else if (stream_line_is_labelled(l)) {
                add_prefixed_lines(l, to, p, n);
        } else if (n) {
                buf_append(to, p, n);
                l->mid_line = p[n - 1] != '\n';
        }
}
