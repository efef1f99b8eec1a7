/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Venv: a virtual environment as a manifest for --venv
 *
 * The sent files do not depend on the place of the environment, and are right in any folder of the
 * nodes: scripts of bin/ find the Python beside them, .pth files and links name places inside by
 * relative paths, and pyvenv.cfg keeps `home`, the Python outside, which is not sent. A warning
 * lists paths out of the environment.
 *
 * The Python outside is sent if --stage names its installation or a folder around the installation:
 * as a folder of the copy, so environment and Python are kept and removed together. pyvenv.cfg
 * comes without `home` then; the agent adds `home`, since Python wants the whole path.
 */
#pragma once

#include "head/push/manifest.h"

/* Packs the environment @dir, relative to @cwd, into @p (MANIFEST_INIT), with the Python. @staged
 * has the paths of --stage, NULL = none. 0, or -EINVAL with errors in @d: not a virtual environment
 * (HN620), an environment of conda (HN621), or errors of manifest_pack(). Warnings in @d: paths out
 * of the environment (HN622), and set-user-ID files (HN625). */
int venv_pack(struct manifest *p, const char *dir, const struct strv *staged, const char *cwd,
              const struct manifest_watch *watch, struct diags *d);

/* Returns the installation of @python, PREFIX of PREFIX/bin/NAME, malloc'ed; NULL: another place.
 */
char *venv_find_prefix(const char *python);

/* --- parts, for tests --- */

/* Returns the text of a script of the environment @dir that finds Python beside itself, malloc'ed;
 * NULL: another first line. */
char *venv_move_script(const char *dir, const char *text, size_t len, size_t *ret_len);
