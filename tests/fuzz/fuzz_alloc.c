/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables and the file of an allocation. The first byte chooses the manager, the second says
 * whether the user asked for it (1), --ppn is given (2), and whether this machine is "n1" (4); then
 * come NAME=VALUE lines, an empty line, and the text of the file. Whatever they are, the reader
 * answers with hosts or with errors, names come from the allow-list, and the messages hold no
 * control bytes.
 */
#include "../lib/fuzz_messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/strv.h"
#include "head/alloc/alloc.h"

enum { VARIABLES = 64 };

static void check_hosts(const struct hosts *h)
{
        static const char allowed[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

        require(h->n > 0 && h->n <= HOSTS_MAX && h->source && h->slots_source);
        for (size_t i = 0; i < h->n; i++) {
                const struct host *one = &h->v[i];

                require(*one->name && *one->name != '-');
                require(strchr(one->name, ':') || !one->name[strspn(one->name, allowed)]);
                require(one->slots >= 0 && one->slots <= SLOTS_MAX && one->file && one->line > 0);
        }
}

/* Splits the lines in front of an empty one, and returns where the file begins. */
static char *take_variables(char *text, char **env)
{
        size_t n = 0;

        while (*text && *text != '\n') {
                char *end = strchr(text, '\n');

                if (n < VARIABLES)
                        env[n++] = text;
                if (!end) {
                        text += strlen(text);
                        break;
                }
                *end = '\0';
                text = end + 1;
        }
        env[n] = NULL;
        return *text ? text + 1 : text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint8_t manager = size > 1 ? data[0] : 0, flags = size > 1 ? data[1] : 0;
        enum alloc_from from = ALLOC_SLURM + manager % (ALLOC_CHOICES - ALLOC_SLURM);
        size_t len = size > 1 ? size - 2 : 0;
        char *text = malloc(len + 1), *env[VARIABLES + 1], *file;
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        int r;

        if (len)
                memcpy(text, data + 2, len);
        text[len] = '\0';
        file = take_variables(text, env);
        r = alloc_read(from,
                       &(struct alloc_input){ .env = env,
                                              .host = flags & 4 ? "n1" : "login",
                                              .cgroup = "0::/slurm/job_7/step_0\n",
                                              .path = "nodefile",
                                              .text = file,
                                              .len = (size_t)(text + len - file),
                                              .now = 1000000,
                                              .asked = flags & 1,
                                              .ppn = flags & 2 },
                       &h, &d);
        require((r < 0) == (diags_errors(&d) > 0));
        if (r == 0)
                check_hosts(&h);
        check_messages(&d);
        alloc_find(env);
        free(text);
        return 0;
}
