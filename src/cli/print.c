/* The one way by which commands print. Names, arguments, files and services are foreign: what
 * they hold reaches the terminal only through the cleaner. JSON keeps its meaning to the
 * character, with the ones that a terminal acts on written as \u escapes. */
#include "cli_priv.h"

#include <cct/text/clean.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the text as it was meant. */
__attribute__((format(printf, 4, 0))) static int put(FILE *f, const char *lead, const char *end,
                                                     const char *fmt, va_list ap)
{
    struct buf b = BUF_INIT;
    char *clean;
    int n;

    buf_addv(&b, fmt, ap);
    n = (int)b.len;
    clean = clean_text_dup(buf_str(&b), b.len);
    fprintf(f, "%s%s%s", lead, clean, end);
    free(clean);
    buf_release(&b);
    return n;
}

static bool one_stream;

void cli_talk_on_stdout(void)
{
    one_stream = true;
}

static FILE *talk(void)
{
    return one_stream ? stdout : stderr;
}

static const char *our_name(void)
{
    return one_stream ? "" : "cc-tui: ";
}

int cli_out(const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = put(stdout, "", "", fmt, ap);
    va_end(ap);
    return n;
}

void cli_err(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(talk(), "", "", fmt, ap);
    va_end(ap);
}

void cli_tell(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(talk(), our_name(), "\n", fmt, ap);
    va_end(ap);
}

void cli_say(const struct cli *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (one_stream && str_starts(fmt, "cc-tui: "))
        fmt += strlen("cc-tui: ");
    if (!cli_has(c, CLI_QUIET))
        put(talk(), "", "\n", fmt, ap);
    va_end(ap);
}

int cli_usage(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(talk(), our_name(), "\n", fmt, ap);
    va_end(ap);
    return CLI_USAGE;
}

int cli_fail(const struct err *e)
{
    cli_tell("%s", e->text);
    return cli_exit_of(e->code);
}

void cli_out_bytes(const char *data, size_t len)
{
    fwrite(data, 1, len, stdout);
}

void cli_stream_bytes(FILE *f, const char *data, size_t len)
{
    fwrite(data, 1, len, f);
}

void cli_out_sgr(const char *ours)
{
    fputs(ours, stdout);
}

void cli_err_sgr(const char *ours)
{
    fputs(ours, stderr);
}

void cli_out_json_part(const char *json, size_t len)
{
    struct buf b = BUF_INIT;

    json_for_terminal(json, len, &b);
    fwrite(b.p, 1, b.len, stdout);
    buf_release(&b);
}

void cli_out_json(struct buf *b)
{
    cli_out_json_part(b->p, b->len);
    fputc('\n', stdout);
}
