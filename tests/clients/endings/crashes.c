/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 1 is ended by its C library; the others wait. usage: crashes HOW */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        struct rlimit no_core = { 0, 0 };
        const char *rank = getenv("RANK"), *how = argc > 1 ? argv[1] : "";
        char *volatile p = malloc(24);

        setrlimit(RLIMIT_CORE, &no_core);
        if (!rank || strcmp(rank, "1") != 0)
                sleep(60);
        if (!strcmp(how, "assert")) {
                int rows = 0;

                assert(rows > 0);
        } else if (!strcmp(how, "top")) {
                memset(p, 0xff, 24 + 16); /* the size of what is behind, too */
                p = malloc(100000);
        } else if (!strcmp(how, "twice")) {
                free(p);
                free(p);
        } else if (!strcmp(how, "pointer")) {
                free(p + 8);
        } else {
                fprintf(stderr, "solver: the mesh is empty\n");
                *(volatile int *)0 = 1;
        }
        return 0;
}
