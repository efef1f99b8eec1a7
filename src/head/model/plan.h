/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan: hosts x inventory x options -> rank table
 *
 * Pure. Ranks are assigned host by host in hostfile order, or that of host_site.turn
 * (PLAN_MAP_SLOT) or round robin over the hosts (PLAN_MAP_NODE); R = first(n) + local with first(n)
 * = the processes of all earlier nodes. A process holds gpus_per_rank neighbouring slots of its
 * node.
 *
 * The slots of a node are slots=, else its GPUs, else 1; where GPUs are assigned a slot is a GPU,
 * so a node with 4 GPUs and gpus_per_rank 2 holds 2 processes. A node known to have no GPU gets
 * none assigned and may have any number of slots. With --local, slots= counts processes. Where
 * nothing is known (plan without --probe), slot k stands for GPU k. --ppn replaces the number of
 * processes and must fit the slots, if a number is given or known. --oversubscribe lifts the limits
 * up to max_slots=; GPUs are then shared from the first on. With per_node every node left by the
 * filters has a single slot, and the rank holds all devices left by the filters.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "head/hosts/hosts.h"

enum plan_map { PLAN_MAP_SLOT, PLAN_MAP_NODE };

struct plan_options {
        int np;            /* total ranks, 0 = all slots */
        int ppn;           /* ranks per node, 0 = slots, PLAN_PPN_GPU, PLAN_PPN_CPU */
        int gpus_per_rank; /* default 1; 0 = assign no GPUs */
        enum plan_map map;
        bool oversubscribe;
        bool per_node; /* one rank per node, with all its GPUs, whatever the slots */
        bool local; /* --local: more ranks than GPUs are allowed, and than slots if none are given
                     */
};
enum {
        PLAN_PPN_GPU = -1,
        PLAN_PPN_CPU = -2, /* ranks per core, without devices */
        PLAN_MAX_RANKS = 1 << 20,
};

/* How a node would bind a rank. */
struct plan_binding {
        bool asked; /* the node, which has not answered */
        char *cpus; /* "0-3,8"; "" = not bound, NULL = not known */
        char *why;  /* why the rank is not bound; NULL = nothing to say */
        int node;   /* of preferred memory; -1 = no preference */
        char *nics; /* "mlx5_0:1"; "" = none is chosen */
};

/* The inventory of a node; from HELLO, or unknown (plan without --probe). */
struct plan_inventory {
        bool known;
        int gpus, cores;
        const int *gpu_index; /* @gpus device indices; NULL = 0..gpus-1 */
        uint64_t memory;      /* bytes of RAM */
        const char *arch;     /* "x86_64" */
        /* CUDA_VISIBLE_DEVICES has chosen @gpus, whose number is known even if nothing else is. */
        bool chosen;
        struct plan_binding *bindings; /* by place in plan_node.ranks; NULL = not asked */
};

/* Ranks that meet each other, with the numbers 0 to size - 1 among themselves. The ranks of a world
 * follow each other in plan.ranks, in the order of these numbers. */
struct plan_world {
        int first; /* plan_rank.rank of rank 0 of the world */
        int size, num_nodes;
};

struct plan_rank {
        int rank;             /* unique in the job */
        int node, local_rank; /* @node indexes plan.nodes; @local_rank counts there, in the world */
        int world, node_rank; /* @world indexes plan.worlds, @node_rank counts its nodes */
        int program;          /* number of its program, plan_share() */
        const char *role;     /* lent; NULL = none */
        struct intlist gpus;  /* device indices, empty = none assigned */
};

struct plan_node {
        size_t host;          /* index into hosts */
        int node_rank;        /* -1 = unused */
        int slots;            /* capacity in ranks, without --oversubscribe */
        int n_ranks;          /* used */
        int first_rank;       /* of a PLAN_MAP_SLOT plan; else the lowest */
        struct intlist ranks; /* global ranks by local rank */
        struct intlist gpus;  /* devices assigned to this node's ranks */
        bool gpus_are_subset; /* not all of the node's: CUDA_VISIBLE_DEVICES is set */
};

struct plan {
        struct plan_node *nodes; /* by host */
        size_t n_nodes;
        struct plan_rank *ranks;   /* by rank */
        int world_size, num_nodes; /* of the job; num_nodes counts used nodes */
        struct plan_world *worlds; /* one in a job without roles */
        size_t n_worlds;
};

#define PLAN_INIT                                                                                  \
        {                                                                                          \
                0                                                                                  \
        }

/* See head/term/diag.h. */
struct diags;

/* Fills @p, which is PLAN_INIT and stays so on failure. @inv has hosts->n entries, or is NULL when
 * nothing is known. 0, or -EINVAL with errors in @diags (exit 69), a message for all nodes with the
 * same fault: --np above the nodes of --per-node (HN219), more ranks than slots (HN301), --ppn
 * above the capacity (HN302), a filter's slot that does not exist (HN303), --ppn gpu without GPUs
 * (HN304), more than PLAN_MAX_RANKS (HN306), only spare hosts (HN307), ranks with more GPUs than
 * any node has slots (HN308), slots above the GPUs (HN601), gpus= with a missing device (HN602).
 * Warns of unused GPUs (HN305). */
int plan_build(struct plan *p, const struct hosts *hosts, const struct plan_inventory *inv,
               const struct plan_options *o, struct diags *diags);
/* The same beside earlier plans of the job, whose devices and slots are in @taken, by host: these
 * are not given again, and those of this plan are added. With o->gpus_per_rank 0 the ranks take
 * none, and may be more than the free slots. */
int plan_build_beside(struct plan *p, const struct hosts *hosts, const struct plan_inventory *inv,
                      const struct plan_options *o, struct intlist *taken, struct diags *diags);
/* Returns the hosts in the order of their places, malloc'ed: a host that takes the place of another
 * stands there. Several may have taken one place, the later for the earlier. */
size_t *plan_order_hosts(const struct hosts *hosts);
/* Counts ranks and nodes of each world. The nodes of a world are numbered in the order of their
 * first ranks. */
void plan_count_worlds(struct plan *p);
/* Gives the ranks to @n programs, in order: @counts[i] ranks to program i, the ranks left over to
 * the program with 0. False: none is left. */
bool plan_share(struct plan *p, const int *counts, size_t n);
/* Moves all ranks of a node, with their numbers and devices, to an unused node. False: @to has
 * ranks, or too few slots. */
bool plan_move(struct plan *p, size_t from, size_t to);
/* Takes a node out, with its ranks. The others keep their order, and have no gaps: ranks and node
 * ranks are numbered again. */
void plan_leave_out(struct plan *p, size_t node);
/* Writes how people call a rank: "rank 3", or in a job of roles as role_rank_name(). Returns @to.
 */
enum { PLAN_RANK_NAME_MAX = 128 };
const char *plan_rank_name(const struct plan *p, int rank, char to[PLAN_RANK_NAME_MAX]);
/* Counts the worlds of the same role before this one. */
uint32_t plan_count_replicas(const struct plan *p, size_t world);
/* Returns the same number, or -1: the role has no other world. */
int plan_find_replica(const struct plan *p, size_t world);
/* Returns the roles of the world with their ranks, malloc'ed: "trainer:0-7,router:8"; NULL in a job
 * without roles. */
char *plan_list_world_roles(const struct plan *p, size_t world);
/* Whether ranks of the world are on the node. */
bool plan_has_world(const struct plan *p, size_t node, uint32_t world);
/* Whether ranks of the world on the node see only some of the GPUs that the job has there. */
bool plan_sets_visible(const struct plan *p, size_t node, uint32_t world);
void plan_finish(struct plan *p);
