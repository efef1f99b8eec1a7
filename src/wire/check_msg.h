/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check_msg: the state of a node for `hnlaunch check`, as names with values
 *
 * CHECK is answered by CHECKEDs: what is known at once, then what a driver or a file system may
 * hold up; or by a single one with the place of the node in the network. A fact is a name and a
 * text; the head alone knows what a value means. docs/protocol.md lists the names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

enum {
        CHECK_NAME = 32,
        CHECK_VALUE = 200,
        CHECK_PROBLEM = 160,
        CHECK_FACTS_MAX = 4096,
        CHECK_PATHS_MAX = 1024,
        CHECK_NAMES_MAX = 64,
        CHECK_WORDS_MAX = 256, /* of a program: those behind do not say what runs */
        CHECK_RUN_MS = 60000,  /* for the script of --run */
};

enum check_path_kind {
        CHECK_FOLDER,
        CHECK_PROGRAM, /* looked up in the search path without a slash */
        CHECK_FILE,
        CHECK_PATH_KINDS,
};

/* The facts that are asked for. */
enum check_what {
        CHECK_ALL,
        CHECK_PLACE, /* the NVLink domain, and the switches as Slurm tells them */
        CHECK_WHATS,
};

/* A path that ranks need. Relative ones count from @cwd. */
struct check_path {
        char name[CHECK_NAME]; /* of the fact that answers */
        uint8_t kind;          /* enum check_path_kind */
        char *path, *cwd;
        char *search; /* PATH, of CHECK_PROGRAM; "" = the node's own */
};

/* A program whose versions of Python, torch, CUDA and NCCL are wanted. */
struct check_program {
        uint32_t number; /* ".1" behind the names of facts; 0 = nothing */
        struct strv argv;
        struct strv env; /* what a loader and Python go by, where it differs from the node's */
        char *cwd;
};

/* A name of another node to look up. */
struct check_name {
        char fact[CHECK_NAME]; /* that answers */
        char *host;
};

struct check_names {
        struct check_name *v;
        uint32_t n;
};

struct check_order {
        uint32_t number; /* for the answers */
        uint8_t what;    /* enum check_what */
        struct check_path *paths;
        uint32_t n_paths;
        struct check_program *programs;
        uint32_t n_programs;
        struct check_names names;
        char *run, *run_cwd; /* a command for sh -c and its folder; "" = none */
};

/* A fact of a node: a value, or the problem that has kept the agent from finding it. */
struct check_fact {
        char name[CHECK_NAME];
        char value[CHECK_VALUE];
        char problem[CHECK_PROBLEM]; /* "" = @value counts */
};

struct checked {
        uint32_t number; /* of the CHECK */
        bool more;       /* another CHECKED follows */
        struct check_fact *facts;
        uint32_t n_facts;
};

void check_order_encode(struct buf *b, const struct check_order *m);
int check_order_decode(struct check_order *m, const struct frame *f, struct error *err);
void check_order_finish(struct check_order *m);
void checked_encode(struct buf *b, const struct checked *m);
int checked_decode(struct checked *m, const struct frame *f, struct error *err);
void checked_finish(struct checked *m);

/* Appends a fact with a value, or with a problem (@value ""). Longer texts are cut. */
void checked_add(struct checked *m, const char *name, const char *value, const char *problem);
