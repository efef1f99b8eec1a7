/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_library_file: the library that lets Open MPI 3 and 4 speak PMI-1
 *
 * They have no PMI-1 of their own, but a component for Flux that loads a library with its functions
 * (src/carried/pmix/pmi_library.c). The agent carries that library and writes it into the job's
 * folder.
 */
#pragma once

#include "base/strv.h"
#include "wire/msg.h"

/* Writes the library into the folder pmi of @job_dir, unless it is there. Logs if that cannot be:
 * programs of other MPIs do not need it. */
void pmi_library_write(const char *job_dir);
/* Sets what leads Open MPI to the library, and its files into the same folder; nothing if the
 * library cannot be loaded from there, or @env names another. */
void pmi_library_add_env(struct strv *env, const char *job_dir, const struct launch_order *l);

/* Open MPI keeps shared memory in /dev/shm, named after host, job and local rank, and forgets it
 * when ranks are killed: if @folder is there, too, it is put into @folder, which the agent removes
 * in any case, and which other nodes on this machine do not use. */
void open_mpi_place_segments(struct strv *env, const char *folder);
