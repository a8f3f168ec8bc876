/* What a template is made of: a base, steps, a start command; read from a Dockerfile, from
 * a short file of our own, or made for one of the tools. The steps are those that E2B's own
 * SDK sends for the same Dockerfile; where its reading loses what the file says (a quoted
 * blank, a JSON form, a backslash), the file counts, see src/recipe/docker_steps.c.
 *
 * recipe_parse*() are pure; recipe_load() reads files. Any thread; one owner. */
#ifndef CCT_RECIPE_H
#define CCT_RECIPE_H

#include <cct/model/sandbox.h>
#include <cct/util/arr.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    RECIPE_BYTES = 1 << 20,  /* of the file */
    RECIPE_STEPS = 500,
    RECIPE_WORD_BYTES = 64 << 10
};

struct recipe_step {
    const char *type; /* static: "RUN" "COPY" "ENV" "WORKDIR" "USER" */
    char **args;      /* as the service gets them; ends with NULL */
    int line;         /* of the recipe, 0 = none */
    char hash[65];    /* COPY: of its files (recipe/files.h), or "" */
};
struct recipe {
    char *from_image, *from_template; /* one of them */
    char *start_cmd, *ready_cmd;      /* or NULL */
    ARR(struct recipe_step) steps;
    ARR(char *) notes; /* what was left out or should be known, each with FILE:LINE */
    /* recipe_load() alone */
    char *file;   /* as it was found, or NULL: made for a tool */
    char *folder; /* COPY counts from here; absolute */
    char *tool, *version; /* what it was made for, or said by the file; or NULL */
    int cpu_count, memory_mb; /* 0: nothing is said */
};
void recipe_init(struct recipe *r);
void recipe_release(struct recipe *r);

/* A Dockerfile's text. `args`: values for its ARGs, ends with k NULL, or NULL. `file`: its
 * name for errors: "FILE:LINE: what is wrong, and what to do". */
int recipe_parse(struct recipe *r, const char *text, size_t len, const char *file,
                 const struct kv *args, struct err *e);
/* The short form:
 *
 *     [template]
 *     base = node:22              an image; or: template = NAME
 *     tool = claude               what it is for, with the version that is in it
 *     version = 2.1.87
 *     apt = git ripgrep           the steps are done in the order of their lines
 *     npm = @scope/pkg@1.2.3      versions must be said
 *     run = echo hello
 *     root = chown user /x        the same as root
 *     copy = skills /home/user/skills
 *     env.NAME = value
 *     user = user
 *     workdir = /home/user
 *     start = node server.js      and when it is ready:
 *     ready = sleep 5
 *     cpu = 2
 *     memory = 2048               MiB */
int recipe_parse_spec(struct recipe *r, const char *text, size_t len, const char *file,
                      const struct kv *args, struct err *e);
/* Does the text begin as the short form does? */
bool recipe_is_spec(const char *text, size_t len);
/* For a tool of the compiled-in ones: its CLI, pinned, on an image with a Node that it runs
 * on. version NULL: the pinned one. ERR_NOTFOUND: there is none for that tool. */
int recipe_for_tool(struct recipe *r, const char *tool, const char *version, struct err *e);
/* The same as a file of the short form; new string, NULL when there is none. */
char *recipe_tool_text(const char *tool, const char *version);
/* Names of the tools there is a recipe for; NULL past the end. */
const char *recipe_tool_name(size_t i);

/* `where`: a file, or a folder with a Dockerfile, e2b.Dockerfile or template.conf in it; or
 * NULL: for `tool`. */
int recipe_load(struct recipe *r, const char *where, const char *tool, const struct kv *args,
                struct err *e);

#endif
