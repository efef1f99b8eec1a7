/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the command line to struct options, in four steps of options_load():
 * - built-in values become settings of the lowest level;
 * - command_line_read() makes the options of the line settings of the highest level;
 * - config_load() adds the settings of files and variables, and the program of a job file, for
 *   which the words of the command line count as a setting, too;
 * - apply_settings() parses the values that count into their fields, level by level, and
 *   option_check() compares the results.
 * help, version and explain end after the second step and need no valid configuration.
 */
#include "head/options/options.h"
#include "head/options/program_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/options/command_line.h"
#include "head/options/config.h"
#include "head/options/explain.h"
#include "head/options/job_file_roles.h"
#include "head/options/multi_prog.h"
#include "head/options/option_check.h"
#include "head/options/option_foreign.h"
#include "head/options/option_parse.h"
#include "head/options/option_table.h"
#include "head/options/role_options.h"
#include "wire/msg.h"

/* ---- values ---- */

/* Reads H:MM:SS or MM:SS of Slurm as a number with a unit; malloc'ed. NULL: it is none. %n tells
 * whether the whole text was read. */
static char *respell_clock(const char *text)
{
        int n[3] = { 0 }, end[2] = { 0 }, fields, s;

        fields = sscanf(text, "%4d:%2d%n:%2d%n", &n[0], &n[1], &end[0], &n[2], &end[1]);
        if (fields < 2 || text[end[fields - 2]] || strspn(text, "0123456789:") != strlen(text))
                return NULL;
        s = fields == 3 ? n[0] * 3600 + n[1] * 60 + n[2] : n[0] * 60 + n[1];
        return s % 60     ? xasprintf("%ds", s)
               : s % 3600 ? xasprintf("%dm", s / 60)
               : s        ? xasprintf("%dh", s / 3600)
                          : NULL;
}

/* Reads the number of restarts from a value of --restart as other tools have it; 0: it is none.
 * Docker's policies may have a number behind a colon; 3 is offered without one. */
static int read_restarts(const char *value)
{
        static const char *const policies[] = { "always", "on-failure", "unless-stopped" };
        size_t len = strspn(value, "0123456789");

        if (len && !value[len])
                return atoi(value);
        for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
                len = strlen(policies[i]);
                if (!strncmp(value, policies[i], len) && (!value[len] || value[len] == ':'))
                        return value[len] ? atoi(value + len + 1) : 3;
        }
        return 0;
}

/* Adds what to write in place of a wrong value. */
static void help_with_value(struct diag *diag, const struct setting *one)
{
        const struct option_def *def = one->def;
        bool is_time = def->parse == value_span || def->parse == value_limit;
        CLEANUP(free_textp) char *span = is_time ? respell_clock(one->value) : NULL;
        int restarts = def->name && !strcmp(def->name, "restart") ? read_restarts(one->value) : 0;

        if (!strcmp(one->origin, "-p"))
                diag_help(diag, "-p is the port of ssh; a partition of Slurm is chosen by "
                                "salloc -p or sbatch -p");
        else if (span)
                diag_help(diag, "write %s", span);
        else if (restarts > 0)
                diag_help(diag, "--max-restarts %d starts the job again after a failure", restarts);
        else if (def->name)
                diag_help(diag, "hnlaunch help %s tells what it takes", def->name);
}

/* Adds the error about a value, with the line of its file, or with a help for a value of a command
 * line or variable. */
static void tell_bad_value(struct diags *d, const struct setting *one, const struct error *err)
{
        struct diag *diag;

        if (!one->text) {
                diag = diag_add(d, HN_OPTION_VALUE, one->level == LEVEL_LINE ? EX_USAGE : EX_CONFIG,
                                "%s %s", one->origin, err->text);
                help_with_value(diag, one);
                return;
        }
        setting_refuse(one, err, d);
}

/* Whether a setting repeats the words of the command line, which struct options has. */
static bool is_line_program(const struct setting *one)
{
        return one->def == &option_program && one->level == LEVEL_LINE;
}

/* Lets the program of the command line replace that of the job file. */
static void add_line_program(const struct options *o)
{
        CLEANUP(free_textp) char *text = NULL;
        struct buf words = BUF_INIT;

        if (!o->settings->job || !o->argv.n)
                return;
        for (size_t i = 0; i < o->argv.n; i++)
                buf_printf(&words, i ? " %s" : "%s", o->argv.v[i]);
        text = buf_steal(&words);
        settings_add(o->settings, &option_program, LEVEL_LINE, text, "command line");
}

/* Parses the deciding values, from the lowest level on: gathered values add up, and the last value
 * of any other option stays. All wrong values are told. */
static int apply_settings(struct options *o, struct diags *d)
{
        struct settings *s = o->settings;
        struct error err = { 0 };
        int r = 0;

        for (int level = LEVEL_PRESET; level <= LEVEL_LINE; level++)
                for (size_t i = 0; i < s->n; i++) {
                        struct setting *one = &s->v[i];

                        if ((int)one->level != level || !settings_counts(s, one) ||
                            is_line_program(one) ||
                            option_apply(o, one->def, one->value, &err) == 0)
                                continue;
                        tell_bad_value(d, one, &err);
                        one->wrong = true;
                        r = -EINVAL;
                }
        return r;
}

/* Applies --json alone: programs read of the end of the launch even when the line is wrong. */
static void apply_json(struct options *o)
{
        const struct option_def *def = option_by_name("json");
        struct error err;

        for (size_t i = 0; i < o->settings->n; i++)
                if (o->settings->v[i].def == def)
                        option_apply(o, def, o->settings->v[i].value, &err);
}

/* With --restart auto the table of decisions is the only limit, unless there is another. A hang is
 * one of its rows. */
static void settle_restart(struct options *o)
{
        const struct settings *s = o->settings;

        if (!o->restart.automatic)
                return;
        if (settings_level(s, option_by_name("max-restarts")) <= LEVEL_PRESET)
                o->max_restarts = RESTARTS_MAX;
        if (settings_level(s, option_by_name("on-hang")) <= LEVEL_PRESET)
                o->on_hang = HANG_RESTART;
}

/* ---- life ---- */

int options_load(struct options *o, int argc, char **argv, struct diags *diags)
{
        bool ignored[OPTION_FOREIGN_MAX] = { false };
        struct settings *s = xcalloc(1, sizeof(*s));
        CLEANUP(free_textp) char *near = NULL;
        struct error err;
        struct diag *di;
        bool launches;
        int r;

        *o = (struct options){ .settings = s };
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].preset)
                        settings_add(s, &option_table[i], LEVEL_PRESET, option_table[i].preset,
                                     "built in");
        r = command_line_read(o, argc, argv, ignored, diags);
        if (r == 0 && o->command == COMMAND_CONFIG)
                r = config_take_keys(s, &o->argv, diags);
        if (!o->n_more)
                o->line_argv = o->argv.n;
        if (r < 0 || o->command == COMMAND_EXPLAIN)
                apply_json(o);
        if (r < 0 || o->command == COMMAND_VERSION)
                return r;
        if (o->command == COMMAND_EXPLAIN)
                return explain_check(&o->argv, diags);
        if (o->command == COMMAND_HELP) {
                if (!o->help_topic || options_have_help(o->help_topic))
                        return 0;
                di = diag_add(diags, HN_NO_TOPIC, EX_USAGE, "there is no help on `%s`",
                              o->help_topic);
                near = options_suggest_help(o->help_topic);
                if (near)
                        diag_help(di, "%s", near);
                diag_help(di,
                          "hnlaunch -h shows commands and topics, hnlaunch help all the options");
                return -EINVAL;
        }
        /* Values are parsed also after an error, so that all mistakes are told at once. */
        if (config_load(s, diags) < 0)
                r = -EINVAL;
        add_line_program(o);
        if (apply_settings(o, diags) < 0)
                r = -EINVAL;
        if (r == 0)
                r = job_file_roles_apply(o, diags);
        if (o->strict_config && config_refuse_unknown(diags) < 0)
                r = -EINVAL;
        /* A program of a job file may have the name of a command. */
        o->run_given |= settings_level(s, &option_program) == LEVEL_JOB || s->n_roles;
        launches = o->command == COMMAND_RUN || o->command == COMMAND_PLAN ||
                   o->command == COMMAND_CHECK;
        if (launches || o->command == COMMAND_CONFIG)
                config_warn_unread(s, diags);
        for (size_t i = 0; o->verbose && i < option_foreign_count; i++)
                if (ignored[i])
                        diag_tell(diags, "--%s is ignored: %s", option_foreigns[i].name,
                                  option_foreigns[i].says);
        o->fold_given = settings_level(s, option_by_name("fold")) > LEVEL_PRESET;
        o->start_timeout_given = settings_level(s, option_by_name("start-timeout")) > LEVEL_PRESET;
        settle_restart(o);
        if (o->segment)
                o->order = ORDER_TOPOLOGY;
        if (r == 0)
                r = o->multi_prog && o->argv.n && launches ? multi_prog_read(o, diags)
                    : o->first                             ? role_options_settle(o, diags)
                                                           : program_options_count_ranks(o, diags);
        /* This machine answers without a network, and --local alone means its GPUs or cores. */
        if (o->command == COMMAND_PLAN && o->local)
                o->probe = true;
        /* The run that rerun starts checks the whole line. */
        if (r == 0 && o->command != COMMAND_RERUN)
                r = option_check(o, diags);
        /* Programs for DeepSpeed's launcher expect --local_rank. */
        if (r == 0 && o->compat == COMPAT_DEEPSPEED && !o->local_rank_arg)
                r = option_apply(o, option_by_name("local-rank-arg"), "", &err);
        if (o->container.kind && settings_level(s, option_by_name("export")) <= LEVEL_PRESET)
                o->export_mode = xstrdup("NONE"); /* this shell's PATH is not the image's */
        if (r == 0 && o->plan.per_node) {
                o->subst = true;
                o->plan.ppn = 0;
                o->mpi = MPI_NONE;
                /* With --per-node the program starts ranks and serves the store itself. */
                o->store_listen = STORE_LISTEN_NONE;
        }
        return r;
}

int options_min_nodes(const struct options *o)
{
        return o->min_nodes ? o->min_nodes : o->nodes_min;
}

bool options_replace_nodes(const struct options *o)
{
        return o->spares || options_min_nodes(o);
}

void options_finish(struct options *o)
{
        option_free_fields(o);
        program_options_free(o);
        multi_prog_free(o->multi);
        strv_finish(&o->line);
        if (o->settings)
                settings_finish(o->settings);
        free(o->settings);
        *o = (struct options){ 0 };
}

char *options_name_of_run(const char *word)
{
        size_t len = strcspn(word, "=");
        CLEANUP(free_textp)
        char *name = len > 2 && !strncmp(word, "--", 2) ? xstrndup(word + 2, len - 2) : NULL;
        const struct option_def *def = name ? option_by_name(name) : NULL;

        return def && option_belongs(def, COMMAND_RUN) ? STEAL(&name) : NULL;
}

bool options_bring_files(const struct options *o)
{
        return o->push.n || o->staged.paths.n || o->staged.venv;
}
