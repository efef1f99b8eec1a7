/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table maps every spelling of a key, Open MPI's included, to an attribute.
 * host_attrs_take() reads the value straight into the struct host from which the hosts of the line
 * are copied; only addresses differ from host to host, so addrs is a list beside the host.
 */
#include "head/hosts/host_attrs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_MAX = 1023, HN_BAD_VALUE = 117, HN_DISAGREE = 118 };

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

/* Copies a value of letters, digits and the characters of @more, without a leading `-`. */
static int take_text(const char *value, size_t len, const char *more, const char *what, char **to,
                     struct range_error *e)
{
        for (size_t i = 0; i < len; i++) {
                char c = value[i];

                if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c && strchr(more, c) && (i || c != '-')))
                        continue;
                return range_error_set(e, HN_BAD_VALUE, i, 1, NULL,
                                       "`%s` has letters, digits and `%s` only", what, more);
        }
        *to = strndup(value, len);
        return 0;
}

/* Reads an address, or a range of as many as the line has hosts. A line without names has an error
 * already and takes any number. */
static int take_addr(struct host_spec *s, const char *value, size_t len, struct range_error *e)
{
        size_t cut = len > 2 && value[0] == '[' ? 1 : 0, n = s->names.n;
        int r = host_spec_check_address(value, len, e);

        if (r == 0) {
                strv_push_mem(&s->addrs, value + cut, len - 2 * cut);
        } else if (memchr(value, '[', len)) {
                struct host_spec range = { 0 };

                r = host_spec_parse(&range, value, len, e);
                if (r == 0 && !range.host.user && !range.host.slots_given)
                        strv_copy(&s->addrs, &range.names);
                host_spec_finish(&range);
        }
        if (r < 0 || s->addrs.n == n || !n)
                return r;
        return range_error_set(e, HN_DISAGREE, 0, len,
                               "a range of hosts takes a range of addresses, 10.0.0.[1-4]",
                               "%zu address%s for %zu host%s", s->addrs.n,
                               s->addrs.n == 1 ? "" : "es", n, n == 1 ? "" : "s");
}

int host_attrs_take(struct host_spec *s, enum host_attr attr, const char *value, size_t len,
                    struct range_error *e)
{
        struct host *h = &s->host;
        int r;

        switch (attr) {
        case ATTR_SLOTS:
                h->slots_given = true;
                return host_spec_slots(value, len, &h->slots, e);
        case ATTR_MAX_SLOTS:
                return host_spec_number(value, len, "max_slots", 1, SLOTS_MAX, &h->max_slots, e);
        case ATTR_GPUS:
                r = range_numbers(value, len, GPU_MAX, &h->gpus, e);
                h->has_gpus = r == 0;
                e->id = HN_BAD_VALUE;
                return r;
        case ATTR_PORT:
                return host_spec_number(value, len, "port", 1, 65535, &h->port, e);
        case ATTR_USER:
                r = host_spec_check_user(value, len, e);
                h->user = r == 0 ? strndup(value, len) : NULL;
                return r;
        case ATTR_ADDR:
                return take_addr(s, value, len, e);
        case ATTR_IFACE:
                return take_text(value, len, "._-:/", "iface", &h->iface, e);
        case ATTR_NUMA:
                return take_text(value, len, ",-", "numa", &h->numa, e);
        default:
                return take_text(value, len, "._-,", "tags", &h->tags, e);
        }
}
