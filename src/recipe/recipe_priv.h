/* Inside of recipes.
 *
 *   recipe.c        life, loading
 *   docker_lines.c  a Dockerfile's instructions; docker_words.c: the words of one
 *   docker_steps.c  what they come to
 *   spec.c          the short form; tools.c: made for a tool
 *   ignore.c        .dockerignore; glob.c: which files E2B's SDK counts
 *   files.c         which files go, their hash; pack.c: their archive; inside.c: nothing else */
#ifndef CCT_RECIPE_PRIV_H
#define CCT_RECIPE_PRIV_H

#include <cct/recipe.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

/* --- recipe.c ------------------------------------------------------------------ */
/* A step at the end; args are taken by the list that recipe_arg() makes longer. */
struct recipe_step *recipe_add(struct recipe *r, const char *type, int line);
void recipe_arg(struct recipe_step *s, char *take);
void recipe_note(struct recipe *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A path that COPY may name: below the folder. */
int recipe_check_source(const char *src, const char *file, int line, struct err *e);
/* A COPY of one source. */
int recipe_copy(struct recipe *r, const char *src, const char *dest, const char *user,
                const char *mode, const char *file, int line, struct err *e);
/* `text` as a value of an ENV step: the service expands it as a shell does in "". */
char *recipe_env_literal(const char *text);

/* --- docker_lines.c ---------------------------------------------------------------- */
struct docker_line {
    char *word;  /* the instruction, upper case */
    char *flags; /* "--a=b --c", or "" */
    char *rest;  /* lines joined, trimmed */
    int line;    /* where it begins */
};
struct docker_lines {
    ARR(struct docker_line) v;
    char escape;
};
int docker_lines(struct docker_lines *d, const char *text, size_t len, const char *file,
                 struct err *e);
void docker_lines_release(struct docker_lines *d);

/* --- docker_words.c ---------------------------------------------------------------- */
/* Words divided by blanks outside of quotes, quotes and escapes still in them; ends with
 * NULL, docker_words_free(). */
char **docker_words(const char *s, char escape);
void docker_words_free(char **v);
/* Runs of blanks outside of quotes become one. New string. */
char *docker_squeeze(const char *s, char escape);
/* Without its quotes and escapes. New string. */
char *docker_unquote(const char *word, char escape);
/* A value of ENV or ARG as the service gets it, see docker_steps.c. New string. */
char *docker_env_value(const char *word, char escape);
/* ["a", "b"]: the strings, as docker_words(); NULL: that is none. */
char **docker_json(const char *s);
/* One command line that a shell takes apart into these words. New string. */
char *docker_shell_line(char *const *words);
/* $NAME, ${NAME}, ${NAME:-word}, ${NAME:+word} by `vars`; what is not there is empty. New
 * string; NULL with *e. */
char *docker_expand(const char *s, const struct kv *vars, struct err *e);

/* --- tools.c ------------------------------------------------------------------------- */
const char *recipe_tool_version(const char *tool);

#endif
