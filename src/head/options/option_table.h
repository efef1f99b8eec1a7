/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option_table: the one list of all options
 *
 * The command line, the help texts, the completions of shells, the configuration keys, the
 * variables HNLAUNCH_* and the test of the manual are made from this table. Values of every origin,
 * built-in values too, are parsed from text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "head/options/options.h"

enum option_group {
        GROUP_WHERE,
        GROUP_COUNT,
        GROUP_ROLES,
        GROUP_ENV,
        GROUP_WHEN,
        GROUP_SSH,
        GROUP_NETWORK,
        GROUP_OUTPUT,
        GROUP_PLAN,
        GROUP_OTHER,
        OPTION_GROUPS,
};

/* Options without a field in struct options, which act while the command line is read. */
enum option_action {
        ACTION_NONE,
        ACTION_JOB,
        ACTION_ROLE, /* a field of struct program_options */
        ACTION_DRY_RUN,
        ACTION_SET,
        ACTION_HELP,
        ACTION_VERSION
};

enum {
        OPTION_PATH = 4,         /* in a file: relative to the file's folder; ~/ is the home */
        OPTION_JOB_PATH = 512,   /* the same in a job file only */
        OPTION_JOB_DEST = 1024,  /* what follows the last colon, in a job file only */
        OPTION_SPLIT = 8,        /* in a file: several values, separated by commas */
        OPTION_GATHER = 16,      /* values of all levels add up instead of replacing each other */
        OPTION_SOURCE = 32,      /* names hosts: a value on a higher level silences the family */
        OPTION_ALLOCATION = 256, /* any value but auto and none silences that family below, too */
        OPTION_HIDDEN = 64,      /* not in help and manual */
        OPTION_KEY = 2048,       /* set by its key; --name is an old spelling, until 1.0 */
        OPTION_OPTIONAL = 128    /* --name or --name=ARG */
};

#define ON(command) (1U << COMMAND_##command)

enum {
        ON_LAUNCH = ON(RUN) | ON(PLAN) | ON(CHECK) | ON(CONFIG),
        ON_RUNS = ON(PS) | ON(STOP) | ON(SIGNAL) | ON(DRAIN) | ON(WAIT) | ON(ATTACH) | ON(RERUN) |
                  ON(LOGS) | ON(WHY) | ON(REPORT) | ON(TOP), /* speak of runs */
        ON_HOLD = ON_LAUNCH | ON(HOLD),                      /* start agents */
        ON_CONNECT = ON_LAUNCH | ON(HOSTS) | ON(STAGE),      /* ask or serve nodes at once */
        ON_REACH = ON_CONNECT | ON(HOLD) | ON(TRUST),        /* reach hosts */
        ON_ALL = ON_REACH | ON_RUNS | ON(BAD) | ON(RELEASE) | ON(EXPLAIN) | ON(HELP) | ON(VERSION),
};

/* A field of struct options. Its type says how it is freed. */
struct option_field {
        enum { FIELD_NONE, FIELD_PLAIN, FIELD_TEXT, FIELD_LIST, FIELD_RANKS, FIELD_CONTAINER } type;
        size_t offset;
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
        unsigned commands; /* that have it, a bit of ON() each; 0 = ON_LAUNCH. rerun passes
                            * options of a run on */
        enum option_action action;
        /* Parses @text into the field; repeated calls add to lists and replace everything else. 0,
         * or -EINVAL with the right form in @err. NULL for actions. */
        int (*parse)(void *field, const struct option_def *def, const char *text,
                     struct error *err);
        struct option_field field;
        struct option_field second; /* the text beside a word: of --label, --stdin, --help */
        long min, max;              /* of numbers */
};

extern const struct option_def option_table[];
extern const size_t option_count;
/* `program` in [run] of a job file. It is in no list: the command line has words instead. */
extern const struct option_def option_program;

/* Other names of an option or key: spellings of other launchers, and names of earlier versions.
 * All work (a key also as a variable HNLAUNCH_*) and none is shown. */
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
        const char *words;    /* behind the options, for its usage line */
        unsigned least, most; /* how many words, of a command that takes words */
        const char *examples; /* lines; NULL = none */
};
extern const struct option_command option_commands[];
extern const size_t option_command_count;

/* Whether the words of @command are not a program, so that options may stand behind them. */
bool option_command_takes_words(enum command command);

const struct option_def *option_by_name(const char *name); /* and by alias; NULL = none */
/* Commands may give a letter to different options. */
const struct option_def *option_by_letter(int letter, enum command command);
/* Whether rerun passes the option on to the run, in place of the recorded option. */
bool option_is_passed_on(const struct option_def *def);
/* Whether @command has the option. Help and version have all: they end the line. */
bool option_belongs(const struct option_def *def, enum command command);
/* Returns "run, plan and config", the commands that have the option; malloc'ed. */
char *option_owners(const struct option_def *def);
/* @key is SECTION.KEY, dashes count as underscores. env.set.NAME is the option -x. */
const struct option_def *option_by_key(const char *key);
extern const char *const option_group_titles[OPTION_GROUPS];

/* Frees the fields of all options, and sets those that it frees to zero. */
void option_free_fields(struct options *o);

/* Parses @text into the field of @def in @o. As option_def.parse. */
int option_apply(struct options *o, const struct option_def *def, const char *text,
                 struct error *err);
