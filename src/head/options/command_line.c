/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line is read up to the first word that is no option. modern_word() brings spellings of other
 * launchers into the form of this one; each option is then looked up in option_table and becomes a
 * setting, or in option_foreigns; actions such as --help happen at once. All mistakes of a line are
 * told, unless a missing value makes the rest doubtful.
 *
 * A word behind a single dash is one option of another launcher unless is_cluster() finds letters
 * of hnlaunch in all of it: switches, then at most one letter with a value that fits. A lone colon
 * in front of an option begins another program, which has options of its own
 * (take_program_option()); in a line with --role each colon does. Otherwise a colon in front of a
 * program is refused, because other launchers would begin one there.
 */
#include "head/options/command_line.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/core/program.h"
#include "head/options/config.h"
#include "head/options/option_foreign.h"
#include "head/options/option_parse.h"
#include "head/options/option_table.h"
#include "head/options/program_options.h"

/* The state of reading a command line. */
struct line {
        struct options *o;
        struct diags *d;
        struct strv args;
        size_t next;                     /* place of the next word in args */
        size_t offset;                   /* of args in the whole line */
        const char *given;               /* the option as it stands on the line, up to its = */
        bool *ignored;                   /* by position in option_foreigns */
        bool verbatim;                   /* -- stands in front of the program */
        struct program_options *program; /* behind a colon; NULL = the first */
        size_t first_role;               /* place of the first --role */
};

/* ---- words ---- */

/* --num_nodes -> --num-nodes, and -np, -hostfile -> --np, --hostfile: spellings of others. A name
 * that has another meaning behind one dash than behind two keeps its dash: -env -> ---env. Takes
 * and returns a malloc'ed word. */
static char *modern_word(char *word)
{
        size_t len = strcspn(word, "=");
        CLEANUP(free_textp) char *dashed = NULL, *name = NULL;

        if (word[0] != '-' || !word[1])
                return word;
        if (word[1] == '-') {
                for (char *c = word; c < word + len; c++)
                        if (*c == '_')
                                *c = '-';
                return word;
        }
        dashed = xstrndup(word, len);
        /* Only known names get a second dash: other words are letters of hnlaunch, as -qv. */
        name = xstrdup(dashed + 1);
        if (len > 2 && (option_by_name(name) || option_foreign_by_name(name))) {
                char *both = xasprintf("-%s%s", option_foreign_by_name(dashed) ? "-" : "", word);

                free(word);
                word = both;
        }
        return word;
}

/* Tells whether @word is an option of the command: then a value was rather forgotten than meant. */
static bool is_option(const struct options *o, const char *word)
{
        CLEANUP(free_textp) char *name = NULL;

        if (word[0] != '-' || word[1] != '-')
                return word[0] == '-' && word[1] && !word[2] &&
                       option_by_letter(word[1], o->command);
        name = xstrndup(word + 2, strcspn(word + 2, "="));
        return option_by_name(name);
}

/* Whether the option takes the next word, if the word of the option has no value. */
static bool needs_value(const struct option_def *def)
{
        return def->arg && !(def->flags & OPTION_OPTIONAL);
}

/* Whether help or the version is printed, so that further words mean nothing. */
static bool ends_line(const struct options *o)
{
        return o->command == COMMAND_HELP || o->command == COMMAND_VERSION;
}

/* Tells whether @text has letters and dashes only, up to its end or a value. */
static bool is_name(const char *text)
{
        size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");

        return len && (!text[len] || text[len] == '=');
}

/* Tells whether @rest, behind the letter of @def in one word, is a value of it: else the word is
 * rather a name. */
static bool is_value_of(const struct option_def *def, const char *rest)
{
        switch (def->letter) {
        /* As in -n4 and -p2222; -nodes is a name. */
        case 'n':
        case 'p':
                return strchr("0123456789+-=", *rest);
        case 'x': /* names of variables have capitals or underscores, or are those of this shell */
                return !is_name(rest) || rest[strspn(rest, "abcdefghijklmnopqrstuvwxyz-")] ||
                       getenv(rest);
        case 'H':
                return !is_name(rest) || !strcmp(rest, "-") || !access(rest, F_OK);
        case 'w':
                return !is_name(rest) || !strcmp(rest, "localhost");
        default:
                return !is_name(rest);
        }
}

/* Returns the entry of a letter with several meanings elsewhere, or NULL. */
static const struct option_letter *ambiguous_letter(char letter)
{
        for (size_t i = 0; i < option_letter_count; i++)
                if (option_letters[i].letter == letter)
                        return &option_letters[i];
        return NULL;
}

/* Tells whether all of @word is letters of hnlaunch, as in -qv, -n4 or -qHhosts.txt, or has a
 * letter to be told of, as -N8. */
static bool is_cluster(const struct options *o, const char *word)
{
        const char *c = word + 1;
        const struct option_def *def = option_by_letter(*c, o->command);

        /* Skips the switches; @c then is at the end, at a letter with a value,
         * or at an unknown letter. */
        for (; def && !needs_value(def); def = option_by_letter(*++c, o->command))
                ;
        if (!*c || !word[2])
                return true;
        if (def)
                return !c[1] || is_value_of(def, c + 1);
        return ambiguous_letter(*c) && (!c[1] || !is_name(c + 1));
}

/* ---- errors ---- */

/* Whether options of other launchers may be meant: these stand before a program. */
static bool is_launch(const struct options *o)
{
        return ON_LAUNCH >> o->command & 1;
}

/* Says where the options of the command are listed. */
static void help_with_options(const struct options *o, struct diag *diag)
{
        if (is_launch(o))
                diag_help(diag, "hnlaunch --help lists all options");
        else
                diag_help(diag, "hnlaunch %s -h lists the options of %s",
                          option_commands[o->command].name, option_commands[o->command].name);
}

/* Refuses @word, an option of other commands. */
static int refuse_misplaced(struct diags *d, const struct options *o, const struct option_def *def,
                            const char *word)
{
        CLEANUP(free_textp) char *owners = option_owners(def);
        const char *name = option_commands[o->command].name;
        struct diag *diag;

        diag = diag_add(d, def->action == ACTION_JOB ? HN_JOB_OPTION : HN_OPTION_CONFLICT, EX_USAGE,
                        "%s is an option of %s, not of %s", word, owners, name);
        if (o->command != COMMAND_RUN)
                diag_help(diag, "hnlaunch %s -h lists the options of %s", name, name);
        else
                diag_help(diag, "hnlaunch %s %s ...; hnlaunch help %s says more", owners, word,
                          owners);
        return -EINVAL;
}

/* Adds the error for a letter: an option of another command, a letter with several meanings
 * elsewhere, or an option of another launcher. Returns -EINVAL. */
static int unknown_letter(struct line *l, char letter)
{
        const char word[] = { '-', letter, '\0' };
        const struct option_letter *one = is_launch(l->o) ? ambiguous_letter(letter) : NULL;
        const struct option_foreign *foreign =
                is_launch(l->o) ? option_foreign_by_name(word) : NULL;
        const struct option_def *def = option_by_letter(letter, COMMAND_HELP);
        struct diag *diag;

        if (def && !one && !foreign)
                return refuse_misplaced(l->d, l->o, def, word);
        if (one) {
                diag = diag_add(l->d, HN_AMBIGUOUS_LETTER, EX_USAGE, "`-%c` is ambiguous: %s",
                                letter, one->means);
                diag_help(diag, "write %s", one->instead);
                return -EINVAL;
        }
        diag = diag_add(l->d, HN_UNKNOWN_OPTION, EX_USAGE, "unknown option `-%c`", letter);
        if (foreign)
                diag_help(diag, "%s", foreign->says);
        else
                help_with_options(l->o, diag);
        return -EINVAL;
}

/* Adds the error for an unknown option; @name is the option without dashes. A name near to an
 * option of this command is offered; else the words could be a letter with its value, as in -nfour.
 * Returns -EINVAL. */
static int unknown_option(struct line *l, const char *name)
{
        struct diag *diag =
                diag_add(l->d, HN_UNKNOWN_OPTION, EX_USAGE, "unknown option `%s`", l->given);
        const struct option_def *def = option_by_letter(*name, l->o->command), *meant;
        const char **names = xcalloc(option_count + option_alias_count, sizeof(*names)), *near;
        size_t n = 0;

        for (size_t i = 0; i < option_count; i++)
                if (!(option_table[i].flags & OPTION_HIDDEN) &&
                    option_belongs(&option_table[i], l->o->command))
                        names[n++] = option_table[i].name;
        for (size_t i = 0; i < option_alias_count; i++)
                if (option_belongs(option_by_name(option_aliases[i].name), l->o->command))
                        names[n++] = option_aliases[i].name;
        near = diag_did_you_mean(name, names, n);
        free(names);
        meant = near ? option_by_name(near) : NULL;
        /* There is --tail only: head(1) prints the first lines. */
        if (l->o->command == COMMAND_LOGS && !strcmp(name, "head")) {
                diag_help(diag, "hnlaunch logs | head -n N");
                return -EINVAL;
        }
        if (meant && meant->flags & OPTION_KEY)
                diag_help(diag, "did you mean `-o %s=%s`?", meant->key,
                          meant->arg ? meant->arg : "yes");
        else if (meant)
                diag_help(diag, "did you mean `--%s`?", meant->name);
        else
                help_with_options(l->o, diag);
        if (l->given[1] != '-' && def && needs_value(def))
                diag_help(diag, "if `%s` is the value of -%c, write -%c %s", name + 1, *name, *name,
                          name + 1);
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
                diag = diag_add(l->d, HN_OPTION_ARGUMENT, EX_USAGE, "`%s` needs %s", word, noun);
                if (def)
                        diag_help(diag, "hnlaunch help %s tells what it takes", def->name);
                return NULL;
        }
        /* A forgotten value is likelier than a value with the look of an option of hnlaunch. */
        if (def && is_option(l->o, value)) {
                diag = diag_add(l->d, HN_OPTION_ARGUMENT, EX_USAGE,
                                "`%s` needs %s, but the option `%s` follows", word, noun, value);
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

/* Takes the next word if it has a help, for -h; else NULL. */
static const char *take_topic(struct line *l)
{
        const char *word = l->next < l->args.n ? l->args.v[l->next] : "-";

        return *word != '-' && options_have_help(word) ? l->args.v[l->next++] : NULL;
}

/* @topic NULL is the one screen, or the help of the command that has been given. */
static void set_help(struct options *o, const char *topic)
{
        if (!topic && o->command != COMMAND_RUN && o->command != COMMAND_HELP)
                topic = option_commands[o->command].name;
        o->command = COMMAND_HELP;
        free(o->help_topic);
        o->help_topic = topic ? xstrdup(topic) : NULL;
}

/* Takes the path of the job file. */
static int set_job_file(struct line *l, const char *path)
{
        struct settings *s = l->o->settings;

        if (!*path) {
                diag_help(diag_add(l->d, HN_JOB_OPTION, EX_USAGE, "--job needs a file"),
                          "is a variable empty that should hold it?");
        } else if (!strcmp(path, "-")) {
                diag_help(
                        diag_add(l->d, HN_JOB_OPTION, EX_USAGE, "--job cannot read standard input"),
                        "write it to a file: standard input is for the ranks, and `hnlaunch "
                        "rerun` reads the file again");
        } else if (s->job) {
                diag_help(diag_add(l->d, HN_JOB_OPTION, EX_USAGE,
                                   "two job files: --job %s and --job %s", s->job, path),
                          "a run has one; settings for all runs belong in "
                          "~/.config/hnlaunch/config.ini");
        } else {
                s->job = xstrdup(path);
                return 0;
        }
        return -EINVAL;
}

/* Refuses an option of a role outside of one, and the second role of a program. Makes the first
 * program of the line a role. */
static int begin_role(struct line *l, const struct option_def *def, const char *value,
                      const char *origin)
{
        struct options *o = l->o;
        const struct program_options *own = l->program ? l->program : o->first;
        bool names = !strcmp(def->name, "role");

        if (own && o->first && names && own->role.name) {
                diag_help(diag_add(l->d, HN_ROLE_OPTION, EX_USAGE,
                                   "a program is one role: --role %s and --role %s", own->role.name,
                                   value),
                          "the next role begins behind a `:`");
                return -EINVAL;
        }
        if (!o->first && l->program) {
                diag_help(diag_add(l->d, HN_ROLE_OPTION, EX_USAGE,
                                   "`%s` behind `:`, but the first program has no --role", origin),
                          "all programs of a job have roles, or none: write --role NAME in front "
                          "of the first");
                return -EINVAL;
        }
        if (!o->first && !names) {
                diag_help(diag_add(l->d, HN_ROLE_OPTION, EX_USAGE,
                                   "`%s` stands in front of no --role", origin),
                          "the option belongs to a role: write it behind --role NAME");
                return -EINVAL;
        }
        if (!o->first) {
                /* The line of a job of roles begins with its first --role (rerun puts
                 * options in front of it). */
                bool apart = value == l->args.v[l->next - 1]; /* from --role */

                o->first = xcalloc(1, sizeof(*o->first));
                l->first_role = l->next - 1 - apart;
        }
        return 0;
}

/* Sets an option of a program behind a colon, or of a role. @origin is its spelling. -ENOENT: of
 * the job. */
static int take_program_option(struct line *l, const struct option_def *def, const char *value,
                               const char *origin)
{
        struct program_options *own;
        struct error err;
        int r = def->action == ACTION_ROLE ? begin_role(l, def, value, origin) : 0;

        if (r < 0)
                return r;
        own = l->program ? l->program : l->o->first;
        r = program_options_set(own, def, value, l->o->first, &err);
        if (r == -ENOENT && !l->program)
                return r;
        if (r == -ENOENT) {
                diag_help(diag_add(l->d, HN_SECOND_PROGRAM, EX_USAGE,
                                   "`%s` behind `:` is an option of the whole job", origin),
                          l->o->first ? "write it in front of the first --role; hnlaunch-job(5) "
                                        "has the options of a role"
                                      : "write it in front of the first program; a program behind "
                                        "`:` has -n, -x and --chdir");
                return -EINVAL;
        }
        if (r < 0)
                diag_add(l->d, HN_OPTION_VALUE, EX_USAGE, "%s %s", origin, err.text);
        else if (!strcmp(def->name, "env"))
                intlist_add(&own->env_words, (int)(l->offset + l->next - 1));
        return r;
}

/* Acts or records a setting. @name is the spelling in @word, NULL = the letter; @value NULL = not
 * in the same word. */
static int take_option(struct line *l, const struct option_def *def, const char *word,
                       const char *name, const char *value)
{
        /* For a command that speaks of runs, --role is a setting as others are. */
        bool of_role = (l->o->first || def->action == ACTION_ROLE) &&
                       !option_command_takes_words(l->o->command) &&
                       option_belongs(def, l->o->command);
        char origin[80];
        int r;

        if (!value && needs_value(def)) {
                value = take_value(l, def, word);
                if (!value)
                        return -EINVAL;
        }
        if (l->program || of_role) {
                snprintf(origin, sizeof(origin), name ? "--%s" : "-%s",
                         name ? name : (char[]){ (char)def->letter, 0 });
                r = take_program_option(l, def, value ? value : "", origin);
                if (r != -ENOENT)
                        return r;
        }
        /* Behind a letter the next word is no value, but for -h and a word that has a help. */
        if (!value && name && def->flags & OPTION_OPTIONAL)
                value = take_optional_value(l, def);
        if (!value && !name && def->action == ACTION_HELP && l->o->command == COMMAND_RUN)
                value = take_topic(l);
        /* Options with a field are checked at the end of the line (check_misplaced()): the command
         * is known then. */
        if (def->action && !option_belongs(def, l->o->command)) {
                snprintf(origin, sizeof(origin), "--%s", def->name);
                return refuse_misplaced(l->d, l->o, def, origin);
        }
        switch (def->action) {
        case ACTION_JOB:
                return set_job_file(l, value);
        /* The rest of the line is read as one of `hnlaunch plan`. */
        case ACTION_DRY_RUN:
                l->o->command = COMMAND_PLAN;
                return 0;
        case ACTION_SET:
                return config_assign(l->o->settings, value, l->d);
        case ACTION_HELP:
                set_help(l->o, name && !value && l->o->command == COMMAND_RUN ? "all" : value);
                return 0;
        case ACTION_VERSION:
                l->o->command = COMMAND_VERSION;
                return 0;
        case ACTION_ROLE:
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
        diag_help(diag_add(l->d, HN_UNKNOWN_OPTION, EX_USAGE, "unknown option `%s`", l->given),
                  "%s", foreign->says);
        return -EINVAL;
}

/* Takes --NAME or --NAME=VALUE. Unique beginnings of names are refused: a new option could break
 * scripts. */
static int take_long(struct line *l, const char *word)
{
        CLEANUP(free_textp) char *name = xstrndup(word + 2, strcspn(word + 2, "="));
        const char *eq = strchr(word, '=');
        const struct option_def *def = option_by_name(name);
        const struct option_foreign *foreign =
                !def && is_launch(l->o) ? option_foreign_by_name(name) : NULL;

        if (!def && !foreign)
                return unknown_option(l, name);
        if (eq && !(def ? def->arg != NULL : foreign->values || !foreign->accepted)) {
                diag_add(l->d, HN_OPTION_ARGUMENT, EX_USAGE, "`--%s` takes no value", name);
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
                const struct option_def *def = option_by_letter(*c, l->o->command);
                bool last = !c[1] || (def && needs_value(def));

                if (!def)
                        r = unknown_letter(l, *c);
                else if (take_option(l, def, word, NULL, last && c[1] ? c + 1 : NULL) < 0)
                        r = -EINVAL;
                if (last)
                        break;
        }
        return r;
}

static int take_letters_or_word(struct line *l, const char *word)
{
        if (word[1] == '-')
                return take_long(l, word);
        return is_cluster(l->o, word) ? take_letters(l, word) : unknown_option(l, l->given + 1);
}

/* Reads options up to the program, or between the words of a command; help and version end the loop
 * at once. */
static int read_options(struct line *l)
{
        /* Such a command may have words between options; a program ends the options. */
        bool takes_words = option_command_takes_words(l->o->command);
        struct settings *s = l->o->settings;
        int r = 0;

        while (l->next < l->args.n && !ends_line(l->o)) {
                const char *was = l->args.v[l->next];
                CLEANUP(free_textp) char *given = xstrndup(was, strcspn(was, "="));
                /* The list owns the new spelling; messages quote the given one. */
                char *word = l->args.v[l->next] = modern_word(l->args.v[l->next]);

                /* A lone "-" is a word. `config` takes keys between its options. */
                if ((word[0] != '-' || !word[1]) && !takes_words &&
                    !(l->o->command == COMMAND_CONFIG && option_by_key(word)))
                        break;
                l->next++;
                if (word[0] != '-' || !word[1]) {
                        strv_push(&l->o->argv, word);
                        continue;
                }
                l->verbatim = !strcmp(word, "--");
                if (l->verbatim)
                        break;
                l->given = given;
                size_t first = l->next - 1, n = s->n;

                if (take_letters_or_word(l, word) < 0)
                        r = -EINVAL;
                /* Notes which words each setting came from, for `hnlaunch rerun`. */
                for (; n < s->n; n++) {
                        s->v[n].first = l->offset + first;
                        s->v[n].after = l->offset + l->next;
                }
        }
        return r;
}

/* ---- the program ---- */

/* Tells whether @word, behind a lone colon, begins a second program in other launchers. */
static bool begins_program(const char *word)
{
        struct stat st;

        /* An option behind a colon, as in `: -n 3 ./b`; ": -1" is rather an argument. */
        if (*word == '-')
                return word[1] == '-' || isalpha((unsigned char)word[1]);
        if (*word == '/' || !strncmp(word, "./", 2) || !strncmp(word, "../", 3))
                return word[1];
        /* A plain word counts only if such a program exists: colons are
         * arguments of many programs. */
        return (stat(word, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111) ||
               program_in_path(word);
}

/* Refuses a colon that begins no program here: nothing stands in front of it, or a program without
 * an option follows; @word is the word behind. Returns -EINVAL. */
static int refuse_second_program(struct line *l, const char *word)
{
        struct diag *diag =
                diag_add(l->d, HN_SECOND_PROGRAM, EX_USAGE,
                         *word == '-' || l->o->first ? "no program stands in front of `: %s`"
                                                     : "`:` begins a second program at `%s`, but "
                                                       "no option of it follows",
                         word);

        diag_help(diag, l->o->first
                                ? "each program stands behind its role: --role a ./a : --role b ./b"
                                : "to start both in one world: hnlaunch -n 1 ./a : -n 3 ./b");
        diag_help(diag, "to pass `:` on as an argument, write -- in front of the program");
        return -EINVAL;
}

/* Reads the options of the program behind a colon; its words follow. */
static int begin_program(struct line *l)
{
        struct options *o = l->o;
        int r;

        l->program = program_options_add(o);
        r = read_options(l);
        if (r == 0 && l->next == l->args.n && l->program->role.name) {
                diag_help(diag_add(l->d, HN_SECOND_PROGRAM, EX_USAGE,
                                   "no program follows --role %s", l->program->role.name),
                          "write it behind the options of the role: --role %s PROGRAM ARGS...",
                          l->program->role.name);
                r = -EINVAL;
        } else if (r == 0 && l->next == l->args.n) {
                diag_help(diag_add(l->d, HN_SECOND_PROGRAM, EX_USAGE,
                                   "no program follows the last `:`"),
                          o->first ? "write --role NAME PROGRAM behind it"
                                   : "write -n N PROGRAM behind it");
                r = -EINVAL;
        }
        /* Two colons in a row. */
        if (r == 0 && o->first && !strcmp(l->args.v[l->next], ":"))
                return refuse_second_program(l, ":");
        if (r == 0 && o->first && !l->program->role.name) {
                diag_help(diag_add(l->d, HN_ROLE_OPTION, EX_USAGE,
                                   "`%s` behind `:` has no --role, but the first program has",
                                   l->args.v[l->next]),
                          "write --role NAME behind the colon; to pass `:` on as an argument, "
                          "write -- in front of the program");
                r = -EINVAL;
        }
        return r;
}

/* Copies the programs with their arguments. Nothing separates them behind a --. */
static int read_program_words(struct line *l)
{
        bool starts = l->o->command == COMMAND_RUN || l->o->command == COMMAND_PLAN ||
                      l->o->command == COMMAND_CHECK;
        const struct strv *args = &l->args;
        size_t first = l->o->first ? l->first_role : l->next;

        while (l->next < args->n) {
                const char *word = args->v[l->next++];
                const char *next = l->next < args->n ? args->v[l->next] : NULL;
                struct strv *argv = l->program ? &l->program->argv : &l->o->argv;
                bool roles = l->o->first;
                int r = 0;

                /* A colon is an argument in other commands and behind --, and in front of another
                 * word than a program. */
                if (!starts || l->verbatim || strcmp(word, ":") != 0 ||
                    (!roles && (!next || !begins_program(next))))
                        strv_push(argv, word);
                else
                        r = argv->n && (roles || *next == '-')
                                    ? begin_program(l)
                                    : refuse_second_program(l, next ? next : "");
                if (r < 0)
                        return r;
        }
        /* Rerun keeps the end of the line as it is, from the first program,
         * or the first --role, on. */
        if (l->o->n_more)
                l->o->line_argv = args->n - first;
        return 0;
}

/* ---- the whole line ---- */

/* Refuses options that mean nothing to the command. */
static int check_misplaced(const struct options *o, struct diags *d)
{
        const struct settings *s = o->settings;
        int r = 0;

        for (size_t i = 0; i < s->n && !ends_line(o); i++)
                if (s->v[i].level == LEVEL_LINE && !option_belongs(s->v[i].def, o->command))
                        r = refuse_misplaced(d, o, s->v[i].def, s->v[i].origin);
        return r;
}

int command_line_read(struct options *o, int argc, char **argv, bool *ignored, struct diags *d)
{
        struct line l = { .o = o, .d = d, .ignored = ignored };
        int first = 1, r = 0;

        /* A first word that is a command; without one the command is run. */
        for (size_t i = 0; argc > 1 && i < option_command_count; i++)
                if (!strcmp(argv[1], option_commands[i].name)) {
                        o->command = (enum command)i;
                        first = 2;
                }
        o->run_given = first == 2 && o->command == COMMAND_RUN;
        /* A misspelt command stands there, too: option_check() looks at the word. */
        o->program_first = first == 1 && argc > 1 && *argv[1] != '-';
        l.offset = (size_t)first - 1;
        for (int i = 1; i < argc; i++)
                strv_push(&o->line, argv[i]);
        for (int i = first; i < argc; i++)
                strv_push(&l.args, argv[i]);
        if (o->command == COMMAND_HELP)
                set_help(o, l.args.n ? l.args.v[0] : NULL);
        else
                r = read_options(&l);
        if (r == 0)
                r = read_program_words(&l);
        strv_finish(&l.args);
        return check_misplaced(o, d) < 0 ? -EINVAL : r;
}
