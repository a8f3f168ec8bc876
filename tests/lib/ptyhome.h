/* cc-tui --local on a pseudo terminal, with folders of its own and no key. */
#ifndef CCT_TESTS_LIB_PTYHOME_H
#define CCT_TESTS_LIB_PTYHOME_H

#include "ptyrig.h"

struct ptyhome {
    char dir[40];
    char *binary;    /* cc-tui of the folder that the test was built in */
    char *places[4]; /* CC_TUI_..._DIR=, each a folder in dir: DATA, CONFIG, STATE, RUNTIME */
};
extern struct ptyhome ptyhome;

/* Set-up and tear-down of a group of tests. A provider that was started lives on after the
 * screen: it is ended by its own command. */
int ptyhome_set_up(void **state);
int ptyhome_tear_down(void **state);
void ptyhome_start(struct ptyrig *r, int h, int w);
/* A shell command whose programs find the same folders; its exit status. */
int ptyhome_command(const char *command);
/* Fails the test, and prints the screen. */
void ptyhome_shows(struct ptyrig *r, const char *text, int ms);

#endif
