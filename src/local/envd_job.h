/* Long work beside the loop; private to envd_*.c. */
#ifndef LOCAL_ENVD_JOB_H
#define LOCAL_ENVD_JOB_H

struct envd;

struct job_result {
    int err; /* errno, 0 = fine; EINTR when it was killed */
    char text[1024];
};

/* Run `work` in a child of its own with a copy of everything; `done` gets what it
 * left in the result, later or at once, and owns `arg`. */
void envd_job(struct envd *e, void (*work)(struct envd *e, void *arg, struct job_result *r),
              void (*done)(void *arg, const struct job_result *r), void *arg);
void envd_job_free_all(struct envd *e);

#endif
