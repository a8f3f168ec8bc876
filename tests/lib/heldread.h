/* Calls for files that fail or never end, as those of a broken disk or of a server that is gone: for the
 * calling thread, the threads that it starts from then on, and what it executes. For good. */
#ifndef CCT_TESTS_LIB_HELDREAD_H
#define CCT_TESTS_LIB_HELDREAD_H

#include <stdbool.h>
#include <stdint.h>

struct heldread {
    int fd;        /* pread() of this descriptor alone, -1 = of any */
    uint32_t len;  /* ... of so many bytes alone, 0 = of any number */
    uint32_t from; /* ... at this offset or behind it */
    int error;     /* what it fails with; 0 = it does not return */
    uint32_t opens; /* not 0: openat() with any of these flags instead */
    bool syncs;     /* fsync() and fdatasync() instead */
};
/* False: this system has no such filters. Those that do not return are held by a descriptor that
 * stays open in this process: they fail once it has ended. */
bool heldread_install(const struct heldread *v, int n);

#endif
