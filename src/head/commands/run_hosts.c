/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads lists of hosts, or without any the allocation of a resource manager, and prints the result
 * folded or one host a line. Nothing is started, and no node is asked.
 */
#include "head/commands/run_hosts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "head/alloc/alloc.h"
#include "head/commands/host_lists.h"
#include "head/core/json_text.h"

/* Returns all hosts as one list for -w, malloc'ed. */
static char *fold_all(const struct hosts *h)
{
        size_t *index = xcalloc(h->n + 1, sizeof(*index));
        char *folded;

        for (size_t i = 0; i < h->n; i++)
                index[i] = i;
        folded = hosts_fold(h, index, h->n);
        free(index);
        return folded;
}

static void print_hosts_json(const struct hosts *h, const char *folded)
{
        json_t *list = json_array(), *all;

        for (size_t i = 0; i < h->n; i++)
                json_array_append_new(list, json_pack("{s:o}", "host", json_text(h->v[i].name)));
        all = json_pack("{s:i, s:s, s:o}", "v", 1, "folded", folded, "hosts", list);
        json_write_plain(all, stdout);
        json_decref(all);
}

int run_hosts_print(const struct options *o, struct diags *d)
{
        struct hosts h = HOSTS_INIT;
        CLEANUP(free_textp) char *folded = NULL;
        int rc = 0;

        if (host_lists_any(o))
                rc = host_lists_load(&h, o, d);
        else if (alloc_load(o->from, false, &h, d) < 0)
                rc = diags_first_error(d)->exit;
        if (!rc)
                folded = fold_all(&h);
        if (!rc && o->json)
                print_hosts_json(&h, folded);
        else if (!rc && !o->list.expand && h.n)
                puts(folded);
        for (size_t i = 0; !rc && !o->json && o->list.expand && i < h.n; i++)
                puts(h.v[i].name);
        hosts_finish(&h);
        return rc;
}
