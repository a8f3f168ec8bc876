/* Shared by the files of jobsbed alone. */
#ifndef CCT_TESTS_LIB_JOBSBED_PRIV_H
#define CCT_TESTS_LIB_JOBSBED_PRIV_H

#include "jobsbed.h"

#include <pthread.h>

struct jobsbed_priv {
    struct store *store;
    struct tools *tools;
    char *dir, *owner;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    uint64_t result, last_req;
    struct err err;
    bool got;
};

#endif
