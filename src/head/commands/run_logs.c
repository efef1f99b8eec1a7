/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read in pieces; each belongs to a stream of a rank and may end within a line. A line
 * is put together per stream and goes out when it is whole, with the time of its first piece. With
 * --fold it is held until a later piece shows that LINE_FOLD_US have passed.
 */
#include "head/commands/run_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/intlist.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/core/pattern.h"
#include "head/hosts/hostfile.h"
#include "head/output/line_fold.h"
#include "head/output/stream_line.h"
#include "head/run/output_file.h"
#include "head/run/run_folders.h"
#include "head/run/run_records.h"
#include "head/term/diag.h"
#include "head/term/escapes.h"
#include "wire/msg.h"

enum {
        HN_NO_OUTPUT = 809,
        HN_PATTERN = 810,
        HN_ENDLESS = 812,
        STREAMS = 2,
        FOLD_BYTES = 1 << 20,
        FOLLOW_US = 100000,
};

struct logs {
        const struct log_options *o;
        int dir; /* of the records */
        struct output_file file;
        int64_t started_us; /* of the run; microseconds since 1970 */
        int n_ranks, n_nodes;
        const char **hosts; /* by rank; lent by the record of the run, NULL = unknown */
        bool *wanted;       /* by rank */
        bool timestamps;
        bool filtered; /* stdout is a terminal */
        regex_t pattern;
        bool compiled;
        struct buf *lines;      /* by rank and stream: a line without an end */
        int64_t *began;         /* of these lines */
        struct line_fold *fold; /* NULL = no --fold */
        int64_t from_us;        /* --since; time of the run */
};

/* --- printing --------------------------------------------------------------------------------- */

/* Appends a line as the printer shows it on a terminal: without what could harm the terminal or
 * forge the line of another rank. */
static void add_terminal_line(const struct logs *g, struct buf *to, char *label, const char *text,
                              size_t len)
{
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        struct escapes e = ESCAPES_INIT;
        bool alone = g->n_ranks == 1 && !*label;
        struct stream_line l = { .prefix = label,
                                 .prefix_len = strlen(label),
                                 .fd = STDOUT_FILENO,
                                 .escapes = &e,
                                 .redraws = !alone };

        escapes_filter(&e, &clean, text, len, alone);
        escapes_filter(&e, &clean, "\n", 1, alone);
        stream_line_add(&l, to, buf_data(&clean), buf_len(&clean));
}

static void print_line(const struct logs *g, int64_t us, const char *label, const char *text,
                       size_t len)
{
        CLEANUP(buf_finish) struct buf shown = BUF_INIT;
        CLEANUP(free_textp) char *front = NULL;
        char time[32] = "";

        if (g->timestamps)
                format_time_of_day(time, sizeof(time), g->started_us + us);
        front = xasprintf("%s%s%s", time, *time ? " " : "", label);
        if (g->filtered) {
                add_terminal_line(g, &shown, front, text, len);
                fwrite(buf_data(&shown), 1, buf_len(&shown), stdout);
                return;
        }
        fputs(front, stdout);
        fwrite(text, 1, len, stdout);
        putchar('\n');
}

static void print_folded(void *ctx, const struct folded_line *line)
{
        CLEANUP(free_textp) char *ranks = intlist_fold(&line->ranks);
        CLEANUP(free_textp) char *label = xasprintf("%s | ", ranks);

        print_line(ctx, line->us, label, line->text, line->len);
}

/* Takes a whole line, without its newline but with a NUL. */
static void take_line(struct logs *g, int64_t us, int rank, int stream, const char *text,
                      size_t len)
{
        CLEANUP(free_textp) char *label = NULL, *host = NULL;

        if (us < g->from_us || (g->o->pattern && regexec(&g->pattern, text, 0, NULL, 0) != 0))
                return;
        if (g->fold) {
                line_fold_add(g->fold, us, rank, (uint8_t)stream, text, len);
                return;
        }
        if (g->n_nodes > 1) {
                host = printable_text(g->hosts[rank] ? g->hosts[rank] : "", PRINTABLE_QUOTE);
                label = xasprintf("%s:%d | ", host, rank);
        } else {
                label = g->n_ranks > 1 ? xasprintf("%d | ", rank) : xstrdup("");
        }
        print_line(g, us, label, text, len);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static void end_line(struct logs *g, int rank, int stream)
{
        struct buf *line = &g->lines[rank * STREAMS + stream];
        size_t len = buf_len(line);

        if (buf_append(line, "", 1) == 0)
                take_line(g, g->began[rank * STREAMS + stream], rank, stream,
                          (const char *)buf_data(line), len);
        buf_clear(line);
}

static void take_piece(struct logs *g, int64_t us, int rank, int stream, const char *p, size_t n)
{
        struct buf *line = &g->lines[rank * STREAMS + stream];

        if (!g->wanted[rank] || (g->o->only_stderr && stream == 0))
                return;
        if (g->fold)
                line_fold_end_until(g->fold, us - LINE_FOLD_US);
        while (n) {
                const char *end = memchr(p, '\n', n);
                size_t len = end ? (size_t)(end - p) : n;

                if (!buf_len(line))
                        g->began[rank * STREAMS + stream] = us;
                buf_append(line, p, len);
                if (end)
                        end_line(g, rank, stream);
                len += end != NULL;
                p += len;
                n -= len;
        }
}

/* Ends the lines of all streams as they are. */
static void end_lines(struct logs *g)
{
        for (int i = 0; i < g->n_ranks * STREAMS; i++)
                if (buf_len(&g->lines[i]))
                        end_line(g, i / STREAMS, i % STREAMS);
        if (g->fold)
                line_fold_end_all(g->fold);
}

/* --- files ------------------------------------------------------------------------------------ */

static void print_pieces(struct logs *g)
{
        struct output_piece p;

        while (!ferror(stdout) && output_file_next(&g->file, &p)) {
                if (p.kind == OUTPUT_GAP) {
                        end_lines(g);
                        printf("(%llu bytes of output were not kept here)\n",
                               (unsigned long long)p.len);
                } else if (p.kind == OUTPUT_BYTES && p.rank >= 0 && p.rank < g->n_ranks) {
                        take_piece(g, p.us, p.rank, p.stream == MSG_STDERR, p.bytes, p.len);
                }
        }
        fflush(stdout);
}

static bool has_ended(const struct logs *g, const struct run *r)
{
        return faccessat(g->dir, "summary.json", F_OK, 0) == 0 ||
               (r->state != RUN_ELSEWHERE && !run_process_lives(r->info));
}

static void follow_output(struct logs *g, const struct run *r)
{
        bool ended = false;

        while (!ferror(stdout)) {
                print_pieces(g);
                if (ended)
                        return;
                ended = has_ended(g, r);
                if (g->fold)
                        line_fold_end_all(g->fold);
                fflush(stdout);
                if (!ended)
                        usleep(FOLLOW_US);
        }
}

/* --- what is chosen --------------------------------------------------------------------------- */

static int64_t read_start(const json_t *record)
{
        const char *text = json_string_value(json_object_get(record, "started"));
        const char *end;
        struct tm tm = { 0 };

        end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
        return end ? (int64_t)timegm(&tm) * 1000000 + (*end == '.' ? atoi(end + 1) : 0) : 0;
}

static bool is_chosen_host(const struct hosts *chosen, const char *name)
{
        for (size_t i = 0; i < chosen->n; i++)
                if (name && !strcmp(chosen->v[i].name, name))
                        return true;
        return !chosen->n;
}

/* Fills hosts and wanted. -ENOENT with a message: no rank is chosen. */
static int choose_ranks(struct logs *g, const struct options *o, const json_t *record,
                        const char *id, struct diags *d)
{
        struct hosts chosen = HOSTS_INIT;
        const json_t *node, *rank;
        size_t i, k, n = 0;
        int ret = 0;

        for (i = 0; ret == 0 && i < o->hostlists.n; i++)
                ret = hostlist_load(&chosen, o->hostlists.v[i], d);
        json_array_foreach(json_object_get(record, "nodes"), i, node)
        {
                const char *host = json_string_value(json_object_get(node, "host"));

                json_array_foreach(json_object_get(node, "ranks"), k, rank)
                {
                        json_int_t at = json_integer_value(rank);

                        if (at < 0 || at >= g->n_ranks)
                                continue;
                        g->hosts[at] = host;
                        g->wanted[at] = is_chosen_host(&chosen, host) &&
                                        (!o->ranks.n || intlist_has(&o->ranks, (int)at));
                        n += g->wanted[at];
                }
        }
        hosts_finish(&chosen);
        if (ret < 0 || n)
                return ret;
        diag_help(diag_add(d, HN_NO_OUTPUT, 66, "run %s has no such rank", id),
                  "it has ranks 0 to %d", g->n_ranks - 1);
        return -ENOENT;
}

static int count_wanted(const struct logs *g)
{
        int n = 0;

        for (int r = 0; r < g->n_ranks; r++)
                n += g->wanted[r];
        return n;
}

static int compile_pattern(struct logs *g, struct diags *d)
{
        struct error err;
        int r = g->o->pattern ? pattern_compile(&g->pattern, g->o->pattern, REG_NOSUB, &err) : 0;

        g->compiled = !r && g->o->pattern;
        if (!r)
                return 0;
        diag_help(diag_add(d, r == -EDOM ? HN_ENDLESS : HN_PATTERN, 64,
                           "cannot use the pattern %s: %s", g->o->pattern, err.text),
                  "it is an extended regular expression, as for grep -E");
        return -EINVAL;
}

/* ---------------------------------------------------------------------------------------------- */

static void finish_logs(struct logs *g)
{
        for (int i = 0; i < g->n_ranks * STREAMS; i++)
                buf_finish(&g->lines[i]);
        if (g->compiled)
                regfree(&g->pattern);
        output_file_finish(&g->file);
        line_fold_destroy(g->fold);
        free(g->hosts);
        free(g->wanted);
        free(g->lines);
        free(g->began);
}

static void print_output(struct logs *g, const struct run *r)
{
        output_file_open(&g->file, g->dir, (struct output_place){ 0 });
        print_pieces(g);
        if (g->o->follow)
                follow_output(g, r);
        end_lines(g);
        if (has_ended(g, r) && output_file_is_cut(&g->file))
                printf("(the output behind this was not kept here)\n");
}

/* Prints what --log-dir has: a file for each rank and stream, one after the other. */
static void print_rank_files(struct logs *g)
{
        char text[65536];
        size_t n;

        for (int i = 0; i < g->n_ranks * STREAMS && !ferror(stdout); i++) {
                CLEANUP(free_textp)
                char *name = xasprintf("rank-%05d.%s", i / STREAMS, i % STREAMS ? "err" : "out");
                FILE *f = g->wanted[i / STREAMS] ? run_records_file(g->dir, name) : NULL;

                while (f && !ferror(stdout) && (n = fread(text, 1, sizeof(text), f)))
                        take_piece(g, 0, i / STREAMS, i % STREAMS, text, n);
                if (f)
                        fclose(f);
                end_lines(g);
        }
}

/* Refuses what needs the times of lines. 0, or the exit code. */
static int check_rank_files(const struct options *o, const char *id, const char *elsewhere,
                            struct diags *d)
{
        if (!o->logs.follow && !o->logs.since_ms && !o->timestamps && !o->fold)
                return 0;
        diag_help(diag_add(d, HN_NO_OUTPUT, 66,
                           "the output of run %s is in %s, a file for each rank, without times", id,
                           elsewhere),
                  "leave out %s",
                  o->logs.follow     ? "--follow, or use tail -f"
                  : o->logs.since_ms ? "--since"
                  : o->timestamps    ? "--timestamps"
                                     : "--fold");
        return 66;
}

/* Prepares @g for a run of so many ranks. 0, or the exit code. */
static int open_logs(struct logs *g, const struct options *o, const json_t *record, const char *id,
                     struct diags *d)
{
        size_t n = (size_t)json_integer_value(json_object_get(record, "world_size"));
        struct timespec now;

        if (compile_pattern(g, d) < 0)
                return 64;
        g->n_ranks = (int)n;
        g->n_nodes = (int)json_integer_value(json_object_get(record, "num_nodes"));
        g->started_us = read_start(record);
        g->hosts = xcalloc(n, sizeof(*g->hosts));
        g->wanted = xcalloc(n, sizeof(*g->wanted));
        g->lines = xcalloc(n * STREAMS, sizeof(*g->lines));
        g->began = xcalloc(n * STREAMS, sizeof(*g->began));
        clock_gettime(CLOCK_REALTIME, &now);
        if (g->o->since_ms)
                g->from_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - g->started_us -
                             g->o->since_ms * 1000;
        g->timestamps = o->timestamps;
        g->filtered = isatty(STDOUT_FILENO) && !o->raw;
        if (choose_ranks(g, o, record, id, d) < 0)
                return 66;
        if (o->fold)
                g->fold =
                        line_fold_create(g->n_ranks, count_wanted(g), FOLD_BYTES, print_folded, g);
        return 0;
}

int run_logs_print(const struct options *o, const struct run *r, struct diags *d)
{
        CLEANUP(free_textp) char *records = run_folders_records();
        CLEANUP(free_textp) char *folder = xasprintf("%s/%s", records ? records : "", r->id);
        CLEANUP(free_textp) char *elsewhere = realpath(folder, NULL);
        struct error err;
        CLEANUP(fd_closep) int dir = run_records_open(r->id, &err);
        json_t *record = run_records_load(dir, "run.json");
        struct logs g = { .o = &o->logs, .dir = dir };
        struct stat st;
        bool in_log_dir = lstat(folder, &st) == 0 && S_ISLNK(st.st_mode);
        int rc = 66;

        if (json_integer_value(json_object_get(record, "world_size")) <= 0)
                diag_add(d, HN_NO_OUTPUT, rc, "there is no recorded output of run %s", r->id);
        else
                rc = in_log_dir ? check_rank_files(o, r->id, elsewhere ? elsewhere : folder, d) : 0;
        if (!rc)
                rc = open_logs(&g, o, record, r->id, d);
        if (!rc && in_log_dir)
                print_rank_files(&g);
        else if (!rc)
                print_output(&g, r);
        finish_logs(&g);
        json_decref(record);
        return rc;
}
