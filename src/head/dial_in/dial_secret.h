/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_secret: the common secret of the nodes of a dial-in
 *
 * The first of these counts: --dial-secret FILE; the variable HNLAUNCH_DIAL_SECRET; the file
 * DIAL_SECRET_MOUNTED; in a job of a resource manager a file in the shared home, made by node 0 for
 * the job. Without any --dial-in is refused, unless the user says --dial-secret none.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "base/error.h"
#include "head/model/dial_env.h"
#include "head/options/options.h"
#include "head/term/diag.h"
#include "wire/noise/dial.h"

#define DIAL_SECRET_MOUNTED "/run/secrets/hnlaunch/dial-secret"

enum dial_secret_kind {
        DIAL_SECRET_NONE,  /* --dial-secret none */
        DIAL_SECRET_GIVEN, /* by the user or the platform */
        DIAL_SECRET_MUNGE, /* none; munge tells the user of a peer */
        DIAL_SECRET_HOME,  /* a file in the home */
};

struct dial_secret {
        enum dial_secret_kind kind;
        uint8_t psk[NOISE_KEY];       /* zeros: none */
        char folder[PATH_MAX - 200];  /* DIAL_SECRET_HOME: of the file; the user's alone */
        char file[DIAL_JOB_MAX + 8];  /* ... the name, by job and port; of MUNGE, too */
        char text[2 * NOISE_KEY + 1]; /* ... the content, until written or hashed */
};

/* Finds the secret, and removes HNLAUNCH_DIAL_SECRET from the environment. Warns (HN321) of
 * --dial-secret none, and of a file with other readers (HN347). 0, or -EINVAL with an error in
 * @diags: there is no secret (HN346), or the secret is unusable (HN328). */
int dial_secret_find(struct dial_secret *s, const struct dial_place *p, const struct options *o,
                     struct diags *diags);

/* Node 0, after opening the port: makes the file in the home, in place of a file left by an earlier
 * start, until dial_secret_remove(). Does nothing for other kinds. 0, or -errno with @err. */
int dial_secret_publish(struct dial_secret *s, struct error *err);
/* Other nodes, before each call: reads the file in the home. Does nothing for other kinds. 0;
 * -ENOKEY with @err: not there yet; another -errno with @err: not safe. */
int dial_secret_read(struct dial_secret *s, struct error *err);
/* Removes the file of dial_secret_publish(). Async-signal-safe. */
void dial_secret_remove(void);
