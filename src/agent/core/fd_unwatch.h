/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fd_unwatch: the end of a polled descriptor
 *
 * uv_close() of a uv_poll_t takes the number of its descriptor out of the kernel's set, even after
 * uv_poll_stop(). When the descriptor was closed earlier the number may belong to another
 * connection by then, which would never be read again. So both are closed in one step.
 */
#pragma once

#include <uv.h>

#include "base/fd.h"

/* Closes @poll, then @fd, which becomes -1; @closed is called when the loop has turned. */
static inline void fd_unwatch(uv_poll_t *poll, int *fd, uv_close_cb closed)
{
        uv_close((uv_handle_t *)poll, closed);
        *fd = fd_close(*fd);
}
