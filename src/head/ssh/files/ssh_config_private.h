/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh config, inside: the list of lines (ssh_config_lines.c), what holds for a host
 * (ssh_config_match.c), tokens (ssh_config_tokens.c) and the lookup itself (ssh_config.c)
 */
#pragma once

#include "head/ssh/files/ssh_config.h"
#include "head/ssh/files/ssh_keywords.h"
#include "head/ssh/files/ssh_pattern.h"

struct config_line {
        const char *file; /* in ssh_config.files */
        int number;
        bool system;                       /* of the file for all users, or included there */
        const struct ssh_keyword *keyword; /* NULL: unknown, IgnoreUnknown has to name it */
        char *name;                        /* as written, in lower case */
        struct strv args;
        char *rest; /* the text behind the keyword, with quotes: for commands */
        int guard;  /* index of the Host or Match line, -1 = none */
};

struct ssh_config {
        struct strv files; /* the strings of lines[].file */
        struct config_line *lines;
        size_t n, cap;
        char *home;
        char *login;
        bool sealed; /* ssh_config_parse(): opens no other file, runs no command */
};

struct config_lookup {
        const struct ssh_config *config;
        const struct ssh_host_request *request;
        struct ssh_host *host;
        char *holds;                      /* per line: a holding Host or Match line */
        const struct config_line **found; /* the first line of each keyword that holds */
        size_t found_n;
        const struct config_line *jump, *command; /* ProxyJump and ProxyCommand */
        bool final;                               /* the second pass */
        bool wants_final;                         /* there is a Match final */
        char *hostname;                           /* of the second pass and of tokens */
};

/* Returns the value of a keyword for the host, or NULL. */
const char *config_value(const struct config_lookup *l, const char *keyword);
const char *config_user(const struct config_lookup *l);
int config_port(const struct config_lookup *l);

/* Puts the place of a line, and its keyword, which may be NULL, in front of the sentence. The
 * number is HN_SSH_CONFIG_LINE unless there is one. Returns -err->code. */
int config_wrap_place(struct error *err, const char *file, int line, const char *keyword);

/* Checks the words of a Match line. -EINVAL. */
int config_match_check(const struct strv *args, struct error *err);
/* Tells whether a Host or a Match line holds: 1, 0, or -EINVAL. May run a command. */
int config_line_holds(struct config_lookup *l, const struct config_line *line, struct error *err);

/* Sets of tokens of ssh_config(5), for config_expand(). */
#define TOKENS_ALL      "CLdhijklnpru"
#define TOKENS_USER     "Ldhijklnpu"
#define TOKENS_PROXY    "hknpr"
#define TOKENS_HOSTNAME "h"
#define TOKENS_LOCAL    "Ldilu" /* the same for all hosts */
#define TOKENS_NONE     ""
enum { EXPAND_HOME = 1, EXPAND_VARIABLES = 2, EXPAND_FILE = 3 };

/*
 * Expands the %-tokens of the set, and with EXPAND_HOME ~ in front, with EXPAND_VARIABLES ${NAME}.
 * @ret is for free(). -EINVAL for another token, an unknown user or a variable that is not set.
 */
int config_expand(const struct config_lookup *l, const char *text, const char *tokens, int flags,
                  char **ret, struct error *err);
