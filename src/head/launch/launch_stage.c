/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hnlaunch stage` connects the nodes, and brings the files as a run with --stage and --venv does,
 * which then finds them; or has each agent list and remove what is there. Nothing is started.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_code.h"
#include "base/format.h"
#include "head/core/json_text.h"
#include "head/job/job_push.h"
#include "head/launch/launch_private.h"
#include "head/output/say.h"
#include "head/output/text_table.h"
#include "head/report/report.h"
#include "head/term/columns.h"
#include "wire/push_msg.h"

enum { STAGED_COLUMNS = 7, US_OF_S = 1000000 };

/* --- listing and removing --------------------------------------------------------------------- */

static const char *name_use(const struct staged_copy *c)
{
        static const char *const names[PUSH_USES] = { "push", "stage", "venv" };

        return names[c->use];
}

static const char *name_state(const struct staged_copy *c)
{
        return c->removed ? "removed" : c->in_use ? "in use" : "unused";
}

static void add_staged_row(struct text_table *t, const char *host, const struct staged_copy *c)
{
        char **cells = text_table_add(t), text[32];

        cells[0] = xstrdup(host);
        cells[1] = xstrdup(name_use(c));
        format_size(text, sizeof(text), c->bytes);
        cells[2] = xstrdup(text);
        format_duration(text, sizeof(text), (int64_t)c->age_s * US_OF_S);
        cells[3] = xstrdup(text);
        cells[4] = xstrdup(name_state(c));
        cells[5] = xstrdup(c->name);
        cells[6] = xstrdup(c->folder);
}

/* Adds a row for a node that was not reached, or has not answered. */
static void add_silent_row(struct text_table *t, const char *host)
{
        char **cells = text_table_add(t);

        cells[0] = xstrdup(host);
        for (size_t i = 1; i < STAGED_COLUMNS; i++)
                cells[i] = xstrdup(i == 4 ? "no answer" : "-");
}

static void print_staged(const struct launch *l, const struct staged *all)
{
        static const struct text_column columns[STAGED_COLUMNS] = {
                { "HOST", TEXT_NAME, 0, 8 },
                { "KIND", 0, 2, 0 },
                { "SIZE", TEXT_RIGHT, 0, 0 },
                { "USED", TEXT_RIGHT, 0, 0 },
                { "STATE", 0, 0, 0 },
                { "FROM", TEXT_NAME, 1, 12 },
                { "FOLDER", TEXT_TRUNCATE, 3, 12 },
        };
        struct text_table t = { .columns = columns,
                                .n_columns = STAGED_COLUMNS,
                                .width = isatty(STDOUT_FILENO) ? columns_of_terminal(STDOUT_FILENO)
                                                               : 0 };
        CLEANUP(free_textp) char *text = NULL;

        for (size_t i = 0; i < l->hosts.n; i++) {
                for (uint32_t k = 0; k < all[i].n; k++)
                        add_staged_row(&t, l->hosts.v[i].name, &all[i].v[k]);
                if (!all[i].v)
                        add_silent_row(&t, l->hosts.v[i].name);
        }
        text = text_table_format(&t);
        fputs(text, stdout);
        text_table_finish(&t);
}

static json_t *describe_staged(const struct staged *all)
{
        json_t *list = json_array();

        for (uint32_t k = 0; k < all->n; k++) {
                const struct staged_copy *c = &all->v[k];

                json_array_append_new(list,
                                      json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:b, s:b}", "kind",
                                                name_use(c), "from", json_text(c->name), "folder",
                                                json_text(c->folder), "bytes", (json_int_t)c->bytes,
                                                "files", (json_int_t)c->files, "unused_s",
                                                (json_int_t)c->age_s, "in_use", c->in_use,
                                                "removed", c->removed));
        }
        return list;
}

/* Returns the exit code. */
static int keep_house(struct launch *l)
{
        const struct stage_order order = { .remove = l->o->staged.remove,
                                           .limit = (uint64_t)l->o->staged.keep,
                                           .max_age_s = ((uint64_t)l->o->staged.unused_ms + 999) /
                                                        1000 };
        struct staged *all = xcalloc(l->hosts.n, sizeof(*all));
        enum job_step step = job_stage(l->run->job, &order, all);
        json_t *nodes = json_array();
        const struct diag *failure = diags_first_error(&l->diags);
        int rc = failure ? failure->exit : 0;

        for (size_t i = 0; i < l->hosts.n; i++)
                json_array_append_new(nodes,
                                      json_pack("{s:o, s:o}", "host", json_text(l->hosts.v[i].name),
                                                "folders",
                                                all[i].v ? describe_staged(&all[i]) : json_null()));
        if (step == JOB_DONE && l->o->json) {
                json_t *j = json_pack("{s:i, s:O}", "v", 1, "nodes", nodes);

                json_write_plain(j, stdout);
                json_decref(j);
        } else if (step == JOB_DONE) {
                print_staged(l, all);
        }
        json_decref(nodes);
        for (size_t i = 0; i < l->hosts.n; i++) {
                rc = all[i].v || rc ? rc : EX_NOHOST;
                staged_finish(&all[i]);
        }
        free(all);
        return step == JOB_DONE ? rc : launch_end_early(l, step);
}

/* --- bringing --------------------------------------------------------------------------------- */

static json_t *describe_placed(const struct launch *l, size_t node)
{
        json_t *j = json_pack("{s:o}", "host", json_text(l->hosts.v[node].name));
        static const struct {
                enum push_use use;
                const char *name;
        } all[] = { { PUSH_VENV, "venv" }, { PUSH_STAGE, "stage" } };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                const struct pushed *p = job_pushed_as(l->run->job, all[i].use, node);

                json_object_set_new(j, all[i].name, json_text(p ? p->folder : NULL));
        }
        return j;
}

static void print_placed(const struct launch *l)
{
        json_t *j, *nodes;

        if (!l->o->json)
                return;
        nodes = json_array();
        for (size_t i = 0; i < l->hosts.n; i++)
                json_array_append_new(nodes, describe_placed(l, i));
        j = json_pack("{s:i, s:o}", "v", 1, "nodes", nodes);
        json_write_plain(j, stdout);
        json_decref(j);
}

/* Returns the exit code. */
static int bring_files(struct launch *l)
{
        int rc = launch_place_files(l);

        if (!rc)
                print_placed(l);
        return rc;
}

int launch_stage(struct launch *l)
{
        int rc;

        for (size_t i = 0; i < l->o->argv.n; i++)
                strv_push(&l->o->staged.paths, l->o->argv.v[i]);
        rc = launch_pack_files(l);
        if (rc)
                return rc;
        rc = launch_connect(l);
        if (rc)
                return rc;
        rc = l->o->staged.list || l->o->staged.remove ? keep_house(l) : bring_files(l);
        job_leave(l->run->job);
        if (fflush(stdout) == 0)
                verdict_say(l);
        return rc;
}
