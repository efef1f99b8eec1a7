/* SPDX-License-Identifier: Apache-2.0 */
#include "head/record/story_html.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/record/story_text.h"

enum {
        FAILURES = 40,
        NOTES = 200,
        ZOOM_PART = 5, /* the end is shown once more when it is a small part of the run */
};

/* clang-format off */
static const char style[] =
        ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#5b6570;--line:#d5dae0;--box:#f5f7f9;"
        "--bad:#b42318;--mark:#7a4b00;--a:#31688e;--b:#7db8da;--c:#d9e6ee}"
        "@media(prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6e9ed;--dim:#9aa5b1;--line:#3a434d;--box:#1d232a;"
        "--bad:#ff8a80;--mark:#f2c46d;--a:#7db8da;--b:#3f7fa8;--c:#2a3b48}}"
        "*{box-sizing:border-box}"
        "body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,sans-serif}"
        "h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}h3{font-size:.95rem;margin:.8rem 0 .3rem}"
        "p{margin:.3rem 0}.dim{color:var(--dim)}.bad{color:var(--bad);font-weight:600}"
        ".box{border:1px solid var(--line);border-left:4px solid var(--mark);background:var(--box);"
        "padding:.6rem .8rem;margin:.8rem 0;border-radius:4px}"
        ".wide{overflow-x:auto;border:1px solid var(--line);border-radius:4px;padding:.4rem}"
        ".wide svg{min-width:44rem;width:100%;height:auto;display:block}"
        "svg text{fill:var(--fg);font:11px system-ui,sans-serif}svg .t{fill:var(--dim)}"
        "table{border-collapse:collapse;width:100%}"
        "td,th{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line);vertical-align:top;"
        "overflow-wrap:anywhere}td.n,th{white-space:nowrap}code{font-family:ui-monospace,monospace;font-size:.93em}"
        ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.6rem}"
        ".grid svg{width:100%;height:auto;display:block}figure{margin:0}figcaption{font-size:.85rem}"
        "@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--dim:#333;--line:#999;--box:#fff;--bad:#000;--mark:#000;"
        "--a:#444;--b:#999;--c:#ddd}body{padding:0}section{break-inside:avoid}"
        ".wide{overflow:visible;border:0;padding:0}.wide svg{min-width:0}}";
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

static void put_top(struct buf *to, const struct story *s)
{
        const char *verdict = json_member(s->summary, "verdict");
        bool bad = json_integer_value(json_object_get(s->summary, "code")) != 0;

        buf_appends(to, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                        "<meta http-equiv=\"Content-Security-Policy\" "
                        "content=\"default-src 'none'; style-src 'unsafe-inline'\">");
        put_element(to, "<title>hnlaunch run ", json_member(s->run, "run"), "</title><style>");
        buf_appends(to, style);
        put_element(to, "</style></head>\n<body><header><h1>Run ", json_member(s->run, "run"),
                    "</h1>");
        put_sentence(to, "<p class=\"dim\">", story_headline(s), "</p>");
        put_element(to, bad ? "<p class=\"bad\">\xe2\x9c\x97 " : "<p>",
                    *verdict ? verdict : "no verdict yet", "</p></header>\n");
        put_sentence(to, "<div class=\"box\"><b>Why:</b> ", s->why ? xstrdup(s->why) : NULL,
                     "</div>\n");
        put_sentence(to, "<div class=\"box\"><b>First divergence:</b> ", story_divergence_text(s),
                     "</div>\n");
        put_sentence(to,
                     s->slow.rank.node < 0 ? "<div class=\"box\"><b>Slow node:</b> "
                                           : "<div class=\"box\"><b>Slow rank:</b> ",
                     story_slow_text(s), "</div>\n");
}

static void put_start(struct buf *to, const struct story *s)
{
        if (!s->n_phases)
                return;
        buf_appends(to, "<section><h2>The start</h2>");
        put_sentence(to, "<p>", story_phases_text(s), "</p>");
        put_sentence(to, "<p><b>Critical path:</b> ", story_path_text(s),
                     "</p><div class=\"wide\">");
        picture_start(to, s);
        buf_appends(to, "</div></section>\n");
}

static void put_ranks(struct buf *to, const struct story *s)
{
        int64_t last = story_last_us(s), from = MAX(s->times.ordered_us, INT64_C(0));
        int64_t end = s->times.failed_us >= 0 ? s->times.failed_us : last, zoom;

        if (!s->n_ranks)
                return;
        buf_appends(to, "<section><h2>The ranks</h2>");
        put_sentence(to, "<p class=\"dim\">Traces: ", story_traces_text(s),
                     "</p><div class=\"wide\">");
        picture_ranks(to, s, from, last);
        buf_appends(to, "</div>\n");
        zoom = s->divergence.rank >= 0 ? MIN(2 * (end - s->divergence.us), end - from) : 0;
        zoom = MAX(zoom, MIN((end - from) / ZOOM_PART / 2, INT64_C(10000000)));
        if (s->times.failed_us >= 0 && zoom > 0 && zoom < (last - from) / 2) {
                int64_t until = MIN(end + zoom / 4, last);

                put_element(to, "<h2>The last ", story_span(until - (end - zoom)).text,
                            "</h2><div class=\"wide\">");
                picture_ranks(to, s, end - zoom, until);
                buf_appends(to, "</div>");
        }
        buf_appends(to, "</section>\n");
}

/* --- tables ----------------------------------------------------------------------------------- */

static void put_cell(struct buf *to, bool narrow, const char *text)
{
        put_element(to, narrow ? "<td class=\"n\">" : "<td>", text, "</td>");
}

static void put_failures(struct buf *to, const struct story *s)
{
        const json_t *f;
        size_t i;

        if (!json_array_size(s->failures))
                return;
        buf_appends(to, "<section><h2>Failures, the first one first</h2><div class=\"wide\"><table>"
                        "<tr><th>After</th><th>Where</th><th>End</th><th>Words</th></tr>");
        json_array_foreach(s->failures, i, f)
        {
                const json_t *rank = json_object_get(f, "rank"), *n;
                CLEANUP(buf_finish) struct buf where = BUF_INIT, end = BUF_INIT;
                const char *words = json_member(f, "text");

                if (i == FAILURES)
                        break;
                if (rank)
                        buf_printf(&where, "rank %lld on ", (long long)json_integer_value(rank));
                buf_appends(&where, json_member(f, "host"));
                if ((n = json_object_get(f, "signal")))
                        buf_printf(&end, "signal %lld", (long long)json_integer_value(n));
                else if ((n = json_object_get(f, "code")))
                        buf_printf(&end, "code %lld", (long long)json_integer_value(n));
                if (json_is_true(json_object_get(f, "echo")))
                        buf_appends(&end, ", follows from another");
                words = *words ? words : json_member(f, "said");
                buf_append(&where, "", 1);
                buf_append(&end, "", 1);
                buf_appends(to, "<tr>");
                put_cell(to, true, story_span(story_failure_us(f)).text);
                put_cell(to, false, (const char *)buf_data(&where));
                put_cell(to, true, (const char *)buf_data(&end));
                put_cell(to, false, words);
                buf_appends(to, "</tr>");
        }
        buf_appends(to, "</table>");
        if (i < json_array_size(s->failures))
                buf_printf(to, "<p class=\"dim\">and %zu more</p>",
                           json_array_size(s->failures) - i);
        buf_appends(to, "</div></section>\n");
}

static void put_notes(struct buf *to, const struct story *s)
{
        if (!s->n_notes)
                return;
        buf_appends(to, "<section><h2>What happened</h2><div class=\"wide\"><table>");
        for (size_t i = 0; i < MIN(s->n_notes, (size_t)NOTES); i++) {
                const struct story_note *n = &s->notes[i];
                CLEANUP(free_textp) char *place = story_place_text(s, n->node, n->rank);

                buf_appends(to, "<tr>");
                put_cell(to, true, story_span(n->us).text);
                put_cell(to, true, n->what);
                put_cell(to, false, place);
                put_cell(to, false, n->text);
                buf_appends(to, "</tr>");
        }
        buf_appends(to, "</table></div></section>\n");
}

/* The words of an array as one line. */
static char *join_words(const json_t *words)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        const json_t *w;
        size_t i;

        json_array_foreach(words, i, w)
                buf_printf(&b, "%s%s", i ? " " : "", json_is_string(w) ? json_string_value(w) : "");
        return buf_steal(&b);
}

static void put_fact(struct buf *to, const char *name, const char *text)
{
        if (!*text)
                return;
        put_element(to, "<tr><th>", name, "</th><td><code>");
        put_element(to, "", text, "</code></td></tr>");
}

static void put_facts(struct buf *to, const struct story *s)
{
        CLEANUP(free_textp) char *argv = join_words(json_object_get(s->run, "argv"));
        CLEANUP(free_textp) char *line = join_words(json_object_get(s->run, "line"));

        buf_appends(to, "<section><h2>Program and versions</h2><table>");
        put_fact(to, "program", argv);
        put_fact(to, "hnlaunch", line);
        put_fact(to, "directory", json_member(s->run, "cwd"));
        put_fact(to, "version of hnlaunch", json_member(s->run, "version"));
        for (size_t i = 0; i < s->n_notes; i++)
                if (!strcmp(s->notes[i].what, "run.library"))
                        put_fact(to, "library of the ranks", s->notes[i].text);
        buf_appends(to, "</table></section>\n");
}

void story_html(struct buf *to, const struct story *s)
{
        put_top(to, s);
        put_failures(to, s);
        put_notes(to, s);
        put_start(to, s);
        put_ranks(to, s);
        picture_steps(to, s);
        picture_series(to, s);
        put_facts(to, s);
        buf_appends(to, "</body></html>\n");
}
