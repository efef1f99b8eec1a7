/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostfile_text_init() finds where the lines start: behind LF, CRLF or a lone CR. Comments are
 * blanked out in a copy, where offsets stay the same as in the text shown by messages. Errors carry
 * the place of the current line; the first MAX_ERRORS become diags.
 */
#include "head/hosts/hostfile_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"

enum {
        MAX_ERRORS = 100, /* the rest is counted */
};

size_t hostfile_text_line_end(const struct hostfile_text *t, int line)
{
        size_t end = (size_t)line < t->n_lines ? t->lines[line] : t->len;

        while (end > t->lines[line - 1] && (t->text[end - 1] == '\n' || t->text[end - 1] == '\r'))
                end--;
        return end;
}

struct diag *hostfile_text_bare_error(struct hostfile_text *t, int id, struct text_range at,
                                      const char *fmt, ...)
{
        size_t col = at.at - t->lines[t->line - 1] + 1;
        char fact[512];
        struct diag *d;
        va_list ap;

        if (++t->errors > MAX_ERRORS)
                return NULL;
        va_start(ap, fmt);
        vsnprintf(fact, sizeof(fact), fmt, ap);
        va_end(ap);
        d = diag_add(t->diags, id, t->list ? EX_USAGE : EX_DATAERR, "%s", fact);
        if (t->list)
                diag_place(d, "%s, column %zu", t->file, col);
        else
                diag_place(d, "%s:%d:%zu", t->file, t->line, col);
        return d;
}

void hostfile_text_mark(struct hostfile_text *t, struct diag *d, int line, struct text_range at,
                        char mark, const char *label)
{
        size_t start = t->lines[line - 1];
        char *text;

        if (!d)
                return;
        /* Shown as written, comments included. */
        text = strndup(t->text + start, hostfile_text_line_end(t, line) - start);
        diag_source(d, t->list ? 0 : line, text ? text : "", (int)(at.at - start) + 1, (int)at.len,
                    mark, label);
        free(text);
}

struct diag *hostfile_text_error(struct hostfile_text *t, int id, struct text_range at,
                                 const char *label, const char *fmt, ...)
{
        char fact[512];
        struct diag *d;
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(fact, sizeof(fact), fmt, ap);
        va_end(ap);
        d = hostfile_text_bare_error(t, id, at, "%s", fact);
        hostfile_text_mark(t, d, t->line, at, '^', label);
        return d;
}

void hostfile_text_range_error(struct hostfile_text *t, size_t base, const struct range_error *e)
{
        struct text_range at = { base + e->at, e->len };
        struct diag *d = hostfile_text_error(t, e->id, at, NULL, "%s", e->text);

        if (e->help)
                diag_help(d, "%s", e->help);
}

void hostfile_text_finish_errors(struct hostfile_text *t)
{
        if (t->errors > MAX_ERRORS)
                diags_hide(t->diags, t->errors - MAX_ERRORS, t->file);
}

/* Makes the line of text[@at] current. */
static void set_line_of(struct hostfile_text *t, size_t at)
{
        for (t->line = 1; (size_t)t->line < t->n_lines && t->lines[t->line] <= at;)
                t->line++;
}

void hostfile_text_blank_comments(struct hostfile_text *t)
{
        size_t i = 0;

        t->plain = xcalloc(t->len + 1, 1);
        memcpy(t->plain, t->text, t->len);
        while (i < t->len) {
                const char *p = t->text + i, *close;
                size_t left = t->len - i, end = i;

                if (left > 1 && !memcmp(p, "/*", 2)) {
                        close = memmem(p + 2, left - 2, "*/", 2);
                        end = close ? (size_t)(close - t->text) + 2 : t->len;
                        if (!close) {
                                set_line_of(t, i);
                                hostfile_text_error(t, HN_OPEN_COMMENT, (struct text_range){ i, 2 },
                                                    NULL, "this comment has no end");
                        }
                } else if (*p == '#' || /* in "://" of a URL no comment starts */
                           (left > 1 && !memcmp(p, "//", 2) && (!i || p[-1] != ':'))) {
                        while (end < t->len && t->text[end] != '\n' && t->text[end] != '\r')
                                end++;
                } else {
                        i++;
                }
                for (; i < end; i++)
                        if (t->text[i] != '\n' && t->text[i] != '\r')
                                t->plain[i] = ' ';
        }
}

int hostfile_text_check(struct hostfile_text *t)
{
        const char *nul = memchr(t->text, '\0', t->len);
        bool wide =
                t->len >= 2 && (!memcmp(t->text, "\xff\xfe", 2) || !memcmp(t->text, "\xfe\xff", 2));
        struct diag *d;

        /* UTF-16 has NUL bytes in each ASCII letter, but a mark tells more. */
        if (!nul && !wide)
                return 0;
        set_line_of(t, nul ? (size_t)(nul - t->text) : 0);
        d = hostfile_text_bare_error(t, HN_HOSTFILE_NOT_TEXT,
                                     (struct text_range){ nul ? (size_t)(nul - t->text) : 0, 1 },
                                     wide ? "%s is written in UTF-16"
                                          : "%s is not a text file: it has a NUL byte",
                                     t->file);
        if (wide)
                diag_help(d, "save it as UTF-8, or: iconv -f UTF-16 -t UTF-8");
        return -EINVAL;
}

void hostfile_text_init(struct hostfile_text *t, const char *file, const char *text, size_t len,
                        struct diags *d)
{
        size_t capacity = 64;

        *t = (struct hostfile_text){
                .diags = d, .file = file, .text = text, .len = len, .line = 1, .n_lines = 1
        };
        t->lines = xcalloc(capacity, sizeof(*t->lines));
        for (size_t i = 0; i < len; i++) {
                /* A lone CR ends a line, as on old Macs; CR LF ends one line. */
                bool cr = text[i] == '\r' && (i + 1 == len || text[i + 1] != '\n');

                if (text[i] != '\n' && !cr)
                        continue;
                if (t->n_lines == capacity)
                        t->lines = xrealloc(t->lines, capacity *= 2, sizeof(*t->lines));
                t->lines[t->n_lines++] = i + 1;
        }
}

void hostfile_text_finish(struct hostfile_text *t)
{
        free(t->plain);
        free(t->lines);
        *t = (struct hostfile_text){ 0 };
}
