/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code_x() visits the fields of a message, as in wire/msg.c: encoder, decoder and destructor are
 * made from the visit. Limits keep a node from making the head allocate without end.
 */
#include "wire/status_msg.h"

#include "wire/msg_functions.h"

enum { RANKS_MAX = 1 << 16, CONNS_MAX = 1 << 18, GPUS_MAX = 256 };

static void code_status_wait(struct codec *c, struct node_status_wait *w)
{
        codec_text(c, w->op, sizeof(w->op));
        codec_text(c, w->key, sizeof(w->key));
        codec_u32(c, &w->n_keys);
        codec_u32(c, &w->ms);
}

static void code_status_rank(struct codec *c, struct node_status_rank *k)
{
        codec_u32(c, &k->rank);
        codec_u32(c, &k->local_rank);
        codec_u32(c, &k->pid);
        codec_u8(c, &k->state);
        codec_u32(c, &k->started_ms);
        codec_u32(c, &k->said_ms);
        codec_u32(c, &k->seen_ms);
        codec_u32(c, &k->cpu_percent);
        codec_text(c, k->channel, sizeof(k->channel));
        code_status_wait(c, &k->wait);
        codec_u32(c, &k->n_ports);
        /* The loop below must stay within the array also when the number is wrong. */
        codec_require(c, k->n_ports <= STATUS_PORTS);
        for (uint32_t i = 0; i < MIN(k->n_ports, (uint32_t)STATUS_PORTS); i++)
                codec_u32(c, &k->ports[i]);
}

static void code_status_conn(struct codec *c, struct node_status_conn *n)
{
        codec_text(c, n->addr, sizeof(n->addr));
        codec_u32(c, &n->port);
        codec_u32(c, &n->seen_ms);
        code_status_wait(c, &n->wait);
}

static void code_node_status(struct codec *c, struct node_status *m)
{
        codec_u32(c, &m->number);
        codec_u32(c, &m->rejected);
        CODEC_ARRAY(c, m->ranks, m->n_ranks, RANKS_MAX, code_status_rank);
        CODEC_ARRAY(c, m->conns, m->n_conns, CONNS_MAX, code_status_conn);
        codec_u32(c, &m->other.pid);
        codec_u32(c, &m->other.rank);
        codec_u32(c, &m->other.port);
        codec_text(c, m->other.name, sizeof(m->other.name));
}

DEFINE_OWNING_MESSAGE(node_status, MSG_STATUS)

/* --- INSPECT, INSPECTED ----------------------------------------------------------------------- */

/* Each kind of inspection uses some of the fields; the others are 0 or empty. */
static void code_inspect_order(struct codec *c, struct inspect_order *m)
{
        codec_u32(c, &m->number);
        codec_u8(c, &m->what);
        codec_require(c, m->what < INSPECT_WHATS);
        codec_u32(c, &m->limit_ms);
        codec_u32_array(c, &m->ranks, &m->n_ranks, RANKS_MAX);
        codec_u32(c, &m->pid);
        codec_bool(c, &m->dumped);
        codec_text(c, m->path, sizeof(m->path));
        codec_u32_array(c, &m->gpus, &m->n_gpus, GPUS_MAX);
}

static void code_inspected(struct codec *c, struct inspected *m)
{
        codec_u32(c, &m->number);
        codec_u32(c, &m->left);
        codec_u32(c, &m->rank);
        codec_u32(c, &m->pid);
        codec_u8(c, &m->state);
        codec_u32(c, &m->cpu_permille);
        codec_u32(c, &m->io_kib);
        codec_text(c, m->name, sizeof(m->name));
        codec_text(c, m->channel, sizeof(m->channel));
        codec_text(c, m->blocked, sizeof(m->blocked));
        codec_text(c, m->source, sizeof(m->source));
        codec_text(c, m->problem, sizeof(m->problem));
        codec_str(c, &m->stack, INSPECT_STACK_MAX);
}

static void code_node_facts(struct codec *c, struct node_facts *m)
{
        codec_u32(c, &m->number);
        codec_u64(c, &m->fs_type);
        codec_u64(c, &m->fs_id);
        codec_text(c, m->gpu, sizeof(m->gpu));
        codec_text(c, m->held, sizeof(m->held));
}

/* Numbers of statfs(2), from linux/magic.h and the sources of the file systems. */
bool node_facts_is_local(uint64_t type)
{
        static const uint64_t types[] = {
                0xEF53 /* ext4 */,      0x58465342 /* XFS */,   0x9123683E /* Btrfs */,
                0xF2F52010 /* F2FS */,  0x2FC12FC1 /* ZFS */,   0xCA451A4E /* bcachefs */,
                0x01021994 /* tmpfs */, 0x858458F6 /* ramfs */, 0x794C7630 /* overlayfs */
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (types[i] == type)
                        return true;
        return false;
}

static void code_ras_reply(struct codec *c, struct ras_reply *m)
{
        codec_u32(c, &m->number);
        codec_u8(c, &m->look);
        codec_require(c, m->look <= 1);
        codec_text(c, m->problem, sizeof(m->problem));
        codec_str(c, &m->text, RAS_TEXT_MAX);
}

DEFINE_OWNING_MESSAGE(inspect_order, MSG_INSPECT)
DEFINE_OWNING_MESSAGE(inspected, MSG_INSPECTED)
DEFINE_PLAIN_MESSAGE(node_facts, MSG_FACTS)
DEFINE_OWNING_MESSAGE(ras_reply, MSG_RAS)

/* --- SAMPLED ---------------------------------------------------------------------------------- */

/* Most numbers of a sample are small, so a LEB128 number has one byte or two. The age of a wait
 * follows only where a wait is open. */
static void code_sample_rank(struct codec *c, struct sample_rank *k)
{
        codec_varint(c, &k->rank);
        codec_u8(c, &k->state);
        codec_varint(c, &k->cpu_percent);
        codec_varint(c, &k->memory_mib);
        codec_varint(c, &k->quiet_ds);
        codec_u8(c, &k->wait_op);
        if (k->wait_op)
                codec_varint(c, &k->wait_ds);
        codec_u8(c, &k->busy);
}

static void code_sample_gpu(struct codec *c, struct sample_gpu *g)
{
        codec_varint(c, &g->use_percent);
        codec_varint(c, &g->memory_mib);
        codec_varint(c, &g->memory_total_gib);
        codec_varint(c, &g->celsius);
        codec_varint(c, &g->watts);
}

static void code_sample(struct codec *c, struct sample *m)
{
        codec_varint(c, &m->mono_ms);
        codec_varint(c, &m->interval_ms);
        codec_varint(c, &m->cpu_permille);
        codec_varint(c, &m->memory_mib);
        codec_varint(c, &m->in_kib);
        codec_varint(c, &m->out_kib);
        CODEC_ARRAY(c, m->ranks, m->n_ranks, RANKS_MAX, code_sample_rank);
        CODEC_ARRAY(c, m->gpus, m->n_gpus, GPUS_MAX, code_sample_gpu);
}

DEFINE_OWNING_MESSAGE(sample, MSG_SAMPLED)
