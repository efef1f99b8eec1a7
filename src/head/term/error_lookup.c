/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "head/term/error_ids.h"

enum { SIGNALS = 64 };

const char *error_ids_title(int number)
{
        static const char *const titles[] = {
                [1] = "Hosts and environment",
                [2] = "Reaching nodes, and pushed files",
                [3] = "Plan and start",
                [4] = "PyTorch's store",
                [5] = "Ranks",
                [6] = "GPUs",
                [7] = "Options and configuration",
                [8] = "Runs",
                [9] = "Records and limits",
        };
        size_t i = (size_t)number / 100;

        return i < ARRAY_SIZE(titles) && titles[i] ? titles[i] : "Other";
}

const struct error_id *error_id_find(int number)
{
        for (size_t i = 0; i < error_id_count; i++)
                if (error_ids[i].number == number)
                        return &error_ids[i];
        return NULL;
}

static const struct error_id *find_exit(int number)
{
        for (size_t i = 0; i < exit_id_count; i++)
                if (exit_ids[i].number == number)
                        return &exit_ids[i];
        return NULL;
}

const struct error_id *exit_id_find(int code)
{
        const struct error_id *own = code == EXIT_SIGNAL ? NULL : find_exit(code);

        if (code < 0 || code > EXIT_MAX)
                return NULL;
        if (own)
                return own;
        return find_exit(code > EXIT_SIGNAL && code <= EXIT_SIGNAL + SIGNALS ? EXIT_SIGNAL
                                                                             : EXIT_OF_RANK);
}
