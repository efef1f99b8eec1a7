/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent binary: the agent's program for one kind of machine, for upload to nodes
 *
 * An installation has an agent for each architecture in the same folder, hnlaunch-agent-x86_64
 * beside hnlaunch-agent-aarch64; a build folder has this machine's as hnlaunch-agent. Architectures
 * have the names of `uname -m`. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* An agent's file, mapped into memory. */
struct agent_binary {
        const unsigned char *data;
        size_t len;
        char id[33];      /* hex, the same for the same program: name_binary() */
        const char *arch; /* from the ELF header; static */
};

enum { AGENT_BINARIES_MAX = 4 };

/* At most one agent per architecture. */
struct agent_binaries {
        struct agent_binary v[AGENT_BINARIES_MAX];
        size_t n;
        char *folder; /* where the agents are installed */
};

/* Returns the path of this machine's agent, malloc'ed: beside hnlaunch in a build folder, else in
 * libexec. NULL with @err: no agent, or the path of hnlaunch itself is unknown. */
char *agent_binary_path(struct error *err);

/* Maps the agent @path and, with @siblings, the agents for other architectures in the same folder.
 * 0, -ENOEXEC: a file is not a program for the machine in the file's name; any other negative
 * errno: a file cannot be read. @set needs no initialization, and agent_binaries_finish() in every
 * case. */
int agent_binaries_load(struct agent_binaries *set, const char *path, bool siblings,
                        struct error *err);
void agent_binaries_finish(struct agent_binaries *set);

/* Returns the agent for @arch, or NULL. */
const struct agent_binary *agent_binary_for(const struct agent_binaries *set, const char *arch);
/* Writes "x86_64, aarch64", cut to @size. */
void agent_binaries_names(const struct agent_binaries *set, char *to, size_t size);
