/* SPDX-License-Identifier: Apache-2.0 */
#include "head/options/option_foreign.h"

#include <string.h>

#include "base/macros.h"

#define RENDEZVOUS "ranks meet at a store that hnlaunch serves"
#define BINDING                                                                                    \
        "ranks are not bound to cores; put `taskset -c LIST` or `numactl` in front of the program"

const struct option_foreign option_foreigns[] = {
        /* torchrun, deepspeed */
        { "standalone", 0, true, RENDEZVOUS },
        { "rdzv-backend", 1, true, RENDEZVOUS },
        { "rdzv-endpoint", 1, true, RENDEZVOUS },
        { "rdzv-id", 1, true, RENDEZVOUS },
        { "rdzv-conf", 1, true, RENDEZVOUS },
        { "master-port", 1, true, "hnlaunch takes a free port of rank 0's node" },
        { "master-addr", 1, true,
          "hnlaunch takes an address of rank 0's node; --iface chooses its network" },
        { "no-python", 0, true, "the program is started as it is, without an interpreter" },
        /* mpirun */
        { "allow-run-as-root", 0, true, "root may always use hnlaunch" },
        { "map-by", 1, false, "--map slot or --map node; --ppn N for ppr:N:node" },
        { "bind-to", 1, false, BINDING },
        { "report-bindings", 0, false, BINDING },
        { "mca", 2, false,
          "hnlaunch has no MCA parameters; for a program that reads them: -x "
          "OMPI_MCA_NAME=VALUE" },
        { "tag-output", 0, false,
          "lines are labelled without it; --label TEMPLATE changes the label" },
        { "output-filename", 1, false, "--log-dir DIR keeps the output in one file per rank" },
        { "display-map", 0, false, "hnlaunch plan, or --dry-run, shows the ranks of each host" },
        /* srun */
        { "cpus-per-task", 1, false, BINDING ", -x OMP_NUM_THREADS=N sets its threads" },
};
const size_t option_foreign_count = ARRAY_SIZE(option_foreigns);
_Static_assert(ARRAY_SIZE(option_foreigns) <= OPTION_FOREIGN_MAX, "OPTION_FOREIGN_MAX");

const struct option_foreign *option_foreign_by_name(const char *name)
{
        for (size_t i = 0; i < option_foreign_count; i++)
                if (!strcmp(option_foreigns[i].name, name))
                        return &option_foreigns[i];
        return NULL;
}

const struct option_letter option_letters[] = {
        { 'N', "ranks per node in mpirun, nodes in srun and flux",
          "--ppn N (ranks per node) or --nodes N (hosts)" },
        { 'f', "the hostfile in mpiexec.hydra, the fan-out in pdsh",
          "-H FILE (hostfile) or --fanout N" },
        { 'i', "the identity in ssh, hosts to include in deepspeed",
          "--identity FILE or --include SPEC" },
        { 'l', "the label in srun, the user in pdsh and ssh", "--label TEMPLATE or --user NAME" },
        { 'm', "a Python module in torchrun, the distribution of ranks in srun",
          "python -m PKG.MODULE as the program, or --map slot|node" },
        { 'D', "the working directory in srun, a forwarded port in ssh", "--chdir DIR" },
        { 't', "a time limit in srun, a terminal in ssh, copied output in torchrun",
          "--timeout TIME, or --log-dir DIR (output in files as well)" },
        { 'c', "cores per rank in srun, copies of the program in mpirun",
          "-n N (ranks in all) or --ppn N; cores are not bound" },
        { 'g', "GPUs per rank in flux, a group of hosts in pdsh", "--gpus-per-rank N, or -w LIST" },
};
const size_t option_letter_count = ARRAY_SIZE(option_letters);
