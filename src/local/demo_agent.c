/* An agent without a model, so that a newcomer without a key sees the whole
 * loop: it takes Claude's stream-json on stdin, does a few simple things for
 * real in the sandbox, and reports them in Claude's dialect. It says what it is
 * and never pretends to think. */
#include "demo_agent.h"
#include <cct/local/init.h>
#include <cct/util/arr.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LS_MAX 1000 /* names of one listing */
#define COMMANDS                                                                 \
    "  run CMD            run CMD with sh and show its output and exit status\n" \
    "  ls [DIR]           list a folder\n"                                       \
    "  cat FILE           show a file\n"                                         \
    "  write FILE: TEXT   write TEXT to a file\n"                                \
    "  tour               do some of these one after the other\n"                \
    "  help               say this again"
#define GREETING                                                                             \
    "I am the demo agent: a small program with no model behind it. I cannot think or write " \
    "code; I carry out these commands for real in this sandbox:\n\n" COMMANDS

/* --- input ---------------------------------------------------------------- */

static void bad_line(const char *line, const char *why)
{
    fprintf(stderr, "Error parsing streaming input line (%zu chars): %s\n", strlen(line), why);
    exit(1);
}

static void control(struct demo *d, const struct cJSON *j)
{
    const char *id = json_str(j, "request_id", "");
    const char *what = json_str(json_get(j, "request"), "subtype", "");
    if (str_eq(what, "interrupt")) {
        d->interrupted = d->busy;
        demo_out_control(&d->out, id, NULL);
    } else if (str_eq(what, "initialize")) {
        demo_out_control(&d->out, id, NULL);
    } else {
        demo_out_control(&d->out, id, "the demo agent knows only the request interrupt");
    }
}

/* Control requests act at once, everything else waits for its turn. Takes. */
static void line_arrived(struct demo *d, char *line)
{
    struct err err = {0};
    struct cJSON *j =
        strstr(line, "control_request") != NULL ? json_parse(line, strlen(line), &err) : NULL;
    if (str_eq(json_str(j, "type", ""), "control_request")) {
        control(d, j);
        free(line);
    } else if (line[strspn(line, " \t\r")] == '\0') {
        free(line);
    } else {
        d->queued_bytes += strlen(line);
        *ARR_PUSH(&d->queue) = line;
    }
    json_free(j);
}

static void lines_cut(struct demo *d)
{
    size_t from = 0;
    char *nl;
    while (d->in.len > from && (nl = memchr(d->in.p + from, '\n', d->in.len - from)) != NULL) {
        size_t n = (size_t)(nl - d->in.p) - from;
        line_arrived(d, xstrndup(d->in.p + from, n));
        from += n + 1;
    }
    buf_consume(&d->in, from);
    if (d->eof && d->in.len > 0) {
        line_arrived(d, xstrndup(d->in.p, d->in.len));
        buf_clear(&d->in);
    }
}

/* Read what stdin has now; call when it is readable. */
void demo_input_read(struct demo *d)
{
    char tmp[65536];
    ssize_t n = read(STDIN_FILENO, tmp, sizeof(tmp));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0)
        d->eof = true;
    else if (buf_add(&d->in, tmp, (size_t)n) != 0)
        bad_line("", "the line is too long");
    lines_cut(d);
}

bool demo_input_wanted(const struct demo *d)
{
    return !d->eof && d->queued_bytes < LIM_LINE_BYTES;
}

/* Take in what is there without waiting: an interrupt may be among it. */
static bool input_peek(struct demo *d)
{
    struct pollfd pf = {STDIN_FILENO, POLLIN, 0};
    while (demo_input_wanted(d) && poll(&pf, 1, 0) == 1)
        demo_input_read(d);
    return d->interrupted;
}

/* Next line in order, or NULL at the end. Caller frees. */
static char *input_line(struct demo *d)
{
    struct pollfd pf = {STDIN_FILENO, POLLIN, 0};
    while (d->queue.n == 0 && !d->eof)
        if (poll(&pf, 1, -1) == 1)
            demo_input_read(d);
    if (d->queue.n == 0)
        return NULL;
    char *line = d->queue.v[0];
    d->queued_bytes -= strlen(line);
    ARR_REMOVE(&d->queue, 0);
    return line;
}

/* --- tools: each is a call and its result ---------------------------------- */

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

static void tool_call(struct demo *d, char *id, const char *name, const char *k1,
                      const char *v1, const char *k2, const char *v2)
{
    char *input = input1(k1, v1, k2, v2);
    demo_out_tool(&d->out, id, name, input);
    demo_out_message_end(&d->out, "tool_use");
    free(input);
}

static void tool_answer(struct demo *d, const char *id, struct buf *text, bool failed)
{
    struct buf extra = BUF_INIT;
    if (failed)
        buf_adds(&extra, "\"Error: ");
    else
        buf_adds(&extra, "{\"stdout\":");
    if (failed) {
        struct buf json = BUF_INIT;
        buf_add_json(&json, text->p != NULL ? text->p : "", text->len);
        buf_add(&extra, json.p + 1, json.len - 1);
        buf_release(&json);
    } else {
        buf_add_json(&extra, text->p != NULL ? text->p : "", text->len);
        buf_adds(&extra, ",\"stderr\":\"\",\"interrupted\":false,\"isImage\":false}");
    }
    demo_out_tool_result(&d->out, id, buf_str(text), text->len, failed, buf_str(&extra));
    buf_release(&extra);
}

/* The sentence that ends a turn or a step, in a message of its own. */
static void say(struct demo *d, const char *text)
{
    demo_out_message_begin(&d->out);
    demo_out_text(&d->out, text);
    demo_out_message_end(&d->out, "end_turn");
}

static void say_errno(struct demo *d, const char *id, const char *what, const char *name,
                      char *conclusion, size_t size)
{
    struct buf b = BUF_INIT;
    snprintf(conclusion, size, "%s %.200s: %s", what, name, strerror(errno));
    buf_adds(&b, conclusion);
    tool_answer(d, id, &b, true);
    buf_release(&b);
}

static void tool_run(struct demo *d, const char *cmd, char *conclusion, size_t size)
{
    struct demo_cmd c = {0};
    struct buf text = BUF_INIT;
    char id[40];
    tool_call(d, id, "Bash", "command", cmd, "description", "Run the command as it was given");
    if (demo_cmd_start(&c, cmd) != 0) {
        say_errno(d, id, "cannot run", cmd, conclusion, size);
        return;
    }
    demo_cmd_wait(d, &c);
    if (d->interrupted)
        buf_adds(&text, "[interrupted]\n");
    else if (WIFSIGNALED(c.status))
        snprintf(conclusion, size, "ended by signal %d", WTERMSIG(c.status));
    else
        snprintf(conclusion, size, "exit status %d", WEXITSTATUS(c.status));
    bool failed = d->interrupted || !WIFEXITED(c.status) || WEXITSTATUS(c.status) != 0;
    if (failed && WIFEXITED(c.status))
        buf_addf(&text, "Exit code %d\n", WEXITSTATUS(c.status));
    buf_add(&text, c.output.p, c.output.len);
    tool_answer(d, id, &text, failed);
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
    char id[40];
    tool_call(d, id, "LS", "path", dir, NULL, NULL);
    DIR *dp = opendir(dir);
    if (dp == NULL) {
        say_errno(d, id, "cannot list", dir, conclusion, size);
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
    tool_answer(d, id, &text, false);
    buf_release(&text);
    snprintf(conclusion, size, "%zu %s in %.200s", all, all == 1 ? "name" : "names", dir);
}

static void tool_cat(struct demo *d, const char *file, char *conclusion, size_t size)
{
    struct demo_cmd c = {0};
    struct stat st;
    char id[40];
    tool_call(d, id, "Read", "file_path", file, NULL, NULL);
    c.fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (c.fd < 0 || fstat(c.fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (c.fd >= 0) {
            close(c.fd);
            errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL; /* a pipe could hang us */
        }
        say_errno(d, id, "cannot read", file, conclusion, size);
        return;
    }
    buf_init(&c.output, DEMO_OUTPUT_MAX + 64);
    while (c.output.len < DEMO_OUTPUT_MAX && demo_cmd_read(&c))
        ;
    close(c.fd);
    if (st.st_size > (off_t)c.output.len)
        buf_addf(&c.output, "\n[cut: %lld more bytes are not shown]",
                 (long long)st.st_size - (long long)c.output.len);
    tool_answer(d, id, &c.output, false);
    buf_release(&c.output);
    snprintf(conclusion, size, "%lld bytes in %.200s", (long long)st.st_size, file);
}

static void tool_write(struct demo *d, const char *file, const char *text, char *conclusion,
                       size_t size)
{
    struct buf done = BUF_INIT;
    char id[40];
    tool_call(d, id, "Write", "file_path", file, "content", text);
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);
    size_t len = strlen(text), at = 0;
    while (fd >= 0 && at < len) {
        ssize_t n = write(fd, text + at, len - at);
        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || at < len) {
        say_errno(d, id, "cannot write", file, conclusion, size);
    } else {
        snprintf(conclusion, size, "wrote %zu bytes to %.200s", len, file);
        buf_adds(&done, conclusion);
        tool_answer(d, id, &done, false);
    }
    if (fd >= 0)
        close(fd);
    buf_release(&done);
}

/* --- turns ---------------------------------------------------------------- */

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

/* One command with its tool call; false when the text is none. */
static bool do_tool(struct demo *d, char *text, char *conclusion, size_t size)
{
    char *arg, *file, *content;
    if ((arg = word_after(text, "run")) != NULL && *arg != '\0') {
        tool_run(d, arg, conclusion, size);
    } else if ((arg = word_after(text, "ls")) != NULL) {
        tool_ls(d, *arg != '\0' ? arg : ".", conclusion, size);
    } else if ((arg = word_after(text, "cat")) != NULL && *arg != '\0') {
        tool_cat(d, arg, conclusion, size);
    } else if ((arg = word_after(text, "write")) != NULL && split_write(arg, &file, &content)) {
        tool_write(d, file, content, conclusion, size);
    } else {
        return false;
    }
    return true;
}

static void tour(struct demo *d)
{
    static const char *const steps[] = {"ls", "write demo-tour.txt: written by the demo agent",
                                        "cat demo-tour.txt", "run uname -a"};
    const size_t n = sizeof(steps) / sizeof(steps[0]);
    char conclusion[512] = "", head[128];
    for (size_t i = 0; i < n && !input_peek(d); i++) {
        char *step = xstrdup(steps[i]);
        snprintf(head, sizeof(head), "step %zu of %zu: %s", i + 1, n, step);
        demo_out_message_begin(&d->out);
        demo_out_text(&d->out, head);
        do_tool(d, step, conclusion, sizeof(conclusion));
        free(step);
    }
    if (!d->interrupted)
        say(d,
            "That was the tour: four real commands in this sandbox. The file demo-tour.txt is "
            "there now.");
}

static bool is_tool(const char *text)
{
    char *copy = xstrdup(text), *arg, *file, *content;
    bool yes = ((arg = word_after(copy, "run")) != NULL && *arg != '\0') ||
               word_after(copy, "ls") != NULL ||
               ((arg = word_after(copy, "cat")) != NULL && *arg != '\0') ||
               ((arg = word_after(copy, "write")) != NULL && split_write(arg, &file, &content));
    free(copy);
    return yes;
}

static void turn(struct demo *d, char *text)
{
    char conclusion[512] = "";
    text = str_trim(text);
    if (str_eq(text, "tour")) {
        tour(d);
    } else if (str_eq(text, "help")) {
        say(d, "demo agent: no model is behind me; I know these commands:\n\n" COMMANDS);
    } else if (!is_tool(text)) {
        say(d, "demo agent: I only know these commands, there is no model behind "
               "me:\n\n" COMMANDS);
    } else {
        demo_out_message_begin(&d->out);
        do_tool(d, text, conclusion, sizeof(conclusion));
        if (!d->interrupted)
            say(d, conclusion);
    }
}

/* The text of a user line: a string, or the text blocks of an array. NULL when
 * it is no user line. */
static char *line_text(const struct cJSON *j)
{
    const struct cJSON *content = json_path(j, "message.content");
    struct buf b = BUF_INIT;
    if (!str_eq(json_str(j, "type", NULL), "user") || content == NULL)
        return NULL;
    if (json_is_string(content))
        return xstrdup(json_str_of(content));
    for (const struct cJSON *c = json_first(content); c != NULL; c = json_next(c))
        if (str_eq(json_str(c, "type", ""), "text"))
            buf_addf(&b, "%s%s", b.len > 0 ? "\n" : "", json_str(c, "text", ""));
    return buf_detach(&b, NULL);
}

static void line_run(struct demo *d, const char *line)
{
    struct err err = {0};
    struct cJSON *j = json_parse(line, strlen(line), &err);
    if (j == NULL)
        bad_line(line, err.text);
    char *text = line_text(j);
    if (text == NULL)
        bad_line(line, "it is no user message");
    d->busy = true;
    d->interrupted = false;
    demo_out_init(&d->out);
    demo_out_echo(&d->out, j);
    turn(d, text);
    if (d->interrupted)
        demo_out_interrupted(&d->out);
    demo_out_result(&d->out, d->interrupted);
    d->busy = d->interrupted = false;
    free(text);
    json_free(j);
}

int demo_agent_main(void)
{
    struct demo d = {.in = BUF_INIT_MAX(LIM_LINE_BYTES), .queue = ARR_INIT};
    char *line;
    signal(SIGPIPE, SIG_IGN);
    demo_out_start(&d.out, STDOUT_FILENO);
    demo_out_init(&d.out);
    say(&d, GREETING);
    demo_out_result(&d.out, false);
    while ((line = input_line(&d)) != NULL) {
        line_run(&d, line);
        free(line);
    }
    ARR_RELEASE(&d.queue);
    buf_release(&d.in);
    demo_out_release(&d.out);
    return 0;
}
