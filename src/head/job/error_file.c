/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error files of ranks: what torch.distributed.elastic's @record writes when a Python exception
 * ends main(): {"message": {"message": "ValueError: ...", "extraInfo": {"py_callstack": ...,
 * "timestamp":
 * ...}}}. Older releases put a plain string under "message".
 */
#include <jansson.h>
#include <stdlib.h>

#include "head/job/job_private.h"

void job_error_file(struct job *j, int rank, const void *text, size_t len)
{
        json_t *root = json_loadb(text, len, 0, NULL), *message = json_object_get(root, "message");
        json_t *extra = json_object_get(message, "extraInfo");
        const char *said = json_string_value(message);

        if (!said)
                said = json_string_value(json_object_get(message, "message"));
        if (said) {
                outcome_add_report(&j->outcome, rank, "python", said,
                                   json_string_value(json_object_get(extra, "py_callstack")));
                job_emit(j, EVENT_RANK_REPORT, j->plan->ranks[rank].node, rank, 0, said);
        }
        json_decref(root);
}
