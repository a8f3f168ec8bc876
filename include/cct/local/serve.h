/* The provider as a program: start, address file, stop, status. */
#ifndef CCT_LOCAL_SERVE_H
#define CCT_LOCAL_SERVE_H

#include <stdbool.h>

struct serve_opts {
    const char *state_dir, *runtime_dir; /* NULL: the usual places */
    bool unsafe;                         /* plain processes, no namespaces */
    bool private_net;                    /* see privnet.h */
    bool foreground;                     /* stay; else return when it is ready to serve */
    int idle_exit_s;                     /* 0: the default of a minute */
    int max_running;                     /* 0: the default */
};

/* Each returns the program's exit status and prints at most one sentence. */
int serve_main(const struct serve_opts *o);
int serve_stop(const struct serve_opts *o);
int serve_status(const struct serve_opts *o);

#endif
