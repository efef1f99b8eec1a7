/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_rules: decisions of hnlaunch/nccl.h without asking NCCL
 *
 * How many unique ids a communicator gets and which ranks make them, and whether NCCL would accept
 * the ranks' versions and devices. Needs neither NCCL nor CUDA.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ranks served by one unique id; more ranks get more ids (NCCL 2.23 and newer). */
#ifndef HN_NCCL_RANKS_PER_ID
#define HN_NCCL_RANKS_PER_ID 128
#endif

/* How many ids @n ranks need. */
static inline int hn_nccl_ids_for(int n)
{
        return n <= HN_NCCL_RANKS_PER_ID ? 1
                                         : (n + HN_NCCL_RANKS_PER_ID - 1) / HN_NCCL_RANKS_PER_ID;
}

/*
 * Returns which of @n_ids ids @rank of @n makes, or -1. NCCL assigns the ranks to the ids in
 * blocks, the first n mod n_ids of them one rank longer; the first rank of each block makes the id.
 */
static inline int hn_nccl_id_of(int rank, int n, int n_ids)
{
        int more = n % n_ids, each = n / n_ids, limit = more * (each + 1);

        if (rank < limit)
                return rank % (each + 1) ? -1 : rank / (each + 1);
        return (rank - limit) % each ? -1 : more + (rank - limit) / each;
}

/* The data that each rank sends to the others before NCCL is called. */
typedef struct hn_nccl_card {
        int version;      /* as ncclGetVersion() says */
        int node;         /* hn_node_rank() */
        int device;       /* as cudaGetDevice() says, -1 = not known */
        int may_share;    /* NCCL was told to accept several ranks on one GPU */
        char address[32]; /* PCI address of the device, "" = not known */
} hn_nccl_card;

typedef enum hn_nccl_trouble {
        HN_NCCL_FINE = 0,
        HN_NCCL_VERSIONS = 1, /* two ranks have different NCCLs */
        HN_NCCL_SHARED = 2    /* two ranks have the same GPU */
} hn_nccl_trouble;

static inline int hn_nccl_by_device(const void *a, const void *b)
{
        const hn_nccl_card *x = *(const hn_nccl_card *const *)a;
        const hn_nccl_card *y = *(const hn_nccl_card *const *)b;
        int order =
                x->node != y->node ? (x->node < y->node ? -1 : 1) : strcmp(x->address, y->address);

        return order ? order : x < y ? -1 : x > y;
}

/* Checks whether neighbours in a list sorted by device are the same GPU. */
static inline int hn_nccl_same_device(const hn_nccl_card *x, const hn_nccl_card *y)
{
        return x->address[0] && x->node == y->node && strcmp(x->address, y->address) == 0 &&
               !x->may_share && !y->may_share;
}

/*
 * Finds the first conflict among the cards of @n ranks: *a < *b are two incompatible ranks. All
 * ranks find the same pair, so all of them stop. HN_ERR_NOMEM (below 0).
 */
static inline int hn_nccl_find_trouble(const hn_nccl_card *cards, int n, int *a, int *b)
{
        const hn_nccl_card **sorted;
        int found = HN_NCCL_FINE;

        for (int i = 1; i < n; i++)
                if (cards[i].version != cards[0].version) {
                        *a = 0;
                        *b = i;
                        return HN_NCCL_VERSIONS;
                }
        sorted = (const hn_nccl_card **)calloc((size_t)n, sizeof(*sorted));
        if (!sorted)
                return HN_ERR_NOMEM;
        for (int i = 0; i < n; i++)
                sorted[i] = &cards[i];
        qsort((void *)sorted, (size_t)n, sizeof(*sorted), hn_nccl_by_device);
        for (int i = 1; i < n && !found; i++)
                if (hn_nccl_same_device(sorted[i - 1], sorted[i])) {
                        *a = (int)(sorted[i - 1] - cards);
                        *b = (int)(sorted[i] - cards);
                        found = HN_NCCL_SHARED;
                }
        free((void *)sorted);
        return found;
}

/* A version of ncclGetVersion(), 22203, as the arguments of "%d.%d.%d". */
#define HN_NCCL_DIGITS(version) (version) / 10000, (version) / 100 % 100, (version) % 100

/* hn_nccl_find_trouble() as a status with a sentence that names ranks, hosts and devices. @cards
 * are in the order of @group. HN_ERR_MISMATCH, HN_ERR_NOMEM. */
static inline hn_status hn_nccl_compare_cards(hn_group *group, const hn_nccl_card *cards, int n)
{
        int a = 0, b = 0, trouble = hn_nccl_find_trouble(cards, n, &a, &b);
        int rank_a = hn_get_global_rank(group, a), rank_b = hn_get_global_rank(group, b);
        const char *host_a = trouble > 0 ? hn_hostname_of(rank_a) : "";
        const char *host_b = trouble > 0 ? hn_hostname_of(rank_b) : "";

        if (trouble == HN_NCCL_FINE)
                return HN_OK;
        if (trouble < 0)
                return hn_set_error(HN_ERR_NOMEM, "out of memory");
        if (trouble == HN_NCCL_VERSIONS)
                return hn_set_error(HN_ERR_MISMATCH,
                                    "rank %d (%s) has NCCL %d.%d.%d, rank %d (%s) has NCCL "
                                    "%d.%d.%d: all ranks need the same libnccl.so.2",
                                    rank_a, host_a ? host_a : "?", HN_NCCL_DIGITS(cards[a].version),
                                    rank_b, host_b ? host_b : "?",
                                    HN_NCCL_DIGITS(cards[b].version));
        return hn_set_error(HN_ERR_MISMATCH,
                            "ranks %d and %d (%s) both use GPU %d (%s): call "
                            "cudaSetDevice(hn_local_rank()) first",
                            rank_a, rank_b, host_a ? host_a : "?", cards[a].device,
                            cards[a].address);
}

#ifdef __cplusplus
}
#endif
