/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option_foreign: options of other launchers that hnlaunch does not have
 *
 * Some mean nothing here and are accepted with their values, so that scripts of torchrun or mpirun
 * work; the others are errors that name the option of hnlaunch. Other spellings of hnlaunch's own
 * options are in option_aliases (head/options/option_table.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct option_foreign {
        const char
                *name; /* without dashes, but `-env` only behind one dash; `fsdp-*` is a prefix */
        int values;    /* number of words with values */
        bool accepted;
        const char *says; /* why the option means nothing here, or the option to write */
};

enum { OPTION_FOREIGN_MAX = 448 };

extern const struct option_foreign option_foreigns[];
extern const size_t option_foreign_count;

const struct option_foreign *option_foreign_by_name(const char *name); /* NULL = none */

/* Letters that hnlaunch refuses, because launchers disagree on their meaning. */
struct option_letter {
        char letter;
        const char *means, *instead;
};

extern const struct option_letter option_letters[];
extern const size_t option_letter_count;
