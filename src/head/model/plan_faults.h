/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan faults: what keeps a plan from being made, like nodes in one message
 *
 * plan.c notes a fault for every node that has it; plan_faults_report() turns them into
 * diagnostics, one for all nodes with the same numbers. Not for two threads at once.
 */
#pragma once

#include <stddef.h>

#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "head/term/diag.h"

enum plan_fault_kind {
        FAULT_SLOTS_ABOVE_GPUS, /* @want = slots=, @have = GPUs */
        FAULT_NO_SUCH_GPU,      /* @want = the device that gpus= names, @have = GPUs */
        FAULT_NO_SUCH_SLOT,     /* @want = the slot that a filter names, @have = slots */
        FAULT_PPN,              /* @want = --ppn, @have = room */
        FAULT_PPN_NO_GPU,       /* --ppn gpu */
        FAULT_GPUS_LEFT,        /* a warning: @want = --gpus-per-rank, @have = left over */
};

struct plan_fault {
        enum plan_fault_kind kind;
        int want, have;
        size_t *hosts, n;
};

struct plan_faults {
        struct plan_fault *v;
        size_t n;
        size_t errors; /* without warnings */
};

void plan_faults_add(struct plan_faults *f, enum plan_fault_kind kind, int want, int have,
                     size_t host);
void plan_faults_finish(struct plan_faults *f);

/* @inv as in plan_build(). */
void plan_faults_report(const struct plan_faults *f, const struct hosts *hosts,
                        const struct plan_inventory *inv, const struct plan_options *o,
                        struct diags *d);

/* HN301. plan.nodes[].slots is the room; @guessed nodes were taken for one slot each. */
void plan_fault_too_many_ranks(const struct plan *p, const struct hosts *hosts,
                               const struct plan_options *o, long room, size_t guessed,
                               struct diags *d);

/* No rank fits anywhere: only spare hosts (HN307), ranks that need more devices than the @slots of
 * the largest node (HN308), or no slot at all (HN301). */
void plan_fault_no_room(const struct plan *p, const struct hosts *hosts,
                        const struct plan_options *o, int slots, struct diags *d);
