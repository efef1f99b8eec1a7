/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump: a worker that writes down what it was given, byte for byte
 *
 * usage: DUMP_TO=FOLDER worker_dump [ARG...]
 *
 * Writes FOLDER/RANK.argv, .env and .cwd; strings end with a NUL. argv[0] is left out. Without
 * RANK in the environment the name is "none".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static FILE *create(const char *folder, const char *what)
{
        const char *rank = getenv("RANK");
        char path[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s.%s", folder, rank ? rank : "none", what);
        f = fopen(path, "we");
        if (!f) {
                perror(path);
                exit(1);
        }
        return f;
}

static void write_strings(FILE *f, char **strings)
{
        for (; *strings; strings++)
                fwrite(*strings, 1, strlen(*strings) + 1, f);
        if (fclose(f) != 0)
                exit(1);
}

int main(int argc, char **argv)
{
        const char *folder = getenv("DUMP_TO");
        char cwd[4096], *cwds[] = { getcwd(cwd, sizeof(cwd)), NULL };

        if (argc < 1 || !folder) {
                fputs("worker_dump: DUMP_TO is not set\n", stderr);
                return 64;
        }
        write_strings(create(folder, "argv"), argv + 1);
        write_strings(create(folder, "env"), environ);
        write_strings(create(folder, "cwd"), cwds);
        return 0;
}
