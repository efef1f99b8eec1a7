/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length of a line is bounded but for the texts, so room for the whole is allocated once and
 * the members are copied in turn, in the order known to readers. Only a text with characters to be
 * escaped goes through jansson.
 */
#include "head/output/event_line.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/core/json_text.h"

enum {
        FIXED_MAX = 416, /* names, punctuation, clock and numbers of a line */
        DIGITS_MAX = 20, /* of a number, with its sign */
};

/* A text of the event with its quotes. */
struct quoted {
        const char *text;
        size_t len;
        char *escaped; /* owned; NULL = @text goes between quotes as it is */
};

/* Whether JSON writes each byte of @text as it is. */
static bool is_plain_json(const char *text)
{
        for (; *text; text++)
                if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
                        return false;
        return true;
}

/* @text NULL: stays empty. */
static struct quoted quote_text(const char *text)
{
        struct quoted q = { .text = text };
        json_t *j;

        if (text && !is_plain_json(text)) {
                j = json_text(text);
                q.text = q.escaped = json_dump_plain(j, JSON_ENCODE_ANY);
                json_decref(j);
        }
        q.len = q.text ? strlen(q.text) : 0;
        return q;
}

/* Appends a literal: the compiler makes it a few stores. */
#define PUT_LITERAL(p, literal) (memcpy(p, literal, sizeof(literal) - 1), (p) + sizeof(literal) - 1)

/* Each put_*() writes at @p, within the room that event_line_make() has allocated, and returns the
 * end. None checks the room. */
static char *put_bytes(char *p, const char *text, size_t n)
{
        memcpy(p, text, n);
        return p + n;
}

/* Writes a decimal number. printf() would be called several times a line. */
static char *put_digits(char *p, int64_t value)
{
        /* Negated as unsigned, because the least number has no positive counterpart. */
        uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
        char digits[DIGITS_MAX], *first = digits + sizeof(digits);

        do
                *--first = (char)('0' + rest % 10);
        while (rest /= 10);
        if (value < 0)
                *--first = '-';
        return put_bytes(p, first, (size_t)(digits + sizeof(digits) - first));
}

static char *put_quoted(char *p, const struct quoted *q)
{
        if (q->escaped)
                return put_bytes(p, q->text, q->len);
        *p++ = '"';
        p = put_bytes(p, q->text, q->len);
        *p++ = '"';
        return p;
}

/* Appends a member whose name depends on the kind of the event. */
static char *put_number_member(char *p, const char *name, int64_t value)
{
        p = PUT_LITERAL(p, ",\"");
        p = put_bytes(p, name, strlen(name));
        p = PUT_LITERAL(p, "\":");
        return put_digits(p, value);
}

/* Appends the wall clock, in UTC with microseconds. The date is formatted once for all events of a
 * second. */
static char *put_clock(struct event_clock *c, char *p)
{
        struct timespec now;
        char digits[] = ".000000Z\"";
        struct tm tm;

        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec != c->second) {
                c->second = now.tv_sec;
                gmtime_r(&now.tv_sec, &tm);
                strftime(c->text, sizeof(c->text), "%Y-%m-%dT%H:%M:%S", &tm);
        }
        for (long us = now.tv_nsec / 1000, i = 6; i > 0; i--, us /= 10)
                digits[i] = (char)('0' + us % 10);
        p = PUT_LITERAL(p, ",\"t\":\"");
        p = put_bytes(p, c->text, strlen(c->text));
        return put_bytes(p, digits, sizeof(digits) - 1);
}

/* Appends what the value of the event means, by its kind. */
static char *put_values(char *p, const struct event *e)
{
        /* The names are part of the public format of events.ndjson. Kinds without a name have no
         * number. */
        static const char *const names[EVENT_KINDS] = {
                [EVENT_SIGNAL] = "signal",        [EVENT_RUN_START] = "ranks",
                [EVENT_RUN_SHRUNK] = "ranks",     [EVENT_PUSH_START] = "bytes",
                [EVENT_NODE_PUSHED] = "bytes",    [EVENT_RANK_STARTED] = "pid",
                [EVENT_RANK_PROGRESS] = "step",   [EVENT_RESTART] = "attempt",
                [EVENT_STALLED] = "ms",           [EVENT_HANG] = "ms",
                [EVENT_NODE_SILENT] = "ms",       [EVENT_NODE_HEARD] = "ms",
                [EVENT_RUN_END] = "code",         [EVENT_DECISION] = "attempt",
                [EVENT_RANK_SLOW] = "percent",    [EVENT_ROLE_READY] = "ms",
                [EVENT_ROLE_RESTART] = "restart",
        };

        if (names[e->kind])
                p = put_number_member(p, names[e->kind], e->value);
        if (e->kind == EVENT_ROLE_READY)
                p = put_number_member(p, "instance", e->count);
        if (e->kind == EVENT_RESTART) {
                p = put_number_member(p, "spares", e->count);
                p = put_number_member(p, "ms", e->pause_ms);
        }
        if (e->kind == EVENT_RANK_PROGRESS && e->count)
                p = put_number_member(p, "total", e->count);
        if (e->kind == EVENT_RANK_PROGRESS && !e->count)
                p = PUT_LITERAL(p, ",\"total\":null");
        if (e->kind == EVENT_NODE_READY)
                p = e->value ? PUT_LITERAL(p, ",\"uploaded\":true")
                             : PUT_LITERAL(p, ",\"uploaded\":false");
        if (e->kind == EVENT_RANK_EXITED)
                p = put_number_member(p, e->value < 0 ? "signal" : "code", llabs(e->value));
        if (e->kind == EVENT_RUN_END && !e->count)
                p = PUT_LITERAL(p, ",\"hn\":null");
        if (e->kind == EVENT_RUN_END && e->count)
                p += sprintf(p, ",\"hn\":\"HN%03d\"", (int)e->count);
        return p;
}

/* Returns the role that the event is about, or whose rank; NULL = none. */
static const char *name_role(const struct listed_role *of_rank, const struct event *e)
{
        if (e->kind == EVENT_ROLE_WAITS || e->kind == EVENT_ROLE_STARTS)
                return e->brief;
        return of_rank ? of_rank->name : NULL;
}

char *event_line_make(struct event_clock *c, const char *run_id, const struct role_list *roles,
                      const struct event *e)
{
        const struct listed_role *entry = role_list_find(roles, e->rank);
        const char *name = event_name(e->kind);
        struct quoted host, text, run, role;
        char *line, *p;

        if (e->kind == EVENT_NODE_PHASE || e->kind == EVENT_PUSH_PROGRESS ||
            e->kind == EVENT_PUSH_HASHING)
                return NULL;
        host = quote_text(e->host);
        text = quote_text(e->text);
        run = quote_text(e->kind == EVENT_RUN_START ? run_id : NULL);
        role = quote_text(name_role(entry, e));
        /* Quotes of the texts are within FIXED_MAX. */
        line = p = xrealloc(NULL, FIXED_MAX + host.len + text.len + run.len + role.len, 1);
        p = PUT_LITERAL(p, "{\"v\":1");
        p = put_clock(c, p);
        p = put_number_member(p, "us", e->us);
        p = PUT_LITERAL(p, ",\"ev\":\"");
        p = put_bytes(p, name, strlen(name));
        *p++ = '"';
        if (run.text)
                p = put_quoted(PUT_LITERAL(p, ",\"run\":"), &run);
        if (e->kind == EVENT_RUN_START || e->kind == EVENT_RUN_SHRUNK ||
            e->kind == EVENT_PUSH_START)
                p = put_number_member(p, "nodes", e->count);
        if (e->node >= 0)
                p = put_number_member(p, "node", e->node);
        if (host.text)
                p = put_quoted(PUT_LITERAL(p, ",\"host\":"), &host);
        if (e->rank >= 0)
                p = put_number_member(p, "rank", e->rank);
        if (role.text) {
                p = put_quoted(PUT_LITERAL(p, ",\"role\":"), &role);
                if (entry)
                        p = put_number_member(p, "role_rank", role_list_number(entry, e->rank));
                if (entry && entry->replicas > 1)
                        p = put_number_member(p, "replica", entry->replica);
        }
        p = put_values(p, e);
        if (text.text)
                p = put_quoted(PUT_LITERAL(p, ",\"text\":"), &text);
        p = PUT_LITERAL(p, "}\n");
        *p = '\0';
        free(host.escaped);
        free(text.escaped);
        free(run.escaped);
        free(role.escaped);
        return line;
}
