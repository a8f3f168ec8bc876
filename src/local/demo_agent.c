/* An agent without a model, so that a newcomer without a key sees the whole loop, and
 * tests every kind of agent: it takes messages as the CLI does that it is told to speak
 * as (--as claude, codex, opencode, pi; alone: Claude's way, with a greeting), does a few
 * simple things for real in the sandbox, and reports them in that CLI's words. It says
 * what it is and never pretends to think. */
#include "demo_agent.h"
#include <cct/local/init.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PIECE_BYTES 48 /* text arrives in pieces, like a model's */
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

void demo_enqueue(struct demo *d, char *line)
{
    d->queued_bytes += strlen(line);
    *ARR_PUSH(&d->queue) = line;
}

static void line_arrived(struct demo *d, char *line)
{
    if (line[strspn(line, " \t\r")] == '\0')
        free(line);
    else
        d->as->arrived(d, line);
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

void demo_input_read(struct demo *d)
{
    char tmp[65536];
    ssize_t n = read(STDIN_FILENO, tmp, sizeof(tmp));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0)
        d->eof = true;
    else if (buf_add(&d->in, tmp, (size_t)n) != 0) {
        fprintf(stderr, "Error parsing streaming input line: it is too long\n");
        exit(1);
    }
    if (d->as->lines)
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

bool demo_pause(struct demo *d, int ms)
{
    int64_t until = clock_mono_ms() + ms, left;
    do {
        struct pollfd pf = {demo_input_wanted(d) ? STDIN_FILENO : -1, POLLIN, 0};
        left = until - clock_mono_ms();
        if (d->interrupted)
            return true;
        if (poll(&pf, 1, ms < 0 ? -1 : left > 0 ? (int)left : 0) == 1) {
            demo_input_read(d);
            if (ms < 0)
                break;
        }
    } while (ms < 0 ? !d->eof : left > 0);
    return d->interrupted;
}

/* Next line in order, or NULL at the end. Caller frees. */
static char *input_line(struct demo *d)
{
    while (d->queue.n == 0 && !d->eof)
        demo_pause(d, -1);
    if (d->queue.n == 0)
        return NULL;
    char *line = d->queue.v[0];
    d->queued_bytes -= strlen(line);
    ARR_REMOVE(&d->queue, 0);
    return line;
}

size_t demo_piece(const char *s, size_t len, bool word)
{
    size_t n = 0;
    while (n < len && (word ? !n || s[n - 1] != ' ' : n < PIECE_BYTES)) {
        uint32_t cp;
        size_t step = utf8_decode(s + n, len - n, &cp);
        n += step > 0 ? step : len - n;
    }
    return n;
}

char *demo_stream(struct demo *d, const char *text, int ms,
                  void (*piece)(struct demo *d, const char *text, size_t len))
{
    size_t len = strlen(text), at = 0;
    while (at < len && !d->interrupted) {
        size_t n = demo_piece(text + at, len - at, ms > 0);
        if (piece != NULL)
            piece(d, text + at, n);
        at += n;
        if (ms > 0)
            demo_pause(d, ms);
    }
    return xstrndup(text, at);
}

/* --- what the ways to speak have in common ---------------------------------- */

void demo_new_uuid(char *id, size_t size)
{
    char uuid[40];
    rand_uuid(uuid);
    str_copy(id, size, uuid);
}

void demo_new_call(struct demo *d, char *id, size_t size)
{
    snprintf(id, size, "call_%.20s_%d_%u", d->mem.id, d->mem.steps, ++d->out.serial);
}

struct demo_usage demo_step_usage(const struct demo *d)
{
    return (struct demo_usage){1000 + 74 * d->mem.steps, 100, 1 + (int64_t)d->said.len / 4};
}

const char *demo_lower(const char *name, char *dst, size_t size)
{
    size_t n = 0;
    for (; name[n] && n < size - 1; n++)
        dst[n] = (char)tolower((unsigned char)name[n]);
    dst[n] = '\0';
    return dst;
}

/* --- turns ---------------------------------------------------------------- */

static void tour(struct demo *d)
{
    static const char *const steps[] = {"ls", "write demo-tour.txt: written by the demo agent",
                                        "cat demo-tour.txt", "run uname -a"};
    const size_t n = sizeof(steps) / sizeof(steps[0]);
    char conclusion[512] = "", head[128];
    for (size_t i = 0; i < n && !input_peek(d); i++) {
        char *step = xstrdup(steps[i]);
        snprintf(head, sizeof(head), "step %zu of %zu: %s", i + 1, n, step);
        d->as->step(d);
        d->as->text(d, head, 0);
        demo_do(d, step, conclusion, sizeof(conclusion));
        free(step);
    }
    if (!d->interrupted)
        demo_say(
            d,
            "That was the tour: four real commands in this sandbox. The file demo-tour.txt is "
            "there now.");
}

static void turn(struct demo *d, char *text, struct demo_end *end)
{
    char conclusion[512] = "";
    text = str_trim(text);
    if (demo_play(d, text, end))
        return;
    if (str_eq(text, "tour")) {
        tour(d);
    } else if (str_eq(text, "help")) {
        demo_say(d, "demo agent: no model is behind me; I know these commands:\n\n" COMMANDS);
    } else if (!demo_is_command(text)) {
        demo_say(d, "demo agent: I only know these commands, there is no model behind "
                    "me:\n\n" COMMANDS);
    } else {
        d->as->step(d);
        demo_do(d, text, conclusion, sizeof(conclusion));
        if (!d->interrupted)
            demo_say(d, conclusion);
    }
}

static void greet(struct demo *d)
{
    demo_out_init(&d->out);
    demo_say(d, GREETING);
    d->as->end(d, &(struct demo_end){.how = DEMO_OK});
}

/* A message, and what was said to be taken in meanwhile. */
static void message_run(struct demo *d, char *text, const struct cJSON *line)
{
    struct demo_end end = {.how = DEMO_OK};
    d->busy = true;
    d->interrupted = false;
    demo_memory_said(&d->mem, text);
    d->as->begin(d, text, line);
    turn(d, text, &end);
    while (d->steer.n > 0 && !d->interrupted && end.how == DEMO_OK) {
        char *more = d->steer.v[0];
        ARR_REMOVE(&d->steer, 0);
        demo_memory_said(&d->mem, more);
        turn(d, more, &end);
        free(more);
    }
    if (d->interrupted)
        end.how = DEMO_ABORTED;
    d->as->end(d, &end);
    d->busy = d->interrupted = false;
}

static void line_run(struct demo *d, const char *line)
{
    struct cJSON *j = NULL;
    char *text = d->as->text_of(d, line, &j);
    message_run(d, text, j);
    free(text);
    json_free(j);
}

static void lines_run(struct demo *d)
{
    char *line;
    while ((line = input_line(d)) != NULL) {
        line_run(d, line);
        free(line);
    }
}

/* The whole of stdin, or the word on the command line, is the message. */
static void once(struct demo *d)
{
    while (d->args.prompt == NULL && !d->eof)
        demo_pause(d, -1);
    d->eof = true;
    char *text = xstrdup(d->args.prompt != NULL ? d->args.prompt : buf_str(&d->in));
    message_run(d, str_trim(text), NULL);
    free(text);
}

/* --- the command line ------------------------------------------------------- */

static const struct demo_dialect *const dialects[] = {&demo_claude, &demo_codex, &demo_opencode,
                                                      &demo_pi};

static bool takes_value(const char *word)
{
    static const char *const words[] = {"-c",
                                        "-m",
                                        "--model",
                                        "--format",
                                        "--provider",
                                        "--input-format",
                                        "--output-format",
                                        "--append-system-prompt",
                                        "--append-system-prompt-file",
                                        "--permission-mode"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (str_eq(words[i], word))
            return true;
    return false;
}

/* A word that is no option: a subcommand, the id behind `resume`, the prompt. */
static void positional(struct demo_args *a, const char *word, bool *resume)
{
    if (*resume) {
        a->resume = word;
        *resume = false;
    } else if (str_eq(word, "resume")) {
        *resume = true;
    } else if (!str_eq(word, "exec") && !str_eq(word, "run") && !str_eq(word, "-")) {
        a->prompt = word;
    }
}

static struct demo_args args_of(int argc, char **argv)
{
    struct demo_args a = {0};
    bool resume = false;
    for (int i = 0; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (str_eq(argv[i], "--as"))
            a.as = next;
        else if (str_eq(argv[i], "--resume") || str_eq(argv[i], "--session"))
            a.resume = next;
        else if (str_eq(argv[i], "--mode"))
            a.rpc = str_eq(next, "rpc");
        else if (str_eq(argv[i], "--permission-prompt-tool"))
            a.asks = true;
        else if (str_eq(argv[i], "--input-format"))
            a.stream = true;
        else if (str_eq(argv[i], "-p"))
            a.print = true;
        else if (argv[i][0] != '-' || str_eq(argv[i], "-"))
            positional(&a, argv[i], &resume);
        if (argv[i][0] == '-' &&
            (takes_value(argv[i]) || a.as == next || a.resume == next ||
             str_eq(argv[i], "--mode") || str_eq(argv[i], "--permission-prompt-tool")))
            i++;
    }
    return a;
}

static const struct demo_dialect *dialect_of(const char *name)
{
    for (size_t i = 0; i < COUNT(dialects); i++)
        if (name == NULL || str_eq(dialects[i]->name, name))
            return dialects[i];
    fprintf(stderr, "demo-agent: it cannot speak as \"%s\": claude, codex, opencode, pi\n",
            name);
    exit(2);
}

/* Its session: as the real ones keep theirs. Alone it remembers nothing. */
static void session_begin(struct demo *d)
{
    char id[64];
    if (d->args.as != NULL && d->args.resume != NULL) {
        if (!demo_memory_resume(&d->mem, d->args.resume)) {
            d->as->lost(d);
            exit(1);
        }
        return;
    }
    d->as->new_id(id, sizeof(id));
    if (d->args.as != NULL)
        demo_memory_new(&d->mem, id);
    else
        str_copy(d->mem.id, sizeof(d->mem.id), id);
}

int demo_agent_main(int argc, char **argv)
{
    struct demo d = {.in = BUF_INIT_MAX(LIM_LINE_BYTES), .args = args_of(argc, argv)};
    signal(SIGPIPE, SIG_IGN);
    d.as = dialect_of(d.args.as);
    if (d.as == &demo_pi && !d.args.rpc)
        d.as = &demo_pi_once;
    if (d.as == &demo_claude && d.args.print && !d.args.stream) {
        d.as = &demo_claude_once;
        d.args.as = d.as->name; /* with a memory, and no greeting */
    }
    demo_out_start(&d.out, STDOUT_FILENO, "");
    session_begin(&d);
    demo_out_start(&d.out, STDOUT_FILENO, d.mem.id);
    d.as->open(&d);
    if (d.args.as == NULL)
        greet(&d);
    if (d.as->lines)
        lines_run(&d);
    else
        once(&d);
    ARR_RELEASE(&d.queue);
    ARR_RELEASE(&d.steer);
    buf_release(&d.in);
    buf_release(&d.said);
    free(d.answer);
    demo_memory_release(&d.mem);
    demo_out_release(&d.out);
    return d.exit_status;
}
