/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the command line to struct options, in four steps of options_load():
 * - built-in values become settings of the lowest level (add_presets);
 * - the line is read (read_command_line): getopt_long splits it, with arrays made from
 *   option_table, and each option becomes a setting of the highest level; actions such as --help
 *   happen at once; spellings and options of other launchers are answered here;
 * - config_load() adds the settings of files and variables;
 * - apply_settings() parses the values that count into their fields, level by level, and
 *   option_check() compares the results.
 * help, version and explain end after the second step and need no valid configuration.
 */
#include "head/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "head/options/config.h"
#include "head/options/explain.h"
#include "head/options/option_check.h"
#include "head/options/option_foreign.h"
#include "head/options/option_parse.h"
#include "head/options/option_table.h"
#include "head/term/columns.h"

enum {
        HN_UNKNOWN = 701,
        HN_ARGUMENT = 702,
        HN_VALUE = 703,
        HN_LETTER = 707,
        HN_TOPIC = 710,
        HN_CONFIG_VALUE = 712,
        LONG_BASE = 256, /* getopt's value of the first long option */
        MAX_NAMES = 128,
};

/* The state of reading a command line. */
struct line {
        struct options *o;
        struct settings *s;
        struct diags *d;
        struct strv args;
        bool ignored[MAX_NAMES]; /* by position in option_foreigns */
        struct option names[MAX_NAMES];
        char letters[2 * MAX_NAMES];
};

/* ---- getopt's arrays ---- */

static struct option getopt_entry(const char *name, const struct option_def *def)
{
        int arg = !def->arg                      ? no_argument
                  : def->flags & OPTION_OPTIONAL ? optional_argument
                                                 : required_argument;

        return (struct option){ name, arg, NULL, LONG_BASE + (int)(def - option_table) };
}

static void build_arrays(struct line *l)
{
        char *c = stpcpy(l->letters, "+:");
        size_t n = 0;

        for (size_t i = 0; i < option_count; i++) {
                const struct option_def *def = &option_table[i];

                l->names[n++] = getopt_entry(def->name, def);
                if (def->letter) {
                        *c++ = (char)def->letter;
                        if (def->arg && !(def->flags & OPTION_OPTIONAL))
                                *c++ = ':';
                }
        }
        *c = '\0';
        for (size_t i = 0; i < option_alias_count; i++)
                l->names[n++] = getopt_entry(option_aliases[i].name,
                                             option_by_name(option_aliases[i].means));
        for (size_t i = 0; i < option_foreign_count; i++)
                l->names[n++] = (struct option){ option_foreigns[i].name,
                                                 option_foreigns[i].values ? required_argument
                                                                           : no_argument,
                                                 NULL, (int)(LONG_BASE + option_count + i) };
}

/* Returns the option of another launcher behind getopt's answer @c, or NULL. */
static const struct option_foreign *foreign_option(int c)
{
        return c < (int)(LONG_BASE + option_count)
                       ? NULL
                       : &option_foreigns[c - LONG_BASE - (int)option_count];
}

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

static bool is_number(const char *word)
{
        return *word && word[strspn(word, "0123456789")] == '\0';
}

/* ---- errors ---- */

static int ambiguous_letter(struct diags *d, int letter)
{
        for (size_t i = 0; i < option_letter_count; i++) {
                const struct option_letter *one = &option_letters[i];
                struct diag *diag;

                if (one->letter != letter)
                        continue;
                diag = diag_add(d, HN_LETTER, 64, "`-%c` is ambiguous: %s", letter, one->means);
                diag_help(diag, "write %s", one->instead);
                return -EINVAL;
        }
        return 0;
}

static const char *suggest_option(const char *name)
{
        const char *names[MAX_NAMES];
        size_t n = 0;

        for (size_t i = 0; i < option_count; i++)
                if (!(option_table[i].flags & OPTION_HIDDEN))
                        names[n++] = option_table[i].name;
        for (size_t i = 0; i < option_alias_count; i++)
                names[n++] = option_aliases[i].name;
        name = diag_did_you_mean(name, names, n);
        return name ? option_by_name(name)->name : NULL;
}

static int unknown_option(struct diags *d, const char *word)
{
        char *name = strndup(word + 2, strcspn(word + 2, "="));
        const char *near = suggest_option(name);
        struct diag *diag = diag_add(d, HN_UNKNOWN, 64, "unknown option `--%s`", name);

        if (near)
                diag_help(diag, "did you mean `--%s`?", near);
        else
                diag_help(diag, "hnlaunch --help lists all options");
        free(name);
        return -EINVAL;
}

/* Tells the word that getopt answered with '?'. */
static int refused_word(struct line *l, const char *word)
{
        const char *eq = strchr(word, '=');
        char *name;

        if (word[1] != '-') {
                if (ambiguous_letter(l->d, optopt) < 0)
                        return -EINVAL;
                diag_help(diag_add(l->d, HN_UNKNOWN, 64, "unknown option `-%c`", optopt),
                          "hnlaunch -h shows the usual ones, --help all");
                return -EINVAL;
        }
        name = strndup(word + 2, strcspn(word + 2, "="));
        if (eq && (option_by_name(name) || option_foreign_by_name(name)))
                diag_add(l->d, HN_ARGUMENT, 64, "`--%s` takes no value", name);
        else
                unknown_option(l->d, word);
        free(name);
        return -EINVAL;
}

static int missing_argument(struct line *l, const char *word)
{
        const struct option_def *def = foreign_option(optopt) ? NULL
                                       : optopt >= LONG_BASE  ? &option_table[optopt - LONG_BASE]
                                                              : option_by_letter(optopt);

        diag_add(l->d, HN_ARGUMENT, 64, "`%s` needs %s", word, def ? value_noun(def) : "a value");
        return -EINVAL;
}

/* ---- a single option ---- */

/* Takes the next word as the value of --local (a number) or --help (no option); else NULL. */
static const char *next_option_word(const struct line *l, const struct option_def *def)
{
        const char *word = optind < (int)l->args.n ? l->args.v[optind] : NULL;

        if (!word || (def->action == ACTION_HELP ? *word == '-' : !def->max || !is_number(word)))
                return NULL;
        optind++;
        return word;
}

static void set_help(struct options *o, const char *topic)
{
        o->command = COMMAND_HELP;
        free(o->help_topic);
        o->help_topic = topic ? xstrdup(topic) : NULL;
}

static int take_action(struct line *l, const struct option_def *def, bool by_letter)
{
        const char *topic;

        switch (def->action) {
        case ACTION_DRY_RUN:
                l->o->command = COMMAND_PLAN;
                return 0;
        case ACTION_SET:
                return config_assign(l->s, optarg, l->d);
        case ACTION_HELP:
                topic = by_letter ? NULL : optarg ? optarg : next_option_word(l, def);
                set_help(l->o, topic || by_letter ? topic : "all");
                return 0;
        case ACTION_VERSION:
                l->o->command = COMMAND_VERSION;
                return 0;
        case ACTION_NONE:
                break;
        }
        return 0;
}

/* Records an option; @name is the spelling on the line, NULL = the letter. */
static int take_option(struct line *l, const struct option_def *def, const char *name)
{
        const char *value = optarg;
        char origin[80];

        if (def->action != ACTION_NONE)
                return take_action(l, def, !name);
        if (!value && def->flags & OPTION_OPTIONAL)
                value = next_option_word(l, def);
        if (name)
                snprintf(origin, sizeof(origin), "--%s", name);
        else
                snprintf(origin, sizeof(origin), "-%c", def->letter);
        settings_add(l->s, def, LEVEL_LINE, value ? value : "", origin);
        return 0;
}

/* Tells whether @word is an option of hnlaunch: then a value was rather forgotten than meant. */
static bool is_option(const char *word)
{
        char *name;
        bool found;

        if (word[0] != '-' || word[1] != '-')
                return word[0] == '-' && word[1] && !word[2] && option_by_letter(word[1]);
        name = strndup(word + 2, strcspn(word + 2, "="));
        found = option_by_name(name);
        free(name);
        return found;
}

/* Tells whether getopt took the next option for a value. */
static bool lacks_value(const struct line *l, int at)
{
        return optarg && optind - 1 > at && optarg == l->args.v[optind - 1] && is_option(optarg);
}

static int value_is_option(struct line *l, const char *word, const struct option_def *def)
{
        struct diag *diag = diag_add(l->d, HN_ARGUMENT, 64,
                                     "`%s` needs %s, but the option `%s` "
                                     "follows",
                                     word, value_noun(def), optarg);

        diag_help(diag, "if that is the value, write --%s=%s", def->name, optarg);
        optind--; /* reads that word again, as an option */
        return -EINVAL;
}

/* Takes an option of another launcher, with its values. */
static int take_foreign(struct line *l, const struct option_foreign *foreign)
{
        struct diag *diag;

        optind = MIN(optind + MAX(foreign->values - 1, 0), (int)l->args.n);
        if (foreign->accepted) {
                l->ignored[foreign - option_foreigns] = true;
                return 0;
        }
        diag = diag_add(l->d, HN_UNKNOWN, 64, "unknown option `--%s`", foreign->name);
        diag_help(diag, "%s", foreign->says);
        return -EINVAL;
}

static void tell_ignored(const struct line *l)
{
        for (size_t i = 0; l->o->verbose && i < option_foreign_count; i++)
                if (l->ignored[i])
                        diag_tell(l->d, "--%s is ignored: %s", option_foreigns[i].name,
                                  option_foreigns[i].says);
}

/* Refuses unique beginnings of names, which getopt takes: a new option could break scripts. */
static bool is_whole_name(const struct line *l, const char *word, int index)
{
        return strlen(l->names[index].name) == strcspn(word + 2, "=");
}

/* Takes the option of getopt's answer @c; @index is the place of a long name. */
static int take_getopt_answer(struct line *l, int c, int index)
{
        const struct option_foreign *foreign = foreign_option(c);

        if (foreign)
                return take_foreign(l, foreign);
        if (c >= LONG_BASE)
                return take_option(l, &option_table[c - LONG_BASE], l->names[index].name);
        return take_option(l, option_by_letter(c), NULL);
}

/* Reads options up to the first other word; help and version end the loop at once. */
static int read_options(struct line *l)
{
        int r = 0;

        opterr = 0;
        optind = 0; /* glibc: start afresh */
        for (;;) {
                int at = optind ? optind : 1, index = -1, c;
                char *word;

                if (at < (int)l->args.n)
                        l->args.v[at] = modern_word(l->args.v[at]);
                c = getopt_long((int)l->args.n, l->args.v, l->letters, l->names, &index);
                if (c < 0)
                        return r;
                word = l->args.v[at];
                if (c == '?')
                        r = refused_word(l, word);
                else if (c == ':')
                        r = missing_argument(l, word);
                else if (c >= LONG_BASE && !is_whole_name(l, word, index))
                        r = unknown_option(l->d, word);
                else if (!foreign_option(c) && lacks_value(l, at))
                        r = value_is_option(l, word,
                                            c >= LONG_BASE ? &option_table[c - LONG_BASE]
                                                           : option_by_letter(c));
                else if (take_getopt_answer(l, c, index) < 0)
                        r = -EINVAL;
                if (l->o->command == COMMAND_HELP || l->o->command == COMMAND_VERSION)
                        return r;
        }
}

/* ---- the whole line ---- */

/* Takes a first word that is a command; without one the command is run. */
static bool take_command(struct options *o, const char *word)
{
        for (size_t i = 0; word && i < option_command_count; i++)
                if (!strcmp(word, option_commands[i].name)) {
                        o->command = (enum command)i;
                        return true;
                }
        return false;
}

static int read_command_line(struct line *l, int argc, char **argv)
{
        int first = argc > 1 && take_command(l->o, argv[1]) ? 2 : 1;

        l->o->run_given = first == 2 && l->o->command == COMMAND_RUN;
        l->o->program_first = first == 1 && argc > 1 && *argv[1] != '-';
        strv_push(&l->args, argc ? argv[0] : "hnlaunch");
        for (int i = first; i < argc; i++)
                strv_push(&l->args, argv[i]);
        if (l->o->command == COMMAND_HELP) {
                set_help(l->o, l->args.n > 1 ? l->args.v[1] : NULL);
                return 0;
        }
        if (l->o->command == COMMAND_VERSION)
                return 0;
        build_arrays(l);
        if (read_options(l) < 0)
                return -EINVAL;
        for (size_t i = (size_t)optind; i < l->args.n; i++)
                strv_push(&l->o->argv, l->args.v[i]);
        return 0;
}

/* ---- values ---- */

static void bad_value(struct diags *d, const struct setting *one, const struct error *err)
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

static int apply_settings(struct options *o, struct settings *s, struct diags *d)
{
        int r = 0;

        for (int level = LEVEL_PRESET; level <= LEVEL_LINE; level++)
                for (size_t i = 0; i < s->n; i++) {
                        struct setting *one = &s->v[i];
                        struct error err = { 0 };

                        if ((int)one->level != level || !settings_counts(s, one) ||
                            option_apply(o, one->def, one->value, &err) == 0)
                                continue;
                        bad_value(d, one, &err);
                        one->wrong = true;
                        r = -EINVAL;
                }
        return r;
}

static void add_presets(struct settings *s)
{
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].preset)
                        settings_add(s, &option_table[i], LEVEL_PRESET, option_table[i].preset,
                                     "built in");
}

static int check_topic(const struct options *o, struct diags *d)
{
        if (o->command != COMMAND_HELP || !o->help_topic || options_have_help(o->help_topic))
                return 0;
        diag_help(diag_add(d, HN_TOPIC, 64, "there is no help on `%s`", o->help_topic),
                  "topics: all hostfile env exit config; options are in hnlaunch help all");
        return -EINVAL;
}

/* ---- life ---- */

/* Tells whether --strict-config is given, before files are read. */
static bool wants_strict(const struct settings *s)
{
        for (size_t i = 0; i < s->n; i++)
                if (!strcmp(s->v[i].def->name, "strict-config"))
                        return true;
        return false;
}

/* Applies --json even when the line is wrong: programs read of the end of the launch, too. */
static void apply_json(struct options *o, const struct settings *s)
{
        const struct option_def *def = option_by_name("json");
        struct error err;

        for (size_t i = 0; i < s->n; i++)
                if (s->v[i].def == def)
                        option_apply(o, def, s->v[i].value, &err);
}

int options_load(struct options *o, int argc, char **argv, struct diags *diags)
{
        struct line l = { .o = o, .d = diags };
        int r;

        *o = (struct options){ 0 };
        o->settings = xcalloc(1, sizeof(*o->settings));
        l.s = o->settings;
        add_presets(o->settings);
        r = read_command_line(&l, argc, argv);
        strv_finish(&l.args);
        if (r < 0)
                apply_json(o, o->settings);
        if (r < 0 || o->command == COMMAND_HELP || o->command == COMMAND_VERSION)
                return r < 0 ? r : check_topic(o, diags);
        if (o->command == COMMAND_EXPLAIN) {
                apply_json(o, o->settings);
                return explain_check(&o->argv, diags);
        }
        if (config_load(o->settings, wants_strict(o->settings), diags) < 0)
                r = -EINVAL;
        if (apply_settings(o, o->settings, diags) < 0)
                r = -EINVAL;
        tell_ignored(&l);
        o->start_timeout_given =
                settings_level(o->settings, option_by_name("start-timeout")) > LEVEL_PRESET;
        /* This machine answers without a network, and --local alone means its GPUs or cores. */
        if (o->command == COMMAND_PLAN && o->local)
                o->probe = true;
        return r < 0 ? r : option_check(o, diags);
}

void options_finish(struct options *o)
{
        struct strv *lists[] = { &o->hostfiles, &o->hostlists, &o->include, &o->exclude,
                                 &o->exports,   &o->env_files, &o->unset,   &o->identities,
                                 &o->push,      &o->argv };
        char *texts[] = { o->export_mode, o->chdir, o->user,           o->jump,       o->ssh_config,
                          o->ssh_command, o->iface, o->label_template, o->stdin_file, o->show,
                          o->log_dir,     o->agent, o->help_topic,     o->json_file };

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

void options_print_config(const struct options *o)
{
        if (o->json)
                config_print_json(o->settings, stdout);
        else
                config_print(o->settings, stdout);
}

void options_print_explained(const struct options *o)
{
        if (o->json)
                explain_print_json(&o->argv, stdout);
        else
                explain_print(&o->argv, stdout, columns_of_terminal(STDOUT_FILENO));
}
