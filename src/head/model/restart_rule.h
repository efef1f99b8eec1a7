/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restart_rule: the decision about the next attempt, from the evidence of all attempts so far
 *
 * Pure. The rows of restart_rules are tried in their order; `hnlaunch explain restart` prints them.
 * Only attempts without progress count: with an attempt that has won steps all before are
 * forgotten, but for faults and hangs of one host and no other. A host is put out only where named
 * by the evidence, and is acquitted when the same failure shows on another host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "head/model/evidence.h"

enum restart_verb {
        RESTART_STOP,     /* no other attempt */
        RESTART_SAME,     /* again on the same hosts */
        RESTART_HOST_OUT, /* the host of the evidence goes, a spare host comes */
};

/* An earlier attempt. */
struct restart_past {
        struct evidence evidence;
        enum restart_verb verb;
};

struct restart_history {
        const struct restart_past *v; /* the oldest first */
        size_t n;
};

struct restart_limits {
        int give_up;     /* --give-up */
        int no_progress; /* --no-progress: attempts in all */
        /* Another host can take a place, or the job can go on without one. */
        bool replaceable;
};

struct restart_decision {
        enum restart_verb verb;
        /* The failure is the program's: hosts put out for it (restart_acquits()) are innocent. */
        bool acquits;
        char reason[512]; /* for people, one sentence */
};

struct restart_trial; /* restart_rule.c */

struct restart_rule {
        const char *seen, *decision; /* for people */
        bool (*decide)(const struct restart_trial *t);
};

extern const struct restart_rule restart_rules[];
extern const size_t restart_rule_count;

/* Decides after an attempt with the evidence @now. @h: the attempts before. */
void restart_decide(struct restart_decision *ret, const struct restart_history *h,
                    const struct evidence *now, const struct restart_limits *l);
/* Whether a decision with @acquits about @now frees the host that @past has put out. */
bool restart_acquits(const struct restart_past *past, const struct evidence *now);
const char *restart_verb_name(enum restart_verb verb); /* "stop", "same hosts", "host out" */
