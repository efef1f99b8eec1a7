/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI2_check: a client of Slurm's libpmi2: keys across ranks, attributes of job and node
 *
 * usage: pmi2_check [abort CODE]
 */
#include <slurm/pmi2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int ret, const char *what)
{
        if (ret == PMI2_SUCCESS)
                return;
        fprintf(stderr, "%s failed with %d\n", what, ret);
        exit(1);
}

int main(int argc, char **argv)
{
        int spawned, size, rank, app, len, found;
        char key[32], value[PMI2_MAX_VALLEN] = "", job[256] = "";

        must(PMI2_Init(&spawned, &size, &rank, &app), "init");
        must(PMI2_Job_GetId(job, sizeof(job)), "job id");
        if (argc > 2 && rank == size - 1)
                PMI2_Abort(1, argv[1]);
        snprintf(key, sizeof(key), "key-%d", rank);
        must(PMI2_KVS_Put(key, "a;semicolon"), "put");
        must(PMI2_KVS_Fence(), "fence");
        snprintf(key, sizeof(key), "key-%d", (rank + 1) % size);
        must(PMI2_KVS_Get(job, PMI2_ID_NULL, key, value, sizeof(value), &len), "get");
        if (strcmp(value, "a;semicolon") != 0) {
                fprintf(stderr, "got %s\n", value);
                return 1;
        }
        must(PMI2_Info_GetJobAttr("universeSize", value, sizeof(value), &found), "job attribute");
        if (rank == 0)
                must(PMI2_Info_PutNodeAttr("node", "here"), "put of a node's attribute");
        must(PMI2_Info_GetNodeAttr("node", value, sizeof(value), &found, 1), "node attribute");
        if (rank == 0)
                printf("%d ranks met, %s\n", size, value);
        must(PMI2_Finalize(), "finalize");
        return 0;
}
