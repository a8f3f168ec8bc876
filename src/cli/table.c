/* Tables on stdout, and lines of JSON. */
#include "cli_priv.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CELLS = 60 };

void cli_table_add(struct cli_table *t, char *take_cell)
{
    struct {
        char **v;
        size_t n, cap;
    } a = {t->cells, t->n, t->cap};

    *ARR_PUSH(&a) = clean_line_dup(take_cell ? take_cell : "-", MAX_CELLS);
    free(take_cell);
    t->cells = a.v;
    t->n = a.n;
    t->cap = a.cap;
}

static size_t cells_of(const char *s)
{
    return text_width(s, strlen(s));
}

void cli_table_print(struct cli_table *t)
{
    size_t width[CLI_TABLE_MAX], columns = (size_t)t->columns;

    for (size_t c = 0; c < columns; c++)
        width[c] = strlen(t->heads[c]);
    for (size_t i = 0; i < t->n; i++)
        if (cells_of(t->cells[i]) > width[i % columns])
            width[i % columns] = cells_of(t->cells[i]);
    for (size_t c = 0; c < columns; c++)
        printf("%-*s%s", c + 1 < columns ? (int)width[c] : 0, t->heads[c],
               c + 1 < columns ? "  " : "\n");
    for (size_t i = 0; i < t->n; i++) {
        size_t c = i % columns;
        printf("%s%*s", t->cells[i], c + 1 < columns ? (int)(width[c] - cells_of(t->cells[i]) + 2) : 0,
               "");
        if (c + 1 == columns)
            putchar('\n');
        free(t->cells[i]);
    }
    free(t->cells);
    t->cells = NULL;
    t->n = t->cap = 0;
}

void cli_each_line(const char *text, size_t len, void (*fn)(void *ctx, const char *line, size_t len),
                   void *ctx)
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

    printf("%s%.*s", *more ? "," : "", (int)len, line);
    *more = true;
}

void cli_print_array(const char *lines, size_t len)
{
    bool more = false;

    putchar('[');
    cli_each_line(lines, len, put_item, &more);
    puts("]");
}
