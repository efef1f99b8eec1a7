/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of settings, read by config_load() in rising order: system file, user's file, the
 * nearest project file upward, variables HNLAUNCH_SECTION_KEY. A file is opened once and judged by
 * fstat(), so that no other file can take its place in between. Of a project file ownership and
 * mode are checked first, unless its folder is listed as safe; then config_parse() decides for
 * each key.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "head/options/config.h"

enum { HN_VARIABLE = 711, HN_OWNER = 715, HN_UNREADABLE = 716, FILE_MAX = 1 << 20 };

struct load {
        struct settings *s;
        struct diags *d;
        bool strict;
};

/* Reads a regular file, with @st of the open descriptor. 0, -ENOENT, or another -errno. */
static int read_regular(const char *path, char **ret_text, size_t *ret_len, struct stat *st)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                return errno == ENOTDIR ? -ENOENT : -errno;
        if (fstat(fd, st) < 0)
                return -errno;
        return S_ISREG(st->st_mode) ? fd_read_all(fd, FILE_MAX, ret_text, ret_len) : -EINVAL;
}

/* ---- the project's file ---- */

/* "/a/b" is listed by itself, "/a" with everything below by a trailing slash and star. */
static bool is_safe(const struct settings *s, const char *folder)
{
        for (size_t i = 0; i < s->safe.n; i++) {
                const char *entry = s->safe.v[i];
                size_t n = strlen(entry);

                if (n >= 2 && !strcmp(entry + n - 2, "/*") && !strncmp(entry, folder, n - 1))
                        return true;
                while (n > 1 && entry[n - 1] == '/')
                        n--;
                if (!strncmp(entry, folder, n) && !folder[n])
                        return true;
        }
        return false;
}

static int check_project_owner(const struct stat *st, const char *path, struct diags *d)
{
        struct diag *diag;

        if (st->st_uid != geteuid() && st->st_uid != 0) {
                diag = diag_add(d, HN_OWNER, 78, "%s belongs to user %u", path,
                                (unsigned)st->st_uid);
                diag_note(diag, "a project file of another user could start programs of that user");
        } else if (st->st_mode & (S_IWGRP | S_IWOTH)) {
                diag = diag_add(d, HN_OWNER, 78, "%s can be written by others", path);
                diag_help(diag, "chmod go-w %s", path);
        } else {
                return 0;
        }
        diag_help(diag,
                  "or trust its folder in ~/.config/hnlaunch/config.ini: [safe] directory = ...");
        return -EINVAL;
}

/* Loads a file, which must have a safe owner unless it is @trusted. False: there is none. */
static bool load_file(const struct load *l, enum level level, const char *path, bool trusted)
{
        CLEANUP(free_textp) char *text = NULL;
        struct stat st;
        size_t len;
        int r = read_regular(path, &text, &len, &st);

        if (r == -ENOENT)
                return false;
        if (r < 0)
                diag_add(l->d, HN_UNREADABLE, 78, "cannot read %s: %s", path, strerror(-r));
        else if (trusted || check_project_owner(&st, path, l->d) == 0)
                config_parse(l->s, level, path, text, len, l->strict, trusted, l->d);
        return true;
}

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

static void find_project(const struct load *l)
{
        char folder[PATH_MAX], *slash;

        if (!getcwd(folder, sizeof(folder)) || *folder != '/')
                return; /* a deleted folder has no project */
        for (;;) {
                CLEANUP(free_textp)
                char *path = xasprintf("%s/.hnlaunch.ini", strcmp(folder, "/") ? folder : "");

                if (load_file(l, LEVEL_PROJECT, path, is_safe(l->s, folder)) ||
                    is_root_of_project(folder))
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
        if (section_end)
                *section_end = '.';
        return key;
}

static bool names_a_section(const char *name)
{
        static const char *const sections[] = { "RUN_", "ENV_", "SSH_", "NET_", "LOG_" };

        for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
                if (!strncmp(name + strlen("HNLAUNCH_"), sections[i], strlen(sections[i])))
                        return true;
        return false;
}

/* Takes NAME=VALUE; names of variables have capitals only. */
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
                settings_add(l->s, option_by_letter('x'), LEVEL_VARIABLE, pair + strlen(set),
                             origin);
        else if (def)
                settings_add_list(l->s, def, LEVEL_VARIABLE, value, origin);
        else if (names_a_section(name) && l->strict)
                diag_add(l->d, HN_VARIABLE, 78, "unknown variable %s", name);
        else if (names_a_section(name))
                diag_warn(l->d, HN_VARIABLE, "unknown variable %s", name);
}

/* ---- all places ---- */

int config_load(struct settings *s, bool strict, struct diags *d)
{
        const struct load l = { s, d, strict };
        const char *system = getenv("HNLAUNCH_SYSTEM_CONFIG");
        const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
        CLEANUP(free_textp) char *user = NULL;
        size_t before = diags_errors(d);

        load_file(&l, LEVEL_SYSTEM, system ? system : "/etc/hnlaunch/config.ini", true);
        if (xdg && *xdg == '/')
                user = xasprintf("%s/hnlaunch/config.ini", xdg);
        else if (home && *home)
                user = xasprintf("%s/.config/hnlaunch/config.ini", home);
        if (user)
                load_file(&l, LEVEL_USER, user, true);
        find_project(&l);
        for (char **e = environ; *e; e++)
                if (!strncmp(*e, "HNLAUNCH_", 9))
                        load_variable(&l, *e);
        return diags_errors(d) > before ? -EINVAL : 0;
}
