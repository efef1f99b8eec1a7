/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look orders dumps from each node and counts the answers. Each part is written to the file of
 * its rank as the part comes, so no dump is held in memory. Ranks without a dump are folded by
 * reason. The folder has the first number that no earlier look of the run has used.
 */
#include "head/watch/look_flight.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/job/job.h"
#include "head/output/run_dir.h"
#include "head/run/run_folders.h"
#include "wire/env/nccl_env.h"

enum {
        DUMPS_MS = 5000,       /* a monitor thread reads its FIFO about once a second */
        DUMPS_MARGIN_MS = 500, /* before the end of the look: the way home */
        /* Folders of one run. */
        LOOKS_MAX = 1000,
        FLIGHT_PROBLEMS_MAX = 8,
        TOLD_RANKS_MAX = 1 << 16, /* with one problem */
};

#define DUMPS_MAX (UINT64_C(256) << 20) /* bytes of a look */

/* Returns the name of a new folder, malloc'ed; NULL = no records. */
static char *name_dump_folder(const struct run_view *r)
{
        CLEANUP(free_textp) char *records = run_folders_records();

        if (!records || !run_dir_recorder(r->dir))
                return NULL;
        for (int i = 1; i < LOOKS_MAX; i++) {
                char *path = xasprintf("%s/%s/flight-recorder-why-%d", records, r->id, i);

                if (access(path, F_OK) < 0)
                        return path;
                free(path);
        }
        return NULL;
}

void look_flight_begin(struct look_flight *f, const struct run_view *r, uint32_t number,
                       int64_t until)
{
        CLEANUP(free_textp) char *path = name_dump_folder(r);
        int64_t limit_ms = MIN(until - clock_ms() - DUMPS_MARGIN_MS, (int64_t)DUMPS_MS);
        struct inspect_order o = { .number = number,
                                   .what = INSPECT_FLIGHT,
                                   .limit_ms = (uint32_t)MAX(limit_ms, INT64_C(0)) };

        *f = (struct look_flight){ 0 };
        if (!path)
                return;
        *f = (struct look_flight){ .r = r, .number = number, .until = until };
        f->dumps = dump_files_create_at(path, r->plan->n_nodes, DUMPS_MAX);
        f->asked = xcalloc(r->plan->n_nodes, sizeof(*f->asked));
        for (size_t i = 0; i < r->plan->n_nodes; i++) {
                f->asked[i] = job_inspect(r->job, i, &o);
                f->n_asked += f->asked[i];
        }
        /* Ranks may write output about the dump, which is no sign of life. */
        job_dumping(r->job, f->n_asked > 0);
}

/* Adds the rank to those with the same problem. Of very many problems or ranks the first are
 * kept. */
static void add_flight_problem(struct look_flight *f, const struct dump *m)
{
        struct flight_problem *p = NULL;

        for (size_t i = 0; i < f->n_problems && !p; i++)
                if (!strcmp(f->problems[i].text, m->problem))
                        p = &f->problems[i];
        if (!p && f->n_problems == FLIGHT_PROBLEMS_MAX)
                return;
        if (!p) {
                f->problems = xrealloc(f->problems, f->n_problems + 1, sizeof(*f->problems));
                p = &f->problems[f->n_problems++];
                *p = (struct flight_problem){ 0 };
                memcpy(p->text, m->problem, sizeof(p->text));
        }
        if (p->ranks.n < TOLD_RANKS_MAX)
                intlist_add(&p->ranks, (int)m->rank);
}

int look_flight_take(struct look_flight *f, int node, const struct dump *m, struct error *err)
{
        if (!f->number || m->number != f->number || !f->asked[node])
                return 0; /* late */
        /* A problem may come in the middle of a dump, whose part is then removed. */
        if (m->rank <= INT32_MAX && *m->problem) {
                dump_files_end(f->dumps, node);
                add_flight_problem(f, m);
        } else if (m->len && dump_files_take(f->dumps, node, m, err) < 0) {
                return -EPROTO;
        }
        if (!m->left) {
                f->asked[node] = false;
                f->n_asked--;
                dump_files_end(f->dumps, node);
        }
        return 0;
}

/* --- what is known ---------------------------------------------------------------------------- */

static int compare_flight_ranks(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Returns "rank 3" or "ranks 0-2,4", malloc'ed. */
static char *name_flight_ranks(const struct intlist *ranks)
{
        CLEANUP(intlist_finish) struct intlist sorted = { 0 };
        CLEANUP(free_textp) char *list = NULL;

        for (size_t i = 0; i < ranks->n; i++)
                intlist_add(&sorted, ranks->v[i]);
        qsort(sorted.v, sorted.n, sizeof(*sorted.v), compare_flight_ranks);
        list = intlist_fold(&sorted);
        return xasprintf("rank%s %s", ranks->n == 1 ? "" : "s", list);
}

const char *look_flight_use(struct look_flight *f, struct why_finding *finding)
{
        const struct intlist *kept = dump_files_kept(f->dumps);
        const char *error = dump_files_error(f->dumps), *path = dump_files_path(f->dumps);

        if (kept->n) {
                CLEANUP(free_textp) char *names = name_flight_ranks(kept);

                strv_pushf(&finding->notes,
                           "dumps of PyTorch's flight recorder of %s: torchfrtrace "
                           "--prefix " NCCL_DUMP_NAME
                           " %s names the collective that some have not entered",
                           names, path);
        }
        for (size_t i = 0; i < f->n_problems; i++) {
                CLEANUP(free_textp) char *names = name_flight_ranks(&f->problems[i].ranks);

                strv_pushf(&finding->notes, "no dump of PyTorch's flight recorder of %s: %s", names,
                           f->problems[i].text);
        }
        if (error)
                strv_pushf(&finding->notes, "dumps of PyTorch's flight recorder are missing: %s",
                           error);
        return kept->n ? path : NULL;
}

void look_flight_finish(struct look_flight *f)
{
        for (size_t i = 0; i < f->n_problems; i++)
                intlist_finish(&f->problems[i].ranks);
        free(f->problems);
        free(f->asked);
        dump_files_destroy(f->dumps);
        *f = (struct look_flight){ 0 };
}
