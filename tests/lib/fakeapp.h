/* The facade (cct/app.h) without threads, for screens: the test feeds the model, actions
 * are written down as text. Linked only into tests that call fake_new(). */
#ifndef CCT_TESTS_LIB_FAKEAPP_H
#define CCT_TESTS_LIB_FAKEAPP_H

#include <cct/app.h>
#include <cct/util/buf.h>

struct app {
    struct model *model;
    struct buf calls; /* "call kill 3\n" for each action, oldest first */
    struct buf follows; /* "follow 3\n", "unfollow 3\n": whose output is asked for */
    struct app_tool tools[9];
    size_t n_tools;
    struct app_templates templates;
    struct app_model models[9];   /* of every tool */
    size_t n_models;
    bool slow_files, reading;     /* files want a while; they do */
    struct app_key_look key, repo_key;
    uint64_t next;
    int fd;           /* eventfd: write 8 bytes to have on_drain called */
    bool (*on_drain)(struct app *a);
    void (*on_online)(struct app *a);
    void *ctx;
    app_lines_fn log_fn;          /* who follows a build */
    void *log_ctx;
    void (*observe)(void *ctx, const struct msg *ev);
    void *observe_ctx;
    void (*raw_fn)(void *ctx, const char *data, size_t len); /* who reads the raw stream */
    void *raw_ctx;
    struct app_shell_cb shell; /* repeats what it gets; a '!' ends it with status 3 */
    uint64_t shell_req;
    struct app_file_cb file;   /* of the request about files that came last */
    uint64_t file_req;
};
struct app *fake_new(void);
void fake_free(struct app *a);
uint64_t fake_called(struct app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
