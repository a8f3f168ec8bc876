/* A program that is talked to by lines, through pipes (as ssh without a terminal has it) or on a
 * pseudo terminal: a line goes in, then a text is looked for behind what was said by then. */
#ifndef CCT_TESTS_LIB_LINERIG_H
#define CCT_TESTS_LIB_LINERIG_H

#include <cct/util/buf.h>
#include <stdbool.h>
#include <sys/types.h>

struct linerig {
    pid_t pid;
    int in, out;      /* a terminal: the same descriptor */
    struct buf seen;  /* stdout and stderr */
    size_t at;        /* where to look from */
    int status;       /* exit status, 128+N by a signal, -1 while it runs */
};
/* argv[0] is a path; envp the whole environment. */
void line_start(struct linerig *r, const char *const argv[], char *const envp[], bool pty);
void line_send(struct linerig *r, const char *bytes); /* as they are; from here on it is looked */
void line_type(struct linerig *r, const char *line);  /* the same with an LF */
void line_close(struct linerig *r);                   /* its stdin ends; on a terminal ^D */
/* Read until the text is there; false after ms, or when it ended. */
bool line_says(struct linerig *r, const char *text, int ms);
bool line_said(const struct linerig *r, const char *text); /* ever, until now */
/* Read until it ended: its status; killed after ms: -1. Releases all but `seen`. */
int line_end(struct linerig *r, int ms);

#endif
