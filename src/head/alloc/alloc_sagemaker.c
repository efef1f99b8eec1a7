/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SageMaker: a JSON list in SM_HOSTS, set by the training toolkit; without the toolkit "hosts" and
 * "current_host" of /opt/ml/input/config/resourceconfig.json. The platform starts the same command
 * on every host, so only the first host may go on.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/alloc/alloc_reader.h"

/* Adds the hosts of a JSON list. */
static int add_json_hosts(struct alloc_reader *r, struct alloc_text *t, const json_t *list)
{
        const char *from = t->t.text; /* names stand in the order of the list */
        const json_t *one;
        size_t i;

        json_array_foreach(list, i, one)
        {
                CLEANUP(strv_finish) struct strv names = STRV_INIT;
                const char *name = json_string_value(one);
                /* A name with escapes of JSON is not found in the text, and is no name of a
                 * host. */
                const char *at = name ? strstr(from, name) : NULL;
                struct text_range range = { at ? (size_t)(at - t->t.text) : 0,
                                            at ? strlen(name) : t->t.len };

                if (!at) {
                        alloc_text_error(t, HN_ALLOC_TEXT, range, "expected a list of host names");
                        return -EINVAL;
                }
                from = at + range.len;
                if (alloc_take_names(t, range, &names) < 0)
                        return -EINVAL;
                for (size_t k = 0; k < names.n; k++)
                        if (alloc_add_tasks(r, t, range, names.v[k], 1) < 0)
                                return -EINVAL;
        }
        if (r->hosts->n)
                return 0;
        alloc_text_error(t, HN_ALLOC_TEXT, (struct text_range){ 0, t->t.len },
                         "expected a list of host names");
        return -EINVAL;
}

/* Refuses all hosts but the first. */
static int check_first_host(struct alloc_reader *r, const char *own)
{
        const char *first = r->hosts->v[0].name;
        struct diag *d;

        if (r->in->asked || !own || alloc_same_name(first, own))
                return 0;
        d = diag_add(r->diags, HN_ALLOC_COPIES, EX_USAGE,
                     "SageMaker starts hnlaunch on every host, and this is %s", own);
        diag_help(d,
                  "--dial-in auto makes one job of them; or start hnlaunch on %s only, and an ssh "
                  "server on the others",
                  first);
        return -EINVAL;
}

/* Reads the hosts from SM_HOSTS, or from the file of the container. 0, or -EINVAL with errors in
 * diags. */
static int read_sagemaker_allocation(struct alloc_reader *r)
{
        const struct alloc_input *in = r->in;
        const char *gpus = alloc_variable(in->env, "SM_NUM_GPUS"), *own;
        CLEANUP(alloc_text_finish) struct alloc_text t;
        json_auto_t *root = NULL;
        struct alloc_count n_gpus = { 0 };
        json_error_t err;

        if (in->path)
                alloc_text_open_file(&t, r);
        else
                alloc_text_open(&t, r, "SM_HOSTS");
        root = json_loadb(t.t.text, t.t.len, JSON_REJECT_DUPLICATES, &err);
        if (!root) {
                alloc_text_error(&t, HN_ALLOC_TEXT, (struct text_range){ 0, t.t.len }, "%s",
                                 "expected a JSON text");
                return -EINVAL;
        }
        own = in->path ? json_string_value(json_object_get(root, "current_host"))
                       : alloc_variable(in->env, "SM_CURRENT_HOST");
        if (add_json_hosts(r, &t, in->path ? json_object_get(root, "hosts") : root) < 0 ||
            check_first_host(r, own) < 0)
                return -EINVAL;
        if (gpus && strcmp(gpus, "0") != 0 &&
            alloc_read_number(r, "SM_NUM_GPUS", SLOTS_MAX, &n_gpus) < 0)
                return -EINVAL;
        alloc_mark_own(r->hosts, own);
        alloc_settle(r, alloc_variable(in->env, "TRAINING_JOB_NAME"), "", n_gpus.value,
                     "SM_NUM_GPUS");
        return 0;
}

static const char *find_sagemaker_file(char *const *env)
{
        return alloc_variable(env, "SM_HOSTS") ? NULL : "/opt/ml/input/config/resourceconfig.json";
}

const struct alloc_manager alloc_sagemaker = {
        .title = "SageMaker",
        .marks = { "SM_HOSTS", "SM_CURRENT_HOST" },
        .also = "TRAINING_JOB_ARN",
        .path = find_sagemaker_file,
        .shared_file = true,
        .read = read_sagemaker_allocation,
};
