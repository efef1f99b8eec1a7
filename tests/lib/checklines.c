/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checklines: reads what worker_numbers wrote, after its way through hnlaunch
 *
 * usage: worker_checklines RANKS STREAMS [slow]        e.g. 8 oe
 *
 * Reads standard input. A line may have any prefix before its '<'. Every line must be whole, and
 * the numbers of each rank and stream must go up by one from zero. With "slow" it reads little by
 * little for a while, as a terminal over a bad link does. Prints "RANK STREAM LINES" for each and
 * exits with 0 if nothing was torn, lost, doubled or out of order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RANKS = 1024, SLOW_LINES = 2000 };

static unsigned long next[MAX_RANKS][2];

/* NULL, or what is wrong with the line. */
static const char *check(const char *line, int ranks, const char *streams)
{
        const char *p = strchr(line, '<');
        unsigned long number;
        int rank, length, n;
        char stream;

        if (!p)
                return "no worker's line";
        if (sscanf(p, "<%d %c %lu %d %n", &rank, &stream, &number, &length, &n) != 4)
                return "torn at the front";
        p += n;
        if (rank < 0 || rank >= ranks || !strchr(streams, stream))
                return "unknown rank or stream";
        if (strspn(p, "x") != (size_t)length || strcmp(p + length, ">\n") != 0)
                return "torn";
        if (number != next[rank][stream == 'e']++)
                return "lost, doubled or out of order";
        return NULL;
}

int main(int argc, char **argv)
{
        char *line = NULL;
        size_t size = 0;
        unsigned long lines = 0, bad = 0;
        int ranks = argc > 2 ? atoi(argv[1]) : 0;

        if (ranks < 1 || ranks > MAX_RANKS)
                return 64;
        while (getline(&line, &size, stdin) > 0) {
                const char *why = check(line, ranks, argv[2]);

                if (why && bad++ < 10)
                        printf("line %lu: %s: %s", lines, why, line);
                lines++;
                if (argc > 3 && lines < SLOW_LINES)
                        usleep(1000);
        }
        for (const char *s = argv[2]; *s; s++)
                for (int r = 0; r < ranks; r++)
                        printf("%d %c %lu\n", r, *s, next[r][*s == 'e']);
        free(line);
        return bad > 0;
}
