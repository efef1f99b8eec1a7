/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_begin() sends commands over a connection of the pool, torch_end() gives it back or, after a
 * failure, closes it; every function below is such a pair.
 *
 * COMPARE_SET does most of the reading: with an expected value that is never written, the command
 * is a GET that does not wait, tells a missing key from an empty value, and does not make old
 * servers close the connection when the key is missing.
 *
 * However, COMPARE_SET does not wake clients that WAIT for the key in old servers, and in new
 * servers wakes them even when nothing was written. So torch_wait() interrupts the wait now and
 * then to look with CHECK, and looks again after each wake-up.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "client/torchrun/torch_private.h"
#include "wire/codec.h"

enum {
        CONNS_MAX = 4,
        FIRST_LOOK_MS = 20,
        LOOK_MS = 1000,
        LOOK_A_MS = 5000, /* costs a new connection there */
        POLL_MS = 100,
};

enum { TORCH_MARK = 16 };

static const char mark_begin[8] = "\0hn-set";

int64_t torch_soon(void)
{
        return deadline_in(HN_DEFAULT_TIMEOUT);
}

struct bytes torch_key(char *to, const struct torch_store *s, char kind, const char *fmt, ...)
{
        int n = snprintf(to, TORCH_KEY, "%s%c/", s->prefix, kind);
        va_list ap;

        va_start(ap, fmt);
        n += vsnprintf(to + n, TORCH_KEY - (size_t)n, fmt, ap);
        va_end(ap);
        return (struct bytes){ to, MIN((size_t)n, (size_t)TORCH_KEY - 1) };
}

/* --- connections ------------------------------------------------------------------------------ */

void torch_end(struct torch_store *s, struct torch_conn *conn, hn_status status)
{
        pthread_mutex_lock(&s->mutex);
        if (status == HN_OK) {
                conn->next = s->idle;
                s->idle = conn;
        } else {
                s->n_conns--;
        }
        pthread_cond_signal(&s->given);
        pthread_mutex_unlock(&s->mutex);
        if (status != HN_OK)
                torch_conn_close(conn);
}

/* Takes an idle connection, opens a new one, or waits for one to be given back. */
static hn_status borrow_conn(struct torch_store *s, int64_t deadline, struct torch_conn **ret)
{
        hn_status status = HN_OK;
        bool full;

        pthread_mutex_lock(&s->mutex);
        while (!s->idle && s->n_conns == CONNS_MAX && clock_ms() < deadline)
                deadline_cond_wait(&s->given, &s->mutex, deadline);
        full = !s->idle && s->n_conns == CONNS_MAX;
        *ret = s->idle;
        if (*ret)
                s->idle = (*ret)->next;
        else if (!full)
                s->n_conns++;
        pthread_mutex_unlock(&s->mutex);
        if (full)
                return set_error(HN_ERR_TIMEOUT, "no answer from the store of torchrun's agent");
        if (!*ret)
                status = torch_conn_open(&s->server, deadline, ret);
        if (status != HN_OK)
                torch_end(s, NULL, status);
        return status;
}

/* --- commands --------------------------------------------------------------------------------- */

/* Sends commands over a connection that is the caller's until torch_end(). */
hn_status torch_begin(struct torch_store *s, const struct tcpstore_command *c, unsigned n,
                      int64_t deadline, struct torch_conn **ret)
{
        struct buf b = BUF_INIT;
        hn_status status = HN_OK;

        for (unsigned i = 0; i < n; i++)
                if (!tcpstore_command_encode(&b, s->server.dialect, &c[i]))
                        status = set_error(HN_ERR_UNSUPPORTED, "torchrun's store has no %s",
                                           tcpstore_op_name(c[i].op));
        if (status == HN_OK)
                status = borrow_conn(s, deadline, ret);
        if (status == HN_OK) {
                status = torch_conn_send(*ret, &b, deadline);
                if (status != HN_OK)
                        torch_end(s, *ret, status);
        }
        buf_finish(&b);
        return status;
}

/* Sends commands and reads one number, the answer of the last. */
static hn_status ask_number(struct torch_store *s, const struct tcpstore_command *c, unsigned n,
                            int64_t *ret)
{
        struct torch_conn *conn;
        int64_t deadline = torch_soon(), number = 0;
        hn_status status = torch_begin(s, c, n, deadline, &conn);

        if (status != HN_OK)
                return status;
        status = torch_conn_read_i64(conn, &number, deadline);
        torch_end(s, conn, status);
        if (status == HN_OK && ret)
                *ret = number;
        return status;
}

hn_status torch_swap(struct torch_store *s, struct bytes key, struct bytes expect,
                     struct bytes desired, struct conn_answer *now)
{
        struct tcpstore_command c = {
                .op = TCPSTORE_COMPARE_SET, .key = key, .expect = expect, .value = desired
        };
        int64_t deadline = torch_soon();
        struct torch_conn *conn;
        hn_status status = torch_begin(s, &c, 1, deadline, &conn);

        if (status != HN_OK)
                return status;
        status = torch_conn_read_bytes(conn, &now->value, &now->len, deadline);
        torch_end(s, conn, status);
        return status;
}

hn_status torch_replace(struct torch_store *s, struct bytes key, const struct conn_answer *old,
                        struct buf *desired, bool *done)
{
        struct conn_answer now = CONN_ANSWER_INIT;
        struct bytes to;
        hn_status status;

        buf_append(desired, mark_begin, sizeof(mark_begin));
        put_u32(desired, s->job.rank);
        pthread_mutex_lock(&s->mutex);
        put_u32(desired, s->marks++);
        pthread_mutex_unlock(&s->mutex);
        if (buf_failed(desired))
                return set_error(HN_ERR_NOMEM, "out of memory");
        to = torch_bytes(desired);
        status = torch_swap(s, key, (struct bytes){ old->value, old->len }, to, &now);
        *done = status == HN_OK && now.len == to.len && memcmp(now.value, to.p, to.len) == 0;
        conn_answer_finish(&now);
        return status;
}

size_t torch_unmarked(const void *value, size_t len)
{
        const char *end = (const char *)value + len;

        if (len < TORCH_MARK || memcmp(end - TORCH_MARK, mark_begin, sizeof(mark_begin)) != 0)
                return len;
        return len - TORCH_MARK;
}

hn_status torch_read(struct torch_store *s, struct bytes key, struct conn_answer *ret)
{
        static const char never[] = "\0hn-nobody-writes-this";
        struct bytes unlikely = { never, sizeof(never) };
        hn_status status = torch_swap(s, key, unlikely, unlikely, ret);

        if (status != HN_OK)
                return status;
        ret->number = 0;
        if (ret->len == sizeof(never) && memcmp(ret->value, never, sizeof(never)) == 0) {
                conn_answer_finish(ret);
                ret->number = -1;
        }
        return HN_OK;
}

/* SET has no answer; the answer of the NUM_KEYS after it proves that the value is visible to other
 * connections. */
hn_status torch_set(struct torch_store *s, struct bytes key, struct bytes value)
{
        struct tcpstore_command c[] = { { .op = TCPSTORE_SET, .key = key, .value = value },
                                        { .op = TCPSTORE_NUM_KEYS } };

        return ask_number(s, c, 2, NULL);
}

/* The server closes the connection when the value is no number. */
hn_status torch_add(struct torch_store *s, struct bytes key, int64_t delta, int64_t *sum)
{
        struct tcpstore_command c = { .op = TCPSTORE_ADD, .key = key, .number = delta };
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status = ask_number(s, &c, 1, sum);
        char *end;

        if (status != HN_ERR_ABORTED || torch_read(s, key, &a) != HN_OK)
                return status;
        if (a.value) {
                strtoll(a.value, &end, 10);
                if (end == (char *)a.value)
                        status = set_error(HN_ERR_INVALID, "the value is no number");
        }
        conn_answer_finish(&a);
        return status;
}

hn_status torch_delete(struct torch_store *s, struct bytes key, int64_t *existed)
{
        struct tcpstore_command c = { .op = TCPSTORE_DELETE, .key = key };

        return ask_number(s, &c, 1, existed);
}

hn_status torch_check(struct torch_store *s, const struct bytes *keys, uint32_t n, bool *all)
{
        struct tcpstore_command c = { .op = TCPSTORE_CHECK,
                                      .keys = (struct bytes *)(uintptr_t)keys,
                                      .n_keys = n };
        unsigned char answer = TCPSTORE_NOT_READY;
        int64_t deadline = torch_soon();
        struct torch_conn *conn;
        hn_status status = torch_begin(s, &c, 1, deadline, &conn);

        if (status != HN_OK)
                return status;
        status = torch_conn_read(conn, &answer, 1, deadline);
        torch_end(s, conn, status);
        *all = answer == TCPSTORE_READY;
        return status;
}

/* Ends a WAIT. Dialect A has no command for this: the server forgets the wait with the connection.
 * The others answer one byte, after the byte of the WAIT if the wait was over already. */
static void cancel_torch_wait(struct torch_store *s, struct torch_conn *conn)
{
        struct tcpstore_command cancel = { .op = TCPSTORE_CANCEL_WAIT };
        int64_t deadline = torch_soon();
        unsigned char answer = TCPSTORE_WAIT_CANCELED;
        struct buf b = BUF_INIT;
        hn_status status = HN_ERR_UNSUPPORTED;

        if (tcpstore_command_encode(&b, s->server.dialect, &cancel))
                status = torch_conn_send(conn, &b, deadline);
        if (status == HN_OK)
                status = torch_conn_read(conn, &answer, 1, deadline);
        if (status == HN_OK && answer == TCPSTORE_STOP_WAITING)
                status = torch_conn_read(conn, &answer, 1, deadline);
        if (status == HN_OK && answer != TCPSTORE_WAIT_CANCELED)
                status = HN_ERR_PROTOCOL;
        buf_finish(&b);
        torch_end(s, conn, status);
}

/* Waiting threads leave one connection free, or the awaited keys could not be written. */
static bool begin_waiting(struct torch_store *s)
{
        bool may;

        pthread_mutex_lock(&s->mutex);
        may = s->n_waiting < CONNS_MAX - 1;
        s->n_waiting += may;
        pthread_mutex_unlock(&s->mutex);
        return may;
}

/* Waits until the server says that all keys exist, or @until. */
static hn_status wait_once(struct torch_store *s, const struct bytes *keys, uint32_t n,
                           int64_t until)
{
        struct tcpstore_command c = { .op = TCPSTORE_WAIT,
                                      .keys = (struct bytes *)(uintptr_t)keys,
                                      .n_keys = n };
        unsigned char answer = TCPSTORE_STOP_WAITING;
        struct torch_conn *conn;
        hn_status status = torch_begin(s, &c, 1, torch_soon(), &conn);

        if (status != HN_OK)
                return status;
        status = torch_conn_read(conn, &answer, 1, until);
        if (status == HN_ERR_TIMEOUT) {
                cancel_torch_wait(s, conn);
                return HN_OK;
        }
        if (answer != TCPSTORE_STOP_WAITING)
                status = set_error(HN_ERR_PROTOCOL,
                                   "unexpected answer of torchrun's agent to a WAIT: %d", answer);
        torch_end(s, conn, status);
        return status;
}

hn_status torch_wait(struct torch_store *s, const struct bytes *keys, uint32_t n, int64_t deadline)
{
        int64_t look = FIRST_LOOK_MS, most = s->server.dialect == TCPSTORE_A ? LOOK_A_MS : LOOK_MS;
        bool all = false;
        hn_status status = torch_check(s, keys, n, &all);

        for (; status == HN_OK && !all && clock_ms() < deadline; look = MIN(2 * look, most)) {
                int64_t now = clock_ms(), until = MIN(deadline, now + look);

                if (begin_waiting(s)) {
                        status = wait_once(s, keys, n, until);
                        pthread_mutex_lock(&s->mutex);
                        s->n_waiting--;
                        pthread_mutex_unlock(&s->mutex);
                } else {
                        poll(NULL, 0, (int)MIN(until - now, (int64_t)POLL_MS));
                }
                if (status == HN_OK)
                        status = torch_check(s, keys, n, &all);
        }
        if (status == HN_OK && !all)
                return set_error(HN_ERR_NOT_FOUND, "not there");
        return status;
}

/* A key deleted between the wait and the read is waited for again. */
hn_status torch_fetch(struct torch_store *s, struct bytes key, int64_t deadline,
                      struct conn_answer *ret)
{
        hn_status status;

        do {
                status = torch_wait(s, &key, 1, deadline);
                if (status == HN_OK)
                        status = torch_read(s, key, ret);
        } while (status == HN_OK && ret->number < 0);
        return status;
}
