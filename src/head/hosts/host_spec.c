/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/host_spec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head/hosts/hosts.h"

enum { BAD_NUMBER = 111, BAD_NAME = 112, MAX_USER = 32, MAX_DIGITS = 9 };

PRINTF(6, 7)
static int wrong(struct range_error *e, int id, size_t at, size_t len, const char *help,
                 const char *fmt, ...)
{
        va_list ap;

        e->id = id;
        e->at = at;
        e->len = MAX(len, (size_t)1);
        e->help = help;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof(e->text), fmt, ap);
        va_end(ap);
        return -EINVAL;
}

/* Not isalnum(): the grammar must not change with the locale. */
static bool alnum(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool name_char(char c)
{
        return alnum(c) || c == '.' || c == '_' || c == '-';
}

static bool first_char(char c)
{
        return alnum(c) || c == '_';
}

static bool is(const char *text, size_t len, const char *word)
{
        return len == strlen(word) && !memcmp(text, word, len);
}

static const char *help_for(char c, size_t at)
{
        switch (c) {
        case '^':
                return "hosts are left out with --exclude";
        case '+':
                return at ? NULL : "+n0 and +e mean nothing without an allocation: name the host";
        case ',':
                return "one host on a line; a list of hosts goes with -w";
        case '=':
                return "slots are given as host:8 here";
        case '"':
        case '\'':
                return "names are written without quotes";
        case '/':
                return "a file of hosts is given with -H";
        case '*':
        case '?':
        case '{':
                return "ranges are written gpu[01-16]";
        default:
                return NULL;
        }
}

/* The letters of @what in text[at..len); brackets are left to the range. */
static int check_letters(const char *what, const char *text, size_t at, size_t len, bool ranges,
                         struct range_error *e)
{
        bool inside = false;

        if (at == len)
                return wrong(e, BAD_NAME, at, 1, NULL, "a %s is missing here", what);
        for (size_t i = at; i < len; i++) {
                bool bracket = ranges && (text[i] == '[' || text[i] == ']');

                if (bracket)
                        inside = text[i] == '[';
                if (inside || bracket || (i > at && name_char(text[i])) || first_char(text[i]))
                        continue;
                if (name_char(text[i]))
                        return wrong(e, BAD_NAME, i, 1, NULL, "a %s must not begin with `%c`", what,
                                     text[i]);
                return wrong(e, BAD_NAME, i, 1, help_for(text[i], i - at),
                             "a %s has letters, digits, `.`, `_` and `-` only", what);
        }
        return 0;
}

int host_spec_check_user(const char *text, size_t len, struct range_error *e)
{
        if (len > MAX_USER)
                return wrong(e, BAD_NAME, 0, len, NULL, "a user name has at most %d letters",
                             MAX_USER);
        return check_letters("user name", text, 0, len, false, e);
}

static bool ipv6(const char *text, size_t len)
{
        char copy[INET6_ADDRSTRLEN];
        const char *zone = memchr(text, '%', len);
        size_t n = zone ? (size_t)(zone - text) : len;
        unsigned char bytes[16];
        struct range_error e;

        if (n >= sizeof(copy))
                return false;
        memcpy(copy, text, n);
        copy[n] = '\0';
        if (strlen(copy) != n || inet_pton(AF_INET6, copy, bytes) != 1)
                return false;
        return !zone ||
               (len - n - 1 < 16 && !check_letters("zone", zone + 1, 0, len - n - 1, false, &e));
}

int host_spec_check_address(const char *text, size_t len, struct range_error *e)
{
        if (len > 2 && text[0] == '[' && text[len - 1] == ']' && ipv6(text + 1, len - 2))
                return 0;
        if (ipv6(text, len))
                return 0;
        if (len > RANGE_MAX_NAME)
                return wrong(e, BAD_NAME, 0, len, NULL, "an address has at most %d letters",
                             RANGE_MAX_NAME);
        return check_letters("host name", text, 0, len, false, e);
}

int host_spec_number(const char *text, size_t len, const char *what, int low, int high, int *ret,
                     struct range_error *e)
{
        bool good = len > 0 && len <= MAX_DIGITS;
        int v = 0;

        for (size_t i = 0; good && i < len; i++) {
                good = text[i] >= '0' && text[i] <= '9';
                v = v * 10 + (text[i] - '0');
        }
        if (!good || v < low || v > high)
                return wrong(e, BAD_NUMBER, 0, len, NULL, "`%s` must be a number from %d to %d",
                             what, low, high);
        *ret = v;
        return 0;
}

int host_spec_slots(const char *text, size_t len, const char *what, int *ret, struct range_error *e)
{
        if (is(text, len, "auto")) {
                *ret = 0;
                return 0;
        }
        return host_spec_number(text, len, what, 1, SLOTS_MAX, ret, e);
}

/* The part behind the colon at text[at - 1]. */
static int take_slots(struct host_spec *w, const char *text, size_t at, size_t len,
                      struct range_error *e)
{
        int r;

        w->slots_given = true;
        w->slots_at = at;
        w->slots_len = len - at;
        if (is(text + at, len - at, "*"))
                return 0;
        r = host_spec_slots(text + at, len - at, "slots", &w->slots, e);
        if (r < 0)
                e->at += at;
        return r;
}

/* "[2001:db8::7]" or "[2001:db8::7]:8" at text[at]. */
static int take_ipv6(struct host_spec *w, const char *text, size_t at, size_t close, size_t len,
                     struct range_error *e)
{
        if (!ipv6(text + at + 1, close - at - 1))
                return wrong(e, BAD_NAME, at, close + 1 - at, NULL, "this is not an IPv6 address");
        strv_push_mem(&w->names, text + at + 1, close - at - 1);
        if (close + 1 == len)
                return 0;
        if (text[close + 1] != ':')
                return wrong(e, BAD_NAME, close + 1, len - close - 1, NULL,
                             "only `:slots` may follow the address");
        return take_slots(w, text, close + 2, len, e);
}

/* The first colon outside of brackets in text[at..len), or len. */
static size_t find_colon(const char *text, size_t at, size_t len)
{
        bool inside = false;

        for (; at < len; at++) {
                if (text[at] == '[' || text[at] == ']')
                        inside = text[at] == '[';
                else if (text[at] == ':' && !inside)
                        break;
        }
        return at;
}

static int two_colons(const char *text, size_t at, size_t second, size_t len, struct range_error *e)
{
        if (ipv6(text + at, len - at))
                return wrong(e, BAD_NAME, at, len - at,
                             "write it as [fe80::1], with slots as [fe80::1]:8",
                             "an IPv6 address must stand in brackets");
        return wrong(e, BAD_NAME, second, len - second, NULL,
                     "only one `:` may follow a host, before its slots");
}

static int take_names(struct host_spec *w, const char *text, size_t at, size_t len,
                      struct range_error *e)
{
        size_t end = find_colon(text, at, len), second;
        int r;

        second = end < len ? find_colon(text, end + 1, len) : len;
        if (second < len)
                return two_colons(text, at, second, len, e);
        r = check_letters("host name", text, at, end, true, e);
        if (r < 0)
                return r;
        r = range_expand(text + at, end - at, &w->names, e);
        if (r < 0) {
                e->at += at;
                return r;
        }
        return end < len ? take_slots(w, text, end + 1, len, e) : 0;
}

int host_spec_parse(struct host_spec *w, const char *text, size_t len, struct range_error *e)
{
        const char *at_sign = memchr(text, '@', len), *close, *second;
        size_t at = at_sign ? (size_t)(at_sign - text) + 1 : 0;
        int r;

        second = at_sign ? memchr(text + at, '@', len - at) : NULL;
        if (second)
                return wrong(e, BAD_NAME, (size_t)(second - text), 1, NULL,
                             "a host has one user only");
        if (at_sign) {
                r = host_spec_check_user(text, at - 1, e);
                if (r < 0)
                        return r;
                w->user = strndup(text, at - 1);
                w->user_len = at - 1;
        }
        close = at < len && text[at] == '[' ? memchr(text + at, ']', len - at) : NULL;
        if (close && memchr(text + at, ':', (size_t)(close - text) - at))
                return take_ipv6(w, text, at, (size_t)(close - text), len, e);
        return take_names(w, text, at, len, e);
}

void host_spec_finish(struct host_spec *w)
{
        strv_finish(&w->names);
        free(w->user);
        *w = (struct host_spec){ 0 };
}
