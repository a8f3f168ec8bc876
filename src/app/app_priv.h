/* Inside of the facade; main thread only.
 *
 *   app.c          life, drain
 *   app_create.c   the form's rules, tools; app_choices.c: model, repository, files;
 *                  app_prepare.c: what a form shows before; app_files.c: reading files
 *   app_keys.c     the order of keys as main sees it
 *   app_projects.c projects
 *   app_actions.c  commands
 *   app_stream.c   bytes for `logs` and `watch`
 *   app_procs.c    processes, adoption
 *   app_builds.c   builds of templates
 *   app_file.c     files of a sandbox
 *   app_shell.c    a terminal in a sandbox; passage.c joins it with ours */
#ifndef CCT_APP_PRIV_H
#define CCT_APP_PRIV_H

#include <cct/app.h>
#include <cct/config/models.h>
#include <cct/config/tools.h>
#include <cct/jobs/command.h>
#include <cct/jobs/core.h>
#include <cct/keys.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>

/* What a form was told (app_prepare.c). */
struct key_asked {
    unsigned bits;
    uint64_t req;  /* 0: answered */
    struct err err;
};
struct prepared {
    struct app_templates templates;
    uint64_t templates_req;
    size_t n_ready;        /* builds of ours that are */
    struct buf lines;
    ARR(struct key_asked) keys;
    ARR(struct app_model) models;
    struct files *files; /* looked at last (app_files.c), or NULL */
};
struct sink;
struct app {
    struct app_opts o;
    char *only_shown;       /* why nothing is done; NULL: it is */
    char *asked;            /* project asked for; NULL: the one used last */
    char *data_dir, *config_dir, *state_dir, *runtime_dir, *ca_file;
    char owner[64];
    struct model *model;
    struct mq *events;
    struct net *net;
    struct store *store;
    struct jobs *jobs;
    struct tools *tools;
    struct models *models;
    struct keys_outside outside;
    struct st_keys *stored; /* NULL: not read yet, or they cannot be */
    bool keys_read;
    int64_t touched;        /* boot ms: the jobs heard of a key of the screen */
    char *api, *project_folder;
    char *lost;             /* keys_lost() */
    struct keys_at at;      /* borrows the above */
    ARR(struct app_tool) tool_list;
    struct prepared prepared;
    ARR(struct files *) reading; /* each belongs to its thread */
    ARR(struct app_key) key_list;
    struct msg *waiting;   /* taken from the queue, not applied yet */
    uint64_t next_req;
    bool online;
    bool left_behind; /* the net thread did not end in time */
    bool files_behind; /* or one that reads files */
    void (*observe)(void *ctx, const struct msg *ev);
    void *observe_ctx;
    ARR(struct sink) sinks;
};

/* app_actions.c */
struct cmd *app_cmd(struct app *a, enum cmd_type t); /* with a new req_id */
uint64_t app_post(struct app *a, struct cmd *take);
/* An action that ends before it begins. */
uint64_t app_refuse(struct app *a, const struct err *e);

/* app_stream.c */
struct sink {
    uint64_t req_id;
    void (*fn)(void *ctx, const char *data, size_t len);
    void (*stream_fn)(void *ctx, int stream, const char *data, size_t len); /* or this one */
    void (*news_fn)(void *ctx, const struct ev_shell *news); /* or NULL */
    void (*list_fn)(void *ctx, const struct file_list *l);   /* or NULL */
    void (*progress_fn)(void *ctx, const struct ev_progress *p); /* or NULL */
    void (*end_fn)(void *ctx, const struct ev_done *end);    /* or NULL; the last one */
    void *ctx;
};
/* True when the message was bytes for a sink. */
bool app_sink_take(struct app *a, const struct msg *m);
void app_sink_drop(struct app *a, uint64_t req_id); /* nothing is handed to it any more */
uint64_t app_sink_post(struct app *a, struct cmd *take, const struct sink *s);

/* app_keys.c */
void app_keys_at(struct app *a); /* the place in the order was changed */
void app_keys_look(struct app *a);    /* at the start; reads the E2B CLI's file */
void app_keys_release(struct app *a);
void app_keys_loaded(struct app *a, struct st_reply *r);
char *app_place(const struct app *a); /* jobs_place() of the key in force */

/* app_create.c */
void app_tools_release(struct app *a);
/* The keys of its tools, with all that it is given: 0 or a code. */
int app_check_keys_of(struct app *a, const struct cmd_create *q, struct err *e);

/* app_prepare.c */
/* True when the message is an answer of ours and meant for nobody else. */
bool app_prepare_take(struct app *a, const struct msg *m);
void app_prepare_keys_changed(struct app *a); /* what is known of keys is old */
void app_prepare_release(struct app *a);
size_t app_needs(const struct tool *t, const char *model, const char *needs[TOOL_NAMES]);

/* app_choices.c */
/* Name of the i-th copy, from 1; the name itself when there is one alone. New string. */
char *app_copy_name(const struct app_create *c, int i);
/* Model, template, repository, what was looked at of files: 0, or a code with the field. */
int app_check_choices(const struct app *a, const struct app_create *c, const struct tool *t,
                      const char **field, struct err *e);
/* The same into the command; files come later. */
void app_take_choices(const struct app *a, const struct app_create *c, struct cmd_create *q);
/* The project's skills and those given, where the tool takes any; borrowed strings, the list
 * is the caller's. */
const char **app_skills_of(const struct app *a, const struct app_create *c);
/* New list, for keys_env_free(): of one name that above counts. */
struct kv *app_join_env(const struct kv *below, const struct kv *above);

/* app_files.c */
int app_files_check(const struct app *a, const struct app_create *c, const char **field,
                    struct err *e);
/* What its file of variables gives, as far as it is known ("set": not what), and its own ones
 * above: for keys_env_free(). *unread: the file is not known, or it cannot be read. */
struct kv *app_given_env(const struct app *a, const struct app_create *c, bool *unread);
/* Post creates of the same files when those are read, or say why they are not made. */
void app_files_post(struct app *a, const struct app_create *c, struct cmd *const *take, size_t n);
/* True when it was the word of such a thread; *m NULL: it was kept. */
bool app_files_take(struct app *a, struct msg **m);
void app_files_forget(struct app *a); /* what was looked at: it may be another by now */
bool app_files_stop(struct app *a); /* false: one does not end */
void app_files_release(struct app *a);

#endif
