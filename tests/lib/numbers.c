/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers: a worker that writes numbered lines of changing length on both streams
 *
 * usage: worker_numbers BYTES        so many bytes on each stream, rounded up to a line
 *
 * A line is "<RANK STREAM NUMBER LENGTH xxx...>" with LENGTH x; worker_checklines reads them back.
 * Writes are cut at odd places, so that lines arrive in pieces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 30011, LINE_MAX_X = 300 };

struct stream {
        int fd;
        char name;
        unsigned long number, left;
        char out[PIECE + LINE_MAX_X + 128];
        size_t used;
};

static void write_all(int fd, const char *p, size_t n)
{
        while (n) {
                ssize_t r = write(fd, p, n);

                if (r < 0 && errno != EINTR)
                        exit(3);
                if (r > 0) {
                        p += r;
                        n -= (size_t)r;
                }
        }
}

/* Fills one piece and writes exactly PIECE bytes of it, the rest at the end. */
static void pump(struct stream *s, const char *rank)
{
        static const char xs[LINE_MAX_X + 1] = { [0 ... LINE_MAX_X - 1] = 'x' };
        size_t n;

        while (s->left && s->used < PIECE) {
                int length = (int)(s->number * 2654435761UL % LINE_MAX_X);
                int r = snprintf(s->out + s->used, sizeof(s->out) - s->used,
                                 "<%s %c %lu %d %.*s>\n", rank, s->name, s->number, length, length,
                                 xs);

                s->used += (size_t)r;
                s->left -= (unsigned long)r < s->left ? (unsigned long)r : s->left;
                s->number++;
        }
        n = s->left && s->used > PIECE ? PIECE : s->used;
        write_all(s->fd, s->out, n);
        memmove(s->out, s->out + n, s->used - n);
        s->used -= n;
}

int main(int argc, char **argv)
{
        static struct stream out = { .fd = 1, .name = 'o' }, err = { .fd = 2, .name = 'e' };
        const char *rank = getenv("RANK");

        if (argc != 2 || !rank)
                return 64;
        out.left = err.left = strtoul(argv[1], NULL, 10);
        while (out.left || err.left || out.used || err.used) {
                pump(&out, rank);
                pump(&err, rank);
        }
        return 0;
}
