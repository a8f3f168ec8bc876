/* Recipes: any text is read or refused with a sentence that names the file; patterns of a
 * .dockerignore against paths. */
#include <cct/recipe.h>
#include <cct/recipe/files.h>
#include <cct/util/utf8.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct recipe *r, int rc, const struct err *e)
{
    if (rc) {
        if (e->code != rc || !e->text[0])
            abort();
        return;
    }
    if (!r->from_image == !r->from_template || r->steps.n > 2 * RECIPE_STEPS * 100)
        abort();
    for (size_t i = 0; i < r->steps.n; i++) {
        const struct recipe_step *s = &r->steps.v[i];
        size_t n = 0;

        while (s->args[n]) {
            if (!utf8_valid(s->args[n], strlen(s->args[n])))
                abort();
            n++;
        }
        if (n == 0 || (strcmp(s->type, "ENV") == 0 && n % 2) ||
            (strcmp(s->type, "COPY") == 0 && (n != 4 || s->args[0][0] == '/')))
            abort();
    }
    if (r->ready_cmd && !r->start_cmd)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct recipe_ignore g = {ARR_INIT};
    struct recipe r;
    struct err e = {0};

    recipe_init(&r);
    check(&r, recipe_parse(&r, text, size, "f", NULL, &e), &e);
    recipe_release(&r);
    err_clear(&e);
    check(&r, recipe_parse_spec(&r, text, size, "f", NULL, &e), &e);
    recipe_release(&r);
    if (size < 300) {
        recipe_ignore_add(&g, text, size);
        recipe_ignores(&g, "node_modules/a/b.c");
        recipe_ignores(&g, "src/\xC3\xA9/.x");
        recipe_ignore_release(&g);
    }
    return 0;
}
