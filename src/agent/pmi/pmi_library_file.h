/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_library_file: the library with which Open MPI 3 and 4 speak PMI-1
 *
 * These versions have no PMI-1 of their own, but a component for Flux, which loads a library with
 * the functions of PMI-1 (src/carried/pmix/pmi_library.c). The agent carries the library and writes
 * the file into the job's folder.
 */
#pragma once

#include "base/strv.h"
#include "wire/msg.h"

/* Writes the library into the folder pmi of @job_dir, unless the file exists. Logs a failure:
 * programs of other MPIs do not need the library. */
void pmi_library_write(const char *job_dir);
/* Sets the variables that lead Open MPI to the library, and put Open MPI's files into the same
 * folder. Does nothing if the library cannot be loaded from there, or @env names another
 * library. */
void pmi_library_add_env(struct strv *env, const char *job_dir, const struct launch_order *l);

/* Open MPI keeps shared memory in /dev/shm, named after host, job and local rank, and leaves the
 * files there when ranks are killed. If @folder is in /dev/shm, too, the files are put into
 * @folder, because the agent always removes @folder, and other nodes on this machine do not use
 * @folder. */
void open_mpi_place_segments(struct strv *env, const char *folder);
