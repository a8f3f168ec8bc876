/* Recipes for the tools. The versions are those that `make agents` runs against cc-tui; the
 * image brings the Node that all four run on. */
#include "recipe_priv.h"

#include <stdlib.h>
#include <string.h>

#define IMAGE "node:22-bookworm"
#define NODE_MIN "22"

static const struct {
    const char *tool, *package, *version;
    const char *try; /* the command that shows that it is there */
} table[] = {
    {"claude", "@anthropic-ai/claude-code", "2.1.332", "claude --version"},
    {"codex", "@openai/codex", "0.171.0", "codex --version"},
    {"opencode", "opencode-ai", "1.18.33", "opencode --version"},
    {"pi", "@earendil-works/pi-coding-agent", "1.6.0", "pi --version"},
};
enum { N = sizeof(table) / sizeof(table[0]) };

static size_t find(const char *tool)
{
    size_t i = 0;

    while (i < N && !str_eq(table[i].tool, tool))
        i++;
    return i;
}

const char *recipe_tool_name(size_t i)
{
    return i < N ? table[i].tool : NULL;
}

const char *recipe_tool_version(const char *tool)
{
    size_t i = find(tool);

    return i < N ? table[i].version : NULL;
}

char *recipe_tool_text(const char *tool, const char *version)
{
    size_t i = find(tool);

    if (i == N)
        return NULL;
    version = version ? version : table[i].version;
    return xasprintf("[template]\n"
                     "base = " IMAGE "\n"
                     "tool = %s\n"
                     "version = %s\n"
                     "run = \"node -e 'process.exit(process.versions.node.split(\\\".\\\")[0] >= "
                     NODE_MIN " ? 0 : 1)'\"\n"
                     "apt = git ripgrep ca-certificates\n"
                     "npm = %s@%s\n"
                     "run = %s\n"
                     "user = user\n"
                     "workdir = /home/user\n",
                     tool, version, table[i].package, version, table[i].try);
}

int recipe_for_tool(struct recipe *r, const char *tool, const char *version, struct err *e)
{
    char *text = recipe_tool_text(tool, version), *name;
    int rc;

    if (!text)
        return err_set(e, ERR_NOTFOUND, "there is no recipe for the tool \"%.60s\": there is one for "
                       "claude, codex, opencode and pi; for others write a Dockerfile", tool);
    name = xasprintf("recipe of %s", tool);
    rc = recipe_parse_spec(r, text, strlen(text), name, NULL, e);
    free(name);
    free(text);
    return rc;
}
