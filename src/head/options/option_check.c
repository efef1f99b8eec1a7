/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each check_*() tells one kind of mistake and returns 0 or -EINVAL; option_check() runs them from
 * the general to the particular. Pairs of options are checked together, so that all such mistakes
 * are told at once. The program comes next, and an early return there keeps a missing program or a
 * misspelt command from being followed by an error about missing hosts.
 */
#include "head/options/option_check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "head/core/program.h"
#include "head/core/ssh_agent.h"
#include "head/options/config.h"
#include "head/options/option_table.h"

enum {
        HN_NO_AGENT = 224,
        HN_CONFLICT = 704,
        HN_PROGRAM = 705,
        HN_COMMAND = 706,
        HN_HOSTS = 708,
        HN_TWICE = 709
};

static bool has_hosts(const struct options *o)
{
        return o->local || o->hostfiles.n || o->hostlists.n;
}

static int check_local(const struct options *o, struct diags *d)
{
        struct diag *diag;

        if (!o->local || (!o->hostfiles.n && !o->hostlists.n))
                return 0;
        diag = diag_add(d, HN_CONFLICT, 64, "--local and %s exclude each other",
                        o->hostfiles.n ? "-H" : "-w");
        diag_note(diag, "--local starts the ranks on this machine without ssh; -H and -w name the "
                        "hosts to reach by ssh");
        diag_help(diag, "leave one of them out; this machine in a host list is `localhost`");
        return -EINVAL;
}

static int check_plan_only(const struct options *o, struct diags *d)
{
        if (o->command != COMMAND_RUN || (!o->probe && !o->ranks.n))
                return 0;
        diag_help(diag_add(d, HN_CONFLICT, 64, "%s is an option of plan",
                           o->probe ? "--probe" : "--ranks"),
                  "hnlaunch plan ..., or add --dry-run; --show picks the ranks whose output you "
                  "see");
        return -EINVAL;
}

static int check_keep(const struct options *o, struct diags *d)
{
        if (!o->keep || o->push.n ||
            settings_level(o->settings, option_by_name("keep")) < LEVEL_LINE)
                return 0;
        diag_help(diag_add(d, HN_CONFLICT, 64, "--keep without --push"),
                  "--keep leaves pushed files on the nodes: add --push FILE");
        return -EINVAL;
}

static int check_tree_auth(const struct options *o, struct diags *d)
{
        struct error err = { 0 };
        int fd;

        if (!o->tree_forward)
                return 0;
        if (!o->tree) {
                if (settings_level(o->settings, option_by_name("tree-auth")) < LEVEL_LINE)
                        return 0;
                diag_help(diag_add(d, HN_CONFLICT, 64, "--tree-auth without --tree"),
                          "it says how nodes log in to nodes: add --tree K");
                return -EINVAL;
        }
        if (o->command != COMMAND_RUN)
                return 0;
        fd = ssh_agent_connect(&err);
        if (fd >= 0) {
                fd_close(fd);
                return 0;
        }
        diag_help(diag_add(d, HN_NO_AGENT, 77, "--tree-auth forward without an ssh-agent: %s",
                           err.text),
                  "start one: eval $(ssh-agent) && ssh-add; or --tree-auth own");
        return -EINVAL;
}

static int check_program(const struct options *o, struct diags *d)
{
        if (o->command != COMMAND_RUN || (o->argv.n && *o->argv.v[0]))
                return 0;
        if (o->argv.n) {
                diag_help(diag_add(d, HN_PROGRAM, 64, "the name of the program is empty"),
                          "is a variable empty that should hold it?");
                return -EINVAL;
        }
        diag_help(diag_add(d, HN_PROGRAM, 64, "no program to start"),
                  "hnlaunch -H hosts.txt ./a.out ARGS...\nhnlaunch -h shows more");
        return -EINVAL;
}

/* Returns the command that differs from @word in at most two letters, or NULL. */
static const char *near_command(const char *word)
{
        const char *near = NULL;
        size_t best = 3;

        for (size_t i = 0; i < option_command_count; i++) {
                size_t d = diag_distance(word, option_commands[i].name);

                if (d < best) {
                        best = d;
                        near = option_commands[i].name;
                }
        }
        return near;
}

/* Refuses a command that is misspelt or stands behind options, unless a program has the name. */
static int check_command(const struct options *o, struct diags *d)
{
        const char *word = o->argv.n ? o->argv.v[0] : "", *near = near_command(word);
        struct diag *diag;

        if (o->command != COMMAND_RUN || o->run_given || !near || program_exists(word, o->chdir))
                return 0;
        if (o->program_first) {
                diag = diag_add(d, HN_COMMAND, 64, "unknown command `%s`; did you mean `%s`?", word,
                                near);
                diag_help(diag, "a program of that name is started by: hnlaunch run %s", word);
                return -EINVAL;
        }
        if (strcmp(word, near) != 0)
                return 0;
        diag = diag_add(d, HN_COMMAND, 64, "`%s` is a command, and commands come first", word);
        diag_help(diag,
                  "hnlaunch %s OPTIONS...; a program of that name is started by: hnlaunch run "
                  "OPTIONS... %s",
                  word, word);
        return -EINVAL;
}

/* Returns the first argument of the program that is an option of hnlaunch for hosts, or NULL. */
static const char *stray_option(const struct options *o)
{
        static const char *const names[] = { "hostfile", "hosts", "local", "machinefile" };

        for (size_t i = 1; i < o->argv.n; i++) {
                const char *word = o->argv.v[i];

                if (!strcmp(word, "-H") || !strcmp(word, "-w"))
                        return word;
                for (size_t k = 0; k < ARRAY_SIZE(names) && !strncmp(word, "--", 2); k++) {
                        size_t n = strlen(names[k]);

                        if (!strncmp(word + 2, names[k], n) && (!word[n + 2] || word[n + 2] == '='))
                                return word;
                }
        }
        return NULL;
}

static bool is_same_hostfile(const char *a, const char *b)
{
        struct stat x, y;

        return !strcmp(a, b) || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
                                 x.st_ino == y.st_ino);
}

static int check_hostfiles(const struct options *o, struct diags *d)
{
        for (size_t i = 1; i < o->hostfiles.n; i++)
                for (size_t k = 0; k < i; k++) {
                        if (!is_same_hostfile(o->hostfiles.v[i], o->hostfiles.v[k]))
                                continue;
                        diag_help(diag_add(d, HN_TWICE, 64, "the hostfile %s is given twice",
                                           o->hostfiles.v[i]),
                                  "one -H is enough; slots= gives a host more slots");
                        return -EINVAL;
                }
        return 0;
}

static int check_hosts(const struct options *o, struct diags *d)
{
        const char *stray = stray_option(o);
        struct diag *diag;

        if (has_hosts(o))
                return 0;
        diag = diag_add(d, HN_HOSTS, 64, "no hosts given");
        if (stray)
                diag_note(diag, "`%.*s` after `%s` was passed to %s", (int)strcspn(stray, "="),
                          stray, o->argv.v[0], o->argv.v[0]);
        diag_help(diag, "say where to run: -H FILE, -w 'gpu[001-004]', or --local%s",
                  stray ? "; options stand before the program" : "");
        return -EINVAL;
}

int option_check(const struct options *o, struct diags *d)
{
        int r = check_plan_only(o, d);

        if (check_local(o, d) < 0 || check_keep(o, d) < 0 || check_tree_auth(o, d) < 0)
                r = -EINVAL;
        if (o->command != COMMAND_RUN && o->command != COMMAND_PLAN)
                return r;
        if (check_program(o, d) < 0)
                return -EINVAL;
        if (check_command(o, d) < 0 || check_hostfiles(o, d) < 0)
                return -EINVAL;
        return check_hosts(o, d) < 0 ? -EINVAL : r;
}
