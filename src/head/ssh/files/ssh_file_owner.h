/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh file owner: protects files of the ssh config against writes by other users
 */
#pragma once

#include "base/error.h"

/* Returns 0 if only the user or root can write to the open file; else -EPERM with @err, whose
 * second line is the command to repair the mode. As in Debian's OpenSSH, write permission is
 * accepted for a group whose only member is the user. */
int ssh_file_owner_check(int fd, const char *path, struct error *err);
