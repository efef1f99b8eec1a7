/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank/limits.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit before;
static bool raised;

void limits_raise(void)
{
        struct rlimit all;

        if (raised || getrlimit(RLIMIT_NOFILE, &before) < 0)
                return;
        all = before;
        all.rlim_cur = all.rlim_max;
        raised = setrlimit(RLIMIT_NOFILE, &all) == 0;
}

void limits_restore(void)
{
        if (raised)
                setrlimit(RLIMIT_NOFILE, &before);
}
