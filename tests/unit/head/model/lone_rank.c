/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/lone_rank.h"

#include "base/memory.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* Returns what is said of the rank, malloc'ed; "" = nothing. */
static char *warning_of(const struct lone_rank *r)
{
        struct diags d = DIAGS_INIT;
        bool warned = lone_rank_warn(r, &d);
        char *text = diags_text(&d, false);

        assert_int_equal(warned, d.n > 0);
        assert_int_equal(diags_errors(&d), 0);
        diags_finish(&d);
        return text;
}

TEST(ranks_that_were_alone_are_told)
{
        static const struct {
                uint8_t used;
                unsigned kind;
                const char *mpi;
                bool joined;
                const char *said; /* a part; "" = nothing at all */
        } cases[] = {
                /* programs known by their file */
                { RANK_MPI_UNUSED, MPI_AUTO, "libmpi.so.12", false, "uses MPI (libmpi.so.12)" },
                { RANK_MPI_UNUSED, MPI_AUTO, "mpi4py", true, "--mpi pmix for Open MPI" },
                { RANK_MPI_FINALIZED, MPI_AUTO, "libmpi.so.12", false, "" },
                { RANK_MPI_UNFINALIZED, MPI_AUTO, "libmpi.so.12", false, "" },
                { RANK_MPI_UNUSED, MPI_AUTO, "", false, "" },
                /* libraries that were loaded */
                { RANK_MPI_UNUSED_OPEN_MPI, MPI_AUTO, "", false, "uses MPI (Open MPI)" },
                { RANK_MPI_UNUSED_OPEN_MPI, MPI_PMI2, "", false, "its MPI: --mpi pmix\n" },
                { RANK_MPI_UNUSED_OPEN_MPI, MPI_AUTO, "mpi4py", false, "its MPI: --mpi pmix\n" },
                { RANK_MPI_UNUSED_OPEN_MPI, MPI_PMIX, "", false, "" },
                { RANK_MPI_UNUSED_OPEN_MPI, MPI_AUTO, "", true, "" },
                { RANK_MPI_UNUSED_MPICH, MPI_PMIX, "", false, "its MPI: --mpi pmi1\n" },
                { RANK_MPI_UNUSED_MPICH, MPI_AUTO, "", false, "" },
                { RANK_MPI_UNUSED_MPICH, MPI_AUTO, "mpi4py", false, "uses MPI (mpi4py)" },
                { RANK_MPI_UNUSED_OPEN_MPI, MPI_NONE, "", false, "" },
                { RANK_MPI_UNUSED, MPI_NONE, "libmpi.so.12", false, "" },
                /* worlds of one */
                { RANK_MPI_ALONE_OPEN_MPI, MPI_AUTO, "", false, "its MPI: --mpi pmix\n" },
                { RANK_MPI_ALONE_OPEN_MPI, MPI_AUTO, "", true, "" },
                { RANK_MPI_ALONE_OPEN_MPI, MPI_NONE, "", false, "" },
                { RANK_MPI_ALONE_MPICH, MPI_PMIX, "", false, "its MPI: --mpi pmi1\n" },
                { RANK_MPI_ALONE_MPICH, MPI_AUTO, "", false, "PMI_* of hnlaunch reach its MPI\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct exited e = { .rank = 3, .mpi = cases[i].used };
                struct lone_rank r = { &e,           NULL,          "gpu01",
                                       cases[i].mpi, cases[i].kind, cases[i].joined };
                CLEANUP(free_textp) char *said = warning_of(&r);

                if (*cases[i].said) {
                        assert_non_null(strstr(said, "warning[HN407]: rank 3 on gpu01 "));
                        assert_non_null(strstr(said, cases[i].said));
                } else {
                        assert_string_equal(said, "");
                }
                free(said);
                e.status = 256;
                said = warning_of(&r);
                assert_string_equal(said, "");
                free(said);
                e.status = 0;
                e.stopped = 1;
                said = warning_of(&r);
                assert_string_equal(said, "");
        }
}

TEST(a_world_of_one_is_told_with_the_way_that_fits)
{
        static const struct {
                uint8_t mpi;
                unsigned kind;
                bool joined, stopped;
                const char *said; /* the end of the sentence; NULL = the rank is not alone */
        } cases[] = {
                { RANK_MPI_ALONE_OPEN_MPI, MPI_AUTO, false, false, "(Open MPI) needs --mpi pmix" },
                { RANK_MPI_ALONE_OPEN_MPI, MPI_PMIX, false, false,
                  "PMIX_* of hnlaunch did not reach their MPI (Open MPI)" },
                { RANK_MPI_ALONE_MPICH, MPI_PMIX, false, false, "needs --mpi pmi1" },
                { RANK_MPI_ALONE_MPICH, MPI_AUTO, false, false,
                  "PMI_* of hnlaunch did not reach their MPI (MPICH's ABI)" },
                { RANK_MPI_ALONE_OPEN_MPI, MPI_NONE, false, false, NULL },
                { RANK_MPI_ALONE_OPEN_MPI, MPI_AUTO, true, false, NULL },
                { RANK_MPI_ALONE_OPEN_MPI, MPI_AUTO, false, true, NULL },
                { RANK_MPI_UNUSED_OPEN_MPI, MPI_AUTO, false, false, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct exited e = { .rank = 3, .mpi = cases[i].mpi, .stopped = cases[i].stopped };
                struct lone_rank r = {
                        .end = &e, .mpi = "", .kind = cases[i].kind, .joined = cases[i].joined
                };
                char text[200];

                assert_int_equal(lone_rank_is_alone(&r), cases[i].said != NULL);
                if (!cases[i].said)
                        continue;
                lone_rank_sentence(&r, "ranks 1 and 3", text, sizeof(text));
                assert_memory_equal(text, "ranks 1 and 3 were each a world of one: ", 40);
                assert_string_equal(text + strlen(text) - strlen(cases[i].said), cases[i].said);
        }
}
