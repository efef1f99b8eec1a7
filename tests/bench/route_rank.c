/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank whose barriers are counted: rank 0 switches the counting on for ROUNDS of them.
 *
 *     route_rank SWITCH ROUNDS
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <hnlaunch/hnlaunch.h>

static int turn(const char *path, char to)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        int r = hn_rank() != 0 || (fd >= 0 && pwrite(fd, &to, 1, 0) == 1) ? 0 : 1;

        close(fd);
        return r;
}

int main(int argc, char **argv)
{
        int rounds = argc == 3 ? atoi(argv[2]) : 0, r = hn_init(NULL);

        for (int i = 0; i < 5 && r == 0; i++)
                r = hn_barrier(hn_world(), HN_DEFAULT_TIMEOUT);
        if (r == 0)
                r = turn(argv[1], '1');
        for (int i = 0; i < rounds && r == 0; i++)
                r = hn_barrier(hn_world(), HN_DEFAULT_TIMEOUT);
        return r ? r : turn(argv[1], '0') || hn_finalize();
}
