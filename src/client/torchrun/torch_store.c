/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c hands each request of the library to torch_store_call(), and dispatch_torch_request() to
 * the function of its op. Most ops are one command of torch_command.c. APPEND and COMPARE_SET are
 * loops: read the value, swap in the new one with a mark, repeat when another client was faster;
 * the mark tells whose swap it was. Reads cut the mark off. Collectives are in torch_collective.c,
 * HELLO and TOPOLOGY in torch_topology.c. Connections are shared by the threads (torch_begin()).
 */
#include "client/torchrun/torch_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "client/torchrun/torch_private.h"
#include "wire/store_msg.h"

#define USER_KEY_OF(s, key) TORCH_KEY_OF((s), 'k', "%.*s", (int)(key).len, (const char *)(key).p)

/* --- requests --------------------------------------------------------------------------------- */

static hn_status reject_size(size_t len)
{
        return set_error(HN_ERR_INVALID,
                         "torchrun's store takes values of at most %d bytes, not %zu",
                         TORCH_VALUE_MAX, len);
}

static hn_status call_add(struct torch_store *s, const struct store_request *req,
                          struct conn_answer *ret)
{
        hn_status status = torch_add(s, USER_KEY_OF(s, req->key), req->number, &ret->number);

        if (status == HN_ERR_INVALID)
                set_error(status, "the value of `%s` is no number", KEY_FORMAT(req->key));
        return status;
}

/* APPEND and COMPARE_SET: both read the value and swap in a new one, unless COMPARE_SET finds
 * another value than expected. */
static hn_status call_replace(struct torch_store *s, const struct store_request *req,
                              struct conn_answer *ret)
{
        struct bytes key = USER_KEY_OF(s, req->key);
        bool appends = req->op == STORE_APPEND, done = false;
        hn_status status = HN_OK;

        while (status == HN_OK && !done) {
                struct conn_answer old = CONN_ANSWER_INIT;
                struct buf desired = BUF_INIT;
                size_t len, size = req->value.len;

                status = torch_read(s, key, &old);
                len = torch_unmarked(old.value, old.len);
                if (appends) {
                        buf_append(&desired, old.value, len);
                        size += len;
                        ret->number = (int64_t)size;
                } else {
                        done = len != req->expect.len ||
                               (len && memcmp(old.value, req->expect.p, len) != 0);
                        ret->number = done ? old.number : 1;
                }
                buf_append(&desired, req->value.p, req->value.len);
                if (status == HN_OK && size > TORCH_VALUE_MAX)
                        status = reject_size(size);
                if (status == HN_OK && !done)
                        status = torch_replace(s, key, &old, &desired, &done);
                buf_finish(&desired);
                conn_answer_finish(&old);
        }
        return status;
}

static hn_status call_get(struct torch_store *s, const struct store_request *req,
                          int64_t timeout_ms, struct conn_answer *ret)
{
        hn_status status = torch_fetch(s, USER_KEY_OF(s, req->key), deadline_in(timeout_ms), ret);

        if (status == HN_OK) {
                ret->len = torch_unmarked(ret->value, ret->len);
                ((char *)ret->value)[ret->len] = '\0';
        }
        if (status == HN_ERR_NOT_FOUND)
                return set_error(HN_ERR_TIMEOUT, "key `%s` is not there after %g s",
                                 KEY_FORMAT(req->key), (double)deadline_span(timeout_ms) / 1000);
        return status;
}

/* Sets the error that names the missing keys. */
static hn_status missing_keys(struct torch_store *s, const struct bytes *keys,
                              const struct store_request *req, int64_t timeout_ms)
{
        uint32_t missing = 0, first = 0;
        bool there;

        for (uint32_t i = 0; i < req->n_keys; i++) {
                if (torch_check(s, &keys[i], 1, &there) != HN_OK)
                        break;
                if (!there && missing++ == 0)
                        first = i;
        }
        if (missing > 1)
                return set_error(HN_ERR_TIMEOUT, "%u keys, `%s` first, are not there after %g s",
                                 missing, KEY_FORMAT(req->keys[first]),
                                 (double)deadline_span(timeout_ms) / 1000);
        return set_error(HN_ERR_TIMEOUT, "key `%s` is not there after %g s",
                         KEY_FORMAT(req->keys[first]), (double)deadline_span(timeout_ms) / 1000);
}

/* Checks for keys, or waits until all are there. */
static hn_status call_torch_keys(struct torch_store *s, const struct store_request *req,
                                 int64_t timeout_ms, struct conn_answer *ret)
{
        struct bytes *keys = malloc(req->n_keys * (sizeof(*keys) + TORCH_KEY));
        char *names = (char *)(keys + req->n_keys);
        hn_status status;
        bool all = false;

        if (!keys)
                return set_error(HN_ERR_NOMEM, "out of memory");
        for (uint32_t i = 0; i < req->n_keys; i++)
                keys[i] = torch_key(names + (size_t)i * TORCH_KEY, s, 'k', "%.*s",
                                    (int)req->keys[i].len, (const char *)req->keys[i].p);
        if (req->op == STORE_CHECK) {
                status = torch_check(s, keys, req->n_keys, &all);
                ret->number = all;
        } else {
                status = torch_wait(s, keys, req->n_keys, deadline_in(timeout_ms));
        }
        if (status == HN_ERR_NOT_FOUND)
                status = missing_keys(s, keys, req, timeout_ms);
        free(keys);
        return status;
}

/* Counts the keys with @prefix in the answer to LIST_KEYS. */
static hn_status count_list(struct torch_conn *conn, struct bytes prefix, int64_t deadline,
                            int64_t *ret)
{
        int64_t n = 0;
        hn_status status = torch_conn_read_i64(conn, &n, deadline);
        void *key;
        size_t len;

        for (*ret = 0; n > 0 && status == HN_OK; n--) {
                status = torch_conn_read_bytes(conn, &key, &len, deadline);
                if (status != HN_OK)
                        break;
                *ret += len >= prefix.len && memcmp(key, prefix.p, prefix.len) == 0;
                free(key);
        }
        return status;
}

/* Servers before LIST_KEYS close the connection. */
static hn_status call_num_keys(struct torch_store *s, const struct store_request *req,
                               struct conn_answer *ret)
{
        struct tcpstore_command list = { .op = TCPSTORE_LIST_KEYS };
        int64_t deadline = torch_soon();
        struct torch_conn *conn;
        hn_status status = torch_begin(s, &list, 1, deadline, &conn);

        if (status == HN_OK) {
                status = count_list(conn, USER_KEY_OF(s, req->key), deadline, &ret->number);
                torch_end(s, conn, status);
        }
        if (status == HN_ERR_ABORTED || status == HN_ERR_UNSUPPORTED)
                status = set_error(HN_ERR_UNSUPPORTED,
                                   "torchrun's store cannot count keys before PyTorch 2.10");
        return status;
}

/* --- the reason of a failure ------------------------------------------------------------------ */

static void put_json(struct buf *b, struct bytes text)
{
        const unsigned char *p = text.p;

        for (size_t i = 0; i < text.len; i++) {
                if (p[i] == '"' || p[i] == '\\')
                        buf_printf(b, "\\%c", p[i]);
                else if (p[i] < ' ')
                        buf_printf(b, "\\u%04x", p[i]);
                else
                        buf_append(b, &p[i], 1);
        }
}

/*
 * The format of torch.distributed.elastic's @record. torchrun shows only the call stack of a failed
 * process, so the sentence is put there, too.
 */
static void format_report(struct buf *b, struct bytes kind, struct bytes text)
{
        struct buf sentence = BUF_INIT;
        struct bytes s;

        buf_append(&sentence, kind.p, kind.len);
        if (kind.len)
                buf_appends(&sentence, ": ");
        buf_append(&sentence, text.p, text.len);
        s = (struct bytes){ buf_data(&sentence), buf_len(&sentence) };
        buf_appends(b, "{\"message\": {\"message\": \"");
        put_json(b, s);
        buf_appends(b, "\", \"extraInfo\": {\"py_callstack\": \"");
        put_json(b, s);
        buf_printf(b, "\", \"timestamp\": \"%lld\"}}}\n", (long long)time(NULL));
        buf_finish(&sentence);
}

/* Writes the error file of torchrun, which then shows the text as the root cause. */
static hn_status write_report(struct torch_store *s, struct bytes kind, struct bytes text)
{
        struct buf b = BUF_INIT;
        FILE *f = s->error_file ? fopen(s->error_file, "we") : NULL;
        bool good;

        format_report(&b, kind, text);
        good = f && !buf_failed(&b) && fwrite(buf_data(&b), 1, buf_len(&b), f) == buf_len(&b);
        if (f && fclose(f) != 0)
                good = false;
        buf_finish(&b);
        if (!good && s->error_file)
                return set_error(HN_ERR_SYSTEM, "cannot write TORCHELASTIC_ERROR_FILE=%s",
                                 s->error_file);
        return HN_OK;
}

/* Maps a request of libhnlaunch to calls of PyTorch's store. */
static hn_status dispatch_torch_request(struct torch_store *s, const struct store_request *req,
                                        int64_t timeout_ms, struct conn_answer *ret)
{
        switch (req->op) {
        case STORE_HELLO:
                return torch_hello(s);
        case STORE_SET:
                if (req->value.len > TORCH_VALUE_MAX)
                        return reject_size(req->value.len);
                return torch_set(s, USER_KEY_OF(s, req->key), req->value);
        case STORE_ADD:
                return call_add(s, req, ret);
        case STORE_APPEND:
        case STORE_COMPARE_SET:
                return call_replace(s, req, ret);
        case STORE_DELETE:
                return torch_delete(s, USER_KEY_OF(s, req->key), &ret->number);
        case STORE_NUM_KEYS:
                return call_num_keys(s, req, ret);
        case STORE_TOPOLOGY:
                return torch_topology(s, timeout_ms, ret);
        case STORE_GET:
                return call_get(s, req, timeout_ms, ret);
        case STORE_CHECK:
        case STORE_WAIT:
                return call_torch_keys(s, req, timeout_ms, ret);
        case STORE_DRAINED:
                return HN_OK; /* torchrun drains no host */
        case STORE_ABORT:
                return write_report(s, (struct bytes){ 0 }, req->text);
        default:
                return torch_collective_call(s, req, timeout_ms, ret);
        }
}

static hn_status torch_store_call(void *s, const struct store_request *req, int64_t timeout_ms,
                                  struct conn_answer *ret)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status = dispatch_torch_request(s, req, timeout_ms, &a);

        if (status == HN_OK && ret)
                *ret = a;
        else
                conn_answer_finish(&a);
        return status;
}

static hn_status torch_store_post(void *s, const struct store_request *req)
{
        return req->op == STORE_REPORT_ERROR ? write_report(s, req->key, req->text) : HN_OK;
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void torch_store_close(void *store)
{
        struct torch_store *s = store;
        struct torch_round *r, *next;

        while (s->idle) {
                struct torch_conn *conn = s->idle;

                s->idle = conn->next;
                torch_conn_close(conn);
        }
        for (r = s->rounds; r; r = next) {
                next = r->next;
                free(r);
        }
        free(s->error_file);
        pthread_cond_destroy(&s->given);
        pthread_mutex_destroy(&s->mutex);
        free(s);
}

hn_status torch_store_open(const struct torch_job *job, int64_t timeout_ms, struct conn **ret)
{
        static const struct conn_ops ops = { .call = torch_store_call,
                                             .post = torch_store_post,
                                             .close = torch_store_close };
        struct torch_store *s = calloc(1, sizeof(*s));
        hn_status status;

        if (!s)
                return set_error(HN_ERR_NOMEM, "out of memory");
        pthread_mutex_init(&s->mutex, NULL);
        deadline_cond_init(&s->given);
        s->job = *job;
        s->error_file = job->error_file ? strdup(job->error_file) : NULL;
        snprintf(s->server.host, sizeof(s->server.host), "%s", job->addr);
        snprintf(s->server.port, sizeof(s->server.port), "%s", job->port);
        snprintf(s->prefix, sizeof(s->prefix), "hn/%.400s/%u/%d/", job->run_id, job->world_size,
                 job->restart);
        status = torch_conn_greet(&s->server, deadline_in(timeout_ms), &s->idle);
        s->n_conns = 1;
        if (status == HN_OK)
                return conn_open_ops(&ops, s, ret);
        torch_store_close(s);
        return status;
}
