/* A folder of a test's own below /tmp. */
#ifndef CCT_TESTS_TMPDIR_H
#define CCT_TESTS_TMPDIR_H

#include <stddef.h>

/* "/tmp/cct-NAME-XXXXXX" into path; 0, or -1. */
int tmpdir_make(char *path, size_t size, const char *name);
/* With all in it, however deep. 0, or -1: something is left, and it is said. */
int tmpdir_remove(const char *path);

#endif
