/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run directory listens to the event stream and writes each event as one line, flushed at once,
 * to up to three places: events.ndjson, the file of --json=FILE, stdout. A failed write is
 * remembered (its errno, once per file) and told at the end by run_dir_events_error(): a full disk
 * must not end the job. run.json and summary.json are written whole, before the first rank and
 * after the last.
 *
 * The event run.end makes DIR/latest point here, when all other files are complete.
 */
#include "head/output/run_dir.h"
#include "head/model/plan_roles.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "head/core/json_text.h"
#include "head/output/event_line.h"
#include "head/output/say.h"
#include "head/run/event_file.h"
#include "head/run/run_folders.h"
#include "head/run/run_list.h"

/* Where event lines go. */
struct event_sink {
        char *path;
        FILE *to;       /* NULL = not wanted */
        int error;      /* errno of the first failed write */
        uint64_t bytes; /* of events.ndjson, which is kept short */
};

struct run_dir {
        char *dir, *path, *run_id;
        int link_error;                 /* errno of DIR/latest */
        struct event_sink ndjson, json; /* of the folder, of --json=FILE */
        int fd;                         /* of the folder, -1 = none */
        bool to_stdout;
        struct event_clock clock;
        struct role_list roles;    /* of the plan of run.json */
        struct recorder *recorder; /* NULL = none */
};

static const char events_name[] = "events.ndjson";

/* Formats the time @ago_ns ago, in UTC with microseconds, as in the event lines. */
static void format_timestamp(char *to, size_t size, int64_t ago_ns)
{
        struct timespec t;
        struct tm tm;
        size_t n;

        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_sec -= ago_ns / 1000000000;
        t.tv_nsec -= ago_ns % 1000000000;
        if (t.tv_nsec < 0) {
                t.tv_sec--;
                t.tv_nsec += 1000000000;
        }
        gmtime_r(&t.tv_sec, &tm);
        n = strftime(to, size, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(to + n, size - n, ".%06ldZ", t.tv_nsec / 1000);
}

/* "HN203", or null. */
static json_t *make_json_hn(int hn)
{
        char text[16];

        snprintf(text, sizeof(text), "HN%03d", hn);
        return hn ? json_string(text) : json_null();
}

/* Replaces the link atomically, by rename() of a new one with the run's name: several runs may end
 * at once. A file system without links is no error: the run's directory exists under the run's
 * name. */
static void link_latest(struct run_dir *r)
{
        char *link = xasprintf("%s/latest", r->dir),
             *new = xasprintf("%s/latest-%s", r->dir, r->run_id);

        if (symlink(r->run_id, new) < 0) {
                r->link_error = errno == EPERM || errno == EOPNOTSUPP ? 0 : errno;
        } else if (rename(new, link) < 0) {
                r->link_error = errno;
                unlink(new);
        }
        free(link);
        free(new);
}

/* Writes and flushes a line, so a reader of the file is never behind. */
static void write_flushed(struct event_sink *f, const char *line)
{
        if (!f->to)
                return;
        errno = 0;
        fputs(line, f->to);
        f->bytes += strlen(line);
        if ((fflush(f->to) || ferror(f->to)) && !f->error)
                f->error = errno ? errno : EIO;
}

/* Replaces events.ndjson when a long run has filled EVENT_FILE_MAX. The file of --json is the
 * user's, and is never shortened. */
static void shorten_sink(struct run_dir *r)
{
        struct event_sink *f = &r->ndjson;
        int fd = -1;
        FILE *to;

        if (!f->to || f->bytes <= EVENT_FILE_MAX)
                return;
        fd = event_file_shorten(r->fd, events_name, &f->bytes);
        to = fd < 0 ? NULL : fdopen(fd, "w");
        if (to) {
                fclose(f->to);
                f->to = to;
        } else {
                f->bytes = 0; /* try once more when as much has come again */
        }
}

static void on_event(void *ctx, const struct event *e)
{
        struct run_dir *r = ctx;
        /* Made once for all places. */
        CLEANUP(free_textp) char *line = event_line_make(&r->clock, r->run_id, &r->roles, e);

        if (!line)
                return;
        write_flushed(&r->ndjson, line);
        shorten_sink(r);
        write_flushed(&r->json, line);
        if (r->recorder)
                recorder_put(r->recorder, RECORD_EVENTS, line, strlen(line));
        if (r->to_stdout)
                say_to_stdout(line);
        if (e->kind == EVENT_RUN_END && r->path)
                link_latest(r);
}

/* Makes a file in the folder. Command lines and output are the user's alone. */
static FILE *open_new_file(const struct run_dir *r, const char *name)
{
        int fd = openat(r->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

        return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Opens the file of --json=FILE, with the mode of the umask. 0, or -errno with @err. */
static int open_json_file(struct run_dir *r, const char *path, struct error *err)
{
        r->json.path = xstrdup(path);
        r->json.to = fopen(path, "we");
        return r->json.to ? 0
                          : err_set(err, errno, "cannot write events to %s: %s", path,
                                    strerror(errno));
}

/* Creates DIR and DIR/<run>. A folder of that name is an error: run names are new for each run. 0,
 * or -errno with @err. */
static int create_run_folder(struct run_dir *r, const char *dir, struct error *err)
{
        if (run_folders_make(dir, err) < 0)
                return err_set(err, err->code, "cannot make the log folder %s: %s", dir,
                               strerror(err->code));
        r->dir = xstrdup(dir);
        r->path = xasprintf("%s/%s", dir, r->run_id);
        if (mkdir(r->path, 0700) < 0)
                return err_set(err, errno, "cannot make the log folder %s: %s", r->path,
                               strerror(errno));
        r->fd = open(r->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r->ndjson.path = xasprintf("%s/%s", r->path, events_name);
        r->ndjson.to = r->fd < 0 ? NULL : open_new_file(r, events_name);
        return r->ndjson.to ? 0
                            : err_set(err, errno, "cannot write %s: %s", r->ndjson.path,
                                      strerror(errno));
}

struct run_dir *run_dir_create(struct events *es, const char *dir, const char *run_id, bool json,
                               const char *json_file, struct recorder *recorder, struct error *err)
{
        struct run_dir *r = xcalloc(1, sizeof(*r));

        r->run_id = xstrdup(run_id);
        r->recorder = recorder;
        r->to_stdout = json && !json_file;
        r->fd = -1;
        if ((json && json_file && open_json_file(r, json_file, err) < 0) ||
            (dir && create_run_folder(r, dir, err) < 0)) {
                run_dir_destroy(r);
                return NULL;
        }
        if (dir || json || recorder)
                events_listen(es, on_event, r);
        return r;
}

const char *run_dir_path(const struct run_dir *r)
{
        return r->path;
}

int run_dir_fd(const struct run_dir *r)
{
        return r->fd;
}

struct recorder *run_dir_recorder(const struct run_dir *r)
{
        return r ? r->recorder : NULL;
}

void run_dir_open_records(struct run_dir *r)
{
        if (r->recorder)
                recorder_open(r->recorder);
}

int run_dir_events_error(const struct run_dir *r, struct error *err)
{
        const struct event_sink *f = r->ndjson.error ? &r->ndjson : &r->json;

        if (!f->error)
                return 0;
        return err_set(err, f->error, "cannot write %s%s: %s",
                       f == &r->json ? "the events to " : "", f->path, strerror(f->error));
}

int run_dir_link_error(const struct run_dir *r, struct error *err)
{
        return r->link_error ? err_set(err, r->link_error, "cannot make %s/latest lead to %s: %s",
                                       r->dir, r->run_id, strerror(r->link_error))
                             : 0;
}

/* Writes @j, a reference that is taken, to the file in the folder and to the records, each if there
 * is one. 0, or -errno with @err if the file fails; the records keep their own errors. */
static int write_json(struct run_dir *r, enum record record, const char *name, json_t *j,
                      struct error *err)
{
        char *path = r->path ? xasprintf("%s/%s", r->path, name) : NULL;
        FILE *to = path ? open_new_file(r, name) : NULL;
        bool good = !path || (to && json_write_plain(j, to));
        int rc = 0;

        if ((to && fclose(to) != 0) || !good)
                rc = err_set(err, errno ? errno : EIO, "cannot write %s: %s", path,
                             strerror(errno));
        if (r->recorder) {
                CLEANUP(free_textp) char *text = json_dump_plain(j, JSON_INDENT(2));

                recorder_put(r->recorder, record, text, strlen(text));
        }
        free(path);
        json_decref(j);
        return rc;
}

/* The line without values of -x: they may be secrets. */
static json_t *make_json_line(const struct options *o)
{
        /* Words of hnlaunch itself, before the program: a program may have a -x of its own. */
        size_t own = o->line.n - MIN(o->line_argv, o->line.n);
        json_t *words = json_array();

        for (size_t i = 0; i < o->line.n; i++) {
                const char *word = o->line.v[i], *last = i ? o->line.v[i - 1] : "";
                bool is_long = !strncmp(word, "--env=", 6);
                bool is_env = (i < own && (is_long || !strncmp(word, "-x", 2) ||
                                           !strcmp(last, "-x") || !strcmp(last, "--env"))) ||
                              options_is_env_word(o, i);
                /* The first sign of "--env=NAME=VALUE" is part of the option. */
                const char *eq = is_env ? strchr(word + (is_long ? 6 : 0), '=') : NULL;
                CLEANUP(free_textp) char *name = eq ? xstrndup(word, (size_t)(eq - word)) : NULL;

                json_array_append_new(words, json_text(name ? name : word));
        }
        return words;
}

/* Adds program @i as on a command line, with the name of its role. */
static void put_program_words(const struct options *o, size_t i, json_t *words)
{
        const struct strv *argv = options_argv(o, i);

        if (i)
                json_array_append_new(words, json_text(":"));
        if (o->first) {
                json_array_append_new(words, json_text("--role"));
                json_array_append_new(words, json_text(options_role(o, i)->name));
        }
        for (size_t k = 0; k < argv->n; k++)
                json_array_append_new(words, json_text(argv->v[k]));
}

/* The words of all programs, with the colons and options between them. @line: of make_json_line().
 */
static json_t *make_json_argv(const struct options *o, const json_t *line)
{
        json_t *words = json_array();

        if (!o->n_more) {
                json_decref(words);
                return json_texts(&o->argv);
        }
        if (!o->line_argv) { /* of a job file */
                for (size_t i = 0; i <= o->n_more; i++)
                        put_program_words(o, i, words);
                return words;
        }
        for (size_t i = json_array_size(line) - o->line_argv; i < json_array_size(line); i++)
                json_array_append(words, json_array_get(line, i));
        return words;
}

json_t *run_dir_describe(const struct options *o, const char *run_id, const char *cwd,
                         int64_t start_ns)
{
        CLEANUP(free_textp) char *here = getcwd(NULL, 0);
        struct error err;
        CLEANUP(free_textp) char *folder = run_folders_sockets(false, &err);
        CLEANUP(free_textp) char *socket = folder ? run_folders_socket(folder, run_id) : NULL;
        char t[48], host[256] = "";
        json_t *j, *line = make_json_line(o);

        format_timestamp(t, sizeof(t), clock_ns() - start_ns);
        gethostname(host, sizeof(host) - 1);
        j = json_pack("{s:i, s:s, s:s, s:o, s:i, s:s, s:o, s:o, s:o, s:o, s:o}", "v", 1, "run",
                      run_id, "version", HNLAUNCH_VERSION, "host", json_text(host), "pid",
                      (int)getpid(), "started", t, "argv", make_json_argv(o, line), "cwd",
                      json_text(cwd), "line", line, "directory", json_text(here), "socket",
                      json_text(socket));
        json_object_set_new(j, "pid_start", json_integer(run_process_start(getpid())));
        return j;
}

int run_dir_write_run(struct run_dir *r, const struct options *o, const struct hosts *hosts,
                      const struct plan *plan, const char *cwd, int64_t start_ns, struct error *err)
{
        json_t *j, *nodes;

        role_list_finish(&r->roles);
        role_list_from_plan(&r->roles, plan);
        if (!r->path && !r->recorder)
                return 0;
        nodes = json_array();
        for (size_t i = 0; i < plan->n_nodes; i++) {
                const struct plan_node *n = &plan->nodes[i];

                json_array_append_new(
                        nodes, json_pack("{s:i, s:o, s:i, s:o, s:o}", "node_rank", n->node_rank,
                                         "host", json_text(hosts->v[i].name), "slots", n->slots,
                                         "ranks", json_numbers(n->ranks.v, n->ranks.n), "gpus",
                                         json_numbers(n->gpus.v, n->gpus.n)));
        }
        j = run_dir_describe(o, r->run_id, cwd, start_ns);
        json_object_set_new(j, "world_size", json_integer(plan->world_size));
        json_object_set_new(j, "num_nodes", json_integer(plan->num_nodes));
        json_object_set_new(j, "nodes", nodes);
        if (r->roles.n)
                json_object_set_new(j, "roles", role_list_json(&r->roles));
        json_object_set_new(
                j, "label",
                o->label == LABEL_AUTO
                        ? json_null()
                        : json_text(o->label == LABEL_TEMPLATE ? o->label_template : ""));
        json_object_set_new(j, "show", json_text(o->show ? o->show : "all"));
        return write_json(r, RECORD_RUN, "run.json", j, err);
}

/* @start_ns is the start of hnlaunch, on the clock of @c. */
static json_t *make_json_failure(const struct run_dir *r, const struct outcome *o,
                                 const struct cause *c, const struct hosts *hosts, int64_t start_ns)
{
        const struct rank_report *t = outcome_find_report(o, c->rank);
        json_t *j = json_object();
        char end[128];

        if (c->rank >= 0)
                json_object_set_new(j, "rank", json_integer(c->rank));
        role_list_put(&r->roles, j, c->rank);
        if (c->node >= 0)
                json_object_set_new(j, "host", json_text(hosts->v[c->node].name));
        json_object_set_new(j, "us", json_integer((json_int_t)MAX(c->at_ns - start_ns, 0) / 1000));
        json_object_set_new(j, "ms", json_integer((json_int_t)c->after_ms));
        json_object_set_new(j, "echo", json_boolean(c->echo));
        if (c->kind == CAUSE_SIGNAL)
                json_object_set_new(j, "signal", json_integer(c->signal));
        if (c->kind == CAUSE_EXIT || c->kind == CAUSE_UNFINALIZED || c->kind == CAUSE_ABORT ||
            c->kind == CAUSE_LATE)
                json_object_set_new(j, "code", json_integer(c->code));
        if (c->kind == CAUSE_LEFT) { /* the words are not its own */
                CLEANUP(free_textp) char *text = NULL;

                outcome_describe(c, end, sizeof(end));
                text = xasprintf("%s, and others failed without it", end);
                json_object_set_new(j, "code", json_integer(0));
                json_object_set_new(j, "text", json_text(text));
        } else if (*c->text) {
                json_object_set_new(j, "text", json_text(c->text));
        }
        if (*c->oom.file)
                json_object_set_new(j, "oom_kills",
                                    json_integer((json_int_t)(c->oom.after - c->oom.before)));
        /* The report of the rank itself (hn_report_error()), which may say more than the cause. */
        if (t)
                json_object_set_new(j, "said", json_text(t->said));
        if (t && t->trace)
                json_object_set_new(j, "trace", json_text(t->trace));
        return j;
}

static bool is_same_cause(const struct cause *a, const struct cause *b)
{
        return a->kind == b->kind && a->rank == b->rank && a->node == b->node;
}

/* Adds the step of the slowest rank of the last attempt, if ranks have told steps. */
static void put_last_step(json_t *j, const struct rank_board *ranks)
{
        const struct rank_board_steps s = rank_board_steps(ranks);
        int64_t least = s.most; /* that of the board is of ranks that live */

        if (!s.told)
                return;
        for (int i = 0; i < ranks->n; i++)
                if (ranks->rows[i].step >= 0 && rank_board_counts_steps(ranks, i))
                        least = MIN(least, ranks->rows[i].step);
        if (s.role)
                json_object_set_new(j, "step_role", json_text(s.role));
        json_object_set_new(j, "step", json_integer((json_int_t)least));
        json_object_set_new(j, "total", s.total ? json_integer((json_int_t)s.total) : json_null());
}

int run_dir_write_summary(struct run_dir *r, const struct outcome *o, const struct hosts *hosts,
                          const struct plan *plan, const struct rank_board *ranks, int code, int hn,
                          const char *verdict, int64_t us, json_t *attempts, struct error *err)
{
        /* After one failure thousands of ranks may fail; the first ones tell enough. */
        enum { FAILURES_MAX = 256 };
        const struct outcome nothing = OUTCOME_INIT;
        /* Decided before @o is replaced: without an outcome the launcher is the origin. */
        const char *origin = o && outcome_is_workers(o) ? "worker" : "launcher";
        int64_t start_ns = clock_ns() - us * 1000;
        const struct cause *c;
        json_t *j, *failures;
        size_t first = 0;

        o = o ? o : &nothing;
        c = &o->cause;
        if (!r->path && !r->recorder)
                return 0;
        j = json_pack("{s:i, s:s, s:s, s:i, s:o, s:o, s:I}", "v", 1, "run", r->run_id, "origin",
                      origin, "code", code, "hn", make_json_hn(hn), "verdict", json_text(verdict),
                      "us", (json_int_t)us);
        if (c->kind != CAUSE_NONE && c->rank >= 0) {
                json_object_set_new(j, "rank", json_integer(c->rank));
                role_list_put(&r->roles, j, c->rank);
        }
        if (c->kind != CAUSE_NONE && c->node >= 0)
                json_object_set_new(j, "host", json_text(hosts->v[c->node].name));
        if (o->decided)
                json_object_set_new(j, "success", json_string("rank0"));
        if (c->signal && c->kind != CAUSE_LATE)
                json_object_set_new(j, "signal", json_integer(c->signal));
        /* The cause first, the others in the order of arrival. */
        failures = json_array();
        while (first < o->n_seen && !is_same_cause(&o->seen[first], c))
                first++;
        if (first < o->n_seen)
                json_array_append_new(failures,
                                      make_json_failure(r, o, &o->seen[first], hosts, start_ns));
        for (size_t i = 0; i < o->n_seen && json_array_size(failures) < FAILURES_MAX; i++)
                if (i != first)
                        json_array_append_new(
                                failures, make_json_failure(r, o, &o->seen[i], hosts, start_ns));
        json_object_set_new(j, "failures", failures);
        if (plan) {
                json_object_set_new(j, "world_size", json_integer(plan->world_size));
                json_object_set_new(j, "num_nodes", json_integer(plan->num_nodes));
        }
        if (plan && r->roles.n)
                json_object_set_new(j, "roles", role_list_json(&r->roles));
        if (ranks)
                put_last_step(j, ranks);
        if (attempts)
                json_object_set(j, "attempts", attempts);
        return write_json(r, RECORD_SUMMARY, "summary.json", j, err);
}

void run_dir_destroy(struct run_dir *r)
{
        if (!r)
                return;
        recorder_destroy(r->recorder);
        if (r->ndjson.to)
                fclose(r->ndjson.to);
        if (r->json.to)
                fclose(r->json.to);
        fd_close(r->fd);
        free(r->ndjson.path);
        free(r->json.path);
        free(r->dir);
        free(r->path);
        free(r->run_id);
        role_list_finish(&r->roles);
        free(r);
}
