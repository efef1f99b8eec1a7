/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order is that of export_env_collect(): copy_base() takes this shell's variables by --export,
 * ~/.deepspeed_env with --compat deepspeed, files of --env-file and -x are put on top (a later
 * value of a name replaces an earlier one), and --unset removes names from the result and travels
 * to the nodes, too. Of a list of --export, ALL is copied first, wherever it stands. All pairs are
 * gathered in a list first; strv_env_merge() leaves the last of each name. A variable that the
 * agent sets for every rank is exported in vain; worker_env_build() is asked for each name, so that
 * the warning needs no list.
 */
#include "head/options/export_env.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "head/options/config.h"
#include "head/options/option_table.h"
#include "wire/env/worker_env.h"

/* Far more than the environment that execve() takes. */
enum { ENV_FILE_MAX = 16 << 20 };

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
        "ZE_AFFINITY_MASK", "ASCEND_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
        /* other launchers */
        "SLURM_*", "PMI_*", "PMIX_*", "I_MPI_PMI_LIBRARY", "OMPI_COMM_*", "OMPI_MCA_*",
        "MV2_COMM_WORLD_*", "MVP_COMM_WORLD_*", "MPI_LOCAL*", "JSM_*", "PALS_*", "ALPS_APP_*",
        "FLUX_TASK_*", "FLUX_JOB_ID", "FLUX_PMI_LIBRARY_PATH", "PBS_*", "SLURMD_*", "LSB_*",
        "PE_HOSTFILE", "FLUX_URI", "K_MPI_JOB_ROLE", "TORCHELASTIC_*",
        /* the ranks of an outer hnlaunch or torchrun */
        "HN_*", "HNLAUNCH_*", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK",
        "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"
};

/* Whether the name, of @len bytes, is the pattern or begins with it up to a star. */
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
                if (*kept_here[i] == *name && matches_name(kept_here[i], name, len))
                        return true;
        return false;
}

/* Returns the length of the word of a list up to its comma, or 0 with an open quote. */
static size_t word_length(const char *text)
{
        char quote = 0;
        size_t n = 0;

        for (; text[n] && (quote || text[n] != ','); n++) {
                if (quote ? text[n] == quote : text[n] == '\'' || text[n] == '"')
                        quote = quote ? 0 : text[n];
        }
        return quote ? 0 : n;
}

/* Adds a word of a list: ALL, NONE, NAME=VALUE, or names between blanks. */
static void split_blanks(struct strv *words, const char *word)
{
        if (strchr(word, '=')) {
                strv_push(words, word);
                return;
        }
        for (size_t n; word += strspn(word, " "), n = strcspn(word, " "), n; word += n) {
                CLEANUP(free_textp) char *name = xstrndup(word, n);

                if (!strcasecmp(name, "all"))
                        strv_push(words, "ALL");
                else if (!strcasecmp(name, "none") || !strcasecmp(name, "nil"))
                        strv_push(words, "NONE");
                else
                        strv_push(words, name);
        }
}

int export_env_split(const char *text, struct strv *words, struct error *err)
{
        for (size_t n; *text; text += n + (text[n] == ',')) {
                CLEANUP(free_textp) char *word = NULL;
                size_t quoted;

                text += strspn(text, " ");
                n = word_length(text);
                if (!n && *text && *text != ',')
                        return err_set(err, EINVAL, "has an open quote: `%s`", text);
                /* Only quotes around a whole word go, as with srun: NAME='a,b' keeps both. */
                quoted = n > 1 && strchr("'\"", *text) && text[n - 1] == *text;
                word = xstrndup(text + quoted, n - 2 * quoted);
                if (*word == '=')
                        return err_set(err, EINVAL, "has a value without a name: `%s`", word);
                split_blanks(words, word);
        }
        if (!words->n)
                return err_set(err, EINVAL, "needs ALL, NONE, NAME or NAME=VALUE");
        if (strv_has(words, "ALL") && strv_has(words, "NONE"))
                return err_set(err, EINVAL, "takes ALL or NONE, not both");
        return 0;
}

/* Copies the variables with names like @pattern; false if there was none. */
static bool copy_matching(struct strv *env, char **from, const char *pattern)
{
        bool any = false;

        for (char **e = from; *e; e++) {
                /* fnmatch() wants the name alone. */
                char *name = xstrndup(*e, strcspn(*e, "="));

                if (strchr(*e, '=') && !fnmatch(pattern, name, 0)) {
                        strv_push(env, *e);
                        any = true;
                }
                free(name);
        }
        return any;
}

/* Reads NAME=VALUE lines, blank lines and # comments; "export " may stand in front; no quoting.
 * @what names the kind of file in a message. */
static int read_env_file(struct strv *env, const char *what, const char *path, struct diags *diags)
{
        char *text, *line, *rest;
        int r = fd_read_file(path, ENV_FILE_MAX, &text, NULL), n = 0;

        if (r < 0) {
                diag_add(diags, HN_ENV_FILE_UNREADABLE, EX_NOINPUT, "cannot read the %s %s: %s",
                         what, path, strerror(-r));
                return -EINVAL;
        }
        for (rest = text; (line = strsep(&rest, "\n"));) {
                n++;
                /* A file of Windows has CR LF. */
                line[strcspn(line, "\r")] = '\0';
                line += strspn(line, " \t");
                if (!strncmp(line, "export ", 7))
                        line += 7;
                if (!*line || *line == '#')
                        continue;
                if (*line == '=' || !strchr(line, '=')) {
                        diag_help(diag_add(diags, HN_ENV_FILE_LINE, EX_DATAERR,
                                           "%s:%d: not a NAME=VALUE line", path, n),
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

/* Tells whether every rank gets a variable @name from the agent, in place of an exported value. The
 * agent's own function builds the environment of a rank 0 with the variable. */
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

/* Tells whether the command line has the option @def with a value in which @word stands. */
static bool is_given_on_line(const struct options *o, const struct option_def *def,
                             const char *word)
{
        for (size_t i = 0; o->settings && i < o->settings->n; i++) {
                const struct setting *one = &o->settings->v[i];

                if (one->def == def && one->level == LEVEL_LINE && strstr(one->value, word))
                        return true;
        }
        return false;
}

/* Warns that nothing has the name or pattern @word of the option @def. A pattern in a configuration
 * file is for the shells that have such variables. */
static void warn_unset(const struct options *o, const struct option_def *def, const char *as,
                       const char *word, const char *before, struct diags *diags)
{
        struct diag *d;

        /* A name without a pattern is a mistake in a configuration as well. */
        if (!strpbrk(word, "*?[")) {
                d = diag_warn(diags, HN_ENV_UNSET, "%s %s: not set in this shell", as, word);
                /* The value in front was cut at the comma. */
                if (before && strchr(before, '='))
                        diag_help(d, "a comma parts words: a value with one is given by -x '%s,%s'",
                                  before, word);
                else if (strchr(word, ','))
                        diag_help(d, "write one %s for each name", as);
                else
                        diag_help(d, "give it a value: -x %s=...", word);
        } else if (is_given_on_line(o, def, word)) {
                diag_help(diag_warn(diags, HN_ENV_UNSET,
                                    "%s %s: no variable of this shell has such a name", as, word),
                          "env lists the variables of this shell");
        }
}

/* Adds the variables of NAME, PATTERN or NAME=VALUE, a word of the option -x or --export. @before
 * is the word in front of it in a list, or NULL. */
static void add_export(struct strv *env, char **from, const struct options *o, const char *option,
                       const char *word, const char *before, struct diags *diags)
{
        const struct option_def *def = option_by_name(option);
        CLEANUP(free_textp) char *name = xstrndup(word, strcspn(word, "="));
        /* As the user writes the option. */
        const char *as = def->letter ? "-x" : "--export";

        if (is_of_rank(name, o->compat))
                diag_help(diag_warn(diags, HN_ENV_OF_RANK,
                                    "%s %s has no effect: hnlaunch sets %s for every rank", as,
                                    word, name),
                          "hnlaunch plan --ranks 0 shows the environment of a rank");
        if (strchr(word, '='))
                strv_push(env, word);
        else if (!copy_matching(env, from, word))
                warn_unset(o, def, as, word, before, diags);
}

/* Copies this shell's variables but those of the session. */
static void copy_all(struct strv *env, char **from)
{
        for (char **e = from; *e; e++)
                if (strchr(*e, '=') && !export_env_is_ours(*e))
                        strv_push(env, *e);
}

/* Copies by --export: everything, nothing, or the words of a list. */
static void copy_base(struct strv *env, char **from, const struct options *o, struct diags *diags)
{
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        struct error err;

        if (o->export_mode)
                export_env_split(o->export_mode, &words, &err); /* was checked by the parser */
        if (!o->export_mode || strv_has(&words, "ALL"))
                copy_all(env, from);
        for (size_t i = 0; i < words.n; i++)
                if (strcmp(words.v[i], "ALL") && strcmp(words.v[i], "NONE"))
                        add_export(env, from, o, "export", words.v[i], i ? words.v[i - 1] : NULL,
                                   diags);
}

/* Whether --unset removes the variable of the pair. */
static bool is_name_unset(const struct strv *patterns, const char *pair)
{
        for (size_t i = 0; i < patterns->n; i++)
                if (matches_name(patterns->v[i], pair, strcspn(pair, "=")))
                        return true;
        return false;
}

void export_env_add(const struct options *o, const struct strv *words, char **from,
                    struct strv *env, struct diags *diags)
{
        for (size_t i = 0; i < words->n; i++)
                add_export(env, from, o, "env", words->v[i], NULL, diags);
}

int export_env_collect(const struct options *o, char **from, struct strv *env, struct strv *unset,
                       struct diags *diags)
{
        CLEANUP(strv_finish) struct strv all = STRV_INIT, kept = STRV_INIT;
        int r;

        copy_base(&all, from, o, diags);
        r = read_deepspeed_env(&all, o, diags);
        for (size_t i = 0; i < o->env_files.n; i++)
                if (read_env_file(&all, "--env-file", o->env_files.v[i], diags) < 0)
                        r = -EINVAL;
        export_env_add(o, &o->exports, from, &all, diags);
        /* Nodes have variables of their own, so the names travel as well. */
        strv_copy(unset, &o->unset);
        for (size_t i = 0; i < all.n; i++)
                if (!is_name_unset(&o->unset, all.v[i]))
                        strv_push(&kept, all.v[i]);
        strv_env_merge(env, &kept);
        return r;
}
