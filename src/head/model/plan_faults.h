/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan faults: why a plan cannot be made, a message for all nodes with the same fault
 *
 * plan.c adds a fault for every node; plan_faults_report() turns the faults into diagnostics. Not
 * for two threads at once.
 */
#pragma once

#include <stddef.h>

#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "head/term/diag.h"

enum plan_fault_kind {
        FAULT_SLOTS_ABOVE_GPUS, /* @want = slots=, @have = GPUs */
        FAULT_NO_SUCH_GPU,      /* @want = a device of gpus=, @have = GPUs */
        FAULT_NO_SUCH_SLOT,     /* @want = a slot of a filter, @have = slots */
        FAULT_PPN,              /* @want = --ppn, @have = capacity */
        FAULT_PPN_NO_GPU,       /* --ppn gpu */
        FAULT_GPUS_LEFT,        /* a warning: @want = --gpus-per-rank, @have = left over */
};

struct plan_fault {
        enum plan_fault_kind kind;
        int want, have;
        struct host_group nodes; /* with equal numbers */
};

struct plan_faults {
        struct plan_fault *v;
        size_t n;
        size_t errors; /* without warnings */
};

/* Adds @host to the fault of this kind and these numbers. */
void plan_faults_add(struct plan_faults *f, enum plan_fault_kind kind, int want, int have,
                     size_t host);
void plan_faults_finish(struct plan_faults *f);

/* Adds a diagnostic per fault to @d. @inv as in plan_build(). */
void plan_faults_report(const struct plan_faults *f, const struct hosts *hosts,
                        const struct plan_inventory *inv, const struct plan_options *o,
                        struct diags *d);

/* Adds HN301: more ranks wanted than the @capacity, the sum of plan.nodes[].slots, in which
 * @guessed nodes count as one slot each. Returns the message. */
struct diag *plan_fault_too_many_ranks(const struct plan *p, const struct hosts *hosts,
                                       const struct plan_options *o, long capacity, size_t guessed,
                                       struct diags *d);

/* Adds the error when no rank fits anywhere: only spare hosts (HN307), ranks with more devices than
 * the @slots of the largest node (HN308), or no slot at all (HN301). */
void plan_fault_no_capacity(const struct plan *p, const struct hosts *hosts,
                            const struct plan_options *o, int slots, struct diags *d);
