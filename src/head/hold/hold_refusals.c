/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hold/hold_refusals.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/core/shell_words.h"
#include "wire/env_names.h"

/* Returns the next step after the refusal @why of node @i. For a failed import: the same import as
 * a command, "try there: python3 -c 'import a, b'". */
static char *format_next_step(const struct hold_config *c, size_t i, const char *why)
{
        const struct warm_order *m = c->warm;
        const char *venv = c->venvs[i] ? c->venvs[i] : strv_env_get(&m->env, HN_VENV);
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        CLEANUP(buf_finish) struct buf order = BUF_INIT;
        CLEANUP(free_textp) char *command = NULL;

        if (strncmp(why, "cannot import ", 14) != 0)
                return xstrdup("hnlaunch explain HN641 tells what to do");
        for (size_t k = 0; k < m->modules.n; k++)
                buf_printf(&order, k ? ", %s" : "import %s", m->modules.v[k]);
        if (venv && !strchr(m->word, '/'))
                strv_pushf(&words, "%s/bin/%s", venv, m->word);
        else
                strv_push(&words, m->word);
        strv_push(&words, "-c");
        strv_push_mem(&words, buf_data(&order), buf_len(&order));
        command = shell_words_join(&words);
        return xasprintf("try there: %s", command);
}

void hold_warn_refusals(const struct hold_config *c, char **refusals)
{
        size_t n_hosts = c->hosts->n, *same = xcalloc(n_hosts + 1, sizeof(*same));

        for (size_t i = 0; i < n_hosts; i++) {
                CLEANUP(free_textp) char *why = STEAL(&refusals[i]), *hosts = NULL;
                CLEANUP(free_textp) char *next = NULL;
                size_t n = 0;

                if (!why)
                        continue;
                same[n++] = i;
                for (size_t k = i + 1; k < n_hosts; k++) {
                        if (!refusals[k] || strcmp(refusals[k], why) != 0)
                                continue;
                        free(STEAL(&refusals[k]));
                        same[n++] = k;
                }
                hosts = hosts_fold(c->hosts, same, n);
                next = format_next_step(c, i, why);
                log_warning(HN_NOT_WARM, "cannot prepare interpreters on %s: %s; %s", hosts, why,
                            next);
        }
        free(same);
}
