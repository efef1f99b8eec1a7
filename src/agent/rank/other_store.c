/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank/other_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/env_names.h"

enum { ENVIRON_MAX = 4 << 20 };

/* Returns the number that the variable has in @env, the text of an environ file; 0 = none. */
static uint32_t find_env_number(const char *env, size_t len, const char *name)
{
        size_t n = strlen(name);

        for (const char *pair = env; pair < env + len; pair += strlen(pair) + 1)
                if (!strncmp(pair, name, n) && pair[n] == '=')
                        return (uint32_t)strtoul(pair + n + 1, NULL, 10);
        return 0;
}

static bool reads_other_port(struct node_status_other *to, pid_t pid, uint32_t port)
{
        CLEANUP(free_textp) char *path = xasprintf("/proc/%d/environ", (int)pid);
        CLEANUP(free_textp) char *env = NULL;
        struct node_status_other found = { .pid = (uint32_t)pid };
        size_t len = 0;

        if (fd_read_file(path, ENVIRON_MAX, &env, &len) < 0)
                return false;
        found.port = find_env_number(env, len, "MASTER_PORT");
        found.rank = find_env_number(env, len, HN_RANK);
        if (!found.port || found.port == port || found.port > UINT16_MAX)
                return false;
        if (proc_read(pid, "comm", found.name, sizeof(found.name)))
                found.name[strcspn(found.name, "\n")] = '\0';
        *to = found;
        return true;
}

void other_store_find(struct node_status_other *to, const char *mark, uint32_t port)
{
        struct pids pids = PIDS_INIT;

        proc_marked(&pids, HN_STORE, mark, 0);
        for (size_t i = 0; i < pids.n; i++)
                if (reads_other_port(to, pids.v[i], port))
                        break;
        pids_finish(&pids);
}
