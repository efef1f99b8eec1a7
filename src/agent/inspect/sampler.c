/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_take() reads the stat file of each known process. A session's use of the processor is the
 * sum over the processes since the sample before. The search for new processes takes a thousandth
 * of the time at most: the pause after a search is a thousand times the search, and at least
 * SEARCH_MS. Source of all files and fields: proc(5).
 */
#include "agent/inspect/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "agent/rank/rank_status.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

enum {
        SEARCH_MS = 5000,
        SEARCH_SHARE = 1000, /* the time between two searches, in times of a search */
        FILE_MAX = 1 << 20,
        NET_IN = 1, /* words of a line of /proc/net/dev, behind the name */
        NET_OUT = 9,
};

/* --- the machine ------------------------------------------------------------------------------ */

void sampler_read_stat(const char *text, struct sampler_counters *to)
{
        uint64_t v;

        to->busy = to->all = 0;
        if (strncmp(text, "cpu ", 4) != 0)
                return;
        /* user nice system idle iowait irq softirq steal; guest time is in user */
        for (size_t i = 1; i <= 8 && proc_number(text, i, &v); i++) {
                to->all += v;
                to->busy += i == 4 || i == 5 ? 0 : v;
        }
}

/* Names may stand close to the numbers: "eth0:123", so the colon is looked for. */
void sampler_read_net(const char *text, struct sampler_counters *to)
{
        to->in = to->out = 0;
        for (const char *line = text; line; line = strchr(line, '\n')) {
                const char *name, *colon;
                uint64_t in, out;

                line += *line == '\n';
                name = line + strspn(line, " ");
                colon = name + strcspn(name, ":\n");
                if (*colon != ':' || (colon - name == 2 && !memcmp(name, "lo", 2)))
                        continue;
                if (proc_number(colon + 1, NET_IN - 1, &in) &&
                    proc_number(colon + 1, NET_OUT - 1, &out)) {
                        to->in += in;
                        to->out += out;
                }
        }
}

/* 0 = no such line. */
static uint64_t read_kib(const char *text, const char *name)
{
        const char *at = strstr(text, name);

        return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

uint64_t sampler_read_memory(const char *text)
{
        uint64_t all = read_kib(text, "MemTotal:"), available = read_kib(text, "MemAvailable:");

        return (all - MIN(available, all)) >> 10;
}

static char *read_proc_file(const char *path)
{
        char *text;

        return fd_read_file(path, FILE_MAX, &text, NULL) < 0 ? NULL : text;
}

/* Fills in load, memory and traffic of the machine, as differences to the sample before; the first
 * has none. */
static void sample_machine(struct sampler *s, struct sample *m)
{
        CLEANUP(free_textp) char *stat = read_proc_file("/proc/stat");
        CLEANUP(free_textp) char *net = read_proc_file("/proc/self/net/dev");
        CLEANUP(free_textp) char *memory = read_proc_file("/proc/meminfo");
        struct sampler_counters now = { 0 }, *before = &s->before;

        if (stat)
                sampler_read_stat(stat, &now);
        if (net)
                sampler_read_net(net, &now);
        if (memory)
                m->memory_mib = sampler_read_memory(memory);
        if (m->interval_ms) {
                if (now.all > before->all && now.busy >= before->busy)
                        m->cpu_permille =
                                (now.busy - before->busy) * 1000 / (now.all - before->all);
                /* The bytes of a removed interface are gone with the interface. */
                m->in_kib = (now.in - MIN(before->in, now.in)) * 1000 / m->interval_ms >> 10;
                m->out_kib = (now.out - MIN(before->out, now.out)) * 1000 / m->interval_ms >> 10;
        }
        *before = now;
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* Reads all of /proc for the processes of the sessions. Facts about known processes stay. */
static void search_processes(struct sampler *s, const pid_t *pids, size_t n, uint64_t now_ns)
{
        struct rank_status_scan scan;
        struct proc_stat *old = s->known;
        size_t n_old = s->n_known;
        uint64_t took_ns;

        rank_status_scan(&scan);
        s->known = NULL;
        s->n_known = s->cap = 0;
        for (size_t i = 0; i < n; i++) {
                size_t k;
                const struct proc_stat *v =
                        pids[i] ? rank_status_session(&scan, pids[i], &k) : NULL;

                for (size_t j = 0; v && j < k; j++) {
                        struct proc_stat p = v[j];

                        for (size_t o = 0; o < n_old; o++)
                                /* The time of a new process counts from this search on. */
                                if (old[o].pid == p.pid && old[o].start_ticks == p.start_ticks)
                                        p.cpu_ticks = old[o].cpu_ticks;
                        s->known = xgrow(s->known, s->n_known, &s->cap, sizeof(*s->known));
                        s->known[s->n_known++] = p;
                }
        }
        rank_status_scan_finish(&scan);
        free(old);
        took_ns = uv_hrtime() - now_ns;
        s->search_ns = now_ns + MAX(took_ns * SEARCH_SHARE, (uint64_t)SEARCH_MS * 1000000);
}

/* Adds the processes of a session, and forgets ended processes. */
static void sample_session(struct sampler *s, pid_t pid, struct sample_rank *to, uint64_t *ticks)
{
        uint64_t pages = 0;
        size_t kept = 0;

        *ticks = 0;
        for (size_t i = 0; i < s->n_known; i++) {
                struct proc_stat *p = &s->known[i], now;

                if (p->session == pid) {
                        if (!proc_read_stat(&now, p->pid) || now.start_ticks != p->start_ticks)
                                continue;
                        *ticks += now.cpu_ticks - MIN(p->cpu_ticks, now.cpu_ticks);
                        pages += now.resident_pages;
                        if (now.pid == pid)
                                to->state = (uint8_t)now.state;
                        *p = now;
                        /* A process that has left the session since counts on: its time belongs to
                         * the rank. */
                        p->session = pid;
                }
                s->known[kept++] = *p;
        }
        s->n_known = kept;
        to->memory_mib = pages * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
}

void sampler_take(struct sampler *s, const pid_t *pids, size_t n, struct sample *m)
{
        uint64_t now_ns = uv_hrtime(), hz = (uint64_t)MAX(sysconf(_SC_CLK_TCK), 1L), ticks;

        m->mono_ms = now_ns / 1000000;
        m->interval_ms = s->taken_ns ? MAX((now_ns - s->taken_ns) / 1000000, UINT64_C(1)) : 0;
        s->taken_ns = now_ns;
        /* The first sample searches: search_ns is 0 after a reset. */
        if (now_ns >= s->search_ns)
                search_processes(s, pids, n, now_ns);
        for (size_t i = 0; i < n; i++) {
                if (!pids[i])
                        continue;
                sample_session(s, pids[i], &m->ranks[i], &ticks);
                if (m->interval_ms)
                        m->ranks[i].cpu_percent = ticks * 100000 / hz / m->interval_ms;
        }
        sample_machine(s, m);
}

/* Returns @pid itself while nothing is known of its session. */
pid_t sampler_busiest(const struct sampler *s, pid_t pid)
{
        const struct proc_stat *most = NULL;

        for (size_t i = 0; i < s->n_known; i++) {
                const struct proc_stat *p = &s->known[i];

                if (p->session == pid && (!most || p->cpu_ticks > most->cpu_ticks))
                        most = p;
        }
        return most ? most->pid : pid;
}

void sampler_reset(struct sampler *s)
{
        free(s->known);
        *s = (struct sampler){ 0 };
}
