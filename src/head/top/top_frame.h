/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top frame: a line of JSON of top_state.h, read, with the oddities of each host and rank
 *
 * Numbers missing from the line are -1. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOP_RANK_NAME = 64 };

/* Oddities, the worst first. */
enum top_oddity {
        ODD_LOST,
        ODD_SILENT,
        ODD_FAILED,
        ODD_HANGS, /* keeps the others waiting in a hang that the head has found */
        ODD_STOPPED,
        ODD_ALONE, /* does not wait, but most ranks do */
        ODD_BEHIND,
        ODD_SLOW, /* the others wait for this rank */
        ODD_WAITS,
        ODD_NOT_STARTED,
        ODD_NOT,
};

struct top_frame_rank {
        int64_t rank;
        const char *role;  /* NULL = the job has no roles */
        int64_t role_rank; /* number in the world of the role */
        int64_t replica;   /* of a role that has several, else -1 */
        bool alive, ended, silent;
        char state; /* the letter of /proc/pid/stat; '\0' = unknown */
        int64_t exit, step, lag, cpu_percent, memory_mib, quiet_ms, wait_ms;
        int64_t busy_percent; /* of the last 10 s, without waits for others */
        bool busy_guessed;
        const char *wait; /* "barrier"; NULL = does not wait */
        enum top_oddity odd;
};

/* All GPUs of a host: mean use, sums, the hottest. */
struct top_frame_gpus {
        /* -1 = no driver reports the number; memory_mib: no GPUs */
        int64_t percent, memory_mib, total_mib, celsius, watts;
};

struct top_odd {
        enum top_oddity worst; /* of the host and its ranks */
        size_t first;          /* first rank with this oddity */
        size_t n;              /* ranks with this oddity; 0 = only the host has it */
};

struct top_frame_host {
        const char *name, *state;
        int64_t node; /* below n_hosts */
        double cpu_percent;
        int64_t age_ms, silent_ms, memory_mib, memory_total_mib, in_kib, out_kib;
        struct top_frame_rank *ranks;
        size_t n_ranks;
        /* Of the ranks: how many live, the last step, the longest wait, the newest output. */
        size_t alive;
        int64_t step, lag, quiet_ms;
        const struct top_frame_rank *longest; /* wait; NULL = none waits */
        const struct top_frame_rank *busiest; /* NULL = not known of any */
        struct top_frame_gpus gpus;
        struct top_odd odd;
};

/* The slow ranks of one host, for which the others wait. */
struct top_slow {
        int64_t above; /* a rank with more percent busy is slow; -1 = none is */
        int64_t cost;  /* percent of the time in which only the others wait */
        bool guessed;
};

struct top_frame_pace {
        double rate;           /* steps in a second; 0 = not known */
        int64_t since_step_ms; /* since the last step of any rank */
        int64_t step_ms;       /* mean time of a step */
        int64_t stalled_ms;    /* the run stands still (step_pace.h) */
        bool going;            /* a rank goes on */
        bool has_roles;        /* ranks of several roles are not compared with each other */
        const json_t *hang;    /* a hang that was found, with text and rank; NULL = none */
};

struct top_frame {
        json_t *json; /* lends the texts */
        const char *run, *state;
        int64_t us, world_size, num_nodes, alive, step, spread, total;
        struct top_frame_pace pace;
        bool has_gpus;
        struct top_frame_host *hosts;
        size_t n_hosts;
        size_t name_width; /* of the longest name of a host */
        size_t waiting;    /* ranks in a long wait */
        bool knows_busy;   /* a rank has busy_percent */
        bool some_wait;    /* busy_percent has a meaning: spinning ranks would never wait */
        bool one_is_alone; /* most ranks are in a long wait, and a rank does not wait */
        struct top_slow slow;
};

/* Reads a line, and takes over @json. False = a line without hosts and ranks, and @f is empty. */
bool top_frame_read(struct top_frame *f, json_t *json);
void top_frame_finish(struct top_frame *f);

/* Writes "rank 3", "infer:3", or with replicas "infer:1:3". Returns @to. */
const char *top_frame_rank_name(const struct top_frame_rank *r, char to[TOP_RANK_NAME]);
/* Writes the oddity of a host or a rank, "" = none. */
void top_frame_host_note(const struct top_frame *f, const struct top_frame_host *h, char *to,
                         size_t size);
void top_frame_rank_note(const struct top_frame *f, const struct top_frame_rank *r, char *to,
                         size_t size);
/* Writes which rank is slow: "rank 5 on gpu026 is slow: others wait 19 %"; "" = none. */
void top_frame_slow_note(const struct top_frame *f, char *to, size_t size);
/* Returns for how long no rank has written while none works: perhaps a hang. -1 = some do. */
int64_t top_frame_still_ms(const struct top_frame *f);
/* Writes a time in a few characters: "12s", "3m", "2h05m". */
void top_frame_age(int64_t ms, char *to, size_t size);
