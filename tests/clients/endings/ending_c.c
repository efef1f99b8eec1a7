/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: ending_c VICTIM HOW ECHO
 *
 * One rank tells why it fails, makes the file "gone" and ends as HOW says: "late" with 3 after a
 * second and a half, "never", "clean" with 0. The others see the file and end as ECHO says: "code"
 * with a line and 9, "abort" with a line and SIGABRT, "quiet" with SIGABRT alone.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *how)
{
        usleep(200000);
        fprintf(stderr, "solver: fatal: cell 12 has a negative volume\n");
        close(open("gone", O_CREAT | O_WRONLY, 0600));
        if (!strcmp(how, "never"))
                for (;;)
                        pause();
        if (!strcmp(how, "clean"))
                return 0;
        usleep(1500000);
        return 3;
}

int main(int argc, char **argv)
{
        if (argc < 4)
                return 2;
        if (!strcmp(getenv("RANK"), argv[1]))
                return fail(argv[2]);
        while (access("gone", F_OK) < 0)
                usleep(10000);
        if (strcmp(argv[3], "quiet") != 0)
                fprintf(stderr, "recv from rank %s: Connection reset by peer\n", argv[1]);
        if (strcmp(argv[3], "code") != 0)
                abort();
        return 9;
}
