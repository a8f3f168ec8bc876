/* Tables on stdout, and lines of JSON. */
#include "cli_priv.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CELLS = 60 };

void cli_table_add(struct cli_table *t, char *take_cell)
{
    *ARR_PUSH(&t->cells) = clean_line_dup(take_cell ? take_cell : "-", MAX_CELLS);
    free(take_cell);
}

void cli_table_add_whole(struct cli_table *t, char *take_cell)
{
    *ARR_PUSH(&t->cells) = clean_line_dup(take_cell ? take_cell : "-", 0);
    free(take_cell);
}

static size_t cells_of(const char *s)
{
    return text_width(s, strlen(s));
}

/* Read aloud a column means nothing: each cell has its heading with it. */
static void print_spoken(struct cli_table *t)
{
    size_t columns = (size_t)t->columns;

    for (size_t i = 0; i < t->cells.n; i++) {
        size_t c = i % columns;
        char *head = xstrdup(t->heads[c]);

        for (char *p = head; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        if (c == 0)
            cli_out("%zu. %s", i / columns + 1, t->cells.v[i]);
        else if (strcmp(t->cells.v[i], "-") != 0 && *t->cells.v[i])
            cli_out(", %s %s", head, t->cells.v[i]);
        if (c + 1 == columns)
            cli_out("\n");
        free(head);
        free(t->cells.v[i]);
    }
    if (!t->cells.n)
        cli_out("nothing to list\n");
    ARR_RELEASE(&t->cells);
}

void cli_table_print(struct cli_table *t)
{
    if (cli_shared()) {
        print_spoken(t);
        return;
    }
    size_t width[CLI_TABLE_MAX], columns = (size_t)t->columns;

    for (size_t c = 0; c < columns; c++)
        width[c] = strlen(t->heads[c]);
    for (size_t i = 0; i < t->cells.n; i++)
        if (cells_of(t->cells.v[i]) > width[i % columns])
            width[i % columns] = cells_of(t->cells.v[i]);
    for (size_t c = 0; c < columns; c++)
        cli_out("%-*s%s", c + 1 < columns ? (int)width[c] : 0, t->heads[c],
               c + 1 < columns ? "  " : "\n");
    for (size_t i = 0; i < t->cells.n; i++) {
        size_t c = i % columns;
        size_t gap = c + 1 < columns ? width[c] - cells_of(t->cells.v[i]) + 2 : 0;
        cli_out("%s%*s", t->cells.v[i], (int)gap, "");
        if (c + 1 == columns)
            cli_out("\n");
        free(t->cells.v[i]);
    }
    ARR_RELEASE(&t->cells);
}

void cli_each_line(const char *text, size_t len,
                   void (*fn)(void *ctx, const char *line, size_t len), void *ctx)
{
    while (len > 0) {
        const char *nl = memchr(text, '\n', len);
        size_t n = nl ? (size_t)(nl - text) : len;

        if (n > 0)
            fn(ctx, text, n);
        n += nl != NULL;
        text += n;
        len -= n;
    }
}

static void put_item(void *ctx, const char *line, size_t len)
{
    bool *more = ctx;

    cli_out("%s", *more ? "," : "");
    cli_out_json_part(line, len);
    *more = true;
}

void cli_print_array(const char *lines, size_t len)
{
    bool more = false;

    cli_out("[");
    cli_each_line(lines, len, put_item, &more);
    cli_out("]\n");
}
