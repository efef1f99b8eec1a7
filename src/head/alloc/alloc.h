/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alloc: the allocation of a resource manager -> hosts with slots, in the manager's order
 *
 * A reader per manager takes variables and the text of a file, adds hosts or errors, and opens
 * nothing. Slots of a node are the tasks there; where no node has more than a task, the GPUs
 * counted by the manager; else not given, and the node's own GPUs or 1 count. This machine is a
 * local host.
 *
 * Messages point into the variable's text, or name the file's line. All errors exit with 65, but
 * for a manager asked for and not there, and a launch of several copies (64).
 *
 * Pure but for alloc_load(), alloc_claim() and alloc_check_given(). Not for two threads on the same
 * list or @d.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* MANAGER(NAME, word of --scheduler, description in the reader's file): the managers in the order
 * of the help and of alloc_find(). A new reader is a file and a row here. */
#define ALLOC_MANAGERS(MANAGER)                                                                    \
        MANAGER(SLURM, "slurm", alloc_slurm)                                                       \
        MANAGER(PBS, "pbs", alloc_pbs)                                                             \
        MANAGER(LSF, "lsf", alloc_lsf)                                                             \
        MANAGER(SGE, "sge", alloc_sge)                                                             \
        MANAGER(FLUX, "flux", alloc_flux)                                                          \
        MANAGER(MPI_OPERATOR, "mpi-operator", alloc_mpi_operator)                                  \
        MANAGER(SAGEMAKER, "sagemaker", alloc_sagemaker)                                           \
        MANAGER(RAY, "ray", alloc_ray)

#define ALLOC_ID(NAME, word, description)   ALLOC_##NAME,
#define ALLOC_WORD(NAME, word, description) "|" word
enum alloc_from { ALLOC_AUTO, ALLOC_NONE, ALLOC_MANAGERS(ALLOC_ID) ALLOC_CHOICES };
/* The words of --scheduler. */
#define ALLOC_WORDS "auto|none" ALLOC_MANAGERS(ALLOC_WORD)

/* All borrowed. */
struct alloc_input {
        char *const *env;
        const char *host;   /* name of this machine */
        const char *cgroup; /* text of /proc/self/cgroup; NULL = unknown */
        /* The file of alloc_path() or output of alloc_command(), with a name; NULL = none.
         * The text ends with a NUL behind @len. */
        const char *path, *text;
        size_t len;
        int64_t now; /* seconds since 1970 */
        bool ppn;    /* --ppn: tasks do not count */
        bool asked;  /* the user named the manager: doubts about the origin of the variables are set
                      * aside */
};

/* Returns the manager of the allocation in @env, ALLOC_NONE without an allocation. The innermost of
 * several: a manager can run inside the allocation of another. Never ALLOC_RAY. */
enum alloc_from alloc_find(char *const *env);

/* Returns the manager's name for messages: "Slurm". @from is none of auto and none. */
const char *alloc_title(enum alloc_from from);

/* Returns the path of the file for alloc_read(), lent by @env; NULL = none, or @env has no
 * allocation of @from. */
const char *alloc_path(enum alloc_from from, char *const *env);
/* Returns the command with the output for alloc_read(), ended by NULL; NULL as above. */
const char *const *alloc_command(enum alloc_from from, char *const *env);

/* Reads the allocation of @from into the empty list @h, with h->source and h->slots_source. 0, or
 * -EINVAL with errors in @d: there is no allocation of @from (HN153), a variable is missing
 * (HN150), a text is wrong (HN151, or the number of a list of hosts), counts contradict each other
 * (HN152), the variables are of another machine or an ended allocation (HN155), or this process is
 * a copy among several (HN156). */
int alloc_read(enum alloc_from from, const struct alloc_input *in, struct hosts *h,
               struct diags *d);

/* Reads the allocation around this process; with @from ALLOC_AUTO the manager of alloc_find(), and
 * none is an error. @ppn as in struct alloc_input. Returns as alloc_read(), also for an unreadable
 * file (HN150) and a command of the manager without success or without an end in time (HN157). */
int alloc_load(enum alloc_from from, bool ppn, struct hosts *h, struct diags *d);

/* Claims the allocation of @h, from alloc_load(), until the process ends. Warns when another
 * hnlaunch of this user holds the allocation on this machine (HN158). Does nothing where no claim
 * is possible.
 */
void alloc_claim(const struct hosts *h, struct diags *d);

/* Warns of hosts in @given outside the allocation around this process (HN154). Names are compared,
 * not addresses. An unreadable allocation is passed over, and a manager with a command, too: a
 * warning is not worth a command.
 */
void alloc_check_given(enum alloc_from from, const struct hosts *given, struct diags *d);
