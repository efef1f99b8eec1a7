/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option_parse: one parser for each kind of value
 *
 * Each has the type of option_def.parse: reads @text into a field of the type below. After an error
 * the field is untouched, and @err has the rest of a sentence that begins with the option's name
 * and tells the right form.
 */
#pragma once

#include "head/options/option_table.h"

#define OPTION_PARSER(name)                                                                        \
        int name(void *field, const struct option_def *def, const char *text, struct error *err)

OPTION_PARSER(value_pty);         /* int: a rank, PTY_FIRST for "", PTY_NONE for "none" */
OPTION_PARSER(value_text);        /* char *: anything but nothing */
OPTION_PARSER(value_word);        /* char *: no leading dash, no blanks: for command lines */
OPTION_PARSER(value_rank_option); /* char *: NAME as --NAME; "" is local_rank */
OPTION_PARSER(value_list);        /* struct strv: appends */
OPTION_PARSER(value_bind);        /* char *: a policy of wire/bind_policy.h */
OPTION_PARSER(value_words);       /* struct strv: the words of a command */
OPTION_PARSER(value_container);   /* struct container_order: kind and name, "none" */
OPTION_PARSER(value_env);         /* struct strv: appends NAME, GLOB* or NAME=VALUE */
OPTION_PARSER(value_unset);       /* struct strv: appends NAME or NAME* */
OPTION_PARSER(value_switch);      /* bool: "" and yes, true, on, 1; no, false, off, 0 */
OPTION_PARSER(value_choice);      /* an enum: position of the word in def->arg, "slot|node" */
OPTION_PARSER(value_choice_bool); /* bool: second word of def->arg */
OPTION_PARSER(value_number);      /* int: def->min to def->max */
OPTION_PARSER(value_nodes);       /* sets o->nodes and o->nodes_min: N, MIN:MAX */
OPTION_PARSER(value_spares);      /* int: number, or SPARES_AUTO */
OPTION_PARSER(value_preflight);   /* enum preflight: "" is PREFLIGHT_FILES */
OPTION_PARSER(value_ppn);         /* int: number, PLAN_PPN_GPU or PLAN_PPN_CPU */
OPTION_PARSER(value_local);       /* sets o->local and o->local_n; the field is o->local_n */
OPTION_PARSER(value_span);        /* int64_t milliseconds: 10s 2m 500ms 1h, bare = seconds */
OPTION_PARSER(value_limit);       /* as value_span, or never */
OPTION_PARSER(value_signal);      /* int: USR1, SIGUSR1 or 10 */
OPTION_PARSER(value_moment);      /* int64_t microseconds: 7.5s 1m07s, of a run; or failure */
OPTION_PARSER(value_size);        /* int64_t bytes: 512M, 2G; K, M, G, T are powers of 1024 */
OPTION_PARSER(value_label);       /* enum label_mode and the template */
OPTION_PARSER(value_stdin);       /* enum stdin_mode and the file */
OPTION_PARSER(value_json);        /* sets o->json, and o->json_file unless stdout is meant */
OPTION_PARSER(value_show);        /* char *: all, or a list of ranks */
OPTION_PARSER(value_export);      /* char *: ALL is NULL */
OPTION_PARSER(value_ranks);       /* struct intlist */
OPTION_PARSER(value_more);        /* int: "" adds 1, else a number */

/* Returns the number of "USR1", "SIGUSR1" or "10"; 0 = there is no such signal. */
int signal_number(const char *text);
/* Returns the kind of argument for messages: "a file", "slot|node". */
const char *value_noun(const struct option_def *def);
