/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind comes from the first cause. The text of a rank refines the kind: an errno of a full or
 * read-only file system, or the words of a GPU driver about a broken GPU. If ranks of several hosts
 * failed at once with the same text, the text points to no host. Reports of nodes about their GPUs
 * go before.
 */
#include "head/model/evidence.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "head/model/failure_mask.h"
#include "head/model/outcome_private.h"
#include "head/reason/echo.h"
#include "wire/msg.h"

/* Words of drivers and of CUDA, HIP and NVML for a GPU that is broken or gone. */
static const char *const broken_gpu[] = {
        "uncorrectable ECC error",   "uncorrectable NVLink error",
        "fallen off the bus",        "GPU is lost",
        "hipErrorECCNotCorrectable",
};

static const struct {
        int error; /* of errno, as in the words of strerror() */
        const char *words;
} full_errors[] = {
        { ENOSPC, "No space left on device" },
        { EDQUOT, "Disk quota exceeded" },
        { EROFS, "Read-only file system" },
};

const char *evidence_name(enum evidence_kind kind)
{
        static const char *const names[EVIDENCE_KINDS] = {
                [EVIDENCE_NONE] = "none",       [EVIDENCE_EXIT] = "exit",
                [EVIDENCE_KILLED] = "killed",   [EVIDENCE_FAULT] = "fault",
                [EVIDENCE_GPU] = "gpu",         [EVIDENCE_HANG] = "hang",
                [EVIDENCE_LOST] = "lost",       [EVIDENCE_NODE] = "node",
                [EVIDENCE_MISSING] = "missing", [EVIDENCE_OOM] = "oom",
                [EVIDENCE_PREPARE] = "prepare", [EVIDENCE_FULL] = "full",
                [EVIDENCE_DRAINED] = "drained",
        };

        return names[kind];
}

/* Whether the processor or abort() raises the signal. Most other signals come from other processes.
 */
static bool is_fault(int signo)
{
        return signo == SIGILL || signo == SIGBUS || signo == SIGFPE || signo == SIGSEGV ||
               signo == SIGABRT;
}

static int find_full_error(const char *text)
{
        for (size_t i = 0; i < ARRAY_SIZE(full_errors); i++)
                if (strstr(text, full_errors[i].words))
                        return full_errors[i].error;
        return 0;
}

static bool tells_of_gpu(const char *text)
{
        for (size_t i = 0; i < ARRAY_SIZE(broken_gpu); i++)
                if (strstr(text, broken_gpu[i]))
                        return true;
        return false;
}

/* Finds the first absolute path of @text, in quotes, where blanks belong to the path, or as a word.
 * @to becomes "" if there is none. */
static void find_path(const char *text, char *to, size_t size)
{
        *to = '\0';
        for (const char *p = text; *p; p++) {
                bool starts = p == text || strchr(" '\"`(<=:", p[-1]);
                size_t n = strcspn(p, p > text && strchr("'\"`", p[-1]) ? "'\"`" : " '\"`:,)>");

                if (*p != '/' || !starts || n < 2)
                        continue;
                snprintf(to, size, "%.*s", (int)MIN(n, size - 1), p);
                return;
        }
}

/* Whether @path is on the node's own disk or memory, by its name. */
static bool is_node_path(const char *path)
{
        static const char *const prefixes[] = { "/tmp/", "/var/tmp/", "/dev/shm/", "/run/" };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
                        return true;
        return false;
}

/* Whether a file system's type of statfs(2) is that of a network. The kernel's headers name few of
 * these types, so the numbers stand here. */
static bool is_network_type(uint64_t type)
{
        static const uint64_t types[] = {
                0x6969 /* NFS */,        0xFE534D42 /* SMB2 */,
                0xFF534D42 /* CIFS */,   0x0BD00BD0 /* Lustre */,
                0x47504653 /* GPFS */,   0x00C36400 /* Ceph */,
                0x19830326 /* BeeGFS */, 0xAAD7AAEA /* PanFS */,
                0x5346414F /* AFS */,    0x20030528 /* OrangeFS */
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (types[i] == type)
                        return true;
        return false;
}

enum path_owner evidence_path_owner(const struct node_facts *facts, size_t n, size_t node)
{
        const struct node_facts *own = &facts[node];
        bool differs = false;

        if (is_network_type(own->fs_type))
                return PATH_SHARED;
        for (size_t i = 0; i < n; i++) {
                /* An id of 0 is not known: the node did not answer, or the path does not exist
                 * there. */
                if (i == node || !own->fs_id || !facts[i].fs_id)
                        continue;
                if (facts[i].fs_id == own->fs_id)
                        return PATH_SHARED;
                differs = true;
        }
        /* A single node proves nothing, as there is no other id. */
        return differs && node_facts_is_local(own->fs_type) ? PATH_OF_NODE : PATH_UNKNOWN;
}

/* The name decides before the id, which disks made from one image share. */
static enum path_owner find_path_owner(const char *path, size_t node,
                                       const struct evidence_facts *f)
{
        const struct node_facts *facts;

        if (!strncmp(path, "/torch_", 7)) /* PyTorch's shared memory, in /dev/shm */
                return PATH_OF_NODE;
        facts = f->ask(f->ctx, path);
        if (is_node_path(path) && !is_network_type(facts[node].fs_type))
                return PATH_OF_NODE;
        return evidence_path_owner(facts, f->hosts->n, node);
}

/* Returns the host's name, lent; "" = the evidence names no host. */
static const char *name_host(const struct evidence_facts *f, int node)
{
        return node >= 0 && (size_t)node < f->hosts->n ? f->hosts->v[node].name : "";
}

/* Whether a rank of another node than @node has failed for the same reason. */
static bool is_elsewhere_too(const struct outcome *o, const struct evidence_facts *f, int node)
{
        for (size_t i = 0; i < o->n_same; i++)
                if (o->same[i] < f->plan->world_size && f->plan->ranks[o->same[i]].node != node)
                        return true;
        return false;
}

/* Whether a rank of the list, well or on our order, was on another node. */
static bool has_ended_elsewhere(const struct cause_list *l, int node)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->v[i].node != node)
                        return true;
        return false;
}

/* Whether a program was started on another node than @node. */
static bool was_started_elsewhere(const struct outcome *o, int node)
{
        for (size_t i = 0; i < o->n_seen; i++)
                if (cause_is_end_of_rank(&o->seen[i]) && o->seen[i].node != node)
                        return true;
        return has_ended_elsewhere(&o->left, node) || has_ended_elsewhere(&o->halted, node);
}

/* A program that started on another node is missing on this node alone. Without a start elsewhere
 * the program itself may be wrong. A fork fails for lack of resources of the node. */
static void read_refusal(struct evidence *e, const struct outcome *o, const struct cause *c)
{
        e->error = c->error;
        if (c->why == REFUSED_ORDER)
                e->kind = EVIDENCE_NONE;
        else if (c->why == REFUSED_EXEC || c->why == REFUSED_CWD || c->why == REFUSED_PMIX)
                e->kind = was_started_elsewhere(o, c->node) ? EVIDENCE_NODE : EVIDENCE_MISSING;
        else
                e->kind = c->why == REFUSED_FORK ? EVIDENCE_NODE : EVIDENCE_PREPARE;
}

/* Sets kind, numbers and text from the end of a rank. A rank ended by another rank's failure, also
 * by SIGABRT, does not name the rank's host. A shell reports a signal as 128 + N. */
static void read_end_of_rank(struct evidence *e, const struct cause *c)
{
        int shell_signal = c->kind == CAUSE_EXIT && c->quote <= QUOTE_LINE ? c->code - 128 : 0;
        int signo = c->kind == CAUSE_SIGNAL ? c->signal : is_fault(shell_signal) ? shell_signal : 0;

        e->echo = c->waited || c->kind == CAUSE_LEFT ||
                  (c->quote && echo_of_text(c->text, c->rank) != ECHO_NONE);
        e->code = c->code;
        e->signal = signo;
        if (*c->oom.file)
                e->kind = EVIDENCE_OOM;
        else if (is_fault(signo) && !e->echo)
                e->kind = EVIDENCE_FAULT;
        else
                e->kind = signo ? EVIDENCE_KILLED : EVIDENCE_EXIT;
        if (c->quote > QUOTE_LINE && c->kind != CAUSE_LEFT)
                failure_mask(c->text, e->text, sizeof(e->text));
}

/* Refines the end of a rank by words about a file system or a GPU. */
static void read_text(struct evidence *e, const struct outcome *o, const struct cause *c,
                      const struct evidence_facts *f)
{
        bool everywhere = is_elsewhere_too(o, f, c->node);
        int full = find_full_error(c->text);

        /* "No space left" tells of the host only if the path is on the host's own disk, and no
         * other host has said the same. */
        if (full) {
                e->kind = EVIDENCE_FULL;
                e->error = full;
                find_path(c->text, e->path, sizeof(e->path));
                if (*e->path && c->node >= 0)
                        e->owner = find_path_owner(e->path, (size_t)c->node, f);
                if (e->owner == PATH_OF_NODE && !everywhere)
                        e->kind = EVIDENCE_NODE;
        } else if (tells_of_gpu(c->text) && !everywhere) {
                e->kind = EVIDENCE_GPU;
                /* Two failures of a GPU are alike, whatever signal ended the rank. */
                e->signal = 0;
        }
}

/* Whether a broken GPU may be the reason. */
static bool may_be_gpu(enum evidence_kind kind)
{
        return kind == EVIDENCE_EXIT || kind == EVIDENCE_KILLED || kind == EVIDENCE_FAULT ||
               kind == EVIDENCE_GPU || kind == EVIDENCE_HANG;
}

/* A broken GPU of the failed node, or the only broken GPU of all nodes, is the reason: ranks on
 * other nodes may be the first to fail. */
static void read_broken_gpus(struct evidence *e, const struct evidence_facts *f)
{
        const struct node_facts *facts = f->ask(f->ctx, "");
        size_t n = 0, node = 0;

        for (size_t i = 0; i < f->hosts->n; i++)
                if (*facts[i].gpu) {
                        node = i;
                        n++;
                }
        /* With several broken GPUs, and none on the failed node, the facts point to no host. */
        if (e->node >= 0 && *facts[e->node].gpu)
                node = (size_t)e->node;
        else if (n != 1)
                return;
        if ((int)node != e->node)
                e->rank = -1;
        e->kind = EVIDENCE_GPU;
        e->node = (int)node;
        e->signal = 0;
        snprintf(e->host, sizeof(e->host), "%s", name_host(f, e->node));
        snprintf(e->gpu, sizeof(e->gpu), "%s", facts[node].gpu);
}

/* Whether any rank, the cause or not, exited with the code of --give-up. */
static bool has_given_up(const struct outcome *o, int code)
{
        bool found = o->cause.kind == CAUSE_EXIT && o->cause.code == code;

        for (size_t i = 0; i < o->n_seen && !found; i++)
                found = o->seen[i].kind == CAUSE_EXIT && o->seen[i].code == code;
        return found;
}

void evidence_collect(struct evidence *ret, const struct outcome *o, const struct evidence_facts *f)
{
        const struct cause *c = &o->cause;
        struct evidence e = { .rank = c->rank, .node = c->node, .progress = f->progress };

        snprintf(e.host, sizeof(e.host), "%s", name_host(f, c->node));
        if (c->kind == CAUSE_NODE) {
                e.kind = EVIDENCE_LOST;
        } else if (c->kind == CAUSE_PAUSE) {
                e.kind = EVIDENCE_LOST;
                snprintf(e.text, sizeof(e.text), "hnlaunch did not run for a while");
        } else if (c->kind == CAUSE_DRAIN) {
                e.kind = EVIDENCE_DRAINED;
        } else if (c->kind == CAUSE_HANG || c->kind == CAUSE_STUCK) {
                e.kind = EVIDENCE_HANG;
                e.code = c->code;
        } else if (c->kind == CAUSE_REFUSED) {
                read_refusal(&e, o, c);
        } else if (cause_is_end_of_rank(c) && c->kind != CAUSE_ABORT) {
                read_end_of_rank(&e, c);
                if (c->quote && e.kind != EVIDENCE_OOM)
                        read_text(&e, o, c, f);
        }
        if (may_be_gpu(e.kind))
                read_broken_gpus(&e, f);
        /* Where there is no other host, nothing tells the host from the program. */
        if (f->hosts->n < 2 && (e.kind == EVIDENCE_FAULT || e.kind == EVIDENCE_HANG))
                *e.host = '\0';
        e.gave_up = has_given_up(o, f->give_up);
        *ret = e;
}
