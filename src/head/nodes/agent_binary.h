/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image: the agent's program for one kind of machine, as it is sent to nodes
 *
 * An installation has one agent for each architecture in one folder, hnlaunch-agent-x86_64 beside
 * hnlaunch-agent-aarch64; a build folder has this machine's as hnlaunch-agent. Architectures are
 * called as `uname -m` calls them. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* One agent's file, mapped into memory. */
struct agent_binary {
        const unsigned char *data;
        size_t len;
        char hash[33];    /* hex of the first 128 bits of its BLAKE2b */
        const char *arch; /* from the ELF header; static */
};

enum { AGENT_BINARIES_MAX = 4 };

/* At most one for each architecture. */
struct agent_binaries {
        struct agent_binary v[AGENT_BINARIES_MAX];
        size_t n;
        char *folder; /* where they are installed */
};

/* The agent of this machine: in a build folder beside hnlaunch, else in libexec. A malloc'ed path,
 * or NULL: not there, or this program's own path is not known. */
char *agent_binary_path(struct error *err);

/* Maps the agent @path and, when @siblings, those for other architectures in its folder. 0, or
 * -errno: one of them cannot be read; -ENOEXEC: one is not a program for the machine in its name.
 * In both cases @set, which needs no initialisation, is to be given to agent_binaries_finish(). */
int agent_binaries_load(struct agent_binaries *set, const char *path, bool siblings,
                        struct error *err);
void agent_binaries_finish(struct agent_binaries *set);

/* The one for @arch, or NULL. */
const struct agent_binary *agent_binary_for(const struct agent_binaries *set, const char *arch);
/* "x86_64, aarch64", cut to @size. */
void agent_binaries_names(const struct agent_binaries *set, char *to, size_t size);
