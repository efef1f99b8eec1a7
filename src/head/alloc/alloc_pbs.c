/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "head/alloc/alloc_reader.h"
#include "head/hosts/hostfile.h"

/* PBS_NODEFILE has a line per slot, and repeated lines of a hostfile add up. Torque may be set up
 * to write each node once, with the slots of each in PBS_PPN. */
int alloc_pbs_read(struct alloc_reader *r)
{
        const struct alloc_input *in = r->in;
        const char *from = "PBS_NODEFILE", *ppn = alloc_variable(in->env, "PBS_PPN");
        CLEANUP(alloc_text_finish) struct alloc_text t = { 0 };
        struct alloc_count slots;
        bool repeated = false;
        size_t at = 0;

        if (!in->path)
                return alloc_lacks(r, "PBS_NODEFILE", "PBS_JOBID");
        if (hostfile_parse(r->hosts, in->path, in->text, in->len, r->diags) < 0)
                return -EINVAL;
        for (size_t i = 0; i < r->hosts->n; i++)
                repeated |= r->hosts->v[i].slots > 1;
        if (ppn && !repeated) {
                from = "PBS_PPN";
                alloc_text_open(&t, r, from);
                if (alloc_take_number(&t, &at, SLOTS_MAX, &slots) < 0)
                        return -EINVAL;
                for (size_t i = 0; i < r->hosts->n; i++)
                        r->hosts->v[i].slots = slots.value;
        }
        alloc_settle(r, alloc_variable(in->env, "PBS_JOBID"), from, 0, NULL);
        return 0;
}
