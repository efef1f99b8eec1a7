/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names become numbers by role_options_find(). Cycles are looked for when all names are valid, with
 * worlds as a whole: through roles of one world others may wait for themselves.
 *
 * The rules by which roles start and end at run time are in head/model/role_order.h; here are the
 * mistakes found before the start. Each error has the lines of a job file behind the mistake.
 */
#include "head/options/role_conduct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/model/role_order.h"
#include "head/options/config.h"
#include "head/options/job_file_roles.h"
#include "head/options/option_table.h"
#include "head/options/program_options.h"
#include "head/options/role_options.h"
#include "head/term/diag.h"

/* Returns the names of --after of a role; lent. */
static const struct strv *names_after(const struct options *o, size_t i)
{
        return &options_program(o, i)->conduct.after;
}

/* The roles of a world start together, so a wait of any role holds for all. */
void role_conduct_list_after(const struct options *o, size_t i, struct intlist *to)
{
        for (size_t k = 0; k < options_count_roles(o); k++)
                for (size_t n = 0; options_share_world(o, i, k) && n < names_after(o, k)->n; n++) {
                        int role = (int)role_options_find(o, names_after(o, k)->v[n]);

                        if (!intlist_has(to, role))
                                intlist_add(to, role);
                }
}

/* Refuses --after of an unknown role, or of a role in the same world. A role waiting for itself is
 * a cycle (check_cycles()). */
static int check_after(const struct options *o, size_t i, struct diags *d)
{
        const char *name = options_role(o, i)->name;
        struct diag *diag;
        int r = 0;

        for (size_t k = 0; k < names_after(o, i)->n; k++) {
                const char *other = names_after(o, i)->v[k];
                size_t at = role_options_find(o, other);

                if (at == options_count_roles(o)) {
                        r = role_options_refuse_name(o, "--after", other, name, d);
                } else if (at != i && options_share_world(o, i, at)) {
                        diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                                        "role `%s`: --after %s, which is in the same world", name,
                                        other);
                        job_file_roles_place(
                                o->settings,
                                (const struct job_place[]){ { name, "after" }, { name, "world" } },
                                2, diag);
                        diag_help(diag, "the ranks of a world start together: leave --after or "
                                        "--world out");
                        r = -EINVAL;
                }
        }
        return r;
}

/* Refuses roles that wait for each other. */
static int check_cycles(const struct options *o, struct diags *d)
{
        size_t n = options_count_roles(o);
        struct role_rule *rules = xcalloc(n, sizeof(*rules));
        CLEANUP(intlist_finish) struct intlist path = { 0 };
        struct buf text = BUF_INIT;
        CLEANUP(free_textp) char *shown = NULL;
        /* The path names the first role again at the end. */
        struct job_place *places = xcalloc(n + 1, sizeof(*places));
        struct diag *diag;
        bool found;

        for (size_t i = 0; i < n; i++)
                role_conduct_list_after(o, i, &rules[i].after);
        found = role_order_find_cycle(rules, n, &path);
        for (size_t i = 0; i < path.n; i++) {
                places[i] = (struct job_place){ options_role(o, (size_t)path.v[i])->name, "after" };
                buf_printf(&text, i ? " --after %s" : "%s", places[i].role);
        }
        shown = buf_steal(&text);
        if (found) {
                diag = diag_add(d, HN_ROLE_CIRCLE, EX_USAGE, "roles wait for each other: %s",
                                shown);
                job_file_roles_place(o->settings, places, path.n, diag);
                diag_help(diag, "none of them can start first: leave one --after out");
        }
        free(places);
        for (size_t i = 0; i < n; i++)
                intlist_finish(&rules[i].after);
        free(rules);
        return found ? -EINVAL : 0;
}

/* Refuses --main of an unknown role, and of a role whose end means nothing. */
static int check_main(const struct options *o, struct diags *d)
{
        struct diag *diag;
        int r = 0;

        for (size_t i = 0; i < o->main_roles.n; i++) {
                const char *name = o->main_roles.v[i];
                size_t at = role_options_find(o, name);

                if (at == options_count_roles(o)) {
                        r = role_options_refuse_name(o, "--main", name, NULL, d);
                } else if (options_program(o, at)->conduct.ends_ok) {
                        diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE,
                                        "role `%s`: --ends ok, but --main waits for its end", name);
                        job_file_roles_place(
                                o->settings,
                                (const struct job_place[]){ { name, "ends" }, { NULL, "main" } }, 2,
                                diag);
                        diag_help(diag, "--ends ok is for a role beside those of --main");
                        r = -EINVAL;
                }
        }
        return r;
}

/* Refuses an option of the job. @text may go on behind the name of the option: "--ends-with rank0".
 * Returns -EINVAL. */
static int refuse_job_option(const struct options *o, const char *text, const char *reason,
                             const char *help, struct diags *d)
{
        CLEANUP(free_textp) char *option = xstrndup(text + 2, strcspn(text + 2, " "));
        struct diag *diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE, "%s: %s", text, reason);

        job_file_roles_place(o->settings, &(struct job_place){ NULL, option }, 1, diag);
        diag_help(diag, "%s", help);
        return -EINVAL;
}

int role_conduct_check(const struct options *o, struct diags *d)
{
        int r = check_main(o, d);

        for (size_t i = 0; i < options_count_roles(o); i++)
                if (check_after(o, i, d) < 0)
                        r = -EINVAL;
        if (r == 0)
                r = check_cycles(o, d);
        if (o->success == SUCCESS_RANK0)
                r = refuse_job_option(o, "--ends-with rank0", "each role has a rank 0",
                                      "name the roles whose end counts: --main ROLE", d);
        if (o->linger_ms && !o->main_roles.n)
                r = refuse_job_option(o, "--linger", "there is no --main",
                                      "--main ROLE names the roles whose end counts", d);
        return r;
}

void role_conduct_refuse(const struct options *o, struct diags *d)
{
        const char *const names[] = { "main", "linger" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                int level = settings_level(o->settings, option_by_name(names[i]));
                struct diag *diag;

                /* In a configuration it is for the jobs that have roles. */
                if (level != LEVEL_JOB && level != LEVEL_LINE)
                        continue;
                diag = diag_add(d, HN_ROLE_OPTION, EX_USAGE, "--%s: the job has no roles",
                                names[i]);
                job_file_roles_place(o->settings, &(struct job_place){ NULL, names[i] }, 1, diag);
                diag_help(diag, level == LEVEL_JOB ? "write each program below a [role NAME]"
                                                   : "write --role NAME in front of each program");
        }
}
