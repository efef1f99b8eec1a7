/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan gives the ranks to the nodes, by the inventories of connected agents if there are any;
 * `hnlaunch plan` prints the plan. Only the plan shows whether a program has several ranks, and
 * needs MPI.
 *
 * launch_plan_make() runs again after each replacement of nodes. With an inventory, nodes that do
 * not fit are replaced first, then two nodes on a machine are refused, and the order of the nodes
 * is chosen. All checks that need the number of ranks follow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/strv.h"
#include "head/launch/launch_order.h"
#include "head/launch/launch_private.h"
#include "head/launch/launch_spares.h"
#include "head/launch/mpi_search.h"
#include "head/options/export_env.h"
#include "head/options/program_options.h"
#include "head/report/plan_print.h"

/* --- the MPI of the program ------------------------------------------------------------------- */

/* @what: the MPI library, or "mpi4py" of a script. */
static void warn_of_lone_ranks(struct launch *l, const char *program, const char *what, int ranks)
{
        diag_help(diag_warn(&l->diags, HN_LONE_WORLDS,
                            "%s uses MPI (%s), and with --mpi none each of its %d ranks is a world "
                            "of one",
                            program, what, ranks),
                  "leave out --mpi none");
}

static void warn_of_two_mpis(struct launch *l, const char *program,
                             const struct mpi_libraries *libs)
{
        bool first = libs->family == MPI_FAMILY_MPICH;
        struct diag *d = diag_warn(&l->diags, HN_TWO_MPIS,
                                   "%s would load two MPI libraries that exclude each other: %s "
                                   "(%s) and %s (%s)",
                                   program, libs->of[0], mpi_family_name(MPI_FAMILY_OPEN_MPI),
                                   libs->of[1], mpi_family_name(MPI_FAMILY_MPICH));

        for (size_t i = 0; i < 2; i++)
                diag_note(d, "%s needs %s", libs->by[i] ? libs->by[i] : program, libs->of[i]);
        diag_note(d, "its calls of MPI go to %s, which comes first", libs->of[first]);
        diag_help(d, "build the program and all of its libraries with one MPI");
}

/* Returns LD_LIBRARY_PATH of the ranks, malloc'ed; NULL = not set here. */
static char *find_library_path(const struct launch *l)
{
        struct strv env = STRV_INIT, unset = STRV_INIT;
        struct diags unused = DIAGS_INIT;
        const char *value;
        char *path;

        if (l->o->command == COMMAND_PLAN)
                export_env_collect(l->o, environ, &env, &unset, &unused);
        value = strv_env_get(env.n ? &env : &l->env, "LD_LIBRARY_PATH");
        path = value ? xstrdup(value) : NULL;
        strv_finish(&env);
        strv_finish(&unset);
        diags_finish(&unused);
        return path;
}

/* Returns how many ranks the world of a program has. */
static int count_world_ranks(const struct plan *p, size_t program)
{
        for (int i = 0; i < p->world_size; i++)
                if (p->ranks[i].program == (int)program)
                        return p->worlds[p->ranks[i].world].size;
        return 0;
}

/* Finds the MPI of the programs of a world with several ranks, @first and others: chooses PMIx for
 * --mpi auto and Open MPI. Warns of an MPI with --mpi none, and of two MPIs that exclude each
 * other, unless an earlier plan has. */
static void choose_mpi(struct launch *l, size_t first, const char *library_path)
{
        CLEANUP(mpi_found_finish) struct mpi_found found = { 0 };
        const struct mpi_libraries *libs = &found.libs;
        unsigned kind = options_mpi(l->o, first);
        int ranks = options_is_per_node(l->o, first) ? 1 : count_world_ranks(&l->plan, first);
        bool is_new = !(l->end.told & TOLD_MPI);
        const char *mpi;

        /* The first program that has an MPI decides: in one world all have the same. */
        for (size_t i = first; i < l->n_programs && !libs->name && !found.script; i++) {
                const struct job_program *p = &l->programs[i];

                mpi_found_finish(&found);
                if (ranks > 1 && options_share_world(l->o, first, i))
                        mpi_search(&found, p->argv->v, p->cwd ? p->cwd : l->cwd, library_path);
        }
        mpi = libs->name ? libs->name : found.script ? "mpi4py" : "";
        if (!*l->mpi)
                snprintf(l->mpi, sizeof(l->mpi), "%s", mpi);
        if (kind == MPI_NONE && *mpi && is_new)
                warn_of_lone_ranks(l, libs->name ? found.program : found.script, mpi, ranks);
        else if (libs->of[0] && libs->of[1] && is_new)
                warn_of_two_mpis(l, found.program, libs);
        if (kind == MPI_AUTO && libs->family == MPI_FAMILY_OPEN_MPI)
                options_set_mpi(l->o, first, MPI_PMIX);
}

static void choose_mpis(struct launch *l)
{
        CLEANUP(free_textp) char *library_path = find_library_path(l);
        size_t before = l->diags.n;

        *l->mpi = '\0';
        for (size_t i = 0; i < l->n_programs; i++) {
                size_t first = 0;

                /* The first program of the world decides for all. */
                while (!options_share_world(l->o, first, i))
                        first++;
                if (first == i)
                        choose_mpi(l, i, library_path);
        }
        if (l->diags.n > before)
                l->end.told |= TOLD_MPI;
}

/* --- the plan --------------------------------------------------------------------------------- */

/* Ends the launch: the plan has errors in diags. Without a job no spare host was asked. Returns the
 * exit code. */
static int refuse_plan(struct launch *l)
{
        if (l->run->job)
                launch_spares_note(l);
        return verdict_nothing_started(l, EX_UNAVAILABLE);
}

/* Plans the ranks, or the replicas of the roles. 0, or < 0 with errors in diags. */
static int build_plan_of_job(struct launch *l, const struct plan_inventory *inv)
{
        size_t n = options_count_roles(l->o);
        struct plan_role *roles;
        int r;

        if (!n)
                return plan_build(&l->plan, &l->hosts, inv, &l->o->plan, &l->diags);
        roles = xcalloc(n, sizeof(*roles)); /* their texts are lent */
        for (size_t i = 0; i < n; i++)
                roles[i] = *options_role(l->o, i);
        r = plan_roles_build(&l->plan, &l->hosts, inv, roles, n, &l->diags);
        free(roles);
        return r;
}

int launch_plan_make(struct launch *l)
{
        struct plan_inventory *guess = l->inventory ? NULL : launch_gpus_guess(l);
        int rc = l->inventory ? launch_spares_fit(l) : 0;
        /* Before launch_order_settle(): the first plan must have whole segments, later ones only
         * warn. */
        bool again = launch_order_is_settled(l);

        if (!rc && l->inventory)
                rc = launch_check_machines(l);
        if (!rc && l->inventory)
                rc = launch_order_settle(l);
        if (!rc && build_plan_of_job(l, guess ? guess : l->inventory) < 0)
                rc = refuse_plan(l);
        launch_gpus_free(guess, l->hosts.n);
        if (!rc)
                rc = launch_order_check(l, again);
        if (!rc)
                rc = launch_programs_share(l);
        if (!rc)
                launch_gpus_check(l);
        if (!rc)
                rc = launch_setup_check_compat(l);
        if (!rc && l->o->argv.n)
                choose_mpis(l);
        return rc;
}

/* Prints the plan to standard output, or to the file of --json. Returns 0, or the exit code. */
static int print_plan_json(struct launch *l)
{
        const char *path = l->o->json_file;
        FILE *to = path ? fopen(path, "we") : stdout;
        struct error err;

        if (to)
                plan_print_json(to, &l->plan, &l->hosts, l->o, l->config->book, l->manifests,
                                l->inventory, l->cwd);
        if (!to || (path && fclose(to) != 0)) {
                err_set(&err, errno, "cannot write the plan to %s: %s", path, strerror(errno));
                return verdict_nothing_because(l, HN_NO_LOG_FOLDER, EX_CANTCREAT, &err);
        }
        verdict_say(l);
        return 0;
}

/* Reads OMP_NUM_THREADS of the user for a program; 0 = not set. */
static uint32_t read_threads_wanted(const struct launch *l, size_t program)
{
        const char *own = strv_env_get(&l->programs[program].env, "OMP_NUM_THREADS");
        const char *text = own ? own : strv_env_get(&l->env, "OMP_NUM_THREADS");
        long n = text ? strtol(text, NULL, 10) : 0;

        /* A list as in "4,2" counts by its first number: that of the outer threads. */
        return n > 0 && n < INT32_MAX ? (uint32_t)n : 0;
}

/* Whether a program has devices of its own: as order_binding.c of the agent decides. */
static bool renumbers_devices(const struct launch *l, size_t program)
{
        static const char *const names[] = { "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                             "GPU_DEVICE_ORDINAL" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strv_env_get(&l->programs[program].env, names[i]) ||
                    strv_env_get(&l->env, names[i]))
                        return true;
        return false;
}

/* Asks the agents to which cores they would bind the ranks (`plan --probe`). Not with --bind none,
 * unless network cards are asked for. */
static void ask_bindings(struct launch *l)
{
        struct job_bind_wish *wishes = xcalloc(l->n_programs + 1, sizeof(*wishes));

        for (size_t i = 0; i < l->n_programs; i++)
                wishes[i] = (struct job_bind_wish){ read_threads_wanted(l, i),
                                                    renumbers_devices(l, i) };
        if (!l->o->bind || strcmp(l->o->bind, "none") != 0 || l->o->near_nic)
                job_ask_bindings(l->run->job, &l->plan, wishes, l->inventory);
        free(wishes);
}

/* Frees the answers, which belong to the inventory. Before the plan, which has their number. */
static void drop_bindings(struct launch *l)
{
        for (size_t i = 0; l->inventory && i < l->plan.n_nodes; i++) {
                struct plan_binding *b = l->inventory[i].bindings;

                for (int k = 0; b && k < l->plan.nodes[i].n_ranks; k++) {
                        free(b[k].cpus);
                        free(b[k].why);
                        free(b[k].nics);
                }
                free(b);
                l->inventory[i].bindings = NULL;
        }
}

static int print_plan(struct launch *l)
{
        if (l->o->json)
                return print_plan_json(l);
        if (l->o->ranks.n)
                plan_print_ranks(stdout, &l->plan, &l->hosts, l->o, l->config->book,
                                 &l->config->ports);
        else
                plan_print_table(stdout, &l->plan, &l->hosts, l->o, l->config->book, l->manifests,
                                 l->inventory, l->cwd);
        verdict_say(l);
        return 0;
}

int launch_plan_print(struct launch *l)
{
        int rc;

        if (export_env_collect(l->o, environ, &l->env, &l->unset, &l->diags) < 0)
                return verdict_nothing_started(l, EX_NOINPUT);
        rc = launch_pack_files(l);
        if (!rc)
                launch_programs_prepare(l);
        if (!rc)
                rc = launch_roles_check_ready(l);
        if (!rc && l->o->probe)
                rc = launch_connect(l);
        if (!rc)
                rc = launch_plan_make(l);
        if (!rc)
                rc = launch_setup_check_ranks(l);
        if (rc)
                return rc;
        launch_roles_guess(l);
        if (l->o->probe)
                ask_bindings(l);
        rc = print_plan(l);
        drop_bindings(l);
        return rc;
}
