/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the command line to struct options, in four steps of options_load():
 * - built-in values become settings of the lowest level;
 * - the line is read (read_command_line) up to the first word that is no option: each option is
 *   looked up in option_table and becomes a setting of the highest level; actions such as --help
 *   happen at once; spellings and options of other launchers are answered here;
 * - config_load() adds the settings of files and variables;
 * - apply_settings() parses the values that count into their fields, level by level, and
 *   option_check() compares the results.
 * help, version and explain end after the second step and need no valid configuration.
 */
#include "head/options/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head/options/config.h"
#include "head/options/explain.h"
#include "head/options/option_check.h"
#include "head/options/option_foreign.h"
#include "head/options/option_parse.h"
#include "head/options/option_table.h"
#include "wire/msg.h"

enum {
        HN_UNKNOWN = 701,
        HN_ARGUMENT = 702,
        HN_VALUE = 703,
        HN_LETTER = 707,
        HN_TOPIC = 710,
        HN_CONFIG_VALUE = 712,
        MAX_NAMES = 128,
};

/* The state of reading a command line. */
struct line {
        struct options *o;
        struct diags *d;
        struct strv args;
        size_t next;             /* place of the next word in args */
        bool ignored[MAX_NAMES]; /* by position in option_foreigns */
};

/* ---- words ---- */

/* --num_nodes -> --num-nodes, and -np, -hostfile -> --np, --hostfile: spellings of others. Takes
 * and returns a malloc'ed word. */
static char *modern_word(char *word)
{
        size_t len = strcspn(word, "=");
        char *name;

        if (word[0] != '-' || !word[1])
                return word;
        if (word[1] == '-') {
                for (char *c = word; c < word + len; c++)
                        if (*c == '_')
                                *c = '-';
                return word;
        }
        name = strndup(word + 1, len - 1);
        if (len > 2 && (option_by_name(name) || option_foreign_by_name(name))) {
                char *both = xasprintf("-%s", word);

                free(word);
                word = both;
        }
        free(name);
        return word;
}

/* Tells whether @word is an option of hnlaunch: then a value was rather forgotten than meant. */
static bool is_option(const char *word)
{
        CLEANUP(free_textp) char *name = NULL;

        if (word[0] != '-' || word[1] != '-')
                return word[0] == '-' && word[1] && !word[2] && option_by_letter(word[1]);
        name = xstrndup(word + 2, strcspn(word + 2, "="));
        return option_by_name(name);
}

static bool needs_value(const struct option_def *def)
{
        return def->arg && !(def->flags & OPTION_OPTIONAL);
}

static bool ends_line(const struct options *o)
{
        return o->command == COMMAND_HELP || o->command == COMMAND_VERSION;
}

/* ---- errors ---- */

static int unknown_letter(struct diags *d, char letter)
{
        for (size_t i = 0; i < option_letter_count; i++) {
                const struct option_letter *one = &option_letters[i];

                if (one->letter != letter)
                        continue;
                diag_help(diag_add(d, HN_LETTER, 64, "`-%c` is ambiguous: %s", letter, one->means),
                          "write %s", one->instead);
                return -EINVAL;
        }
        diag_help(diag_add(d, HN_UNKNOWN, 64, "unknown option `-%c`", letter),
                  "hnlaunch -h shows the usual ones, --help all");
        return -EINVAL;
}

static int unknown_option(struct diags *d, const char *name)
{
        struct diag *diag = diag_add(d, HN_UNKNOWN, 64, "unknown option `--%s`", name);
        const char *names[MAX_NAMES], *near;
        size_t n = 0;

        for (size_t i = 0; i < option_count; i++)
                if (!(option_table[i].flags & OPTION_HIDDEN))
                        names[n++] = option_table[i].name;
        for (size_t i = 0; i < option_alias_count; i++)
                names[n++] = option_aliases[i].name;
        near = diag_did_you_mean(name, names, n);
        if (near)
                diag_help(diag, "did you mean `--%s`?", option_by_name(near)->name);
        else
                diag_help(diag, "hnlaunch --help lists all options");
        return -EINVAL;
}

/* ---- a single option ---- */

/* Takes the next word as the value of @word, an option of another launcher without @def. NULL after
 * an error: the line ends, or an option follows. */
static const char *take_value(struct line *l, const struct option_def *def, const char *word)
{
        const char *value = l->next < l->args.n ? l->args.v[l->next] : NULL;
        const char *noun = def ? value_noun(def) : "a value";
        struct diag *diag;

        if (!value) {
                diag_add(l->d, HN_ARGUMENT, 64, "`%s` needs %s", word, noun);
                return NULL;
        }
        if (def && is_option(value)) {
                diag = diag_add(l->d, HN_ARGUMENT, 64, "`%s` needs %s, but the option `%s` follows",
                                word, noun, value);
                diag_help(diag, "if that is the value, write --%s=%s", def->name, value);
                return NULL;
        }
        l->next++;
        return value;
}

/* Takes the next word as the value of --local (a number) or --help (no option); else NULL. */
static const char *take_optional_value(struct line *l, const struct option_def *def)
{
        const char *word = l->next < l->args.n ? l->args.v[l->next] : NULL;
        bool fits = word && (def->action == ACTION_HELP
                                     ? *word != '-'
                                     : def->max && *word && !word[strspn(word, "0123456789")]);

        return fits ? l->args.v[l->next++] : NULL;
}

static void set_help(struct options *o, const char *topic)
{
        o->command = COMMAND_HELP;
        free(o->help_topic);
        o->help_topic = topic ? xstrdup(topic) : NULL;
}

/* Acts or records a setting. @name is the spelling in @word, NULL = the letter; @value NULL = not
 * in the same word. */
static int take_option(struct line *l, const struct option_def *def, const char *word,
                       const char *name, const char *value)
{
        char origin[80];

        if (!value && needs_value(def)) {
                value = take_value(l, def, word);
                if (!value)
                        return -EINVAL;
        }
        if (!value && name && def->flags & OPTION_OPTIONAL)
                value = take_optional_value(l, def);
        switch (def->action) {
        case ACTION_DRY_RUN:
                l->o->command = COMMAND_PLAN;
                return 0;
        case ACTION_SET:
                return config_assign(l->o->settings, value, l->d);
        case ACTION_HELP:
                set_help(l->o, name && !value ? "all" : value);
                return 0;
        case ACTION_VERSION:
                l->o->command = COMMAND_VERSION;
                return 0;
        case ACTION_NONE:
                break;
        }
        if (name)
                snprintf(origin, sizeof(origin), "--%s", name);
        else
                snprintf(origin, sizeof(origin), "-%c", def->letter);
        settings_add(l->o->settings, def, LEVEL_LINE, value ? value : "", origin);
        return 0;
}

/* Takes an option of another launcher, with its values. */
static int take_foreign(struct line *l, const struct option_foreign *foreign, const char *word)
{
        if (foreign->values && !strchr(word, '=') && !take_value(l, NULL, word))
                return -EINVAL;
        l->next = MIN(l->next + (size_t)MAX(foreign->values - 1, 0), l->args.n);
        if (foreign->accepted) {
                l->ignored[foreign - option_foreigns] = true;
                return 0;
        }
        diag_help(diag_add(l->d, HN_UNKNOWN, 64, "unknown option `--%s`", foreign->name), "%s",
                  foreign->says);
        return -EINVAL;
}

/* Takes --NAME or --NAME=VALUE. Unique beginnings of names are refused: a new option could break
 * scripts. */
static int take_long(struct line *l, const char *word)
{
        CLEANUP(free_textp) char *name = xstrndup(word + 2, strcspn(word + 2, "="));
        const char *eq = strchr(word, '=');
        const struct option_def *def = option_by_name(name);
        const struct option_foreign *foreign = option_foreign_by_name(name);

        if (!def && !foreign)
                return unknown_option(l->d, name);
        if (eq && !(def ? def->arg != NULL : foreign->values)) {
                diag_add(l->d, HN_ARGUMENT, 64, "`--%s` takes no value", name);
                return -EINVAL;
        }
        return def ? take_option(l, def, word, name, eq ? eq + 1 : NULL)
                   : take_foreign(l, foreign, word);
}

/* Takes the letters of -qv or -n4; a value ends them, and so does -h or -V. */
static int take_letters(struct line *l, const char *word)
{
        int r = 0;

        for (const char *c = word + 1; *c && !ends_line(l->o); c++) {
                const struct option_def *def = option_by_letter(*c);
                bool last = !c[1] || (def && needs_value(def));

                if (!def)
                        r = unknown_letter(l->d, *c);
                else if (take_option(l, def, word, NULL, last && c[1] ? c + 1 : NULL) < 0)
                        r = -EINVAL;
                if (last)
                        break;
        }
        return r;
}

/* Reads options up to the first other word; help and version end the loop at once. */
static int read_options(struct line *l)
{
        int r = 0;

        while (l->next < l->args.n && !ends_line(l->o)) {
                char *word = l->args.v[l->next] = modern_word(l->args.v[l->next]);

                if (word[0] != '-' || !word[1])
                        break;
                l->next++;
                if (!strcmp(word, "--"))
                        break;
                if ((word[1] == '-' ? take_long(l, word) : take_letters(l, word)) < 0)
                        r = -EINVAL;
        }
        return r;
}

/* ---- the whole line ---- */

static int read_command_line(struct line *l, int argc, char **argv)
{
        struct options *o = l->o;
        int first = 1;

        /* A first word that is a command; without one the command is run. */
        for (size_t i = 0; argc > 1 && i < option_command_count; i++)
                if (!strcmp(argv[1], option_commands[i].name)) {
                        o->command = (enum command)i;
                        first = 2;
                }
        o->run_given = first == 2 && o->command == COMMAND_RUN;
        o->program_first = first == 1 && argc > 1 && *argv[1] != '-';
        for (int i = first; i < argc; i++)
                strv_push(&l->args, argv[i]);
        if (o->command == COMMAND_HELP)
                set_help(o, l->args.n ? l->args.v[0] : NULL);
        else if (read_options(l) < 0)
                return -EINVAL;
        for (; l->next < l->args.n; l->next++)
                strv_push(&o->argv, l->args.v[l->next]);
        return 0;
}

/* ---- values ---- */

static void tell_bad_value(struct diags *d, const struct setting *one, const struct error *err)
{
        struct diag *diag;

        if (!one->text) {
                diag_add(d, HN_VALUE, one->level == LEVEL_LINE ? 64 : 78, "%s %s", one->origin,
                         err->text);
                return;
        }
        diag = diag_add(d, HN_CONFIG_VALUE, 78, "%s %s", one->key, err->text);
        diag_place(diag, "%s:%d", one->origin, one->col);
        diag_source(diag, one->line, one->text, one->col, one->len, '^', NULL);
}

static int apply_settings(struct options *o, struct diags *d)
{
        struct settings *s = o->settings;
        int r = 0;

        for (int level = LEVEL_PRESET; level <= LEVEL_LINE; level++)
                for (size_t i = 0; i < s->n; i++) {
                        struct setting *one = &s->v[i];
                        struct error err = { 0 };

                        if ((int)one->level != level || !settings_counts(s, one) ||
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

/* ---- life ---- */

int options_load(struct options *o, int argc, char **argv, struct diags *diags)
{
        struct line l = { .o = o, .d = diags };
        struct settings *s = xcalloc(1, sizeof(*s));
        struct error err;
        int r;

        *o = (struct options){ .settings = s };
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].preset)
                        settings_add(s, &option_table[i], LEVEL_PRESET, option_table[i].preset,
                                     "built in");
        r = read_command_line(&l, argc, argv);
        strv_finish(&l.args);
        if (r < 0 || o->command == COMMAND_EXPLAIN)
                apply_json(o);
        if (r < 0 || o->command == COMMAND_VERSION)
                return r;
        if (o->command == COMMAND_EXPLAIN)
                return explain_check(&o->argv, diags);
        if (o->command == COMMAND_HELP) {
                if (!o->help_topic || options_have_help(o->help_topic))
                        return 0;
                diag_help(diag_add(diags, HN_TOPIC, 64, "there is no help on `%s`", o->help_topic),
                          "topics: all hostfile env exit config; options are in hnlaunch help all");
                return -EINVAL;
        }
        if (config_load(s, settings_level(s, option_by_name("strict-config")) >= 0, diags) < 0)
                r = -EINVAL;
        if (apply_settings(o, diags) < 0)
                r = -EINVAL;
        for (size_t i = 0; o->verbose && i < option_foreign_count; i++)
                if (l.ignored[i])
                        diag_tell(diags, "--%s is ignored: %s", option_foreigns[i].name,
                                  option_foreigns[i].says);
        o->start_timeout_given = settings_level(s, option_by_name("start-timeout")) > LEVEL_PRESET;
        /* This machine answers without a network, and --local alone means its GPUs or cores. */
        if (o->command == COMMAND_PLAN && o->local)
                o->probe = true;
        if (r == 0)
                r = option_check(o, diags);
        if (r == 0 && o->compat == COMPAT_DEEPSPEED && !o->local_rank_arg)
                r = option_apply(o, option_by_name("local-rank-arg"), "", &err);
        if (r == 0 && o->plan.per_node) {
                o->subst = true;
                o->plan.ppn = 0;
                o->mpi = MPI_NONE;
                o->store_listen = STORE_LISTEN_NONE;
        }
        return r;
}

void options_finish(struct options *o)
{
        struct strv *lists[] = { &o->hostfiles, &o->hostlists, &o->include, &o->exclude,
                                 &o->exports,   &o->env_files, &o->unset,   &o->identities,
                                 &o->push,      &o->argv };
        char *texts[] = { o->export_mode, o->chdir,       o->user,          o->jump,
                          o->ssh_config,  o->ssh_command, o->iface,         o->label_template,
                          o->stdin_file,  o->show,        o->log_dir,       o->agent,
                          o->help_topic,  o->json_file,   o->local_rank_arg };

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                strv_finish(lists[i]);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                free(texts[i]);
        intlist_finish(&o->ranks);
        if (o->settings)
                settings_finish(o->settings);
        free(o->settings);
        *o = (struct options){ 0 };
}
