/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word is resolved to a struct subject: an entry of one of the two lists of
 * head/term/error_ids.h, with the exit code of the word, because a single entry stands for 128 + N.
 * Texts are printed by explain_put_wrapped(), which breaks lines at blanks and indents the
 * following lines.
 */
#include "head/options/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/core/json_text.h"
#include "head/model/outcome.h"
#include "head/model/restart_rule.h"
#include "head/term/columns.h"
#include "head/term/error_ids.h"

/* Prose beyond COLUMNS_MAX is hard to read on a wide terminal. */
enum { NEAR_MAX = 3, COLUMNS_MIN = 20, COLUMNS_MAX = 100 };

struct subject {
        const struct error_id *id; /* NULL = no entry */
        int code;                  /* the exit code, -1 = an error number */
};

/* ---- words ---- */

/* Reads up to five digits; -1 when @text is anything else. */
static int read_digits(const char *text)
{
        size_t len = strlen(text);

        return len && len <= 5 && strspn(text, "0123456789") == len ? atoi(text) : -1;
}

/* Returns the error number of "HN502" and "502", or -1. */
static int error_number(const char *word)
{
        bool prefixed = !strncasecmp(word, "HN", 2);
        int number = read_digits(prefixed ? word + 2 : word);

        /* No exit code is above 255, so a larger number needs no HN in front. */
        return prefixed || number > EXIT_MAX ? number : -1;
}

/* Finds what a word means: an error number or an exit code. The id is NULL for a number without an
 * entry and for any other word. */
static struct subject find_subject(const char *word)
{
        int number = error_number(word), code = read_digits(word);

        if (number >= 0)
                return (struct subject){ error_id_find(number), -1 };
        return (struct subject){ exit_id_find(code), code };
}

/* The table of decisions of --restart auto. */
static bool is_restart(const char *word)
{
        return !strcmp(word, "restart");
}

/* Names the numbers of the same hundred closest to @number; "" = none. */
static void find_near(int number, char *ret, size_t size)
{
        size_t used = 0;

        *ret = '\0';
        /* From the closest on, below and above in turn. */
        for (int off = 1, found = 0; off < 100; off++)
                for (int near = number - off; near <= number + off; near += 2 * off) {
                        if (near / 100 != number / 100 || !error_id_find(near) || found == NEAR_MAX)
                                continue;
                        used += (size_t)snprintf(ret + used, size - used, "%sHN%d",
                                                 found++ ? ", " : "", near);
                }
}

int explain_check(const struct strv *words, struct diags *d)
{
        int r = 0;

        for (size_t i = 0; i < words->n; i++) {
                const char *word = words->v[i];
                struct diag *diag;
                char near[32];

                if (is_restart(word) || find_subject(word).id)
                        continue;
                diag = diag_add(d, HN_NO_NUMBER, EX_USAGE, "there is no error or exit code `%s`",
                                word);
                find_near(error_number(word), near, sizeof(near));
                if (*near)
                        diag_help(diag, "numbers near it: %s", near);
                diag_help(diag, "hnlaunch explain lists all; HN502 is an error number, 77 an exit "
                                "code; hnlaunch explain restart prints the decisions of "
                                "--restart auto");
                r = -EINVAL;
        }
        return r;
}

/* ---- text ---- */

void explain_put_folded(size_t columns, size_t at, size_t indent, const char *text)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        columns_fold(&b, text, columns, at, indent);
        buf_appends(&b, "\n");
        fwrite(buf_data(&b), 1, buf_len(&b), stdout);
}

void explain_put_wrapped(size_t columns, size_t indent, const char *text)
{
        explain_put_folded(columns, indent, indent, text);
}

/* Returns the name of an entry of the list of exit codes: a number, or the words of a range. */
static const char *exit_name(int number, char *ret, size_t size)
{
        if (number == EXIT_SIGNAL)
                return "128+N";
        if (number == EXIT_OF_RANK)
                return "other";
        snprintf(ret, size, "%d", number);
        return ret;
}

/* Prints the code and meaning of each exit code behind @indent blanks. */
static void put_exits(size_t columns, size_t indent)
{
        char name[16];

        for (size_t i = 0; i < exit_id_count; i++) {
                printf("%*s  ", (int)indent + 5, exit_name(exit_ids[i].number, name, sizeof(name)));
                explain_put_wrapped(columns, indent + 7, exit_ids[i].meaning);
        }
}

/* Prints an entry: the name with the meaning, then cause and remedy. */
static void put_subject(size_t columns, const struct subject *s)
{
        char title[64];

        if (s->code < 0)
                snprintf(title, sizeof(title), "HN%d: ", s->id->number);
        else if (s->id->number == EXIT_SIGNAL)
                snprintf(title, sizeof(title), "exit code %d (128 + %s): ", s->code,
                         outcome_signal_name(s->code - EXIT_SIGNAL));
        else
                snprintf(title, sizeof(title), "exit code %d: ", s->code);
        fputs(title, stdout);
        explain_put_wrapped(columns, strlen(title), s->id->meaning);
        fputs("\n  cause:  ", stdout);
        explain_put_wrapped(columns, 10, s->id->cause);
        fputs("  remedy: ", stdout);
        explain_put_wrapped(columns, 10, s->id->remedy);
        /* 123 is an exit code and the number HN123. */
        if (s->code >= 0 && error_id_find(s->code))
                printf("\nHN%d is another number: hnlaunch explain HN%d\n", s->code, s->code);
}

/* Prints the table of decisions of --restart auto. */
static void put_restart_rules(size_t columns)
{
        fputs("restart: ", stdout);
        explain_put_wrapped(columns, 9,
                            "what follows a failure with --restart auto; the first row that fits "
                            "decides, and only attempts without progress count but where a row "
                            "speaks of progress");
        for (size_t i = 0; i < restart_rule_count; i++) {
                fputs("\n  seen:     ", stdout);
                explain_put_wrapped(columns, 12, restart_rules[i].seen);
                fputs("  decision: ", stdout);
                explain_put_wrapped(columns, 12, restart_rules[i].decision);
        }
}

/* Prints all error numbers below the titles of their hundreds, then the exit codes. */
static void put_number_list(size_t columns)
{
        const char *title = NULL;

        explain_put_wrapped(columns, 0, "hnlaunch explain NUMBER... prints causes and remedies.");
        for (size_t i = 0; i < error_id_count; i++) {
                const char *next = error_ids_title(error_ids[i].number);

                if (next != title)
                        printf("\n%s\n", next);
                title = next;
                printf("  HN%d  ", error_ids[i].number);
                explain_put_wrapped(columns, 9, error_ids[i].meaning);
        }
        puts("\nExit codes");
        put_exits(columns, 2);
}

/* Returns how wide lines may be: as the terminal, or 80 columns, within readable bounds. */
static size_t explain_columns(void)
{
        return MIN(MAX(columns_of_terminal(STDOUT_FILENO), (size_t)COLUMNS_MIN),
                   (size_t)COLUMNS_MAX);
}

void explain_print_exits(void)
{
        put_exits(explain_columns(), 0);
}

/* ---- for programs ---- */

/* Prints a line with tabs between fields; texts of the table have no tabs. */
static void put_row(const char *kind, const char *name, const struct error_id *id,
                    const char *title)
{
        printf("%s\t%s\t%s\t%s\t%s\t%s\n", kind, name, id->meaning, id->cause, id->remedy, title);
}

void explain_print_table(void)
{
        char name[16];

        for (size_t i = 0; i < error_id_count; i++) {
                snprintf(name, sizeof(name), "HN%d", error_ids[i].number);
                put_row("error", name, &error_ids[i], error_ids_title(error_ids[i].number));
        }
        for (size_t i = 0; i < exit_id_count; i++)
                put_row("exit", exit_name(exit_ids[i].number, name, sizeof(name)), &exit_ids[i],
                        "");
}

static void add_json(json_t *list, const char *key, json_t *name, const struct error_id *id)
{
        json_t *one = json_object();

        json_object_set_new(one, key, name);
        json_object_set_new(one, "meaning", json_text(id->meaning));
        json_object_set_new(one, "cause", json_text(id->cause));
        json_object_set_new(one, "remedy", json_text(id->remedy));
        json_array_append_new(list, one);
}

static void add_error_json(json_t *errors, const struct error_id *id)
{
        char name[16];

        snprintf(name, sizeof(name), "HN%d", id->number);
        add_json(errors, "hn", json_string(name), id);
}

static json_t *make_restart_json(void)
{
        json_t *rules = json_array();

        for (size_t i = 0; i < restart_rule_count; i++)
                json_array_append_new(rules, json_pack("{s:s, s:s}", "seen", restart_rules[i].seen,
                                                       "decision", restart_rules[i].decision));
        return rules;
}

/* Prints the entries of the words as JSON, or all entries without words. explain_check() has
 * refused other words before. */
static void print_json(const struct strv *words)
{
        json_t *all = json_pack("{s:i}", "v", 1), *errors = json_array(), *exits = json_array();

        for (size_t i = 0; i < words->n; i++) {
                struct subject s = find_subject(words->v[i]);

                if (is_restart(words->v[i]))
                        json_object_set_new(all, "restart", make_restart_json());
                else if (s.code < 0)
                        add_error_json(errors, s.id);
                else
                        add_json(exits, "code", json_integer(s.code), s.id);
        }
        for (size_t i = 0; !words->n && i < error_id_count; i++)
                add_error_json(errors, &error_ids[i]);
        for (size_t i = 0; !words->n && i < exit_id_count; i++) {
                int code = exit_ids[i].number;

                add_json(exits, "code", code == EXIT_OF_RANK ? json_null() : json_integer(code),
                         &exit_ids[i]);
        }
        json_object_set_new(all, "errors", errors);
        json_object_set_new(all, "exits", exits);
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(all);
}

void explain_print(const struct strv *words, bool json)
{
        size_t columns = explain_columns();

        if (json) {
                print_json(words);
                return;
        }
        if (!words->n)
                put_number_list(columns);
        for (size_t i = 0; i < words->n; i++) {
                struct subject s = find_subject(words->v[i]);

                if (i)
                        putchar('\n');
                if (is_restart(words->v[i]))
                        put_restart_rules(columns);
                else
                        put_subject(columns, &s);
        }
}
