/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parser is called by option_apply() with the field at the option's offset. It checks first and
 * writes last, so that a wrong value leaves the field as it was. Parsers of options with two fields
 * (--local, --stdin, --label, --json) reach the second through container_of(). Limits are those of
 * the option's row; messages continue the sentence "--name ...".
 *
 * Values of a configuration and built-in values pass the same parsers, one after the other from the
 * lowest level on: lists grow, and any other value is replaced and freed. An empty text is a
 * switch, an optional value that is missing, or a mistake, by parser.
 */
#include "head/options/option_parse.h"
#include "head/core/shell_words.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "head/hosts/range.h"
#include "head/hosts/spare_hosts.h"
#include "head/model/label.h"
#include "head/options/export_env.h"
#include "wire/bind_policy.h"
#include "wire/msg.h"

/* As RANKS_MAX of the table. */
enum { MAX_RANK = 1 << 20 };

static const int64_t DAY_MS = 24 * 3600 * 1000;
static const int64_t SPAN_DAYS = 24; /* their milliseconds fit an int */
/* Ten years: no job takes longer, and sums of milliseconds stay far from the end of int64_t. */
static const int64_t LIMIT_DAYS = 3660;
/* A pebibyte. */
static const int64_t SIZE_MOST = INT64_C(1) << 50;

/* Takes @text. The value of a lower level goes. */
static void replace_text(char **field, char *text)
{
        free(*field);
        *field = text;
}

/* Returns words for the value of an option, as in "needs a file"; without a noun the ARG of the
 * help. */
const char *value_noun(const struct option_def *def)
{
        static const struct {
                const char *arg, *noun;
        } nouns[] = {
                { "FILE", "a file" },
                { "DIR", "a folder" },
                { "FILE|DIR", "a file or folder" },
                { "N", "a number" },
                { "K", "a number" },
                { "R", "a number" },
                { "TIME", "a time such as 10s" },
                { "SIG", "a signal" },
                { "SIZE", "a size such as 512M" },
                { "NAME", "a name" },
                { "PORT", "a port" },
                { "NAME|CIDR", "an interface or network" },
                { "SPEC", "a host list" },
                { "HOST", "a host" },
                { "CMD", "a command" },
                { "ARG", "an argument" },
                { "RE", "an extended regular expression" },
        };

        /* The same word for two things. */
        if (!strcmp(def->arg, "LIST"))
                return def->letter == 'w' ? "a host list" : "a list of ranks";
        for (size_t i = 0; i < ARRAY_SIZE(nouns); i++)
                if (!strcmp(nouns[i].arg, def->arg))
                        return nouns[i].noun;
        return def->arg;
}

OPTION_PARSER(value_text)
{
        if (!*text)
                return err_set(err, EINVAL, "needs %s", value_noun(def));
        replace_text(field, xstrdup(text));
        return 0;
}

/* "local_rank" and "--local_rank" are one option, which is kept with its dashes. An empty text is
 * the name that DeepSpeed uses. */
OPTION_PARSER(value_rank_option)
{
        const char *name = *text ? text : "local_rank";

        (void)def;
        name += strspn(name, "-");
        for (const char *c = name; *c; c++)
                if (!isalnum((unsigned char)*c) && !strchr("_-", *c))
                        name = "";
        if (!*name || strlen(name) + 2 > LOCAL_RANK_OPTION_MAX)
                return err_set(err, EINVAL,
                               "needs the name of an option of the program, such as local_rank, "
                               "got `%s`",
                               text);
        replace_text(field, xasprintf("--%s", name));
        return 0;
}

OPTION_PARSER(value_word)
{
        /* A word that begins with - is rather the next option. */
        if (!*text || *text == '-')
                return err_set(err, EINVAL, "needs %s, got `%s`", value_noun(def), text);
        for (const char *c = text; *c; c++)
                if (isspace((unsigned char)*c) || iscntrl((unsigned char)*c))
                        return err_set(err, EINVAL, "takes no blanks, got `%s`", text);
        return value_text(field, def, text, err);
}

/* Adds to the list: the option may be repeated. */
OPTION_PARSER(value_list)
{
        if (!*text)
                return err_set(err, EINVAL, "needs %s", value_noun(def));
        strv_push(field, text);
        return 0;
}

OPTION_PARSER(value_env)
{
        if (!*text || *text == '=')
                return err_set(err, EINVAL,
                               "needs NAME, a pattern such as 'NCCL_*', or NAME=VALUE");
        return value_list(field, def, text, err);
}

OPTION_PARSER(value_unset)
{
        size_t len = strcspn(text, "*");

        /* A star stands at the end only: names are compared by their beginning. */
        if (!*text || strpbrk(text, "=,?[ ") || (text[len] && text[len + 1]))
                return err_set(err, EINVAL,
                               "needs one NAME, or NAME* for all that begin so, got `%s`", text);
        return value_list(field, def, text, err);
}

OPTION_PARSER(value_bind)
{
        struct bind_policy p;

        /* Only the form is checked, and the text kept. "?" is no policy, so the
         * message lists the forms. */
        if (bind_policy_parse(&p, *text ? text : "?", err) < 0)
                return -EINVAL;
        bind_policy_finish(&p);
        return value_text(field, def, text, err);
}

/* A command as one text, split as by a shell without expansion; the last one
 * given replaces others. */
OPTION_PARSER(value_words)
{
        struct strv words = STRV_INIT;
        struct error why;

        if (shell_words_split(text, &words, &why) < 0) {
                strv_finish(&words);
                return err_set(err, EINVAL, "needs %s: %s", value_noun(def), why.text);
        }
        strv_finish(field);
        *(struct strv *)field = words;
        return 0;
}

OPTION_PARSER(value_container)
{
        struct container_order o = { 0 }, *to = field;
        struct error why;

        (void)def;
        /* "none" is for a line that undoes a configuration. */
        if (strcmp(text, "none") != 0 && container_order_parse(&o, text, &why) < 0)
                return err_set(err, EINVAL, "needs KIND:IMAGE, or exec:CONTAINER: %s", why.text);
        to->kind = o.kind;
        replace_text(&to->name, o.name);
        return 0;
}

OPTION_PARSER(value_switch)
{
        static const struct {
                const char *word;
                bool value;
        } words[] = { { "", true },       { "yes", true },  { "true", true },
                      { "on", true },     { "1", true },    { "no", false },
                      { "false", false }, { "off", false }, { "0", false } };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (!strcasecmp(text, words[i].word)) {
                        *(bool *)field = words[i].value;
                        return 0;
                }
        return err_set(err, EINVAL,
                       def->key ? "must be yes or no, got `%s`" : "takes no value, got `%s`", text);
}

/* Returns the position of @text in "a|b|c", or -1. */
static int choice_index(const char *choices, const char *text)
{
        size_t len = strlen(text);
        int i = 0;

        for (const char *c = choices; *c; i++) {
                size_t n = strcspn(c, "|");

                if (n == len && !strncmp(c, text, n))
                        return i;
                c += n + (c[n] == '|');
        }
        return -1;
}

/* The words of the option's ARG stand in the order of an enum: the place is the value. */
OPTION_PARSER(value_choice)
{
        int i = choice_index(def->arg, text);

        if (i < 0)
                return err_set(err, EINVAL, "must be one of %s, got `%s`", def->arg, text);
        *(unsigned *)field = (unsigned)i; /* gcc's enums without negative members */
        return 0;
}

OPTION_PARSER(value_preflight)
{
        return value_choice(field, def, *text ? text : "1", err);
}

OPTION_PARSER(value_choice_bool)
{
        unsigned choice;
        int r = value_choice(&choice, def, text, err);

        if (r == 0)
                *(bool *)field = choice == 1;
        return r;
}

/* Reads decimal digits and nothing else: strtol() would take blanks and signs as well. False: no
 * number, or out of bounds, and *ret is unchanged. */
static bool read_decimal(const char *text, long min, long max, int *ret)
{
        char *end;
        long n;

        if (!isdigit((unsigned char)*text))
                return false;
        errno = 0;
        n = strtol(text, &end, 10);
        if (errno || *end || n < min || n > max)
                return false;
        *ret = (int)n;
        return true;
}

OPTION_PARSER(value_number)
{
        if (!read_decimal(text, def->min, def->max, field))
                return err_set(err, EINVAL, "must be %ld to %ld, got `%s`", def->min, def->max,
                               text);
        return 0;
}

OPTION_PARSER(value_nodes)
{
        struct options *o = container_of((int *)field, struct options, nodes);
        CLEANUP(free_textp) char *copy = xstrdup(text);
        char *most = copy, *least = strsep(&most, ":");
        int min = 0, max;

        if ((most && !read_decimal(least, def->min, def->max, &min)) ||
            !read_decimal(most ? most : least, MAX(def->min, (long)min), def->max, &max))
                return err_set(err, EINVAL, "must be %ld to %ld, or MIN:MAX, got `%s`", def->min,
                               def->max, text);
        o->nodes = max;
        o->nodes_min = min;
        return 0;
}

OPTION_PARSER(value_spares)
{
        if (!strcmp(text, "auto"))
                *(int *)field = SPARES_AUTO;
        else if (!read_decimal(text, def->min, def->max, field))
                return err_set(err, EINVAL, "must be %ld to %ld, or auto, got `%s`", def->min,
                               def->max, text);
        return 0;
}

OPTION_PARSER(value_ppn)
{
        if (!strcmp(text, "gpu"))
                *(int *)field = PLAN_PPN_GPU;
        else if (!strcmp(text, "cpu"))
                *(int *)field = PLAN_PPN_CPU;
        else if (!read_decimal(text, def->min, def->max, field))
                return err_set(err, EINVAL, "must be %ld to %ld, gpu or cpu, got `%s`", def->min,
                               def->max, text);
        return 0;
}

OPTION_PARSER(value_local)
{
        struct options *o = container_of((int *)field, struct options, local_n);
        int r = *text ? value_number(field, def, text, err) : 0;

        if (r < 0)
                return r;
        if (!*text)
                o->local_n = 0;
        /* --local without a number: one rank for each GPU or core, as the agent finds. */
        o->local = o->plan.local = true;
        return 0;
}

OPTION_PARSER(value_pty)
{
        int *rank = field;

        if (*text && strcmp(text, "none") != 0)
                return value_number(field, def, text, err);
        *rank = *text ? PTY_NONE : PTY_FIRST;
        return 0;
}

/* Reads digits and a unit as milliseconds; without a unit the number is seconds. -EINVAL: no time,
 * or out of bounds. */
static int read_span(int64_t *ret, const char *text, int64_t min, int64_t max)
{
        static const struct {
                const char *name;
                int64_t ms;
        } units[] = { { "", 1000 },       { "s", 1000 },        { "ms", 1 },
                      { "m", 60 * 1000 }, { "h", 3600 * 1000 }, { "d", 24 * 3600 * 1000 } };
        char *end;
        long long n;

        if (!isdigit((unsigned char)*text))
                return -EINVAL;
        errno = 0;
        n = strtoll(text, &end, 10);
        for (size_t i = 0; i < ARRAY_SIZE(units) && !errno; i++)
                /* The division keeps the product from an overflow. */
                if (!strcmp(units[i].name, end) && n <= max / units[i].ms &&
                    n * units[i].ms >= min) {
                        *ret = n * units[i].ms;
                        return 0;
                }
        return -EINVAL;
}

/* Refuses a time with the bounds of the option. @word is the word that is allowed beside times. */
static int refuse_span(const struct option_def *def, const char *text, int64_t most_days,
                       const char *word, struct error *err)
{
        bool whole = def->min % 1000 == 0;

        return err_set(
                err, EINVAL,
                "must be a time from %ld%s to %" PRId64 "d, such as 10s, 2m or 1h%s, got `%s`",
                whole ? def->min / 1000 : def->min, whole ? "s" : "ms", most_days, word, text);
}

/* Goes to fields of int milliseconds further on. */
OPTION_PARSER(value_span)
{
        if (read_span(field, text, def->min, SPAN_DAYS * DAY_MS) < 0)
                return refuse_span(def, text, SPAN_DAYS, "", err);
        return 0;
}

OPTION_PARSER(value_limit)
{
        if (!strcmp(text, "never"))
                *(int64_t *)field = DURATION_NEVER;
        else if (read_span(field, text, def->min, LIMIT_DAYS * DAY_MS) < 0)
                return refuse_span(def, text, LIMIT_DAYS, ", or never", err);
        return 0;
}

int signal_number(const char *text)
{
        char *end;
        long n = strtol(text, &end, 10);

        if (*text && !*end)
                return n > 0 && n < NSIG ? (int)n : 0;
        /* USR1 and SIGUSR1, in any case of letters. */
        text += !strncasecmp(text, "SIG", 3) ? 3 : 0;
        for (int i = 1; i < NSIG; i++)
                if (sigabbrev_np(i) && !strcasecmp(text, sigabbrev_np(i)))
                        return i;
        return 0;
}

OPTION_PARSER(value_signal)
{
        int signo = signal_number(text);

        if (!signo)
                return err_set(err, EINVAL, "needs %s of kill -l, for example USR1, not `%s`",
                               value_noun(def), text);
        *(int *)field = signo;
        return 0;
}

/* Reads "1m07.5s", as the report writes times. At least a microsecond, since 0 is none. */
static int read_moment(int64_t *ret, const char *text)
{
        static const struct {
                const char *name;
                double us;
        } units[] = {
                { "ms", 1e3 }, { "s", 1e6 }, { "m", 60e6 }, { "h", 3600e6 }, { "d", 86400e6 }
        };
        double sum = 0;

        do {
                size_t unit = 0, len = strspn(text, "0123456789.");
                char *end;
                double n = strtod(text, &end);

                if (!len || end != text + len)
                        return -EINVAL;
                while (unit < ARRAY_SIZE(units) &&
                       strncmp(end, units[unit].name, strlen(units[unit].name)) != 0)
                        unit++;
                /* "ms" stands before "m" in the table, as the first match counts. */
                if (unit == ARRAY_SIZE(units) || n * units[unit].us > (double)LIMIT_DAYS * 86400e6)
                        return -EINVAL;
                sum += n * units[unit].us;
                text = end + strlen(units[unit].name);
        } while (*text);
        *ret = MAX((int64_t)sum, INT64_C(1));
        return 0;
}

OPTION_PARSER(value_moment)
{
        (void)def;
        if (!strcmp(text, "failure"))
                *(int64_t *)field = LOGS_FAILURE;
        else if (read_moment(field, text) < 0)
                return err_set(
                        err, EINVAL,
                        "must be `failure`, or a time of the run such as 7.5s or 1m07s, up to "
                        "%" PRId64 "d, got `%s`",
                        LIMIT_DAYS, text);
        return 0;
}

OPTION_PARSER(value_size)
{
        static const char units[] = "KMGT";
        const char *unit, *rest = text + strspn(text, "0123456789");
        long long n = 0;
        int shift = 0;

        /* More digits leave 0, which is below the least size of an option. */
        if (rest > text && rest - text <= 16)
                n = strtoll(text, NULL, 10);
        unit = *rest ? strchr(units, toupper((unsigned char)*rest)) : NULL;
        if (unit) {
                shift = 10 * (int)(unit - units + 1);
                rest++;
        }
        /* Shifted to the right first, so that nothing overflows. */
        if (*rest || n > SIZE_MOST >> shift || n << shift < def->min)
                return err_set(err, EINVAL,
                               "must be a size from %ldM to %" PRId64
                               "T, such as 512M or 2G, got `%s`",
                               def->min >> 20, SIZE_MOST >> 40, text);
        *(int64_t *)field = n << shift;
        return 0;
}

OPTION_PARSER(value_json)
{
        struct options *o = container_of((char **)field, struct options, json_file);

        (void)def;
        (void)err; /* there is no wrong name */
        o->json = true;
        /* NULL is standard output. */
        replace_text(&o->json_file, *text && strcmp(text, "-") ? xstrdup(text) : NULL);
        return 0;
}

OPTION_PARSER(value_stdin)
{
        struct options *o = container_of((enum stdin_mode *)field, struct options, stdin_mode);
        /* In the order of enum stdin_mode; any other text is a file. */
        int i = choice_index("auto|none|0|all", text);

        if (!*text)
                return err_set(err, EINVAL, "needs %s", value_noun(def));
        o->stdin_mode = i < 0 ? STDIN_FILE : (enum stdin_mode)i;
        replace_text(&o->stdin_file, i < 0 ? xstrdup(text) : NULL);
        return 0;
}

OPTION_PARSER(value_label)
{
        struct options *o = container_of((enum label_mode *)field, struct options, label);
        int i = choice_index("auto|none", text);
        /* label_bad_field() moves @bad to the first unknown field. */
        const char *bad = text;
        size_t len = label_bad_field(&bad);

        if (len)
                return err_set(err, EINVAL,
                               "has no field `%.*s`; fields are {host} {rank} {local_rank} "
                               "{node_rank} {num_nodes} {master_addr} {master_port} {port:NAME} "
                               "{stream}",
                               (int)len, bad);
        if (i < 0 && !*text)
                return err_set(err, EINVAL, "needs %s", value_noun(def));
        o->label = i < 0 ? LABEL_TEMPLATE : (enum label_mode)i;
        replace_text(&o->label_template, i < 0 ? xstrdup(text) : NULL);
        return 0;
}

/* Reads a list of ranks into the empty @list. 0, or -EINVAL with the place of the mistake. */
static int check_rank_list(const char *text, struct intlist *list, struct error *err)
{
        struct range_error e;

        if (range_numbers(text, strlen(text), MAX_RANK, list, &e) < 0)
                return err_set(err, EINVAL, "needs ranks such as 0,8-15, got `%s`: %s", text,
                               e.text);
        return 0;
}

/* The text is kept: the number of ranks is not known yet. */
OPTION_PARSER(value_show)
{
        struct intlist ranks = { 0 };
        int r = strcmp(text, "all") ? check_rank_list(text, &ranks, err) : 0;

        intlist_finish(&ranks);
        return r < 0 ? r : value_text(field, def, text, err);
}

/* ALL alone is the default, NULL. A list is kept as it is, and read when the
 * environment is collected. */
OPTION_PARSER(value_export)
{
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        bool all;

        (void)def;
        if (export_env_split(text, &words, err) < 0)
                return -EINVAL;
        all = words.n == 1 && !strcmp(words.v[0], "ALL");
        replace_text(field, all ? NULL : xstrdup(strcasecmp(text, "none") ? text : "NONE"));
        return 0;
}

OPTION_PARSER(value_ranks)
{
        struct intlist ranks = { 0 };

        (void)def;
        if (check_rank_list(text, &ranks, err) < 0)
                return -EINVAL;
        intlist_finish(field);
        *(struct intlist *)field = ranks;
        return 0;
}

/* -v and -vv: each adds one. A number, as in a configuration, sets the level. */
OPTION_PARSER(value_more)
{
        if (*text)
                return value_number(field, def, text, err);
        ++*(int *)field;
        return 0;
}
