/* SPDX-License-Identifier: Apache-2.0 */
#include "head/launch_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "head/core/program.h"
#include "head/nodes/program_link.h"
#include "head/options/config.h"

enum { HN_TEMPLATE = 340, HN_TREE = 341, HN_PROGRAM = 342, HN_NO_JOB = 343, HN_LOGIN = 344 };

static bool is_about_ssh(const struct options *o)
{
        static const char *const names[] = { "ssh-port", "user",        "identity",
                                             "jump",     "ssh-command", "ssh-config" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (settings_level(o->settings, option_by_name(names[i])) == LEVEL_LINE)
                        return true;
        return o->tree;
}

/* Has this machine's node, too, get its agent from Ray, which else knows nothing of its GPUs' use.
 */
static void leave_none_local(struct launch *l)
{
        for (size_t i = 0; i < l->hosts.n; i++)
                l->hosts.v[i].local = false;
}

/* Resolves --start-with auto. */
static void choose_way(struct launch *l, enum alloc_from from)
{
        CLEANUP(program_link_finish) struct program_link p = PROGRAM_LINK_INIT;
        const char *way;
        struct error err;

        /* A step reaches one part of a heterogeneous job only. */
        if ((from == ALLOC_SLURM && getenv("SLURM_HET_SIZE")) ||
            (l->o.via && strcmp(l->o.via, "auto") != 0) || is_about_ssh(&l->o))
                return;
        way = program_link_of_manager(alloc_title(from));
        if (!way || program_link_parse(way, &p, &err) < 0 || !program_in_path(p.words.v[0]))
                return;
        free(l->o.via);
        l->o.via = xstrdup(way);
}

void launch_via_choose(struct launch *l, enum alloc_from from)
{
        if (!l->hosts.source)
                return;
        choose_way(l, from);
        if (from == ALLOC_RAY && l->o.via && !strcmp(l->o.via, "ray"))
                leave_none_local(l);
}

static void check_via_program(struct launch *l, const char *program)
{
        bool path = strchr(program, '/');
        int error = 0;

        if (path ? access(program, X_OK) < 0 : !program_in_path(program))
                error = path ? errno : ENOENT;
        if (error)
                diag_help(diag_add(&l->diags, HN_PROGRAM, error == EACCES ? 126 : 127,
                                   "cannot start `%s`, which starts the agents: %s", program,
                                   path ? strerror(error) : "not found in PATH"),
                          "--start-with %s names it; --start-with ssh logs in by ssh", l->o.via);
}

static void warn_of_logins(struct launch *l)
{
        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct host *h = &l->hosts.v[i];

                if (h->local || (!h->user && !h->port))
                        continue;
                diag_help(
                        diag_warn(
                                &l->diags, HN_LOGIN,
                                "the %s of %s is not used: --start-with %s does not log in by ssh",
                                h->user ? "user" : "port", h->name, l->o.via),
                        "take it out of the host list");
                return;
        }
}

void launch_via_check(struct launch *l)
{
        CLEANUP(program_link_finish) struct program_link p = PROGRAM_LINK_INIT;
        struct error err;

        if (program_link_is_ssh(l->o.via))
                return;
        if (program_link_parse(l->o.via, &p, &err) < 0) {
                diag_help(diag_add(&l->diags, HN_TEMPLATE, 64, "cannot use --start-with: %s",
                                   err.text),
                          "name the program and its arguments: --start-with 'docker exec -i "
                          "{host}'; or "
                          "one of ssh, srun, sge, ray");
                return;
        }
        if (l->o.tree)
                diag_help(diag_add(&l->diags, HN_TREE, 64,
                                   "--tree and --start-with %s exclude each other", l->o.via),
                          "--tree is for logins by ssh; leave one of them out");
        if (p.variable && !getenv(p.variable))
                diag_help(
                        diag_add(&l->diags, HN_NO_JOB, 69,
                                 "cannot use --start-with %s: this is no job of %s (%s is not set)",
                                 l->o.via, p.manager, p.variable),
                        "start hnlaunch in a job of it (salloc, sbatch, qsub -pe), or use "
                        "--start-with "
                        "ssh");
        else
                check_via_program(l, p.words.v[0]);
        warn_of_logins(l);
}
