/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value is a fact about a rank, under different names for each launcher: read_values() writes
 * each of enum compat_value as text. The table compat_rows names, for each family, the variables
 * and their values; unknown values stay NULL, and their variables are left out. A new variable is a
 * row; a new kind of value is a member of the enum and a line in a read_*().
 */
#include "wire/env/compat_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/intlist.h"

enum compat_value {
        VALUE_RANK,
        VALUE_SIZE,
        VALUE_LOCAL_RANK,
        VALUE_LOCAL_SIZE,
        VALUE_NODE,
        VALUE_NODES,
        VALUE_CROSS_RANK, /* among the ranks with this local rank */
        VALUE_CROSS_SIZE,
        VALUE_NODE_NAME,
        VALUE_NODE_LIST,
        VALUE_TASKS_PER_NODE, /* "2(x3),1" */
        VALUE_MOST_TASKS,     /* ranks of the fullest node */
        VALUE_RANKS_HERE,
        VALUE_CORES_HERE,
        VALUE_CORES_PER_RANK,
        VALUE_GPUS_HERE,
        VALUE_JOB_NUMBER,
        VALUE_JOB_NAME,
        VALUE_STEP,
        VALUE_RESTARTS, /* none in the first attempt */
        VALUE_ORTE_URI, /* of mpirun's daemon: its presence and its address are read */
        VALUE_JAX_ADDRESS,
        VALUE_JAX_PORT,
        VALUE_JAX_DEVICES, /* positions of the rank's GPUs among those that it sees */
        COMPAT_VALUES,
};

/* Slurm numbers jobs up to this by default. */
enum { JOB_NUMBER_MAX = 0x03ff0000 };

static const struct {
        uint8_t family, value;
        const char *name;
} compat_rows[] = {
        { COMPAT_OMPI, VALUE_RANK, "OMPI_COMM_WORLD_RANK" },
        { COMPAT_OMPI, VALUE_SIZE, "OMPI_COMM_WORLD_SIZE" },
        { COMPAT_OMPI, VALUE_LOCAL_RANK, "OMPI_COMM_WORLD_LOCAL_RANK" },
        { COMPAT_OMPI, VALUE_LOCAL_SIZE, "OMPI_COMM_WORLD_LOCAL_SIZE" },
        /* Not a number of the node: the rank on this node among the processes of all jobs. */
        { COMPAT_OMPI, VALUE_LOCAL_RANK, "OMPI_COMM_WORLD_NODE_RANK" },
        { COMPAT_OMPI, VALUE_SIZE, "OMPI_UNIVERSE_SIZE" },
        /* JAX looks for mpirun and srun, but would guess the coordinator's port, and under srun the
         * address. */
        { COMPAT_OMPI, VALUE_ORTE_URI, "OMPI_MCA_orte_hnp_uri" },
        { COMPAT_OMPI, VALUE_JAX_ADDRESS, "JAX_COORDINATOR_ADDRESS" },
        { COMPAT_OMPI, VALUE_JAX_PORT, "JAX_COORDINATOR_PORT" },
        { COMPAT_OMPI, VALUE_JAX_DEVICES, "JAX_LOCAL_DEVICE_IDS" },
        { COMPAT_SLURM, VALUE_JAX_ADDRESS, "JAX_COORDINATOR_ADDRESS" },
        { COMPAT_SLURM, VALUE_JAX_PORT, "JAX_COORDINATOR_PORT" },
        { COMPAT_SLURM, VALUE_JAX_DEVICES, "JAX_LOCAL_DEVICE_IDS" },

        { COMPAT_SLURM, VALUE_JOB_NUMBER, "SLURM_JOB_ID" },
        { COMPAT_SLURM, VALUE_JOB_NUMBER, "SLURM_JOBID" },
        { COMPAT_SLURM, VALUE_JOB_NAME, "SLURM_JOB_NAME" },
        { COMPAT_SLURM, VALUE_NODES, "SLURM_JOB_NUM_NODES" },
        { COMPAT_SLURM, VALUE_NODES, "SLURM_NNODES" },
        { COMPAT_SLURM, VALUE_NODE_LIST, "SLURM_JOB_NODELIST" },
        { COMPAT_SLURM, VALUE_NODE_LIST, "SLURM_NODELIST" },
        { COMPAT_SLURM, VALUE_SIZE, "SLURM_NTASKS" },
        { COMPAT_SLURM, VALUE_SIZE, "SLURM_NPROCS" },
        { COMPAT_SLURM, VALUE_MOST_TASKS, "SLURM_NTASKS_PER_NODE" },
        { COMPAT_SLURM, VALUE_TASKS_PER_NODE, "SLURM_TASKS_PER_NODE" },
        { COMPAT_SLURM, VALUE_STEP, "SLURM_STEP_ID" },
        { COMPAT_SLURM, VALUE_STEP, "SLURM_STEPID" },
        { COMPAT_SLURM, VALUE_NODES, "SLURM_STEP_NUM_NODES" },
        { COMPAT_SLURM, VALUE_SIZE, "SLURM_STEP_NUM_TASKS" },
        { COMPAT_SLURM, VALUE_NODE_LIST, "SLURM_STEP_NODELIST" },
        { COMPAT_SLURM, VALUE_TASKS_PER_NODE, "SLURM_STEP_TASKS_PER_NODE" },
        { COMPAT_SLURM, VALUE_RANK, "SLURM_PROCID" },
        { COMPAT_SLURM, VALUE_LOCAL_RANK, "SLURM_LOCALID" },
        { COMPAT_SLURM, VALUE_NODE, "SLURM_NODEID" },
        { COMPAT_SLURM, VALUE_RANKS_HERE, "SLURM_GTIDS" },
        { COMPAT_SLURM, VALUE_NODE_NAME, "SLURMD_NODENAME" },
        { COMPAT_SLURM, VALUE_CORES_HERE, "SLURM_CPUS_ON_NODE" },
        { COMPAT_SLURM, VALUE_CORES_PER_RANK, "SLURM_CPUS_PER_TASK" },
        { COMPAT_SLURM, VALUE_GPUS_HERE, "SLURM_GPUS_ON_NODE" },
        { COMPAT_SLURM, VALUE_RESTARTS, "SLURM_RESTART_COUNT" },

        { COMPAT_MPICH, VALUE_RANK, "PMI_RANK" },
        { COMPAT_MPICH, VALUE_SIZE, "PMI_SIZE" },
        { COMPAT_MPICH, VALUE_LOCAL_RANK, "MPI_LOCALRANKID" },
        { COMPAT_MPICH, VALUE_LOCAL_SIZE, "MPI_LOCALNRANKS" },

        { COMPAT_HOROVOD, VALUE_RANK, "HOROVOD_RANK" },
        { COMPAT_HOROVOD, VALUE_SIZE, "HOROVOD_SIZE" },
        { COMPAT_HOROVOD, VALUE_LOCAL_RANK, "HOROVOD_LOCAL_RANK" },
        { COMPAT_HOROVOD, VALUE_LOCAL_SIZE, "HOROVOD_LOCAL_SIZE" },
        { COMPAT_HOROVOD, VALUE_CROSS_RANK, "HOROVOD_CROSS_RANK" },
        { COMPAT_HOROVOD, VALUE_CROSS_SIZE, "HOROVOD_CROSS_SIZE" },
        { COMPAT_HOROVOD, VALUE_NODE_NAME, "HOROVOD_HOSTNAME" },
};

bool compat_env_needs_jax_port(uint8_t family)
{
        return family == COMPAT_OMPI || family == COMPAT_SLURM;
}

bool compat_env_needs_nodes(uint8_t family)
{
        return family == COMPAT_SLURM || family == COMPAT_HOROVOD;
}

/* --- the list of nodes ------------------------------------------------------------------------ */

enum { FOLDED_DIGITS = 9 }; /* an unsigned long holds them on every machine */

/* A name with a number at the end, or the whole name and no digits. */
struct split_name {
        size_t prefix, digits;
        unsigned long number;
};

/* Splits a name; a number with too many digits counts as a part of the name. */
static struct split_name split_node_name(const char *name)
{
        size_t len = strlen(name), digits = 0;

        while (digits < len && name[len - digits - 1] >= '0' && name[len - digits - 1] <= '9')
                digits++;
        if (digits > FOLDED_DIGITS)
                digits = 0;
        return (struct split_name){ .prefix = len - digits,
                                    .digits = digits,
                                    .number = digits ? strtoul(name + len - digits, NULL, 10) : 0 };
}

/* Tells whether both names fit into the same brackets. */
static bool shares_brackets(const char *a, struct split_name x, const char *b, struct split_name y)
{
        return x.digits && y.digits && x.prefix == y.prefix && !strncmp(a, b, x.prefix);
}

/* Returns the end of the run of consecutive numbers from @i on, before @end. */
static size_t run_end(const struct compat_node *nodes, size_t i, size_t end)
{
        struct split_name first = split_node_name(nodes[i].name);
        size_t k = i + 1;
        char text[24];

        for (; k < end; k++) {
                /* The same width as the first number: "009" is followed by "010", "9" by "10". */
                snprintf(text, sizeof(text), "%0*lu", (int)first.digits, first.number + (k - i));
                if (strcmp(nodes[k].name + first.prefix, text) != 0)
                        break;
        }
        return k;
}

/* Writes the nodes @i to @end, which share a prefix, as "gpu[001-064,070]". */
static void fold_numbers(struct buf *b, const struct compat_node *nodes, size_t i, size_t end)
{
        size_t prefix = split_node_name(nodes[i].name).prefix;

        buf_append(b, nodes[i].name, prefix);
        for (const char *open = "["; i < end; open = ",") { /* the first time; then a comma */
                size_t k = run_end(nodes, i, end);

                buf_printf(b, "%s%s", open, nodes[i].name + prefix);
                if (k > i + 1)
                        buf_printf(b, "-%s", nodes[k - 1].name + prefix);
                i = k;
        }
        buf_appends(b, "]");
}

char *compat_env_node_list(const struct launch_compat *c)
{
        struct buf b = BUF_INIT;
        size_t end;

        for (size_t i = 0; i < c->n_nodes; i = end) {
                const char *name = c->nodes[i].name;
                struct split_name first = split_node_name(name);

                for (end = i + 1; end < c->n_nodes; end++)
                        if (!shares_brackets(name, first, c->nodes[end].name,
                                             split_node_name(c->nodes[end].name)))
                                break;
                buf_appends(&b, i ? "," : "");
                if (end == i + 1)
                        buf_appends(&b, name);
                else
                        fold_numbers(&b, c->nodes, i, end);
        }
        return buf_len(&b) ? buf_steal(&b) : xstrdup("");
}

/* --- values ----------------------------------------------------------------------------------- */

static char *number_text(uint32_t n)
{
        return xasprintf("%u", n);
}

/* Writes "2(x3),1": the ranks of each node, equal neighbours counted. */
static char *tasks_per_node(const struct launch_compat *c)
{
        struct buf b = BUF_INIT;
        uint32_t k;

        for (uint32_t i = 0; i < c->n_nodes; i = k) {
                for (k = i + 1; k < c->n_nodes && c->nodes[k].n_ranks == c->nodes[i].n_ranks;)
                        k++;
                buf_printf(&b, "%s%u", i ? "," : "", c->nodes[i].n_ranks);
                if (k > i + 1)
                        buf_printf(&b, "(x%u)", k - i);
        }
        return buf_steal(&b);
}

/* Fills in the values about the nodes of the job. */
static void read_nodes(char **text, const struct launch_order *l, const struct launch_rank *r)
{
        const struct launch_compat *c = &l->compat;
        uint32_t most = 0, before = 0, all = 0;

        if (!c->n_nodes)
                return;
        for (uint32_t i = 0; i < c->n_nodes; i++) {
                /* The ranks with this local rank, one a node: what Horovod calls the cross
                 * communicator. */
                bool has_local_rank = c->nodes[i].n_ranks > r->local_rank;

                most = MAX(most, c->nodes[i].n_ranks);
                before += has_local_rank && i < l->node_rank;
                all += has_local_rank;
        }
        text[VALUE_CROSS_RANK] = number_text(before);
        text[VALUE_CROSS_SIZE] = number_text(all);
        text[VALUE_MOST_TASKS] = number_text(most);
        text[VALUE_TASKS_PER_NODE] = tasks_per_node(c);
        text[VALUE_NODE_LIST] = compat_env_node_list(c);
        if (l->node_rank < c->n_nodes)
                text[VALUE_NODE_NAME] = xstrdup(c->nodes[l->node_rank].name);
}

/* Lists the devices of all ranks of the node, each once: ranks may share some. */
static void list_gpus(struct intlist *gpus, const struct launch_order *l)
{
        for (uint32_t i = 0; i < l->n_ranks; i++)
                for (uint32_t g = 0; g < l->ranks[i].n_gpus; g++)
                        if (!intlist_has(gpus, (int)l->ranks[i].gpus[g]))
                                intlist_add(gpus, (int)l->ranks[i].gpus[g]);
}

/* Returns the position of a device among the devices visible to a rank of the node: in the order of
 * CUDA_VISIBLE_DEVICES where worker_env.c sets the variable, else by number. */
static unsigned gpu_position(const struct intlist *gpus, const struct launch_order *l, int gpu)
{
        unsigned position = 0;

        for (size_t i = 0; i < gpus->n; i++) {
                if (l->set_visible && gpus->v[i] == gpu)
                        break;
                /* Without the variable the devices are counted by number. */
                position += l->set_visible || gpus->v[i] < gpu;
        }
        return position;
}

/* Fills in the values of the node's devices; none are assigned on a node without. */
static void read_devices(char **text, const struct launch_order *l, const struct launch_rank *r)
{
        CLEANUP(intlist_finish) struct intlist gpus = { 0 };
        struct buf mine = BUF_INIT;

        list_gpus(&gpus, l);
        if (gpus.n)
                text[VALUE_GPUS_HERE] = number_text((uint32_t)gpus.n);
        for (uint32_t i = 0; i < r->n_gpus; i++)
                buf_printf(&mine, "%s%u", i ? "," : "",
                           /* The rank sees only its own. */
                           l->gpu_visibility_own ? i : gpu_position(&gpus, l, (int)r->gpus[i]));
        if (r->n_gpus)
                text[VALUE_JAX_DEVICES] = buf_steal(&mine);
}

/* Makes a number of the run's name (FNV-1a), equal on all nodes and in all attempts. */
static uint32_t job_number(const char *run_id)
{
        uint32_t hash = 2166136261U;

        for (const char *c = run_id; *c; c++)
                hash = (hash ^ (unsigned char)*c) * 16777619U;
        return hash % (JOB_NUMBER_MAX - 1) + 1; /* 1 at least: 0 is no job in Slurm */
}

/* Fills in the values of this node and of the job as a whole. */
static void read_compat_job(char **text, const struct launch_order *l, unsigned cores)
{
        struct buf here = BUF_INIT;
        char name[WORLD_NAME_MAX];

        launch_order_world_name(l, name);
        for (uint32_t i = 0; i < l->n_ranks; i++)
                buf_printf(&here, "%s%u", i ? "," : "", l->ranks[i].rank);
        if (l->n_ranks)
                text[VALUE_RANKS_HERE] = buf_steal(&here);
        text[VALUE_CORES_HERE] = number_text(cores);
        text[VALUE_CORES_PER_RANK] = number_text(MAX(cores / MAX(l->n_ranks, 1U), 1U));
        text[VALUE_JOB_NUMBER] = number_text(job_number(name));
        text[VALUE_JOB_NAME] = xstrdup("hnlaunch");
        text[VALUE_STEP] = number_text(0);
        if (l->restart) /* Slurm sets no variable in the first run */
                text[VALUE_RESTARTS] = number_text(l->restart);
}

/* Fills in the values of the port kept for JAX. Number 0 is not known yet. */
static void read_jax_port(char **text, const struct launch_first_node *first)
{
        const char *addr = first->addr;
        bool v6 = strchr(addr, ':');
        char port[24];

        for (uint32_t i = 0; i < first->n_ports && *addr; i++) {
                if (strcmp(first->ports[i].name, COMPAT_JAX_PORT) != 0)
                        continue;
                snprintf(port, sizeof(port), first->ports[i].number ? "%u" : "(free port there)",
                         first->ports[i].number);
                text[VALUE_JAX_PORT] = xstrdup(port);
                text[VALUE_JAX_ADDRESS] = xasprintf(v6 ? "[%s]:%s" : "%s:%s", addr, port);
                /* The form of Open MPI's daemon: a name, a semicolon and addresses. JAX reads the
                 * address. */
                text[VALUE_ORTE_URI] =
                        xasprintf("0.0;%s://%s", v6 ? "tcp6" : "tcp", text[VALUE_JAX_ADDRESS]);
                return;
        }
}

/* Each text is malloc'ed, NULL = not known. compat_env_set() frees all texts. */
static void read_values(char **text, const struct launch_order *l, const struct launch_rank *r,
                        unsigned cores)
{
        text[VALUE_RANK] = number_text(r->rank);
        text[VALUE_SIZE] = number_text(l->world_size);
        text[VALUE_LOCAL_RANK] = number_text(r->local_rank);
        text[VALUE_LOCAL_SIZE] = number_text(l->n_ranks);
        text[VALUE_NODE] = number_text(l->node_rank);
        text[VALUE_NODES] = number_text(l->num_nodes);
        read_nodes(text, l, r);
        read_compat_job(text, l, cores);
        read_devices(text, l, r);
        read_jax_port(text, &l->first_node);
}

void compat_env_set(struct strv *own, const struct strv *given UNUSED, const struct launch_order *l,
                    const struct launch_rank *r, unsigned cores)
{
        char *text[COMPAT_VALUES] = { 0 };

        if (!l->compat.family)
                return;
        read_values(text, l, r, cores);
        for (size_t i = 0; i < ARRAY_SIZE(compat_rows); i++) {
                const char *name = compat_rows[i].name;
                /* JAX reads its own variables first, so a coordinator chosen by the user stays. */
                bool kept = !strncmp(name, "JAX_", 4) && strv_env_get(given, name);

                if (compat_rows[i].family == l->compat.family && text[compat_rows[i].value] &&
                    !kept)
                        strv_env_set(own, name, text[compat_rows[i].value]);
        }
        for (size_t i = 0; i < COMPAT_VALUES; i++)
                free(text[i]);
}
