/* Questions of agents that wait for the user. Plain data; all text is cleaned. */
#ifndef CCT_MODEL_QUESTION_H
#define CCT_MODEL_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct question {
    uint64_t sandbox;  /* struct sandbox.id */
    char *id;          /* names it for app_answer() */
    char *question;    /* one line */
    char *detail;      /* what it is about, or NULL */
    char **choices;    /* in the agent's order; NULL at the end, may be NULL itself */
    bool words;        /* may be answered in words of one's own */
    int64_t since;
    char *answer;      /* chosen already and on its way; NULL: it waits for the user */
};
void question_release(struct question *a);
void question_copy(struct question *dst, const struct question *src);

/* --- an event's foreign text as the words above; new strings ---------------------- */
/* "run `npm test`?", "use Write: notes.md?", or the agent's own question. */
char *question_line(const char *tool, const char *title);
/* The members of a JSON object as lines, but for what the question says already; questions
 * with their options as a list. NULL when nothing is left. */
char *question_detail(const char *tool, const char *title, const char *input);
/* Labels with an LF between them; str_list_free(). */
char **question_choices(const char *labels);
/* "1) yes   2) no" */
char *question_choices_line(char *const *choices);

#endif
