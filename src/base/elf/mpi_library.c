/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elf/mpi_library.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* Without fnmatch(), which is large in a static agent. */
enum mpi_family mpi_library_family(const char *name)
{
        static const char *const beginnings[] = { "libmpi.so",    "libmpi_",       "libmpich",
                                                  "libmpicxx.so", "libmpifort.so", "libpmpi.so" };
        const char *slash = strrchr(name, '/'), *number;

        name = slash ? slash + 1 : name;
        if (!strncmp(name, "libmpi_abi.so", 13))
                return MPI_FAMILY_ANY;
        for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
                if (strncmp(name, beginnings[i], strlen(beginnings[i])) != 0 ||
                    !strstr(name, ".so"))
                        continue;
                number = strstr(name, ".so.");
                return number && atoi(number + 4) >= 20 ? MPI_FAMILY_OPEN_MPI : MPI_FAMILY_MPICH;
        }
        return MPI_FAMILY_NONE;
}

const char *mpi_family_name(enum mpi_family family)
{
        static const char *const names[] = { "", "MPI", "Open MPI", "MPICH's ABI" };

        return names[family];
}

bool mpi_is_launcher(const char *name)
{
        static const char *const names[] = {
                "mpirun", "mpiexec", "mpiexec.hydra", "mpirun_rsh", "orterun",         "orted",
                "prun",   "prterun", "prte",          "prted",      "hydra_pmi_proxy", "srun",
                "aprun",  "jsrun",   "flux",          "hnlaunch",   "hnlaunch-agent",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strcmp(name, names[i]))
                        return true;
        return false;
}
