/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read twice: for the newest request of each node, then for the records of these
 * requests. A record's time is moved by the node's offset. name_key() interns keys: an event has a
 * number in place of a text. A node's records of ranks planned elsewhere are left out.
 */
#include "head/record/trace_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/fd.h"
#include "base/memory.h"
#include "wire/msg.h"
#include "wire/store_msg.h"

enum {
        FILE_MAX = 128 << 20,
        KEYS_MAX = 65536,
        LINE_MAX_BYTES = 128, /* five numbers */
};

/* An entry of the hash of keys. */
struct key_name {
        uint32_t index;
        UT_hash_handle hh;
        char text[];
};

/* State of trace_log_read(). */
struct log_reader {
        struct trace_log *log;
        const struct trace_places *places;
        struct key_name *names;
        uint32_t *newest; /* by node: number of the newest request */
        size_t samples_cap;
};

/* The line before a piece, and the piece. */
struct log_piece {
        uint32_t number;
        int node;
        int64_t offset_us, error_us;
        const char *bytes;
        size_t len;
};

/* --- pieces ----------------------------------------------------------------------------------- */

/* Reads the line of a piece. Returns the end of the piece at @at, or NULL: the piece is cut, and
 * nothing behind can be found. */
static const char *read_piece_line(struct log_piece *p, const char *at, const char *end)
{
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        char line[LINE_MAX_BYTES];
        long long offset, error;
        size_t n = nl ? (size_t)(nl - at) : 0;
        unsigned number;

        if (!nl || n >= sizeof(line))
                return NULL;
        memcpy(line, at, n);
        line[n] = '\0';
        if (sscanf(line, "%u %d %lld %lld %zu", &number, &p->node, &offset, &error, &p->len) != 5 ||
            p->len > TRACE_PIECE || (size_t)(end - nl) < p->len + 2)
                return NULL;
        p->number = number;
        p->offset_us = offset;
        p->error_us = error;
        p->bytes = nl + 1;
        return p->bytes + p->len + 1;
}

/* Returns the index of a key, the same for equal keys; 0 = none, or too many. */
static uint32_t name_key(struct log_reader *r, const void *data, size_t len)
{
        CLEANUP(free_textp) char *text = len ? xstrndup(data, len) : NULL;
        struct trace_log *log = r->log;
        size_t n = text ? strlen(text) : 0;
        struct key_name *k;

        if (!n)
                return 0;
        HASH_FIND(hh, r->names, text, n, k);
        if (k)
                return k->index;
        if (log->n_keys >= KEYS_MAX)
                return 0;
        k = xcalloc(1, sizeof(*k) + n + 1);
        memcpy(k->text, text, n);
        k->index = (uint32_t)log->n_keys;
        HASH_ADD_KEYPTR(hh, r->names, k->text, n, k);
        log->keys = xrealloc(log->keys, log->n_keys + 1, sizeof(*log->keys));
        log->keys[log->n_keys++] = STEAL(&text);
        return k->index;
}

/* A node may tell of its own ranks only: node_of has the final places, also after a restart
 * elsewhere. */
static bool is_of_node(const struct log_reader *r, uint64_t rank, int node)
{
        return rank < r->places->n_ranks && r->places->node_of[rank] == node;
}

/* Keeps a sample of a node, and the state of each rank in the sample as an event. */
static void add_sample(struct log_reader *r, int node, int64_t us, const struct trace_record *rec)
{
        const struct frame f = { .type = MSG_SAMPLED,
                                 .body = rec->data,
                                 .len = (uint32_t)rec->len };
        struct trace_log *log = r->log;
        struct sample s;

        if (sample_decode(&s, &f, NULL) < 0)
                return;
        for (uint32_t i = 0; i < s.n_ranks; i++)
                if (is_of_node(r, s.ranks[i].rank, node))
                        trace_log_add(log, &(struct trace_event){ .us = us,
                                                                  .rank = (uint32_t)s.ranks[i].rank,
                                                                  .kind = TRACE_SAMPLE,
                                                                  .number = s.ranks[i].cpu_percent,
                                                                  .more = s.ranks[i].state });
        if (log->n_samples == r->samples_cap)
                log->samples = xrealloc(log->samples,
                                        r->samples_cap = MAX(2 * r->samples_cap, (size_t)256),
                                        sizeof(*log->samples));
        log->samples[log->n_samples++] = (struct node_sample){ us, node, s };
}

/* Adds the records of a piece, with times on the head's clock. Records about ranks of other nodes
 * are dropped. */
static void read_records(struct log_reader *r, const struct log_piece *p)
{
        struct trace_node *node = &r->log->nodes[p->node];
        struct trace_record rec;
        struct trace_reader t;

        if (!trace_open(&t, p->bytes, p->len))
                return;
        node->there = true;
        node->error_us = p->error_us;
        while (trace_next(&t, &rec)) {
                int64_t us = (int64_t)rec.us - p->offset_us;

                if (rec.kind == TRACE_SAMPLE)
                        add_sample(r, p->node, us, &rec);
                else if (is_of_node(r, rec.rank, p->node))
                        trace_log_add(r->log,
                                      &(struct trace_event){ .us = us,
                                                             .rank = rec.rank,
                                                             .key = name_key(r, rec.data, rec.len),
                                                             .kind = rec.kind,
                                                             .number = rec.number,
                                                             .more = rec.more });
        }
}

/* Calls @take for each piece of a known node, until a piece is cut. */
static void each_piece(struct log_reader *r, const char *data, size_t len,
                       void (*take)(struct log_reader *r, const struct log_piece *p))
{
        const char *at = data, *end = data + len;
        struct log_piece p;

        while (at < end && (at = read_piece_line(&p, at, end)))
                if (p.node >= 0 && (size_t)p.node < r->places->n_nodes)
                        take(r, &p);
}

/* First pass: the newest request of the node. */
static void note_number(struct log_reader *r, const struct log_piece *p)
{
        r->newest[p->node] = MAX(r->newest[p->node], p->number);
}

/* Second pass. A request may have several pieces, all with its number. */
static void read_newest(struct log_reader *r, const struct log_piece *p)
{
        if (p->number == r->newest[p->node])
                read_records(r, p);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* By time, then by rank, so that equal files give equal reports. */
static int compare_events(const void *a, const void *b)
{
        const struct trace_event *x = a, *y = b;

        if (x->us != y->us)
                return x->us < y->us ? -1 : 1;
        return (x->rank > y->rank) - (x->rank < y->rank);
}

void trace_log_sort(struct trace_log *log)
{
        if (log->n)
                qsort(log->v, log->n, sizeof(*log->v), compare_events);
}

void trace_log_add(struct trace_log *log, const struct trace_event *e)
{
        if (log->n == log->cap)
                log->v = xrealloc(log->v, log->cap = MAX(2 * log->cap, (size_t)1024),
                                  sizeof(*log->v));
        log->v[log->n++] = *e;
}

void trace_log_drop_before(struct trace_log *log, int64_t us)
{
        size_t first = 0;

        while (first < log->n && log->v[first].us < us)
                first++;
        if (first)
                memmove(log->v, log->v + first, (log->n - first) * sizeof(*log->v));
        log->n -= first;
}

void trace_log_read(struct trace_log *log, const void *data, size_t len,
                    const struct trace_places *places)
{
        struct log_reader r = { .log = log, .places = places };
        struct key_name *k, *next;

        *log = (struct trace_log){ .n_nodes = places->n_nodes };
        log->nodes = xcalloc(places->n_nodes, sizeof(*log->nodes));
        log->keys = xcalloc(1, sizeof(*log->keys));
        log->keys[log->n_keys++] = xstrdup("");
        r.newest = xcalloc(places->n_nodes, sizeof(*r.newest));
        each_piece(&r, data, len, note_number);
        each_piece(&r, data, len, read_newest);
        trace_log_sort(log);
        HASH_ITER(hh, r.names, k, next)
        {
                HASH_DEL(r.names, k);
                free(k);
        }
        free(r.newest);
}

int trace_log_load(struct trace_log *log, int dir, const char *name,
                   const struct trace_places *places, struct error *err)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len = 0;
        int r = fd_read_regular(dir, name, FILE_MAX, &text, &len);

        /* Also after an error: @log becomes valid, and empty. */
        trace_log_read(log, r < 0 ? "" : text, len, places);
        return r < 0 && r != -ENOENT ? err_set(err, -r, "cannot read %s: %s", name, strerror(-r))
                                     : 0;
}

void trace_log_finish(struct trace_log *log)
{
        for (size_t i = 0; i < log->n_samples; i++)
                sample_finish(&log->samples[i].s);
        for (size_t i = 0; i < log->n_keys; i++)
                free(log->keys[i]);
        free(log->samples);
        free(log->keys);
        free(log->nodes);
        free(log->v);
        *log = (struct trace_log){ 0 };
}

bool trace_event_waits(const struct trace_event *e)
{
        uint8_t op = (uint8_t)e->number;

        /* Requests from GET to BROADCAST, in the order of enum store_op, may wait for other
         * ranks. */
        return e->kind == TRACE_OP &&
               ((op >= STORE_GET && op <= STORE_BROADCAST) || op == STORE_POP || op == STORE_COUNT);
}
