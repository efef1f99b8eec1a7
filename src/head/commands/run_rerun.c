/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded line is read as a command line again, so that each of its options is known with its
 * words. An option of rerun replaces the recorded ones as the command line replaces a configuration
 * file (settings_level()): lists that gather, such as -x, grow, and one of -H, -w and --local
 * replaces them all. Kept words stand as they were; the options of rerun follow them, in front of
 * the program. Paths among these start in the present folder, which is left for that of the run.
 */
#include "head/commands/run_rerun.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/core/shell_words.h"
#include "head/options/command_line.h"
#include "head/options/config.h"
#include "head/options/option_foreign.h"
#include "head/record/story.h"

/* --- bad hosts -------------------------------------------------------------------------------- */

/* Adds a host, unless it is there. */
static void add_bad_host(struct strv *to, const char *host)
{
        if (*host && !strv_has(to, host))
                strv_push(to, host);
}

/* Whether an event tells that its host is bad. A node that was not tried, since its parent in the
 * tree could not be reached, is not. */
static bool is_of_bad_host(const json_t *event)
{
        const char *ev = json_member(event, "ev"), *text = json_member(event, "text");

        return !strcmp(ev, "node.retired") || !strcmp(ev, "node.drained") ||
               !strcmp(ev, "node.replaced") ||
               (!strcmp(ev, "node.failed") && strncmp(text, "not tried:", 10) != 0);
}

/* Collects the hosts that the run could not use or has put out or lost. Without decisions about
 * hosts (--restart auto) the host of the cause is one of them. */
static void find_bad_of(const struct run *r, struct strv *to)
{
        struct story s;
        struct error err;
        const json_t *j;
        size_t i;

        if (!json_object_get(r->summary, "attempts"))
                add_bad_host(to, json_member(r->summary, "host"));
        if (story_load(&s, r->id, &err) == 0) {
                json_array_foreach(s.events, i, j) if (is_of_bad_host(j))
                        add_bad_host(to, json_member(j, "host"));
                json_array_foreach(s.failures, i, j) if (!json_object_get(j, "rank") &&
                                                         !json_is_true(json_object_get(j, "echo")))
                        add_bad_host(to, json_member(j, "host"));
        }
        story_finish(&s);
}

/* --- the line --------------------------------------------------------------------------------- */

/* The words of the new line, and the same without secrets. */
struct new_line {
        struct strv argv, shown;
};

static void put_word(struct new_line *l, const char *word)
{
        strv_push(&l->argv, word);
        strv_push(&l->shown, word);
}

/* Spells a setting of a command line, with a @value, perhaps resolved. The form depends on the
 * option: a letter, a name, or "-o KEY=" for a key without an option or a value of -o. */
static void put_setting(struct new_line *l, const struct setting *one, const char *value)
{
        const struct option_def *def = one->def;
        const char *seen = *value && !strcmp(value, one->value) ? setting_shown(one) : value;
        const bool by_key =
                def->letter != 'x' && (def->flags & OPTION_KEY || !strncmp(one->origin, "-o ", 3));
        CLEANUP(free_textp)
        char *name = by_key        ? xasprintf("%s=", def->key)
                     : def->letter ? xasprintf("-%c", def->letter)
                                   : xasprintf("--%s", def->name);

        if (by_key)
                put_word(l, "-o");
        /* A value that may be missing must stand in the same word. */
        if (by_key || (*value && def->flags & OPTION_OPTIONAL)) {
                strv_pushf(&l->argv, by_key ? "%s%s" : "%s=%s", name, value);
                strv_pushf(&l->shown, by_key ? "%s%s" : "%s=%s", name, seen);
                return;
        }
        put_word(l, name);
        if (def->arg && !(def->flags & OPTION_OPTIONAL)) {
                strv_push(&l->argv, value);
                strv_push(&l->shown, seen);
        }
}

/* Puts the options that rerun was given for the run. */
static void put_given(struct new_line *l, const struct options *o, const char *here)
{
        for (size_t i = 0; i < o->settings->n; i++) {
                const struct setting *one = &o->settings->v[i];
                CLEANUP(free_textp)
                /* UINT_MAX: a path of any kind. @here is NULL when the folder stays the same. */
                char *value = config_resolve(one->def, UINT_MAX, here, one->value);

                if (one->level == LEVEL_LINE && option_is_passed_on(one->def))
                        put_setting(l, one, value);
        }
}

/* Whether an option of rerun replaces a recorded one. */
static bool is_replaced(const struct options *o, const struct setting *old)
{
        return !(old->def->flags & OPTION_GATHER) &&
               settings_level(o->settings, old->def) == LEVEL_LINE;
}

/* Puts the kept part of the words at @i, the first of an option or another. Returns how many
 * words these are. Several options may share a word, as -qv: if any option is replaced, the
 * others are spelled anew. */
static size_t put_kept(struct new_line *l, const struct options *o, const struct options *was,
                       size_t i)
{
        const struct settings *s = was->settings;
        size_t after = i + 1;
        bool whole = true;

        for (size_t k = 0; k < s->n; k++)
                if (s->v[k].first == i && s->v[k].after > i) {
                        after = s->v[k].after;
                        whole &= !is_replaced(o, &s->v[k]);
                }
        for (size_t k = i; k < after && whole; k++)
                put_word(l, was->line.v[k]);
        for (size_t k = 0; k < s->n && !whole; k++)
                if (s->v[k].first == i && s->v[k].after > i && !is_replaced(o, &s->v[k]))
                        put_setting(l, &s->v[k], s->v[k].value);
        return after - i;
}

/* Puts the whole line: first the bad hosts, then the kept options, the options of rerun, and the
 * program with arguments. Words of the program are never read as options. */
static void put_line(struct new_line *l, const struct options *o, const struct options *was,
                     const struct strv *bad, const char *here)
{
        size_t n = was->line.n, i = was->run_given;
        /* The end of the options of the first program; the options of further
         * programs stay with these. */
        size_t last = n - (was->n_more ? was->line_argv : was->argv.n);

        /* "--" belongs to the program: options of rerun go in front of it. */
        if (last && !strcmp(was->line.v[last - 1], "--"))
                last--;
        put_word(l, "hnlaunch");
        if (was->run_given)
                put_word(l, "run");
        for (size_t k = 0; k < bad->n; k++) {
                CLEANUP(free_textp) char *assignment = xasprintf("run.leave_out=%s", bad->v[k]);

                put_word(l, "-o");
                put_word(l, assignment);
        }
        while (i < last)
                i += put_kept(l, o, was, i);
        put_given(l, o, here);
        for (; i < n; i++)
                put_word(l, was->line.v[i]);
}

/* Reads a recorded line as command_line_read() does, without the configuration: only words of the
 * line are kept, and the new hnlaunch reads the files itself. 0, or the exit code. */
static int read_recorded(struct options *was, const json_t *line, struct diags *d)
{
        bool ignored[OPTION_FOREIGN_MAX] = { false };
        CLEANUP(strv_finish) struct strv argv = STRV_INIT;
        const json_t *word;
        size_t i;

        was->settings = xcalloc(1, sizeof(*was->settings));
        strv_push(&argv, "hnlaunch");
        json_array_foreach(line, i, word)
                strv_push(&argv, json_is_string(word) ? json_string_value(word) : "");
        return command_line_read(was, (int)argv.n, argv.v, ignored, d);
}

/* Prints the new line, and starts it. Returns after an error only. */
static void start_line(const struct options *o, const struct new_line *l, const char *directory)
{
        CLEANUP(buf_finish) struct buf shown = BUF_INIT;
        CLEANUP(free_textp) char *quoted = shell_words_join(&l->shown);

        printable_put(&shown, directory, strlen(directory));
        buf_appends(&shown, ": ");
        printable_put(&shown, quoted, strlen(quoted));
        if (!o->quiet)
                fprintf(stderr, "hnlaunch: once more, in %.*s\n", (int)buf_len(&shown),
                        (const char *)buf_data(&shown));
        /* The present program, whatever PATH would find. */
        execv("/proc/self/exe", l->argv.v);
}

int run_rerun_start(const struct options *o, const struct run *r, struct diags *d)
{
        const char *directory = json_member(r->info, "directory");
        const json_t *line = json_object_get(r->info, "line");
        CLEANUP(strv_finish) struct strv bad = STRV_INIT;
        CLEANUP(free_textp) char *here = getcwd(NULL, 0);
        struct new_line l = { STRV_INIT, STRV_INIT };
        struct options was = { 0 };
        int rc = EX_USAGE;

        if (!json_array_size(line)) {
                diag_add(d, HN_NO_RERUN, EX_NOINPUT, "the records of run %s have no command line",
                         r->id);
                return EX_NOINPUT;
        }
        if (o->without_bad)
                find_bad_of(r, &bad);
        if (o->without_bad && !bad.n) {
                diag_add(d, HN_NO_RERUN, EX_NOINPUT, "no host of run %s is known to have failed",
                         r->id);
                return EX_NOINPUT;
        }
        /* Paths need no change when the folder is the same, and stay readable. */
        if (here && !strcmp(here, directory)) {
                free(here);
                here = NULL;
        }
        if (chdir(directory) < 0) {
                diag_add(d, HN_NO_RERUN, EX_NOINPUT,
                         "cannot go to %s, where run %s was started: %s", directory, r->id,
                         strerror(errno));
                return EX_NOINPUT;
        }
        if (read_recorded(&was, line, d) == 0) {
                put_line(&l, o, &was, &bad, here);
                start_line(o, &l, directory);
                rc = EX_FAILED;
                diag_add(d, HN_NO_RERUN, rc, "cannot start hnlaunch: %s", strerror(errno));
        }
        options_finish(&was);
        strv_finish(&l.argv);
        strv_finish(&l.shown);
        return rc;
}
