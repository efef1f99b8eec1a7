/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option_foreign: options of other launchers that are none of hnlaunch
 *
 * Some mean nothing here and are accepted with their values, so that a script of torchrun or mpirun
 * goes on; the others are errors that name the option of hnlaunch. Other spellings of options that
 * hnlaunch has are in option_aliases (head/options/option_table.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct option_foreign {
        const char *name; /* without dashes */
        int values;       /* words that belong to it */
        bool accepted;
        const char *says; /* why it means nothing here, or what to write */
};

extern const struct option_foreign option_foreigns[];
extern const size_t option_foreign_count;

const struct option_foreign *option_foreign_by_name(const char *name); /* NULL = none */

/* Letters that hnlaunch does not take, because they mean different things elsewhere. */
struct option_letter {
        char letter;
        const char *means, *instead;
};

extern const struct option_letter option_letters[];
extern const size_t option_letter_count;
