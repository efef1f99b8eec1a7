/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own hosts: which hosts of a list are this machine, and need no ssh
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/nodes/transport.h"

/* Marks hosts that are this machine under any name, unless the line or the ssh config of @login
 * gives them a login. */
void own_hosts_mark(struct hosts *h, const struct ssh_options *login);
