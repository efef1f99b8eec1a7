/* SPDX-License-Identifier: Apache-2.0 */
#include "head/term/redraw.h"

#include <string.h>

size_t redraw_body(const unsigned char *p, size_t n)
{
        while (n && p[n - 1] == '\r')
                n--;
        return n;
}

ssize_t redraw_last(const unsigned char *p, size_t n)
{
        size_t body = redraw_body(p, n);
        const unsigned char *cr = body ? memrchr(p, '\r', body) : NULL;

        return cr ? cr - p : -1;
}

size_t redraw_replaced(const unsigned char *p, size_t n)
{
        ssize_t last = redraw_last(p, n);
        ssize_t before = last > 0 ? redraw_last(p, (size_t)last) : -1;

        return before > 0 ? (size_t)before : 0;
}

bool redraw_is_blank(const unsigned char *p, size_t n)
{
        while (n && p[n - 1] == ' ')
                n--;
        return n == 0;
}
