/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known_bad: versions of NCCL with faults that are hard to find
 *
 * Only faults named by NVIDIA in release notes or in an issue, with the range given there. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known_bad {
        uint32_t first, fixed; /* NCCL_VERSION_CODE: from @first on, before @fixed */
        const char *arch;      /* of the node, NULL = any */
        int min_nodes;         /* in the job */
        const char *fact;      /* what happens, behind "NCCL 2.28.9 on aarch64 " */
        const char *cause, *help;
};

/* Returns the first entry that fits, NULL = none. @arch: as of uname(). */
const struct known_bad *known_bad_find(uint32_t version, const char *arch, int nodes);
