/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan_print: what a launch would do, for people and for programs
 *
 * What only the nodes know stays open and is printed in brackets: rank 0's port, and, without an
 * @inventory, the cores behind OMP_NUM_THREADS. @inventory is what the nodes said, by host; NULL =
 * they were not asked. Values whose names look secret are never printed (config_is_secret()).
 * @manifest is what is pushed. All functions only read; memory is freed before they return.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "head/options/options.h"
#include "head/push/manifest.h"

/* A line per host, then program, exported variables, and the variables of one rank. */
void plan_print_table(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o, const struct manifest *manifest,
                      const struct plan_inventory *inventory);

/* The same as one JSON object. */
void plan_print_json(FILE *to, const struct plan *p, const struct hosts *hosts,
                     const struct options *o, const struct manifest *manifest,
                     const struct plan_inventory *inventory);

/* The whole environment of the ranks of o->ranks that hnlaunch decides, NAME=VALUE per line, and
 * a comment line "# rank N on HOST" before each; the node's login environment lies below it. */
void plan_print_ranks(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o);
