/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All parts of the job report here what has happened in the attempt; the job follows by failed().
 */
#include "head/job/attempt.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/job/turns.h"
#include "head/job/world_servers.h"
#include "head/output/dump_files.h"
#include "wire/msg.h"

bool attempt_step(struct attempt *a, enum job_event e)
{
        enum job_state was = a->state;

        if (!job_state_step(&a->state, e))
                return false;
        log_line(LOG_DEBUG, "job: %s -> %s", job_state_name(was), job_state_name(a->state));
        return true;
}

/* The outcome decides whether the failure is the cause; failed() is called in either case, since a
 * stop on hold may be decided by any failure. */
void attempt_fail(struct attempt *a, const struct cause *c)
{
        a->failed(a->ctx, outcome_happened(&a->outcome, c));
}

char *attempt_last_words(const struct attempt *a, int rank, uint8_t stream)
{
        return a->printer ? printer_last_words(a->printer, rank, stream) : xstrdup("");
}

char *attempt_newest_stderr(void *ctx, int rank, struct burst *ret)
{
        const struct attempt *a = ctx;

        *ret = a->printer ? printer_last_burst(a->printer, rank, MSG_STDERR) : (struct burst){ 0 };
        return attempt_last_words(a, rank, MSG_STDERR);
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

void attempt_drop_parts(struct attempt *a)
{
        printer_destroy(a->printer);
        a->printer = NULL;
        world_servers_destroy(a->stores);
        a->stores = NULL;
        turns_destroy(a->turns);
        a->turns = NULL;
        dump_files_destroy(a->dumps);
        a->dumps = NULL;
}
