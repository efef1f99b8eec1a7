/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nccl_env: the variables that make NCCL's RAS and PyTorch's flight recorder ready
 *
 * Pure. The agent applies it before starting a rank, the head to print a plan.
 *
 * PyTorch warns in each process of a set older name, also beside the newer name, so a rank gets an
 * older name only where the rank's PyTorch is known to need the name (agent/rank/torch_version.h).
 *
 * Sources: NCCL's src/ras/client_support.cc (NCCL_RAS_ADDR, from 2.24 on), PyTorch's
 * ProcessGroupNCCL and FlightRecorder. Names and values by release, as read in the sources of
 * 1.13.1 and 2.6.0 and in the headers and libraries of 2.1.2, 2.2.2, 2.4.1, 2.7.1, 2.8.0, 2.9.1,
 * 2.11.0 and 2.15.0, and seen in process groups that 2.2.2, 2.6.0 and 2.8.0 made on simulated GPUs:
 *
 * - up to 2.1: only NCCL_ASYNC_ERROR_HANDLING; 1.13 knows the values 0, 1 and 2, and goes on after
 *   an error with any other;
 * - 2.2 to 2.7: TORCH_NCCL_ASYNC_ERROR_HANDLING, TORCH_NCCL_TRACE_BUFFER_SIZE (0 = no recorder, the
 *   default up to 2.9), TORCH_NCCL_DEBUG_INFO_TEMP_FILE, TORCH_NCCL_DUMP_ON_TIMEOUT;
 * - 2.4 on: TORCH_NCCL_DEBUG_INFO_PIPE_FILE, up to 2.9 without effect unless
 *   TORCH_NCCL_TRACE_BUFFER_SIZE is set by this name;
 * - 2.2 on: a warning of NCCL_ASYNC_ERROR_HANDLING;
 * - 2.8 on: TORCH_FR_BUFFER_SIZE and TORCH_FR_DUMP_TEMP_FILE, with a warning of the older names;
 *   TORCH_NCCL_DUMP_ON_TIMEOUT is 1 unless set;
 * - 2.15: TORCH_FR_DUMP_ON_TIMEOUT, 1 unless set, with a warning of the older name.
 */
#pragma once

#include "base/strv.h"
#include "wire/msg.h"

/* File name of a dump, before the rank. */
#define NCCL_DUMP_NAME "nccl_trace_rank_"

/* Values known to the node. NULL leaves the variables out. */
struct nccl_values {
        const char *ras_addr; /* for NCCL_RAS_ADDR: HOST:PORT */
        const char *dumps;    /* path of the dumps, before the rank */
        const char *pipes;    /* path of the FIFOs, before the rank and ".pipe" */
};

/* A release of PyTorch as a number: 206 is 2.6. */
#define TORCH_VERSION(major, minor) ((major)*100 + (minor))

/*
 * Sets in @env, unless it or one of its other names is in @env or unset by @l:
 * NCCL_RAS_ADDR (not with NCCL_RAS_ENABLE=0); TORCH_FR_BUFFER_SIZE to 2000 entries;
 * TORCH_FR_DUMP_TEMP_FILE; TORCH_NCCL_DEBUG_INFO_PIPE_FILE; TORCH_NCCL_ASYNC_ERROR_HANDLING to 3.
 * With 1, PyTorch aborts the communicators before the dump is written, which then fails (pytorch
 * issue 121055); 3 is its own default.
 */
void nccl_env_build(struct strv *env, const struct launch_order *l, const struct nccl_values *v);

/* The same with the older names: TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE,
 * TORCH_NCCL_DUMP_ON_TIMEOUT (1) and NCCL_ASYNC_ERROR_HANDLING (1). Returns the set names, for
 * nccl_env_fit(). */
unsigned nccl_env_build_all(struct strv *env, const struct launch_order *l,
                            const struct nccl_values *v);

/* Takes the older names of @set that PyTorch @torch (TORCH_VERSION(), 0 = not known) does not need
 * out of @env, NULL-terminated; the strings stay. Async-signal-safe. */
void nccl_env_fit(char **env, unsigned set, unsigned torch);
