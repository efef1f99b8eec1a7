/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claim: what a worker under test says when something is not as it should be
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <stdio.h>
#include <stdlib.h>

#define CLAIM(what)                                                                                \
        do {                                                                                       \
                if (!(what)) {                                                                     \
                        fprintf(stderr, "rank %d, %s:%d: %s (%s)\n", hn_rank(), __FILE__,          \
                                __LINE__, #what, hn_last_error());                                 \
                        exit(1);                                                                   \
                }                                                                                  \
        } while (0)

enum { PATIENCE_MS = 60000 };
