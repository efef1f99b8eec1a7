/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text is measured from one character, or ESC [ sequence, to the next, by the locale. Functions
 * that shorten or fold a text cut between two of these.
 *
 * Bytes outside of the locale's characters and control characters count as one column, so every
 * loop goes forward by at least a byte. In the C locale each byte of a UTF-8 character counts;
 * main() sets the locale.
 */
#include "head/term/columns.h"

#include <string.h>
#include <sys/ioctl.h>
#include <wchar.h>

#include "base/macros.h"
#include "base/printable.h"

/* The size of a VT100, and of a terminal whose size is not known (a serial line, a new pty). */
enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 24 };

/* Three ASCII letters in place of an ellipsis: a shortened host name is never taken for a name. */
#define GAP "..."

/* Returns the bytes of the first character of @s, at least 1; sets *ret to its width. */
static size_t measure_char(const char *s, size_t n, size_t *ret)
{
        mbstate_t state = { 0 };
        wchar_t c;
        size_t len = mbrtowc(&c, s, n, &state);
        int width;

        *ret = 1;
        /* 0 is a NUL. (size_t)-1 and -2, a broken or unfinished character, are above @n. */
        if (len == 0 || len > n)
                return 1;
        width = wcwidth(c);
        /* wcwidth() returns -1 for control characters, which keep the width 1. */
        if (width >= 0)
                *ret = (size_t)width;
        return len;
}

/* Returns the bytes of the ESC [ sequence at @s, 0 = none. */
static size_t measure_sequence(const char *s, size_t n)
{
        size_t len = 2;

        if (n < 2 || s[0] != '\033' || s[1] != '[')
                return 0;
        /* The final byte of a control sequence is in 0x40 to 0x7e (ECMA-48). A sequence without one
         * ends with the text. */
        while (len < n && (s[len] < 0x40 || s[len] > 0x7e))
                len++;
        return MIN(len + 1, n);
}

size_t columns_count(const char *s, size_t n)
{
        size_t columns = 0, width, len;

        for (const char *end = s + n; s < end; s += len) {
                len = measure_sequence(s, (size_t)(end - s));
                if (len)
                        continue;
                len = measure_char(s, (size_t)(end - s), &width);
                /* The largest width of a tab: its column is not known here. */
                columns += *s == '\t' ? 8 : width;
        }
        return columns;
}

size_t columns_fitting(const char *s, size_t n, size_t columns)
{
        size_t at = 0, width, len;

        while (at < n) {
                len = measure_sequence(s + at, n - at);
                width = 0;
                if (!len)
                        len = measure_char(s + at, n - at, &width);
                if (width > columns)
                        break;
                columns -= width;
                at += len;
        }
        return at;
}

/* Bytes of the form 10xxxxxx continue a character of UTF-8. */
size_t columns_char_start(const char *s, size_t at)
{
        while (at && ((unsigned char)s[at] & 0xc0) == 0x80)
                at--;
        return at;
}

void columns_shorten(struct buf *to, const char *s, size_t columns)
{
        size_t n = strlen(s), wide = columns_count(s, n), gap = strlen(GAP), begin, end, width;

        if (wide <= columns) {
                buf_append(to, s, n);
                return;
        }
        /* No room for the gap and a letter at each side. */
        if (columns <= gap + 1) {
                buf_append(to, s, columns_fitting(s, n, columns));
                return;
        }
        /* An odd column goes to the beginning. The loop below then skips the middle, until
         * the rest fits into the other half. The loop knows no tabs and sequences, which
         * printable texts do not have. */
        begin = columns_fitting(s, n, (columns - gap + 1) / 2);
        width = columns_count(s, begin);
        for (end = begin; wide - width > (columns - gap) / 2;) {
                size_t one, len = measure_char(s + end, n - end, &one);

                width += one;
                end += len;
        }
        buf_append(to, s, begin);
        buf_append(to, GAP, gap);
        buf_append(to, s + end, n - end);
}

void columns_cut(struct buf *to, const char *s, size_t columns)
{
        const char *mark = printable_ellipsis();
        size_t n = strlen(s), wide = columns_count(mark, strlen(mark)), fits, word;

        if (columns_count(s, n) <= columns) {
                buf_append(to, s, n);
                return;
        }
        /* A cut at a blank loses at most half of what fits: a long last word is cut inside. */
        fits = word = columns_fitting(s, n, columns - MIN(columns, wide));
        while (word > fits / 2 && s[word] != ' ')
                word--;
        fits = word > fits / 2 ? word : fits;
        /* Blanks in front of the ellipsis are dropped. */
        while (fits && s[fits - 1] == ' ')
                fits--;
        buf_append(to, s, fits);
        buf_append(to, mark, columns_fitting(mark, strlen(mark), columns));
}

void columns_fold(struct buf *to, const char *text, size_t columns, size_t at, size_t indent)
{
        size_t start = at, gap = 0; /* of the words of this line, and before the next */

        while (*text) {
                size_t len = strcspn(text, " "), wide = columns_count(text, len);

                /* A word at the start of a line is never moved down, also if the word is too wide:
                 * a line would be empty above. */
                if (at > start && at + gap + wide > columns) {
                        buf_printf(to, "\n%*s", (int)indent, "");
                        at = start = indent;
                }
                /* Blanks at a break are dropped; other blanks of the text are kept. */
                gap = at > start ? gap : 0;
                /* A wide word is cut to a line, but gives at least a byte: an @indent at the right
                 * edge would else repeat for ever. */
                len = MAX(columns_fitting(text, len, columns - MIN(start, columns - 1)),
                          MIN(len, (size_t)1));
                buf_printf(to, "%*s%.*s", (int)gap, "", (int)len, text);
                at += gap + columns_count(text, len);
                text += len;
                gap = strspn(text, " ");
                text += gap;
                if (!gap)
                        at = columns; /* the rest of a word goes on below */
        }
}

/* Returns the size, 0 for each part that is unknown or when @fd is no terminal. */
static struct winsize size_of_terminal(int fd)
{
        struct winsize w = { 0 };

        if (ioctl(fd, TIOCGWINSZ, &w) < 0)
                w = (struct winsize){ 0 };
        return w;
}

size_t columns_of_terminal(int fd)
{
        struct winsize w = size_of_terminal(fd);

        return w.ws_col ? w.ws_col : DEFAULT_COLUMNS;
}

size_t columns_rows_of_terminal(int fd)
{
        struct winsize w = size_of_terminal(fd);

        return w.ws_row ? w.ws_row : DEFAULT_ROWS;
}
