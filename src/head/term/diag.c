/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The width of the gutter depends on the largest line number of a message, so the body keeps
 * undecorated lines, each with a tag in front and a newline behind, and diags_print() lays them
 * out. Texts are escaped and cut when they are added: a hostfile may hold escape sequences.
 *
 * A body is one buffer, so a message is moved by copying its struct, and nothing refers into a
 * body. Escaped texts have no newline, so that each tagged line ends at the next newline. Pointers
 * to messages become invalid with the next message, since the array grows.
 *
 * "Did you mean" compares whole words by edits, for options, keys and hosts of any caller.
 */
#include "head/term/diag.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/printable.h"
#include "head/term/columns.h"

enum tag {
        TAG_PLACE = 'P',
        TAG_SOURCE = 'S', /* "<line>\t<text>", line 0 = a text without numbers */
        TAG_CARETS = 'C',
        TAG_ROW = 'R',
        TAG_ON_SCREEN = 'T', /* a row that diags_print_on_screen() leaves out */
        TAG_NOTE = 'N',
        TAG_HELP = 'H',
        TAG_MORE = 'M', /* continues the note or help above */
};

/* Bytes shown before and after the caret in a long line of source. MAX_WORD bounds the arrays of
 * count_edits() on the stack: longer words get no suggestion. */
enum { WINDOW_BEFORE = 80, WINDOW_AFTER = 80, MAX_WORD = 64, MAX_DISTANCE = 2 };

/* ---- laying lines out ---- */

/* Adds the lines of a text, the first with @tag, the others with @more; 0 = a single line, in which
 * newlines are escaped. An empty text is one empty line, and a newline at the end adds none. */
static void put_lines(struct diag *d, char tag, char more, const char *fmt, va_list ap)
{
        CLEANUP(free_textp) char *text = NULL;
        const char *line, *end;

        if (!d)
                return;
        line = text = xvasprintf(fmt, ap);
        do {
                end = more ? strchrnul(line, '\n') : line + strlen(line);
                buf_append(&d->body, &tag, 1);
                printable_cut(&d->body, line, (size_t)(end - line), PRINTABLE_LINE);
                buf_append(&d->body, "\n", 1);
                tag = more;
                line = end + 1;
        } while (*end && *line);
}

/* Returns the line behind @line, of lines up to @end. */
static const char *skip_line(const char *line, const char *end)
{
        return (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
}

/* ---- adding ---- */

void diags_finish(struct diags *d)
{
        for (size_t i = 0; i < d->n; i++) {
                free(d->v[i].fact);
                buf_finish(&d->v[i].body);
        }
        free(d->v);
        *d = (struct diags)DIAGS_INIT;
}

size_t diags_errors(const struct diags *d)
{
        size_t n = 0;

        for (size_t i = 0; i < d->n; i++)
                n += !d->v[i].warning;
        return n;
}

size_t diags_hidden(const struct diags *d)
{
        size_t n = 0;

        for (size_t i = 0; i < d->n; i++)
                n += d->v[i].hidden;
        return n;
}

const struct diag *diags_first_error(const struct diags *d)
{
        for (size_t i = 0; i < d->n; i++)
                if (!d->v[i].warning)
                        return &d->v[i];
        return NULL;
}

/* Takes the contents of @new. The returned pointer is valid until the next message. */
static struct diag *append_diag(struct diags *d, const struct diag *new)
{
        /* Full when the number of entries is a power of two. */
        if (!(d->n & (d->n - 1)))
                d->v = xrealloc(d->v, d->n ? d->n * 2 : 1, sizeof(*d->v));
        d->v[d->n] = *new;
        return &d->v[d->n++];
}

/* Takes @fact, of which an escaped and cut copy is kept: facts quote names and errors of others. */
static struct diag *add_diag(struct diags *d, int id, int exit_code, bool warning, char *fact)
{
        struct diag new = { .id = id,
                            .exit = exit_code,
                            .warning = warning,
                            .fact = printable_text(fact, PRINTABLE_LINE) };

        free(fact);
        return append_diag(d, &new);
}

struct diag *diag_add(struct diags *d, int id, int exit_code, const char *fmt, ...)
{
        va_list ap;
        char *fact;

        va_start(ap, fmt);
        fact = xvasprintf(fmt, ap);
        va_end(ap);
        return add_diag(d, id, exit_code, false, fact);
}

struct diag *diag_warn(struct diags *d, int id, const char *fmt, ...)
{
        va_list ap;
        char *fact;

        va_start(ap, fmt);
        fact = xvasprintf(fmt, ap);
        va_end(ap);
        return add_diag(d, id, 0, true, fact);
}

struct diag *diag_tell(struct diags *d, const char *fmt, ...)
{
        va_list ap;
        char *fact;

        va_start(ap, fmt);
        fact = xvasprintf(fmt, ap);
        va_end(ap);
        /* An id of 0 prints "note"; as a warning the note is counted among no errors. */
        return add_diag(d, 0, 0, true, fact);
}

/* Bodies and facts change their owner, so only the array of @from is freed. */
void diags_move(struct diags *to, struct diags *from)
{
        for (size_t i = 0; i < from->n; i++)
                append_diag(to, &from->v[i]);
        free(from->v);
        *from = (struct diags)DIAGS_INIT;
}

void diag_place(struct diag *d, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        put_lines(d, TAG_PLACE, '\0', fmt, ap);
        va_end(ap);
}

/* Adds the line of source, unless the last source of the message is the same line: two rows of
 * carets then stand below one line. */
static void put_source(struct diag *d, const struct buf *shown)
{
        const char *line = (const char *)buf_data(&d->body), *end = line + buf_len(&d->body), *next;
        bool same = false;

        for (; line < end; line = next) {
                next = skip_line(line, end);
                if (*line == TAG_SOURCE)
                        /* 2: the tag and the newline. */
                        same = (size_t)(next - line) == buf_len(shown) + 2 &&
                               !memcmp(line + 1, buf_data(shown), buf_len(shown));
        }
        if (!same)
                buf_printf(&d->body, "%c%.*s\n", TAG_SOURCE, (int)buf_len(shown),
                           (const char *)buf_data(shown));
}

void diag_source(struct diag *d, int line, const char *text, int col, int len, char mark,
                 const char *label)
{
        /* A column behind the end, as of a missing value, points behind the last character. */
        size_t n = strlen(text), at = MIN((size_t)MAX(col - 1, 0), n), from = 0, to = n, indent,
               width;
        struct buf shown = BUF_INIT;

        if (!d)
                return;
        /* A long line is cut at both sides of the caret, between characters. */
        if (n > WINDOW_BEFORE + WINDOW_AFTER) {
                from = columns_char_start(text, at > WINDOW_BEFORE ? at - WINDOW_BEFORE : 0);
                to = columns_char_start(text, MIN(n, at + WINDOW_AFTER));
        }
        buf_printf(&shown, "%d\t", MAX(line, 0));
        /* Dots show where the line was cut. */
        if (from)
                buf_appends(&shown, "...");
        printable_put(&shown, text + from, to - from);
        if (to < n)
                buf_appends(&shown, "...");
        put_source(d, &shown);
        buf_finish(&shown);

        /* Carets are aligned in columns of the escaped text: "\x1b" has four. 3
         * is the width of "...". */
        indent = (from ? 3 : 0) + printable_put(NULL, text + from, at - from);
        width = printable_put(NULL, text + at, MIN((size_t)MAX(len, 0), MAX(to, at) - at));
        buf_printf(&d->body, "%c%*s", TAG_CARETS, (int)indent, "");
        /* A place at the end of the line, or without a length, has one caret. */
        for (size_t i = 0; i < MAX(width, (size_t)1); i++)
                buf_append(&d->body, &mark, 1);
        /* The label stands behind the carets, in the same row. */
        if (label) {
                buf_append(&d->body, " ", 1);
                printable_put(&d->body, label, strlen(label));
        }
        buf_append(&d->body, "\n", 1);
}

void diag_row(struct diag *d, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        put_lines(d, TAG_ROW, TAG_ROW, fmt, ap);
        va_end(ap);
}

void diag_row_on_screen(struct diag *d, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        put_lines(d, TAG_ON_SCREEN, TAG_ON_SCREEN, fmt, ap);
        va_end(ap);
}

size_t diag_row_width(int fd)
{
        /* At least one column: 0 would mean that rows need not be cut. */
        return isatty(fd) ? MAX(columns_of_terminal(fd), (size_t)DIAG_ROWS_AT + 1) - DIAG_ROWS_AT
                          : 0;
}

void diag_note(struct diag *d, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        put_lines(d, TAG_NOTE, TAG_MORE, fmt, ap);
        va_end(ap);
}

void diag_help(struct diag *d, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        put_lines(d, TAG_HELP, TAG_MORE, fmt, ap);
        va_end(ap);
}

/* ---- printing ---- */

/* Returns the digits of the largest line number; 2 without a source, so that bars and arrows of
 * messages have the same place in most files. Lines without a number ("0") count as one digit. */
static int gutter_width(const char *line, const char *end)
{
        int width = 0;

        for (; line < end; line = skip_line(line, end))
                if (*line == TAG_SOURCE)
                        width = MAX(width, (int)strcspn(line + 1, "\t"));
        return width ? width : 2;
}

/* Prints a line of a body. All marks stand below the bar, two columns behind the gutter; a
 * continued note or help stands below the text of its first line. */
static void print_body_line(FILE *to, int gutter, char tag, const char *text, size_t len,
                            bool color)
{
        int n = (int)len, number;

        switch (tag) {
        /* The arrow points from the gutter, as the place belongs to the source below. */
        case TAG_PLACE:
                fprintf(to, "%*s--> %.*s\n", gutter + 1, "", n, text);
                break;
        case TAG_SOURCE:
                number = (int)strcspn(text, "\t");
                /* Number and tab are in front of the text. A line 0 has an empty gutter. */
                n -= number + 1;
                fprintf(to, " %*.*s |%s%.*s\n", gutter, *text == '0' ? 0 : number, text,
                        n ? " " : "", n, text + number + 1);
                break;
        case TAG_NOTE:
                fprintf(to, "%*s= note: %.*s\n", gutter + 2, "", n, text);
                break;
        case TAG_HELP:
                fprintf(to, "%*s= %shelp%s: %.*s\n", gutter + 2, "", color ? "\033[36m" : "",
                        color ? "\033[0m" : "", n, text);
                break;
        case TAG_MORE:
                fprintf(to, "%*s%.*s\n", gutter + 10, "", n, text);
                break;
        default: /* rows and carets */
                fprintf(to, "%*s|%s%.*s\n", gutter + 2, "", n ? " " : "", n, text);
        }
}

/* Whether a bare bar separates two blocks: above the first row or source, and above the notes.
 * @before is the tag of the line above, 0 at the beginning; an empty row is a bar itself. */
static bool wants_bar(char before, char tag, size_t len)
{
        bool evidence = tag == TAG_ROW || tag == TAG_SOURCE;

        if (evidence)
                return (!before || before == TAG_PLACE) && !(tag == TAG_ROW && !len);
        return (tag == TAG_NOTE || tag == TAG_HELP) &&
               (before == TAG_PLACE || before == TAG_ROW || before == TAG_CARETS);
}

/* @on_screen leaves out rows that the terminal shows already, such as the last lines of a rank. */
static void print_body(const struct diag *d, FILE *to, bool color, bool on_screen)
{
        const char *line = (const char *)buf_data(&d->body), *end = line + buf_len(&d->body), *next;
        int gutter = gutter_width(line, end);
        bool bar = false; /* the last line printed was a bare bar */
        char before = 0;

        for (; line < end; line = next) {
                char tag = *line == TAG_ON_SCREEN ? TAG_ROW : *line;
                size_t len;

                next = skip_line(line, end);
                /* Without the tag and the newline. */
                len = (size_t)(next - line) - 2;
                if (on_screen && *line == TAG_ON_SCREEN)
                        continue;
                /* An empty row at the end of the rows serves as the bar above the notes. */
                if (wants_bar(before, tag, len) && !bar)
                        fprintf(to, "%*s|\n", gutter + 2, "");
                print_body_line(to, gutter, tag, line + 1, len, color);
                bar = tag == TAG_ROW && !len;
                before = tag;
        }
}

/* Prints all messages. A single message, as most are, has no empty line behind. */
static void print_diags(const struct diags *d, FILE *to, bool color, bool on_screen)
{
        for (size_t i = 0; i < d->n; i++) {
                const struct diag *one = &d->v[i];
                /* Bold yellow or bold red, as rustc paints. */
                const char *paint = one->warning ? "\033[1;33m" : "\033[1;31m";

                if (one->id)
                        fprintf(to, "%s%s%s[HN%03d]: %s\n", color ? paint : "",
                                one->warning ? "warning" : "error", color ? "\033[0m" : "", one->id,
                                one->fact);
                else
                        fprintf(to, "%snote%s: %s\n", color ? "\033[1m" : "",
                                color ? "\033[0m" : "", one->fact);
                if (buf_len(&one->body))
                        print_body(one, to, color, on_screen);
                if (d->n > 1)
                        fputc('\n', to);
        }
}

void diags_print(const struct diags *d, FILE *to, bool color)
{
        print_diags(d, to, color, false);
}

void diags_print_on_screen(const struct diags *d, FILE *to, bool color)
{
        print_diags(d, to, color, true);
}

void diags_hide(struct diags *d, size_t n, const char *where)
{
        /* The caller has added a message before: only errors beyond the shown ones are hidden. */
        struct diag *last = &d->v[d->n - 1];

        last->hidden = n;
        diag_note(last, "%zu more error%s in %s", n, n == 1 ? "" : "s", where);
}

/* ---- did you mean ---- */

/* Returns the Damerau-Levenshtein distance, in which neighbours may swap; case does not count. A
 * cell needs the two rows above only, so three rows are used in turn. Both lengths are at most
 * MAX_WORD. A letter is changed at most once (optimal string alignment). */
static size_t count_edits(const char *a, size_t n, const char *b, size_t m)
{
        size_t row[3][MAX_WORD + 1];
        size_t *before = row[0], *above = row[1], *here = row[2];

        for (size_t j = 0; j <= m; j++)
                above[j] = j;
        for (size_t i = 1; i <= n; i++) {
                size_t *spare = before;

                here[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        int x = tolower((unsigned char)a[i - 1]);
                        int y = tolower((unsigned char)b[j - 1]);

                        here[j] = MIN(above[j], here[j - 1]) + 1;
                        here[j] = MIN(here[j], above[j - 1] + (x != y));
                        if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                            y == tolower((unsigned char)a[i - 2]))
                                here[j] = MIN(here[j], before[j - 2] + 1);
                }
                before = above;
                above = here;
                here = spare;
        }
        return above[m];
}

const char *diag_did_you_mean(const char *word, const char *const *candidates, size_t n)
{
        size_t len = strlen(word), best = MAX_DISTANCE + 1;
        const char *found = NULL;

        if (len > MAX_WORD)
                return NULL;
        /* The first of several candidates with the same distance wins. */
        for (size_t i = 0; i < n && best > 0; i++) {
                size_t other = strlen(candidates[i]), d;

                /* The lengths alone need more edits than allowed. */
                if (other > MAX_WORD || other + MAX_DISTANCE < len || len + MAX_DISTANCE < other)
                        continue;
                d = count_edits(word, len, candidates[i], other);
                /* Of a short word two edits would leave nothing: "-w" is near to every letter. */
                if (d < best && d * 2 < len) {
                        best = d;
                        found = candidates[i];
                }
        }
        return found;
}

size_t diag_distance(const char *a, const char *b)
{
        size_t n = strlen(a), m = strlen(b);

        return n > MAX_WORD || m > MAX_WORD ? MAX(n, m) : count_edits(a, n, b, m);
}
