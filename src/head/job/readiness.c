/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of libhnlaunch are in the store as programs name them. PyTorch writes up to three parts in
 * front: TCPStore a slash; the rendezvous env:// the number of the attempt, since the agent serves
 * the store; init_process_group() the name of the group, which releases spell in two ways.
 */
#include "head/job/readiness.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strv.h"
#include "head/job/attempt.h"
#include "head/job/world_servers.h"
#include "head/model/plan.h"
#include "head/model/ready_lines.h"
#include "head/model/role_instances.h"
#include "head/model/role_list.h"
#include "head/options/program_options.h"
#include "wire/msg.h"

struct ready_rank {
        int first, instance; /* of the instance */
        bool started, ready; /* @ready: only of the first rank */
        int64_t started_ms;  /* clock_ms() */
};

struct ready_role {
        const struct role_ready *how;
        int n;                     /* instances so far */
        struct ready_lines *lines; /* NULL = none are matched */
        bool *keys;                /* by world: the key is there; NULL = none is looked for */
        struct strv key_forms;
};

struct readiness {
        const struct plan *plan;
        const struct world_servers *stores;
        void (*ready)(void *ctx, int rank);
        void *ctx;
        struct ready_role *roles;
        size_t n_roles;
        struct ready_rank *ranks;
};

/* --- life cycle --- */

/* Gives each rank the first rank of its instance, and numbers the instances of a role by rank. */
static void number_instances(struct readiness *r, const struct role_book *book)
{
        const struct plan *plan = r->plan;

        for (int i = 0; i < plan->world_size; i++) {
                const struct plan_rank *k = &plan->ranks[i];
                struct ready_role *role = &r->roles[k->program];
                int first = role_instance_of(book, plan, i);

                r->ranks[i].first = first;
                r->ranks[i].instance = first == i ? role->n++ : r->ranks[first].instance;
        }
}

/* What init_process_group() puts in front of a key: nothing, or its group in one of two
 * spellings. */
static const char *const key_groups[] = { "", "default_pg/", "default_pg/0//" };

/* Adds the forms of the key in the store of ranks with the number @restart in HN_RESTART. */
static void add_key_forms(struct ready_role *role, int restart)
{
        for (size_t i = 0; i < ARRAY_SIZE(key_groups); i++)
                strv_pushf(&role->key_forms, "//worker/attempt_%d/%s%s", restart, key_groups[i],
                           role->how->text);
}

/* The last form is of libhnlaunch, the others are of PyTorch. */
static void begin_keys(struct ready_role *role, const struct attempt *a)
{
        role->keys = xcalloc(a->plan->n_worlds, sizeof(*role->keys));
        for (size_t i = 0; i < ARRAY_SIZE(key_groups); i++)
                strv_pushf(&role->key_forms, "/%s%s", key_groups[i], role->how->text);
        add_key_forms(role, a->number);
        strv_push(&role->key_forms, role->how->text);
}

/* The stores of the attempt exist by now. Their pointer stays when a world gets an empty store. */
struct readiness *readiness_create(const struct options *o, const struct role_book *book,
                                   const struct attempt *a, void (*ready)(void *ctx, int rank),
                                   void *ctx)
{
        const struct plan *plan = a->plan;
        size_t n = options_count_roles(o), asked = 0;
        struct readiness *r;

        for (size_t i = 0; i < n; i++)
                asked += options_program(o, i)->conduct.ready.kind != READY_START;
        if (!asked)
                return NULL;
        r = xcalloc(1, sizeof(*r));
        *r = (struct readiness){
                .plan = plan, .stores = a->stores, .ready = ready, .ctx = ctx, .n_roles = n
        };
        r->roles = xcalloc(n, sizeof(*r->roles));
        r->ranks = xcalloc((size_t)plan->world_size, sizeof(*r->ranks));
        for (size_t i = 0; i < n; i++) {
                struct ready_role *role = &r->roles[i];

                role->how = &options_program(o, i)->conduct.ready;
                if (role->how->kind == READY_LINE)
                        role->lines = ready_lines_create(role->how->text, plan->world_size);
                if (role->how->kind == READY_KEY)
                        begin_keys(role, a);
        }
        number_instances(r, book);
        return r;
}

void readiness_destroy(struct readiness *r)
{
        if (!r)
                return;
        for (size_t i = 0; i < r->n_roles; i++) {
                ready_lines_destroy(r->roles[i].lines);
                free(r->roles[i].keys);
                strv_finish(&r->roles[i].key_forms);
        }
        free(r->roles);
        free(r->ranks);
        free(r);
}

/* --- ranks --- */

static struct ready_role *find_ready_role(const struct readiness *r, int rank)
{
        return &r->roles[r->plan->ranks[rank].program];
}

bool readiness_is_asked(const struct readiness *r, int rank)
{
        const struct ready_role *role = r ? find_ready_role(r, rank) : NULL;

        /* The kinds up to READY_FILE are tested by the agent of the instance's first rank, the
         * others here. */
        return role && role->how->kind != READY_START && role->how->kind <= READY_FILE &&
               r->ranks[rank].started && r->ranks[rank].first == rank;
}

/* Any rank of a replica makes the whole replica ready. */
bool readiness_note(struct readiness *r, int rank, struct ready_instance *ret)
{
        int first = r ? r->ranks[rank].first : rank;
        const struct ready_rank *own = r ? &r->ranks[rank] : NULL;

        if (!r || r->ranks[first].ready)
                return false;
        r->ranks[first].ready = true;
        *ret = (struct ready_instance){ .rank = first, .instance = own->instance };
        /* A line of another rank of the replica may come before the start of the first is told. */
        ret->ms = clock_ms() -
                  (r->ranks[first].started ? r->ranks[first].started_ms : own->started_ms);
        return true;
}

void readiness_ended(struct readiness *r, int rank)
{
        if (r)
                r->ranks[rank].started = false;
}

/* Earlier forms of the key stay in the list: other ranks of the world have the number of before. */
void readiness_forget(struct readiness *r, const struct role_span *s, int restart)
{
        struct ready_role *role = r ? find_ready_role(r, s->first) : NULL;

        if (!r)
                return;
        for (int i = s->first; i < s->first + s->size; i++) {
                r->ranks[i].started = r->ranks[i].ready = false;
                if (role->keys)
                        role->keys[r->plan->ranks[i].world] = false;
                if (role->lines)
                        ready_lines_drop(role->lines, i);
        }
        if (role->keys)
                add_key_forms(role, restart);
}

/* --- keys --- */

static bool has_ready_key(const struct readiness *r, const struct ready_role *role, uint32_t world)
{
        bool found = false;

        for (size_t i = 0; i < role->key_forms.n && !found; i++)
                found = world_servers_has(r->stores, world, role->key_forms.v[i]);
        return found;
}

/* A key is looked for until found. Ranks that have not started yet are told by
 * readiness_started(). */
void readiness_store(struct readiness *r, uint32_t world)
{
        const struct plan_world *w;

        if (!r || world >= r->plan->n_worlds)
                return;
        w = &r->plan->worlds[world];
        for (size_t i = 0; i < r->n_roles; i++) {
                struct ready_role *role = &r->roles[i];

                if (!role->keys || role->keys[world] || !has_ready_key(r, role, world))
                        continue;
                role->keys[world] = true;
                for (int k = w->first; k < w->first + w->size; k++)
                        if (find_ready_role(r, k) == role && r->ranks[k].started)
                                r->ready(r->ctx, k);
        }
}

/* STARTED may come behind the request that writes the key. */
void readiness_started(struct readiness *r, int rank)
{
        const struct ready_role *role;

        if (!r)
                return;
        r->ranks[rank].started = true;
        r->ranks[rank].started_ms = clock_ms();
        role = find_ready_role(r, rank);
        if (role->keys && role->keys[r->plan->ranks[rank].world])
                r->ready(r->ctx, rank);
}

/* --- lines --- */

/* What is left of a process that has ended for a restart is skipped. */
void readiness_output(struct readiness *r, int rank, uint8_t stream, const void *data, size_t len)
{
        const struct ready_role *role = r ? find_ready_role(r, rank) : NULL;

        if (!role || !role->lines || !r->ranks[rank].started ||
            r->ranks[r->ranks[rank].first].ready)
                return;
        if (!ready_lines_put(role->lines, rank, stream, data, len))
                return;
        ready_lines_drop(role->lines, rank);
        r->ready(r->ctx, rank);
}
