/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepping N [stay]: each rank reports steps 1 to N of 5000; rank 0 adds a note. With `stay` it
 * prints "up" and sleeps then.
 */
#include <string.h>
#include <unistd.h>

#include "claim.h"

int main(int argc, char **argv)
{
        int steps = argc > 1 ? atoi(argv[1]) : 0;

        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_progress(-1, 0, "no step at all") == HN_ERR_INVALID);
        for (int i = 1; i <= steps; i++)
                CLAIM(hn_progress(i, 5000, hn_rank() == 0 ? "warm-up" : NULL) == HN_OK);
        /* When the store answers, it has received all reports. */
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (argc > 2 && strcmp(argv[2], "stay") == 0) {
                puts("up");
                fflush(stdout);
                sleep(1000);
        }
        return hn_finalize();
}
