/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fd: descriptors born close-on-exec, closed once
 */
#pragma once

#include <stddef.h>

int fd_close(int fd);        /* keeps errno, ignores negative; returns -1: fd = fd_close(fd) */
void fd_closep(int *fd);     /* for CLEANUP() */
int fd_set_nonblock(int fd); /* 0 or -errno */
int fd_pair(int ret_fds[2]); /* AF_UNIX stream pair, close-on-exec, blocking; 0 or -errno */
/* Opens /dev/null for each closed one of 0 to 2, or the next file would take the number and receive
 * stdout. First call in main(). 0, or -errno. */
int fd_open_standard(void);
/* Checks that @n more descriptors can be opened: libuv aborts, or goes on incomplete, when some are
 * missing. 0, or -errno. */
int fd_check_room(int n);
/* Bytes that have come and are not read yet; 0 if that cannot be known. */
int fd_unread(int fd);
int fd_write_all(int fd, const void *data, size_t n); /* blocking fd; 0 or -errno */
/* Reads a whole file (0 bytes long in stat: /proc too) of at most @max bytes into a malloc'ed,
 * NUL-terminated string. 0, -EFBIG, or -errno of open and read. */
int fd_read_file(const char *path, size_t max, char **ret_text, size_t *ret_len);
/* The same from an open file on, which stays open. */
int fd_read_all(int fd, size_t max, char **ret_text, size_t *ret_len);
/* The same for a path, from the folder @dir on (AT_FDCWD), where other users may put anything:
 * never blocks, and reads regular files only. -EINVAL: another kind of file, symbolic links
 * included. -EFBIG before the first byte is read. */
int fd_read_regular(int dir, const char *path, size_t max, char **ret_text, size_t *ret_len);
