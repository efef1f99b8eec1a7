/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <langinfo.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Returns the length of the UTF-8 sequence at @s, 0 = not valid. */
static size_t utf8_length(const unsigned char *s, size_t len, uint32_t *ret_char)
{
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
        uint32_t c;

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

/* Characters that change the display: C1 controls, zero widths, text direction. */
static bool is_deceptive(uint32_t c)
{
        return c < 0xa0 || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
               (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Appends the first character of @s in printable form and adds the width to *width. Returns the
 * bytes consumed. @out may be NULL: only measure. */
static size_t put_char(struct buf *out, const char *s, size_t len, size_t *width)
{
        unsigned char c = (unsigned char)*s;
        char shown[16] = "    "; /* of a tab */
        uint32_t wide = 0;
        size_t n = c < 0x80 ? 1 : utf8_length((const unsigned char *)s, len, &wide);

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
        return MAX(n, (size_t)1);
}

size_t printable_put(struct buf *to, const char *text, size_t len)
{
        size_t width = 0;

        for (size_t i = 0; i < len;)
                i += put_char(to, text + i, len - i, &width);
        return width;
}

void printable_cut(struct buf *to, const char *text, size_t len, size_t columns)
{
        bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
        const char *mark = utf8 ? "\xe2\x80\xa6" : "...";
        size_t most = columns - (utf8 ? 1 : 3), width = 0, fits = 0;

        for (size_t i = 0; i < len && width <= columns;) {
                i += put_char(NULL, text + i, len - i, &width);
                if (width <= most)
                        fits = i;
        }
        printable_put(to, text, width <= columns ? len : fits);
        if (width > columns)
                buf_appends(to, mark);
}
