/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_waiting RANK... [late|idle]: these ranks never open the library, the others wait for them in
 * a barrier. late: they come after two seconds. idle: they end after two seconds, and nobody waits.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "claim.h"

int main(int argc, char **argv)
{
        const char *me = getenv("HN_RANK");
        const char *how = argc > 1 ? argv[argc - 1] : "";
        bool idle = !strcmp(how, "idle"), late = !strcmp(how, "late");

        puts("up");
        fflush(stdout);
        for (int i = 1; i < argc; i++)
                if (me && !strcmp(argv[i], me)) {
                        sleep(late || idle ? 2 : 1000);
                        if (idle)
                                return 0;
                }
        CLAIM(hn_init(NULL) == HN_OK);
        if (idle)
                sleep(2);
        else
                CLAIM(hn_barrier(NULL, HN_NO_TIMEOUT) == HN_OK);
        return hn_finalize();
}
