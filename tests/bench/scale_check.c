/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hnlaunch check python3 train.py` of connected nodes, as head/launch/launch_check.c does it, up
 * to the text of the table.
 */
#include "bench/scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/check/check_judge.h"
#include "head/check/check_print.h"
#include "head/job/job_peers.h"
#include "head/launch/launch_private.h"

static const char *const lines[SCALE_FAULTS] = { [SCALE_OLD_DRIVER] = "gpu.driver",
                                                 [SCALE_SMALL_SHM] = "shm.size",
                                                 [SCALE_ECC] = "gpu.ecc",
                                                 [SCALE_XID] = "gpu.xid",
                                                 [SCALE_REFUSES] = "net.peers" };

static void count_faults(struct scale *s, const struct check_report *r)
{
        for (size_t k = 0; k < r->n; k++)
                for (size_t i = 0; i < r->n_nodes; i++) {
                        enum scale_fault fault = scale_fault_of((uint32_t)i);

                        if (r->v[k].of[i].level < CHECK_WARN)
                                continue;
                        if (fault != SCALE_FAULTS && !strcmp(lines[fault], r->v[k].name))
                                s->joined++;
                        else
                                s->false_alarms++;
                }
}

static bool write_table(const struct scale *s, const char *table)
{
        FILE *to = fopen(s->table, "we");

        if (!to || fputs(table, to) < 0 || fclose(to) != 0) {
                perror(s->table);
                return false;
        }
        return true;
}

/* Judges as check_nodes() of launch_check.c does. */
static bool judge(struct scale *s, struct launch *l, struct checked *facts, struct job_peers *peers)
{
        CLEANUP(check_profile_finish) struct check_profile profile;
        struct check_node *nodes = launch_check_describe(l, facts);
        CLEANUP(free_textp) char *table = NULL;
        CLEANUP(free_textp) char *verdict = NULL;
        struct check_report r;
        bool good;

        check_profile_init(&profile);
        check_judge_by(&r, nodes, l->hosts.n, &profile, false);
        job_peers_judge(peers, &r, NULL);
        table = check_print_table(&r, &l->hosts, 0);
        verdict = check_print_verdict(&r);
        scale_mark(s, SCALE_BARRIER);
        scale_mark(s, SCALE_IDLE);
        count_faults(s, &r);
        good = !s->table || write_table(s, table);
        check_report_finish(&r);
        free(nodes);
        return good;
}

bool scale_check(struct scale *s, struct job *job, const struct hosts *hosts,
                 const struct options *o)
{
        struct strv argv = { 0 };
        struct job_program program = { .argv = &argv };
        struct options options = *o;
        struct job_config config = { 0 };
        struct run_view run = { .job = job };
        struct launch l = { .o = &options,
                            .hosts = *hosts,
                            .config = &config,
                            .run = &run,
                            .cwd = (char *)"/home/alice",
                            .programs = &program,
                            .n_programs = 1 };
        struct checked *facts = xcalloc(s->n_nodes, sizeof(*facts));
        struct job_peers peers = { 0 };
        bool good;

        strv_push(&argv, "python3");
        strv_push(&argv, "train.py");
        good = launch_check_ask(&l, facts, true) == JOB_DONE &&
               launch_check_peers(&l, facts, false, NULL, &peers) == JOB_DONE;
        scale_mark(s, SCALE_LAUNCH);
        good = good && judge(s, &l, facts, &peers);
        job_peers_finish(&peers);
        for (uint32_t i = 0; i < s->n_nodes; i++)
                checked_finish(&facts[i]);
        free(facts);
        strv_finish(&argv);
        return good;
}
