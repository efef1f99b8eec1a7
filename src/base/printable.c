/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every function goes through a text by put_char(), which writes one character. Columns are counted
 * in characters.
 */
#include "base/printable.h"

#include <langinfo.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* @s has a byte at least. ASCII is the caller's: a single byte returns 0. */
size_t printable_decode(const unsigned char *s, size_t len, uint32_t *ret_char)
{
        /* The smallest character of each length: shorter forms are refused. */
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
        uint32_t c;

        /* C0 and C1 could only begin an overlong form, F5 and above lie beyond Unicode. */
        if (s[0] < 0xc2 || s[0] > 0xf4 || len < n)
                return 0;
        c = s[0] & (0xffu >> (n + 1));
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (s[i] & 0x3f);
        }
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                return 0;
        *ret_char = c;
        return n;
}

bool printable_turns_text(uint32_t c)
{
        return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
               (c >= 0x2066 && c <= 0x206f);
}

/* Characters that change the display: C1 controls, zero widths, text direction, tags. */
static bool is_deceptive(uint32_t c)
{
        return c < 0xa0 || printable_turns_text(c) || (c >= 0x200b && c <= 0x200d) ||
               (c >= 0x2060 && c <= 0x2065) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
               (c >= 0xe0000 && c <= 0xe0fff);
}

/* Appends the first character of @s in printable form and adds the width to *width. Returns the
 * bytes consumed. @out may be NULL: only measure. */
static size_t put_char(struct buf *out, const char *s, size_t len, size_t *width)
{
        unsigned char c = (unsigned char)*s;
        char shown[16] = "    "; /* of a tab */
        uint32_t wide = 0;
        size_t n = c < 0x80 ? 1 : printable_decode((const unsigned char *)s, len, &wide);

        if (n > 1 ? !is_deceptive(wide) : c >= 0x20 && c < 0x7f) {
                if (out)
                        buf_append(out, s, n);
                *width += 1;
                return n;
        }
        if (n > 1)
                snprintf(shown, sizeof(shown), "<U+%04X>", (unsigned)wide);
        else if (c != '\t')
                snprintf(shown, sizeof(shown), "\\x%02x", c);
        if (out)
                buf_appends(out, shown);
        *width += strlen(shown);
        return MAX(n, (size_t)1); /* a broken sequence: a single byte is consumed */
}

size_t printable_put(struct buf *to, const char *text, size_t len)
{
        size_t width = 0;

        for (size_t i = 0; i < len;)
                i += put_char(to, text + i, len - i, &width);
        return width;
}

static bool is_utf8(void)
{
        return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

const char *printable_ellipsis(void)
{
        return is_utf8() ? "\xe2\x80\xa6" : "...";
}

void printable_cut(struct buf *to, const char *text, size_t len, size_t columns)
{
        /* Room for the ellipsis. */
        size_t most = columns - (is_utf8() ? 1 : 3), width = 0, fits = 0;

        for (size_t i = 0; i < len && width <= columns;) {
                i += put_char(NULL, text + i, len - i, &width);
                if (width <= most)
                        fits = i;
        }
        printable_put(to, text, width <= columns ? len : fits);
        if (width > columns)
                buf_appends(to, printable_ellipsis());
}

char *printable_text(const char *text, size_t columns)
{
        struct buf out = BUF_INIT;
        char *shown;

        printable_cut(&out, text, strlen(text), columns);
        shown = buf_steal(&out);
        return shown ? shown : xstrdup("");
}

void printable_mask(char *text)
{
        size_t len = strlen(text), n;

        for (size_t i = 0; i < len; i += n) {
                size_t width = 0;

                n = put_char(NULL, text + i, len - i, &width);
                if (width != 1)
                        memset(text + i, '?', n);
        }
}

void printable_end(char *text, size_t size)
{
        size_t at = strlen(text);

        if (at + 1 < size || size < 8) /* too short for an ellipsis to be worth anything */
                return;
        for (at -= 3; at && (text[at] & 0xc0) == 0x80; at--)
                ;
        memcpy(text + at, "...", 4);
}

void printable_keep_tail(char *to, size_t size, const char *text, size_t len)
{
        /* Of a text longer than the buffer only the end counts. */
        size_t have = strlen(to), taken = MIN(len, size - 1);
        size_t drop = have + taken > size - 1 ? have + taken - (size - 1) : 0;

        memmove(to, to + drop, have - drop);
        have -= drop;
        for (text += len - taken; taken; taken--, text++)
                if (*text && *text != '\r')
                        to[have++] = *text;
        to[have] = '\0';
}

void printable_one_line(char *text)
{
        for (text += strcspn(text, "\r\n"); *text; text += strcspn(text, "\r\n"))
                *text++ = ' ';
}

void printable_write(FILE *to, const char *text, size_t len)
{
        const char *end = text + len, *nl;

        for (; text < end; text = nl + 1) {
                CLEANUP(buf_finish) struct buf line = BUF_INIT;

                nl = memchr(text, '\n', (size_t)(end - text));
                printable_put(&line, text, (size_t)((nl ? nl : end) - text));
                if (nl)
                        buf_append(&line, "\n", 1);
                fwrite(buf_data(&line), 1, buf_len(&line), to);
                if (!nl)
                        return;
        }
}
