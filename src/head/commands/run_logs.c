/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read in pieces; each belongs to a stream of a rank and may end within a line. A line
 * is put together per stream and goes out when whole, with the time of the first piece. With --fold
 * a line is held until a later piece shows that LINE_FOLD_US have passed.
 *
 * Which ranks are wanted is decided first, by --ranks, --role and -w together; a rank that was
 * moved is wanted if any host of the rank is, and each line is compared with the host of its time.
 * Output of a run of an older version, which has no file "output", is read from the files of
 * --log-dir, which have neither times nor an order between ranks. With --follow the end of a run is
 * found by the summary, the process, or the age of the records.
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
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/intlist.h"
#include "base/printable.h"
#include "head/commands/log_hosts.h"
#include "head/commands/log_lines.h"
#include "head/core/pattern.h"
#include "head/hosts/hostfile.h"
#include "head/run/output_file.h"
#include "head/run/run_folders.h"
#include "head/run/run_list.h"
#include "head/run/run_records.h"
#include "head/term/diag.h"
#include "head/term/escapes.h"
#include "wire/msg.h"

enum {
        STREAMS = 2,
        FOLLOW_US = 100000,
        ABANDONED_S = 180,
        AROUND_US = 5000000, /* to both sides */
        HOSTS_SHOWN = 8,
};

struct logs {
        const struct log_options *o;
        int dir; /* of the records */
        struct output_file file;
        struct log_lines to;
        struct log_hosts places; /* of the ranks, in to.hosts */
        struct hosts chosen;     /* -w; none = all */
        bool *wanted;            /* by rank */
        struct role_span *spans; /* of --role; NULL = all ranks */
        size_t n_spans;
        regex_t pattern;
        bool compiled;
        struct buf *lines;         /* by rank and stream: a line without an end */
        int64_t *began;            /* of these lines */
        int64_t from_us, until_us; /* --since, --around; times of the run */
        int64_t before_us;         /* of the last line before from_us; -1 = none */
        bool shown;                /* a line is of these times */
        bool any;                  /* a chosen rank has written a line */
};

/* --- lines ------------------------------------------------------------------------------------ */

/* Whether a line without colours matches --grep: a pattern is written for visible text. */
static bool matches_text(const struct logs *g, const char *text)
{
        CLEANUP(free_textp)
        char *plain = g->o->pattern && strchr(text, '\033') ? escapes_copy_plain(text) : NULL;

        return !g->o->pattern || regexec(&g->pattern, plain ? plain : text, 0, NULL, 0) == 0;
}

/* Takes a whole line, with a NUL in place of the newline. Lines outside of the times only leave a
 * trace, for the note that there are no lines. */
static void take_line(struct logs *g, int64_t us, int rank, int stream, const char *text,
                      size_t len)
{
        g->any = true;
        if (!matches_text(g, text))
                return;
        if (us < g->from_us)
                g->before_us = MAX(g->before_us, us);
        if (us < g->from_us || us > g->until_us)
                return;
        g->shown = true;
        log_lines_add(&g->to, us, rank, stream, text, len);
}

/* Ends the line of a stream, and empties the buffer for the next one. */
static void end_line(struct logs *g, int rank, int stream)
{
        struct buf *line = &g->lines[rank * STREAMS + stream];
        size_t len = buf_len(line);

        if (buf_append(line, "", 1) == 0)
                take_line(g, g->began[rank * STREAMS + stream], rank, stream,
                          (const char *)buf_data(line), len);
        buf_clear(line);
}

/* Whether -w has the host; without -w each is chosen, also an unknown host. */
static bool is_chosen_host(const struct hosts *chosen, const char *name)
{
        for (size_t i = 0; i < chosen->n; i++)
                if (name && !strcmp(chosen->v[i].name, name))
                        return true;
        return !chosen->n;
}

/* Sets the hosts of all ranks at @us. Lines of before have the hosts of before: unfinished and held
 * lines are printed first. */
static void follow_moves(struct logs *g, int64_t us)
{
        int rank;

        while ((rank = log_hosts_find_move(&g->places, us)) >= 0) {
                for (int stream = 0; stream < STREAMS; stream++)
                        if (buf_len(&g->lines[rank * STREAMS + stream]))
                                end_line(g, rank, stream);
                log_lines_end_all(&g->to);
                log_hosts_move(&g->places);
        }
}

/* Takes a piece of a stream, which may have several newlines or none. */
static void take_piece(struct logs *g, int64_t us, int rank, int stream, const char *p, size_t n)
{
        struct buf *line = &g->lines[rank * STREAMS + stream];

        follow_moves(g, us);
        if (!g->wanted[rank] || (g->o->only_stderr && stream == 0) ||
            (!g->to.untimed && !is_chosen_host(&g->chosen, g->to.hosts[rank])))
                return;
        /* Pieces come in the order of time, so no older line can get more ranks. */
        log_lines_end_until(&g->to, us - LINE_FOLD_US);
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
        for (int i = 0; i < g->to.n_ranks * STREAMS; i++)
                if (buf_len(&g->lines[i]))
                        end_line(g, i / STREAMS, i % STREAMS);
        log_lines_end_all(&g->to);
}

/* --- files ------------------------------------------------------------------------------------ */

static void print_pieces(struct logs *g)
{
        struct output_piece p;

        while (!ferror(stdout) && output_file_next(&g->file, &p)) {
                /* The missing bytes may have been of any rank: unfinished lines do
                 * not go on behind the gap. */
                if (p.kind == OUTPUT_GAP) {
                        end_lines(g);
                        log_lines_gap(&g->to, p.len);
                } else if (p.kind == OUTPUT_BYTES && p.rank >= 0 && p.rank < g->to.n_ranks) {
                        take_piece(g, p.us, p.rank, p.stream == MSG_STDERR, p.bytes, p.len);
                }
        }
        fflush(stdout);
}

/* The process of a run of another machine or container cannot be seen, even if its socket answers.
 */
static bool has_ended(const struct logs *g, const struct run *r)
{
        return faccessat(g->dir, "summary.json", F_OK, 0) == 0 ||
               (run_is_of_here(r->info) && !run_process_lives(r->info));
}

/* Whether a run of another machine must be dead by the age of the records: a living hnlaunch renews
 * the time of the records once a minute. */
static bool is_abandoned(const struct logs *g, const struct run *r)
{
        struct stat st;

        return !run_is_of_here(r->info) && fstat(g->dir, &st) == 0 &&
               time(NULL) - st.st_mtime > ABANDONED_S;
}

/* Prints new output until the run has ended. False: the machine of the run has died. */
static bool follow_output(struct logs *g, const struct run *r)
{
        bool ended = false, abandoned = false;

        while (!ferror(stdout)) {
                print_pieces(g);
                if (ended)
                        break;
                abandoned = is_abandoned(g, r);
                /* Read once more after the end: the run may have written between the
                 * last read and the summary. */
                ended = abandoned || has_ended(g, r);
                log_lines_end_all(&g->to);
                fflush(stdout);
                if (!ended)
                        usleep(FOLLOW_US);
        }
        return !abandoned;
}

/* --- choice --------------------------------------------------------------------------- */

/* Returns the start of the run in microseconds since 1970; 0 = unknown. */
static int64_t read_start(const json_t *record)
{
        const char *text = json_string_value(json_object_get(record, "started"));
        const char *end;
        struct tm tm = { 0 };

        end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
        return end ? (int64_t)timegm(&tm) * 1000000 + (*end == '.' ? atoi(end + 1) : 0) : 0;
}

/* Refuses hosts not in the run; @names has all, of which some are shown. 0, or -ENOENT. */
static int check_chosen_hosts(const struct hosts *chosen, const struct strv *names, const char *id,
                              struct diags *d)
{
        CLEANUP(buf_finish) struct buf list = BUF_INIT;
        size_t i = 0;

        while (i < chosen->n && strv_has(names, chosen->v[i].name))
                i++;
        if (i == chosen->n)
                return 0;
        for (size_t k = 0; k < MIN(names->n, (size_t)HOSTS_SHOWN); k++)
                buf_printf(&list, "%s%s", k ? ", " : "", names->v[k]);
        diag_help(diag_add(d, HN_NO_RECORDED_OUTPUT, EX_NOINPUT, "run %s has no host %s", id,
                           chosen->v[i].name),
                  "it has %.*s%s", (int)buf_len(&list), (const char *)buf_data(&list),
                  names->n > HOSTS_SHOWN ? " ..." : "");
        return -ENOENT;
}

/* Whether --role has the rank. */
static bool is_chosen_role(const struct logs *g, int rank)
{
        for (size_t i = 0; i < g->n_spans; i++)
                if (rank >= g->spans[i].first && rank - g->spans[i].first < g->spans[i].size)
                        return true;
        return !g->n_spans;
}

/* Chooses a rank that was on @host. Returns whether it is wanted. */
static bool choose_rank(struct logs *g, const struct options *o, int rank, const char *host)
{
        const struct listed_role *role = g->n_spans ? role_list_find(&g->to.roles, rank) : NULL;
        /* With --role, --ranks counts within the role. */
        int number = role ? role_list_number(role, rank) : rank;
        bool is = is_chosen_host(&g->chosen, host) && is_chosen_role(g, rank) &&
                  (!o->ranks.n || intlist_has(&o->ranks, number));

        g->wanted[rank] |= is;
        return is;
}

/* Chooses the ranks that were moved to chosen hosts, and adds new hosts to @names. Returns how many
 * are wanted. */
static size_t choose_moved_ranks(struct logs *g, const struct options *o, struct strv *names)
{
        struct log_hosts all;
        size_t n = 0;

        /* A separate walk over the events: .places follows the lines later, from the start on. */
        log_hosts_open(&all, g->dir, g->to.hosts, g->to.n_ranks);
        while (log_hosts_read(&all)) {
                n += choose_rank(g, o, all.next.rank, all.next.host);
                if (!strv_has(names, all.next.host))
                        strv_push(names, all.next.host);
        }
        log_hosts_finish(&all);
        return n;
}

/* Fills the spans of --role. -ENOENT with a message: the run has no such role. */
static int choose_role(struct logs *g, const struct options *o, const char *id, struct diags *d)
{
        struct error err;

        g->spans =
                o->of_role ? role_list_choose(&g->to.roles, o->of_role, &g->n_spans, &err) : NULL;
        if (g->spans || !o->of_role)
                return 0;
        diag_add(d, HN_NO_RECORDED_OUTPUT, EX_NOINPUT, "run %s: %s", id, err.text);
        return -ENOENT;
}

/* Fills hosts, chosen and wanted. -ENOENT with a message: no rank is chosen. */
static int choose_ranks(struct logs *g, const struct options *o, const json_t *record,
                        const char *id, struct diags *d)
{
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        const json_t *nodes = json_object_get(record, "nodes"), *node, *rank;
        size_t i, k, n = 0;
        int ret = choose_role(g, o, id, d);

        for (i = 0; ret == 0 && i < o->hostlists.n; i++)
                ret = hostlist_load(&g->chosen, o->hostlists.v[i], d);
        json_array_foreach(nodes, i, node)
        {
                const char *host = json_string_value(json_object_get(node, "host"));

                strv_push(&names, host ? host : "?");
                json_array_foreach(json_object_get(node, "ranks"), k, rank)
                {
                        json_int_t at = json_integer_value(rank);

                        if (at < 0 || at >= g->to.n_ranks)
                                continue;
                        g->to.hosts[at] = host;
                        n += choose_rank(g, o, (int)at, host);
                }
        }
        n += choose_moved_ranks(g, o, &names);
        if (ret == 0)
                ret = check_chosen_hosts(&g->chosen, &names, id, d);
        if (ret < 0 || n)
                return ret;
        diag_help(diag_add(d, HN_NO_RECORDED_OUTPUT, EX_NOINPUT, "run %s has no such rank", id),
                  "it has ranks 0 to %d", g->to.n_ranks - 1);
        return -ENOENT;
}

/* Returns how many ranks a folded line can have. */
static int count_wanted(const struct logs *g)
{
        int n = 0;

        for (int r = 0; r < g->to.n_ranks; r++)
                n += g->wanted[r];
        return n;
}

/* Compiles --grep, if given. 0, or -EINVAL with a message. */
static int compile_pattern(struct logs *g, struct diags *d)
{
        struct error err;
        int r = g->o->pattern ? pattern_compile(&g->pattern, g->o->pattern, REG_NOSUB, &err) : 0;

        g->compiled = !r && g->o->pattern;
        if (!r)
                return 0;
        diag_help(diag_add(d, r == -EDOM ? HN_ENDLESS_PATTERN : HN_BAD_PATTERN, EX_USAGE,
                           "cannot use the pattern %s: %s", g->o->pattern, err.text),
                  "it is an extended regular expression, as for grep -E");
        return -EINVAL;
}

/* ---------------------------------------------------------------------------------------------- */

static void finish_logs(struct logs *g)
{
        for (int i = 0; i < g->to.n_ranks * STREAMS; i++)
                buf_finish(&g->lines[i]);
        if (g->compiled)
                regfree(&g->pattern);
        output_file_finish(&g->file);
        log_hosts_finish(&g->places);
        hosts_finish(&g->chosen);
        log_lines_finish(&g->to);
        free(g->to.hosts);
        free(g->wanted);
        free(g->spans);
        free(g->lines);
        free(g->began);
}

/* Prints the recorded output. Returns false when the machine of a followed run has died. --tail
 * counts only lines present at the beginning. */
static bool print_output(struct logs *g, const struct run *r)
{
        bool lives = true;

        if (g->o->tail)
                log_lines_keep(&g->to, (size_t)g->o->tail);
        output_file_open(&g->file, g->dir, (struct output_place){ 0 });
        log_hosts_open(&g->places, g->dir, g->to.hosts, g->to.n_ranks);
        print_pieces(g);
        if (g->o->follow) {
                log_lines_end_all(&g->to);
                log_lines_release(&g->to);
                lives = follow_output(g, r);
        }
        end_lines(g);
        /* While a run goes on, a part of a piece is only being written. */
        if (has_ended(g, r) && output_file_is_cut(&g->file))
                log_lines_gap(&g->to, 0);
        log_lines_release(&g->to);
        return lives;
}

/* Prints the files of --log-dir: first by rank, then by stream. */
static void print_rank_files(struct logs *g)
{
        char text[65536];
        size_t n;

        for (int i = 0; i < g->to.n_ranks * STREAMS && !ferror(stdout); i++) {
                CLEANUP(free_textp)
                char *name = xasprintf("rank-%05d.%s", i / STREAMS, i % STREAMS ? "err" : "out");
                FILE *f = g->wanted[i / STREAMS] ? run_records_file(g->dir, name) : NULL;

                if (g->o->tail)
                        log_lines_keep(&g->to, (size_t)g->o->tail);
                while (f && !ferror(stdout) && (n = fread(text, 1, sizeof(text), f)))
                        take_piece(g, 0, i / STREAMS, i % STREAMS, text, n);
                if (f)
                        fclose(f);
                end_lines(g);
                log_lines_release(&g->to);
        }
}

/* Refuses options that need the times of lines. 0, or the exit code. */
static int check_rank_files(const struct options *o, const char *id, const char *elsewhere,
                            struct diags *d)
{
        if (!o->logs.follow && !o->logs.since_ms && !o->logs.around_us && !o->timestamps &&
            !o->fold)
                return 0;
        diag_help(diag_add(d, HN_NO_RECORDED_OUTPUT, EX_NOINPUT,
                           "the output of run %s is in %s, a file for each rank, without times", id,
                           elsewhere),
                  "leave out %s",
                  o->logs.follow      ? "--follow, or use tail -f"
                  : o->logs.since_ms  ? "--since"
                  : o->logs.around_us ? "--around"
                  : o->timestamps     ? "--timestamps"
                                      : "--fold");
        return EX_NOINPUT;
}

/* Returns when the run failed first, in microseconds of the run; -1 = never. */
static int64_t find_failure_us(const char *id)
{
        json_t *summary = run_load_summary(id);
        const json_t *failures = json_object_get(summary, "failures"), *f;
        int64_t us = INT64_MAX;
        size_t i;

        json_array_foreach(failures, i, f)
        {
                const json_t *at = json_object_get(f, "us");

                /* The earliest failure counts, at any place of the list. */
                us = MIN(us, at ? (int64_t)json_integer_value(at) : INT64_MAX);
        }
        /* A run without a failed rank, such as a stopped run, failed at its end. */
        if (us == INT64_MAX && json_integer_value(json_object_get(summary, "code")))
                us = (int64_t)json_integer_value(json_object_get(summary, "us"));
        json_decref(summary);
        return us == INT64_MAX ? -1 : us;
}

/* Sets which times are printed. 0, or the exit code. */
static int choose_times(struct logs *g, const char *id, struct diags *d)
{
        int64_t around_us = g->o->around_us;
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        g->until_us = INT64_MAX;
        if (g->o->since_ms)
                /* --since counts back from now; lines have times since the start of the run. */
                g->from_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - g->to.started_us -
                             g->o->since_ms * 1000;
        if (around_us == LOGS_FAILURE && (around_us = find_failure_us(id)) < 0) {
                diag_help(
                        diag_add(d, HN_NO_RECORDED_OUTPUT, EX_NOINPUT, "run %s has not failed", id),
                        "--around TIME shows the lines of a time since its start");
                return EX_NOINPUT;
        }
        if (around_us) {
                g->from_us = around_us - AROUND_US;
                g->until_us = around_us + AROUND_US;
        }
        return 0;
}

/* Prepares @g for a run of so many ranks. 0, or the exit code. finish_logs() frees everything, also
 * after an error. */
static int open_logs(struct logs *g, const struct options *o, const json_t *record, const char *id,
                     struct diags *d)
{
        size_t n = (size_t)json_integer_value(json_object_get(record, "world_size"));

        if (compile_pattern(g, d) < 0)
                return EX_USAGE;
        g->to.n_ranks = (int)n;
        g->to.n_nodes = (int)json_integer_value(json_object_get(record, "num_nodes"));
        role_list_load(&g->to.roles, json_object_get(record, "roles"), (int)n);
        g->to.started_us = read_start(record);
        g->to.hosts = xcalloc(n, sizeof(*g->to.hosts));
        g->wanted = xcalloc(n, sizeof(*g->wanted));
        g->lines = xcalloc(n * STREAMS, sizeof(*g->lines));
        g->began = xcalloc(n * STREAMS, sizeof(*g->began));
        if (choose_times(g, id, d))
                return EX_NOINPUT;
        g->to.timestamps = o->timestamps;
        g->to.filtered = isatty(STDOUT_FILENO) && !o->raw;
        if (choose_ranks(g, o, record, id, d) < 0)
                return EX_NOINPUT;
        g->to.raw = o->raw;
        g->to.json = o->json;
        if (o->fold)
                log_lines_fold(&g->to, count_wanted(g));
        return 0;
}

static int refuse_abandoned(const struct run *r, struct diags *d)
{
        const char *host = json_string_value(json_object_get(r->info, "host"));

        diag_help(diag_add(d, HN_RUN_SILENT, EX_FAILED,
                           "run %s on %s has shown no sign of life for %d minutes", r->id,
                           host ? host : "another machine", ABANDONED_S / 60),
                  "log in there: hnlaunch ps tells whether it goes on");
        return EX_FAILED;
}

/* Tells that --around has no lines: ranks that hang have written nothing for long. */
static void tell_no_lines(const struct logs *g, const char *id, struct diags *d)
{
        char from[32], until[32], before[32];

        if (!g->any) {
                diag_tell(d, "no chosen rank of run %s has written a line", id);
                return;
        }
        format_duration(from, sizeof(from), MAX(g->from_us, INT64_C(0)));
        format_duration(until, sizeof(until), g->until_us);
        format_duration(before, sizeof(before), g->before_us);
        if (g->before_us < 0)
                diag_tell(d,
                          "no chosen line is from %s to %s after the start, and none from before; "
                          "hnlaunch logs %s shows all",
                          from, until, id);
        else
                diag_tell(
                        d,
                        "no chosen line is from %s to %s after the start; the last one before came "
                        "after %s: hnlaunch logs --tail 20 %s",
                        from, until, before, id);
}

/* Prints the last line of a run at an end, after the output. */
static void tell_verdict(const struct run *r)
{
        json_t *summary = run_load_summary(r->id);
        const char *verdict = json_string_value(json_object_get(summary, "verdict"));
        CLEANUP(free_textp) char *line = verdict ? printable_text(verdict, PRINTABLE_LINE) : NULL;

        fflush(stdout);
        if (line)
                fprintf(stderr, "hnlaunch: %s\n", line);
        json_decref(summary);
}

int run_logs_print(const struct options *o, const struct run *r, struct diags *d)
{
        CLEANUP(free_textp) char *records = run_folders_records();
        CLEANUP(free_textp) char *folder = xasprintf("%s/%s", records ? records : "", r->id);
        CLEANUP(free_textp) char *elsewhere = realpath(folder, NULL);
        struct error err;
        CLEANUP(fd_closep) int dir = run_records_open(r->id, &err);
        json_t *record = run_records_load(dir, "run.json");
        struct logs g = { .o = &o->logs, .dir = dir, .before_us = -1 };
        struct stat st;
        /* A link leads to the folder of --log-dir. */
        bool is_link = lstat(folder, &st) == 0 && S_ISLNK(st.st_mode);
        bool is_over = r->state == RUN_ENDED || r->state == RUN_LOST;
        /* Of an older version, or without output. */
        bool in_files = is_link && is_over && faccessat(dir, "output", F_OK, 0) < 0;
        int rc = EX_NOINPUT;

        if (json_integer_value(json_object_get(record, "world_size")) <= 0)
                diag_add(d, HN_NO_RECORDED_OUTPUT, rc, "there is no recorded output of run %s",
                         r->id);
        else
                rc = in_files ? check_rank_files(o, r->id, elsewhere ? elsewhere : folder, d) : 0;
        if (!rc)
                rc = open_logs(&g, o, record, r->id, d);
        g.to.untimed = in_files;
        if (!rc && in_files)
                print_rank_files(&g);
        else if (!rc && !print_output(&g, r))
                rc = refuse_abandoned(r, d);
        if (!rc && is_link && g.to.has_gap)
                diag_tell(d, "the files of the ranks in %s may have more output",
                          elsewhere ? elsewhere : folder);
        if (!rc && o->logs.around_us && !g.shown)
                tell_no_lines(&g, r->id, d);
        if (!rc && !o->quiet && !ferror(stdout))
                tell_verdict(r);
        finish_logs(&g);
        json_decref(record);
        return rc;
}
