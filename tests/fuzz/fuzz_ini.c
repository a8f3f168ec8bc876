/* Configuration text: every line is handed over once or complained about. */
#include <cct/config/ini.h>
#include <cct/util/str.h>
#include <cct/config/tools.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    int last, said;
};

static void on_line(void *ctx, const char *section, const char *key, const char *value,
                    int line)
{
    struct seen *s = ctx;

    if (line <= s->last || !section || !key != !value)
        abort();
    s->last = line;
    if (value)
        str_list_free(tool_words(value, NULL));
}

static void on_say(void *ctx, const char *message)
{
    struct seen *s = ctx;

    if (strncmp(message, "f:", 2) != 0)
        abort();
    s->said++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen s = {0, 0};
    const struct ini_reader r = {on_line, on_say, &s};

    if (ini_parse((const char *)data, size, "f", &r) != s.said)
        abort();
    return 0;
}
