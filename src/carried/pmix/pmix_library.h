/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_library: finds and opens the node's libpmix.so.2
 */
#pragma once

#include "base/buf.h"
#include "carried/pmix/pmix_abi.h"
#include "wire/helper/pmix_msg.h"

/* Opens, in this order: the library in lib, lib64 or lib/openmpi of job->prefix; the library that
 * the program's Open MPI would load, beside libmpi.so.40 or in the run path of libmpi.so.40, where
 * libmpi.so.40 is in the program's run path, $LD_LIBRARY_PATH, or lib beside the program's folder;
 * the library on the loader's path. 0 with the functions, and the path in @said; -ENOENT: no
 * library can be opened or has the functions, and @said has the places and the reason of each
 * failure. */
int pmix_library_open(struct pmix_functions *ret, const struct pmix_job *job, struct buf *said);
