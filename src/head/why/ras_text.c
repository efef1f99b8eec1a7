/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both readers add one rank, or one group of ranks, at a time to the communicator. At the end of
 * the answer, close_comms() drops operations and communicators without a difference between ranks.
 */
#include "head/why/ras_text.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/printable.h"

enum { COUNTS_MAX = 64 /* of a communicator */ };

/* Copies a name, cut to @size, with bytes replaced that a terminal would obey. */
static void copy_ras_name(char *to, size_t size, const char *text, size_t len)
{
        snprintf(to, size, "%.*s", (int)MIN(len, size - 1), text);
        printable_mask(to);
}

static void drop_comm(struct ras_comm *c)
{
        for (size_t i = 0; i < c->n_counts; i++)
                free(c->counts[i].v);
        free(c->counts);
        free(c->missing);
}

void ras_finish(struct ras_answer *a)
{
        for (size_t i = 0; i < a->n_comms; i++)
                drop_comm(&a->comms[i]);
        free(a->comms);
        *a = (struct ras_answer){ 0 };
}

/* --- a communicator --------------------------------------------------------------------------- */

/* Returns the communicator @name, added if missing. Lists of one communicator stand together, so
 * only the last is compared. */
static struct ras_comm *open_comm(struct ras_answer *a, const char *name, size_t len)
{
        char text[sizeof(a->comms->name)];
        struct ras_comm *c;

        copy_ras_name(text, sizeof(text), name, len);
        if (a->n_comms && !strcmp(a->comms[a->n_comms - 1].name, text))
                return &a->comms[a->n_comms - 1];
        a->comms = xrealloc(a->comms, a->n_comms + 1, sizeof(*a->comms));
        c = &a->comms[a->n_comms++];
        *c = (struct ras_comm){ 0 };
        memcpy(c->name, text, sizeof(text));
        return c;
}

/* Returns the group of ranks with @launched operations; NULL = too many groups. */
static struct ras_count *open_count(struct ras_comm *c, const char *operation, uint64_t launched)
{
        struct ras_count *k;

        for (size_t i = 0; i < c->n_counts; i++)
                if (c->counts[i].launched == launched && !strcmp(c->counts[i].operation, operation))
                        return &c->counts[i];
        if (c->n_counts == COUNTS_MAX)
                return NULL;
        c->counts = xrealloc(c->counts, c->n_counts + 1, sizeof(*c->counts));
        k = &c->counts[c->n_counts++];
        *k = (struct ras_count){ .launched = launched };
        snprintf(k->operation, sizeof(k->operation), "%s", operation);
        return k;
}

/* Adds a process. The room doubles whenever the number is a power of two, and needs no field. */
static void add_ras_process(struct ras_process **v, size_t *n, const struct ras_process *p)
{
        if ((*n & (*n - 1)) == 0)
                *v = xrealloc(*v, *n ? 2 * *n : 1, sizeof(**v));
        (*v)[(*n)++] = *p;
}

/* By rank, then by process: two answers list equal ranks in equal order. */
static int compare_processes(const void *a, const void *b)
{
        const struct ras_process *x = a, *y = b;

        return x->rank != y->rank ? x->rank - y->rank : x->pid - y->pid;
}

/* By operation, then the fewest first. */
static int compare_counts(const void *a, const void *b)
{
        const struct ras_count *x = a, *y = b;
        int by_name = strcmp(x->operation, y->operation);

        if (by_name)
                return by_name;
        return x->launched < y->launched ? -1 : x->launched > y->launched;
}

/* Drops the operations of which all ranks have launched equally many, and orders the others. */
static void keep_differences(struct ras_comm *c)
{
        bool as_before = false, as_next;
        size_t n = 0;

        if (c->n_counts)
                qsort(c->counts, c->n_counts, sizeof(*c->counts), compare_counts);
        for (size_t i = 0; i < c->n_counts; i++) {
                as_next = i + 1 < c->n_counts &&
                          !strcmp(c->counts[i].operation, c->counts[i + 1].operation);
                if (c->counts[i].n)
                        qsort(c->counts[i].v, c->counts[i].n, sizeof(*c->counts[i].v),
                              compare_processes);
                if (as_before || as_next)
                        c->counts[n++] = c->counts[i];
                else
                        free(c->counts[i].v);
                as_before = as_next;
        }
        c->n_counts = n;
}

/* Drops the communicators without a difference. */
static void close_comms(struct ras_answer *a)
{
        size_t n = 0;

        for (size_t i = 0; i < a->n_comms; i++) {
                keep_differences(&a->comms[i]);
                if (a->comms[i].n_counts || a->comms[i].n_missing)
                        a->comms[n++] = a->comms[i];
                else
                        drop_comm(&a->comms[i]);
        }
        a->n_comms = n;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Numbers out of range become -1, unknown. */
static void read_json_process(const json_t *j, struct ras_process *to)
{
        const char *host = json_string_value(json_object_get(j, "host"));
        json_int_t rank = json_integer_value(json_object_get(j, "rank"));
        json_int_t pid = json_integer_value(json_object_get(j, "pid"));

        *to = (struct ras_process){ .world = -1 };
        to->rank = rank >= 0 && rank <= INT_MAX ? (int)rank : -1;
        to->pid = pid > 0 && pid <= INT_MAX ? (int)pid : -1;
        copy_ras_name(to->host, sizeof(to->host), host ? host : "", host ? strlen(host) : 0);
}

/* Adds a rank to the group of each operation that it counts. */
static void read_json_counts(struct ras_comm *c, json_t *rank)
{
        struct ras_process p;
        const char *name;
        json_t *value;

        read_json_process(rank, &p);
        json_object_foreach(json_object_get(rank, "collective_counts"), name, value)
        {
                char operation[sizeof(c->counts->operation)];
                struct ras_count *k;

                copy_ras_name(operation, sizeof(operation), name, strlen(name));
                k = open_count(c, operation, (uint64_t)json_integer_value(value));
                if (!k)
                        continue;
                k->n_ranks++;
                add_ras_process(&k->v, &k->n, &p);
        }
}

/* Reads a communicator of the JSON. A missing rank counts only if unresponsive or dead: another one
 * has left the communicator, or not entered yet. */
static void read_json_comm(struct ras_answer *a, const json_t *j)
{
        const char *name = json_string_value(json_object_get(j, "hash"));
        json_int_t size = json_integer_value(json_object_get(j, "size"));
        struct ras_comm *c;
        json_t *rank;
        size_t i;

        if (!name)
                return;
        /* The text has no prefix: names of both dialects are equal. */
        name += strncmp(name, "0x", 2) ? 0 : 2;
        c = open_comm(a, name, strlen(name));
        c->size = size > 0 ? (size_t)size : 0;
        json_array_foreach(json_object_get(j, "ranks"), i, rank) read_json_counts(c, rank);
        json_array_foreach(json_object_get(j, "missing_ranks"), i, rank)
        {
                const json_t *status = json_object_get(rank, "status");
                struct ras_process p;

                read_json_process(rank, &p);
                if (json_is_true(json_object_get(status, "unresponsive")) ||
                    json_is_true(json_object_get(status, "considered_dead")))
                        add_ras_process(&c->missing, &c->n_missing, &p);
        }
}

/* Returns whether the answer has what every answer has, a version and a list. */
static bool read_ras_json(struct ras_answer *a, const char *text, size_t len)
{
        json_t *root = json_loadb(text, len, 0, NULL), *comm;
        const json_t *all = json_object_get(root, "communicators");
        const char *version = json_string_value(json_object_get(root, "nccl_version"));
        size_t i;
        bool good;

        if (version)
                copy_ras_name(a->version, sizeof(a->version), version, strlen(version));
        a->n_all = (int)MIN(json_array_size(all), (size_t)INT_MAX);
        json_array_foreach(all, i, comm) read_json_comm(a, comm);
        good = version && json_is_array(all);
        json_decref(root);
        return good;
}

/* --- text ------------------------------------------------------------------------------------- */

/* Where the reader of lines is. */
struct ras_lines {
        struct ras_answer *a;
        struct ras_comm *comm; /* NULL = in none */
        bool missing;          /* in the list of ranks without an answer */
        char operation[24];    /* "" = the list is of something else */
        size_t count;          /* 1 and the index of the group in the list below; 0 = none */
};

/* Moves *at past @word if the text begins so. */
static bool skip_word(const char **at, const char *word)
{
        size_t n = strlen(word);

        if (strncmp(*at, word, n) != 0)
                return false;
        *at += n;
        return true;
}

/* Reads a decimal number without sign or blanks, which strtoull() would take. */
static bool skip_number(const char **at, uint64_t *ret)
{
        char *end;

        if (**at < '0' || **at > '9')
                return false;
        *ret = strtoull(*at, &end, 10);
        *at = end;
        return true;
}

/* Reads "... managed by process 3865 on node 10.0.0.7". */
static void read_place(const char *line, struct ras_process *p)
{
        const char *at = strstr(line, " managed by process ");
        uint64_t pid;

        p->pid = -1;
        *p->host = '\0';
        if (!at)
                return;
        at += sizeof(" managed by process ") - 1;
        if (skip_number(&at, &pid) && pid <= INT_MAX)
                p->pid = (int)pid;
        if (skip_word(&at, " on node "))
                copy_ras_name(p->host, sizeof(p->host), at, strlen(at));
}

/* Reads "has launched up to operation 5" or "have not launched any operations". */
static bool read_launched(const char **at, uint64_t *ret)
{
        if (!skip_word(at, " has") && !skip_word(at, " ranks have"))
                return false;
        *ret = 0;
        if (skip_word(at, " not launched any operations"))
                return true;
        return skip_word(at, " launched up to operation ") && skip_number(at, ret);
}

/* Begins a group of ranks; lines "Rank N" behind belong to it. In a list of something else there is
 * no group. */
static void begin_count(struct ras_lines *r, uint64_t launched, size_t n_ranks)
{
        struct ras_count *k = *r->operation ? open_count(r->comm, r->operation, launched) : NULL;

        r->count = k ? (size_t)(k - r->comm->counts) + 1 : 0;
        if (k)
                k->n_ranks = n_ranks;
}

/* Reads "Rank 3 ...": a group of a single rank, a member of the group above, or a missing rank. */
static void read_rank_line(struct ras_lines *r, const char *at)
{
        struct ras_process p = { .world = -1 };
        struct ras_count *k;
        uint64_t rank, launched;

        if (!skip_number(&at, &rank) || rank > INT_MAX)
                return;
        p.rank = (int)rank;
        read_place(at, &p);
        if (read_launched(&at, &launched))
                begin_count(r, launched, 1);
        if (r->missing) {
                add_ras_process(&r->comm->missing, &r->comm->n_missing, &p);
        } else if (r->count) {
                k = &r->comm->counts[r->count - 1];
                add_ras_process(&k->v, &k->n, &p);
        }
}

/* "#0-0 (aea172016e9db09d) MISMATCH" begins a list of a communicator. */
static void read_comm_line(struct ras_lines *r, const char *line)
{
        const char *name = strstr(line, " ("), *end = name ? strchr(name, ')') : NULL;

        r->comm = NULL;
        r->count = 0;
        *r->operation = '\0';
        if (!end)
                return;
        r->missing = strstr(end, "INCOMPLETE");
        if (r->missing || strstr(end, "MISMATCH"))
                r->comm = open_comm(r->a, name + 2, (size_t)(end - name) - 2);
}

/* Reads a line; indented lines belong to the communicator above. */
static void read_ras_line(struct ras_lines *r, const char *line)
{
        uint64_t n, launched;
        const char *end;

        if (skip_word(&line, "NCCL version "))
                copy_ras_name(r->a->version, sizeof(r->a->version), line, strcspn(line, " "));
        else if (*line == '#')
                read_comm_line(r, line);
        if (!r->comm || !skip_word(&line, "  "))
                return;
        if (skip_word(&line, "Rank ")) {
                read_rank_line(r, line);
        } else if (skip_word(&line, "Communicator ranks have different ")) {
                end = strstr(line, " operation counts");
                copy_ras_name(r->operation, sizeof(r->operation), line,
                              end ? (size_t)(end - line) : 0);
                r->count = 0;
        } else if (skip_number(&line, &n) && read_launched(&line, &launched)) {
                begin_count(r, launched, n);
        }
}

static void read_ras_lines(struct ras_answer *a, const char *text, size_t len)
{
        struct ras_lines r = { .a = a };
        CLEANUP(free_textp) char *copy = xstrndup(text, len);

        a->n_all = -1;
        for (char *line = copy, *end; line; line = end) {
                end = strchr(line, '\n');
                if (end)
                        *end++ = '\0';
                read_ras_line(&r, line);
        }
        for (size_t i = 0; i < a->n_comms; i++) {
                struct ras_comm *c = &a->comms[i];

                /* Together, the groups of one operation have all ranks with an answer. */
                for (size_t k = 0; k < c->n_counts; k++)
                        if (!strcmp(c->counts[k].operation, c->counts[0].operation))
                                c->size += c->counts[k].n_ranks;
        }
}

bool ras_parse(struct ras_answer *ret, const char *text, size_t len)
{
        bool good;

        *ret = (struct ras_answer){ 0 };
        if (len && *text == '{') {
                good = read_ras_json(ret, text, len);
        } else {
                read_ras_lines(ret, text, len);
                /* Every text begins with the version. */
                good = *ret->version;
        }
        close_comms(ret);
        return good;
}

/* --- two answers ------------------------------------------------------------------------------ */

/* The same with hosts, for missing ranks: process numbers repeat on other hosts. */
static int compare_whole_processes(const void *a, const void *b)
{
        int first = compare_processes(a, b);

        return first ? first
                     : strcmp(((const struct ras_process *)a)->host,
                              ((const struct ras_process *)b)->host);
}

/* Orders pointers to communicators by name. */
static int compare_comms(const void *a, const void *b)
{
        return strcmp((*(const struct ras_comm *const *)a)->name,
                      (*(const struct ras_comm *const *)b)->name);
}

/* Whether @before has the same group, as far as ranks are named. */
static bool has_same_count(const struct ras_comm *before, const struct ras_count *k)
{
        for (size_t i = 0; i < before->n_counts; i++) {
                const struct ras_count *b = &before->counts[i];

                if (b->launched != k->launched || strcmp(b->operation, k->operation) != 0)
                        continue;
                return b->n_ranks == k->n_ranks && b->n == k->n &&
                       (!k->n || !memcmp(b->v, k->v, k->n * sizeof(*k->v)));
        }
        return false;
}

/* Drops groups that the earlier answer does not have just so: a rank that has launched more
 * meanwhile goes on. */
static void keep_lasting_counts(struct ras_comm *c, const struct ras_comm *before)
{
        size_t n = 0;

        for (size_t i = 0; i < c->n_counts; i++)
                if (has_same_count(before, &c->counts[i]))
                        c->counts[n++] = c->counts[i];
                else
                        free(c->counts[i].v);
        c->n_counts = n;
}

/* Drops ranks that had answered before. */
static void keep_lasting_missing(struct ras_comm *c, const struct ras_comm *before)
{
        struct ras_process *sorted = xcalloc(before->n_missing + 1, sizeof(*sorted));
        size_t n = 0;

        if (before->n_missing)
                memcpy(sorted, before->missing, before->n_missing * sizeof(*sorted));
        qsort(sorted, before->n_missing, sizeof(*sorted), compare_whole_processes);
        for (size_t i = 0; i < c->n_missing; i++)
                if (bsearch(&c->missing[i], sorted, before->n_missing, sizeof(*sorted),
                            compare_whole_processes))
                        c->missing[n++] = c->missing[i];
        c->n_missing = n;
        free(sorted);
}

void ras_keep_lasting(struct ras_answer *now, const struct ras_answer *before)
{
        static const struct ras_comm none;
        const struct ras_comm **sorted = xcalloc(before->n_comms + 1, sizeof(struct ras_comm *));

        for (size_t i = 0; i < before->n_comms; i++)
                sorted[i] = &before->comms[i];
        qsort(sorted, before->n_comms, sizeof(struct ras_comm *), compare_comms);
        for (size_t i = 0; i < now->n_comms; i++) {
                const struct ras_comm *c = &now->comms[i], **b;

                b = bsearch(&c, sorted, before->n_comms, sizeof(struct ras_comm *), compare_comms);
                keep_lasting_counts(&now->comms[i], b ? *b : &none);
                keep_lasting_missing(&now->comms[i], b ? *b : &none);
        }
        free(sorted);
        /* A single group of an operation that is left over is no difference any longer. */
        close_comms(now);
}

void ras_join(struct ras_answer *to, struct ras_answer *from)
{
        if (!*to->version)
                memcpy(to->version, from->version, sizeof(to->version));
        to->n_all = to->n_all < 0 || from->n_all < 0 ? -1 : to->n_all + from->n_all;
        if (from->n_comms) {
                to->comms = xrealloc(to->comms, to->n_comms + from->n_comms, sizeof(*to->comms));
                memcpy(&to->comms[to->n_comms], from->comms, from->n_comms * sizeof(*to->comms));
                to->n_comms += from->n_comms;
        }
        free(from->comms);
        *from = (struct ras_answer){ 0 };
}

void ras_map(struct ras_answer *a, int (*find)(void *ctx, const struct ras_process *p), void *ctx)
{
        for (size_t i = 0; i < a->n_comms; i++) {
                struct ras_comm *c = &a->comms[i];

                for (size_t k = 0; k < c->n_missing; k++)
                        c->missing[k].world = find(ctx, &c->missing[k]);
                for (size_t g = 0; g < c->n_counts; g++)
                        for (size_t k = 0; k < c->counts[g].n; k++)
                                c->counts[g].v[k].world = find(ctx, &c->counts[g].v[k]);
        }
}
