/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes as a job file, a user's file, an assignment of -o and a value of every kind.
 * A user's file never names a program, and a job file has one at most, or one for each role.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "head/options/job_file_roles.h"

/* @good: the file has no errors. */
static void check_role(const struct job_role *role, bool good)
{
        size_t programs = 0;

        require(!good || role->declared);
        for (size_t i = 0; i < role->keys.n; i++) {
                const struct setting *one = &role->keys.v[i];

                require(one->level == LEVEL_JOB && one->line > 0 && one->col >= 1 && one->len >= 0);
                programs += one->def == &option_program;
        }
        require(good ? programs == 1 : programs <= 1);
}

static void parse(enum level level, const char *text, size_t size)
{
        CLEANUP(settings_finish) struct settings s = { 0 };
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        int r = config_parse(&s, level, "/p/job.ini", text, size, &d);
        size_t programs = 0;

        require((r < 0) == (diags_errors(&d) > 0));
        for (size_t i = 0; i < s.n; i++) {
                require(s.v[i].level == level && s.v[i].line > 0);
                require(s.v[i].col >= 1 && s.v[i].len >= 0);
                programs += s.v[i].def == &option_program;
        }
        require(programs <= (level == LEVEL_JOB));
        require(!s.n_roles || (level == LEVEL_JOB && (r < 0 || !programs)));
        for (size_t i = 0; i < s.n_roles; i++)
                check_role(&s.roles[i], r == 0);
}

static void assign(const char *text)
{
        CLEANUP(settings_finish) struct settings s = { 0 };
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        require((config_assign(&s, text, &d) < 0) == (diags_errors(&d) > 0));
}

static void apply(const char *text)
{
        CLEANUP(options_finish) struct options o = { 0 };
        struct error err;

        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].parse)
                        option_apply(&o, &option_table[i], text, &err);
        require(o.plan.ppn >= PLAN_PPN_CPU && o.fanout >= 0 && o.grace_ms >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = strndup((const char *)data, size);

        parse(LEVEL_JOB, (const char *)data, size);
        parse(LEVEL_USER, (const char *)data, size);
        assign(text);
        apply(text);
        free(text);
        return 0;
}
