/* Threads with names and ownership checks. Signals are main's: the others have all of them blocked
 * but those of a crash, whatever main has blocked when they start. */
#ifndef CCT_UTIL_THREAD_H
#define CCT_UTIL_THREAD_H

#include <pthread.h>
#include <stdbool.h>

enum thread_role { THREAD_NONE, THREAD_MAIN, THREAD_NET, THREAD_DB, THREAD_WORK };

/* Declare the calling thread's role (main does it first thing). */
void thread_set_role(enum thread_role role);
enum thread_role thread_role(void);
/* Start a joinable thread with that role and name (<= 15 characters); 0 or
 * ERR_IO. */
int thread_start(pthread_t *t, enum thread_role role, const char *name, void (*fn)(void *),
                 void *arg);
/* Join with a time limit; false if it is still running. */
bool thread_join_ms(pthread_t t, int ms);
/* Opens every mutator of a confined object. */
#define THREAD_ASSERT(role) thread_assert((role), __FILE__, __LINE__)
void thread_assert(enum thread_role role, const char *file, int line);

#endif
