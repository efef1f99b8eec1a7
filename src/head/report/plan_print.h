/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan print: the plan of a launch, as a table, as JSON, or as the environments of ranks
 *
 * Values known to the nodes only are printed in brackets: rank 0's port, and, without an
 * @inventory, the cores behind OMP_NUM_THREADS. @inventory, by host, comes from the nodes; NULL =
 * not asked. Values of variables with secret names are never printed (config_is_secret()).
 * @manifest lists the pushed files, @cwd is the folder of the ranks. All functions only read;
 * memory is freed before they return.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "head/options/options.h"
#include "head/push/manifest.h"

struct role_book;

/* @book: of the roles, with the instances of the plan; NULL = none. @manifests: of the files that
 * are brought to the nodes, by enum push_use. */

/* Prints a line per role, a line per host, then program, exported variables, and the variables of
 * one rank. */
void plan_print_table(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o, const struct role_book *book,
                      const struct manifest *manifests, const struct plan_inventory *inventory,
                      const char *cwd);

/* Prints the same as a JSON object. */
void plan_print_json(FILE *to, const struct plan *p, const struct hosts *hosts,
                     const struct options *o, const struct role_book *book,
                     const struct manifest *manifests, const struct plan_inventory *inventory,
                     const char *cwd);

/* Prints the variables set by hnlaunch for each rank of o->ranks, NAME=VALUE per line, behind a
 * comment line "# rank N on HOST", with the role, and a comment line with the arguments when
 * options change arguments. @ports: names of ports for the ranks. The node's login environment is
 * not included. */
void plan_print_ranks(FILE *to, const struct plan *p, const struct hosts *hosts,
                      const struct options *o, const struct role_book *book,
                      const struct strv *ports);
