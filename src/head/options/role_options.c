/* SPDX-License-Identifier: Apache-2.0 */
/*
 * role_options_settle() runs after the configuration has been read. Names and places are checked
 * first, since later checks follow --on, then the options of each role. complete_role() at last
 * copies the options of the job.
 *
 * A role has three sources of an option: words of the role (program_options_has()), the options of
 * the job, which stand in front of the first role or in [run], and what --on and --per-node imply.
 * Words of the role are checked before the copy, as afterwards these and the job's look the same.
 */
#include "head/options/role_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/hosts/spare_hosts.h"
#include "head/model/role_order.h"
#include "head/options/config.h"
#include "head/options/job_file_roles.h"
#include "head/options/program_options.h"
#include "head/options/role_conduct.h"

enum {
        ROLE_NAME_MAX = 32,
        ROLE_INDEX_DIGITS = 5,
        ROLE_COUNT_DIGITS = 5,
};

/* ---- values ---- */

/* Whether the first @len bytes are a name of a role. Names stand in keys (role.NAME.nodes) and
 * lists, so dots, colons, commas and blanks are left out. */
static bool is_role_name(const char *text, size_t len)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_-";

        return len && len <= ROLE_NAME_MAX && isalpha((unsigned char)*text) &&
               strspn(text, letters) >= len;
}

/* Reads @len digits, at most @most. Returns -1 for any other text. */
static int read_short_number(const char *text, size_t len, size_t most)
{
        return len && len <= most && strspn(text, "0123456789") >= len ? atoi(text) : -1;
}

OPTION_PARSER(value_role_name)
{
        (void)def;
        if (!is_role_name(text, strlen(text)))
                return err_set(err, EINVAL,
                               "needs a name: a letter, then up to %d letters, digits, - and _, "
                               "got `%s`",
                               ROLE_NAME_MAX - 1, text);
        free(*(char **)field);
        *(char **)field = xstrdup(text);
        return 0;
}

OPTION_PARSER(value_role_names)
{
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        const char *at = text;

        (void)def;
        for (size_t len; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
                at += strspn(at, " ");
                len = strcspn(at, ", ");
                /* strchr() also finds the NUL at the end. */
                if (!is_role_name(at, len) || !strchr(",", at[len + strspn(at + len, " ")]))
                        return err_set(err, EINVAL,
                                       "needs names of roles, ROLE[,ROLE...], got `%s`", text);
                strv_pushf(&names, "%.*s", (int)len, at);
        }
        strv_finish(field);
        *(struct strv *)field = names;
        names = (struct strv)STRV_INIT;
        return 0;
}

OPTION_PARSER(value_role_nodes)
{
        size_t len = strlen(text), digits = strspn(text, "0123456789");
        int n = read_short_number(text, digits, ROLE_COUNT_DIGITS);
        bool percent = n > 0 && n <= 100 && !strcmp(text + digits, "%");
        struct role_nodes *to = field;
        /* Any text but a number or a percentage; host names may begin with digits. */
        bool list = len && digits < len && text[digits] != '%';

        (void)def;
        if (!percent && !list && (n <= 0 || digits < len))
                return err_set(err, EINVAL,
                               "of a role must be a number, 1%% to 100%%, rest or a host list, got "
                               "`%s`",
                               text);
        /* A later value replaces an earlier value of another form. */
        free(to->list);
        *to = (struct role_nodes){ 0 };
        if (percent)
                to->percent = n;
        else if (!list)
                to->count = n;
        else if (!strcmp(text, "rest"))
                to->rest = true;
        else
                to->list = xstrdup(text);
        return 0;
}

OPTION_PARSER(value_role_on)
{
        size_t len = strcspn(text, ":");
        const char *index = text[len] ? text + len + 1 : NULL;
        int n = !index ? ROLE_EACH_NODE
                : !strcmp(index, "last")
                        ? ROLE_LAST_NODE
                        : read_short_number(index, strlen(index), ROLE_INDEX_DIGITS);
        struct role_place *to = field;

        (void)def;
        if (!is_role_name(text, len) || (index && strcmp(index, "last") != 0 && n < 0))
                return err_set(err, EINVAL, "must be ROLE, ROLE:INDEX or ROLE:last, got `%s`",
                               text);
        free(to->role);
        *to = (struct role_place){ xstrndup(text, len), n };
        return 0;
}

void role_options_finish(struct plan_role *role)
{
        free(role->name);
        free(role->world);
        free(role->nodes.list);
        free(role->on.role);
        free(role->place);
}

/* ---- names and places ---- */

/* Refuses two roles of one name, on the command line: the parser of a job file has done so. */
static int check_names(const struct options *o, struct diags *d)
{
        size_t n = options_count_roles(o);
        int r = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < i; k++)
                        if (!strcmp(options_role(o, i)->name, options_role(o, k)->name)) {
                                diag_help(diag_add(d, HN_ROLE_TWICE, EX_USAGE,
                                                   "two roles are called `%s`",
                                                   options_role(o, i)->name),
                                          "--replicas R makes R equal worlds of one role");
                                r = -EINVAL;
                        }
        return r;
}

/* The number of a role is the number of its program. */
size_t role_options_find(const struct options *o, const char *name)
{
        size_t i = 0, n = options_count_roles(o);

        while (i < n && strcmp(options_role(o, i)->name, name) != 0)
                i++;
        return i;
}

int role_options_refuse_name(const struct options *o, const char *option, const char *name,
                             const char *of, struct diags *d)
{
        size_t n = options_count_roles(o);
        const char **names = xcalloc(n, sizeof(*names)), *near;
        struct diag *diag =
                diag_add(d, HN_NO_ROLE, EX_USAGE, "%s %s%s%s%s: there is no role of this name",
                         option, name, of ? " of role `" : "", of ? of : "", of ? "`" : "");
        struct buf all = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;

        for (size_t i = 0; i < n; i++) {
                names[i] = options_role(o, i)->name;
                buf_printf(&all, i ? ", %s" : "%s", names[i]);
        }
        text = buf_steal(&all);
        near = diag_did_you_mean(name, names, n);
        job_file_roles_place(o->settings, &(struct job_place){ of, option + strlen("--") }, 1,
                             diag);
        diag_note(diag, "the roles are %s", text);
        if (near)
                diag_help(diag, "did you mean `%s %s`?", option, near);
        free(names);
        return -EINVAL;
}

/* Refuses the role if --on leads back to the same role. A path that runs into a circle of other
 * roles ends after as many steps as there are roles; the other roles are refused in turn. */
static int check_circle(const struct options *o, size_t first, struct diags *d)
{
        size_t n = options_count_roles(o), i = first;
        struct buf path = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;
        struct diag *diag;

        for (size_t steps = 0; steps <= n && options_role(o, i)->on.role; steps++) {
                buf_printf(&path, "%s --on ", options_role(o, i)->name);
                i = role_options_find(o, options_role(o, i)->on.role);
                if (i == first)
                        break;
        }
        buf_printf(&path, "%s", options_role(o, i)->name);
        text = buf_steal(&path);
        if (i != first || !options_role(o, first)->on.role)
                return 0;
        diag = diag_add(d, HN_ROLE_CIRCLE, EX_USAGE, "roles stand on each other: %s", text);
        job_file_roles_place(o->settings, &(struct job_place){ options_role(o, first)->name, "on" },
                             1, diag);
        diag_help(diag, "one of them needs nodes of its own: --nodes N in place of --on");
        return -EINVAL;
}

/* Refuses --on of an unknown role, and circles. */
static int check_places(const struct options *o, struct diags *d)
{
        size_t n = options_count_roles(o);
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                const struct plan_role *role = options_role(o, i);

                if (role->on.role && role_options_find(o, role->on.role) == n)
                        r = role_options_refuse_name(o, "--on", role->on.role, role->name, d);
        }
        for (size_t i = 0; i < n && r == 0; i++)
                r = check_circle(o, i, d);
        return r;
}

/* ---- options of a role ---- */

/* Shows where a job file has options of a role; @other NULL = none. */
static void place_options(const struct options *o, const struct plan_role *role, const char *one,
                          const char *other, struct diag *diag)
{
        const struct job_place v[] = { { role->name, one }, { role->name, other } };

        job_file_roles_place(o->settings, v, ARRAY_SIZE(v), diag);
}

/* Refuses two options of a role. @one may go on behind the name of the option: "--ready key:".
 * Returns -EINVAL. */
static int refuse_pair(const struct options *o, const struct plan_role *role, const char *one,
                       const char *other, const char *reason, struct diags *d)
{
        CLEANUP(free_textp) char *option = xstrndup(one + 2, strcspn(one + 2, " "));
        struct diag *diag =
                diag_add(d, HN_ROLE_OPTION, EX_USAGE, "role `%s`: %s and %s exclude each other",
                         role->name, one, other);

        place_options(o, role, option, other + 2, diag);
        diag_help(diag, "%s; leave one of them out", reason);
        return -EINVAL;
}

/* Refuses contradicting options of a role; all are told. */
static int check_role(const struct options *o, const struct program_options *p, struct diags *d)
{
        const struct plan_role *role = &p->role;
        struct diag *diag;
        int r = 0;

        if (role->on.role && program_options_has(p, "nodes"))
                r = refuse_pair(o, role, "--on", "--nodes",
                                "--on takes the nodes of the other role", d);
        if (role->on.role && role->replicas)
                r = refuse_pair(o, role, "--on", "--replicas",
                                "one process stands on each node of the other role", d);
        if (role->world && role->replicas)
                r = refuse_pair(o, role, "--world", "--replicas", "each replica is a world", d);
        if (role->plan.per_node && program_options_has(p, "ppn"))
                r = refuse_pair(o, role, "--per-node", "--ppn",
                                "--per-node starts one process on each node", d);
        if (role->plan.per_node && program_options_has(p, "gpus-per-rank"))
                r = refuse_pair(o, role, "--per-node", "--gpus-per-rank",
                                "the process of a node gets all GPUs of the node", d);
        if (role->plan.per_node && program_options_has(p, "mpi"))
                r = refuse_pair(o, role, "--per-node", "--mpi",
                                "the process of a node is no rank of an MPI world", d);
        if (p->conduct.ready.kind == READY_KEY && role->plan.per_node)
                r = refuse_pair(o, role, "--ready key:", "--per-node",
                                "a process of --per-node has no store", d);
        if (p->conduct.ready.kind == READY_START && program_options_has(p, "ready-timeout")) {
                diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                                "role `%s`: --ready-timeout, but the role is ready with its start",
                                role->name);
                place_options(o, role, "ready-timeout", NULL, diag);
                diag_help(diag, "add what it is asked: --ready http:/health, --ready tcp:8000");
                r = -EINVAL;
        }
        if (role->share_gpus && !role->on.role) {
                diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE, "role `%s`: --share-gpus without --on",
                                role->name);
                place_options(o, role, "share-gpus", NULL, diag);
                diag_help(diag, "GPUs are shared with the role that has the nodes: add --on ROLE");
                r = -EINVAL;
        }
        return r;
}

/* Returns the place that makes the role take the rest: --nodes rest, or the role itself, which asks
 * for no number of nodes. */
static const char *name_rest(const struct plan_role *role)
{
        return role->nodes.rest ? "nodes" : "role";
}

/* Refuses a second role that takes the nodes left over. */
static int check_rest(const struct options *o, struct diags *d)
{
        const struct plan_role *first = NULL;
        struct diag *diag;

        for (size_t i = 0; i < options_count_roles(o); i++) {
                const struct plan_role *role = options_role(o, i);

                if (!plan_role_takes_rest(role))
                        continue;
                if (!first) {
                        first = role;
                        continue;
                }
                diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                                "roles `%s` and `%s` both take the rest of the nodes", first->name,
                                role->name);
                job_file_roles_place(
                        o->settings,
                        (const struct job_place[]){ { role->name, name_rest(role) },
                                                    { first->name, name_rest(first) } },
                        2, diag);
                diag_help(diag, "give one of them --nodes N, -n N, or the nodes of another role: "
                                "--on ROLE");
                return -EINVAL;
        }
        return 0;
}

/* ---- what the job says ---- */

/* Refuses -n in front of the first --role, which is meant for a role. A configuration may have -n
 * for other jobs. */
static int refuse_job_ranks(const struct options *o, struct diags *d)
{
        if (settings_level(o->settings, option_by_name("np")) != LEVEL_LINE)
                return 0;
        diag_help(diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                           o->settings->n_roles
                                   ? "-n beside a job file with roles: each role has its own"
                                   : "-n in front of the first --role: each role has its own"),
                  o->settings->n_roles ? "write n = N below the [role NAME] that it is meant for"
                                       : "write it behind the --role that it is meant for");
        return -EINVAL;
}

/* Without a node the worlds of other roles would change, too, and a role may lose all its ranks. */
static int refuse_fewer_nodes(const struct options *o, struct diags *d)
{
        struct diag *diag;

        if (!options_min_nodes(o))
                return 0;
        diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                        "--min-nodes and --nodes MIN:MAX: a job of roles needs all its nodes");
        job_file_roles_place(o->settings,
                             &(struct job_place){ NULL, o->min_nodes ? "min-nodes" : "nodes" }, 1,
                             diag);
        diag_help(diag,
                  "leave it out; with --spares other hosts take the places of nodes that fail");
        return -EINVAL;
}

/* Only --nodes N in front of a plain job tells how many hosts are not needed. */
static int refuse_auto_spares(const struct options *o, struct diags *d)
{
        struct diag *diag;

        if (o->spares != SPARES_AUTO)
                return 0;
        diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                        "--spares auto: a job of roles has no number of hosts that it needs");
        job_file_roles_place(o->settings, &(struct job_place){ NULL, "spares" }, 1, diag);
        diag_help(diag, "--spares N takes the last N hosts");
        return -EINVAL;
}

/* Refuses what the roles of one world cannot have. They meet as the first of them says. */
static int check_shared_world(struct options *o, size_t i, struct diags *d)
{
        struct program_options *p = options_program(o, i);
        struct diag *diag;
        size_t first = 0;

        if (!p->role.world)
                return 0;
        if (p->role.plan.per_node)
                return refuse_pair(o, &p->role, "--per-node", "--world",
                                   "the process of a node is no rank of a world", d);
        /* The role shares a world with itself, so the search ends at @i. */
        while (!options_share_world(o, first, i))
                first++;
        if (first < i && program_options_has(p, "mpi") && p->mpi != options_mpi(o, first)) {
                const char *name = options_role(o, first)->name;

                diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                                "role `%s` has another --mpi than role `%s` of the same world",
                                p->role.name, name);
                job_file_roles_place(
                        o->settings,
                        (const struct job_place[]){ { p->role.name, "mpi" }, { name, "mpi" } }, 2,
                        diag);
                diag_help(diag,
                          "the roles of a world meet in one way: write --mpi behind the first");
                return -EINVAL;
        }
        /* Roles behind the first need not repeat --mpi. */
        p->mpi = options_mpi(o, first);
        return 0;
}

/* Refuses a part of the job that cannot start again by itself, as the ranks of
 * a world start together. */
static int check_restart_scope(const struct options *o, size_t i, struct diags *d)
{
        const struct program_options *p = options_program(o, i);
        const struct plan_role *role = &p->role;
        bool alone = p->conduct.restart_scope == ROLE_SCOPE_ALONE;

        if (p->conduct.restart_scope == ROLE_SCOPE_JOB)
                return 0;
        for (size_t k = 0; k < options_count_roles(o); k++)
                if (k != i && options_share_world(o, i, k))
                        return refuse_pair(o, role,
                                           alone ? "--restart-scope alone" : "--restart-scope role",
                                           "--world", "the ranks of a world start together", d);
        if (!alone || role->plan.per_node || role->replicas)
                return 0;
        diag_help(diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                           "role `%s`: --restart-scope alone, but its ranks are one world",
                           role->name),
                  "--restart-scope role starts them all again; alone is for --per-node and "
                  "--replicas");
        return -EINVAL;
}

/* Completes a role from the job. With --on, --ppn and GPUs of the job are not taken over: the other
 * role has the GPUs of the node. */
static void complete_role(struct program_options *p, const struct plan_options *job)
{
        struct plan_options *plan = &p->role.plan;
        bool on = p->role.on.role, gpus = program_options_has(p, "gpus-per-rank");

        if (!program_options_has(p, "ready-timeout"))
                p->conduct.ready.timeout_ms = READY_TIMEOUT_MS;
        plan->np = p->np;
        plan->oversubscribe = job->oversubscribe;
        plan->local = job->local;
        if (!program_options_has(p, "map"))
                plan->map = job->map;
        if (!program_options_has(p, "ppn") && !on)
                plan->ppn = job->ppn;
        if (!gpus && (!on || p->role.share_gpus))
                plan->gpus_per_rank = MAX(job->gpus_per_rank, p->role.share_gpus);
        if (!program_options_has(p, "per-node") && !on && !gpus && !program_options_has(p, "ppn"))
                plan->per_node = job->per_node;
        if (plan->per_node && !on)
                plan->gpus_per_rank = 1; /* all of the node */
        if (plan->per_node)
                /* A single process stands on the node, whatever the slots. */
                plan->ppn = 0;
}

int role_options_settle(struct options *o, struct diags *d)
{
        size_t n = options_count_roles(o);
        int r = check_names(o, d);

        if (r == 0)
                r = check_places(o, d);
        for (size_t i = 0; i < n; i++)
                if (check_role(o, options_program(o, i), d) < 0)
                        r = -EINVAL;
        if (r == 0)
                r = refuse_job_ranks(o, d);
        if (r == 0)
                r = refuse_fewer_nodes(o, d);
        if (r == 0)
                r = refuse_auto_spares(o, d);
        for (size_t i = 0; i < n; i++) {
                struct program_options *p = options_program(o, i);

                complete_role(p, &o->plan);
                if (!program_options_has(p, "mpi"))
                        p->mpi = o->mpi;
        }
        for (size_t i = 0; i < n && r == 0; i++)
                r = check_shared_world(o, i, d);
        for (size_t i = 0; i < n && r == 0; i++)
                r = check_restart_scope(o, i, d);
        if (r == 0)
                r = check_rest(o, d);
        if (r == 0)
                r = role_conduct_check(o, d);
        /* Each role has a number of ranks by now. */
        o->plan.np = 0;
        o->plan.per_node = false;
        return r;
}
