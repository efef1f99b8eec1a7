/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts come from --local, from --dial-in, from host files, from host lists, or else from the
 * allocation of a resource manager; --include, --exclude and --nodes choose among the hosts. The
 * way agents are started (--start-with) depends on the kind of allocation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/commands/host_lists.h"
#include "head/core/program.h"
#include "head/dial_in/dial_in.h"
#include "head/hosts/filter.h"
#include "head/hosts/hostfile.h"
#include "head/launch/launch_bad_hosts.h"
#include "head/launch/launch_order.h"
#include "head/launch/launch_private.h"
#include "head/launch/launch_spares.h"
#include "head/nodes/program_link.h"
#include "head/nodes/same_machine.h"
#include "head/options/config.h"

/* --- what starts the agents ------------------------------------------------------------------- */

static bool is_about_ssh(const struct options *o)
{
        static const char *const names[] = { "ssh-port", "user",        "identity",
                                             "jump",     "ssh-command", "ssh-config" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (settings_level(o->settings, option_by_name(names[i])) == LEVEL_LINE)
                        return true;
        return o->tree;
}

/* Has Ray start the agent of this machine's node as well: Ray must know that its GPUs are in
 * use. */
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
            (l->o->via && strcmp(l->o->via, "auto") != 0) || is_about_ssh(l->o))
                return;
        way = program_link_of_manager(alloc_title(from));
        if (!way || program_link_parse(way, &p, &err) < 0 || !program_in_path(p.words.v[0]))
                return;
        free(l->o->via);
        l->o->via = xstrdup(way);
}

/* Resolves --start-with auto for hosts of the allocation of @from: the manager's own way, where its
 * program is in PATH and no option on the command line is about ssh. With Ray no host is local. */
static void choose_agents_start(struct launch *l, enum alloc_from from)
{
        if (!l->hosts.source)
                return;
        choose_way(l, from);
        if (from == ALLOC_RAY && l->o->via && !strcmp(l->o->via, "ray"))
                leave_none_local(l);
}

static void check_via_program(struct launch *l, const char *program)
{
        bool path = strchr(program, '/');
        int error = 0;

        if (path ? access(program, X_OK) < 0 : !program_in_path(program))
                error = path ? errno : ENOENT;
        if (error)
                diag_help(diag_add(&l->diags, HN_START_PROGRAM,
                                   error == EACCES ? EX_NOT_EXECUTABLE : EX_NOT_FOUND,
                                   "cannot start `%s`, which starts the agents: %s", program,
                                   path ? strerror(error) : "not found in PATH"),
                          "--start-with %s names it; --start-with ssh logs in by ssh", l->o->via);
}

static void warn_of_logins(struct launch *l)
{
        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct host *h = &l->hosts.v[i];

                if (h->local || (!h->user && !h->port))
                        continue;
                diag_help(
                        diag_warn(
                                &l->diags, HN_LOGIN_NOT_USED,
                                "the %s of %s is not used: --start-with %s does not log in by ssh",
                                h->user ? "user" : "port", h->name, l->o->via),
                        "take it out of the host list");
                return;
        }
}

void launch_hosts_via_check(struct launch *l)
{
        CLEANUP(program_link_finish) struct program_link p = PROGRAM_LINK_INIT;
        struct error err;

        if (program_link_is_ssh(l->o->via))
                return;
        if (program_link_parse(l->o->via, &p, &err) < 0) {
                diag_help(diag_add(&l->diags, HN_BAD_START_WITH, EX_USAGE,
                                   "cannot use --start-with: %s", err.text),
                          "name the program and its arguments: --start-with 'docker exec -i "
                          "{host}'; or "
                          "one of ssh, srun, sge, ray");
                return;
        }
        if (l->o->tree)
                diag_help(diag_add(&l->diags, HN_TREE_BESIDE_START_WITH, EX_USAGE,
                                   "--tree and --start-with %s exclude each other", l->o->via),
                          "--tree is for logins by ssh; leave one of them out");
        if (p.variable && !getenv(p.variable))
                diag_help(
                        diag_add(&l->diags, HN_NO_JOB_OF_MANAGER, EX_UNAVAILABLE,
                                 "cannot use --start-with %s: this is no job of %s (%s is not set)",
                                 l->o->via, p.manager, p.variable),
                        "start hnlaunch in a job of it (salloc, sbatch, qsub -pe), or use "
                        "--start-with "
                        "ssh");
        else
                check_via_program(l, p.words.v[0]);
        warn_of_logins(l);
}

/* --- hosts ------------------------------------------------------------------------------------ */

/* The pods of an MPIJob start in any order, and their names resolve late. */
enum { OPERATOR_RETRY_MS = 5 * 60 * 1000 };

/* Takes the hosts of the allocation, and settings that depend on its kind. */
static void load_allocation(struct launch *l)
{
        enum alloc_from from = l->o->from == ALLOC_AUTO ? alloc_find(environ) : l->o->from;

        alloc_load(l->o->from, l->o->plan.ppn != 0, &l->hosts, &l->diags);
        choose_agents_start(l, from);
        if (from == ALLOC_MPI_OPERATOR &&
            settings_level(l->o->settings, option_by_name("connect-retry")) <= LEVEL_PRESET)
                l->o->connect_retry_ms = OPERATOR_RETRY_MS;
}

/* Marks local hosts. */
static void mark_own_hosts(struct launch *l)
{
        const struct options *o = l->o;
        const struct ssh_options login = {
                .config_file = o->ssh_config, .user = o->user, .port = o->port, .jump = o->jump
        };

        same_machine_mark_own(&l->hosts, &login);
}

/* Of `hnlaunch hosts`, whose lists are sets. */
static int load_listed_hosts(struct launch *l)
{
        if (host_lists_any(l->o))
                host_lists_load(&l->hosts, l->o, &l->diags);
        else
                load_allocation(l);
        if (program_link_is_ssh(l->o->via))
                mark_own_hosts(l);
        return diags_errors(&l->diags) ? EX_DATAERR : 0;
}

int launch_hosts_load(struct launch *l)
{
        const struct options *o = l->o;
        bool replaces = options_replace_nodes(o), ordered = launch_order_is_wanted(l);

        if (o->command == COMMAND_HOSTS)
                return load_listed_hosts(l);
        if (o->local) {
                struct host *h = hosts_add(&l->hosts);

                h->name = xstrdup("localhost");
                h->file = xstrdup("--local");
                h->line = 1;
                h->local = true;
                h->slots = o->local_n;
                l->o->plan.local = true;
        }
        if (l->config->dial_in)
                dial_in_add_hosts(l->config->dial_in, &l->hosts);
        for (size_t i = 0; i < o->hostfiles.n; i++)
                hostfile_load(&l->hosts, o->hostfiles.v[i], &l->diags);
        if (!o->local && !l->config->dial_in && !o->hostfiles.n && !o->hostlists.n)
                load_allocation(l);
        for (size_t i = 0; !o->hostfiles.n && i < o->hostlists.n; i++)
                hostlist_load(&l->hosts, o->hostlists.v[i], &l->diags);
        /* Beside a hostfile, a host list only chooses among the hosts of the file. */
        if (o->hostfiles.n && o->hostlists.n && !diags_errors(&l->diags))
                filter_choose(&l->hosts, &o->hostlists, &l->diags);
        if (!l->hosts.source && !o->local && !l->config->dial_in && o->from != ALLOC_NONE &&
            !diags_errors(&l->diags))
                alloc_check_given(o->from, &l->hosts, &l->diags);
        /* Several runs may divide an allocation: only a run on all its hosts claims it. */
        if (l->hosts.source && o->command == COMMAND_RUN && !o->include.n && !o->exclude.n &&
            !o->nodes)
                alloc_claim(&l->hosts, &l->diags);
        if (!o->local && !l->config->dial_in && program_link_is_ssh(o->via))
                mark_own_hosts(l);
        /* With spares, launch_spares_choose() applies the list, as a spare host may replace a bad
         * one. */
        if (!diags_errors(&l->diags) && !replaces)
                launch_bad_hosts_apply(l);
        if (!diags_errors(&l->diags))
                /* With spares, --nodes counts working hosts and drops none here. */
                filter_apply(&l->hosts, &o->include, &o->exclude,
                             replaces || ordered ? 0 : o->nodes, &l->diags);
        if (!diags_errors(&l->diags) && ordered && !replaces)
                launch_spares_order(l);
        if (!diags_errors(&l->diags) && replaces)
                launch_spares_choose(l);
        return diags_errors(&l->diags) ? EX_DATAERR : 0;
}
