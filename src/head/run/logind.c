/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Later files override earlier files: first the main file, then the parts of all folders in the
 * order of their names. Of parts with the same name the one in the first folder is read. A process
 * started by systemd-run --user is not in the session.
 */
#include "head/run/logind.h"

#include <fcntl.h>
#include <glob.h>
#include <ini.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "base/strv.h"

struct logind_rule {
        bool ends;
        char *only, *except; /* names of users between blanks; NULL = not set */
};

/* The first has the highest precedence. */
static const char *const logind_folders[] = { "/etc/systemd", "/run/systemd",
                                              "/usr/local/lib/systemd", "/usr/lib/systemd" };

/* Adds users to a list, as systemd does; an empty value empties the list. */
static void add_users(char **list, const char *value)
{
        char *all = *value && *list ? xasprintf("%s %s", *list, value) : xstrdup(value);

        free(*list);
        *list = all;
}

/* Takes a setting of logind.conf(5). */
static int read_setting(void *ctx, const char *section, const char *name, const char *value)
{
        struct logind_rule *rule = ctx;
        char **list = !strcmp(name, "KillOnlyUsers")      ? &rule->only
                      : !strcmp(name, "KillExcludeUsers") ? &rule->except
                                                          : NULL;

        if (strcmp(section, "Login") != 0)
                return 1;
        if (!strcmp(name, "KillUserProcesses"))
                rule->ends = !strcasecmp(value, "yes") || !strcasecmp(value, "true") ||
                             !strcasecmp(value, "on") || !strcmp(value, "1");
        if (list)
                add_users(list, value);
        return 1;
}

static bool names_user(const char *list, const char *user)
{
        CLEANUP(free_textp) char *copy = xstrdup(list ? list : "");
        char *rest = copy, *word;

        while ((word = strsep(&rest, " \t")))
                if (!strcmp(word, user))
                        return true;
        return false;
}

/* Whether the process is in a login session. pam_systemd sets XDG_SESSION_ID, and a process of
 * systemd-run --user may inherit the variable, but lies below user@UID.service. */
static bool has_session(void)
{
        CLEANUP(fd_closep) int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
        char text[4096];
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = '\0';
        return getenv("XDG_SESSION_ID") && !strstr(text, "/user@");
}

/* Reads the main file of the first folder that has one. */
static void read_main_file(struct logind_rule *rule)
{
        int r = -1; /* the file cannot be opened */

        for (size_t i = 0; i < ARRAY_SIZE(logind_folders) && r == -1; i++) {
                CLEANUP(free_textp) char *path = xasprintf("%s/logind.conf", logind_folders[i]);

                r = ini_parse(path, read_setting, rule);
        }
}

static const char *name_of_part(const char *path)
{
        return strrchr(path, '/') + 1;
}

static int compare_parts(const void *a, const void *b)
{
        return strcmp(name_of_part(*(char *const *)a), name_of_part(*(char *const *)b));
}

/* Adds the parts of a folder, but for those whose name an earlier folder has. */
static void list_parts(struct strv *parts, const char *folder)
{
        CLEANUP(free_textp) char *pattern = xasprintf("%s/logind.conf.d/*.conf", folder);
        size_t before = parts->n;
        glob_t found = { 0 };

        if (glob(pattern, 0, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc; i++) {
                        size_t k = 0;

                        while (k < before && compare_parts(&parts->v[k], &found.gl_pathv[i]) != 0)
                                k++;
                        if (k == before)
                                strv_push(parts, found.gl_pathv[i]);
                }
        globfree(&found);
}

static void read_parts(struct logind_rule *rule)
{
        CLEANUP(strv_finish) struct strv parts = STRV_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(logind_folders); i++)
                list_parts(&parts, logind_folders[i]);
        if (parts.n)
                qsort(parts.v, parts.n, sizeof(*parts.v), compare_parts);
        for (size_t i = 0; i < parts.n; i++)
                ini_parse(parts.v[i], read_setting, rule);
}

bool logind_ends_processes(void)
{
        /* The defaults of logind.conf(5): root is excepted, and KillUserProcesses depends on the
         * build of systemd; "no", as distributions choose, is assumed. */
        struct logind_rule rule = { .except = xstrdup("root") };
        const struct passwd *user = getpwuid(geteuid());
        const char *name = user ? user->pw_name : "";
        bool ends;

        if (has_session()) {
                read_main_file(&rule);
                read_parts(&rule);
        }
        ends = rule.ends && !names_user(rule.except, name) &&
               (!rule.only || !*rule.only || names_user(rule.only, name));
        free(rule.only);
        free(rule.except);
        return ends;
}
