/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "head/output/dump_files.h"
#include "head/report/report.h"
#include "wire/env/nccl_env.h"

/* Orders rank numbers for qsort(). */
static int compare_dumps(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Writes "rank 3" or "ranks 0-2,4", malloc'ed. Dumps arrive in no order: folding needs a sorted
 * copy. */
static char *name_ranks(const struct intlist *ranks)
{
        struct intlist sorted = { 0 };
        char *list, *text;

        for (size_t i = 0; i < ranks->n; i++)
                intlist_add(&sorted, ranks->v[i]);
        if (sorted.n)
                qsort(sorted.v, sorted.n, sizeof(*sorted.v), compare_dumps);
        list = intlist_fold(&sorted);
        text = xasprintf("rank%s %s", ranks->n == 1 ? "" : "s", list);
        free(list);
        intlist_finish(&sorted);
        return text;
}

void report_dumps(struct diags *d, const struct job *j)
{
        const struct dump_files *dumps = job_dump_files(j);
        const struct intlist *kept = dump_files_kept(dumps), *large = dump_files_large(dumps),
                             *dropped = dump_files_dropped(dumps);
        const char *path = dump_files_path(dumps), *error = dump_files_error(dumps);
        CLEANUP(free_textp) char *kept_ranks = name_ranks(kept);
        CLEANUP(free_textp) char *large_ranks = name_ranks(large);
        CLEANUP(free_textp) char *dropped_ranks = name_ranks(dropped);

        if (kept->n)
                diag_help(diag_tell(d, "dumps of PyTorch's flight recorder are in %s: %s", path,
                                    kept_ranks),
                          "torchfrtrace --prefix " NCCL_DUMP_NAME " %s names the collective that "
                          "failed, and the ranks that missed it",
                          path);
        /* After a success dropped dumps are no loss. */
        if (dropped->n && outcome_failed(job_outcome(j)))
                diag_help(diag_tell(d, "dumps of PyTorch's flight recorder were not kept: %s",
                                    dropped_ranks),
                          "--log-dir DIR keeps them");
        if (error)
                diag_help(diag_warn(d, HN_DUMPS_MISSING,
                                    "dumps of PyTorch's flight recorder are missing: %s", error),
                          "make room, or choose another --log-dir");
        if (large->n)
                diag_help(diag_warn(d, HN_DUMPS_MISSING,
                                    "dumps of PyTorch's flight recorder are missing: larger than "
                                    "%d MiB: %s",
                                    MSG_MAX_DUMP >> 20, large_ranks),
                          "make them smaller: TORCH_FR_BUFFER_SIZE=500");
}
