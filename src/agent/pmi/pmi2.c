/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI-2: a body is a command; the answer repeats "thrid" of the request
 *
 * The answer to NAME is "cmd=NAME-response;...;rc=0;", or rc=1 with an errmsg. Truth values are
 * TRUE and FALSE; Slurm's client takes no others.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pmi/pmi_private.h"
#include "base/macros.h"
#include "base/memory.h"

static void answer_body(struct pmi_rank *r, const char *name, const char *fmt, ...) PRINTF(3, 4);

/* Answers "cmd=NAME-response;", the thread if the request named a thread, and the rest. */
static void answer_body(struct pmi_rank *r, const char *name, const char *fmt, ...)
{
        CLEANUP(buf_finish) struct buf body = BUF_INIT, message = BUF_INIT;
        CLEANUP(free_textp) char *rest = NULL;
        va_list ap;

        va_start(ap, fmt);
        rest = xvasprintf(fmt, ap);
        va_end(ap);
        buf_printf(&body, "cmd=%s-response;", name);
        if (r->thread)
                buf_printf(&body, "thrid=%s;", r->thread);
        buf_appends(&body, rest);
        /* Clients read six characters; a right-aligned number is allowed. */
        buf_printf(&message, "%*zu", PMI2_LENGTH_SIZE, buf_len(&body));
        buf_append(&message, buf_data(&body), buf_len(&body));
        pmi_send(r, &message);
}

/* @failure is the errmsg, NULL = good. */
static void answer_result(struct pmi_rank *r, const char *name, const char *failure)
{
        if (failure)
                answer_body(r, name, "rc=1;errmsg=%s;", failure);
        else
                answer_body(r, name, "rc=0;");
}

void pmi2_release(struct pmi_rank *r, const char *failure)
{
        answer_result(r, "kvs-fence", failure ? "the fence failed" : NULL);
}

/* @value NULL = not found, which is a good answer in PMI-2. */
static void answer_value(struct pmi_rank *r, const char *name, const char *value)
{
        if (value)
                answer_body(r, name, "rc=0;found=TRUE;value=%s;", value);
        else
                answer_body(r, name, "rc=0;found=FALSE;");
}

void pmi2_tell_value(struct pmi_rank *r, const char *value)
{
        answer_value(r, "kvs-get", value);
}

/* Sends the port in two fields: some clients read the first, some the second. */
void pmi2_tell_name(struct pmi_rank *r, bool good, const char *port)
{
        const char *name = r->asked == STORE_SET     ? "name-publish"
                           : r->asked == STORE_FETCH ? "name-lookup"
                                                     : "name-unpublish";

        if (good && port)
                answer_body(r, name, "rc=0;value=%s;port=%s;", port, port);
        else
                answer_result(r, name, good ? NULL : "unknown service");
}

/* --- commands --------------------------------------------------------------------------------- */

static bool take_fullinit(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        r->state = PMI_READY2; /* before the answer, which may be followed by commands at once */
        answer_body(r, "fullinit",
                    "pmi-version=2;pmi-subversion=0;rank=%u;size=%u;appnum=%u;debugged=FALSE;"
                    "pmiverbose=FALSE;rc=0;",
                    r->rank, r->pmi->world.n_ranks, r->program);
        pmi_join(r);
        return true;
}

static bool take_job_getid(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_body(r, "job-getid", "jobid=%s;rc=0;", r->pmi->job);
        return true;
}

static const char *describe_put(int ret)
{
        return ret == 0         ? NULL
               : ret == -EPERM  ? "reserved key"
               : ret == -EINVAL ? "invalid key"
                                : "no space";
}

static bool take_kvs_put(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *key = pmi_find_field(c, "key"), *value = pmi_find_field(c, "value");

        answer_result(r, "kvs-put",
                      describe_put(key ? pmi_put(r, key, value ? value : "") : -EINVAL));
        return true;
}

static bool take_kvs_get(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *key = pmi_find_field(c, "key");

        if (!key)
                return false;
        pmi_ask_key(r, key);
        return true;
}

static bool take_kvs_fence(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        pmi_enter_barrier(r);
        return true;
}

/* Answers the ranks of the node that wait for @key of the node. Each waiting rank gets an answer
 * with the thrid of its own request. */
static void wake_node_key(struct pmi *p, const char *key)
{
        for (uint32_t i = 0; i < p->n_ranks; i++) {
                struct pmi_rank *r = &p->ranks[i];

                if (r->wait != PMI_WAIT_NODE_KEY || strcmp(r->key, key) != 0)
                        continue;
                r->wait = PMI_WAIT_NONE;
                free(r->key);
                r->key = NULL;
                answer_value(r, "info-getnodeattr", pmi_keys_get(&p->node_keys, key));
        }
}

static bool take_put_node_attr(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *key = pmi_find_field(c, "key"), *value = pmi_find_field(c, "value");
        struct pmi_keys *keys = &r->pmi->node_keys;
        int ret = key ? pmi_keys_put(keys, key, value ? value : "") : -EINVAL;

        buf_finish(&keys->pending); /* stays on this node */
        answer_result(r, "info-putnodeattr", describe_put(ret));
        if (ret == 0)
                wake_node_key(r->pmi, key);
        return true;
}

static bool take_get_node_attr(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *key = pmi_find_field(c, "key"), *wait = pmi_find_field(c, "wait");
        const char *value = key ? pmi_keys_get(&r->pmi->node_keys, key) : NULL;

        if (!key)
                return false;
        /* Without wait=TRUE a missing key is an answer. */
        if (value || !wait || strcmp(wait, "TRUE") != 0) {
                answer_value(r, "info-getnodeattr", value);
                return true;
        }
        r->wait = PMI_WAIT_NODE_KEY;
        r->key = xstrdup(key);
        return true;
}

/* Knows two attributes; the answer for others is "not found". */
static bool take_get_job_attr(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *key = pmi_find_field(c, "key"), *mapping = r->pmi->mapping;
        char number[16];

        if (!key)
                return false;
        snprintf(number, sizeof(number), "%u", r->pmi->world.n_ranks);
        answer_value(r, "info-getjobattr",
                     !strcmp(key, "universeSize")                      ? number
                     : !strcmp(key, "PMI_process_mapping") && *mapping ? mapping
                                                                       : NULL);
        return true;
}

static bool take_finalize2(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_result(r, "finalize", NULL);
        r->state = PMI_FINALIZED;
        return true;
}

static bool take_name2(struct pmi_rank *r, const struct pmi_command *c, uint8_t op)
{
        const char *name = pmi_find_field(c, "name"), *port = pmi_find_field(c, "port");

        if (!name || (op == STORE_SET && !port))
                return false;
        pmi_ask_name(r, op, name, port);
        return true;
}

static bool take_publish2(struct pmi_rank *r, const struct pmi_command *c)
{
        return take_name2(r, c, STORE_SET);
}

static bool take_lookup2(struct pmi_rank *r, const struct pmi_command *c)
{
        return take_name2(r, c, STORE_FETCH);
}

static bool take_unpublish2(struct pmi_rank *r, const struct pmi_command *c)
{
        return take_name2(r, c, STORE_DELETE);
}

static bool refuse_spawn2(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_result(r, "spawn", "spawn is not supported");
        return true;
}

/* Slurm's and MVAPICH's extension. */
static bool refuse_ring(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_result(r, "ring", "ring is not supported");
        return true;
}

static const struct {
        const char *name;
        pmi_handler *take;
} pmi2_commands[] = {
        { "fullinit", take_fullinit },
        { "job-getid", take_job_getid },
        { "kvs-put", take_kvs_put },
        { "kvs-get", take_kvs_get },
        { "kvs-fence", take_kvs_fence },
        { "info-putnodeattr", take_put_node_attr },
        { "info-getnodeattr", take_get_node_attr },
        { "info-getjobattr", take_get_job_attr },
        { "finalize", take_finalize2 },
        { "abort", pmi_abort },
        { "name-publish", take_publish2 },
        { "name-lookup", take_lookup2 },
        { "name-unpublish", take_unpublish2 },
        { "spawn", refuse_spawn2 },
        { "ring", refuse_ring },
};

bool pmi2_take(struct pmi_rank *r, char *text, size_t len)
{
        struct pmi_command c;
        const char *thread;

        if (pmi2_parse(&c, text, len) < 0 ||
            (r->wait != PMI_WAIT_NONE && strcmp(c.name, "abort") != 0) ||
            (r->state == PMI_OPENING2) != !strcmp(c.name, "fullinit"))
                return false;
        /* Kept until the answer, which may come later: a rank has a single request at a time. */
        thread = pmi_find_field(&c, "thrid");
        free(r->thread);
        r->thread = thread ? xstrdup(thread) : NULL;
        for (size_t i = 0; i < ARRAY_SIZE(pmi2_commands); i++)
                if (!strcmp(pmi2_commands[i].name, c.name))
                        return pmi2_commands[i].take(r, &c);
        return false;
}
