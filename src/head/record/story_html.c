/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page is written from top to bottom in a single pass: verdict, explanations, pictures, tables,
 * facts of the run. html_text() alone writes text of others. Failures with the same end are folded
 * into rows first: the page of a run with a thousand ranks stays readable. A part without content
 * is left out, heading included.
 */
#include "head/record/story_html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intlist.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/model/outcome.h"
#include "head/record/story_text.h"

enum {
        FAILURES = 40, /* rows, each of ranks with the same end */
        NOTES = 200,
        PLACE_SHORT = 44, /* characters on a line */
        ZOOM_PART = 5, /* an end smaller than this part of the run is shown once more, enlarged */
};

/* clang-format off */
static const char style[] =
        ":root{color-scheme:light;--bg:#fff;--fg:#1b1f24;--dim:#5b6570;--line:#dfe3e8;--box:#f5f7f9;"
        "--bad:#b42318;--good:#1a7f37;--mark:#8a5a00;--a:#2a6a92;--c:#bcd9ea}"
        "@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--bg:#14181d;--fg:#e6e9ed;--dim:#9aa5b1;"
        "--line:#2c343d;--box:#1d232a;--bad:#ff8a80;--good:#7ee2a8;--mark:#f2c46d;--a:#7db8da;--c:#2f5168}}"
        "*{box-sizing:border-box}"
        "body{margin:0 auto;max-width:72rem;padding:1.5rem 1rem 3rem;background:var(--bg);color:var(--fg);"
        "font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}"
        "h1{font-size:1.3rem;line-height:1.35;margin:0 0 .3rem}h2{font-size:1.05rem;margin:2.2rem 0 .6rem}"
        "h3{font-size:1rem;margin:1.2rem 0 .6rem}h2,h3{break-after:avoid}"
        "p{margin:.3rem 0}.dim,th{color:var(--dim)}.bad{color:var(--bad)}.good{color:var(--good)}"
        ".box{border-left:3px solid var(--mark);background:var(--box);padding:.5rem .9rem;margin-top:1rem}"
        "table{border-collapse:collapse;width:100%}tr{break-inside:avoid}"
        "td,th{text-align:left;font-weight:400;padding:.3rem 1.2rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}"
        ".n,.s{white-space:nowrap}.n{text-align:right}.p{min-width:12rem}"
        "td:last-child,th:last-child{width:100%;padding-right:0}"
        "code{font:.9em ui-monospace,monospace}"
        ".chart{display:grid;grid-template-columns:fit-content(17rem) 1fr;column-gap:.7rem;margin-top:.6rem;padding-right:.4rem}"
        ".values{grid-template-columns:fit-content(17rem) 1fr auto}"
        ".chart,.keys,figcaption{font-size:.8rem;line-height:18px}.keys,figcaption{color:var(--dim)}"
        ".chart span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;text-align:right}.chart i{font-style:normal}"
        ".chart>svg{width:100%;height:18px;border-right:1px solid var(--line);print-color-adjust:exact;"
        "background:linear-gradient(90deg,var(--line) 1px,transparent 0) 0/25%}.chart>.axis{background:none;border:0}"
        ".keys{margin:.6rem 0 0}.keys span{display:inline-block;margin-right:1.1rem}"
        ".keys svg{width:14px;height:18px;vertical-align:top;margin-right:.4rem}"
        "svg{display:block;overflow:visible}.keys svg{display:inline-block}svg svg{overflow:visible}"
        "text{fill:var(--fg)}.axis text{fill:var(--dim)}.in{fill:#14181d;text-anchor:middle}"
        "path{fill:none;vector-effect:non-scaling-stroke}rect{fill:var(--fg)}"
        ".C{fill:#6fa3cc}.A{fill:#c3d7e6}.P{fill:#a48bc9}.S{fill:#f0cf8a}.J{fill:#6fb089}"
        ".h0{fill:var(--a);fill-opacity:.16}.h1{fill:var(--a);fill-opacity:.36}.h2{fill:var(--a);fill-opacity:.55}"
        ".h3{fill:var(--a);fill-opacity:.85}.h4{fill:var(--bad)}"
        ".life{stroke:var(--dim)}.wait{stroke:var(--c);stroke-width:8}.step,.series{stroke:var(--a)}"
        ".out,.err{stroke:var(--fg);stroke-width:2.5;stroke-linecap:round}.err{stroke:var(--mark);stroke-width:6}"
        ".failed,.failure{stroke:var(--bad);stroke-width:2}.divergence{stroke:var(--mark);stroke-width:2;stroke-dasharray:4 3}"
        ".stopped{fill:var(--dim)}.series{stroke-width:1.5}"
        ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,18rem),1fr));gap:1rem 1.5rem}"
        "figure{margin:0;break-inside:avoid}figure svg{width:100%;height:40px;border-bottom:1px solid var(--line)}"
        "@media(max-width:40rem){.odd,.head,.chart i{display:none}.chart{grid-template-columns:fit-content(9rem) 1fr;column-gap:.5rem}"
        ".values{grid-template-columns:fit-content(9rem) 1fr auto}"
        "tr{display:block;padding:.4rem 0;border-bottom:1px solid var(--line)}"
        "td,th{display:inline;border:0;padding:0 .6rem 0 0}.s{white-space:normal}"
        "td:last-child{display:block;padding:0}}"
        "@media print{@page{margin:14mm}html{font-size:12px}body{padding:0;font-size:1rem}.box,.keys{break-inside:avoid}"
        ".keys{break-before:avoid}.axis{break-after:avoid}.chart{break-inside:avoid}.long{break-inside:auto}}";
/* clang-format on */

void html_text(struct buf *to, const char *text)
{
        CLEANUP(buf_finish) struct buf plain = BUF_INIT;
        const char *p;

        printable_put(&plain, text, strlen(text));
        p = (const char *)buf_data(&plain);
        for (size_t i = 0; i < buf_len(&plain); i++) {
                const char *entity = p[i] == '&'    ? "&amp;"
                                     : p[i] == '<'  ? "&lt;"
                                     : p[i] == '>'  ? "&gt;"
                                     : p[i] == '"'  ? "&quot;"
                                     : p[i] == '\'' ? "&#39;"
                                                    : NULL;

                if (entity)
                        buf_appends(to, entity);
                else
                        buf_append(to, &p[i], 1);
        }
}

/* Appends an element; @text alone is of others, and escaped. */
static void put_element(struct buf *to, const char *open, const char *text, const char *close)
{
        buf_appends(to, open);
        html_text(to, text);
        buf_appends(to, close);
}

/* Takes @text; NULL = nothing. */
static void put_sentence(struct buf *to, const char *open, char *text, const char *close)
{
        if (text && *text)
                put_element(to, open, text, close);
        free(text);
}

/* The end of the run in a sentence, and the other sentences about the end. */
static void put_top(struct buf *to, const struct story *s, const char *no_verdict)
{
        const char *verdict = json_member(s->summary, "verdict");
        /* A run without a verdict has no mark. */
        bool bad = json_integer_value(json_object_get(s->summary, "code")) != 0;

        buf_appends(to, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                        "<meta http-equiv=\"Content-Security-Policy\" "
                        "content=\"default-src 'none'; style-src 'unsafe-inline'\">");
        put_element(to, "<title>hnlaunch run ", json_member(s->run, "run"), "</title><style>");
        buf_appends(to, style);
        buf_appends(to, "</style></head>\n<body><h1>");
        if (*verdict)
                buf_appends(to, bad ? "<span class=\"bad\">\xe2\x9c\x97</span> "
                                    : "<span class=\"good\">\xe2\x9c\x93</span> ");
        put_element(to, "", *verdict ? verdict : no_verdict, "</h1>\n");
        put_element(to, "<p class=\"dim\">Run ", json_member(s->run, "run"), ": ");
        put_sentence(to, "", story_headline(s), "</p>\n");
        put_sentence(to, "<p>", story_roles_text(s), "</p>\n");
}

/* Appends a box with all sentences that tell why; no box without any. */
static void put_explanations(struct buf *to, const struct story *s)
{
        CLEANUP(buf_finish) struct buf box = BUF_INIT;

        put_sentence(&box, "<p><b>Why:</b> ", story_hang_text(s), "</p>");
        put_sentence(&box, "<p><b>Where the ranks were:</b> ", story_where_text(s), "</p>");
        put_sentence(&box, "<p><b>First divergence:</b> ", story_divergence_text(s), "</p>");
        put_sentence(&box,
                     s->slow.rank.node < 0 ? "<p><b>Slow node:</b> " : "<p><b>Slow rank:</b> ",
                     story_slow_text(s), "</p>");
        if (buf_len(&box)) {
                buf_appends(to, "<div class=\"box\">");
                buf_append(to, buf_data(&box), buf_len(&box));
                buf_appends(to, "</div>\n");
        }
}

/* Appends the picture of the first start, and a line for each later one. */
static void put_start(struct buf *to, const struct story *s)
{
        static const char arrow[] = "\xe2\x86\x92";
        const struct story_start *a = &s->starts.v[0];
        size_t hidden = story_starts_hidden(s);

        if (!a->n_phases && s->starts.n < 2)
                return;
        buf_appends(to, "<section><h2>The start</h2>");
        if (a->n_phases && s->n_nodes > 1)
                put_sentence(to, "<p>Critical path: ", story_path_text(s, a, arrow), "</p>");
        if (a->n_phases)
                picture_start(to, s);
        if (hidden > 1)
                buf_printf(to, "<p class=\"dim\">%zu earlier starts again</p>\n", hidden - 1);
        for (size_t i = MAX(hidden, (size_t)1); i < s->starts.n; i++) {
                buf_printf(to, "<p>Attempt %zu: ", i + 1);
                put_sentence(to, "", story_again_text(s, &s->starts.v[i], arrow), "</p>\n");
        }
        buf_appends(to, "</section>\n");
}

/* Appends lanes of the whole run, and the end once more when divergence and failure would lie too
 * close to be told apart. */
static void put_ranks(struct buf *to, const struct story *s)
{
        int64_t last = story_last_us(s), from = MAX(s->times.ordered_us, s->times.restarted_us);
        int64_t end = s->times.failed_us >= 0 ? s->times.failed_us : last, zoom;

        if (!picture_has_lanes(s))
                return;
        from = MAX(from, INT64_C(0));
        buf_appends(to, "<section><h2>The ranks</h2>");
        picture_ranks(to, s, from, last, 0);
        /* As much before the divergence as behind, at least a tenth of the run, or ten seconds of a
         * long one. */
        zoom = s->divergence.rank >= 0 ? MIN(2 * (end - s->divergence.us), end - from) : 0;
        zoom = MAX(zoom, MIN((end - from) / ZOOM_PART / 2, INT64_C(10000000)));
        if (s->times.failed_us >= 0 && zoom > 0 && zoom < (last - from) / 2) {
                /* A little of what followed. */
                int64_t until = MIN(end + zoom / 4, last);

                put_element(to, "<h3>The last ", story_span(until - (end - zoom)).text,
                            s->cause_rank >= 0 ? ", counted from the first failure</h3>"
                                               : ", counted from the order to stop</h3>");
                picture_ranks(to, s, end - zoom, until, end);
        }
        buf_appends(to, "</section>\n");
}

/* --- tables ----------------------------------------------------------------------------------- */

static void put_cell(struct buf *to, const char *class, const char *text)
{
        buf_printf(to, "<td class=\"%s\">", class);
        put_element(to, "", text, "</td>");
}

/* Failures with the same end and the same words. */
struct failure_row {
        const json_t *first;
        struct intlist ranks;
};

static int compare_rank_numbers(const void *a, const void *b)
{
        return *(const int *)a - *(const int *)b;
}

/* Whether two failures share a row. A failure without a rank (a node) has a row of its own. */
static bool is_same_failure(const json_t *a, const json_t *b)
{
        static const char *const members[] = { "signal", "code", "echo" };

        for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
                const json_t *x = json_object_get(a, members[i]),
                             *y = json_object_get(b, members[i]);

                /* Two missing members are equal. */
                if (x != y && (!x || !y || !json_equal(x, y)))
                        return false;
        }
        return json_object_get(a, "rank") && json_object_get(b, "rank") &&
               !strcmp(story_failure_words(a), story_failure_words(b));
}

/* Returns where a row's failures were; malloc'ed. */
static char *make_place(const struct story *s, struct failure_row *r)
{
        const char *host = json_member(r->first, "host");
        CLEANUP(free_textp) char *all = NULL;
        char name[PLAN_RANK_NAME_MAX];

        if (!r->ranks.n)
                return xstrdup(host);
        if (r->ranks.n == 1)
                return xasprintf("%s%s%s", role_list_name(&s->roles, r->ranks.v[0], name),
                                 s->n_nodes == 1 ? "" : " on ", s->n_nodes == 1 ? "" : host);
        qsort(r->ranks.v, r->ranks.n, sizeof(*r->ranks.v), compare_rank_numbers);
        all = intlist_fold(&r->ranks);
        return xasprintf("%zu ranks: %.200s%s", r->ranks.n, all,
                         strlen(all) > 200 ? "\xe2\x80\xa6" : "");
}

/* Appends a row, with the time of the first of its failures. */
static void put_failure(struct buf *to, const struct story *s, struct failure_row *r)
{
        const json_t *code = json_object_get(r->first, "code");
        int signal = (int)json_integer_value(json_object_get(r->first, "signal"));
        CLEANUP(free_textp) char *place = make_place(s, r), *end = NULL;

        end = signal ? xstrdup(outcome_signal_name(signal))
              : code ? xasprintf("exit %lld", (long long)json_integer_value(code))
                     : xstrdup("");
        buf_appends(to, "<tr>");
        put_cell(to, "n", story_span(story_failure_us(r->first)).text);
        put_cell(to, strlen(place) > PLACE_SHORT ? "p" : "s", place);
        put_cell(to, "s", end);
        put_element(to, "<td>", story_failure_words(r->first), "");
        buf_appends(to, json_is_true(json_object_get(r->first, "echo"))
                                ? " <span class=\"dim\">(a consequence)</span></td></tr>\n"
                                : "</td></tr>\n");
}

/* Returns how many rows the failures take that the verdict does not tell; the last row may stand
 * for more failures than named. */
static size_t fold_failures(const struct story *s, struct failure_row *rows, size_t *ret_more)
{
        const json_t *f;
        size_t i, n = 0, k;

        *ret_more = 0;
        json_array_foreach(s->failures, i, f)
        {
                if (!i && story_verdict_has_first(s))
                        continue;
                /* FAILURES rows at most: no need for a hash. */
                for (k = 0; k < n && !is_same_failure(rows[k].first, f); k++)
                        ;
                if (k == FAILURES) {
                        ++*ret_more;
                        continue;
                }
                if (k == n)
                        rows[n++] = (struct failure_row){ f, { 0 } };
                if (json_object_get(f, "rank"))
                        intlist_add(&rows[k].ranks,
                                    (int)json_integer_value(json_object_get(f, "rank")));
        }
        return n;
}

static void put_failures(struct buf *to, const struct story *s)
{
        struct failure_row rows[FAILURES];
        size_t more, n = fold_failures(s, rows, &more);

        if (n) {
                buf_appends(to, story_verdict_has_first(s)
                                        ? "<section><h2>Other failures</h2>"
                                        : "<section><h2>Failures, the cause first</h2>");
                buf_appends(to, "<table><tr class=\"head\"><th class=\"n\">After</th><th "
                                "class=\"s\">Where</th>"
                                "<th class=\"s\">End</th><th>Words</th></tr>\n");
                for (size_t i = 0; i < n; i++)
                        put_failure(to, s, &rows[i]);
                buf_appends(to, "</table>");
                if (more)
                        buf_printf(to, "<p class=\"dim\">and %zu more</p>", more);
                buf_appends(to, "</section>\n");
        }
        for (size_t i = 0; i < n; i++)
                intlist_finish(&rows[i].ranks);
}

/* An event, with the place unless the words begin with the place. */
static void put_place(struct buf *to, const char *place, const char *words)
{
        bool has_place = *place && strncmp(words, place, strlen(place)) != 0;

        put_element(to, "<td>", has_place ? place : "", has_place && *words ? ": " : "");
        put_element(to, "", words, "</td>");
}

/* Appends the attempts of a run with restarts, cause and decision of each. */
static void put_attempts(struct buf *to, const struct story *s)
{
        const json_t *all = json_object_get(s->summary, "attempts");
        size_t n = json_array_size(all), hidden = story_attempts_hidden(s);

        if (hidden == n)
                return;
        buf_appends(to, "<section><h2>Attempts</h2><table>");
        for (size_t i = hidden; i < n; i++) {
                const json_t *a = json_array_get(all, i);
                CLEANUP(free_textp) char *text = story_attempt_text(a);

                buf_printf(to, "<tr><td class=\"n\">%lld</td>",
                           (long long)json_integer_value(json_object_get(a, "attempt")));
                put_cell(to, "n", story_span(json_integer_value(json_object_get(a, "us"))).text);
                put_cell(to, "", json_member(a, "cause"));
                put_cell(to, "", text);
                buf_appends(to, "</tr>\n");
        }
        buf_appends(to, "</table>");
        if (hidden)
                buf_printf(to, "<p class=\"dim\">%zu earlier ones</p>", hidden);
        buf_appends(to, "</section>\n");
}

/* Appends "what happened", without what the verdict or the sentences have told. */
static void put_notes(struct buf *to, const struct story *s)
{
        size_t shown = 0;

        for (size_t i = 0; i < s->n_notes; i++) {
                const struct story_note *n = &s->notes[i];
                CLEANUP(free_textp) char *place = story_note_place(s, n);
                CLEANUP(free_textp) char *words = story_note_text(n);

                /* The library is among the versions. */
                if (!strcmp(n->what, "run.library") || story_is_told(s, n) || shown++ >= NOTES)
                        continue;
                if (shown == 1)
                        buf_appends(to, "<section><h2>What happened</h2><table>\n");
                buf_appends(to, "<tr>");
                put_cell(to, "n", story_span(n->us).text);
                put_cell(to, "s", story_note_what(n));
                put_place(to, place, words);
                buf_appends(to, "</tr>\n");
        }
        if (shown > NOTES)
                buf_printf(to, "</table><p class=\"dim\">and %zu more</p></section>\n",
                           shown - NOTES);
        else if (shown)
                buf_appends(to, "</table></section>\n");
}

/* Appends a row of the last table; nothing without a text. */
static void put_fact(struct buf *to, const char *name, const char *text)
{
        if (!*text)
                return;
        put_element(to, "<tr><th class=\"s\">", name, "</th><td><code>");
        put_element(to, "", text, "</code></td></tr>\n");
}

/* The command line, and the program if not at the end of the line, as with --job. */
static void put_command(struct buf *to, const struct story *s)
{
        CLEANUP(free_textp) char *argv = story_shell_line(json_object_get(s->run, "argv"));
        CLEANUP(free_textp) char *line = story_shell_line(json_object_get(s->run, "line"));
        CLEANUP(free_textp) char *command = xasprintf("hnlaunch %s", line);
        size_t n = strlen(argv), len = strlen(line);

        /* Both are quoted for a shell in the same way, so ends can be compared. */
        if (len < n || strcmp(line + len - n, argv) != 0)
                put_fact(to, "program", argv);
        if (len)
                put_fact(to, "command", command);
}

/* Appends what a reader needs to run the same again. */
static void put_facts(struct buf *to, const struct story *s)
{
        buf_appends(to, "<section><h2>Program and versions</h2><table>\n");
        put_command(to, s);
        put_fact(to, "directory", json_member(s->run, "cwd"));
        put_fact(to, "hnlaunch", json_member(s->run, "version"));
        for (size_t i = 0; i < s->n_notes; i++)
                if (!strcmp(s->notes[i].what, "run.library"))
                        put_fact(to, "library of the ranks", s->notes[i].text);
        /* With traces of a single node there is nothing to say of gaps or clocks. */
        if (!s->log.n || s->n_nodes > 1) {
                CLEANUP(free_textp) char *traces = story_traces_text(s);

                put_element(to, "<tr><th class=\"s\">traces</th><td>", traces, "</td></tr>\n");
        }
        buf_appends(to, "</table></section>\n");
}

void story_html(struct buf *to, const struct story *s, const char *no_verdict)
{
        put_top(to, s, no_verdict);
        put_explanations(to, s);
        put_failures(to, s);
        put_attempts(to, s);
        put_notes(to, s);
        picture_steps(to, s);
        put_ranks(to, s);
        picture_series(to, s);
        put_start(to, s);
        put_facts(to, s);
        buf_appends(to, "</body></html>\n");
}
