/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "head/alloc/alloc_reader.h"
#include "head/hosts/hostfile.h"

/* MPI Operator, and the MPI runtime of Kubeflow Trainer: the hostfile of the launcher pod, written
 * for Open MPI (worker slots=8), Intel MPI or MPICH (worker:8). With runLauncherAsWorker the
 * launcher itself comes first. */
int alloc_mpi_operator_read(struct alloc_reader *r)
{
        const struct alloc_input *in = r->in;

        if (hostfile_parse(r->hosts, in->path, in->text, in->len, r->diags) < 0)
                return -EINVAL;
        alloc_settle(r, NULL, in->path, 0, NULL);
        return 0;
}
