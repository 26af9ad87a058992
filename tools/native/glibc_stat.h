/* Included before every file that is compiled for glibc. Before 2.33, glibc has stat and fstat in a static library, and
 * the copy that zig links sets an errno of its own. These calls are in all versions of libc.so.6. */
#pragma once

#include <sys/stat.h>

#ifdef __x86_64__
enum { GLIBC_STAT_VERSION = 1 };
#else
enum { GLIBC_STAT_VERSION = 0 };
#endif

int __xstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);

#define stat(path, status) __xstat(GLIBC_STAT_VERSION, path, status)
#define fstat(fd, status) __fxstat(GLIBC_STAT_VERSION, fd, status)
