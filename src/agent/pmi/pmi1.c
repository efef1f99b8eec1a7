/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI-1: a line is a command, or a line of a spawn up to "endcmd"
 *
 * Answers give rc=0 or rc=1 with a msg of a single word. Clients read rc in the answer to init, and
 * in answers of commands that may fail. Answers have no backslash: newer clients take a backslash
 * for an escape.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pmi/pmi_private.h"
#include "base/macros.h"
#include "base/memory.h"

/* Announced to clients. Longer keys and values are taken as well. */
enum { KVSNAME_MAX = 256, KEYLEN_MAX = 64, VALLEN_MAX = 1024 };

static void answer_line(struct pmi_rank *r, const char *fmt, ...) PRINTF(2, 3);

/* Sends a line; the LF is added here. */
static void answer_line(struct pmi_rank *r, const char *fmt, ...)
{
        CLEANUP(buf_finish) struct buf line = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        buf_appends(&line, text);
        buf_append(&line, "\n", 1);
        pmi_send(r, &line);
}

/* A msg is a single word, so the text of the failure stays here. */
void pmi1_release(struct pmi_rank *r, const char *failure)
{
        answer_line(r,
                    failure ? "cmd=barrier_out rc=1 msg=barrier_failed" : "cmd=barrier_out rc=0");
}

void pmi1_tell_value(struct pmi_rank *r, const char *value)
{
        if (value)
                answer_line(r, "cmd=get_result rc=0 value=%s", value);
        else
                answer_line(r, "cmd=get_result rc=1 msg=unknown_key");
}

void pmi1_tell_name(struct pmi_rank *r, bool good, const char *port)
{
        const char *kind = r->asked == STORE_SET     ? "publish"
                           : r->asked == STORE_FETCH ? "lookup"
                                                     : "unpublish";

        if (good)
                answer_line(r, "cmd=%s_result info=ok rc=0%s%s", kind, port ? " port=" : "",
                            port ? port : "");
        else
                answer_line(r, "cmd=%s_result info=failed rc=1 msg=unknown_service", kind);
}

/* --- commands --------------------------------------------------------------------------------- */

static bool take_init(struct pmi_rank *r, const struct pmi_command *c)
{
        int version;

        /* A client offers the highest version known to the client; a refusal names the version
         * served. */
        if (!pmi_find_number(c, "pmi_version", &version))
                return false;
        if (version != 1 && (version != 2 || r->pmi->only_version1)) {
                answer_line(r, "cmd=response_to_init rc=1 pmi_version=1 pmi_subversion=1");
                return true;
        }
        r->state = version == 2 ? PMI_OPENING2 : PMI_READY1;
        answer_line(r, "cmd=response_to_init rc=0 pmi_version=%d pmi_subversion=%d", version,
                    version == 1); /* 1.1 and 2.0 */
        if (version == 1)          /* PMI-2 joins with fullinit */
                pmi_join(r);
        return true;
}

static bool take_get_maxes(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_line(r, "cmd=maxes rc=0 kvsname_max=%d keylen_max=%d vallen_max=%d", KVSNAME_MAX,
                    KEYLEN_MAX, VALLEN_MAX);
        return true;
}

static bool take_get_appnum(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_line(r, "cmd=appnum rc=0 appnum=%u", r->program);
        return true;
}

static bool take_get_kvsname(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_line(r, "cmd=my_kvsname rc=0 kvsname=%s", r->pmi->job);
        return true;
}

/* The universe is the world: there is nothing to spawn into. */
static bool take_get_universe(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        answer_line(r, "cmd=universe_size rc=0 size=%u", r->pmi->world.n_ranks);
        return true;
}

static bool take_put(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *key = pmi_find_field(c, "key"), *value = pmi_find_field(c, "value");
        /* An empty value counts as a value. */
        int ret = key ? pmi_put(r, key, value ? value : "") : -EINVAL;

        if (ret == 0)
                answer_line(r, "cmd=put_result rc=0");
        else
                answer_line(r, "cmd=put_result rc=1 msg=%s",
                            ret == -EPERM    ? "reserved_key"
                            : ret == -EINVAL ? "invalid_key"
                                             : "no_space");
        return true;
}

static bool take_get(struct pmi_rank *r, const struct pmi_command *c)
{
        const char *key = pmi_find_field(c, "key");

        if (!key)
                return false;
        /* The launcher knows the mapping; no node puts this key. */
        if (!strcmp(key, "PMI_process_mapping"))
                pmi1_tell_value(r, *r->pmi->mapping ? r->pmi->mapping : NULL);
        else
                pmi_ask_key(r, key);
        return true;
}

static bool take_barrier(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        pmi_enter_barrier(r);
        return true;
}

static bool take_finalize(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        r->state = PMI_FINALIZED;
        answer_line(r, "cmd=finalize_ack rc=0");
        return true;
}

/* False without a name, or with nothing to publish: no client asks so. */
static bool take_name(struct pmi_rank *r, const struct pmi_command *c, uint8_t op)
{
        const char *name = pmi_find_field(c, "service"), *port = pmi_find_field(c, "port");

        if (!name || (op == STORE_SET && !port))
                return false;
        pmi_ask_name(r, op, name, port);
        return true;
}

static bool take_publish(struct pmi_rank *r, const struct pmi_command *c)
{
        return take_name(r, c, STORE_SET);
}

static bool take_lookup(struct pmi_rank *r, const struct pmi_command *c)
{
        return take_name(r, c, STORE_FETCH);
}

static bool take_unpublish(struct pmi_rank *r, const struct pmi_command *c)
{
        return take_name(r, c, STORE_DELETE);
}

/* The lines of a spawn follow: there may be several programs, each with an endcmd. */
static bool take_spawn(struct pmi_rank *r, const struct pmi_command *c UNUSED)
{
        r->in_spawn = true;
        r->n_spawns = r->n_spawned = 1;
        return true;
}

/* Takes a line "key=value" of a spawn, or its end: the end of the last program brings the answer
 * for all programs. */
static bool take_spawn_line(struct pmi_rank *r, const char *text)
{
        if (!strncmp(text, "totspawns=", 10)) {
                r->n_spawns = atoi(text + 10);
        } else if (!strncmp(text, "spawnssofar=", 12)) {
                r->n_spawned = atoi(text + 12);
        } else if (!strcmp(text, "endcmd")) {
                r->in_spawn = false;
                if (r->n_spawned >= r->n_spawns)
                        answer_line(r, "cmd=spawn_result rc=1 msg=spawn_is_not_supported");
        }
        return true;
}

static const struct {
        const char *name;
        pmi_handler *take;
} pmi1_commands[] = {
        { "init", take_init },
        { "get_maxes", take_get_maxes },
        { "get_appnum", take_get_appnum },
        { "get_my_kvsname", take_get_kvsname },
        { "get_universe_size", take_get_universe },
        { "put", take_put },
        { "get", take_get },
        { "barrier_in", take_barrier },
        { "finalize", take_finalize },
        { "abort", pmi_abort },
        { "publish_name", take_publish },
        { "lookup_name", take_lookup },
        { "unpublish_name", take_unpublish },
        { "spawn", take_spawn },
};

/* --- the handshake of PMI_PORT ---------------------------------------------------------------- */

int pmi_parse_claim(const struct pmi *p, char *line, size_t len, struct error *err)
{
        struct pmi_command c;
        int id;

        if (pmi1_parse(&c, line, len) < 0 || strcmp(c.name, "initack") != 0 ||
            !pmi_find_number(&c, "pmiid", &id))
                return err_set(err, EPROTO,
                               "its first message is not that of a client of PMI_PORT");
        for (uint32_t i = 0; i < p->n_ranks; i++)
                /* A negative number, too, is only compared. */
                if ((int64_t)p->ranks[i].rank == id && !p->ranks[i].left)
                        return (int)i;
        return err_set(err, ENOENT, "no rank %d runs on this node", id);
}

bool pmi_may_begin(const struct pmi *p, uint32_t index)
{
        const struct pmi_rank *r = &p->ranks[index];

        return (r->state == PMI_NEW || r->state == PMI_FINALIZED) && !r->left;
}

void pmi_begin(struct pmi *p, uint32_t index)
{
        struct pmi_rank *r = &p->ranks[index];

        buf_finish(&r->in); /* remains of an earlier connection */
        /* A single answer of four lines, for the reader in MPICH's client. */
        answer_line(r, "cmd=initack rc=0\ncmd=set size=%u\ncmd=set rank=%u\ncmd=set debug=0",
                    p->world.n_ranks, r->rank);
}

/* ---------------------------------------------------------------------------------------------- */

bool pmi1_take(struct pmi_rank *r, char *text, size_t len)
{
        struct pmi_command c;
        bool is_init;

        if (r->in_spawn)
                return take_spawn_line(r, text);
        if (pmi1_parse(&c, text, len) < 0)
                return false;
        /* init comes first, and again after finalize: the next program of a script. */
        is_init = !strcmp(c.name, "init");
        if (is_init != (r->state == PMI_NEW || r->state == PMI_FINALIZED) ||
            (r->wait != PMI_WAIT_NONE && strcmp(c.name, "abort") != 0))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(pmi1_commands); i++)
                if (!strcmp(pmi1_commands[i].name, c.name))
                        return pmi1_commands[i].take(r, &c);
        return false;
}
