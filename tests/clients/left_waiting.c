/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_waiting RANK...: these ranks never open the library, the others wait for them in a barrier.
 * With "late" as the last argument they come after two seconds.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "claim.h"

int main(int argc, char **argv)
{
        const char *me = getenv("HN_RANK");
        bool late = argc > 1 && !strcmp(argv[argc - 1], "late");

        puts("up");
        fflush(stdout);
        for (int i = 1; i < argc; i++)
                if (me && !strcmp(argv[i], me))
                        sleep(late ? 2 : 1000);
        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, HN_NO_TIMEOUT) == HN_OK);
        return hn_finalize();
}
