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

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/strv.h"
#include "head/core/json_text.h"
#include "head/output/say.h"

struct run_dir {
        char *dir, *path, *run_id;
        FILE *ndjson, *json; /* of the folder, of --json=FILE */
        char *json_path;
        bool to_stdout;
        int ndjson_error, json_error; /* errno of the first failed write */
};

static void format_timestamp(char *to, size_t size)
{
        struct timespec t;
        struct tm tm;
        size_t n;

        clock_gettime(CLOCK_REALTIME, &t);
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

/* Replaces the link atomically: several runs may end at once. A file system without links is no
 * error: the run's directory exists under the run's name. */
static void link_latest(const struct run_dir *r)
{
        char *link = xasprintf("%s/latest", r->dir),
             *new = xasprintf("%s/latest-%s", r->dir, r->run_id);

        if (symlink(r->run_id, new) < 0 || rename(new, link) < 0)
                unlink(new);
        free(link);
        free(new);
}

/* Writes and flushes a line, so a reader of the file is never behind. */
static void write_flushed(FILE *to, const char *line, int *error)
{
        if (!to)
                return;
        errno = 0;
        fputs(line, to);
        if ((fflush(to) || ferror(to)) && !*error)
                *error = errno ? errno : EIO;
}

static void write_event(struct run_dir *r, json_t *j)
{
        char *text = json_dumps(j, JSON_COMPACT), *line = xasprintf("%s\n", text ? text : "{}");

        write_flushed(r->ndjson, line, &r->ndjson_error);
        write_flushed(r->json, line, &r->json_error);
        if (r->to_stdout)
                say_to_stdout(line);
        free(line);
        free(text);
}

static void on_event(void *ctx, const struct event *e)
{
        struct run_dir *r = ctx;
        json_t *j = json_object();
        char t[48];

        if (e->kind == EVENT_NODE_PHASE || e->kind == EVENT_PUSH_PROGRESS ||
            e->kind == EVENT_PUSH_HASHING) {
                json_decref(j);
                return; /* for progress lines only */
        }
        format_timestamp(t, sizeof(t));
        json_object_set_new(j, "v", json_integer(1));
        json_object_set_new(j, "t", json_string(t));
        json_object_set_new(j, "us", json_integer(e->us));
        json_object_set_new(j, "ev", json_string(event_name(e->kind)));
        if (e->kind == EVENT_RUN_START) {
                json_object_set_new(j, "run", json_string(r->run_id));
                json_object_set_new(j, "nodes", json_integer(e->count));
                json_object_set_new(j, "ranks", json_integer(e->value));
        }
        if (e->kind == EVENT_PUSH_START) {
                json_object_set_new(j, "nodes", json_integer(e->count));
                json_object_set_new(j, "bytes", json_integer(e->value));
        }
        if (e->kind == EVENT_NODE_PUSHED)
                json_object_set_new(j, "bytes", json_integer(e->value));
        if (e->node >= 0)
                json_object_set_new(j, "node", json_integer(e->node));
        if (e->host)
                json_object_set_new(j, "host", json_text(e->host));
        if (e->rank >= 0)
                json_object_set_new(j, "rank", json_integer(e->rank));
        if (e->kind == EVENT_RANK_STARTED)
                json_object_set_new(j, "pid", json_integer(e->value));
        if (e->kind == EVENT_RANK_PROGRESS) {
                json_object_set_new(j, "step", json_integer(e->value));
                json_object_set_new(j, "total", e->count ? json_integer(e->count) : json_null());
        }
        if (e->kind == EVENT_NODE_READY)
                json_object_set_new(j, "uploaded", json_boolean(e->value));
        if (e->kind == EVENT_RANK_EXITED)
                json_object_set_new(j, e->value < 0 ? "signal" : "code",
                                    json_integer(llabs(e->value)));
        if (e->kind == EVENT_RESTART)
                json_object_set_new(j, "attempt", json_integer(e->value));
        if (e->kind == EVENT_STALLED)
                json_object_set_new(j, "ms", json_integer(e->value));
        if (e->kind == EVENT_RUN_END) {
                json_object_set_new(j, "code", json_integer(e->value));
                json_object_set_new(j, "hn", make_json_hn((int)e->count));
        }
        if (e->text)
                json_object_set_new(j, "text", json_text(e->text));
        write_event(r, j);
        json_decref(j);
        if (e->kind == EVENT_RUN_END && r->path)
                link_latest(r);
}

static int create_run_folder(struct run_dir *r, const char *dir, struct error *err)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        char *events;

        /* mkdir -p */
        for (const char *p = dir; *p;) {
                p += strcspn(p + 1, "/") + 1;
                buf_clear(&b);
                buf_append(&b, dir, (size_t)(p - dir));
                buf_append(&b, "", 1);
                if (mkdir((const char *)buf_data(&b), 0777) < 0 && errno != EEXIST)
                        return err_set(err, errno, "cannot make the log folder %s: %s", dir,
                                       strerror(errno));
        }
        r->dir = xstrdup(dir);
        r->path = xasprintf("%s/%s", dir, r->run_id);
        if (mkdir(r->path, 0777) < 0)
                return err_set(err, errno, "cannot make the log folder %s: %s", r->path,
                               strerror(errno));
        events = xasprintf("%s/events.ndjson", r->path);
        r->ndjson = fopen(events, "we");
        if (!r->ndjson)
                err_set(err, errno, "cannot write %s: %s", events, strerror(errno));
        free(events);
        return r->ndjson ? 0 : -err->code;
}

static int open_json_file(struct run_dir *r, const char *path, struct error *err)
{
        r->json_path = xstrdup(path);
        r->json = fopen(path, "we");
        return r->json ? 0
                       : err_set(err, errno, "cannot write events to %s: %s", path,
                                 strerror(errno));
}

struct run_dir *run_dir_create(struct events *es, const char *dir, const char *run_id, bool json,
                               const char *json_file, struct error *err)
{
        struct run_dir *r = xcalloc(1, sizeof(*r));

        r->run_id = xstrdup(run_id);
        r->to_stdout = json && !json_file;
        if ((json && json_file && open_json_file(r, json_file, err) < 0) ||
            (dir && create_run_folder(r, dir, err) < 0)) {
                run_dir_destroy(r);
                return NULL;
        }
        if (dir || json)
                events_listen(es, on_event, r);
        return r;
}

const char *run_dir_path(const struct run_dir *r)
{
        return r->path;
}

int run_dir_events_error(const struct run_dir *r, struct error *err)
{
        if (r->ndjson_error)
                return err_set(err, r->ndjson_error, "cannot write %s/events.ndjson: %s", r->path,
                               strerror(r->ndjson_error));
        if (r->json_error)
                return err_set(err, r->json_error, "cannot write the events to %s: %s",
                               r->json_path, strerror(r->json_error));
        return 0;
}

static int write_json_file(const json_t *j, const char *path)
{
        FILE *to = fopen(path, "we");
        bool good;

        if (!to)
                return -1;
        good = json_dumpf(j, to, JSON_INDENT(2)) == 0 && fputc('\n', to) != EOF;
        return fclose(to) == 0 && good ? 0 : -1;
}

/* Takes @j. */
static int write_json(struct run_dir *r, const char *name, json_t *j, struct error *err)
{
        char *path = xasprintf("%s/%s", r->path, name);
        int rc = write_json_file(j, path);

        if (rc < 0)
                rc = err_set(err, errno ? errno : EIO, "cannot write %s: %s", path,
                             strerror(errno));
        free(path);
        json_decref(j);
        return rc;
}

static json_t *make_json_node(const struct plan_node *n, const struct host *h)
{
        json_t *j = json_object();

        json_object_set_new(j, "node_rank", json_integer(n->node_rank));
        json_object_set_new(j, "host", json_text(h->name));
        json_object_set_new(j, "slots", json_integer(n->slots));
        json_object_set_new(j, "ranks", json_numbers(n->ranks.v, n->ranks.n));
        json_object_set_new(j, "gpus", json_numbers(n->gpus.v, n->gpus.n));
        return j;
}

int run_dir_write_run(struct run_dir *r, const struct options *o, const struct hosts *hosts,
                      const struct plan *plan, const char *cwd, struct error *err)
{
        json_t *j, *nodes;
        char t[48];

        if (!r->path)
                return 0;
        j = json_object();
        nodes = json_array();
        format_timestamp(t, sizeof(t));
        json_object_set_new(j, "v", json_integer(1));
        json_object_set_new(j, "run", json_string(r->run_id));
        json_object_set_new(j, "version", json_string(HNLAUNCH_VERSION));
        json_object_set_new(j, "started", json_string(t));
        json_object_set_new(j, "argv", json_texts(&o->argv));
        json_object_set_new(j, "cwd", json_text(cwd));
        json_object_set_new(j, "world_size", json_integer(plan->world_size));
        json_object_set_new(j, "num_nodes", json_integer(plan->num_nodes));
        for (size_t i = 0; i < plan->n_nodes; i++)
                json_array_append_new(nodes, make_json_node(&plan->nodes[i], &hosts->v[i]));
        json_object_set_new(j, "nodes", nodes);
        return write_json(r, "run.json", j, err);
}

static json_t *make_json_failure(const struct outcome *o, const struct cause *c,
                                 const struct hosts *hosts)
{
        const struct rank_report *t = outcome_find_report(o, c->rank);
        json_t *j = json_object();

        if (c->rank >= 0)
                json_object_set_new(j, "rank", json_integer(c->rank));
        if (c->node >= 0)
                json_object_set_new(j, "host", json_text(hosts->v[c->node].name));
        json_object_set_new(j, "ms", json_integer((json_int_t)c->after_ms));
        json_object_set_new(j, "echo", json_boolean(c->echo));
        if (c->kind == CAUSE_SIGNAL)
                json_object_set_new(j, "signal", json_integer(c->signal));
        if (c->kind == CAUSE_EXIT || c->kind == CAUSE_ABORT)
                json_object_set_new(j, "code", json_integer(c->code));
        if (*c->text)
                json_object_set_new(j, "text", json_text(c->text));
        if (*c->oom)
                json_object_set_new(j, "oom_kills",
                                    json_integer((json_int_t)(c->oom_after - c->oom_before)));
        if (t)
                json_object_set_new(j, "said", json_text(t->said));
        if (t && t->trace)
                json_object_set_new(j, "trace", json_text(t->trace));
        return j;
}

/* Returns all failures without an order, in the order of arrival. */
static json_t *make_json_failures(const struct outcome *o, const struct hosts *hosts)
{
        enum { FAILURES_MAX = 256 };
        json_t *list = json_array();

        for (size_t i = 0; i < MIN(o->n_seen, (size_t)FAILURES_MAX); i++)
                json_array_append_new(list, make_json_failure(o, &o->seen[i], hosts));
        return list;
}

int run_dir_write_summary(struct run_dir *r, const struct outcome *o, const struct hosts *hosts,
                          int code, int hn, const char *verdict, int64_t us, struct error *err)
{
        const struct outcome nothing = OUTCOME_INIT;
        bool launcher = !o || !outcome_is_workers(o);
        const struct cause *c;
        json_t *j;

        o = o ? o : &nothing;
        c = &o->cause;
        if (!r->path)
                return 0;
        j = json_object();
        json_object_set_new(j, "v", json_integer(1));
        json_object_set_new(j, "run", json_string(r->run_id));
        json_object_set_new(j, "origin", json_string(launcher ? "launcher" : "worker"));
        json_object_set_new(j, "code", json_integer(code));
        json_object_set_new(j, "hn", make_json_hn(hn));
        json_object_set_new(j, "verdict", json_text(verdict));
        json_object_set_new(j, "us", json_integer(us));
        if (c->kind != CAUSE_NONE && c->rank >= 0)
                json_object_set_new(j, "rank", json_integer(c->rank));
        if (c->kind != CAUSE_NONE && c->node >= 0)
                json_object_set_new(j, "host", json_text(hosts->v[c->node].name));
        if (c->signal)
                json_object_set_new(j, "signal", json_integer(c->signal));
        json_object_set_new(j, "failures", make_json_failures(o, hosts));
        return write_json(r, "summary.json", j, err);
}

void run_dir_destroy(struct run_dir *r)
{
        if (!r)
                return;
        if (r->ndjson)
                fclose(r->ndjson);
        if (r->json)
                fclose(r->json);
        free(r->json_path);
        free(r->dir);
        free(r->path);
        free(r->run_id);
        free(r);
}
