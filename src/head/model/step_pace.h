/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step pace: the mean time of a step, the rate of the last ones, and whether the steps stand still
 *
 * The live line, ps and top have the rule from here. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strv.h"
#include "head/model/events.h"
#include "head/model/step_rate.h"

/* Roles do different steps, and those of one count: the first of --main that has told one, else the
 * first in the order of the line. */
struct step_role {
        const struct strv *main_roles; /* lent; NULL = none */
        const char *role;              /* lent; NULL = all ranks count */
        size_t place;                  /* of the role in that order */
};

/* Of an attempt; times of the run. */
struct step_pace {
        int64_t first, most;      /* the first step that a rank told, and the greatest */
        int64_t first_us, had_us; /* when the first came, and the last of any rank; 0 = none */
        struct step_rate rate;    /* of the least step; rank_board_rate() */
        struct step_role of;
};

/* A rank of a role, which is this program of the line, has told a step: if the role counts rather
 * than that up to now, the pace begins anew. */
void step_pace_choose(struct step_pace *p, const char *role, int program);
/* Takes an event of the run. */
void step_pace_take(struct step_pace *p, const struct event *e);
/* Returns the mean time of a step in microseconds; 0 = unknown. */
int64_t step_pace_step_us(const struct step_pace *p);
/* Returns whether a time without a step is long: ten steps of @step_us, and at least ten seconds.
 */
bool step_pace_is_still(int64_t silent_us, int64_t step_us);
/* Returns for how long a stalled run has had no step, or without steps no sign of life, in
 * milliseconds; 0 = the run goes on. @hang_ms: of a found hang, 0 = none. */
int64_t step_pace_stalled_ms(const struct step_pace *p, int64_t now_us, int64_t hang_ms);
