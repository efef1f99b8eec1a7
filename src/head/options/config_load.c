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

static const char PROJECT_FILE[] = ".hnlaunch.ini";

struct load {
        struct settings *s;
        struct diags *d;
        bool strict;
};

static int refuse_unreadable(struct diags *d, const char *path, int error)
{
        diag_add(d, HN_UNREADABLE, 78, "cannot read %s: %s", path, strerror(error));
        return -EINVAL;
}

/* Reads a regular file, with @st of the open descriptor. 0, -ENOENT, or another -errno. */
static int read_regular(const char *path, char **ret_text, size_t *ret_len, struct stat *st)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        CLEANUP(free_textp) char *text = NULL;
        size_t len = 0;
        ssize_t n;

        if (fd < 0)
                return errno == ENOTDIR ? -ENOENT : -errno;
        if (fstat(fd, st) < 0)
                return -errno;
        if (!S_ISREG(st->st_mode))
                return -EINVAL;
        if (st->st_size > FILE_MAX)
                return -EFBIG;
        text = xcalloc((size_t)st->st_size + 1, 1);
        while (len < (size_t)st->st_size &&
               (n = read(fd, text + len, (size_t)st->st_size - len)) != 0) {
                if (n < 0 && errno != EINTR)
                        return -errno;
                len += n > 0 ? (size_t)n : 0;
        }
        *ret_text = STEAL(&text);
        *ret_len = len;
        return 0;
}

/* Loads the system's or the user's file, which may be missing. */
static int load_own(const struct load *l, enum level level, const char *path)
{
        CLEANUP(free_textp) char *text = NULL;
        struct stat st;
        size_t len;
        int r = read_regular(path, &text, &len, &st);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return refuse_unreadable(l->d, path, -r);
        return config_parse(l->s, level, path, text, len, l->strict, true, l->d);
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

/* Loads the project file of @folder; *ret_found stays false when there is none. */
static int load_project(const struct load *l, const char *folder, bool *ret_found)
{
        CLEANUP(free_textp)
        char *path = xasprintf("%s/%s", strcmp(folder, "/") ? folder : "", PROJECT_FILE);
        CLEANUP(free_textp) char *text = NULL;
        bool trusted = is_safe(l->s, folder);
        struct stat st;
        size_t len;
        int r = read_regular(path, &text, &len, &st);

        if (r == -ENOENT)
                return 0;
        *ret_found = true;
        if (r < 0)
                return refuse_unreadable(l->d, path, -r);
        if (!trusted && check_project_owner(&st, path, l->d) < 0)
                return -EINVAL;
        return config_parse(l->s, LEVEL_PROJECT, path, text, len, l->strict, trusted, l->d);
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

static int find_project(const struct load *l)
{
        char folder[PATH_MAX], *slash;
        bool found = false;
        int r;

        if (!getcwd(folder, sizeof(folder)) || *folder != '/')
                return 0; /* a deleted folder has no project */
        for (;;) {
                r = load_project(l, folder, &found);
                if (r < 0 || found || is_root_of_project(folder))
                        return r;
                slash = strrchr(folder, '/');
                slash[slash == folder ? 1 : 0] = '\0';
        }
}

/* ---- variables ---- */

/* "run.gpus_per_rank" -> "HNLAUNCH_RUN_GPUS_PER_RANK" */
static void variable_name(char *ret, size_t size, const char *key)
{
        snprintf(ret, size, "HNLAUNCH_%s", key);
        for (char *c = ret; *c; c++)
                *c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
}

static bool is_variable_of(const char *name, const char *key)
{
        char candidate[128];

        variable_name(candidate, sizeof(candidate), key);
        return !strcmp(candidate, name);
}

static const struct option_def *option_by_variable(const char *name)
{
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].key && is_variable_of(name, option_table[i].key))
                        return &option_table[i];
        for (size_t i = 0; i < option_key_alias_count; i++)
                if (is_variable_of(name, option_key_aliases[i].name))
                        return option_by_key(option_key_aliases[i].means);
        return NULL;
}

static bool names_a_section(const char *name)
{
        static const char *const sections[] = { "RUN_", "ENV_", "SSH_", "NET_", "LOG_" };

        for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
                if (!strncmp(name + strlen("HNLAUNCH_"), sections[i], strlen(sections[i])))
                        return true;
        return false;
}

static int unknown_variable(const struct load *l, const char *name)
{
        if (l->strict)
                diag_add(l->d, HN_VARIABLE, 78, "unknown variable %s", name);
        else
                diag_warn(l->d, HN_VARIABLE, "unknown variable %s", name);
        return l->strict ? -EINVAL : 0;
}

static void add_variable(const struct load *l, const struct option_def *def, const char *name,
                         const char *value)
{
        CLEANUP(free_textp) char *origin = xasprintf("$%s", name);
        CLEANUP(free_textp) char *list = xstrdup(value);
        char *save = NULL;

        if (!(def->flags & OPTION_SPLIT)) {
                settings_add(l->s, def, LEVEL_VARIABLE, value, origin);
                return;
        }
        for (char *one = strtok_r(list, ", ", &save); one; one = strtok_r(NULL, ", ", &save))
                settings_add(l->s, def, LEVEL_VARIABLE, one, origin);
}

static int load_variable(const struct load *l, const char *pair)
{
        static const char set[] = "HNLAUNCH_ENV_SET_";
        CLEANUP(free_textp) char *name = xstrndup(pair, strcspn(pair, "="));
        const char *value = pair + strlen(name) + (pair[strlen(name)] == '=');
        const struct option_def *def = option_by_variable(name);

        if (!strncmp(name, set, strlen(set)) && name[strlen(set)]) {
                CLEANUP(free_textp) char *origin = xasprintf("$%s", name);

                settings_add(l->s, option_by_letter('x'), LEVEL_VARIABLE, pair + strlen(set),
                             origin);
        } else if (def) {
                add_variable(l, def, name, value);
        } else if (names_a_section(name)) {
                return unknown_variable(l, name);
        }
        return 0;
}

static int load_variables(const struct load *l)
{
        int r = 0;

        for (char **e = environ; *e; e++)
                if (!strncmp(*e, "HNLAUNCH_", 9) && load_variable(l, *e) < 0)
                        r = -EINVAL;
        return r;
}

/* ---- all places ---- */

static char *user_path(void)
{
        const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

        if (xdg && *xdg == '/')
                return xasprintf("%s/hnlaunch/config.ini", xdg);
        return home && *home ? xasprintf("%s/.config/hnlaunch/config.ini", home) : NULL;
}

int config_load(struct settings *s, bool strict, struct diags *d)
{
        const struct load l = { s, d, strict };
        const char *system = getenv("HNLAUNCH_SYSTEM_CONFIG");
        CLEANUP(free_textp) char *user = user_path();
        int r = load_own(&l, LEVEL_SYSTEM, system ? system : "/etc/hnlaunch/config.ini");

        if (user && load_own(&l, LEVEL_USER, user) < 0)
                r = -EINVAL;
        if (find_project(&l) < 0)
                r = -EINVAL;
        if (load_variables(&l) < 0)
                r = -EINVAL;
        return r;
}
