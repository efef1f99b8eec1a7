/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flux: the resource set of the instance, R of RFC 20 as JSON:
 *
 *   { "version": 1, "execution": {
 *       "R_lite": [ { "rank": "0-1", "children": { "core": "0-7", "gpu": "0-1" } } ],
 *       "nodelist": [ "n[1-2]" ] } }
 *
 * The hosts of "nodelist" belong to the ranks in R_lite by rising rank; the idsets of a rank count
 * the cores and GPUs of the host. Slots are the GPUs of a node, or the cores in an instance without
 * GPUs: an instance has no tasks.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/alloc/alloc_reader.h"

/* The resources of a rank of the instance. */
struct flux_rank {
        int rank, cores, gpus;
};
struct flux_ranks {
        struct flux_rank *v;
        size_t n, cap;
};

static void flux_ranks_finish(struct flux_ranks *f)
{
        free(f->v);
}

/* Adds the error that R cannot be read. -EINVAL. */
static int complain_flux(struct alloc_reader *r, const char *what)
{
        struct diag *d = diag_add(r->diags, HN_ALLOC_TEXT, EX_DATAERR,
                                  "cannot read the resources of the Flux instance: %s", what);

        diag_note(d, "%s printed them", r->in->path);
        diag_help(d, "name the hosts with -H or -w: flux getattr hostlist");
        return -EINVAL;
}

/* Reads an idset, "0-3,7" or "[0-3,7]"; NULL is empty. */
static int read_idset(const json_t *j, struct intlist *ret)
{
        const char *text = json_string_value(j);
        size_t len = text ? strlen(text) : 0;
        struct range_error e;

        if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
                text++;
                len -= 2;
        }
        return len ? range_numbers(text, len, ALLOC_CPUS_MAX, ret, &e) : j ? -EINVAL : 0;
}

/* Adds the ranks of an entry of R_lite. */
static int read_flux_entry(const json_t *entry, struct flux_ranks *to)
{
        const json_t *children = json_object_get(entry, "children");
        CLEANUP(intlist_finish) struct intlist ranks = { 0 }, cores = { 0 }, gpus = { 0 };

        if (read_idset(json_object_get(entry, "rank"), &ranks) < 0 || !ranks.n ||
            read_idset(json_object_get(children, "core"), &cores) < 0 ||
            read_idset(json_object_get(children, "gpu"), &gpus) < 0 || ranks.n > HOSTS_MAX - to->n)
                return -EINVAL;
        for (size_t i = 0; i < ranks.n; i++) {
                to->v = xgrow(to->v, to->n, &to->cap, sizeof(*to->v));
                to->v[to->n++] = (struct flux_rank){ ranks.v[i], (int)MIN(cores.n, SLOTS_MAX),
                                                     (int)MIN(gpus.n, SLOTS_MAX) };
        }
        return 0;
}

/* By rank: entries of R_lite have any order. */
static int by_flux_rank(const void *a, const void *b)
{
        const struct flux_rank *x = a, *y = b;

        return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Reads the names of all hosts. */
static int read_flux_hosts(struct alloc_reader *r, const json_t *list, struct alloc_names *ret)
{
        const json_t *one;
        size_t i;

        json_array_foreach(list, i, one)
        {
                CLEANUP(alloc_text_finish) struct alloc_text t = { 0 };

                if (!json_is_string(one))
                        return complain_flux(r, "nodelist has no list of hosts");
                alloc_text_open_string(&t, r, "nodelist", json_string_value(one));
                if (alloc_take_list(&t, ret) < 0)
                        return -EINVAL;
        }
        return ret->names.n ? 0 : complain_flux(r, "nodelist has no hosts");
}

/* Refuses to run as several tasks of a job. */
static int check_flux_copies(struct alloc_reader *r)
{
        const char *size = alloc_variable(r->in->env, "FLUX_JOB_SIZE");
        struct diag *d;

        if (r->in->asked || !size || !alloc_variable(r->in->env, "FLUX_TASK_RANK") ||
            strtol(size, NULL, 10) < 2)
                return 0;
        d = diag_add(r->diags, HN_ALLOC_COPIES, EX_USAGE,
                     "flux starts %s copies of hnlaunch, and each would start the whole job", size);
        diag_help(d, "start hnlaunch once: in the script of flux batch or the shell of flux alloc");
        return -EINVAL;
}

/* Adds the hosts with a slot per GPU, or per core if no host has GPUs. *ret_gpus tells which. */
static int add_flux_hosts(struct alloc_reader *r, struct flux_ranks *ranks,
                          const struct strv *names, bool *ret_gpus)
{
        CLEANUP(alloc_text_finish) struct alloc_text t = { 0 };

        *ret_gpus = false;
        if (ranks->n != names->n) {
                diag_help(diag_add(r->diags, HN_ALLOC_COUNTS, EX_DATAERR,
                                   "the Flux instance has %zu ranks, but %zu hosts", ranks->n,
                                   names->n),
                          "name the hosts with -H or -w: flux getattr hostlist");
                return -EINVAL;
        }
        qsort(ranks->v, ranks->n, sizeof(*ranks->v), by_flux_rank);
        for (size_t i = 0; i < ranks->n; i++)
                *ret_gpus |= ranks->v[i].gpus > 0;
        alloc_text_open_string(&t, r, r->in->path, "");
        for (size_t i = 0; i < ranks->n; i++) {
                int slots = *ret_gpus ? ranks->v[i].gpus : ranks->v[i].cores;

                if (alloc_add_tasks(r, &t, (struct text_range){ 0, 1 }, names->v[i],
                                    MAX(slots, 1)) < 0)
                        return -EINVAL;
        }
        return 0;
}

/* Reads R_lite and nodelist. */
static int read_flux_resources(struct alloc_reader *r, const json_t *root, bool *ret_gpus)
{
        CLEANUP(flux_ranks_finish) struct flux_ranks ranks = { 0 };
        CLEANUP(alloc_names_finish) struct alloc_names names = { 0 };
        const json_t *execution = json_object_get(root, "execution"), *entry;
        size_t i;

        if (json_integer_value(json_object_get(root, "version")) != 1)
                return complain_flux(r, "their version is not 1");
        json_array_foreach(
                json_object_get(execution, "R_lite"), i,
                entry) if (read_flux_entry(entry, &ranks) <
                           0) return complain_flux(r, "R_lite has no ranks, cores and GPUs");
        if (read_flux_hosts(r, json_object_get(execution, "nodelist"), &names) < 0)
                return -EINVAL;
        return add_flux_hosts(r, &ranks, &names.names, ret_gpus);
}

/* Reads the resources of the Flux instance (R, RFC 20). 0, or -EINVAL with errors in diags. */
static int read_flux_allocation(struct alloc_reader *r)
{
        json_auto_t *root = NULL;
        const char *job = alloc_variable(r->in->env, "FLUX_ENCLOSING_ID");
        json_error_t err;
        bool gpus;

        if (check_flux_copies(r) < 0)
                return -EINVAL;
        root = json_loadb(r->in->text, r->in->len, 0, &err);
        if (!root)
                return complain_flux(r, "they are no JSON text");
        if (read_flux_resources(r, root, &gpus) < 0)
                return -EINVAL;
        if (gpus)
                alloc_settle_exact(r, job, "the instance's GPUs");
        else
                alloc_settle(r, job, "the instance's cores", 0, NULL);
        return 0;
}

const struct alloc_manager alloc_flux = {
        .title = "Flux",
        .marks = { "FLUX_URI" },
        .inside = true,
        .command = { "flux", "kvs", "get", "resource.R" },
        .read = read_flux_allocation,
};
