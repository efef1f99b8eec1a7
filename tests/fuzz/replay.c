/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: feeds every file of a corpus folder to a fuzz target, as a plain test
 *
 * usage: replay_NAME CORPUS...        one TAP line per folder
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/strv.h"

enum { INPUT_MAX = 64 << 20 };

/* Exactly as large as the input, so that the sanitizer sees the first byte behind it. */
static int feed(const char *path)
{
        char *text;
        uint8_t *exact;
        size_t len;
        int r = fd_read_file(path, INPUT_MAX, &text, &len);

        if (r < 0)
                return r;
        exact = malloc(len ? len : 1);
        require(exact);
        memcpy(exact, text, len);
        free(text);
        fprintf(stderr, "# %s, %zu bytes\n", path, len);
        LLVMFuzzerTestOneInput(exact, len);
        free(exact);
        return 0;
}

/* The number of inputs, or -1 when one of them or the folder cannot be read. */
static int feed_folder(const char *folder)
{
        DIR *d = opendir(folder);
        struct dirent *e;
        int n = 0, r = 0;

        if (!d)
                return -1;
        while (r == 0 && (e = readdir(d))) {
                char *path;

                if (e->d_name[0] == '.')
                        continue;
                path = xasprintf("%s/%s", folder, e->d_name);
                r = feed(path);
                free(path);
                n++;
        }
        closedir(d);
        return r < 0 ? -1 : n;
}

int main(int argc, char **argv)
{
        bool failed = argc < 2;

        for (int i = 1; i < argc; i++) {
                int n = feed_folder(argv[i]);

                printf("%s %d - %s: %d inputs\n", n > 0 ? "ok" : "not ok", i, argv[i], n);
                fflush(stdout);
                failed |= n <= 0;
        }
        return failed;
}
