/* The tools that can run in a sandbox: a compiled-in table, changed and extended by
 * `tools.conf` in the configuration folder:
 *
 *     [tool claude]                  a known name changes that tool,
 *     template = my-claude           a new one adds a tool
 *     timeout = 2h
 *     env.NO_COLOR = 1
 *     [tool mine]
 *     adapter = claude
 *     command = "my-agent --json 'two words'"
 *     needs = anthropic openrouter   one of them is enough
 *     label = My agent
 *
 * A tool is plain data; one owner, read-only after loading. */
#ifndef CCT_CONFIG_TOOLS_H
#define CCT_CONFIG_TOOLS_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>

/* Providers of keys, as bits of tool.needs. */
enum tool_provider {
    TOOL_ANTHROPIC = 1u << 0,
    TOOL_ANTHROPIC_TOKEN = 1u << 1,
    TOOL_OPENAI = 1u << 2,
    TOOL_OPENROUTER = 1u << 3,
    TOOL_GITHUB = 1u << 4
};
/* How the sandbox' keeper drives it; what the adapter says (cct/agent.h). */
enum tool_mode { TOOL_PERSISTENT, TOOL_ONE_RUN, TOOL_RPC };

struct tool {
    char *name, *label;
    char *adapter;     /* name of a decoder, cct/agent.h */
    char *template_id; /* template of a new sandbox */
    char **argv;       /* the persistent command line, NULL at the end */
    char **env;        /* NAME=VALUE, NULL at the end; never a key */
    unsigned needs;    /* any one of these providers; 0 = no key */
    int timeout_s;     /* of a new sandbox; 0 = the general option */
    bool local_only;   /* only with the embedded provider */
    enum tool_mode mode;
    /* How a new command line is made from argv; NULL = the tool has no such thing. */
    char *model_flag;  /* "--model", "-m": followed by the model */
    char *model;       /* chosen when nothing else is said */
    char *prompt_flag; /* followed by the path of a file with the system prompt */
    char *prompt_file; /* else the file below home that the tool reads by itself */
    char *skills_dir;  /* folder below home with the tool's skills */
    bool asks;         /* permission questions come to the user ("ask = yes") */
    char **ask_argv;   /* takes argv's place then; NULL: this tool cannot ask */
};

struct tools;

struct tools *tools_new(void); /* the compiled-in ones */
void tools_free(struct tools *t);
/* Apply a file. What is wrong with it is said line by line ("FILE:LINE: ...") and
 * left out; a tool that cannot work then is left out too. A missing file is fine.
 * 0, or an error when the file exists and cannot be read. */
int tools_load(struct tools *t, const char *path, void (*say)(void *ctx, const char *message),
               void *ctx, struct err *e);
const struct tool *tools_find(const struct tools *t, const char *name); /* or NULL */
const struct tool *tools_at(const struct tools *t, size_t i); /* NULL past the end */

/* Name of the provider bit ("anthropic"), NULL for none; the bit of a name, 0 for none. */
const char *tool_provider_name(unsigned bit);
unsigned tool_provider_bit(const char *name);
/* Environment variables in which a provider's key goes to the sandbox: up to two
 * names; NULL when i is past the last. */
const char *tool_provider_env(unsigned bit, size_t i);
/* Split a command line into words as a shell would, with quotes and backslashes but
 * nothing expanded. NULL-terminated array, tool_words_free(); NULL with *e. */
char **tool_words(const char *command, struct err *e);
void tool_words_free(char **words);

#endif
