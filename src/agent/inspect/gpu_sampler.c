/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipe is read with each sample: the helper never wakes the agent. A helper in a hanging driver
 * cannot be killed: until the helper is reaped there is no other.
 */
#include "agent/inspect/gpu_sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "agent/core/carried_image.h"
#include "agent/inspect/nvml_image.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"

enum {
        FRESH_MS = GPU_RECORD_PAUSE_MAX_MS + 2000,
        HANG_MS = 60000, /* without a record; a driver may need half of this time to begin */
        RETRY_MS = 60000,
        READS_MAX = 64, /* of the pipe, which holds fewer records */
        CELSIUS_MAX = 200,
        WATTS_MAX = 100000,
};

/* --- the helper ------------------------------------------------------------------------------- */

static void tell_gpu_failure(struct gpu_sampler *s, const char *why)
{
        if (!s->told)
                log_line(LOG_INFO, "no figures of GPUs: %s", why);
        s->told = true;
}

/* Starts hnlaunch-nvml. A process of its own, because the driver's library may hang with a broken
 * GPU, and the agent must not. */
static void start_gpu_helper(struct gpu_sampler *s, uint64_t now_ms)
{
        struct error err;
        int fds[2], r = pipe2(fds, O_CLOEXEC) < 0 ? -errno : 0;

        /* Holds if the start fails. */
        s->begin_ms = now_ms + RETRY_MS;
        s->have = 0;
        if (r < 0)
                return;
        r = fd_set_nonblock(fds[0]);
        if (r == 0)
                r = carried_image_spawn(
                        &s->pid, "hnlaunch-nvml", &nvml_image,
                        (struct spawn){ .cwd = "/", .fds = { fds[1], SPAWN_NULL, SPAWN_NULL } },
                        &err);
        fd_close(fds[1]);
        if (r == 0) {
                s->begin_ms = now_ms;
                s->fd = fds[0];
        } else {
                fd_close(fds[0]);
                tell_gpu_failure(s, "hnlaunch-nvml cannot be started here");
        }
}

/* The helper is of no use, or has ended; another may follow at @again_ms. */
static void drop_gpu_helper(struct gpu_sampler *s, uint64_t again_ms)
{
        if (s->pid)
                kill(s->pid, SIGKILL);
        s->fd = fd_close(s->fd);
        s->heard_ms = 0;
        s->begin_ms = again_ms;
}

/* A helper that was killed by a signal has just ended. */
static const char *explain_gpu_helper(int status)
{
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

        if (code == GPU_RECORD_NO_LIBRARY)
                return "no usable libnvidia-ml.so.1 is found";
        if (code == GPU_RECORD_NO_DRIVER)
                return "libnvidia-ml.so.1 cannot use the driver";
        return "hnlaunch-nvml has ended";
}

void gpu_sampler_reaped(struct gpu_sampler *s, pid_t pid, int status)
{
        if (s->pid != pid)
                return;
        s->pid = 0;
        if (s->fd < 0) /* dropped before */
                return;
        tell_gpu_failure(s, explain_gpu_helper(status));
        drop_gpu_helper(s, uv_hrtime() / 1000000 + RETRY_MS);
}

/* The first record of an attempt is the base for a comparison of errors. */
void gpu_sampler_begin(struct gpu_sampler *s)
{
        s->first.mark = 0;
}

void gpu_sampler_stop(struct gpu_sampler *s)
{
        drop_gpu_helper(s, 0);
        s->told = false;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Reads all available bytes. The end is nothing: gpu_sampler_reaped() follows. False: no record. */
static bool read_gpu_records(struct gpu_sampler *s, uint64_t now_ms)
{
        for (int i = 0; i < READS_MAX; i++) {
                ssize_t n = read(s->fd, (char *)&s->in + s->have, sizeof(s->in) - s->have);

                if (n <= 0)
                        return true;
                s->have += (size_t)n;
                if (s->have < sizeof(s->in))
                        continue;
                s->have = 0;
                if (s->in.mark != GPU_RECORD_MARK || s->in.n > GPU_RECORD_GPUS)
                        return false;
                s->newest = s->in;
                if (!s->first.mark)
                        s->first = s->in;
                s->heard_ms = now_ms;
        }
        return true;
}

/* Figures of a lost GPU may be out of range. */
static void add_gpu_figures(struct sample_gpu *to, const struct gpu_figures *g)
{
        bool has_memory = g->memory_total_mib != GPU_RECORD_UNKNOWN;

        to->use_percent = g->use_percent <= 100 ? g->use_percent : SAMPLE_USE_UNKNOWN;
        if (has_memory && g->memory_mib <= g->memory_total_mib) {
                to->memory_mib = g->memory_mib;
                to->memory_total_gib = ((uint64_t)g->memory_total_mib + 512) >> 10;
        }
        to->celsius = g->celsius <= CELSIUS_MAX ? g->celsius : 0;
        to->watts = g->watts <= WATTS_MAX ? g->watts : 0;
}

void gpu_sampler_take(struct gpu_sampler *s, struct sample *m)
{
        uint64_t now_ms = uv_hrtime() / 1000000;
        const char *why = NULL;

        if (s->fd < 0 && !s->pid && now_ms >= s->begin_ms)
                start_gpu_helper(s, now_ms);
        if (s->fd < 0)
                return;
        if (!read_gpu_records(s, now_ms))
                why = "hnlaunch-nvml wrote what is no record";
        else if (now_ms - MAX(s->heard_ms, s->begin_ms) > HANG_MS)
                why = "the driver does not answer";
        if (why) {
                tell_gpu_failure(s, why);
                drop_gpu_helper(s, now_ms + RETRY_MS);
        }
        if (!s->heard_ms || now_ms - s->heard_ms > FRESH_MS || !s->newest.n)
                return;
        m->n_gpus = s->newest.n;
        m->gpus = xcalloc(m->n_gpus, sizeof(*m->gpus));
        for (uint32_t i = 0; i < m->n_gpus; i++)
                add_gpu_figures(&m->gpus[i], &s->newest.gpus[i]);
}
