/* SPDX-License-Identifier: Apache-2.0 */
/* What options mean here: for this terminal, this folder, this world size. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strv.h"
#include "head/core/program.h"
#include "head/hosts/range.h"
#include "head/launch.h"
#include "head/mpi_program.h"
#include "head/nodes/ssh_program.h"

void run_find_program(struct run *r)
{
        char **name = r->o.argv.v, *here, *full;

        /* A plan needs no program. */
        if (!name || strchr(*name, '/') || program_in_path(*name))
                return;
        full = xasprintf("%s/%s", r->cwd, *name);
        if (access(full, F_OK) == 0) {
                here = xasprintf("./%s", *name);
                free(*name);
                *name = here;
        }
        free(full);
}

/* Ranks of MPI find each other through their launcher, and without it each is alone. */
void run_check_mpi(struct run *r)
{
        char *const *argv = r->o.argv.v;
        char *path = **argv == '/'        ? xstrdup(*argv)
                     : strchr(*argv, '/') ? xasprintf("%s/%s", r->cwd, *argv)
                                          : program_find_in_path(*argv);
        bool several = path && r->plan.world_size > 1;
        char *library = several ? mpi_library_of(path) : NULL;
        char *script = several && !library ? mpi_script_of(path, argv, r->cwd) : NULL;
        const char *more = argv[1] ? " ..." : "";
        struct diag *d;

        if (library || script) {
                d = diag_warn(&r->diags, 313,
                              "%s uses MPI (%s), which hnlaunch does not start: each of its %d "
                              "ranks is a world of one",
                              script ? script : *argv, library ? library : "mpi4py",
                              r->plan.world_size);
                if (r->o.hostfiles.n)
                        diag_help(d, "mpirun --hostfile %s %s%s", r->o.hostfiles.v[0], *argv, more);
                else
                        diag_help(d, "mpirun %s-n %d %s%s", r->o.local ? "" : "--host HOST,... ",
                                  r->plan.world_size, *argv, more);
        }
        free(script);
        free(library);
        free(path);
}

static void check_ssh_command(struct run *r)
{
        struct strv words = STRV_INIT;
        struct error err;

        if (r->o.ssh_command && ssh_program_split(r->o.ssh_command, &words, &err) == 0) {
                const char *program = words.v[0];

                if (!strchr(program, '/') && !program_in_path(program))
                        diag_help(diag_add(&r->diags, 213, 127,
                                           "cannot start the ssh program `%s`: not found in PATH",
                                           program),
                                  "--ssh-command names it");
                else if (strchr(program, '/') && access(program, X_OK) < 0)
                        diag_help(diag_add(&r->diags, 213, errno == EACCES ? 126 : 127,
                                           "cannot start the ssh program `%s`: %s", program,
                                           strerror(errno)),
                                  "--ssh-command names it");
        }
        strv_finish(&words);
}

/* Like ssh -i, goes on with the other keys. Of a key in an ssh-agent the public half may do. */
static void check_identity(struct run *r, const char *path)
{
        const char *home = getenv("HOME");
        char *full =
                !strncmp(path, "~/", 2) && home ? xasprintf("%s%s", home, path + 1) : xstrdup(path);
        char *public = xasprintf("%s.pub", full);

        if (!strchr(path, '%') && access(public, R_OK) < 0 && access(full, R_OK) < 0)
                diag_warn(&r->diags, 214, "cannot read the --identity file %s: %s", path,
                          strerror(errno));
        free(public);
        free(full);
}

int run_check_ssh(struct run *r)
{
        const char *config = r->o.ssh_config;

        if (config && strcmp(config, "none") != 0 && access(config, R_OK) < 0)
                diag_add(&r->diags, 212, 66, "cannot read the --ssh-config file %s: %s", config,
                         strerror(errno));
        check_ssh_command(r);
        for (size_t i = 0; i < r->o.identities.n; i++)
                check_identity(r, r->o.identities.v[i]);
        return diags_errors(&r->diags) ? -ENOENT : 0;
}

static int no_cwd(struct run *r, int error)
{
        struct diag *d =
                error == ENOENT
                        ? diag_add(&r->diags, 125, 66, "the current directory no longer exists")
                        : diag_add(&r->diags, 125, 66, "cannot find the current directory: %s",
                                   strerror(error));

        diag_help(d, "cd to another directory, or name the one of the ranks with --chdir DIR");
        return run_nothing(r, 66);
}

int run_find_cwd(struct run *r)
{
        const char *to = r->o.chdir;

        r->here = getcwd(NULL, 0);
        if (!r->here && (!to || *to != '/' || r->o.push.n))
                return no_cwd(r, errno);
        if (to && *to == '/')
                r->cwd = xstrdup(to);
        else
                r->cwd = to ? xasprintf("%s/%s", r->here, to) : xstrdup(r->here);
        if (!r->here)
                r->here = xstrdup("/"); /* nothing is pushed */
        return 0;
}

static int no_such_ranks(struct run *r, const char *option, const char *ranks)
{
        diag_help(diag_add(&r->diags, 104, 64, "%s %s: not ranks of 0 to %d", option, ranks,
                           r->plan.world_size - 1),
                  "for example %s 0,8-15%s", option,
                  strcmp(option, "--show") ? "" : " or --show all");
        return run_nothing(r, 64);
}

int run_check_ranks(struct run *r)
{
        const struct intlist *ranks = &r->o.ranks;
        char *text;
        int rc = 0;

        for (size_t i = 0; i < ranks->n && !rc; i++) {
                if (ranks->v[i] < r->plan.world_size)
                        continue;
                text = intlist_fold(ranks);
                rc = no_such_ranks(r, "--ranks", text);
                free(text);
        }
        return rc;
}

/* The option's text was looked at when it was read; the world size was not known then. */
int run_choose_shown(struct run *r)
{
        int n = r->plan.world_size;
        struct intlist ranks = { 0 };
        struct range_error e;
        bool good;

        if (!r->o.show || !strcmp(r->o.show, "all"))
                return 0;
        r->shown = xcalloc((size_t)n, sizeof(*r->shown));
        good = range_numbers(r->o.show, strlen(r->o.show), n - 1, &ranks, &e) == 0;
        for (size_t i = 0; i < ranks.n && good; i++)
                r->shown[ranks.v[i]] = true;
        intlist_finish(&ranks);
        return good ? 0 : no_such_ranks(r, "--show", r->o.show);
}

const char *run_choose_label(const struct run *r)
{
        if (r->o.label == LABEL_NONE || (r->o.label == LABEL_AUTO && r->plan.world_size == 1))
                return NULL;
        if (r->o.label == LABEL_TEMPLATE)
                return r->o.label_template;
        return r->plan.num_nodes > 1 ? "{host}:{rank} | " : "{rank} | ";
}

/* A background job of a terminal would be stopped by its first read. */
int run_choose_stdin(struct run *r, struct error *err)
{
        struct stat st;

        switch (r->o.stdin_mode) {
        case STDIN_NONE:
                break;
        case STDIN_FILE:
                r->stdin_fd = open(r->o.stdin_file, O_RDONLY | O_CLOEXEC);
                if (r->stdin_fd >= 0 && (fstat(r->stdin_fd, &st) < 0 || S_ISDIR(st.st_mode))) {
                        close(r->stdin_fd);
                        r->stdin_fd = -1;
                        errno = EISDIR;
                }
                if (r->stdin_fd < 0)
                        return err_set(err, errno, "cannot read --stdin %s: %s", r->o.stdin_file,
                                       strerror(errno));
                break;
        case STDIN_AUTO:
                if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp())
                        r->stdin_fd = STDIN_FILENO;
                break;
        default:
                r->stdin_fd = STDIN_FILENO;
        }
        return 0;
}

bool run_choose_color(const struct options *o)
{
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

        if (o->color != AUTO)
                return o->color == YES;
        return isatty(STDERR_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}
