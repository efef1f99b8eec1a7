/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Later files override earlier files: first the main files, then the parts of each folder in the
 * order of their names. A process started by systemd-run --user is not in the session.
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

struct logind_rule {
        bool ends;
        char *only, *except; /* names of users between blanks; NULL = not set */
};

static const char *const logind_files[] = {
        "/usr/lib/systemd/logind.conf",          "/etc/systemd/logind.conf",
        "/usr/lib/systemd/logind.conf.d/*.conf", "/run/systemd/logind.conf.d/*.conf",
        "/etc/systemd/logind.conf.d/*.conf",
};

/* Takes a setting of logind.conf(5); later files replace earlier ones. */
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
        if (list) {
                free(*list);
                *list = xstrdup(value);
        }
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

bool logind_ends_processes(void)
{
        /* The defaults of logind.conf(5): root is excepted, and KillUserProcesses depends on the
         * build of systemd; "no", as distributions choose, is assumed. */
        struct logind_rule rule = { .except = xstrdup("root") };
        const struct passwd *user = getpwuid(geteuid());
        const char *name = user ? user->pw_name : "";
        bool ends;

        for (size_t i = 0; i < ARRAY_SIZE(logind_files) && has_session(); i++) {
                glob_t found = { 0 };

                if (glob(logind_files[i], 0, NULL, &found) == 0)
                        for (size_t k = 0; k < found.gl_pathc; k++)
                                ini_parse(found.gl_pathv[k], read_setting, &rule);
                globfree(&found);
        }
        ends = rule.ends && !names_user(rule.except, name) &&
               (!rule.only || !*rule.only || names_user(rule.only, name));
        free(rule.only);
        free(rule.except);
        return ends;
}
