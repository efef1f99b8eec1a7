/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is written once per job and node, before ranks of PMI-1 start; later calls find the
 * file. The same folder takes the session files and shared memory of Open MPI, so all are removed
 * with the job's folder.
 */
#include "agent/pmi/pmi_library_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/pmi/pmi_library_image.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"

#define FOLDER  "%s/pmi"
#define LIBRARY FOLDER "/libhnlaunch-pmi.so"

void pmi_library_write(const char *job_dir)
{
        CLEANUP(free_textp) char *folder = xasprintf(FOLDER, job_dir);
        CLEANUP(free_textp) char *path = xasprintf(LIBRARY, job_dir);
        CLEANUP(fd_closep) int fd = -1;
        int r = mkdir(folder, 0700) < 0 && errno != EEXIST ? -errno : 0;

        /* Another call may have written the file. */
        if (r == 0 && (fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500)) < 0)
                r = -errno;
        if (fd >= 0)
                r = carried_image_write(&pmi_library_image, fd);
        if (r == 0 || r == -EEXIST)
                return;
        /* A part of a library would crash ranks. */
        unlink(path);
        log_line(LOG_INFO, "no PMI-1 for Open MPI: cannot write %s: %s", path, strerror(-r));
}

/* Returns a number of the attempt, because Open MPI names segments of shared memory after the
 * number: the FNV-1a hash of the attempt's names (Fowler, Noll, Vo; draft-eastlake-fnv). Open MPI
 * 4.1.4 loses the highest bit of the lower half in the number of the job of another rank. */
static uint32_t number_attempt(const struct launch_order *l)
{
        uint32_t hash = 2166136261;
        char name[WORLD_NAME_MAX];

        launch_order_world_name(l, name);
        for (const char *p = name; *p; p++)
                hash = (hash ^ (uint8_t)*p) * 16777619;
        /* Clears the highest bit of both halves. */
        return ((hash ^ l->restart) * 16777619) & 0x7fff7fff;
}

void pmi_library_add_env(struct strv *env, const char *job_dir, const struct launch_order *l)
{
        CLEANUP(free_textp) char *folder = xasprintf(FOLDER, job_dir);
        CLEANUP(free_textp) char *library = xasprintf(LIBRARY, job_dir);
        CLEANUP(buf_finish) struct buf clique = BUF_INIT;

        /* Not where files cannot be executed, either. */
        if (strv_env_get(env, "FLUX_PMI_LIBRARY_PATH") || access(library, X_OK) < 0)
                return;
        for (uint32_t i = 0; i < l->n_ranks; i++)
                buf_printf(&clique, i ? ",%u" : "%u", l->ranks[i].rank);
        if (buf_append(&clique, "", 1) < 0) /* the NUL */
                return;
        strv_env_set(env, "HNLAUNCH_PMI_CLIQUE", (const char *)buf_data(&clique));
        strv_env_set_number(env, "FLUX_JOB_ID", number_attempt(l));
        strv_env_set(env, "FLUX_PMI_LIBRARY_PATH", library);
        if (!strv_env_get(env, "OMPI_MCA_orte_tmpdir_base")) /* a choice of the user stays */
                strv_env_set(env, "OMPI_MCA_orte_tmpdir_base", folder);
        open_mpi_place_segments(env, folder);
}

void open_mpi_place_segments(struct strv *env, const char *folder)
{
        static const char *const names[] = { "OMPI_MCA_btl_vader_backing_directory",
                                             "OMPI_MCA_btl_sm_backing_directory" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strncmp(folder, "/dev/shm/", 9) && !strv_env_get(env, names[i]))
                        strv_env_set(env, names[i], folder);
}
