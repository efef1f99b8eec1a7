/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ray: the nodes of a running cluster, printed by `python3 -m hnlaunch._ray nodes`
 * (packaging/python/hnlaunch/_ray.py):
 *
 *   { "version": 1, "nodes": [
 *       { "name": "n1", "address": "10.0.0.1", "id": "24b7", "gpus": 2, "cpus": 8 } ] }
 *
 * Slots are the GPUs of a node, or the CPUs in a cluster without GPUs. Nodes without slots are left
 * out, for example a head node with --num-cpus=0. No variable tells of a cluster, so only
 * --scheduler ray leads here.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/alloc/alloc_reader.h"
#include "head/core/ray_module.h"

/* Adds the error that the nodes cannot be read. -EINVAL. */
static int complain_ray(struct alloc_reader *r, const char *what)
{
        struct diag *d = diag_add(r->diags, HN_ALLOC_TEXT, EX_DATAERR,
                                  "cannot read the nodes of the Ray cluster: %s", what);

        diag_note(d, "%s printed them", r->in->path);
        diag_help(d, "the Python module hnlaunch must be of this version; or name the hosts with "
                     "-H or -w");
        return -EINVAL;
}

static int complain_no_slots(struct alloc_reader *r)
{
        diag_help(diag_add(r->diags, HN_ALLOC_COUNTS, EX_DATAERR,
                           "no node of the Ray cluster has GPUs or CPUs"),
                  "ray status shows what they have; name the hosts with -H or -w");
        return -EINVAL;
}

/* Reads a count of a node. 0 to SLOTS_MAX, or -EINVAL. */
static int read_ray_count(const json_t *node, const char *key)
{
        const json_t *j = json_object_get(node, key);

        if (!json_is_integer(j) || json_integer_value(j) < 0)
                return -EINVAL;
        return (int)MIN(json_integer_value(j), SLOTS_MAX);
}

/* Adds a node with slots. Several nodes with the same name are added each. */
static int add_ray_node(struct alloc_reader *r, const char *name, int slots)
{
        CLEANUP(alloc_names_finish) struct alloc_names names = { 0 };
        CLEANUP(alloc_text_finish) struct alloc_text t = { 0 };

        alloc_text_open_string(&t, r, r->in->path, name);
        if (alloc_take_list(&t, &names) < 0)
                return -EINVAL;
        if (names.names.n != 1)
                return complain_ray(r, "a name is a list of names");
        return alloc_add_tasks(r, &t, names.at[0], names.names.v[0], slots);
}

/* Adds the nodes with slots. *ret_gpus: the slots are GPUs. */
static int add_ray_nodes(struct alloc_reader *r, const json_t *nodes, bool *ret_gpus)
{
        const json_t *node;
        size_t i;

        *ret_gpus = false;
        json_array_foreach(nodes, i, node)
        {
                int gpus = read_ray_count(node, "gpus");

                if (!json_is_string(json_object_get(node, "name")) || gpus < 0 ||
                    read_ray_count(node, "cpus") < 0)
                        return complain_ray(r, "a node has no name, gpus and cpus");
                *ret_gpus |= gpus > 0;
        }
        json_array_foreach(nodes, i, node)
        {
                int slots = read_ray_count(node, *ret_gpus ? "gpus" : "cpus");

                if (slots &&
                    add_ray_node(r, json_string_value(json_object_get(node, "name")), slots) < 0)
                        return -EINVAL;
        }
        return r->hosts->n ? 0 : complain_no_slots(r);
}

/* Reads the nodes that the program in Ray's Python has printed. 0, or -EINVAL with errors in
 * diags. */
static int read_ray_allocation(struct alloc_reader *r)
{
        json_auto_t *root = NULL;
        json_error_t err;
        bool gpus;

        root = json_loadb(r->in->text, r->in->len, 0, &err);
        if (!root)
                return complain_ray(r, "they are no JSON text");
        if (json_integer_value(json_object_get(root, "version")) != 1)
                return complain_ray(r, "their version is not 1");
        if (add_ray_nodes(r, json_object_get(root, "nodes"), &gpus) < 0)
                return -EINVAL;
        if (gpus)
                alloc_settle_exact(r, NULL, "the cluster's GPUs");
        else
                alloc_settle(r, NULL, "the cluster's CPUs", 0, NULL);
        /* A cluster is no allocation, as alloc_settle() has called it. */
        free(r->hosts->source);
        r->hosts->source = xstrdup("Ray cluster");
        return 0;
}

const struct alloc_manager alloc_ray = {
        .title = "Ray",
        .command = { "python3", "-c", RAY_MODULE_CODE, "nodes" },
        .command_name = "$(python3 -m hnlaunch._ray nodes)", /* in the words of a user */
        .command_ms =
                60000, /* the import of Ray is slow; the command has a shorter limit of its own */
        .nodes_of = "cluster",
        .read = read_ray_allocation,
};
