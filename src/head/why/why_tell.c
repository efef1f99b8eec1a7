/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is ready in the answer (head/why/why_text.c); here rows become a table of the terminal's
 * width, and problems become help. An older hnlaunch sends no "table", but "rows" as lines.
 * Problems are told apart by words that the agent has put into them.
 */
#include "head/why/why_tell.h"

#include <stdbool.h>
#include <string.h>

#include "base/error_number.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/output/text_table.h"
#include "head/why/why.h"

/* Words of agent/inspect on a process that the user may not trace. */
#define NO_TRACE "may not trace"

/* Returns the finding; lent. */
static const char *why_text(const json_t *answer)
{
        const char *text = json_string_value(json_object_get(answer, "text"));

        return text ? text : "the answer has no text";
}

/* The place is what is asked for: the rest of a narrow line is its. */
static const struct text_column why_columns[] = {
        { .name = "RANKS", .least = 12 },
        { .name = "CPU", .flags = TEXT_RIGHT, .rank = 2 },
        { .name = "STATE", .rank = 1 },
        { .name = "", .rank = 3 }, /* (differs) */
        { .name = "WHERE", .flags = TEXT_TRUNCATE, .least = 40 },
};

/* Adds the cells of "table" as rows that fit the width. */
static void add_why_table(const json_t *table, size_t width, struct diag *di)
{
        CLEANUP(text_table_finish)
        struct text_table t = { .columns = why_columns,
                                .n_columns = ARRAY_SIZE(why_columns),
                                .width = width };
        CLEANUP(free_textp) char *text = NULL;
        const json_t *row;
        size_t i;

        json_array_foreach(table, i, row)
        {
                char **cells = text_table_add(&t);

                cells[0] = xstrdup(json_member(row, "ranks"));
                cells[1] = xstrdup(json_member(row, "cpu"));
                cells[2] = xstrdup(json_member(row, "state"));
                cells[3] =
                        json_is_true(json_object_get(row, "differs")) ? xstrdup("(differs)") : NULL;
                cells[4] = xstrdup(json_member(row, "where"));
        }
        text = text_table_format(&t);
        if (*text)
                diag_row(di, "%s", text);
}

/* Adds rows, notes and problems, and at most two kinds of help. @width: of the terminal; 0 =
 * none. */
static void add_why_rows(const json_t *answer, size_t width, struct diag *di)
{
        const json_t *item;
        bool no_python = false, missing = false, forbidden = false;
        size_t i;

        if (json_object_get(answer, "table"))
                add_why_table(json_object_get(answer, "table"), width, di);
        else
                json_array_foreach(json_object_get(answer, "rows"), i,
                                   item) if (json_is_string(item))
                        diag_row(di, "%s", json_string_value(item));
        json_array_foreach(json_object_get(answer, "notes"), i, item) if (json_is_string(item))
                diag_note(di, "%s", json_string_value(item));
        json_array_foreach(json_object_get(answer, "problems"), i, item)
        {
                const char *problem = json_is_string(item) ? json_string_value(item) : "";

                diag_note(di, "%s", problem);
                no_python |= strstr(problem, WHY_C_ONLY) != NULL;
                missing |= !strstr(problem, WHY_C_ONLY) && strstr(problem, "not installed");
                forbidden |= strstr(problem, NO_TRACE) != NULL;
        }
        /* py-spy is the best of the tools; where no tool is installed, any would help. */
        if (missing)
                diag_help(di, "pip install py-spy in the environment of the ranks, or install "
                              "elfutils (eu-stack) or gdb on the nodes");
        else if (no_python)
                diag_help(di, "pip install py-spy in the environment of the ranks");
        if (forbidden)
                diag_help(di, "the nodes forbid tracing: sysctl kernel.yama.ptrace_scope=0, or in "
                              "containers the capability SYS_PTRACE");
}

struct diag *why_tell(const json_t *answer, size_t width, struct diags *d)
{
        struct diag *di = diag_tell(d, "%s", why_text(answer));

        add_why_rows(answer, width, di);
        return di;
}

struct diag *why_tell_rows(const json_t *answer, size_t width, struct diags *d)
{
        struct diag *di = diag_tell(d, "where the ranks are");

        add_why_rows(answer, width, di);
        return di;
}

struct diag *why_warn(const json_t *answer, int64_t ms, size_t width, struct diags *d)
{
        const json_t *first = json_array_get(json_object_get(answer, "ranks"), 0);
        struct diag *di;
        char age[32];

        format_duration(age, sizeof(age), ms * 1000);
        di = diag_warn(d, HN_HANG, "the ranks hang: %s", why_text(answer));
        add_why_rows(answer, width, di);
        diag_note(di, "no rank%s has gone on for %s (--hang-after)",
                  json_object_get(first, "role") ? " there" : "", age);
        return di;
}
