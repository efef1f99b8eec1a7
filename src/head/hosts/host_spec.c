/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_spec_parse() looks for the `@` of the user first, then tells an IPv6 address in brackets
 * from names with ranges by the colon in the first bracket. Letters are checked before
 * range_expand(), so that the message points at the letter; range_expand() checks the insides of
 * brackets. Offsets in errors count from the start of the given text.
 *
 * A table maps every spelling of a key, Open MPI's included, to an attribute. host_attr_take()
 * reads the value straight into the struct host from which the hosts of the line are copied; only
 * addresses differ from host to host, so addrs is a list beside the host.
 */
#include "head/hosts/host_spec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"

enum {
        GPU_MAX = 1023, /* index of a device */
        MAX_USER = 32,  /* as useradd allows */
        MAX_DIGITS = 9, /* so that an int does not overflow */
};

/* Whether @c is a letter or a digit. Not isalnum(), which depends on the locale. */
static bool is_alphanumeric(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Returns the next step for a letter forbidden in names, or NULL. */
static const char *help_on_letter(char c, size_t at)
{
        static const struct {
                const char *letters, *help;
        } helps[] = {
                { "^", "hosts are left out with --exclude" },
                { ",", "one host on a line; a list of hosts goes with -w" },
                { "=", "slots are given as host:8 here" },
                { "\"'", "names are written without quotes" },
                { "/", "a file of hosts is given with -H" },
                { "*?{", "ranges are written gpu[01-16]" },
        };

        if (c == '+' && !at)
                return "+n0 and +e mean nothing without an allocation: name the host";
        for (size_t i = 0; c && i < ARRAY_SIZE(helps); i++)
                if (strchr(helps[i].letters, c))
                        return helps[i].help;
        return NULL;
}

/* Checks the letters of @what in text[at..len); with @ranges all outside of brackets. */
static int check_letters(const char *what, const char *text, size_t at, size_t len, bool ranges,
                         struct range_error *e)
{
        bool inside = false;

        if (at == len)
                return range_error_set(e, HN_BAD_HOST_NAME, at, 1, NULL, "a %s is missing here",
                                       what);
        for (size_t i = at; i < len; i++) {
                bool bracket = ranges && (text[i] == '[' || text[i] == ']');
                bool inner = text[i] == '.' || text[i] == '-'; /* not at the start */

                if (bracket)
                        inside = text[i] == '[';
                if (inside || bracket || is_alphanumeric(text[i]) || text[i] == '_' ||
                    (inner && i > at))
                        continue;
                if (inner)
                        return range_error_set(e, HN_BAD_HOST_NAME, i, 1, NULL,
                                               "a %s must not begin with `%c`", what, text[i]);
                return range_error_set(e, HN_BAD_HOST_NAME, i, 1, help_on_letter(text[i], i - at),
                                       "a %s has letters, digits, `.`, `_` and `-` only", what);
        }
        return 0;
}

/* Checks the name of a user. 0, or -EINVAL with @e filled in. */
static int check_user(const char *text, size_t len, struct range_error *e)
{
        if (len > MAX_USER)
                return range_error_set(e, HN_BAD_HOST_NAME, 0, len, NULL,
                                       "a user name has at most %d letters", MAX_USER);
        return check_letters("user name", text, 0, len, false, e);
}

/* Whether the text is an IPv6 address, perhaps with a zone (fe80::1%eth0). */
static bool is_ipv6(const char *text, size_t len)
{
        /* Longer texts are no addresses. */
        char copy[INET6_ADDRSTRLEN];
        const char *zone = memchr(text, '%', len);
        size_t n = zone ? (size_t)(zone - text) : len;
        unsigned char bytes[16];
        struct range_error e;

        if (n >= sizeof(copy))
                return false;
        memcpy(copy, text, n);
        copy[n] = '\0';
        /* A NUL inside would end the text early for inet_pton(). */
        if (strlen(copy) != n || inet_pton(AF_INET6, copy, bytes) != 1)
                return false;
        return !zone ||
               (len - n - 1 < 16 && !check_letters("zone", zone + 1, 0, len - n - 1, false, &e));
}

/* Checks a name without ranges, or a numeric address; an IPv6 address with or without brackets. */
static int check_address(const char *text, size_t len, struct range_error *e)
{
        if (len > 2 && text[0] == '[' && text[len - 1] == ']' && is_ipv6(text + 1, len - 2))
                return 0;
        if (is_ipv6(text, len))
                return 0;
        if (len > RANGE_MAX_NAME)
                return range_error_set(e, HN_BAD_HOST_NAME, 0, len, NULL,
                                       "an address has at most %d letters", RANGE_MAX_NAME);
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
                return range_error_set(e, HN_BAD_HOST_NUMBER, 0, len, NULL,
                                       "`%s` must be a number from %d to %d", what, low, high);
        *ret = v;
        return 0;
}

/* Reads a slot count, or "auto" (0). */
static int take_slots(const char *text, size_t len, int *ret, struct range_error *e)
{
        if (len == 4 && !memcmp(text, "auto", 4)) {
                *ret = 0;
                return 0;
        }
        return host_spec_number(text, len, "slots", 1, SLOTS_MAX, ret, e);
}

/* Reads the part behind the colon at text[at - 1]. */
static int take_spec_slots(struct host_spec *s, const char *text, size_t at, size_t len,
                           struct range_error *e)
{
        if ((len - at != 1 || text[at] != '*') &&
            take_slots(text + at, len - at, &s->host.slots, e) < 0) {
                e->at += at;
                return -EINVAL;
        }
        s->host.slots_given = true;
        s->given[ATTR_SLOTS] = (struct text_range){ at, len - at };
        return 0;
}

/* Reads "[2001:db8::7]" or "[2001:db8::7]:8" at text[at]. */
static int take_ipv6(struct host_spec *s, const char *text, size_t at, size_t close, size_t len,
                     struct range_error *e)
{
        if (!is_ipv6(text + at + 1, close - at - 1))
                return range_error_set(e, HN_BAD_HOST_NAME, at, close + 1 - at, NULL,
                                       "this is not an IPv6 address");
        strv_push_mem(&s->names, text + at + 1, close - at - 1);
        if (close + 1 == len)
                return 0;
        if (text[close + 1] != ':')
                return range_error_set(e, HN_BAD_HOST_NAME, close + 1, len - close - 1, NULL,
                                       "only `:slots` may follow the address");
        return take_spec_slots(s, text, close + 2, len, e);
}

/* Reads "gpu[01-04]" or "gpu[01-04]:8" at text[at]. */
static int take_names(struct host_spec *s, const char *text, size_t at, size_t len,
                      struct range_error *e)
{
        size_t end = range_find(text, at, len, ":");
        size_t second = end < len ? range_find(text, end + 1, len, ":") : len;

        if (second < len && is_ipv6(text + at, len - at))
                return range_error_set(e, HN_BAD_HOST_NAME, at, len - at,
                                       "write it as [fe80::1], with slots as [fe80::1]:8",
                                       "an IPv6 address must stand in brackets");
        if (second < len)
                return range_error_set(e, HN_BAD_HOST_NAME, second, len - second, NULL,
                                       "only one `:` may follow a host, before its slots");
        if (check_letters("host name", text, at, end, true, e) < 0)
                return -EINVAL;
        if (range_expand(text + at, end - at, &s->names, e) < 0) {
                e->at += at;
                return -EINVAL;
        }
        return end < len ? take_spec_slots(s, text, end + 1, len, e) : 0;
}

int host_spec_parse(struct host_spec *s, const char *text, size_t len, struct range_error *e)
{
        /* @at: where the names begin. */
        const char *at_sign = memchr(text, '@', len), *close, *second;
        size_t at = at_sign ? (size_t)(at_sign - text) + 1 : 0;
        int r;

        second = at_sign ? memchr(text + at, '@', len - at) : NULL;
        if (second)
                return range_error_set(e, HN_BAD_HOST_NAME, (size_t)(second - text), 1, NULL,
                                       "a host has one user only");
        if (at_sign && check_user(text, at - 1, e) < 0)
                return -EINVAL;
        /* Ranges have no colon, addresses of IPv6 have at least two. */
        close = at < len && text[at] == '[' ? memchr(text + at, ']', len - at) : NULL;
        if (close && memchr(text + at, ':', (size_t)(close - text) - at))
                r = take_ipv6(s, text, at, (size_t)(close - text), len, e);
        else
                r = take_names(s, text, at, len, e);
        if (r == 0 && at_sign) {
                s->host.user = xstrndup(text, at - 1);
                s->given[ATTR_USER] = (struct text_range){ 0, at - 1 };
        }
        return r;
}

void host_spec_finish(struct host_spec *s)
{
        strv_finish(&s->names);
        strv_finish(&s->addrs);
        host_finish(&s->host);
        *s = (struct host_spec){ 0 };
}

/* ---- attributes ---- */

static const struct {
        const char *name; /* with `_` for `-` */
        enum host_attr attr;
} host_keys[] = {
        { "slots", ATTR_SLOTS },
        { "max_slots", ATTR_MAX_SLOTS },
        { "gpus", ATTR_GPUS },
        { "port", ATTR_PORT },
        { "user", ATTR_USER },
        { "addr", ATTR_ADDR },
        { "iface", ATTR_IFACE },
        { "numa", ATTR_NUMA },
        { "tags", ATTR_TAGS },
        { "count", ATTR_SLOTS },
        { "cpu", ATTR_SLOTS },
        { "slots_max", ATTR_MAX_SLOTS },
        { "max_count", ATTR_MAX_SLOTS },
        { "count_max", ATTR_MAX_SLOTS },
        { "max_cpu", ATTR_MAX_SLOTS },
        { "cpu_max", ATTR_MAX_SLOTS },
        { "username", ATTR_USER },
        { "user_name", ATTR_USER },
        /* Keys of other launchers, without a meaning here. */
        { "binding", ATTR_FOREIGN },
        { "boards", ATTR_FOREIGN },
        { "cores", ATTR_FOREIGN },
        { "cores_per_socket", ATTR_FOREIGN },
        { "rank", ATTR_FOREIGN },
        { "sockets", ATTR_FOREIGN },
        { "sockets_per_board", ATTR_FOREIGN },
};

const char *const host_attr_names[HOST_ATTRS] = { "slots", "max_slots", "gpus", "port", "user",
                                                  "addr",  "iface",     "numa", "tags" };

enum host_attr host_attr_find(const char *text, size_t len, char *name, size_t size)
{
        snprintf(name, size, "%.*s", (int)MIN(len, size - 1), text);
        for (size_t i = 0; i < ARRAY_SIZE(host_keys); i++) {
                size_t k = 0;

                while (k < len && host_keys[i].name[k] == (text[k] == '-' ? '_' : text[k]))
                        k++;
                if (k == len && !host_keys[i].name[k])
                        return host_keys[i].attr;
        }
        return ATTR_UNKNOWN;
}

/* Checks that a value has letters, digits and the characters of @more, without a leading `-`. */
static int check_text(const char *value, size_t len, const char *more, const char *what,
                      struct range_error *e)
{
        for (size_t i = 0; i < len; i++) {
                char c = value[i];

                if (!is_alphanumeric(c) && (!c || !strchr(more, c) || (!i && c == '-')))
                        return range_error_set(e, HN_BAD_HOST_VALUE, i, 1, NULL,
                                               "`%s` has letters, digits and `%s` only", what,
                                               more);
        }
        return 0;
}

/* Reads an address, or a range of as many as the line has hosts. A line without names has an error
 * already and takes any number. */
static int take_addr(struct host_spec *s, const char *value, size_t len, struct range_error *e)
{
        size_t cut = len > 2 && value[0] == '[' ? 1 : 0, n = s->names.n;
        int r = check_address(value, len, e);

        if (r == 0) {
                strv_push_mem(&s->addrs, value + cut, len - 2 * cut);
        } else if (memchr(value, '[', len)) {
                struct host_spec range = { 0 };

                r = host_spec_parse(&range, value, len, e);
                /* Addresses with user or slots are none: the list stays empty, and the counts
                 * disagree. */
                if (r == 0 && !range.host.user && !range.host.slots_given)
                        strv_copy(&s->addrs, &range.names);
                host_spec_finish(&range);
        }
        if (r < 0 || s->addrs.n == n || !n)
                return r;
        return range_error_set(e, HN_HOST_KEYS_DISAGREE, 0, len,
                               "a range of hosts takes a range of addresses, 10.0.0.[1-4]",
                               "%zu address%s for %zu host%s", s->addrs.n,
                               s->addrs.n == 1 ? "" : "es", n, n == 1 ? "" : "s");
}

int host_attr_take(struct host_spec *s, enum host_attr attr, const char *value, size_t len,
                   struct range_error *e)
{
        struct host *h = &s->host;
        int r;

        switch (attr) {
        case ATTR_SLOTS:
                h->slots_given = true;
                return take_slots(value, len, &h->slots, e);
        case ATTR_MAX_SLOTS:
                return host_spec_number(value, len, "max_slots", 1, SLOTS_MAX, &h->max_slots, e);
        case ATTR_GPUS:
                r = range_numbers(value, len, GPU_MAX, &h->gpus, e);
                h->has_gpus = r == 0;
                /* A wrong range of GPUs is a wrong value, not a wrong range of hosts. */
                e->id = HN_BAD_HOST_VALUE;
                return r;
        case ATTR_PORT:
                return host_spec_number(value, len, "port", 1, 65535, &h->port, e);
        case ATTR_USER:
                r = check_user(value, len, e);
                h->user = r == 0 ? xstrndup(value, len) : NULL;
                return r;
        case ATTR_ADDR:
                return take_addr(s, value, len, e);
        case ATTR_IFACE:
                r = check_text(value, len, "._-:/", "iface", e);
                h->iface = r == 0 ? xstrndup(value, len) : NULL;
                return r;
        /* Checked and dropped, as tags: keys for tools of the site. */
        case ATTR_NUMA:
                return check_text(value, len, ",-", "numa", e);
        default:
                return check_text(value, len, "._-,", "tags", e);
        }
}
