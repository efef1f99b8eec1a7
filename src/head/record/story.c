/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files are read first, each separately: a missing or cut file leaves the rest usable. Then a
 * pass over the events fills nodes, ranks and notes, the traces of the nodes are merged, and the
 * last questions need both: which failure came first, which ranks failed only because of others,
 * which node or rank was slow. The time of a failure comes from the agent's trace if possible: the
 * other records of the rank have the same clock.
 */
#include "head/record/story.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/run/run_records.h"

enum {
        EVENTS_FILE_MAX = 64 << 20,
        RANKS_MAX = 1 << 20, /* as the plan: PLAN_MAX_RANKS */
        NODES_MAX = 65536,   /* of run.json, which may be damaged */
        NOTES_MAX = 1000,    /* a job may restart for days */
        HANG_FILE_MAX = 64 << 20,
        SAME_MOMENT_US = 10000, /* of two records of the same end */
        WORDS_US = 1000000,     /* of the end, and of the words that tell its reason */
};
/* A day: a damaged number must not overflow. */
static const int64_t PAUSE_MAX_MS = INT64_C(86400000);

/* Returns @missing if the member is missing or no integer. */
static int64_t read_json_number(const json_t *j, const char *name, int64_t missing)
{
        const json_t *n = json_object_get(j, name);

        return json_is_integer(n) ? (int64_t)json_integer_value(n) : missing;
}

const char *story_host(const struct story *s, int node, int rank)
{
        if (rank >= 0 && (size_t)rank < s->n_ranks)
                node = s->node_of[rank];
        return node >= 0 && (size_t)node < s->n_nodes ? s->nodes[node].host : "";
}

int64_t story_last_us(const struct story *s)
{
        /* A run that was killed has no end: the last trace of a rank counts. */
        int64_t last = MAX(s->times.end_us, s->times.ordered_us);

        if (s->log.n)
                last = MAX(last, s->log.v[s->log.n - 1].us);
        return MAX(last, INT64_C(1));
}

bool story_diverged_before(const struct story *s)
{
        const struct divergence *d = &s->divergence;
        /* Last words begin up to a second before the end of a process, and tell only the failure
         * once more. */
        int64_t same_us = d->words ? WORDS_US : SAME_MOMENT_US;

        return d->rank >= 0 && (d->rank != s->cause_rank || s->times.failed_us - d->us >= same_us);
}

bool story_is_told(const struct story *s, const struct story_note *n)
{
        const char *verdict = json_member(s->summary, "verdict");

        if (!strcmp(n->what, "node.lost"))
                /* The verdict of a lost node quotes the reason. */
                return !strcmp(story_host(s, n->node, -1), json_member(s->summary, "host")) &&
                       *n->text && strstr(verdict, n->text);
        if (!strcmp(n->what, "run.restart"))
                return json_object_get(s->summary, "attempts") != NULL; /* with the same reason */
        return !strcmp(n->what, "run.hang") && s->why && !strcmp(n->text, s->why);
}

/* Records of older versions have milliseconds since the launch of the attempt. */
int64_t story_failure_us(const json_t *f)
{
        int64_t us = read_json_number(f, "us", -1);

        return us >= 0 ? us : read_json_number(f, "ms", 0) * 1000;
}

const char *story_failure_words(const json_t *f)
{
        /* "said": the report of a rank, where no text was chosen. */
        const char *text = json_member(f, "text"), *words = *text ? text : json_member(f, "said");
        char own[32];
        size_t len = (size_t)snprintf(own, sizeof(own), "rank %lld: ",
                                      (long long)json_integer_value(json_object_get(f, "rank")));

        return json_object_get(f, "rank") && !strncmp(words, own, len) ? words + len : words;
}

/* Whether the verdict is about this failure. */
static bool is_cause(const struct story *s, const json_t *f)
{
        int64_t rank = read_json_number(s->summary, "rank", -1);

        return read_json_number(f, "rank", -1) == rank &&
               !strcmp(json_member(f, "host"), json_member(s->summary, "host"));
}

bool story_verdict_has_first(const struct story *s)
{
        const json_t *first = json_array_get(s->failures, 0);

        return first && is_cause(s, first) &&
               strstr(json_member(s->summary, "verdict"), story_failure_words(first));
}

/* --- files ------------------------------------------------------------------------------------ */

/* Returns an object, empty if the file is missing or no JSON. */
static json_t *load_object(int dir, const char *name)
{
        json_t *j = run_records_load(dir, name);

        return j ? j : json_object();
}

/* Each line is an event; the last line may be cut. */
static int load_events(struct story *s, int dir, struct error *err)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len = 0;
        int r = fd_read_regular(dir, "events.ndjson", EVENTS_FILE_MAX, &text, &len);
        char *at = text, *end = text + len;

        s->events = json_array();
        if (r < 0)
                return err_set(err, -r, "cannot read events.ndjson: %s", strerror(-r));
        while (at < end) {
                char *nl = memchr(at, '\n', (size_t)(end - at));
                json_t *j = nl ? json_loadb(at, (size_t)(nl - at), 0, NULL) : NULL;

                if (json_is_object(j))
                        json_array_append(s->events, j);
                json_decref(j);
                /* A line that is no JSON is skipped: events behind may be whole. */
                at = nl ? nl + 1 : end;
        }
        return 0;
}

/* The newest event of a hang has what was found. Without any, a look before the end may have found
 * something: the first line of hang.txt; stacks follow. */
static char *load_why(const struct story *s, int dir)
{
        const char *found = NULL;
        char *text = NULL;
        size_t i, len = 0;
        bool told = false; /* in any attempt */
        const json_t *j;

        if (read_json_number(s->summary, "code", -1) == 0) /* the ranks have gone on */
                return NULL;
        json_array_foreach(s->events, i, j)
        {
                const char *ev = json_member(j, "ev");

                if (!strcmp(ev, "run.hang"))
                        found = json_member(j, "text");
                /* A hang of an earlier attempt is not the reason of this end. */
                else if (!strcmp(ev, "run.restart"))
                        found = NULL;
                told |= found != NULL;
        }
        if (told)
                return found ? xstrdup(found) : NULL;
        if (fd_read_regular(dir, "hang.txt", HANG_FILE_MAX, &text, &len) < 0)
                return NULL;
        text[strcspn(text, "\n")] = '\0';
        return text;
}

/* Failures of their own before echoes, each by time. */
static int compare_failures(const void *a, const void *b)
{
        const json_t *f = *(json_t *const *)a, *g = *(json_t *const *)b;
        int64_t x = story_failure_us(f), y = story_failure_us(g);
        bool follows = json_is_true(json_object_get(f, "echo"));

        if (follows != json_is_true(json_object_get(g, "echo")))
                return follows ? 1 : -1;
        return (x > y) - (x < y);
}

/* An order without words, Ctrl-C, is none. */
static bool is_failure(const json_t *f)
{
        return json_object_get(f, "rank") || *json_member(f, "host") || *json_member(f, "text");
}

/* Puts the cause first, then what failed of its own, then what followed. */
static void sort_failures(struct story *s)
{
        const json_t *all = json_object_get(s->summary, "failures");
        json_t **v = xcalloc(json_array_size(all), sizeof(json_t *)), *f;
        size_t i, n = 0, cause = 0;

        json_array_foreach(all, i, f) if (is_failure(f)) v[n++] = f;
        qsort(v, n, sizeof(json_t *), compare_failures);
        s->failures = json_array();
        /* The cause is not always the earliest: severity may have decided. */
        while (cause < n && !is_cause(s, v[cause]))
                cause++;
        if (cause < n)
                json_array_append(s->failures, v[cause]);
        for (i = 0; i < n; i++)
                if (i != cause)
                        json_array_append(s->failures, v[i]);
        free(v);
}

/* Makes nodes and ranks by the plan in run.json; nothing is known of them yet. */
static void make_places(struct story *s)
{
        const json_t *nodes = json_object_get(s->run, "nodes"), *node, *rank;
        size_t i, k;

        s->n_nodes = MIN(json_array_size(nodes), (size_t)NODES_MAX);
        s->n_ranks = (size_t)MAX(MIN(read_json_number(s->run, "world_size", 0), (int64_t)RANKS_MAX),
                                 INT64_C(0));
        role_list_load(&s->roles, json_object_get(s->run, "roles"), (int)s->n_ranks);
        s->nodes = xcalloc(s->n_nodes, sizeof(*s->nodes));
        s->ranks = xcalloc(s->n_ranks, sizeof(*s->ranks));
        s->node_of = xcalloc(s->n_ranks, sizeof(*s->node_of));
        for (i = 0; i < s->n_ranks; i++) {
                s->ranks[i] = (struct story_rank){ -1, -1, -1, 0, 0 };
                s->node_of[i] = -1;
        }
        for (i = 0; i < s->n_nodes; i++) {
                node = json_array_get(nodes, i);
                s->nodes[i].node = (int)i;
                story_start_replace_host(s, &s->nodes[i], json_member(node, "host"));
                json_array_foreach(json_object_get(node, "ranks"), k, rank)
                {
                        json_int_t at = json_integer_value(rank);

                        if (at >= 0 && (size_t)at < s->n_ranks)
                                s->node_of[at] = (int)i;
                }
        }
}

/* --- events ----------------------------------------------------------------------------------- */

/* An event with the place among nodes and ranks. */
struct told_event {
        const char *ev;
        int64_t us;
        int node, rank; /* -1 = none, or not of this run */
        const json_t *j;
};

/* Notes when the node reached a state, the newest time counts. An event with another host means
 * that a spare has taken the place. */
static void take_node_event(struct story *s, const struct told_event *e)
{
        struct story_node *n = &s->nodes[e->node];
        const char *host = json_member(e->j, "host");
        bool reached = !strcmp(e->ev, "node.connected") || !strcmp(e->ev, "node.ready");

        if ((reached || !strcmp(e->ev, "node.failed")) && *host && strcmp(host, n->host) != 0)
                story_start_replace_host(s, n, host);
        if (!strcmp(e->ev, "node.connected"))
                n->held = !strcmp(json_member(e->j, "text"), "hold");
        if (!strcmp(e->ev, "node.connected"))
                n->connected_us = e->us;
        else if (!strcmp(e->ev, "node.ready"))
                n->ready_us = e->us;
        else if (!strcmp(e->ev, "node.upload"))
                n->uploaded = true;
        else if (!strcmp(e->ev, "node.pushed"))
                n->pushed_us = e->us;
        else if (!strcmp(e->ev, "node.failed"))
                n->failed = true;
        else if (!strcmp(e->ev, "node.lost"))
                n->lost = true;
}

/* Notes the life of a rank; a new start forgets the attempt before. */
static void take_rank_event(struct story *s, const struct told_event *e)
{
        struct story_rank *r = &s->ranks[e->rank];

        if (!strcmp(e->ev, "rank.started")) {
                *r = (struct story_rank){ e->us, -1, -1, 0, 0, r->waited };
                /* The pause of a restart is an estimate; a rank may have started earlier. */
                s->starts.now.ordered_us = MIN(s->starts.now.ordered_us, e->us);
                if (e->node >= 0)
                        s->node_of[e->rank] = e->node; /* a spare host may have taken the rank */
        } else if (!strcmp(e->ev, "rank.joined")) {
                r->joined_us = e->us;
        } else if (!strcmp(e->ev, "rank.exited")) {
                r->exited_us = e->us;
                r->code = (int)read_json_number(e->j, "code", 0);
                r->signal = (int)read_json_number(e->j, "signal", 0);
        }
}

/* The ranks of the role start after others, and so do not belong to the start of the job. */
static void mark_waiting_role(struct story *s, const char *name)
{
        for (size_t i = 0; i < s->n_ranks; i++) {
                const struct listed_role *role = role_list_find(&s->roles, (int)i);

                s->ranks[i].waited |= role && !strcmp(role->name, name);
        }
}

/* Whether the event belongs among "what happened". */
static bool is_worth_a_note(const char *ev)
{
        static const char *const evs[] = { "node.failed",  "node.lost",   "node.replaced",
                                           "rank.missing", "rank.report", "run.stalled",
                                           "run.hang",     "run.restart", "run.library",
                                           "run.shrunk",   "node.silent", "node.heard",
                                           "run.signal",   "role.starts", "role.restart" };

        for (size_t i = 0; i < ARRAY_SIZE(evs); i++)
                if (!strcmp(ev, evs[i]))
                        return true;
        return false;
}

/* Takes what concerns the run as a whole, and keeps notes. */
static void take_event_of_run(struct story *s, const struct told_event *e)
{
        int64_t pause_ms = read_json_number(e->j, "ms", -1);
        bool decision;

        if (!strcmp(e->ev, "run.start"))
                s->times.ordered_us = s->starts.now.ordered_us = e->us;
        else if (!strcmp(e->ev, "run.stop") && s->times.stop_us < 0)
                s->times.stop_us = e->us;
        else if (!strcmp(e->ev, "run.end"))
                s->times.end_us = e->us;
        else if (!strcmp(e->ev, "role.waits") || !strcmp(e->ev, "role.restart"))
                mark_waiting_role(s, json_member(e->j, "role"));
        if (!strcmp(e->ev, "run.restart")) {
                s->restarts++;
                s->times.restarted_us = e->us;
                s->times.stop_us = -1;
                /* The order to start is not recorded again: the end of the announced pause stands
                 * for the order. */
                if (pause_ms >= 0)
                        s->starts.now.ordered_us =
                                MIN(e->us, INT64_MAX / 2) + MIN(pause_ms, PAUSE_MAX_MS) * 1000;
        }
        if (!strcmp(e->ev, "run.shrunk"))
                s->n_ranks = (size_t)MAX(
                        MIN(read_json_number(e->j, "ranks", 0), (int64_t)s->n_ranks), INT64_C(0));
        /* Of a run without a list of attempts; one that goes on has none yet. */
        decision = !strcmp(e->ev, "run.decision") && !json_object_get(s->summary, "attempts");
        if ((decision || is_worth_a_note(e->ev)) && s->n_notes < NOTES_MAX)
                s->notes[s->n_notes++] = (struct story_note){
                        e->us,   e->ev,  json_member(e->j, "text"), json_member(e->j, "host"),
                        e->node, e->rank
                };
}

/* Whether an event of a node may be the first that belongs to the next attempt. */
static bool may_begin_attempt(const char *ev)
{
        static const char *const evs[] = { "node.connected", "node.ready", "node.failed",
                                           "node.replaced",  "run.shrunk", "run.restart" };

        for (size_t i = 0; i < ARRAY_SIZE(evs); i++)
                if (!strcmp(ev, evs[i]))
                        return true;
        return false;
}

/* Whether the event belongs to a running attempt, so that an earlier connection is of this attempt,
 * too. */
static bool ends_attempt(const char *ev)
{
        return !strncmp(ev, "rank.", 5) || !strcmp(ev, "run.stop");
}

/* Returns by which events a next attempt begins, an entry per event, malformed ones included. Hosts
 * for it may be connected before run.restart: the first such event since the last sign of the
 * attempt before counts. */
static bool *mark_begins(const struct story *s)
{
        size_t n = json_array_size(s->events), first = n;
        bool *begins = xcalloc(n, sizeof(*begins));

        for (size_t i = 0; i < n; i++) {
                const char *ev = json_member(json_array_get(s->events, i), "ev");

                if (ends_attempt(ev))
                        first = n;
                else if (first == n && may_begin_attempt(ev))
                        first = i;
                if (!strcmp(ev, "run.restart")) {
                        begins[first] = true;
                        first = n;
                }
        }
        return begins;
}

/* A single pass, in the order of the file, which is that of time. */
static void take_events(struct story *s)
{
        bool *begins = mark_begins(s);
        int64_t ended_us = 0;
        const json_t *j;
        size_t i;

        s->notes = xcalloc(NOTES_MAX, sizeof(*s->notes));
        s->starts.now.ordered_us = -1;
        json_array_foreach(s->events, i, j)
        {
                struct told_event e = { json_member(j, "ev"), read_json_number(j, "us", 0),
                                        (int)read_json_number(j, "node", -1),
                                        (int)read_json_number(j, "rank", -1), j };

                if (begins[i])
                        story_start_add(s, ended_us);
                if (ends_attempt(e.ev))
                        ended_us = e.us;
                e.node = e.node >= 0 && (size_t)e.node < s->n_nodes ? e.node : -1;
                e.rank = e.rank >= 0 && (size_t)e.rank < s->n_ranks ? e.rank : -1;
                take_event_of_run(s, &e);
                if (!strncmp(e.ev, "rank.", 5) && e.rank >= 0)
                        take_rank_event(s, &e);
                else if (e.node >= 0)
                        take_node_event(s, &e);
        }
        story_start_add(s, ended_us);
        story_start_sum_ranks(s, s->nodes);
        free(begins);
}

/* --- traces ----------------------------------------------------------------------------------- */

/* Steps without a record of an agent were read from lines of output by the head (--progress-re).
 */
static void add_steps_of_events(struct story *s)
{
        bool *has = xcalloc(s->n_ranks, sizeof(*has));
        const json_t *j;
        size_t i;

        for (i = 0; i < s->log.n; i++)
                if (s->log.v[i].kind == TRACE_STEP)
                        has[s->log.v[i].rank] = true;
        json_array_foreach(s->events, i, j)
        {
                int64_t rank = read_json_number(j, "rank", -1),
                        step = read_json_number(j, "step", -1);

                if (!strcmp(json_member(j, "ev"), "rank.progress") && step >= 0 && rank >= 0 &&
                    (size_t)rank < s->n_ranks && !has[rank])
                        trace_log_add(&s->log,
                                      &(struct trace_event){ .us = read_json_number(j, "us", 0),
                                                             .rank = (uint32_t)rank,
                                                             .kind = TRACE_STEP,
                                                             .number = (uint64_t)step });
        }
        free(has);
        trace_log_sort(&s->log);
}

/* Whether hnlaunch has decided the end: the named rank has not ended by itself. */
static bool is_launchers(const struct story *s)
{
        return !strcmp(json_member(s->summary, "origin"), "launcher");
}

/* The agent tells the end of a rank better than the arrival of the message, and on the clock of the
 * rank's other records. */
static int64_t find_failure(const struct story *s)
{
        int64_t us = s->times.stop_us;

        if (is_launchers(s) && json_array_size(s->failures))
                return story_failure_us(json_array_get(s->failures, 0));
        if (s->cause_rank >= 0 && (size_t)s->cause_rank < s->n_ranks &&
            s->ranks[s->cause_rank].exited_us >= 0)
                us = us < 0 ? s->ranks[s->cause_rank].exited_us
                            : MIN(us, s->ranks[s->cause_rank].exited_us);
        /* From behind: a rank that started again has several ends. */
        for (size_t i = s->log.n; i-- && s->cause_rank >= 0;) {
                const struct trace_event *e = &s->log.v[i];

                if (e->kind == TRACE_EXIT && e->rank == (uint32_t)s->cause_rank)
                        return e->us;
        }
        return us;
}

/* Returns which ranks failed only because of others. */
static bool *mark_followers(const struct story *s)
{
        bool *follows = xcalloc(s->n_ranks, sizeof(*follows));
        const json_t *f;
        size_t i;

        json_array_foreach(s->failures, i, f)
        {
                int64_t rank = read_json_number(f, "rank", -1);

                if (rank >= 0 && (size_t)rank < s->n_ranks)
                        follows[rank] = json_is_true(json_object_get(f, "echo"));
        }
        return follows;
}

/* Takes the rank that was slow in the samples of a live line or of top. */
static void find_sampled_slow_rank(struct story *s)
{
        const json_t *j;
        size_t i;

        json_array_foreach(s->events, i, j)
        {
                int64_t rank = read_json_number(j, "rank", -1);

                if (!strcmp(json_member(j, "ev"), "rank.slow") && rank >= 0 &&
                    (size_t)rank < s->n_ranks)
                        s->slow.rank =
                                (struct slow_node){ (int)rank,
                                                    (double)read_json_number(j, "percent", 0), 0 };
        }
}

/* The ranks of a world, and their events with the numbers of the world. */
struct world_story {
        int first, n;
        struct trace_log log; /* lends all but .v from the story */
};

static struct world_story begin_world(const struct story *s, int first, int n)
{
        /* Copied whole, then .v is replaced: keys and samples are lent. */
        struct world_story w = { first, n, s->log };

        w.log.n = 0;
        w.log.v = xcalloc(s->log.n + 1, sizeof(*w.log.v));
        for (size_t i = 0; i < s->log.n; i++) {
                const struct trace_event *e = &s->log.v[i];

                if (e->rank < (uint32_t)first || e->rank - (uint32_t)first >= (uint32_t)n)
                        continue;
                w.log.v[w.log.n] = *e;
                w.log.v[w.log.n++].rank -= (uint32_t)first;
        }
        return w;
}

/* Finds the first divergence of a world; that of the world of the cause, or the earliest, counts.
 */
static void find_divergence(struct story *s, const struct world_story *w, const bool *follows)
{
        /* A rank named by a decision of hnlaunch has not failed: no rank is the cause. */
        int cause = is_launchers(s) ? -1 : s->cause_rank;
        const struct listed_role *role = role_list_find(&s->roles, w->first);
        struct divergence_input in = { .log = &w->log,
                                       .n_ranks = w->n,
                                       .until_us = s->times.failed_us,
                                       .cause_rank = cause < 0 ? -1 : cause - w->first,
                                       .follows = follows + w->first };
        struct divergence d = { .rank = -1 };

        if (s->times.failed_us < 0 || !w->log.n || !w->n ||
            /* Another world did not wait for the failed rank. */
            (cause >= 0 && (cause < w->first || in.cause_rank >= w->n)))
                return;
        divergence_find(&in, &d);
        if (d.rank < 0 || (s->divergence.rank >= 0 && s->divergence.us <= d.us))
                return;
        s->divergence = d;
        s->divergence.rank += w->first;
        if (role && role->replicas > 1)
                snprintf(s->divergence.text, sizeof(s->divergence.text), "role %.32s:%d, %.110s",
                         role->name, role->replica, d.text);
        else if (role)
                snprintf(s->divergence.text, sizeof(s->divergence.text), "role %.40s, %.110s",
                         role->name, d.text);
}

/* Keeps the slower of both; @rank: number of the first rank of a world, 0 = nodes. */
static void keep_slower(struct slow_node *slow, const struct slow_node *found, int rank)
{
        if (found->node < 0 || (slow->node >= 0 && slow->percent >= found->percent))
                return;
        *slow = *found;
        slow->node += rank;
}

/* Compares nodes, and ranks as slow_node_find() does nodes. */
static void find_slow_places(struct story *s, const struct world_story *w)
{
        int *own = xcalloc((size_t)w->n + 1, sizeof(*own));
        const struct trace_places nodes = { s->node_of + w->first, (size_t)w->n, s->n_nodes };
        const struct trace_places ranks = { own, (size_t)w->n, (size_t)w->n };
        struct slow_node found = { .node = -1 };

        for (int r = 0; r < w->n; r++)
                /* Each rank is a node of its own, so that slow_node_find() compares ranks. */
                own[r] = r;
        slow_node_find(&w->log, &nodes, &found);
        keep_slower(&s->slow.node, &found, 0);
        found = (struct slow_node){ .node = -1 };
        slow_node_find(&w->log, &ranks, &found);
        keep_slower(&s->slow.rank, &found, w->first);
        free(own);
}

/* Returns the end of the world that begins with rank @first. */
static int find_world_end(const struct story *s, int first)
{
        const struct listed_role *role = role_list_find(&s->roles, first), *last = role;

        while (last && last + 1 < s->roles.v + s->roles.n && last[1].world == role->world)
                last++;
        return last ? MIN(last->first + last->size, (int)s->n_ranks) : (int)s->n_ranks;
}

/* Programs of different roles do different things: ranks are compared within their world. */
static void find_explanations(struct story *s)
{
        bool *follows = mark_followers(s);
        int64_t rank = read_json_number(s->summary, "rank", -1);
        int first = 0;

        s->divergence = (struct divergence){ .rank = -1 };
        s->slow.node = s->slow.rank = (struct slow_node){ .node = -1 };
        s->cause_rank = rank >= 0 && rank < (int64_t)s->n_ranks ? (int)rank : -1;
        s->times.failed_us = find_failure(s);
        do {
                int end = find_world_end(s, first);
                struct world_story w = begin_world(s, first, end - first);

                find_divergence(s, &w, follows);
                find_slow_places(s, &w);
                free(w.log.v);
                first = end;
        } while (first < (int)s->n_ranks);
        if (s->slow.node.node < 0 && s->slow.rank.node < 0)
                find_sampled_slow_rank(s);
        free(follows);
}

/* ---------------------------------------------------------------------------------------------- */

int story_load(struct story *s, const char *id, struct error *err)
{
        CLEANUP(fd_closep) int dir = run_records_open(id, err);
        struct trace_places places;
        int r;

        /* From here on story_finish() may free everything. */
        *s = (struct story){ .times = { -1, -1, -1, -1, -1 } };
        s->run = load_object(dir, "run.json");
        s->summary = run_records_summary(dir);
        s->summary = s->summary ? s->summary : json_object();
        sort_failures(s);
        make_places(s);
        r = dir < 0 ? dir : load_events(s, dir, err);
        if (r < 0)
                return r;
        s->why = load_why(s, dir);
        take_events(s);
        places = (struct trace_places){ s->node_of, s->n_ranks, s->n_nodes };
        r = trace_log_load(&s->log, dir, "trace", &places, err);
        add_steps_of_events(s);
        /* The newest attempt is told; steps of the one before would look like a step back. */
        trace_log_drop_before(&s->log, s->times.restarted_us);
        find_explanations(s);
        return r;
}

void story_finish(struct story *s)
{
        for (size_t i = 0; i < s->n_nodes; i++)
                free(s->nodes[i].host);
        json_decref(s->run);
        json_decref(s->summary);
        json_decref(s->events);
        json_decref(s->failures);
        trace_log_finish(&s->log);
        story_starts_finish(&s->starts);
        role_list_finish(&s->roles);
        free(s->nodes);
        free(s->ranks);
        free(s->node_of);
        free(s->notes);
        free(s->why);
        *s = (struct story){ 0 };
}
