/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option line: a command line as a text, for the units of src/head/options
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/memory.h"
#include "head/options/options.h"

/* What the last load() made, and what it told. */
static struct options o;
static struct diags d = DIAGS_INIT;

/* Loads a command line of words with blanks between them, in place of the last one. */
static inline int load(const char *line)
{
        char *words = strdup(line), *save = NULL, *argv[64] = { (char[]){ "hnlaunch" } };
        int argc = 1, r;

        for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
                argv[argc++] = w;
        options_finish(&o);
        diags_finish(&d);
        r = options_load(&o, argc, argv, &d);
        free(words);
        return r;
}

/* The text of all messages; valid until the next call. */
static inline const char *messages(void)
{
        static char text[8192];
        FILE *f = fmemopen(text, sizeof(text), "w");

        *text = '\0'; /* nothing may be written at all */
        diags_print(&d, f, false);
        fclose(f);
        return text;
}

/* A file of a test, such as a job file. */
UNUSED static char job_path[64];

static inline int make_file(void **state UNUSED)
{
        int fd;

        strcpy(job_path, "/tmp/hnlaunch-options-XXXXXX");
        fd = mkstemp(job_path);
        return fd < 0 ? -1 : close(fd);
}

static inline int remove_file(void **state UNUSED)
{
        return unlink(job_path);
}

/* Returns what hnlaunch help prints of a command, an option or a topic; malloc'ed. */
static inline char *help_text(const char *name)
{
        char *text = NULL;
        size_t len;
        FILE *to = open_memstream(&text, &len), *screen = stdout;

        stdout = to;
        options_print_help(name, to);
        stdout = screen;
        fclose(to);
        return text;
}

/* Neither settings of the user nor of the machine. */
static inline int no_settings(void **state UNUSED)
{
        for (char **e = environ; *e;) {
                CLEANUP(free_textp) char *name = xstrndup(*e, strcspn(*e, "="));

                if (strncmp(name, "HNLAUNCH_", 9) == 0 && unsetenv(name) == 0)
                        e = environ;
                else
                        e++;
        }
        setenv("HNLAUNCH_SYSTEM_CONFIG", "/dev/null/none", 1);
        setenv("XDG_CONFIG_HOME", "/dev/null/none", 1);
        return 0;
}
