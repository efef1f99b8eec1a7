/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh owner: whether only the user can write to a file that ssh_config(5) wants to be the user's
 * own
 */
#pragma once

#include "base/error.h"

/* 0 when only the user or root can write to the open file; else -EPERM with @err, whose second line
 * is the command that mends it. As OpenSSH of Debian and its kin does, a group is let write that
 * has the user as its only member. */
int ssh_file_owner_check(int fd, const char *path, struct error *err);
