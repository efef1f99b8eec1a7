/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check_profile: a site's expectations of its nodes, from the file of `hnlaunch check --profile`
 *
 * Lines as in the configuration, in three sections:
 *
 *   [limit]  shm_per_rank = 256M
 *   [expect] gpu.driver = 575.57*
 *   [check]  thp = ignore
 *
 * A name is the name of a check. Other lines are errors.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "head/term/diag.h"

enum check_limit {
        CHECK_SHM_PER_RANK, /* bytes */
        CHECK_TMP_FREE,
        CHECK_FILES,
        CHECK_PROCESSES,
        CHECK_CLOCK,     /* seconds */
        CHECK_IB_ERRORS, /* since the start of the machine */
        CHECK_LIMITS,
};

struct check_profile {
        double limits[CHECK_LIMITS];
        struct strv expected; /* NAME=VALUE; * at the end stands for any text */
        struct strv moves;    /* NAME=ignore, NAME=warn or NAME=fail */
};

/* The limits without a file. */
void check_profile_init(struct check_profile *p);
void check_profile_finish(struct check_profile *p);

/* Reads the file @path. @has_check: whether there is a check of this name; *ret_fact: the check's
 * values are facts, which [expect] may have. False with errors in @d (exit 78; 66: no file). */
bool check_profile_read(struct check_profile *p, const char *path,
                        bool (*has_check)(const char *name, bool *ret_fact), struct diags *d);
/* The same for the text of the file. */
bool check_profile_parse(struct check_profile *p, const char *path, const char *text,
                         bool (*has_check)(const char *name, bool *ret_fact), struct diags *d);
