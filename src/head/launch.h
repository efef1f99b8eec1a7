/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run: one launch from its options to its exit code
 *
 * - launch.c: the table of contents: hosts -> connect -> plan -> files -> endpoint -> job ->
 * verdict
 * - launch_setup.c: what options mean on this terminal, in this folder, for this world size
 * - verdict.c: messages, the verdict, the exit code
 *
 * Each step returns 0 or ends the launch with messages (diags) and an exit code (design D16). The
 * main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "head/job/job.h"
#include "head/model/plan.h"
#include "head/options/options.h"
#include "head/output/run_dir.h"
#include "head/push/manifest.h"

/* Everything that a launch gathers on its way; freed at one place. */
struct run {
        struct options o;
        struct hosts hosts;
        struct diags diags;
        struct plan plan;
        struct plan_inventory *inventory;
        struct strv env, unset;
        struct events events;
        struct agent_binaries agent_binaries;
        struct manifest manifest;
        char *here; /* the current directory, where --push starts from */
        struct progress *progress;
        struct run_dir *dir;
        struct job *job;
        char *cwd, *agent, *source, *label;
        const char *where; /* the file whose errors are being told, NULL = not one file */
        bool *shown;       /* by rank; NULL = all */
        struct job_config config;
        bool color;
        int stdin_fd; /* what ranks read, -1 = nothing */
        char verdict[900];
};

/* Launches, or shows the plan of a launch: options and events are there. Returns the exit code;
 * all has been said. */
int run_launch(struct run *r);
void run_finish(struct run *r);

/* --- launch_setup.c -----------------------------------------------------------------------------
 */

bool run_choose_color(const struct options *o);
/* The ranks' working directory, and where the program is: `train.bin` means ./train.bin when that
 * is what there is, as with mpirun. The folder comes first: 0, or the exit code when there is none.
 */
int run_find_cwd(struct run *r);
void run_find_program(struct run *r);
/* Warns of an MPI program with several ranks. */
void run_check_mpi(struct run *r);
/* The files and programs that ssh options name. -ENOENT: what cannot be done without is not there;
 * told in diags with its exit code. */
int run_check_ssh(struct run *r);
/* Which ranks reach the terminal. 0, or the exit code: ranks that are not there. */
int run_choose_shown(struct run *r);
int run_check_ranks(struct run *r);                /* of plan --ranks: the same */
const char *run_choose_label(const struct run *r); /* the template, NULL = none */
/* -errno: the file of --stdin cannot be read; told in @err. */
int run_choose_stdin(struct run *r, struct error *err);

/* --- verdict.c ------------------------------------------------------------------------------ */

void run_say(struct run *r); /* prints what has gathered */
/* After the last word on standard output. @code, or 73 when that was not written (141: a closed
 * pipe) and all was well otherwise. */
int run_close_stdout(struct run *r, int code);
/* The launch ends before anything was started: says why, and returns @code, or what the first
 * error prefers. The second form adds an error first. */
int run_nothing(struct run *r, int code);
int run_nothing_because(struct run *r, int id, int code, const struct error *err);
/* The job is over: verdict, summary, messages. The exit code. */
int run_end(struct run *r);
