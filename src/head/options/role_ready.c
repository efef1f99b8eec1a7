/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value of --ready is KIND:REST, and `start` alone. Each kind has a function that checks the rest
 * and keeps the object of the question: a port, a path, a key or an expression. tcp:, http: and
 * file: are asked by the agents (role_ready_fill()); key: and line: are seen by the head, in the
 * store and in the output.
 */
#include "head/options/role_ready.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/core/pattern.h"
#include "wire/port_name.h"

/* Whether the text is a port from 1 to 65535, or the name of a reserved port ({port:NAME}). */
static bool is_port(const char *text, size_t len)
{
        unsigned number = 0;

        if (port_name_is_valid(text, len))
                return true;
        for (size_t i = 0; i < len && number <= UINT16_MAX; i++)
                /* Any other character makes the number too large, which ends the loop. */
                number = isdigit((unsigned char)text[i]) ? number * 10 + (unsigned)(text[i] - '0')
                                                         : UINT16_MAX + 1U;
        return number && number <= UINT16_MAX;
}

/* Whether the text can stand in a request of HTTP as it is. What follows two slashes is a host.
 * Blanks and control characters would end the line of the request. */
static bool is_request_path(const char *text)
{
        if (*text != '/' || text[1] == '/' || strlen(text) >= READY_PATH_MAX)
                return false;
        while (*text > ' ' && *text <= '~')
                text++;
        return !*text;
}

static int read_port_form(struct role_ready *r, const char *text, struct error *err)
{
        if (!is_port(text, strlen(text)))
                return err_set(err, EINVAL,
                               "tcp: needs a port, 1 to 65535 or a name, such as tcp:8000 or "
                               "tcp:http, got `%s`",
                               text);
        r->port = xstrdup(text);
        return 0;
}

static int read_request_form(struct role_ready *r, const char *text, struct error *err)
{
        size_t len = strcspn(text, "/");

        if (!is_request_path(text + len) || (len && !is_port(text, len)))
                return err_set(err, EINVAL,
                               "http: needs a path, or a port and a path, such as http:/health or "
                               "http:8000/health, got `%s`",
                               text);
        /* Without a port, the port reserved as {port:http}. */
        r->port = len ? xstrndup(text, len) : xstrdup("http");
        r->text = xstrdup(text + len);
        return 0;
}

static int read_file_form(struct role_ready *r, const char *text, struct error *err)
{
        if (!*text || strlen(text) >= READY_PATH_MAX)
                return err_set(err, EINVAL, "file: needs a path on the node, such as file:/tmp/up");
        r->text = xstrdup(text);
        return 0;
}

static int read_key_form(struct role_ready *r, const char *text, struct error *err)
{
        if (!*text)
                return err_set(err, EINVAL, "key: needs the name of a key, such as key:ready");
        r->text = xstrdup(text);
        return 0;
}

static int read_line_form(struct role_ready *r, const char *text, struct error *err)
{
        struct error why;
        struct timed_pattern re;

        if (!*text || timed_pattern_open(&re, text, &why) < 0)
                return err_set(err, EINVAL,
                               "line: needs an extended regular expression, as for grep -E, got "
                               "`%s`: %s",
                               text, *text ? why.text : "it is empty");
        /* The text is compiled again where lines are read. */
        timed_pattern_close(&re);
        r->text = xstrdup(text);
        return 0;
}

static const struct {
        const char *word; /* in front of the colon */
        enum ready_kind kind;
        int (*read)(struct role_ready *r, const char *text, struct error *err);
} ready_kinds[] = {
        { "tcp", READY_TCP, read_port_form },   { "http", READY_HTTP, read_request_form },
        { "file", READY_FILE, read_file_form }, { "key", READY_KEY, read_key_form },
        { "line", READY_LINE, read_line_form },
};

OPTION_PARSER(value_ready)
{
        size_t len = strcspn(text, ":");
        /* --ready-timeout may have come before, and stays. */
        struct role_ready *to = field, r = { .timeout_ms = to->timeout_ms };
        size_t i = 0;

        (void)def;
        while (i < ARRAY_SIZE(ready_kinds) &&
               (strlen(ready_kinds[i].word) != len || memcmp(ready_kinds[i].word, text, len) != 0))
                i++;
        if (i < ARRAY_SIZE(ready_kinds) && text[len]) {
                r.kind = ready_kinds[i].kind;
                if (ready_kinds[i].read(&r, text + len + 1, err) < 0)
                        return -EINVAL;
        } else if (strcmp(text, "start") != 0) {
                return err_set(err, EINVAL,
                               "must be start, tcp:PORT, http:PATH, file:PATH, key:NAME or "
                               "line:REGEX, got `%s`",
                               text);
        }
        role_ready_finish(to);
        *to = r;
        return 0;
}

const char *role_ready_port(const struct role_ready *r)
{
        return r->port && port_name_is_valid(r->port, strlen(r->port)) ? r->port : NULL;
}

void role_ready_fill(const struct role_ready *r, bool of_replicas, struct launch_ready *to)
{
        /* READY_KEY and READY_LINE are no work of an agent. */
        if (r->kind == READY_START || r->kind > READY_FILE)
                return;
        to->kind = (uint8_t)r->kind;
        to->is_first_only = of_replicas;
        to->port = xstrdup(r->port ? r->port : "");
        to->path = xstrdup(r->text ? r->text : "");
}

void role_ready_finish(struct role_ready *r)
{
        free(r->port);
        free(r->text);
        r->port = r->text = NULL;
}
