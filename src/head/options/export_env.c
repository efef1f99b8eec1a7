/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order is that of export_env_collect(): copy_base() takes this shell's variables by --export,
 * ~/.deepspeed_env with --compat deepspeed, files of --env-file and -x are put on top (a later
 * value of a name replaces an earlier one), and
 * --unset removes names from the result and travels to the nodes, too. All pairs are gathered in a
 * list first; strv_env_merge() leaves the last of each name. A variable that the agent
 * sets for every rank is exported in vain; worker_env_build() is asked for each name, so that
 * the warning needs no list.
 */
#include "head/options/export_env.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/env/worker_env.h"

enum { ENV_FILE_MAX = 16 << 20, HN_OF_RANK = 127 };

/* Variables of a session, a host or another launcher. A trailing star is a prefix. */
static const char *const kept_here[] = {
        /* the session */
        "HOSTNAME", "HOST", "HOME", "USER", "LOGNAME", "SHELL", "MAIL", "PWD", "OLDPWD", "SHLVL",
        "_", "TERM", "TERM_*", "COLORTERM", "COLUMNS", "LINES", "LS_COLORS", "WINDOWID", "DISPLAY",
        "XAUTHORITY", "WAYLAND_DISPLAY", "SSH_*", "XDG_*", "DBUS_*", "GPG_*", "TMUX*", "STY",
        "SUDO_*", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_*", "MANAGERPID",
        "TMPDIR", "BASH_FUNC_*",
        /* the devices of this host */
        "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
        /* other launchers */
        "SLURM_*", "PMI_*", "PMIX_*", "I_MPI_PMI_LIBRARY", "OMPI_COMM_*", "OMPI_MCA_*",
        "MV2_COMM_WORLD_*", "MVP_COMM_WORLD_*", "MPI_LOCAL*", "JSM_*", "PALS_*", "ALPS_APP_*",
        "FLUX_TASK_*", "FLUX_JOB_ID", "FLUX_PMI_LIBRARY_PATH", "PBS_*", "SLURMD_*", "LSB_*",
        "PE_HOSTFILE", "FLUX_URI", "K_MPI_JOB_ROLE", "TORCHELASTIC_*",
        /* the ranks of an outer hnlaunch or torchrun */
        "HN_*", "HNLAUNCH_*", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK",
        "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"
};

static bool matches_name(const char *pattern, const char *name, size_t len)
{
        size_t n = strlen(pattern);

        if (n && pattern[n - 1] == '*')
                return len >= n - 1 && !strncmp(pattern, name, n - 1);
        return n == len && !strncmp(pattern, name, len);
}

bool export_env_is_ours(const char *name)
{
        size_t len = strcspn(name, "=");

        for (size_t i = 0; i < ARRAY_SIZE(kept_here); i++)
                if (matches_name(kept_here[i], name, len))
                        return true;
        return false;
}

/* Copies the variables with names like @pattern; false if there was none. */
static bool copy_matching(struct strv *env, char **from, const char *pattern)
{
        bool any = false;

        for (char **e = from; *e; e++) {
                char *name = xstrndup(*e, strcspn(*e, "="));

                if (strchr(*e, '=') && !fnmatch(pattern, name, 0)) {
                        strv_push(env, *e);
                        any = true;
                }
                free(name);
        }
        return any;
}

/* Copies by --export: everything, nothing, or the names of a list. */
static void copy_base(struct strv *env, char **from, const char *mode)
{
        char *list, *save = NULL;

        if (!mode || !strcmp(mode, "ALL")) {
                for (char **e = from; *e; e++)
                        if (strchr(*e, '=') && !export_env_is_ours(*e))
                                strv_push(env, *e);
                return;
        }
        if (!strcmp(mode, "NONE"))
                return;
        list = xstrdup(mode);
        for (char *name = strtok_r(list, ", ", &save); name; name = strtok_r(NULL, ", ", &save))
                copy_matching(env, from, name);
        free(list);
}

/* Reads NAME=VALUE lines, blank lines and # comments; "export " may stand in front; no quoting.
 * @what names the kind of file in a message. */
static int read_env_file(struct strv *env, const char *what, const char *path, struct diags *diags)
{
        char *text, *line, *rest;
        int r = fd_read_file(path, ENV_FILE_MAX, &text, NULL), n = 0;

        if (r < 0) {
                diag_add(diags, 120, 66, "cannot read the %s %s: %s", what, path, strerror(-r));
                return -EINVAL;
        }
        for (rest = text; (line = strsep(&rest, "\n"));) {
                n++;
                line[strcspn(line, "\r")] = '\0';
                line += strspn(line, " \t");
                if (!strncmp(line, "export ", 7))
                        line += 7;
                if (!*line || *line == '#')
                        continue;
                if (*line == '=' || !strchr(line, '=')) {
                        diag_help(diag_add(diags, 121, 65, "%s:%d: not a NAME=VALUE line", path, n),
                                  "write NAME=VALUE, one per line; # begins a comment");
                        r = -EINVAL;
                        continue;
                }
                strv_push(env, line);
        }
        free(text);
        return r;
}

/* Reads the file that DeepSpeed's launcher reads, if there is one. That launcher takes one of the
 * working directory, too, which may be a repository of another author. */
static int read_deepspeed_env(struct strv *env, const struct options *o, struct diags *diags)
{
        const char *home = getenv("HOME");
        CLEANUP(free_textp) char *path = NULL;

        if (o->compat != COMPAT_DEEPSPEED || !home || !*home)
                return 0;
        path = xasprintf("%s/.deepspeed_env", home);
        if (access(path, F_OK) < 0)
                return 0;
        if (o->verbose)
                diag_tell(diags, "--compat deepspeed exports the variables in %s", path);
        return read_env_file(env, "DeepSpeed file", path, diags);
}

/* Tells whether every rank gets a variable @name from the agent, in place of an exported value. */
static bool is_of_rank(const char *name, unsigned family)
{
        struct compat_node node = { .name = (char *)"", .n_ranks = 1 };
        struct launch_rank rank = { 0 };
        const struct launch_order l = {
                .num_nodes = 1,
                .compat = { .family = (uint8_t)family, .nodes = &node, .n_nodes = 1 },
                .ranks = &rank,
                .n_ranks = 1
        };
        CLEANUP(strv_finish) struct strv env = STRV_INIT;

        strv_env_set(&env, name, "given");
        worker_env_build(&env, &l, &rank, "", "", 1);
        return strcmp(strv_env_get(&env, name), "given") != 0;
}

/* Adds the variables of -x NAME, -x PATTERN or -x NAME=VALUE. */
static void add_export(struct strv *env, char **from, const char *word, unsigned family,
                       struct diags *diags)
{
        CLEANUP(free_textp) char *name = xstrndup(word, strcspn(word, "="));

        if (is_of_rank(name, family))
                diag_help(diag_warn(diags, HN_OF_RANK,
                                    "-x %s has no effect: hnlaunch sets %s for every rank", word,
                                    name),
                          "hnlaunch plan --ranks 0 shows the environment of a rank");
        if (strchr(word, '='))
                strv_push(env, word);
        else if (!copy_matching(env, from, word) && !strpbrk(word, "*?["))
                diag_help(diag_warn(diags, 123, "-x %s: not set in this shell", word),
                          "give it a value: -x %s=...", word);
}

static bool is_name_unset(const struct strv *patterns, const char *pair)
{
        for (size_t i = 0; i < patterns->n; i++)
                if (matches_name(patterns->v[i], pair, strcspn(pair, "=")))
                        return true;
        return false;
}

int export_env_collect(const struct options *o, char **from, struct strv *env, struct strv *unset,
                       struct diags *diags)
{
        CLEANUP(strv_finish) struct strv all = STRV_INIT, kept = STRV_INIT;
        int r;

        copy_base(&all, from, o->export_mode);
        r = read_deepspeed_env(&all, o, diags);
        for (size_t i = 0; i < o->env_files.n; i++)
                if (read_env_file(&all, "--env-file", o->env_files.v[i], diags) < 0)
                        r = -EINVAL;
        for (size_t i = 0; i < o->exports.n; i++)
                add_export(&all, from, o->exports.v[i], o->compat, diags);
        strv_copy(unset, &o->unset);
        for (size_t i = 0; i < all.n; i++)
                if (!is_name_unset(&o->unset, all.v[i]))
                        strv_push(&kept, all.v[i]);
        strv_env_merge(env, &kept);
        return r;
}
