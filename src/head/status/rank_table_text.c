/* SPDX-License-Identifier: Apache-2.0 */
#include "head/status/rank_table_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"

enum { NAMES_MAX = 80 }; /* characters of a list of ranks */

/* --- cells --------------------------------------------------------------------------------- */

struct rank_span rank_span(uint64_t ms)
{
        struct rank_span s;

        if (ms % 1000 == 0 && ms < 600000)
                snprintf(s.text, sizeof(s.text), "%" PRIu64 "s", ms / 1000);
        else if (ms % 60000 == 0 && ms < 3600000)
                snprintf(s.text, sizeof(s.text), "%" PRIu64 "m", ms / 60000);
        else
                format_duration(s.text, sizeof(s.text), (int64_t)ms * 1000);
        return s;
}

static const char *meeting_name(const char *op)
{
        return !strcmp(op, "GATHER")      ? "all_gather"
               : !strcmp(op, "BROADCAST") ? "broadcast"
                                          : "barrier";
}

static bool is_meeting(const char *op)
{
        return strcmp(op, "WAIT") != 0 && strcmp(op, "GET") != 0;
}

void rank_table_what_for(const struct node_status_wait *w, char *to, size_t size)
{
        if (is_meeting(w->op))
                snprintf(to, size, "in %s `%s`", meeting_name(w->op), w->key);
        else if (w->n_keys > 1)
                snprintf(to, size, "for `%s` and %u more", w->key, w->n_keys - 1);
        else
                snprintf(to, size, "for `%s`", w->key);
}

const char *rank_alive_text(const struct rank_row *r)
{
        static const char *const by_known[] = {
                [RANK_ROW_SILENT] = "no answer",
                [RANK_ROW_ENDED] = "ended",
                [RANK_ROW_UNKNOWN] = "not started",
        };

        if (r->known != RANK_ROW_ALIVE)
                return by_known[r->known];
        switch (r->k.state) {
        case 'R':
                return "yes (R)";
        case 'D':
                return "yes (D)";
        case 'T':
                return "stopped (T)";
        case 't':
                return "traced (t)";
        case 'Z':
        case 'X':
                return "zombie (Z)";
        default:
                return "yes (S)";
        }
}

void rank_store_text(const struct rank_row *r, char *to, size_t size)
{
        char what[160];

        if (r->known != RANK_ROW_ALIVE) {
                snprintf(to, size, "%s", r->joined ? "joined" : "");
        } else if (rank_row_waits(r)) {
                rank_table_what_for(&r->k.wait, what, sizeof(what));
                snprintf(to, size, "waits %s %s", what, rank_span(r->k.wait.ms).text);
        } else if (*r->k.wait.op && r->k.wait.ms >= 1000) {
                snprintf(to, size, "%s `%s` unanswered %s", r->k.wait.op, r->k.wait.key,
                         rank_span(r->k.wait.ms).text);
        } else if (r->joined_ms >= 0) {
                snprintf(to, size, "joined after %s", rank_span((uint64_t)r->joined_ms).text);
        } else {
                snprintf(to, size, "%s", r->joined ? "joined" : "not joined");
        }
}

void rank_seen_text(const struct rank_row *r, char *to, size_t size)
{
        if (r->known != RANK_ROW_ALIVE)
                *to = '\0';
        else if (r->k.seen_ms == STATUS_NEVER)
                snprintf(to, size, "started %s ago, no word", rank_span(r->k.started_ms).text);
        else
                snprintf(to, size, "%s ago", rank_span(r->k.seen_ms).text);
}

void rank_step_text(const struct rank_row *r, char *to, size_t size)
{
        const struct rank_progress *p = &r->progress;
        const char *note = p->note ? p->note : "";
        const char *space = *note ? " " : "";

        if (!rank_row_steps(r))
                *to = '\0';
        else if (p->total > 0)
                snprintf(to, size, "%" PRId64 "/%" PRId64 "%s%.40s", p->step, p->total, space,
                         note);
        else
                snprintf(to, size, "%" PRId64 "%s%.40s", p->step, space, note);
}

void rank_now_text(const struct rank_row *r, char *to, size_t size)
{
        if (r->known != RANK_ROW_ALIVE)
                *to = '\0';
        else
                snprintf(to, size, "%u%% CPU%s%s", r->k.cpu_percent, *r->k.channel ? ", " : "",
                         r->k.channel);
}

/* --- lists of ranks --------------------------------------------------------------------------- */

/* "gpu[001-002]", or "63 nodes" when that would be long. malloc'ed. */
static char *fold_hosts(const struct rank_table *t, const struct intlist *ranks)
{
        size_t *nodes = xcalloc(ranks->n, sizeof(*nodes)), n = 0;
        bool *seen = xcalloc(t->plan->n_nodes, sizeof(*seen));
        char *names;

        for (size_t i = 0; i < ranks->n; i++) {
                int node = t->rows[ranks->v[i]].node;

                if (!seen[node])
                        nodes[n++] = t->plan->nodes[node].host;
                seen[node] = true;
        }
        names = hosts_fold(t->hosts, nodes, n);
        if (strlen(names) > NAMES_MAX) {
                free(names);
                names = xasprintf("%zu nodes", n);
        }
        free(nodes);
        free(seen);
        return names;
}

char *rank_ranks_text(const struct intlist *ranks)
{
        CLEANUP(free_textp) char *list = intlist_fold(ranks);

        if (strlen(list) > NAMES_MAX)
                return xasprintf("%zu ranks", ranks->n);
        return xasprintf("rank%s %s", ranks->n == 1 ? "" : "s", list);
}

static char *ranks_on_hosts(const struct rank_table *t, const struct intlist *ranks)
{
        CLEANUP(free_textp) char *who = rank_ranks_text(ranks);
        CLEANUP(free_textp) char *where = fold_hosts(t, ranks);

        return xasprintf("%s on %s", who, where);
}

void rank_table_gather(const struct rank_table *t, rank_filter filter, struct intlist *to)
{
        for (size_t i = 0; i < t->n; i++)
                if (!filter || filter(&t->rows[i]))
                        intlist_add(to, (int)i);
}

char *rank_table_names(const struct rank_table *t, rank_filter filter)
{
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };

        rank_table_gather(t, filter, &ranks);
        return ranks_on_hosts(t, &ranks);
}

char *rank_table_missing_sentence(const struct rank_table *t, uint64_t after_ms)
{
        CLEANUP(free_textp) char *who = rank_table_names(t, rank_row_missing);

        return xasprintf("%s did not join within %s", who, rank_span(after_ms).text);
}
