/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interleave: makes inputs for fuzz_endpoint_tcp of recorded connections
 *
 * usage: interleave ROUNDS CORPUS...
 *
 * The connections in the folders are cut at any byte and put in any order, with bytes changed,
 * ends, resets and pauses in between. Files found-* are left out: these are no recordings. The seed
 * of a round is its number, so a failure can be repeated.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/dice.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

enum { FILES_MAX = 256, CONNECTIONS = 8, INPUT_MAX = 12000 };

static struct {
        char *text;
        size_t len;
} files[FILES_MAX];
static size_t n_files;
static void read_folder(const char *folder)
{
        DIR *d = opendir(folder);
        struct dirent *e;

        require(d);
        while ((e = readdir(d)) && n_files < FILES_MAX) {
                char *path = xasprintf("%s/%s", folder, e->d_name);

                if (e->d_name[0] != '.' && strncmp(e->d_name, "found-", 6) != 0 &&
                    fd_read_file(path, 1 << 20, &files[n_files].text, &files[n_files].len) == 0)
                        n_files++;
                free(path);
        }
        closedir(d);
}

static void add_piece(struct buf *to, uint32_t what, uint32_t connection, const void *p, size_t len)
{
        const unsigned char head[] = { (unsigned char)(what * CONNECTIONS + connection),
                                       (unsigned char)len };
        unsigned char *copy;

        buf_append(to, head, sizeof(head));
        copy = buf_reserve(to, len + 1);
        require(copy);
        if (len)
                memcpy(copy, p, len);
        if (len && !dice(20))
                copy[dice((uint32_t)len)] ^= (unsigned char)(1 << dice(8));
        buf_advance(to, len);
}

static void make_input(struct buf *to)
{
        size_t file[CONNECTIONS], at[CONNECTIONS];

        for (int i = 0; i < CONNECTIONS; i++) {
                file[i] = dice((uint32_t)n_files);
                at[i] = 1; /* behind the size of the first piece */
        }
        while (buf_len(to) < INPUT_MAX) {
                uint32_t c = dice(CONNECTIONS);
                size_t left = files[file[c]].len - MIN(at[c], files[file[c]].len);
                size_t len = MIN(left, (size_t)dice(dice(4) ? 256 : 16));

                add_piece(to, 0, c, files[file[c]].text + at[c], len);
                at[c] += len;
                if (len < left && dice(30))
                        continue;
                add_piece(to, 1 + dice(5), c, NULL, 0);
                file[c] = dice((uint32_t)n_files);
                at[c] = 1;
        }
}

int main(int argc, char **argv)
{
        int rounds = argc > 2 ? atoi(argv[1]) : 0;

        for (int i = 2; i < argc; i++)
                read_folder(argv[i]);
        for (int i = 1; i <= rounds && n_files; i++) {
                struct buf input = BUF_INIT;
                uint8_t *exact;

                seed = (uint64_t)i;
                make_input(&input);
                exact = (uint8_t *)buf_steal(&input);
                fprintf(stderr, "# round %d\n", i);
                LLVMFuzzerTestOneInput(exact, INPUT_MAX);
                free(exact);
        }
        for (size_t i = 0; i < n_files; i++)
                free(files[i].text);
        printf("1..1\n%s 1 - %d rounds with %zu connections\n", n_files ? "ok" : "not ok", rounds,
               n_files);
        return !rounds || !n_files;
}
