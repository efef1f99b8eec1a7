/* SPDX-License-Identifier: Apache-2.0 */
#include "head/output/event_line.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/core/json_text.h"

/* Whether JSON writes each byte of @text as it is. */
static bool is_plain_json(const char *text)
{
        for (; *text; text++)
                if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
                        return false;
        return true;
}

static void put_quoted(struct buf *to, const char *text)
{
        CLEANUP(free_textp) char *escaped = NULL;
        json_t *j;

        if (is_plain_json(text)) {
                buf_append(to, "\"", 1);
                buf_appends(to, text);
                buf_append(to, "\"", 1);
                return;
        }
        j = json_text(text);
        escaped = json_dump_plain(j, JSON_ENCODE_ANY);
        json_decref(j);
        buf_appends(to, escaped);
}

/* Begins a member that is not the first. */
static void put_member_name(struct buf *to, const char *name)
{
        buf_append(to, ",\"", 2);
        buf_appends(to, name);
        buf_append(to, "\":", 2);
}

static void put_text_member(struct buf *to, const char *name, const char *text)
{
        put_member_name(to, name);
        put_quoted(to, text);
}

static void put_number_member(struct buf *to, const char *name, int64_t value)
{
        uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
        char digits[24], *p = digits + sizeof(digits);

        put_member_name(to, name);
        do
                *--p = (char)('0' + rest % 10);
        while (rest /= 10);
        if (value < 0)
                *--p = '-';
        buf_append(to, p, (size_t)(digits + sizeof(digits) - p));
}

/* Appends the wall clock, in UTC with microseconds. */
static void put_clock(struct event_clock *c, struct buf *to)
{
        struct timespec now;
        char digits[] = ".000000Z";
        struct tm tm;

        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec != c->second) {
                c->second = now.tv_sec;
                gmtime_r(&now.tv_sec, &tm);
                strftime(c->text, sizeof(c->text), "%Y-%m-%dT%H:%M:%S", &tm);
        }
        for (long us = now.tv_nsec / 1000, i = 6; i > 0; i--, us /= 10)
                digits[i] = (char)('0' + us % 10);
        buf_appends(to, ",\"t\":\"");
        buf_appends(to, c->text);
        buf_appends(to, digits);
        buf_append(to, "\"", 1);
}

/* Appends what the value of the event means, by its kind. */
static void put_values(struct buf *to, const struct event *e)
{
        static const char *const names[EVENT_KINDS] = {
                [EVENT_RUN_START] = "ranks",    [EVENT_PUSH_START] = "bytes",
                [EVENT_NODE_PUSHED] = "bytes",  [EVENT_RANK_STARTED] = "pid",
                [EVENT_RANK_PROGRESS] = "step", [EVENT_RESTART] = "attempt",
                [EVENT_STALLED] = "ms",         [EVENT_HANG] = "ms",
                [EVENT_NODE_SILENT] = "ms",     [EVENT_NODE_HEARD] = "ms",
                [EVENT_RUN_END] = "code",
        };
        char hn[16];

        if (names[e->kind])
                put_number_member(to, names[e->kind], e->value);
        if (e->kind == EVENT_RANK_PROGRESS && e->count)
                put_number_member(to, "total", e->count);
        if (e->kind == EVENT_RANK_PROGRESS && !e->count)
                buf_appends(to, ",\"total\":null");
        if (e->kind == EVENT_NODE_READY)
                buf_appends(to, e->value ? ",\"uploaded\":true" : ",\"uploaded\":false");
        if (e->kind == EVENT_RANK_EXITED)
                put_number_member(to, e->value < 0 ? "signal" : "code", llabs(e->value));
        if (e->kind == EVENT_RUN_END && !e->count)
                buf_appends(to, ",\"hn\":null");
        if (e->kind == EVENT_RUN_END && e->count) {
                snprintf(hn, sizeof(hn), "HN%03d", (int)e->count);
                put_text_member(to, "hn", hn);
        }
}

/* Appends the event's own members. */
static void put_event(struct buf *to, const char *run_id, const struct event *e)
{
        put_number_member(to, "us", e->us);
        put_text_member(to, "ev", event_name(e->kind));
        if (e->kind == EVENT_RUN_START)
                put_text_member(to, "run", run_id);
        if (e->kind == EVENT_RUN_START || e->kind == EVENT_PUSH_START)
                put_number_member(to, "nodes", e->count);
        if (e->node >= 0)
                put_number_member(to, "node", e->node);
        if (e->host)
                put_text_member(to, "host", e->host);
        if (e->rank >= 0)
                put_number_member(to, "rank", e->rank);
        put_values(to, e);
        if (e->text)
                put_text_member(to, "text", e->text);
}

char *event_line_make(struct event_clock *c, const char *run_id, const struct event *e)
{
        struct buf to = BUF_INIT;

        if (e->kind == EVENT_NODE_PHASE || e->kind == EVENT_PUSH_PROGRESS ||
            e->kind == EVENT_PUSH_HASHING)
                return NULL;
        buf_appends(&to, "{\"v\":1");
        put_clock(c, &to);
        put_event(&to, run_id, e);
        buf_appends(&to, "}\n");
        return buf_steal(&to);
}
