/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elf/elf_libs.h"

#include "lib/unit.h"

TEST(families_are_told_by_name)
{
        static const struct {
                const char *name;
                enum mpi_family family;
        } cases[] = {
                { "libmpi.so.40", MPI_FAMILY_OPEN_MPI },
                { "/opt/lib/libmpi.so.40.30.4", MPI_FAMILY_OPEN_MPI },
                { "libmpi_mpifh.so.40", MPI_FAMILY_OPEN_MPI },
                { "libmpi_cxx.so.40", MPI_FAMILY_OPEN_MPI },
                { "libmpi.so.12", MPI_FAMILY_MPICH },
                { "libmpi_ilp64.so.4.1", MPI_FAMILY_MPICH },
                { "libmpich.so.12", MPI_FAMILY_MPICH },
                { "/usr/lib/libmpichfort.so.12", MPI_FAMILY_MPICH },
                { "libmpi.so", MPI_FAMILY_MPICH },
                { "libmpi_abi.so.0", MPI_FAMILY_ANY },
                { "libmpi_abi.so", MPI_FAMILY_ANY },
                { "libmpilike.so.1", MPI_FAMILY_NONE },
                { "libc.so.6", MPI_FAMILY_NONE },
                { "/libmpi.so.40/", MPI_FAMILY_NONE },
                { "", MPI_FAMILY_NONE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(mpi_library_family(cases[i].name), cases[i].family);
}
