/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option_table: the one list of all options
 *
 * getopt's arrays, the help texts, the completions of shells, the configuration keys and HNLAUNCH_*
 * variables, and the test of the man page are made from it. A value is always parsed from text,
 * whatever its origin; built-in values too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "head/options/options.h"

enum option_group {
        GROUP_WHERE,
        GROUP_COUNT,
        GROUP_ENV,
        GROUP_WHEN,
        GROUP_SSH,
        GROUP_NETWORK,
        GROUP_OUTPUT,
        GROUP_PLAN,
        GROUP_OTHER,
        OPTION_GROUPS,
};

/* Options without a field in struct options: what they do happens while the line is read. */
enum option_action { ACTION_NONE, ACTION_DRY_RUN, ACTION_SET, ACTION_HELP, ACTION_VERSION };

enum {
        OPTION_PATH = 4,      /* in a file: relative to the file's folder; ~/ is the home */
        OPTION_SPLIT = 8,     /* in a file: several values with commas between them */
        OPTION_GATHER = 16,   /* values of all levels add up instead of replacing each other */
        OPTION_SOURCE = 32,   /* names hosts: one given on a higher level silences the others */
        OPTION_HIDDEN = 64,   /* not in help and manual */
        OPTION_OPTIONAL = 128 /* --name or --name=ARG */
};

/* What a project file may set a key to (head/options/project_file.h). Every row with a key must
 * decide. */
enum project_rule {
        PROJECT_UNDECIDED, /* counts as refused */
        PROJECT_REFUSED,   /* whom to trust, what to run, what to read, who gets in */
        PROJECT_FREE,
        PROJECT_NAMES,     /* variables by name: no values, not all of them */
        PROJECT_HOSTS,     /* no user@ */
        PROJECT_HOSTFILES, /* their hosts have no user, port or addr */
        PROJECT_BELOW,     /* a path below the file's own folder */
        PROJECT_RULES,
};

struct option_def {
        const char *name; /* without dashes */
        int letter;       /* 0 = none */
        const char *arg;  /* "FILE", "slot|node"; NULL = a switch */
        const char *help;
        const char *key;    /* "run.ppn", NULL = command line only */
        const char *preset; /* built-in value as text, NULL = the field stays zero */
        enum option_group group;
        unsigned flags;
        enum option_action action;
        /* Parses @text into the field; repeated calls add to lists and replace everything else. 0,
         * or -EINVAL with what would be right in @err. NULL for actions. */
        int (*parse)(void *field, const struct option_def *def, const char *text,
                     struct error *err);
        size_t offset; /* of the field in struct options */
        long min, max; /* of numbers */
        enum project_rule project;
};

extern const struct option_def option_table[];
extern const size_t option_count;

/* Other names of an option or key: spellings of other launchers, and names of earlier versions.
 * They work, also as a variable HNLAUNCH_*, and are not shown. */
struct option_alias {
        const char *name, *means;
};
extern const struct option_alias option_aliases[];
extern const size_t option_alias_count;
extern const struct option_alias option_key_aliases[];
extern const size_t option_key_alias_count;

/* The commands, in the order of enum command. */
struct option_command {
        const char *name, *help;
};
extern const struct option_command option_commands[];
extern const size_t option_command_count;

const struct option_def *option_by_name(const char *name); /* and by alias; NULL = none */
const struct option_def *option_by_letter(int letter);
/* @key is SECTION.KEY, dashes count as underscores. env.set.NAME is the option -x. */
const struct option_def *option_by_key(const char *key);
const char *option_group_title(enum option_group group);

/* Parses @text into @def's field of @o. As option_def.parse. */
int option_apply(struct options *o, const struct option_def *def, const char *text,
                 struct error *err);
