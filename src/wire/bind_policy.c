/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/bind_policy.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory.h"

/* The first words with an equal meaning are those of the manual; the others are words of other
 * launchers. A bare "core" is core:1. */
static const struct {
        const char *word;
        enum bind_kind kind;
} words[] = {
        { "auto", BIND_AUTO },
        { "none", BIND_NO },
        { "", BIND_NO },
        { "no", BIND_NO },
        { "numa", BIND_NUMA },
        { "node", BIND_NUMA },  /* torchrun */
        { "ldoms", BIND_NUMA }, /* srun */
        { "socket", BIND_SOCKET },
        { "sockets", BIND_SOCKET },
        { "package", BIND_SOCKET }, /* Open MPI */
        { "core", BIND_CORES },
        { "cores", BIND_CORES },
        { "exclusive", BIND_EXCLUSIVE },
};

/* A sign or a blank in front of the number is refused, which strtol(3) would accept. */
static int read_cores(struct bind_policy *p, const char *text, struct error *err)
{
        char *end = NULL;
        long n = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;

        if (n < 1 || n > CPU_MASK_BITS || *end)
                return err_set(err, EINVAL, "core:N must have a number of 1 to %d, got `%s`",
                               CPU_MASK_BITS, text);
        p->kind = BIND_CORES;
        p->cores = (uint32_t)n;
        return 0;
}

/* After a failure the masks read so far stay in @p, for the caller to free. */
static int read_list(struct bind_policy *p, const char *text, struct error *err)
{
        size_t len;

        p->kind = BIND_LIST;
        for (;; text += len + 1) {
                struct cpu_mask *m;

                len = strcspn(text, ";");
                p->masks = xrealloc(p->masks, p->n_masks + 1, sizeof(*p->masks));
                m = &p->masks[p->n_masks++];
                /* cpu_mask_parse() accepts a newline at the end, for files of the kernel; an option
                 * has none. */
                if (cpu_mask_parse(m, text, len) < 0 || cpu_mask_is_empty(m) || strchr(text, '\n'))
                        return err_set(err, EINVAL,
                                       "list: must have processors such as 0-3,8 for each rank of "
                                       "a node, separated by `;`, got `%.*s`",
                                       (int)MIN(len, 100), text);
                if (!text[len])
                        return 0;
        }
}

int bind_policy_parse(struct bind_policy *p, const char *text, struct error *err)
{
        int r;

        *p = (struct bind_policy){ .cores = 1 };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (!strcmp(text, words[i].word)) {
                        p->kind = words[i].kind;
                        return 0;
                }
        if (!strncmp(text, "core:", 5))
                return read_cores(p, text + 5, err);
        if (strncmp(text, "list:", 5) != 0)
                return err_set(err, EINVAL, "must be one of " BIND_WORDS ", got `%.100s`", text);
        r = read_list(p, text + 5, err);
        if (r < 0)
                bind_policy_finish(p);
        return r;
}

void bind_policy_finish(struct bind_policy *p)
{
        free(p->masks);
        *p = (struct bind_policy){ .kind = BIND_NO };
}
