/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address book of a job of roles: launch_roles_scan() reads all texts before anything is
 * connected, the job reserves the ports and enters the instances (head/job/job_role_ports.h), and
 * launch_roles_fill() replaces the references for each attempt.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "head/launch/launch_private.h"
#include "head/model/role_instances.h"
#include "head/options/job_file_roles.h"
#include "head/options/program_options.h"
#include "head/options/role_texts.h"
#include "wire/env_names.h"
#include "wire/port_name.h"

enum { ROLES_MAX = 128 << 10 }; /* bytes of a variable, with its name: a limit of execve() */

int launch_roles_scan(struct launch *l)
{
        l->config->book = role_texts_book(l->o);
        if (l->config->book && role_texts_scan(l->config->book, l->o, &l->diags) < 0)
                return verdict_nothing_started(l, diags_first_error(&l->diags)->exit);
        return 0;
}

/* Whether each rank of the role finds a port of this name in the environment. */
static bool has_port(const struct launch *l, size_t role, const char *name)
{
        CLEANUP(free_textp) char *variable = port_name_variable(name);

        return strv_has(role_book_ports(l->config->book, (int)role), name) ||
               strv_has(&l->config->ports, name) ||
               strv_env_get(&l->programs[role].env, variable) || strv_env_get(&l->env, variable);
}

int launch_roles_check_ready(struct launch *l)
{
        size_t before = diags_errors(&l->diags);
        const struct diag *first;

        for (size_t i = 0; i < options_count_roles(l->o); i++) {
                const char *role = options_role(l->o, i)->name;
                const char *port = role_ready_port(&options_program(l->o, i)->conduct.ready);
                struct diag *d;

                if (!port || has_port(l, i, port))
                        continue;
                d = diag_add(&l->diags, HN_BAD_PORT_NAME, EX_USAGE,
                             "role `%s`: --ready asks the port `%s`, and nothing reserves it", role,
                             port);
                job_file_roles_place(l->o->settings, &(struct job_place){ role, "ready" }, 1, d);
                diag_help(
                        d,
                        "write {port:%s} where the program of `%s` takes its port, or ask a fixed "
                        "one, as in --ready tcp:8000 or http:8000/health",
                        port, role);
        }
        first = diags_first_error(&l->diags);
        return diags_errors(&l->diags) > before ? verdict_nothing_started(l, first->exit) : 0;
}

/* Gives all ranks HN_ROLES. */
/* Gives all ranks HN_ROLES. Too long a text would make execve() fail with E2BIG, so the variable is
 * left out, with a warning. */
static void set_address_book(struct launch *l)
{
        json_t *book = role_book_json(l->config->book);
        CLEANUP(free_textp) char *text = json_dumps(book, JSON_COMPACT);

        json_decref(book);
        if (text && strlen(HN_ROLES) + strlen(text) + 2 <= ROLES_MAX) {
                strv_env_set(&l->env, HN_ROLES, text);
                return;
        }
        strv_env_unset(&l->env, HN_ROLES);
        if (!(l->end.told & TOLD_ROLES))
                log_warning(HN_ROLES_TOO_LONG,
                            "HN_ROLES is not set: the addresses of all roles are %zu KiB, and a "
                            "variable may have %d",
                            text ? strlen(text) >> 10 : 0, ROLES_MAX >> 10);
        l->end.told |= TOLD_ROLES;
}

void launch_roles_fill(struct launch *l)
{
        const struct role_book *b = l->config->book;

        if (!b)
                return;
        for (size_t i = 0; i < l->n_programs; i++) {
                struct job_program *p = &l->programs[i];

                /* The words of the attempt before have other addresses. */
                strv_finish(&p->words);
                role_texts_fill_words(b, l->o, (int)i, false, &p->words, &l->diags);
                role_texts_fill_env(b, l->o, (int)i, false, &p->env, &l->diags);
        }
        role_texts_fill_env(b, l->o, -1, false, &l->env, &l->diags);
        free(l->streams.label);
        l->streams.label = role_texts_make_label(b, l->o, &l->diags);
        set_address_book(l);
}

/* Returns the address of a node as far as it is known before the start, malloc'ed; for people
 * only. */
static char *guess_address(const struct launch *l, const struct host *host)
{
        if (host->addr)
                return xstrdup(host->addr);
        return l->plan.num_nodes == 1 ? xstrdup("127.0.0.1")
                                      : xasprintf("(address of %s)", host->name);
}

void launch_roles_guess(struct launch *l)
{
        struct role_book *b = l->config->book;

        for (int i = 0; b && i < l->plan.world_size; i++) {
                const struct plan_rank *r = &l->plan.ranks[i];
                const struct host *host = &l->hosts.v[l->plan.nodes[r->node].host];
                CLEANUP(free_textp) char *addr = guess_address(l, host);
                const struct strv *names = role_book_ports(b, r->program);
                int instance;

                /* Only the first rank of an instance enters the book. */
                if (role_instance_of(b, &l->plan, i) != i)
                        continue;
                instance = role_book_add_instance(b, r->program, host->name, addr);
                for (size_t k = 0; k < names->n; k++)
                        role_book_set_port(b, r->program, instance, names->v[k], 0);
        }
}
