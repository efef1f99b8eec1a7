/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each list is read into a separate set and joined with the hosts so far: the first list by a union
 * with nothing, later ones by the operation of the command line. An error does not end the reading,
 * so that all lists are checked at once.
 *
 * A list is a set of names, in any case of letters. The hosts of the first list stay in order and
 * keep their attributes. Every list has an index of names (hosts_find()), so that an operation
 * takes a time that grows with the number of hosts and not with the product.
 */
#include "head/commands/host_lists.h"

#include <stdlib.h>
#include <sysexits.h>

#include "base/memory.h"
#include "head/hosts/hostfile.h"
#include "head/options/config.h"
#include "head/options/option_table.h"

/* Whether the lists of an option count: beside words only those of the command line. */
static bool option_counts(const struct options *o, const char *name)
{
        return !o->argv.n || settings_level(o->settings, option_by_name(name)) == LEVEL_LINE;
}

bool host_lists_any(const struct options *o)
{
        return o->argv.n || o->hostfiles.n || o->hostlists.n;
}

enum host_set_op {
        HOST_SET_UNION,
        HOST_SET_MINUS,  /* without the hosts of the other list */
        HOST_SET_COMMON, /* with the hosts of both */
};

/* Combines @h with another list. */
static void apply_set_op(struct hosts *h, enum host_set_op op, struct hosts *other)
{
        bool *keep;

        if (op == HOST_SET_UNION) {
                for (size_t i = 0; i < other->n; i++)
                        if (!hosts_find(h, other->v[i].name))
                                hosts_add_like(h, &other->v[i]);
                return;
        }
        keep = xcalloc(h->n + 1, sizeof(*keep));
        for (size_t i = 0; i < h->n; i++)
                keep[i] = (hosts_find(other, h->v[i].name) != NULL) == (op == HOST_SET_COMMON);
        hosts_retain(h, keep);
        free(keep);
}

/* The state between two lists. */
struct list_reader {
        struct hosts *to;
        enum host_set_op op;
        size_t n; /* lists so far */
        struct diags *diags;
};

/* Joins a list with the hosts so far. The first list is the base also of --minus and --common. */
static void take_list(struct list_reader *r, const char *text, bool is_file)
{
        struct hosts one = HOSTS_INIT;

        if (is_file)
                hostfile_load(&one, text, r->diags);
        else
                hostlist_load(&one, text, r->diags);
        apply_set_op(r->to, r->n++ ? r->op : HOST_SET_UNION, &one);
        hosts_finish(&one);
}

int host_lists_load(struct hosts *h, const struct options *o, struct diags *d)
{
        struct list_reader r = { .to = h,
                                 .op = o->list.minus    ? HOST_SET_MINUS
                                       : o->list.common ? HOST_SET_COMMON
                                                        : HOST_SET_UNION,
                                 .diags = d };

        for (size_t i = 0; option_counts(o, "hostfile") && i < o->hostfiles.n; i++)
                take_list(&r, o->hostfiles.v[i], true);
        for (size_t i = 0; option_counts(o, "hosts") && i < o->hostlists.n; i++)
                take_list(&r, o->hostlists.v[i], false);
        for (size_t i = 0; i < o->argv.n; i++) {
                const char *word = o->argv.v[i];

                take_list(&r, *word == '@' ? word + 1 : word, *word == '@');
        }
        return diags_errors(d) ? diags_first_error(d)->exit : 0;
}
