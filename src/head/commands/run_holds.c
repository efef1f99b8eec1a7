/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold is asked through its socket; one that does not answer within HOLD_ANSWER_MS has no name,
 * and is told with its process. A hold that a run uses ends when the run has ended.
 */
#include "head/commands/run_holds.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/strv.h"
#include "head/core/json_text.h"
#include "head/hold/hold_socket.h"
#include "head/hosts/hosts.h"
#include "head/output/text_table.h"
#include "head/term/columns.h"

enum hold_column {
        HOLD_ID,
        HOLD_AGE,
        HOLD_NODES,
        HOLD_MEMORY,
        HOLD_STATE,
        HOLD_HOSTS,
        HOLD_COLUMNS
};

static const struct text_column hold_columns[HOLD_COLUMNS] = {
        [HOLD_ID] = { "HOLD", 0, 0, 0 },
        [HOLD_AGE] = { "AGE", TEXT_RIGHT, 2, 0 },
        [HOLD_NODES] = { "NODES", TEXT_RIGHT, 3, 0 },
        [HOLD_MEMORY] = { "MEMORY", TEXT_RIGHT, 1, 0 },
        [HOLD_STATE] = { "STATE", 0, 0, 8 },
        [HOLD_HOSTS] = { "HOSTS", TEXT_TRUNCATE, 0, 16 },
};

static json_int_t age_of(const json_t *hold)
{
        return json_integer_value(json_object_get(hold, "us"));
}

/* Adds that the hold at @path does not answer, with @warns as a warning. @word, if any, may be its
 * name. False: it is not there any more. */
static bool tell_silent(struct diags *d, const char *path, bool warns, const char *word)
{
        struct error err;
        struct diag *di;
        const char *help;

        if (hold_socket_tell_silent(path, &err) == 0)
                return false;
        help = err_cut_help(&err);
        di = warns ? diag_warn(d, HN_HOLD_SILENT, "%s", err.text)
                   : diag_add(d, HN_HOLD_SILENT, EX_UNAVAILABLE, "%s", err.text);
        if (word)
                diag_note(di, "it may be hold %s, and no other hold has this name", word);
        if (help)
                diag_help(di, "%s", help);
        return true;
}

json_t *run_holds_list(struct diags *d)
{
        CLEANUP(strv_finish) struct strv paths = STRV_INIT;
        json_t *holds = json_array(), **answers;

        hold_socket_list(&paths);
        answers = hold_socket_describe(&paths);
        for (size_t i = 0; i < paths.n; i++) {
                json_t *hold = answers[i];
                size_t at = 0;

                if (!hold) {
                        tell_silent(d, paths.v[i], true, NULL);
                        continue;
                }
                while (at < json_array_size(holds) &&
                       age_of(json_array_get(holds, at)) >= age_of(hold))
                        at++;
                /* What a run compares is of no use to a reader. */
                json_object_del(hold, "settings");
                json_array_insert_new(holds, at, hold);
        }
        free(answers);
        return holds;
}

/* "used by k3f9q", "ends in 12m" */
static char *describe_hold_state(const json_t *hold)
{
        const json_t *runs = json_object_get(hold, "used_by");
        json_int_t left_ms = json_integer_value(json_object_get(hold, "idle_left_ms"));
        bool released = json_is_true(json_object_get(hold, "released"));
        struct buf b = BUF_INIT;
        const json_t *run;
        char span[32];
        size_t i;

        json_array_foreach(runs, i, run)
                buf_printf(&b, "%s%s", i ? ", " : "used by ", json_string_value(run));
        if (json_array_size(runs)) {
                buf_appends(&b, released ? ", then ends" : "");
        } else if (left_ms >= 0) {
                format_duration(span, sizeof(span), left_ms * 1000);
                buf_printf(&b, "ends in %s", span);
        } else {
                buf_appends(&b, "waits for runs");
        }
        return buf_steal(&b);
}

/* Returns the names of the hosts, folded, malloc'ed. */
static char *fold_held_hosts(const json_t *names)
{
        size_t n = json_array_size(names), *all = xcalloc(n + 1, sizeof(*all));
        struct host *v = xcalloc(n + 1, sizeof(*v));
        char *text;

        for (size_t i = 0; i < n; i++) {
                const char *name = json_string_value(json_array_get(names, i));

                v[i].name = (char *)(name ? name : "?");
                all[i] = i;
        }
        text = n ? hosts_fold(&(struct hosts){ .v = v, .n = n }, all, n) : xstrdup("");
        free(v);
        free(all);
        return text;
}

char *run_holds_table(const json_t *holds)
{
        CLEANUP(text_table_finish)
        struct text_table t = { .columns = hold_columns,
                                .n_columns = HOLD_COLUMNS,
                                .width = isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO)
                                                               : 0 };
        const json_t *hold;
        size_t i;

        json_array_foreach(holds, i, hold)
        {
                const json_t *hosts = json_object_get(hold, "hosts");
                size_t n = json_array_size(hosts);
                json_int_t ready = json_integer_value(json_object_get(hold, "nodes_ready"));
                char **cells = text_table_add(&t), span[32], memory[32];

                format_duration(span, sizeof(span), age_of(hold));
                format_size(memory, sizeof(memory),
                            (uint64_t)json_integer_value(json_object_get(hold, "memory")));
                cells[HOLD_ID] = xstrdup(json_member(hold, "hold"));
                cells[HOLD_AGE] = xstrdup(span);
                cells[HOLD_NODES] = (size_t)ready == n
                                            ? xasprintf("%zu", n)
                                            : xasprintf("%lld of %zu", (long long)ready, n);
                cells[HOLD_MEMORY] = xstrdup(memory);
                cells[HOLD_STATE] = describe_hold_state(hold);
                cells[HOLD_HOSTS] = fold_held_hosts(hosts);
        }
        return text_table_format(&t);
}

/* --- release ---------------------------------------------------------------------------------- */

/* The holds of this machine, by their sockets. */
struct holds_here {
        struct strv ids, paths; /* of those that answer */
        struct strv silent;     /* paths */
};

/* Releases the hold at @path, and tells so. */
static void release_at(const char *path, const char *id, struct diags *d)
{
        json_t *answer = NULL;
        struct error err;
        int fd = hold_socket_ask(path, json_pack("{s:s}", "do", "release"), &answer, NULL, NULL,
                                 &err);
        const json_t *runs = json_object_get(answer, "used_by");

        if (!answer)
                diag_help(
                        diag_add(d, HN_HOLD_SILENT, EX_UNAVAILABLE, "hold %s does not answer", id),
                        "hnlaunch ps names its process, which kill -KILL ends");
        else if (json_array_size(runs))
                diag_tell(d, "hold %s ends when run %s has ended", id,
                          json_string_value(json_array_get(runs, 0)));
        else
                diag_tell(d, "hold %s has ended", id);
        fd_close(fd);
        json_decref(answer);
}

static void list_holds_here(struct holds_here *to)
{
        CLEANUP(strv_finish) struct strv paths = STRV_INIT;
        json_t **answers;

        hold_socket_list(&paths);
        answers = hold_socket_describe(&paths);
        for (size_t i = 0; i < paths.n; i++) {
                json_t *hold = answers[i];

                if (hold) {
                        strv_push(&to->ids, json_member(hold, "hold"));
                        strv_push(&to->paths, paths.v[i]);
                } else {
                        strv_push(&to->silent, paths.v[i]);
                }
                json_decref(hold);
        }
        free(answers);
}

static void refuse_several(size_t n, const char *one, struct diags *d)
{
        diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "%zu holds are meant", n),
                  "name one, as hnlaunch release %s, or release all: --all", one);
}

/* Adds that no hold begins with @word, unless one that does not answer may be meant. */
static void refuse_word(const struct holds_here *h, const char *word, struct diags *d)
{
        bool told = false;

        for (size_t i = 0; i < h->silent.n; i++)
                told |= tell_silent(d, h->silent.v[i], false, word);
        if (!told)
                diag_help(diag_add(d, HN_NO_HOLD, EX_UNAVAILABLE, "there is no hold %s", word),
                          "hnlaunch ps lists your holds");
}

/* Marks the hold whose id begins with @word; or adds an error. */
static void mean_hold(const struct holds_here *h, const char *word, bool *meant, struct diags *d)
{
        size_t n = 0, at = 0;

        for (size_t i = 0; i < h->ids.n; i++)
                if (!strncmp(h->ids.v[i], word, strlen(word))) {
                        at = i;
                        n++;
                }
        if (n > 1)
                refuse_several(n, h->ids.v[at], d);
        else if (n)
                meant[at] = true;
        else
                refuse_word(h, word, d);
}

/* Marks the holds that the command means. */
static void mean_holds(const struct options *o, const struct holds_here *h, bool *meant,
                       struct diags *d)
{
        size_t n = h->ids.n + h->silent.n;

        for (size_t k = 0; k < o->argv.n; k++)
                mean_hold(h, o->argv.v[k], meant, d);
        if (!o->argv.n && h->ids.n && n > 1 && !o->ps.all)
                refuse_several(n, h->ids.v[0], d);
        for (size_t i = 0; i < h->ids.n && !o->argv.n; i++)
                meant[i] = true;
}

int run_holds_release(const struct options *o, struct diags *d)
{
        struct holds_here h = { STRV_INIT, STRV_INIT, STRV_INIT };
        bool *meant;

        if (o->argv.n && o->ps.all) {
                diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "--all releases all holds: leave %s out",
                         o->argv.v[0]);
                return EX_USAGE;
        }
        list_holds_here(&h);
        meant = xcalloc(h.ids.n + 1, sizeof(*meant));
        mean_holds(o, &h, meant, d);
        if (!h.ids.n && !h.silent.n && !o->argv.n)
                diag_tell(d, "you have no holds here");
        for (size_t i = 0, n = diags_errors(d); i < h.ids.n && !n; i++)
                if (meant[i])
                        release_at(h.paths.v[i], h.ids.v[i], d);
        for (size_t i = 0; i < h.silent.n && !o->argv.n; i++)
                tell_silent(d, h.silent.v[i], false, NULL);
        free(meant);
        strv_finish(&h.ids);
        strv_finish(&h.paths);
        strv_finish(&h.silent);
        return diags_errors(d) ? diags_first_error(d)->exit : 0;
}
