/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each reader's file describes a manager: the name, the variables of an allocation, the file or
 * command with the hosts. ALLOC_MANAGERS of alloc.h lists the descriptions, in the order of
 * --scheduler.
 */
#include "head/alloc/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/alloc/alloc_reader.h"

#define DECLARE_MANAGER(NAME, word, description) extern const struct alloc_manager description;
#define MANAGER_ROW(NAME, word, description)     [ALLOC_##NAME] = { word, &description },
ALLOC_MANAGERS(DECLARE_MANAGER)

static const struct {
        const char *option;
        const struct alloc_manager *manager;
} managers[ALLOC_CHOICES] = { ALLOC_MANAGERS(MANAGER_ROW) };

const struct alloc_manager *alloc_manager(enum alloc_from from)
{
        return managers[from].manager;
}

/* Whether a variable is set, and has the value of a mark NAME=VALUE. */
static bool has_manager_mark(char *const *env, const char *mark)
{
        CLEANUP(free_textp) char *name = xstrndup(mark, strcspn(mark, "="));
        const char *value = alloc_variable(env, name), *want = strchr(mark, '=');

        return value && (!want || !strcmp(value, want + 1));
}

/* Returns the first missing mark, NULL = the variables of this manager are set. */
static const char *find_missing_mark(enum alloc_from from, char *const *env)
{
        const struct alloc_manager *a = managers[from].manager;

        if (a->also && has_manager_mark(env, a->also))
                return NULL;
        for (const char *const *m = a->marks; *m; m++)
                if (!has_manager_mark(env, *m))
                        return *m;
        return NULL;
}

enum alloc_from alloc_find(char *const *env)
{
        enum alloc_from found = ALLOC_NONE;

        /* The first that fits, but a manager that runs inside another's allocation goes before that
         * one. */
        for (enum alloc_from i = ALLOC_NONE + 1; i < ALLOC_CHOICES; i++) {
                const struct alloc_manager *a = managers[i].manager;

                if (a->marks[0] && (found == ALLOC_NONE || a->inside) && !find_missing_mark(i, env))
                        found = i;
        }
        return found;
}

const char *alloc_title(enum alloc_from from)
{
        return managers[from].manager->title;
}

const char *alloc_path(enum alloc_from from, char *const *env)
{
        const struct alloc_manager *a = managers[from].manager;

        return a->path && !find_missing_mark(from, env) ? a->path(env) : NULL;
}

const char *const *alloc_command(enum alloc_from from, char *const *env)
{
        const struct alloc_manager *a = managers[from].manager;

        return a->command[0] && !find_missing_mark(from, env) ? a->command : NULL;
}

void alloc_settle_exact(struct alloc_reader *r, const char *job, const char *slots_from)
{
        CLEANUP(free_textp) char *shown = printable_text(job ? job : "", PRINTABLE_NOTE);

        for (size_t i = 0; i < r->hosts->n; i++)
                r->hosts->v[i].slots_given = r->hosts->v[i].slots > 0;
        r->hosts->source = xasprintf("%s%s%s", r->title, job ? " job " : " allocation", shown);
        r->hosts->slots_source = xstrdup(slots_from);
}

void alloc_settle(struct alloc_reader *r, const char *job, const char *tasks_from, int gpus,
                  const char *gpus_from)
{
        /* One task on each node is the default of managers, not a wish: GPUs say more. */
        int most = 0;

        for (size_t i = 0; i < r->hosts->n && !r->in->ppn; i++)
                most = MAX(most, r->hosts->v[i].slots);
        for (size_t i = 0; i < r->hosts->n; i++)
                r->hosts->v[i].slots = most > 1 ? MAX(r->hosts->v[i].slots, 1) : gpus;
        alloc_settle_exact(r, job, most > 1 ? tasks_from : gpus ? gpus_from : "");
}

int alloc_read(enum alloc_from from, const struct alloc_input *in, struct hosts *h, struct diags *d)
{
        struct alloc_reader r = { in, alloc_title(from), managers[from].option, h, d };
        const char *missing = find_missing_mark(from, in->env);
        int rc;

        if (missing) {
                diag_help(diag_add(d, HN_ALLOC_NOT_INSIDE, EX_USAGE,
                                   "--scheduler %s, but this is no %s allocation: %s is not set",
                                   r.option, r.title, missing),
                          "start hnlaunch inside the allocation, or name the hosts with -H or -w");
                return -EINVAL;
        }
        rc = managers[from].manager->read(&r);
        if (rc == 0)
                alloc_mark_own(h, in->host);
        return rc;
}
