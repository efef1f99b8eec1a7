/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/host_attrs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head/hosts/host_spec.h"

enum { GPU_MAX = 1023, HN_BAD_VALUE = 117, HN_DISAGREE = 118 };

static const struct {
        const char *name; /* with `_` for `-` */
        enum host_attr key;
} keys[] = {
        { "slots", KEY_SLOTS },
        { "max_slots", KEY_MAX_SLOTS },
        { "gpus", KEY_GPUS },
        { "port", KEY_PORT },
        { "user", KEY_USER },
        { "addr", KEY_ADDR },
        { "iface", KEY_IFACE },
        { "numa", KEY_NUMA },
        { "tags", KEY_TAGS },
        { "count", KEY_SLOTS },
        { "cpu", KEY_SLOTS },
        { "slots_max", KEY_MAX_SLOTS },
        { "max_count", KEY_MAX_SLOTS },
        { "count_max", KEY_MAX_SLOTS },
        { "max_cpu", KEY_MAX_SLOTS },
        { "cpu_max", KEY_MAX_SLOTS },
        { "username", KEY_USER },
        { "user_name", KEY_USER },
        /* Known to other launchers, without a meaning here. */
        { "binding", KEY_FOREIGN },
        { "boards", KEY_FOREIGN },
        { "cores", KEY_FOREIGN },
        { "cores_per_socket", KEY_FOREIGN },
        { "rank", KEY_FOREIGN },
        { "sockets", KEY_FOREIGN },
        { "sockets_per_board", KEY_FOREIGN },
};

/* The names of our own, for suggestions and messages: by enum host_attr. */
const char *const host_key_names[KEYS] = { "slots", "max_slots", "gpus", "port", "user",
                                           "addr",  "iface",     "numa", "tags" };

enum host_attr host_attr_find(const char *text, size_t len, char *name, size_t size)
{
        snprintf(name, size, "%.*s", (int)MIN(len, size - 1), text);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                size_t k = 0;

                while (k < len && keys[i].name[k] == (text[k] == '-' ? '_' : text[k]))
                        k++;
                if (k == len && !keys[i].name[k])
                        return keys[i].key;
        }
        return KEY_UNKNOWN;
}

static int check_chars(const char *text, size_t len, const char *more, const char *what,
                       struct range_error *e)
{
        for (size_t i = 0; i < len; i++) {
                char c = text[i];

                if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c && strchr(more, c) && (i || c != '-')))
                        continue;
                *e = (struct range_error){ .at = i, .len = 1, .id = HN_BAD_VALUE };
                snprintf(e->text, sizeof(e->text), "`%s` has letters, digits and `%s` only", what,
                         more);
                return -EINVAL;
        }
        return 0;
}

static int take_text(const char *value, size_t len, const char *more, const char *what, char **to,
                     struct range_error *e)
{
        int r = check_chars(value, len, more, what, e);

        if (r == 0)
                *to = strndup(value, len);
        return r;
}

/* One address, or a range of as many as the line has hosts. */
static int take_addr(struct host_attrs *v, const char *value, size_t len, size_t n,
                     struct range_error *e)
{
        size_t cut = len > 2 && value[0] == '[' ? 1 : 0;
        int r = host_spec_check_address(value, len, e);

        if (r == 0) {
                strv_push_mem(&v->addrs, value + cut, len - 2 * cut);
        } else if (memchr(value, '[', len)) {
                struct host_spec w = { 0 };

                r = host_spec_parse(&w, value, len, e);
                if (r == 0 && !w.user && !w.slots_given)
                        strv_copy(&v->addrs, &w.names);
                host_spec_finish(&w);
        }
        if (r < 0 || v->addrs.n == n || !n)
                return r;
        *e = (struct range_error){ .at = 0, .len = len, .id = HN_DISAGREE };
        snprintf(e->text, sizeof(e->text), "%zu address%s for %zu host%s", v->addrs.n,
                 v->addrs.n == 1 ? "" : "es", n, n == 1 ? "" : "s");
        e->help = "a range of hosts takes a range of addresses, 10.0.0.[1-4]";
        return -EINVAL;
}

static int take_user(struct host_attrs *v, const char *value, size_t len, struct range_error *e)
{
        int r = host_spec_check_user(value, len, e);

        if (r == 0)
                v->user = strndup(value, len);
        return r;
}

static int take_slots(struct host_attrs *v, const char *value, size_t len, struct range_error *e)
{
        v->slots_given = true;
        return host_spec_slots(value, len, "slots", &v->slots, e);
}

static int take_max_slots(struct host_attrs *v, const char *value, size_t len,
                          struct range_error *e)
{
        return host_spec_number(value, len, "max_slots", 1, SLOTS_MAX, &v->max_slots, e);
}

static int take_gpus(struct host_attrs *v, const char *value, size_t len, struct range_error *e)
{
        int r = range_numbers(value, len, GPU_MAX, &v->gpus, e);

        v->has_gpus = r == 0;
        e->id = HN_BAD_VALUE;
        return r;
}

int host_attrs_take(struct host_attrs *v, enum host_attr key, const char *value, size_t len,
                    size_t n_hosts, struct range_error *e)
{
        switch (key) {
        case KEY_SLOTS:
                return take_slots(v, value, len, e);
        case KEY_MAX_SLOTS:
                return take_max_slots(v, value, len, e);
        case KEY_GPUS:
                return take_gpus(v, value, len, e);
        case KEY_PORT:
                return host_spec_number(value, len, "port", 1, 65535, &v->port, e);
        case KEY_USER:
                return take_user(v, value, len, e);
        case KEY_ADDR:
                return take_addr(v, value, len, n_hosts, e);
        case KEY_IFACE:
                return take_text(value, len, "._-:/", "iface", &v->iface, e);
        case KEY_NUMA:
                return take_text(value, len, ",-", "numa", &v->numa, e);
        default:
                return take_text(value, len, "._-,", "tags", &v->tags, e);
        }
}

void host_attrs_finish(struct host_attrs *v)
{
        free(v->user);
        free(v->iface);
        free(v->numa);
        free(v->tags);
        strv_finish(&v->addrs);
        intlist_finish(&v->gpus);
        *v = (struct host_attrs){ 0 };
}
