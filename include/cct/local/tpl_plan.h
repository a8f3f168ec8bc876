/* What a build was asked to do: its base and its steps, checked; and what each step
 * finds and leaves (environment, folder, user, key of the layers below). Pure: no
 * file, no process, no clock. */
#ifndef CCT_LOCAL_TPL_PLAN_H
#define CCT_LOCAL_TPL_PLAN_H

#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>

#define TPL_STEPS_MAX 200u
#define TPL_ARG_MAX (64u << 10)  /* bytes of one argument */
#define TPL_ENV_MAX (128u << 10) /* of all variables of a template */
#define TPL_KEY_LEN 64           /* lower-case hex */
#define TPL_BASE_IMAGE "e2bdev/base"

struct cJSON;

enum tpl_step_type { TPL_RUN, TPL_COPY, TPL_ENV, TPL_WORKDIR, TPL_USER };

struct tpl_step {
    enum tpl_step_type type;
    char **args; /* RUN cmd [user]; COPY src dest user mode; ENV k v ...; one else */
    size_t n_args;
    char hash[TPL_KEY_LEN + 1]; /* of COPY's files */
    bool force;
};

struct tpl_plan {
    char *image;       /* fromImage, or NULL */
    char *from;        /* fromTemplate, or NULL; one of both is set */
    bool has_registry; /* the image needs credentials */
    bool force;        /* nothing from the cache */
    struct tpl_step *steps;
    size_t n_steps;
    char *start_cmd, *ready_cmd; /* or NULL */
};

/* Fill p from the body of a start-build request. 0, or ERR_INVALID with the sentence
 * of the 400. tpl_plan_release() in both cases. */
int tpl_plan_parse(struct tpl_plan *p, const struct cJSON *body, struct err *e);
void tpl_plan_release(struct tpl_plan *p);

/* What a step finds. */
struct tpl_ctx {
    struct cJSON *env; /* object of strings; owned */
    size_t env_bytes;  /* of it, about */
    char *workdir, *user;
    char key[TPL_KEY_LEN + 1]; /* of everything below */
};
void tpl_ctx_init(struct tpl_ctx *c, const char *base_key);
void tpl_ctx_release(struct tpl_ctx *c);
/* Start with these variables instead of none. */
void tpl_ctx_take_env(struct tpl_ctx *c, struct cJSON *take);
/* Key of the layer that this step makes on top of c; key has TPL_KEY_LEN + 1 bytes. */
void tpl_step_key(char *key, const struct tpl_ctx *c, const struct tpl_step *s);
/* Does the step change files? The folders that every sandbox has need none. */
bool tpl_step_makes_layer(const struct tpl_ctx *c, const struct tpl_step *s);
/* Take over what the step says about environment, folder and user. 0, or ERR_LIMIT. */
int tpl_step_apply(struct tpl_ctx *c, const struct tpl_step *s, struct err *e);
/* Replace $NAME and ${NAME} by what the steps so far have set ("" when nothing has, \$
 * stays a $); nothing else is looked at, so no text becomes a command. New string. */
char *tpl_expand(const struct tpl_ctx *c, const char *s);
/* "RUN npm i" on one line, at most some hundred bytes. */
void tpl_step_text(struct buf *b, const struct tpl_step *s);
/* Is there an account for this step's user? False with the sentence in *e. */
bool tpl_step_user_ok(const struct tpl_step *s, struct err *e);

/* The command that does a step, for a shell in the sandbox, the user it runs as, and
 * its environment (new object, json_free()). Values travel as variables, never as text
 * of the command. */
struct tpl_run {
    const char *command, *user, *cwd;
    struct cJSON *env;
};
void tpl_step_run(struct tpl_run *r, const struct tpl_ctx *c, const struct tpl_step *s);
/* Where COPY's archive lies in the sandbox: "files.tar", and an empty folder "tree". */
#define TPL_COPY_DIR ".cc-copy"

/* --- names ------------------------------------------------------------------ */
#define TPL_NAME_MAX 128u
/* "a-name", "local/a-name", both with ":tag" or not. Tag is "" when absent. */
struct tpl_ref {
    char name[TPL_NAME_MAX + 1], tag[TPL_NAME_MAX + 1];
};
int tpl_ref_parse(struct tpl_ref *r, const char *text, struct err *e);
bool tpl_name_ok(const char *s); /* ^[a-z0-9-_]+$, at most TPL_NAME_MAX */
/* Letters, digits, '-', '_' and '.', at most TPL_NAME_MAX of them. */
bool tpl_tag_ok(const char *s);
int tpl_tag_check(const char *s, struct err *e); /* 0, or ERR_INVALID */
bool tpl_hash_ok(const char *s);                 /* 64 lower-case hex digits */
#define TPL_LAYER_LEN 32
bool tpl_layer_name_ok(const char *s); /* TPL_LAYER_LEN of them */
/* Is it an image that stands for this machine's own programs? */
bool tpl_image_is_base(const char *image);

#endif
