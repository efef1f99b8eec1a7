/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text and ranks are kept per thread, so that a thread reads the error of its own last call.
 */
#include "client/core/last_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of many ranks the first are kept, and hn_last_error_ranks() returns the number of all. */
enum { RANKS_KEPT = 256 };

static _Thread_local struct {
        char text[1024];
        int ranks[RANKS_KEPT];
        int n;
} last;

static const struct {
        const char *name, *text;
} statuses[] = {
        [-HN_OK] = { "HN_OK", "success" },
        [-HN_ERR_INVALID] = { "HN_ERR_INVALID", "invalid argument" },
        [-HN_ERR_NOMEM] = { "HN_ERR_NOMEM", "out of memory" },
        [-HN_ERR_SYSTEM] = { "HN_ERR_SYSTEM", "a system call failed" },
        [-HN_ERR_NOT_LAUNCHED] = { "HN_ERR_NOT_LAUNCHED", "not started by hnlaunch" },
        [-HN_ERR_TIMEOUT] = { "HN_ERR_TIMEOUT", "timed out" },
        [-HN_ERR_NOT_FOUND] = { "HN_ERR_NOT_FOUND", "no such key" },
        [-HN_ERR_TRUNCATED] = { "HN_ERR_TRUNCATED", "the buffer is too small" },
        [-HN_ERR_PEER] = { "HN_ERR_PEER", "another worker failed" },
        [-HN_ERR_ABORTED] = { "HN_ERR_ABORTED", "the launcher is gone" },
        [-HN_ERR_AUTH] = { "HN_ERR_AUTH", "not authorized" },
        [-HN_ERR_PROTOCOL] = { "HN_ERR_PROTOCOL", "protocol error" },
        [-HN_ERR_NOT_MEMBER] = { "HN_ERR_NOT_MEMBER", "not a member of the group" },
        [-HN_ERR_MISMATCH] = { "HN_ERR_MISMATCH", "the members of a group disagree" },
        [-HN_ERR_BACKEND] = { "HN_ERR_BACKEND", "the collectives backend failed" },
        [-HN_ERR_UNSUPPORTED] = { "HN_ERR_UNSUPPORTED", "not available here" },
        [-HN_ERR_NO_SPACE] = { "HN_ERR_NO_SPACE", "the store of the job is full" },
};

const char *hn_strerror(hn_status status)
{
        int i = -(int)status;

        return i >= 0 && i < (int)ARRAY_SIZE(statuses) ? statuses[i].text : "unknown status";
}

const char *hn_status_name(hn_status status)
{
        int i = -(int)status;

        return i >= 0 && i < (int)ARRAY_SIZE(statuses) ? statuses[i].name : "HN_ERR_UNKNOWN";
}

hn_status set_error(hn_status status, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(last.text, sizeof(last.text), fmt, ap);
        va_end(ap);
        last.n = 0;
        return status;
}

hn_status hn_set_error(hn_status status, const char *fmt, ...)
{
        char text[sizeof(last.text)];
        va_list ap;

        /* The arguments may hold hn_last_error() itself. */
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        /* The ranks stay: the sentence is about the same failure. */
        memcpy(last.text, text, sizeof(text));
        return status;
}

void set_error_ranks(const uint32_t *ranks, uint32_t n)
{
        for (uint32_t i = 0; i < n && i < RANKS_KEPT; i++)
                last.ranks[i] = (int)ranks[i];
        last.n = (int)MIN(n, (uint32_t)RANKS_KEPT);
}

const char *hn_last_error(void)
{
        return last.text;
}

int hn_last_error_ranks(int *ranks, int cap)
{
        for (int i = 0; i < last.n && i < cap; i++)
                ranks[i] = last.ranks[i];
        return last.n;
}

int hn_version(void)
{
        return HN_VERSION_NUM;
}
