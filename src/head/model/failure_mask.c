/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At each place of the text a known form is replaced: a path by PATH, an address, an identifier or
 * a number by #. Words stay, so two failures are equal when the same sentence was printed.
 */
#include "head/model/failure_mask.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { ID_MIN = 8 }; /* a word of so many hex digits, with a decimal digit, is an identifier */

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.~+%@-"
#define HEX  "0123456789abcdefABCDEF"

static bool is_digit_at(const char *p)
{
        return isdigit((unsigned char)*p);
}

/* Returns the length of a path at @p, the start of a word; 0 = there is none. */
static size_t measure_path(const char *p)
{
        size_t n = strspn(p, WORD "/");

        while (n && strchr(".,", p[n - 1])) /* the end of a sentence */
                n--;
        return n > 1 && memchr(p, '/', n) ? n : 0;
}

/* The same of an address of IPv6, or of an identifier in hex, alone or in groups (a UUID). */
static size_t measure_hex(const char *p)
{
        size_t n = strspn(p, HEX ":"), colons = 0, digits = 0, letters;

        for (size_t i = 0; i < n; i++) {
                colons += p[i] == ':';
                digits += is_digit_at(p + i);
        }
        /* A trailing colon belongs to the sentence, but the last two of "fe80::" to the address. */
        if (colons >= 2 && digits && !isalnum((unsigned char)p[n]))
                return p[n - 1] == ':' && p[n - 2] != ':' ? n - 1 : n;
        n = strspn(p, HEX "-");
        for (letters = digits = 0; letters < n && p[letters] != '-'; letters++)
                digits += is_digit_at(p + letters);
        return letters >= ID_MIN && digits && !isalnum((unsigned char)p[n]) ? n : 0;
}

/* The same of a number: 0x1f, 17, 10.0.0.1:29500, 1e-05, 12:30:01. */
static size_t measure_number(const char *p)
{
        size_t n = 0;

        if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && strspn(p + 2, HEX))
                return 2 + strspn(p + 2, HEX);
        while (is_digit_at(p + n)) {
                n += strspn(p + n, "0123456789");
                if ((p[n] == 'e' || p[n] == 'E') &&
                    is_digit_at(p + n + 1 + (p[n + 1] == '-' || p[n + 1] == '+')))
                        n += 1 + (p[n + 1] == '-' || p[n + 1] == '+');
                else if (p[n] && strchr(".,:", p[n]) && is_digit_at(p + n + 1))
                        n++;
        }
        return n;
}

void failure_mask(const char *text, char *to, size_t size)
{
        size_t at = 0;
        char before = ' ';

        while (*text && at + 1 < size) {
                /* Within a word no path begins; identifiers need a boundary as well, but numbers
                 * are masked in words, too. */
                size_t n = strchr(WORD, before) ? 0 : measure_path(text);
                const char *mask = n ? "PATH" : "#";

                if (!n && !isalnum((unsigned char)before))
                        n = measure_hex(text);
                if (!n)
                        n = measure_number(text);
                if (n) {
                        for (; *mask && at + 1 < size; mask++)
                                to[at++] = *mask;
                } else {
                        to[at++] = *text;
                        n = 1;
                }
                text += n;
                before = text[-1];
        }
        to[at] = '\0';
}
