/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_secret: the secret by which the nodes of a dial-in know each other
 *
 * The first that exists: --dial-secret FILE; the variable HNLAUNCH_DIAL_SECRET; the file
 * DIAL_SECRET_MOUNTED; in a job of a resource manager a file in the home that all nodes share,
 * which node 0 makes for the job. Without any of them --dial-in is refused, unless the user says
 * --dial-secret none.
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
        DIAL_SECRET_MUNGE, /* none; munge says whose process a peer is */
        DIAL_SECRET_HOME,  /* a file in the home */
};

struct dial_secret {
        enum dial_secret_kind kind;
        uint8_t psk[NOISE_KEY];       /* zeros: none */
        char folder[PATH_MAX - 200];  /* DIAL_SECRET_HOME: of the file; the user's alone */
        char file[DIAL_JOB_MAX + 8];  /* ... its name, by the job and the port; of MUNGE, too */
        char text[2 * NOISE_KEY + 1]; /* ... its content, until it is written or hashed */
};

/* Finds the secret, and removes HNLAUNCH_DIAL_SECRET from the environment. Warns (HN321) of
 * --dial-secret none, and of a file that others may read (HN347). 0, or -EINVAL with an error in
 * @diags: there is no secret (HN346), or it cannot be used (HN328). */
int dial_secret_find(struct dial_secret *s, const struct dial_place *p, const struct options *o,
                     struct diags *diags);

/* Node 0, once its port is open: makes the file in the home in place of one that an earlier start
 * has left; dial_secret_remove() ends it. Does nothing for other kinds. 0, or -errno with @err. */
int dial_secret_publish(struct dial_secret *s, struct error *err);
/* Other nodes, before each call: reads the file in the home. Does nothing for other kinds. 0;
 * -ENOKEY with @err: it is not there yet; another -errno with @err: it is not safe. */
int dial_secret_read(struct dial_secret *s, struct error *err);
/* Removes the file that dial_secret_publish() has made. Async-signal-safe. */
void dial_secret_remove(void);
