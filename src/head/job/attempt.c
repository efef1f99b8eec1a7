/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/attempt.h"

#include "base/log.h"
#include "base/memory.h"
#include "head/model/events.h"
#include "wire/msg.h"

bool attempt_step(struct attempt *a, enum job_event e)
{
        enum job_state was = a->state;

        if (!job_state_step(&a->state, e))
                return false;
        log_line(LOG_DEBUG, "job: %s -> %s", job_state_name(was), job_state_name(a->state));
        return true;
}

void attempt_fail(struct attempt *a, const struct cause *c)
{
        a->failed(a->ctx, outcome_happened(&a->outcome, c));
}

char *attempt_newest_stderr(void *ctx, int rank, struct burst *ret)
{
        const struct attempt *a = ctx;

        *ret = a->printer ? printer_last_burst(a->printer, rank, MSG_STDERR) : (struct burst){ 0 };
        return a->printer ? printer_last_words(a->printer, rank, MSG_STDERR) : xstrdup("");
}

uint64_t attempt_age_ms(const struct attempt *a)
{
        return a->launched_ns ? (uint64_t)(clock_ns() - a->launched_ns) / 1000000 : 0;
}

struct cause attempt_cause(const struct attempt *a, enum cause_kind kind)
{
        return (struct cause){ .kind = kind,
                               .rank = -1,
                               .node = -1,
                               .at_ns = clock_ns(),
                               .after_ms = attempt_age_ms(a) };
}
