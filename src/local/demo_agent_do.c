/* What the demo agent does for real in the sandbox: commands, files, listings. Each is a
 * tool call and its answer. */
#include "demo_agent.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LS_MAX 1000 /* names of one listing */

static char *input1(const char *k1, const char *v1, const char *k2, const char *v2)
{
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, k1, v1);
    if (k2 != NULL)
        jw_str(&w, k2, v2);
    jw_end(&w);
    return buf_detach(&b, NULL);
}

/* A call that waits for its answer. */
struct call {
    char id[40], *input;
    const char *name;
};

static struct call tool_call(struct demo *d, const char *name, const char *k1, const char *v1,
                             const char *k2, const char *v2)
{
    struct call c = {.name = name, .input = input1(k1, v1, k2, v2)};
    demo_new_call(d, c.id, sizeof(c.id));
    d->as->call(d, c.id, name, c.input);
    return c;
}

/* Ends the call. */
static void tool_answer(struct demo *d, struct call *c, struct buf *text, bool failed, int code)
{
    d->as->answer(d, &(struct demo_answer){c->id, c->name, c->input, text, failed, code});
    free(c->input);
}

void demo_say(struct demo *d, const char *text)
{
    d->as->step(d);
    d->as->text(d, text, 0);
    d->as->stop(d, false);
}

static void say_errno(struct demo *d, struct call *c, const char *what, const char *name,
                      char *conclusion, size_t size)
{
    struct buf b = BUF_INIT;
    snprintf(conclusion, size, "%s %.200s: %s", what, name, strerror(errno));
    buf_adds(&b, conclusion);
    tool_answer(d, c, &b, true, -1);
    buf_release(&b);
}

/* Whether the user lets us: asked only when the agent was started so. */
static bool denied(struct demo *d, struct call *c, char *conclusion, size_t size)
{
    const char *word = d->as->ask ? d->as->ask(d, c->id, c->name, c->input) : NULL;
    struct cJSON *j = word ? json_parse(word, strlen(word), NULL) : NULL;
    bool no = d->interrupted || (word && !str_eq(json_str(j, "behavior", ""), "allow"));
    struct buf b = BUF_INIT;
    if (no) {
        buf_adds(&b, json_str(j, "message", "The user did not allow it."));
        snprintf(conclusion, size, "not allowed: %.200s", buf_str(&b));
        tool_answer(d, c, &b, true, -1);
    }
    json_free(j);
    buf_release(&b);
    return no;
}

static void tool_run(struct demo *d, const char *cmd, char *conclusion, size_t size)
{
    struct demo_cmd c = {0};
    struct buf text = BUF_INIT;
    struct call call =
        tool_call(d, "Bash", "command", cmd, "description", "Run the command as it was given");
    if (denied(d, &call, conclusion, size))
        return;
    if (demo_cmd_start(&c, cmd) != 0) {
        say_errno(d, &call, "cannot run", cmd, conclusion, size);
        return;
    }
    demo_cmd_wait(d, &c);
    if (d->interrupted)
        buf_adds(&text, "[interrupted]\n");
    else if (WIFSIGNALED(c.status))
        snprintf(conclusion, size, "ended by signal %d", WTERMSIG(c.status));
    else
        snprintf(conclusion, size, "exit status %d", WEXITSTATUS(c.status));
    int code = WIFEXITED(c.status) ? WEXITSTATUS(c.status) : -1;
    buf_add(&text, c.output.p, c.output.len);
    tool_answer(d, &call, &text, d->interrupted || code != 0, code);
    buf_release(&text);
    buf_release(&c.output);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void tool_ls(struct demo *d, const char *dir, char *conclusion, size_t size)
{
    ARR(char *) names = ARR_INIT;
    struct buf text = BUF_INIT;
    struct call call = tool_call(d, "LS", "path", dir, NULL, NULL);
    DIR *dp = opendir(dir);
    if (dp == NULL) {
        say_errno(d, &call, "cannot list", dir, conclusion, size);
        return;
    }
    struct dirent *de;
    size_t all = 0;
    while ((de = readdir(dp)) != NULL) {
        if (str_eq(de->d_name, ".") || str_eq(de->d_name, "..") || all++ >= LS_MAX)
            continue;
        *ARR_PUSH(&names) = xasprintf("%s%s", de->d_name, de->d_type == DT_DIR ? "/" : "");
    }
    closedir(dp);
    if (names.n > 0)
        qsort(names.v, names.n, sizeof(char *), by_name);
    for (size_t i = 0; i < names.n; i++) {
        buf_addf(&text, "%s%s", i > 0 ? "\n" : "", names.v[i]);
        free(names.v[i]);
    }
    if (all > LS_MAX)
        buf_addf(&text, "\n[cut: %zu more names are not shown]", all - LS_MAX);
    ARR_RELEASE(&names);
    tool_answer(d, &call, &text, false, -1);
    buf_release(&text);
    snprintf(conclusion, size, "%zu %s in %.200s", all, all == 1 ? "name" : "names", dir);
}

static void tool_cat(struct demo *d, const char *file, char *conclusion, size_t size)
{
    struct demo_cmd c = {0};
    struct stat st;
    struct call call = tool_call(d, "Read", "file_path", file, NULL, NULL);
    c.fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (c.fd < 0 || fstat(c.fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (c.fd >= 0) {
            close(c.fd);
            errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL; /* a pipe could hang us */
        }
        say_errno(d, &call, "cannot read", file, conclusion, size);
        return;
    }
    buf_init(&c.output, DEMO_OUTPUT_MAX + 64);
    while (c.output.len < DEMO_OUTPUT_MAX && demo_cmd_read(&c))
        ;
    close(c.fd);
    if (st.st_size > (off_t)c.output.len)
        buf_addf(&c.output, "\n[cut: %lld more bytes are not shown]",
                 (long long)st.st_size - (long long)c.output.len);
    tool_answer(d, &call, &c.output, false, -1);
    buf_release(&c.output);
    snprintf(conclusion, size, "%lld bytes in %.200s", (long long)st.st_size, file);
}

static void tool_write(struct demo *d, const char *file, const char *text, char *conclusion,
                       size_t size)
{
    struct buf done = BUF_INIT;
    struct call call = tool_call(d, "Write", "file_path", file, "content", text);
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);
    size_t len = strlen(text), at = 0;
    while (fd >= 0 && at < len) {
        ssize_t n = write(fd, text + at, len - at);
        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || at < len) {
        say_errno(d, &call, "cannot write", file, conclusion, size);
    } else {
        snprintf(conclusion, size, "wrote %zu bytes to %.200s", len, file);
        buf_adds(&done, conclusion);
        tool_answer(d, &call, &done, false, -1);
    }
    if (fd >= 0)
        close(fd);
    buf_release(&done);
}

/* "write FILE: TEXT" into its two halves; false when there is no colon. */
static bool split_write(char *arg, char **file, char **text)
{
    char *colon = strstr(arg, ": ");
    if (colon == NULL && arg[0] != '\0' && arg[strlen(arg) - 1] == ':')
        colon = arg + strlen(arg) - 1; /* an empty file */
    if (colon == NULL || colon == arg)
        return false;
    *text = colon[1] == ' ' ? colon + 2 : colon + 1;
    *colon = '\0';
    *file = str_trim(arg);
    return true;
}

static char *word_after(char *text, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(text, word, n) != 0 || (text[n] != '\0' && text[n] != ' ' && text[n] != '\n'))
        return NULL;
    return str_trim(text + n);
}

/* A command in its parts: they point into the text, which is cut. */
struct command {
    enum { CMD_NONE, CMD_RUN, CMD_LS, CMD_CAT, CMD_WRITE } verb;
    char *arg, *content;
};

static struct command command_of(char *text)
{
    struct command c = {.verb = CMD_NONE};
    if ((c.arg = word_after(text, "run")) != NULL && *c.arg != '\0')
        c.verb = CMD_RUN;
    else if ((c.arg = word_after(text, "ls")) != NULL)
        c.verb = CMD_LS;
    else if ((c.arg = word_after(text, "cat")) != NULL && *c.arg != '\0')
        c.verb = CMD_CAT;
    else if ((c.arg = word_after(text, "write")) != NULL &&
             split_write(c.arg, &c.arg, &c.content))
        c.verb = CMD_WRITE;
    return c;
}

void demo_do(struct demo *d, char *text, char *conclusion, size_t size)
{
    struct command c = command_of(text);
    switch (c.verb) {
    case CMD_RUN:
        tool_run(d, c.arg, conclusion, size);
        break;
    case CMD_LS:
        tool_ls(d, *c.arg != '\0' ? c.arg : ".", conclusion, size);
        break;
    case CMD_CAT:
        tool_cat(d, c.arg, conclusion, size);
        break;
    case CMD_WRITE:
        tool_write(d, c.arg, c.content, conclusion, size);
        break;
    case CMD_NONE:
        break;
    }
}

bool demo_is_command(const char *text)
{
    char *copy = xstrdup(text);
    bool yes = command_of(copy).verb != CMD_NONE;
    free(copy);
    return yes;
}

void demo_run(struct demo *d, const char *lead, const char *cmd, char *conclusion, size_t size)
{
    d->as->step(d);
    if (lead)
        d->as->text(d, lead, 0);
    tool_run(d, cmd, conclusion, size);
}
