/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some options depend on the surroundings: `auto` values on the terminal, relative paths on the
 * current directory, lists of ranks on the world size. Each function here resolves an option as
 * soon as the input is known: the directory and the program before anything else, ssh files before
 * the first connection, ranks and prefixes after the plan. An error adds a diag; the caller ends
 * the launch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/strv.h"
#include "head/core/program.h"
#include "head/core/shell_words.h"
#include "head/hosts/range.h"
#include "head/launch/launch_private.h"
#include "head/model/compat_nodes.h"
#include "head/model/label.h"
#include "head/model/role_book.h"
#include "head/nodes/program_link.h"
#include "head/nodes/ssh_program.h"
#include "head/output/run_dir.h"
#include "head/term/columns.h"
#include "wire/env/container_order.h"
#include "wire/env/subst.h"
#include "wire/port_name.h"

enum {
        UNFOLDED_RANKS = 8, /* on a terminal */
        COLUMNS_LEAST = 20, /* usable by programs */
};

/* An image that is a file of this folder is meant, wherever the agents are started. */
static void find_image_file(struct launch *l, struct container_order *o)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", l->cwd, o->name);
        bool is_file = o->kind == CONTAINER_APPTAINER || o->kind == CONTAINER_CHARLIECLOUD;

        /* Any other name is of an image in a registry, or a path on the nodes. */
        if (!is_file || *o->name == '/' || access(path, F_OK) < 0)
                return;
        free(o->name);
        o->name = xstrdup(path);
}

void launch_setup_container(struct launch *l)
{
        struct container_order *o = &l->o->container;

        if (!o->kind)
                return;
        find_image_file(l, o);
        free(o->dir);
        /* A container that runs already has folders of its own. */
        o->dir = xstrdup(o->kind == CONTAINER_EXEC ? "" : l->cwd);
        l->config->container = container_order_encode(o);
}

int launch_setup_need_port(struct launch *l, const char *name)
{
        if (strv_has(&l->config->ports, name))
                return 0;
        if (l->config->ports.n == PORT_NAMES_MAX)
                return -E2BIG;
        strv_push(&l->config->ports, name);
        return 0;
}

/* Has the job keep a port that a text of no role names: one for each instance of all roles, if
 * there are any. 0, or -E2BIG. */
static int need_text_port(struct launch *l, const char *name)
{
        struct role_book *b = l->config->book;
        int r = 0;

        if (!b)
                return launch_setup_need_port(l, name);
        for (size_t i = 0; !r && i < options_count_roles(l->o); i++)
                r = role_book_need_port(b, (int)i, name);
        return r;
}

/* Ends the launch: a text names a wrong port, or one too many. @place: the option or argument. A
 * label knows no escape "\{". Returns the exit code. */
static int refuse_port(struct launch *l, const char *place, const struct subst_piece *p, bool many)
{
        struct diag *d = diag_add(&l->diags, HN_BAD_PORT_NAME, EX_USAGE,
                                  many ? "{port:%.*s} is one port more than a job may have: %d"
                                       : "{port:%.*s} has no valid name",
                                  (int)MIN(p->name_len, (size_t)100), p->name, PORT_NAMES_MAX);

        diag_place(d, "%s", place);
        diag_help(d,
                  "a name is a lower-case letter and up to %d lower-case letters, digits and _%s",
                  PORT_NAME_MAX - 1,
                  strncmp(place, "--label", 7) ? "; \\{port:...} stays as it is" : "");
        return verdict_nothing_started(l, EX_USAGE);
}

/* Has the job keep each port that @text names. 0, or the exit code. */
static int find_ports_in(struct launch *l, const char *text, const char *place,
                         struct subst_piece (*read)(const char *text))
{
        struct subst_piece p;

        /* @read gives a piece of text at a time, at least a byte long. */
        for (const char *c = text; *c; c += p.len) {
                char name[PORT_NAME_MAX + 1];

                p = read(c);
                if (p.kind != SUBST_PORT || p.escaped)
                        continue;
                if (!port_name_is_valid(p.name, p.name_len))
                        return refuse_port(l, place, &p, false);
                snprintf(name, sizeof(name), "%.*s", (int)p.name_len, p.name);
                if (need_text_port(l, name) < 0)
                        return refuse_port(l, place, &p, true);
        }
        return 0;
}

/* Returns the meaning of @word in braces: "{host}", or a variable of the ranks; NULL = close to no
 * name. */
static const char *find_meant_placeholder(const char *word)
{
        enum { SHORT_WORD = 4 }; /* close to words without a meaning here */
        static const struct {
                const char *word, *meant;
        } known[] = { { "rank", "{rank}" },
                      { "local_rank", "{local_rank}" },
                      { "node_rank", "{node_rank}" },
                      { "num_nodes", "{num_nodes}" },
                      { "master_addr", "{master_addr}" },
                      { "master_port", "{master_port}" },
                      { "host", "{host}" },
                      { "hostname", "{host}" },
                      { "node_id", "{node_rank}" },
                      { "nnodes", "{num_nodes}" },
                      { "world_size", "WORLD_SIZE" },
                      { "num_ranks", "WORLD_SIZE" },
                      { "local_world_size", "LOCAL_WORLD_SIZE" } };
        const char *words[ARRAY_SIZE(known)], *near;

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                words[i] = known[i].word;
        near = diag_did_you_mean(word, words, ARRAY_SIZE(words));
        /* Almost any word is near a short one: then only another case of letters counts. */
        if (!near || (strlen(near) <= SHORT_WORD && strcasecmp(near, word) != 0))
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (near == words[i])
                        return known[i].meant;
        return NULL;
}

/* Warns of words in braces that stay unchanged, but were meant as place-holders. @told has the
 * words of earlier texts. "${x}" is the shell's. */
static void warn_of_placeholders(struct launch *l, const char *text, const char *place,
                                 struct strv *told)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";

        for (const char *p = text; (p = strchr(p, '{')); p++) {
                size_t n = strspn(p + 1, letters);
                CLEANUP(free_textp) char *word = xstrndup(p + 1, n);
                const char *meant;
                struct diag *d;

                if (p[n + 1] != '}' || (p > text && strchr("$\\", p[-1])) ||
                    subst_read_name(p).kind)
                        continue;
                meant = find_meant_placeholder(word);
                if (!meant || strv_has(told, word))
                        continue;
                strv_push(told, word);
                d = diag_warn(&l->diags, HN_NO_PLACEHOLDER,
                              "{%s} is no place-holder of --subst and stays as it is", word);
                diag_place(d, "%s", place);
                if (*meant == '{')
                        diag_help(d, "did you mean `%s`?", meant);
                else
                        diag_help(d, "each rank has it as %s in its environment", meant);
        }
}

/* Reserves the ports that the arguments of a program name; argv[0] is not read. 0, or the exit
 * code. */
static int find_argument_ports(struct launch *l, const struct strv *argv, struct strv *told)
{
        int rc = 0;

        for (size_t i = 1; !rc && i < argv->n; i++) {
                CLEANUP(free_textp)
                char *place = xasprintf("argument %zu: %s", i, argv->v[i]);

                if (!l->config->book) /* else launch_roles_scan() has */
                        rc = find_ports_in(l, argv->v[i], place, subst_read);
                warn_of_placeholders(l, argv->v[i], place, told);
                if (!rc && subst_has_any(argv->v[i]))
                        log_line(LOG_INFO, "place-holders are replaced in %s", place);
        }
        return rc;
}

int launch_setup_find_ports(struct launch *l)
{
        CLEANUP(strv_finish) struct strv told = STRV_INIT;
        int rc = 0;

        for (size_t i = 0; !rc && i < l->o->wrap.n; i++) {
                rc = find_ports_in(l, l->o->wrap.v[i], "--wrap", subst_read);
                warn_of_placeholders(l, l->o->wrap.v[i], "--wrap", &told);
        }
        for (size_t i = 0; !rc && l->o->subst && i < l->n_programs; i++)
                rc = find_argument_ports(l, l->programs[i].argv, &told);
        if (!rc && l->o->label == LABEL_TEMPLATE && !l->config->book) {
                CLEANUP(free_textp) char *place = xasprintf("--label %s", l->o->label_template);

                rc = find_ports_in(l, l->o->label_template, place, subst_read_name);
        }
        return rc;
}

/* Adds an error if the program of --ssh-command cannot be started. A text with wrong quotes is not
 * judged here. */
static void check_ssh_command(struct launch *l)
{
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        const char *program;
        struct error err;
        int error = 0;
        bool path;

        if (!l->o->ssh_command || !program_link_is_ssh(l->o->via) ||
            shell_words_split(l->o->ssh_command, &words, &err) < 0)
                return;
        program = words.v[0];
        path = strchr(program, '/');
        if (path ? access(program, X_OK) < 0 : !program_in_path(program))
                error = path ? errno : ENOENT;
        if (error)
                diag_help(diag_add(&l->diags, HN_SSH_COMMAND,
                                   error == EACCES ? EX_NOT_EXECUTABLE : EX_NOT_FOUND,
                                   "cannot start the ssh program `%s`: %s", program,
                                   path ? strerror(error) : "not found in PATH"),
                          "--ssh-command names it");
}

/* Warns only: like ssh -i, the login goes on with the other keys. The public half suffices for a
 * key in an ssh-agent. */
static void check_identity(struct launch *l, const char *path)
{
        const char *home = getenv("HOME");
        CLEANUP(free_textp)
        char *full =
                !strncmp(path, "~/", 2) && home ? xasprintf("%s%s", home, path + 1) : xstrdup(path);
        CLEANUP(free_textp) char *public = xasprintf("%s.pub", full);

        if (!strchr(path, '%') && access(public, R_OK) < 0 && access(full, R_OK) < 0)
                diag_warn(&l->diags, HN_IDENTITY_UNREADABLE,
                          "cannot read the --identity file %s: %s", path, strerror(errno));
}

int launch_setup_check_ssh(struct launch *l)
{
        const char *config = l->o->ssh_config;

        if (config && strcmp(config, "none") != 0 && access(config, R_OK) < 0)
                diag_add(&l->diags, HN_SSH_CONFIG_UNREADABLE, EX_NOINPUT,
                         "cannot read the --ssh-config file %s: %s", config, strerror(errno));
        check_ssh_command(l);
        launch_hosts_via_check(l);
        for (size_t i = 0; i < l->o->identities.n; i++)
                check_identity(l, l->o->identities.v[i]);
        return diags_errors(&l->diags) ? -ENOENT : 0;
}

/* Ends the launch: the folder of hnlaunch is needed, but cannot be named. Returns the exit code. */
static int refuse_cwd(struct launch *l, int error)
{
        struct diag *d = error == ENOENT ? diag_add(&l->diags, HN_NO_DIRECTORY, EX_NOINPUT,
                                                    "the current directory no longer exists")
                                         : diag_add(&l->diags, HN_NO_DIRECTORY, EX_NOINPUT,
                                                    "cannot determine the current directory: %s",
                                                    strerror(error));

        diag_help(d, "cd to another directory, or name the ranks' directory with --chdir DIR");
        return verdict_nothing_started(l, EX_NOINPUT);
}

/* Returns the current folder as the shell names it, with links: other machines may know the folder
 * only by that name. $PWD counts if it names the current folder; malloc'ed. */
static char *find_folder_of_shell(const char *here)
{
        const char *pwd = getenv("PWD");
        struct stat named, real;
        /* $PWD of a process started without a shell may be about another folder. A path below /proc
         * means another folder to each process. */
        bool same = pwd && *pwd == '/' && strncmp(pwd, "/proc/", 6) && stat(pwd, &named) == 0 &&
                    stat(".", &real) == 0 && named.st_dev == real.st_dev &&
                    named.st_ino == real.st_ino;

        return xstrdup(same ? pwd : here);
}

int launch_setup_find_cwd(struct launch *l)
{
        CLEANUP(free_textp) char *named = NULL;
        const char *to = l->o->chdir;

        l->here = getcwd(NULL, 0);
        if (!l->here && (!to || *to != '/' || l->o->push.n || l->o->pull.n))
                return refuse_cwd(l, errno);
        if (!l->here)
                l->here = xstrdup("/"); /* unused: neither --push nor --pull */
        /* --push names files by the real path, ranks start in the named one. */
        named = find_folder_of_shell(l->here);
        if (to && *to == '/')
                l->cwd = xstrdup(to);
        else
                l->cwd = to ? xasprintf("%s/%s", named, to) : xstrdup(named);
        l->run->cwd = l->cwd;
        return 0;
}

/* Ends the launch: @ranks of the option are not all in the world. Returns the exit code. */
static int refuse_ranks(struct launch *l, const char *option, const char *ranks)
{
        diag_help(diag_add(&l->diags, HN_NO_SUCH_RANK, EX_USAGE, "%s %s: not ranks of 0 to %d",
                           option, ranks, l->plan.world_size - 1),
                  "for example %s 0%.*s%s", option, l->plan.world_size > 1 ? 2 : 0, "-1",
                  strcmp(option, "--show") ? "" : " or --show all");
        return verdict_nothing_started(l, EX_USAGE);
}

int launch_setup_check_ranks(struct launch *l)
{
        const struct intlist *ranks = &l->o->ranks;
        CLEANUP(free_textp) char *text = NULL;

        for (size_t i = 0; i < ranks->n; i++) {
                if (ranks->v[i] < l->plan.world_size)
                        continue;
                text = intlist_fold(ranks);
                return refuse_ranks(l, "--ranks", text);
        }
        return 0;
}

int launch_setup_choose_ranks(struct launch *l)
{
        /* $0 has the chosen ranks, "$@" the program. In a job of roles ranks are numbered over all
         * roles. */
        static const char script[] =
                "case \" $0 \" in *\" ${HN_JOB_RANK-$HN_RANK} \"*) exec \"$@\" ;; esac";
        struct strv words = STRV_INIT;
        struct buf ranks = BUF_INIT;
        int rc = launch_setup_check_ranks(l);
        int others = l->plan.world_size - (int)l->o->ranks.n;

        if (rc || !l->o->ranks.n)
                return rc;
        for (size_t i = 0; i < l->o->ranks.n; i++)
                buf_printf(&ranks, i ? " %d" : "%d", l->o->ranks.v[i]);
        /* The choice is made before a wrapper of --wrap, such as a profiler, is started. */
        strv_push(&words, "/bin/sh");
        strv_push(&words, "-c");
        strv_push(&words, script);
        strv_push_take(&words, buf_steal(&ranks));
        strv_copy(&words, &l->o->wrap);
        strv_finish(&l->o->wrap);
        l->o->wrap = words;
        if (others > 0 && !l->o->quiet)
                diag_tell(
                        &l->diags,
                        "%d of %d ranks do%s not run the program (--ranks): a rank that waits for "
                        "%s waits for ever",
                        others, l->plan.world_size, others == 1 ? "es" : "",
                        others == 1 ? "it" : "them");
        return 0;
}

int launch_setup_check_compat(struct launch *l)
{
        int n;
        size_t longest = compat_nodes_longest(l->o->compat, &l->plan, &l->hosts, &n);

        if (longest <= COMPAT_VARIABLE_MAX)
                return 0;
        diag_help(
                diag_add(&l->diags, HN_NODE_LIST_TOO_LONG, EX_UNAVAILABLE,
                         "--compat slurm cannot pass the list of %d nodes: it has %zu bytes, a "
                         "variable at most %d",
                         n, longest, COMPAT_VARIABLE_MAX),
                "use fewer nodes, or host names that end in a number: neighbours are folded as in "
                "gpu[001-064]");
        return verdict_nothing_started(l, EX_UNAVAILABLE);
}

/* The option parser has checked the syntax, without the world size. */
int launch_setup_choose_shown(struct launch *l)
{
        int n = l->plan.world_size;
        struct intlist ranks = { 0 };
        struct range_error e;
        bool good;

        /* A detached run shows no rank: its records have the output. */
        if (l->o->detach || (l->o->show && strcmp(l->o->show, "all") != 0))
                l->streams.shown = xcalloc((size_t)n, sizeof(*l->streams.shown));
        if (l->o->detach || !l->streams.shown)
                return 0;
        good = range_numbers(l->o->show, strlen(l->o->show), n - 1, &ranks, &e) == 0;
        for (size_t i = 0; i < ranks.n && good; i++)
                l->streams.shown[ranks.v[i]] = true;
        intlist_finish(&ranks);
        return good ? 0 : refuse_ranks(l, "--show", l->o->show);
}

const char *launch_setup_choose_label(const struct launch *l)
{
        return l->streams.label                ? l->streams.label
               : l->o->label == LABEL_NONE     ? NULL
               : l->o->label == LABEL_TEMPLATE ? l->o->label_template
                                               : label_default(&l->plan);
}

bool launch_setup_folds(const struct launch *l)
{
        const struct options *o = l->o;
        /* Programs that read the output of a pipe get each line. */
        bool many = l->plan.world_size > UNFOLDED_RANKS && isatty(STDOUT_FILENO) && !o->raw &&
                    o->label != LABEL_NONE;

        return l->plan.world_size > 1 && (o->fold_given ? o->fold : many);
}

/* With `auto`, a background job of a terminal reads nothing: the first read would stop the job. */
int launch_setup_choose_stdin(struct launch *l, struct error *err)
{
        struct stat st;
        int fd;

        switch (l->o->stdin_mode) {
        case STDIN_NONE:
                break;
        case STDIN_FILE:
                fd = open(l->o->stdin_file, O_RDONLY | O_CLOEXEC);
                /* open() accepts a folder, and only read() would fail, after the ranks have
                 * started. */
                if (fd >= 0 && (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))) {
                        close(fd);
                        fd = -1;
                        errno = EISDIR;
                }
                if (fd < 0)
                        return err_set(err, errno, "cannot read --stdin %s: %s", l->o->stdin_file,
                                       strerror(errno));
                l->streams.stdin_fd = fd;
                break;
        case STDIN_AUTO:
                if (!l->o->detach && isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp())
                        l->streams.stdin_fd = STDIN_FILENO;
                break;
        default:
                /* A detached run gets input from `hnlaunch attach`. */
                l->streams.stdin_fd = l->o->detach ? JOB_STDIN_LATER : STDIN_FILENO;
        }
        return 0;
}

int launch_setup_first_rank(const struct options *o)
{
        int first = o->ranks.n ? o->ranks.v[0] : 0;

        for (size_t i = 0; i < o->ranks.n; i++)
                first = MIN(first, o->ranks.v[i]);
        return first;
}

int launch_setup_stdin_rank(const struct options *o)
{
        return o->stdin_mode == STDIN_ALL ? -1 : launch_setup_first_rank(o);
}

bool launch_setup_understands_escapes(void)
{
        const char *term = getenv("TERM");

        return term && *term && strcmp(term, "dumb") != 0;
}

/* Whether the user has set the variable here or for the ranks, or keeps the variable from the
 * ranks. */
static bool is_variable_chosen(const struct launch *l, const char *name)
{
        return getenv(name) || strv_env_get(&l->env, name) || strv_has(&l->unset, name);
}

void launch_setup_describe_terminal(struct launch *l)
{
        const char *template = launch_setup_choose_label(l);
        bool shown = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) &&
                     launch_setup_understands_escapes() && l->o->pty_rank == PTY_NONE &&
                     !l->o->detach && !run_dir_path(l->run->dir);
        size_t columns = columns_of_terminal(STDOUT_FILENO);
        CLEANUP(free_textp) char *text = NULL;
        struct label *label;
        size_t width;

        if (!shown)
                return;
        /* The ranks write to pipes, so programs would turn colours off. */
        if (l->run->color && !is_variable_chosen(l, "FORCE_COLOR") &&
            !is_variable_chosen(l, "NO_COLOR"))
                strv_env_set(&l->env, "FORCE_COLOR", "1");
        if ((template && label_needs_network(template)) || is_variable_chosen(l, "COLUMNS"))
                return;
        /* Labels of all ranks are equally wide, so rank 0 stands for all. */
        label = label_create(template, &l->plan, &l->hosts, (struct label_network){ 0 });
        text = label_make(label, 0, MSG_STDOUT, LABEL_PLAIN);
        width = columns_count(text, strlen(text));
        label_destroy(label);
        if (columns > width + COLUMNS_LEAST)
                strv_env_setf(&l->env, "COLUMNS", "%zu", columns - width - 1);
}
