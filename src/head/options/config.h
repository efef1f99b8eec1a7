/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Config: settings from files and variables, with the place that each came from
 *
 * Later ones win:
 * - built in
 * - /etc/hnlaunch/config.ini
 * - ${XDG_CONFIG_HOME:-~/.config}/hnlaunch/config.ini
 * - the job file, which --job names
 * - HNLAUNCH_SECTION_KEY
 * - command line
 *
 * Values stay text here; options_load() parses the values that win. No file is read because of the
 * place where it lies, but the user's and the system's own: any other can have come with a cloned
 * repository.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "head/options/option_table.h"
#include "head/term/diag.h"

enum level { LEVEL_PRESET, LEVEL_SYSTEM, LEVEL_USER, LEVEL_JOB, LEVEL_VARIABLE, LEVEL_LINE };

/* One value with its origin, owned. */
struct setting {
        const struct option_def *def;
        enum level level;
        char *value;
        bool wrong;   /* the option cannot parse the value */
        char *origin; /* "built in", "/etc/hnlaunch/config.ini:3", "$HNLAUNCH_RUN_PPN", "--ppn" */
        /* Of a file: the key as it is spelled there, the line, and where the value stands in it
         * (1-based). */
        char *key;
        int line;
        char *text;
        int col, len;
        size_t first, after; /* of the command line: its words in options.line */
};

/* In the order of reading: within a level the last value wins. */
struct settings {
        struct setting *v;
        size_t n;
        char *job;              /* path of the job file; NULL = none */
        struct job_role *roles; /* of the job file, in its order (job_file_roles.h) */
        size_t n_roles;
        struct strv shown; /* keys of `hnlaunch config KEY...`; none = all */
};

struct job_role;

void settings_finish(struct settings *s);
/* Copies @value and @origin. The pointer is valid until the next add. */
struct setting *settings_add(struct settings *s, const struct option_def *def, enum level level,
                             const char *value, const char *origin);
/* The same for text of a file or variable: options that take several values are given lists, with
 * blanks or commas between. */
void settings_add_list(struct settings *s, const struct option_def *def, enum level level,
                       const char *text, const char *origin);

/* Returns the text to show for a value: of a secret NAME=VALUE only the name, of a list of --export
 * the part before the first value. Valid until the next call. */
const char *setting_shown(const struct setting *one);

/* Shows the line of a file that has the value, with a mark. */
void setting_place(const struct setting *one, struct diag *diag);
/* Adds the error @err about a value of a file. */
void setting_refuse(const struct setting *one, const struct error *err, struct diags *d);

/* Returns the level that decides for @def, or -1 when no level has a value. The options that name
 * hosts are a family: a value on a higher level silences the lower levels of the whole family. */
int settings_level(const struct settings *s, const struct option_def *def);
/* Tells whether this value reaches the launch. */
bool settings_counts(const struct settings *s, const struct setting *one);

/* Reads the files and the variables. Unknown keys are warnings, in a job file errors. 0, or -EINVAL
 * with errors in @d (exit 78; 66: no job file). HNLAUNCH_SYSTEM_CONFIG names another system file.
 */
int config_load(struct settings *s, struct diags *d);
/* Returns the path of the user's file, malloc'ed; NULL: there is no home. */
char *config_user_path(void);
/* Makes errors of the warnings of unknown keys and variables. 0, or -EINVAL if there are any. */
int config_refuse_unknown(struct diags *d);

/* Warns of the nearest .hnlaunch.ini from the current folder up to the home or the root of a
 * repository, which earlier versions read. */
void config_warn_unread(const struct settings *s, struct diags *d);

/* Parses the text of one file: the parser below config_load(). @path names the file in messages;
 * relative paths start from its folder. */
int config_parse(struct settings *s, enum level level, const char *path, const char *text,
                 size_t len, struct diags *d);

/* Resolves the paths in a value of the option against @folder (NULL = none), if the option has one
 * of @flags: OPTION_PATH and its kind. malloc'ed. */
char *config_resolve(const struct option_def *def, unsigned flags, const char *folder,
                     const char *value);

/* "SECTION.KEY=VALUE" of -o. 0, or -EINVAL with an error in @d (exit 64). */
int config_assign(struct settings *s, const char *assignment, struct diags *d);

/* Takes the words of `hnlaunch config` if all are keys; others are a program. -EINVAL with an error
 * in @d (exit 64): the only word is nearly a key, or the first one is get or set, and no program.
 */
int config_take_keys(struct settings *s, struct strv *words, struct diags *d);

/* Prints the keys that were taken, or every key: value, origin and, but as @json, overridden
 * values. Wrong values are marked. */
void config_print(const struct settings *s, bool json, FILE *to);

/* Tells whether the values of variables of this name stay hidden: *TOKEN*, *SECRET*, ... */
bool config_is_secret(const char *name);
