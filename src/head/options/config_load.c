/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of settings, read by config_load() in rising order: system file, user's file, job
 * file, variables HNLAUNCH_SECTION_KEY. A file is opened once and judged by fstat(), so that no
 * other file can take its place in between, and without waiting for the writer of a FIFO.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "head/options/config.h"

enum {
        FILE_MAX = 8 << 20, /* a program with all the arguments that Linux takes */
};

/* The common targets of all places. */
struct load {
        struct settings *s;
        struct diags *d;
};

/* Reads a regular file. 0, -ENOENT, or another -errno; -EINVAL: it is none. */
static int read_regular(const char *path, char **ret_text, size_t *ret_len)
{
        struct stat st;
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                /* ENOTDIR: a parent of the file is no folder, so there is no file either. */
                return errno == ENOTDIR ? -ENOENT : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        return S_ISREG(st.st_mode) ? fd_read_all(fd, FILE_MAX, ret_text, ret_len) : -EINVAL;
}

/* Loads a file if there is one. */
static void load_file(const struct load *l, enum level level, const char *path)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len;
        int r = read_regular(path, &text, &len);

        /* A file that may not be read is an error: the settings could matter. */
        if (r < 0 && r != -ENOENT)
                diag_add(l->d, HN_CONFIG_UNREADABLE, EX_CONFIG, "cannot read %s: %s", path,
                         strerror(-r));
        else if (r == 0)
                config_parse(l->s, level, path, text, len, l->d);
}

/* ---- the job file ---- */

/* Reads the job file. Only a regular file: a pipe could not be read again by rerun. */
static void load_job(const struct load *l)
{
        CLEANUP(free_textp) char *text = NULL;
        struct diag *diag;
        size_t len;
        int r = read_regular(l->s->job, &text, &len);

        if (r == 0) {
                config_parse(l->s, LEVEL_JOB, l->s->job, text, len, l->d);
                return;
        }
        diag = diag_add(l->d, HN_JOB_FILE_UNREADABLE, EX_NOINPUT, "cannot read the job file %s: %s",
                        l->s->job, r == -EINVAL ? "it is not a regular file" : strerror(-r));
        if (r == -EINVAL)
                diag_help(diag, "write it to a file: paths in it start at its folder, and "
                                "`hnlaunch rerun` reads it again");
}

/* ---- a file of earlier versions ---- */

/* Whether the search for an old .hnlaunch.ini ends here: at a repository, the home or /. */
static bool is_root_of_project(const char *folder)
{
        static const char *const marks[] = { ".git", ".hg", ".svn", ".jj" };
        const char *home = getenv("HOME");
        char path[PATH_MAX + sizeof("/.git")];

        if (!strcmp(folder, "/") || (home && !strcmp(folder, home)))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, marks[i]);
                if (!access(path, F_OK))
                        return true;
        }
        return false;
}

/* Whether a file is the job file: the user has named it. */
static bool is_job(const struct settings *s, const struct stat *st)
{
        struct stat job;

        return s->job && stat(s->job, &job) == 0 && job.st_dev == st->st_dev &&
               job.st_ino == st->st_ino;
}

void config_warn_unread(const struct settings *s, struct diags *d)
{
        char folder[PATH_MAX], *slash;
        struct stat st;

        if (!getcwd(folder, sizeof(folder)) || *folder != '/')
                return; /* a deleted folder */
        for (;;) {
                CLEANUP(free_textp)
                char *path = xasprintf("%s/.hnlaunch.ini", strcmp(folder, "/") ? folder : "");

                if (stat(path, &st) == 0) {
                        if (!is_job(s, &st))
                                diag_warn(d, HN_CONFIG_NOT_READ,
                                          "%s is no longer read: --job FILE takes its place", path);
                        return;
                }
                if (is_root_of_project(folder))
                        return;
                slash = strrchr(folder, '/');
                slash[slash == folder ? 1 : 0] = '\0';
        }
}

/* ---- variables ---- */

/* "HNLAUNCH_RUN_GPUS_PER_RANK" -> "run.gpus_per_rank"; malloc'ed. */
static char *key_of_variable(const char *name)
{
        char *key = xstrdup(name + strlen("HNLAUNCH_")), *section_end = strchr(key, '_');

        for (char *c = key; *c; c++)
                *c = (char)tolower((unsigned char)*c);
        /* Only the first underscore parts section and key. */
        if (section_end)
                *section_end = '.';
        return key;
}

/* Whether an unknown variable could be meant for a key. Others, such as
 * HNLAUNCH_SYSTEM_CONFIG, are passed over. */
static bool names_a_section(const char *name)
{
        static const char *const sections[] = { "RUN_", "ENV_", "SSH_", "NET_", "LOG_" };

        for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
                if (!strncmp(name + strlen("HNLAUNCH_"), sections[i], strlen(sections[i])))
                        return true;
        return false;
}

/* Takes NAME=VALUE; names of variables have capitals only. HNLAUNCH_ENV_SET_NAME keeps the case of
 * NAME, which is a variable of the ranks. */
static void load_variable(const struct load *l, const char *pair)
{
        static const char set[] = "HNLAUNCH_ENV_SET_",
                          capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
        CLEANUP(free_textp) char *name = xstrndup(pair, strcspn(pair, "="));
        CLEANUP(free_textp) char *key = key_of_variable(name);
        CLEANUP(free_textp) char *origin = xasprintf("$%s", name);
        const char *value = pair + strlen(name) + (pair[strlen(name)] == '=');
        const struct option_def *def = name[strspn(name, capitals)] ? NULL : option_by_key(key);

        if (!strncmp(name, set, strlen(set)) && name[strlen(set)])
                settings_add(l->s, option_by_name("env"), LEVEL_VARIABLE, pair + strlen(set),
                             origin);
        else if (def)
                settings_add_list(l->s, def, LEVEL_VARIABLE, value, origin);
        else if (names_a_section(name))
                diag_warn(l->d, HN_CONFIG_KEY, "unknown variable %s", name);
}

/* ---- all places ---- */

int config_refuse_unknown(struct diags *d)
{
        int r = 0;

        for (size_t i = 0; i < d->n; i++)
                if (d->v[i].warning && d->v[i].id == HN_CONFIG_KEY) {
                        d->v[i].warning = false;
                        d->v[i].exit = EX_CONFIG;
                        r = -EINVAL;
                }
        return r;
}

char *config_user_path(void)
{
        const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

        /* Relative paths are invalid by the XDG base directory specification. */
        if (xdg && *xdg == '/')
                return xasprintf("%s/hnlaunch/config.ini", xdg);
        return home && *home ? xasprintf("%s/.config/hnlaunch/config.ini", home) : NULL;
}

int config_load(struct settings *s, struct diags *d)
{
        const struct load l = { s, d };
        const char *system = getenv("HNLAUNCH_SYSTEM_CONFIG");
        CLEANUP(free_textp) char *user = config_user_path();
        size_t before = diags_errors(d);

        load_file(&l, LEVEL_SYSTEM, system ? system : "/etc/hnlaunch/config.ini");
        if (user)
                load_file(&l, LEVEL_USER, user);
        if (s->job)
                load_job(&l);
        for (char **e = environ; *e; e++)
                if (!strncmp(*e, "HNLAUNCH_", 9))
                        load_variable(&l, *e);
        return diags_errors(d) > before ? -EINVAL : 0;
}
