/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ras text: the answer of NCCL's RAS about the communicators of a job
 *
 * Reads the JSON of NCCL 2.28.7 and newer, and the text of older releases (the commands STATUS and
 * VERBOSE STATUS). Keeps the differences between the ranks of a communicator: the number of
 * launched operations of a kind, and ranks without an answer. Source: NCCL's
 * src/ras/client_support.cc. Untrusted text: any bytes are fine. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ras_process {
        int rank;  /* in the communicator */
        int world; /* rank of the job, which ras_map() finds; -1 = not known */
        int pid;
        char host[64]; /* the address printed by NCCL */
};

/* Ranks that have launched equally many operations of a kind. */
struct ras_count {
        char operation[24]; /* "AllReduce" */
        uint64_t launched;
        size_t n_ranks;
        struct ras_process *v; /* the named ranks: all in JSON, a minority in text */
        size_t n;
};

/* A communicator with a difference between its ranks. */
struct ras_comm {
        char name[24];            /* "aea172016e9db09d" */
        size_t size;              /* ranks; of text, only ranks with an answer */
        struct ras_count *counts; /* of an operation together, the fewest first */
        size_t n_counts;
        struct ras_process *missing; /* have not answered */
        size_t n_missing;
};

struct ras_answer {
        char version[24]; /* of NCCL */
        int n_all;        /* communicators in all; -1 = not known */
        struct ras_comm *comms;
        size_t n_comms;
};

/* False = no answer of RAS. Free @ret in both cases. */
bool ras_parse(struct ras_answer *ret, const char *text, size_t len);
void ras_finish(struct ras_answer *a);

/* Drops from @now every difference that @before, an earlier answer, does not have: in a running
 * job, differences are gone a moment later. */
void ras_keep_lasting(struct ras_answer *now, const struct ras_answer *before);
/* Moves the differences of another world's answer to those of @to, which may be all zeros. */
void ras_join(struct ras_answer *to, struct ras_answer *from);
/* Fills .world of all processes. */
void ras_map(struct ras_answer *a, int (*find)(void *ctx, const struct ras_process *p), void *ctx);
