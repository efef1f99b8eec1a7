/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence: the known facts of a failed attempt, for the decision about the next attempt
 *
 * Pure. Facts of the outcome and of the job, no guesses: a host is named only where the facts point
 * to a single host. head/model/restart_rule.h decides.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "head/hosts/hosts.h"
#include "head/model/outcome.h"
#include "head/model/plan.h"
#include "wire/status_msg.h"

enum evidence_kind {
        EVIDENCE_NONE,    /* no failure of ranks or nodes: an order, a limit, hnlaunch itself */
        EVIDENCE_EXIT,    /* a rank failed with @code */
        EVIDENCE_KILLED,  /* a rank was killed by a @signal that others send */
        EVIDENCE_FAULT,   /* by ILL, BUS, FPE, SEGV or ABRT, also when told by a shell */
        EVIDENCE_GPU,     /* the driver of the GPU, or the kernel, reports a broken one */
        EVIDENCE_HANG,    /* a hang; @host "" = it names none */
        EVIDENCE_DRAINED, /* a host was drained */
        EVIDENCE_LOST, /* a host or its agent was lost; all with @host "", and @text may say why */
        EVIDENCE_NODE, /* the node alone failed: push, spawn, /tmp of the node */
        EVIDENCE_MISSING, /* the program, the folder or a library: on no node */
        EVIDENCE_OOM,     /* the kernel's out-of-memory killer */
        EVIDENCE_PREPARE, /* files or the store could not be prepared; no host is known for it */
        EVIDENCE_FULL, /* @error (ENOSPC, EDQUOT, EROFS) on a file system not of the node alone */
        EVIDENCE_KINDS,
};

/* Whose file system a path is on. */
enum path_owner {
        PATH_UNKNOWN,
        PATH_OF_NODE, /* its own disk or memory */
        PATH_SHARED,  /* all nodes see it */
};

struct evidence {
        enum evidence_kind kind;
        int rank; /* -1 = none */
        int node; /* -1 = none */
        int code, signal, error;
        char host[256];        /* "" = none */
        char text[512];        /* of an exception or a report, masked; "" = none */
        char gpu[120];         /* what the node tells of a broken GPU; "" = nothing */
        char path[256];        /* that could not be written, in the rank's spelling; "" = unknown */
        enum path_owner owner; /* of it */
        bool echo;             /* the words tell of another's failure, or of waiting in vain */
        bool gave_up;          /* a rank exited with the code of --give-up */
        bool progress;         /* the attempt has won steps, or a newer checkpoint */
};

const char *evidence_name(enum evidence_kind kind); /* "exit", of summary.json */

/* Facts beyond the outcome. */
struct evidence_facts {
        const struct plan *plan;
        const struct hosts *hosts;
        int give_up; /* exit code */
        bool progress;
        /* Returns the facts of the nodes after a failure, by node; @path ("" = none) could not be
         * written. Valid until the next call. */
        const struct node_facts *(*ask)(void *ctx, const char *path);
        void *ctx;
};

/* Returns the owner of the file system of a path of @node, by the facts of each node about the
 * path: @facts, of @n nodes. Shared: the type is a network's, or another node has the same id. Of
 * the node: the type is local, and another node has another id. */
enum path_owner evidence_path_owner(const struct node_facts *facts, size_t n, size_t node);

/* Reads the evidence from the outcome of an attempt, after outcome_finalize(). */
void evidence_collect(struct evidence *ret, const struct outcome *o,
                      const struct evidence_facts *f);
