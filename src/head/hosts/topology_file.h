/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology file: which hosts are at which switch, from --topology or Slurm
 *
 *   leaf1: gpu[001-016]                       a switch with hosts
 *   core: leaf[1-4]                           a switch with switches, which have lines of their own
 *   SwitchName=leaf1 Nodes=gpu[001-016]       the same in Slurm's words, as in topology.conf and as
 *   SwitchName=core Switches=leaf[1-4]        written by `scontrol show topology`
 *   BlockName=b1 Nodes=gpu[001-016]           hosts that share an NVLink domain
 *
 * Members stand between commas or blanks. Comments begin with #. A file may name more hosts than
 * the job has. All errors of a file are told together (exit 65; 66 when it cannot be read).
 *
 * Pure but for topology_load().
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

struct switch_tree;

/* Parses a text, which needs no NUL at the end. Messages call it @file. NULL: errors are in @d. */
struct switch_tree *topology_parse(const char *file, const char *text, size_t len, struct diags *d);
struct switch_tree *topology_load(const char *path, struct diags *d);
void topology_destroy(struct switch_tree *t);

/* Sets domain, switches and number of each host's site. Returns how many hosts the file has. */
size_t topology_place(struct switch_tree *t, struct hosts *h);
