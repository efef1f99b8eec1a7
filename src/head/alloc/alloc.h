/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alloc: the allocation of a resource manager -> hosts with slots, in the manager's order
 *
 * A reader per manager takes variables and the text of a file, and adds hosts or errors; it opens
 * nothing. Slots of a node are its tasks; where no node has more than one task, the GPUs that the
 * manager counts; else not given, so that the node's own GPUs or 1 count. A host is local when it
 * is this machine.
 *
 * Messages point into the variable's text, or name the file's line. All errors exit with 65, but
 * for a manager that is asked for and not there, and a launch of several copies (64).
 *
 * Pure but for alloc_load(), alloc_claim() and alloc_check_given(). Not for two threads on one list
 * or @d.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* MANAGER(NAME, word of --scheduler, description in the reader's file): the managers in the order
 * in which the help lists them, and in which alloc_find() tries them. A new reader is its file and
 * a row here. */
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
        /* The file of alloc_path() or output of alloc_command(), and a name for it; NULL = none.
         * The text ends with a NUL behind @len. */
        const char *path, *text;
        size_t len;
        int64_t now; /* seconds since 1970 */
        bool ppn;    /* --ppn: tasks do not count */
        bool asked;  /* the user named the manager: doubts about the origin of the variables are set
                      * aside */
};

/* Returns the manager whose allocation @env describes, ALLOC_NONE without one. The innermost of
 * several: a manager can run inside the allocation of another. Never ALLOC_RAY. */
enum alloc_from alloc_find(char *const *env);

/* Returns the manager's name for messages: "Slurm". @from is none of auto and none. */
const char *alloc_title(enum alloc_from from);

/* Returns the path of the file that alloc_read() needs, lent by @env; NULL = none, or @env is of no
 * such allocation. */
const char *alloc_path(enum alloc_from from, char *const *env);
/* Returns the command whose output alloc_read() needs, ended by NULL; NULL as above. */
const char *const *alloc_command(enum alloc_from from, char *const *env);

/* Reads the allocation of @from into the empty list @h, with h->source and h->slots_source. 0, or
 * -EINVAL with errors in @d: this is no such allocation (HN153), a variable is missing (HN150), a
 * text is wrong (HN151, or the number of a list of hosts), counts contradict each other (HN152),
 * the variables are of another machine or of an allocation that has ended (HN155), or one of
 * several copies runs here (HN156). */
int alloc_read(enum alloc_from from, const struct alloc_input *in, struct hosts *h,
               struct diags *d);

/* Reads the allocation around this process; @from ALLOC_AUTO takes that of alloc_find(), which must
 * be one. @ppn as in struct alloc_input. Returns as alloc_read(), also for a file that cannot be
 * read (HN150) and a command of the manager that fails or has not ended in time (HN157). */
int alloc_load(enum alloc_from from, bool ppn, struct hosts *h, struct diags *d);

/* Claims the allocation that alloc_load() read into @h until the process ends. Warns when another
 * hnlaunch of this user has it, on this machine (HN158). Nothing happens where that cannot be told.
 */
void alloc_claim(const struct hosts *h, struct diags *d);

/* Warns of hosts in @given that the allocation around this process lacks (HN154). Names are
 * compared, not addresses. An allocation that cannot be read, or only by a command, is passed over.
 */
void alloc_check_given(enum alloc_from from, const struct hosts *given, struct diags *d);
