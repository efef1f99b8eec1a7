/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client_events: events of the launcher, and reports to the launcher
 *
 * Reports without an answer (progress, errors) go through conn_post(), the others through
 * conn_call() with the default timeout. Texts are cut at STORE_TEXT_MAX. hn_draining() looks for
 * the key STORE_DRAIN_KEY in the default store, so a rank needs no event to learn of a drain.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/core/last_error.h"
#include "client/process.h"

hn_status hn_event_poll(hn_event *event, int64_t timeout_ms)
{
        struct process *s = process_get();
        hn_event got = { 0 };
        hn_status status;

        if (!s)
                return HN_ERR_NOT_LAUNCHED;
        /* The size tells which version of the struct the program was compiled with. */
        if (!event || event->size < sizeof(*event))
                return set_error(HN_ERR_INVALID, "hn_event.size is not set");
        status = conn_event(s->conn, &got, timeout_ms);
        /* Also on a timeout, so that a loop needs no look at the status. */
        event->kind = HN_EVENT_NONE;
        if (status == HN_OK)
                *event = got;
        return status;
}

hn_status hn_health(int64_t timeout_ms)
{
        struct process *s = process_get();

        return s ? conn_health(s->conn, timeout_ms) : HN_ERR_NOT_LAUNCHED;
}

/* Returns at most @max bytes of @text; NULL is an empty text. */
static struct bytes limit_text(const char *text, size_t max)
{
        return (struct bytes){ text, text ? strnlen(text, max) : 0 };
}

hn_status hn_abort(int code, const char *fmt, ...)
{
        struct process *s = process_get();
        struct store_request req = { .op = STORE_ABORT, .number = code };
        char text[STORE_TEXT_MAX];
        va_list ap;

        if (!s)
                return HN_ERR_NOT_LAUNCHED;
        if (code < 1 || code > 255)
                return set_error(HN_ERR_INVALID, "the exit code must be 1 to 255, got %d", code);
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        req.text = bytes_of(text);
        /* A world of one has no launcher to tell. */
        return s->singleton ? HN_OK : conn_call(s->conn, &req, HN_DEFAULT_TIMEOUT, NULL);
}

hn_status hn_report_error(const char *kind, const char *fmt, ...)
{
        struct process *s = process_get();
        struct store_request req = { .op = STORE_REPORT_ERROR,
                                     .key = limit_text(kind, HN_KEY_MAX) };
        char text[STORE_TEXT_MAX];
        va_list ap;

        if (!s)
                return HN_ERR_NOT_LAUNCHED;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        req.text = bytes_of(text);
        return conn_post(s->conn, &req);
}

/* Returns 1 or 0, or a negative status. */
int hn_draining(void)
{
        const char *key = STORE_DRAIN_KEY;
        int present = 0;
        hn_status status = hn_store_check(hn_store_default(), &key, 1, &present);

        return status == HN_OK ? present : (int)status;
}

hn_status hn_drained(void)
{
        struct process *s = process_get();
        struct store_request req = { .op = STORE_DRAINED };

        if (!s)
                return HN_ERR_NOT_LAUNCHED;
        return s->singleton ? HN_OK : conn_call(s->conn, &req, HN_DEFAULT_TIMEOUT, NULL);
}

hn_status hn_progress(int64_t step, int64_t total, const char *note)
{
        struct process *s = process_get();
        struct store_request req = { .op = STORE_PROGRESS,
                                     .number = step,
                                     .total = total,
                                     .text = limit_text(note, STORE_TEXT_MAX) };

        if (!s)
                return HN_ERR_NOT_LAUNCHED;
        if (step < 0 || total < 0)
                return set_error(HN_ERR_INVALID,
                                 "step and total must not be negative: %lld of %lld",
                                 (long long)step, (long long)total);
        return conn_post(s->conn, &req);
}
